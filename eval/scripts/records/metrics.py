"""metrics.json of a run: one section a scorer, made to be committed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson

from records.errors import Problem, StorageError
from records.files import clear_leftovers, json_bytes, locked, read_json, replace_bytes
from records.results import SCHEMA
from records.runs import METRICS

ROUND = 6

PRIMARY = "primary"
"""The primary scores of every case, in eval-set order; see ``update_primary``."""

PRIMARY_METRICS = "primary_metrics"
"""The metric of each score in ``PRIMARY``, as ``section.metric``."""

OF_RESULTS = frozenset({"cases", "errors", "asked", "missing"})
"""Counts in the head that all sections share: where one changes, results.jsonl has changed."""


def update_metrics(
    folder: Path, section: str, values: dict[str, Any], header: dict[str, Any]
) -> Path:
    """Put one section (and the header's fields) into metrics.json, under its lock.

    Other sections stay as they are, unless the head's counts of results change: they were made of
    other results, which the new head does not describe, and go. Floats are rounded to 6 places,
    keys sorted, no clock time: the same results give the same bytes. Raises StorageError for NaN
    and infinities, which no metric may be.
    """
    path = folder / METRICS
    with locked(path):
        clear_leftovers(path)
        metrics: dict[str, Any] = {"schema": SCHEMA}
        if path.exists():
            metrics = read_json(path, SCHEMA)
        if any(
            name in metrics and metrics[name] != header[name] for name in OF_RESULTS & header.keys()
        ):
            metrics = {"schema": SCHEMA}
        sections = metrics.get("sections", {}) | {section: rounded(values)}
        replace_bytes(path, metrics_bytes(metrics | rounded(header) | {"sections": sections}))
    return path


Row = Sequence[float | None]


def update_primary(folder: Path, names: Sequence[str], rows: Mapping[str, Row]) -> None:
    """Put the primary scores of every case into metrics.json, under its lock; no names: none.

    ``rows``: by case id in eval-set order, a score for each name, None where a case has none.
    """
    path = folder / METRICS
    with locked(path):
        metrics = read_json(path, SCHEMA)
        before = metrics.pop(PRIMARY_METRICS, None), metrics.pop(PRIMARY, None)
        if names:
            metrics |= {PRIMARY_METRICS: list(names), PRIMARY: rounded(dict(rows))}
        elif before == (None, None):
            return
        replace_bytes(path, metrics_bytes(metrics))


def metrics_bytes(metrics: Mapping[str, Any]) -> bytes:
    """metrics.json as it is committed: canonical, but its primary scores are one line a case in
    their own order, so that a diff shows which cases changed."""
    rows = metrics.get(PRIMARY)
    if not rows:
        return json_bytes(metrics)
    lines = [b"    %s: %s" % (_compact(case_id), _compact(row)) for case_id, row in rows.items()]
    text = b'\n  "%s": {\n%s\n  }' % (PRIMARY.encode(), b",\n".join(lines))
    empty = b'\n  "%s": {}' % PRIMARY.encode()  # at this depth, and no text holds a line break
    return json_bytes(dict(metrics) | {PRIMARY: {}}).replace(empty, text, 1)


def _compact(value: Any) -> bytes:
    """JSON on one line, with whole numbers as such: ``[1, 0.5, null]``."""
    if isinstance(value, list):
        return b"[%s]" % b", ".join(map(_compact, value))
    whole = isinstance(value, float) and value.is_integer()
    return orjson.dumps(int(value) if whole else value)


def section_names(folder: Path) -> frozenset[str]:
    """The sections that a run's metrics.json holds; none without the file."""
    path = folder / "metrics.json"
    return frozenset(read_json(path, SCHEMA).get("sections", {}) if path.exists() else ())


def rounded(value: Any) -> Any:
    """The same data with floats of 6 decimal places. Raises StorageError for NaN and infinities."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise StorageError("a metric is not a finite number; this is a bug, please report it.")
        return round(value, ROUND) + 0.0  # + 0.0 turns -0.0 into 0.0
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


REMEDY = "score the run again, or take the file from git"

Numbers = dict[str, float | None]

Counts = dict[str, int]


class SectionSlice(msgspec.Struct):
    """A section's means for one value of a dimension."""

    n: int
    mean: Numbers
    n_of: Counts = {}
    ci95: dict[str, tuple[float, float] | None] = {}


class SectionJudge(msgspec.Struct):
    """Who judged, as a section's options tell it."""

    identity: dict[str, Any] | None = None
    prompts: dict[str, Any] | None = None
    answered_as: list[str] | None = None
    fingerprints: list[str] | None = None


class SectionOptions(msgspec.Struct):
    """How a section was scored, as far as its shape matters to a reader."""

    judge: SectionJudge | None = None


class PlaceMismatch(msgspec.Struct):
    """Passages of the right files under headings that the labels never have.

    Of ``cases`` matched by their places, the right file was retrieved for ``path_found``, and the
    right heading for none of these. ``wanted``, ``got``: a gold place and a retrieved one.
    """

    cases: int
    path_found: int
    path: str
    wanted: str
    got: str


class MetricsSection(msgspec.Struct, kw_only=True):
    """What any reader uses of a section, where it is there.

    By metric: ``method``, how the interval was computed; ``clusters``, on how many independent
    units it rests; ``marks``, why it is to be doubted or is not there. ``clustered_by``: what cases
    are counted together by (group, doc, none).
    """

    mean: Numbers = {}
    n: Counts = {}
    ci95: dict[str, tuple[float, float] | None] = {}
    definitions: dict[str, str] = {}
    not_applicable: Counts = {}
    failed: Counts = {}
    method: dict[str, str] = {}
    clusters: Counts = {}
    clustered_by: str = "none"
    marks: dict[str, str] = {}
    by: dict[str, dict[str, SectionSlice]] = {}
    options: SectionOptions = msgspec.field(default_factory=SectionOptions)
    place_mismatch: PlaceMismatch | None = None


class _MetricsHead(msgspec.Struct):
    """What metrics.json says of the run itself."""

    run_id: str | None = None
    config_hash: str | None = None
    eval_set_sha256: str | None = None
    labels_sha256: str | None = None
    asked: int | None = None
    cases: int | None = None
    missing: int | None = None
    errors: int | None = None
    primary_metrics: list[str] | None = None
    primary: dict[str, list[float | None]] | None = None


class _AnySections(_MetricsHead):
    sections: dict[str, dict[str, Any]] = {}


class MetricsFile(_MetricsHead):
    """metrics.json, its sections as far as all readers know them."""

    sections: dict[str, MetricsSection] = {}


def read_metrics(folder: Path, whole: type[MetricsSection] = MetricsSection) -> dict[str, Any]:
    """metrics.json of a run folder, see ``read_sections``.

    Raises StorageError where there is no file, or where a part is not of its type.
    """
    path = folder / METRICS
    if not path.exists():
        raise StorageError(
            f"{path}: no such file; score the run first (eval_suite.py --run {folder.name})."
        )
    return read_sections(path, whole)


def read_sections(
    path: Path, whole: type[MetricsSection] = MetricsSection, remedy: str = REMEDY
) -> dict[str, Any]:
    """metrics.json, or another file with its ``sections``.

    ``whole``: what a section with means must hold; other scripts may keep other sections. Raises
    StorageError, with ``remedy``, that names each part that is not of its type.
    """
    metrics = read_json(path, SCHEMA)
    faults = list(_faults("", metrics, _AnySections))
    for name, section in metrics.get("sections", {}).items() if not faults else ():
        faults += _faults(
            f"sections.{name}", section, whole if "mean" in section else MetricsSection
        )
    if faults:
        raise StorageError.from_problems(
            Problem(str(path), None, field, f"{message}; {remedy}") for field, message in faults
        )
    return metrics


def _faults(where: str, value: Any, kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    """Field and fault of each part that is not of its type; of a table, of each of its entries."""
    for field in msgspec.structs.fields(kind):
        path_of_part = f"{where}.{field.name}".removeprefix(".")
        if field.name not in value:
            if field.required:
                yield path_of_part, "is not there"
            continue
        part = value[field.name]
        with contextlib.suppress(msgspec.ValidationError):
            msgspec.convert(part, field.type)
            continue
        table = isinstance(part, dict)
        for key, entry in ((k, {k: v}) for k, v in part.items()) if table else [("", part)]:
            try:
                msgspec.convert(entry, field.type)
            except msgspec.ValidationError as error:
                message = str(error).removesuffix(" - at `$[...]`")
                yield f"{path_of_part}.{key}" if table else path_of_part, message


class Estimable(msgspec.Struct):
    """Whether enough texts stand behind a number."""

    estimable: bool


class OperatingPointFigures(Estimable):
    """The same, and what to know of it."""

    note: str | None


class StageTimes(msgspec.Struct):
    """Percentiles of a stage's time, in milliseconds."""

    n: int
    p50: float
    p95: float
    p99: float
    max: float


class RunBudget(msgspec.Struct):
    """A limit of time for the whole run."""

    percentile: str
    budget_ms: float
    ms: float
    n: int
    kept: bool


class MetricStability(msgspec.Struct):
    """What repeats tell of a metric: see ``scorers/repeats.py``."""

    n: int
    worst: float | None
    variance: Numbers
    flips: float | None = None


class SectionStability(msgspec.Struct):
    """What repeats tell of a section."""

    repeats: int = 0
    metrics: dict[str, MetricStability] = {}
    pass_at: Numbers = {}
    pass_all: Numbers = {}


class ReportSection(MetricsSection, msgspec.Struct, kw_only=True):
    """A section with means, with all that a report draws of it."""

    mean: Numbers
    n: Counts
    ci95: dict[str, tuple[float, float] | None]
    definitions: dict[str, str]
    not_applicable: Counts
    failed: Counts
    guardrails: dict[str, str] = {}
    operating_points: dict[str, OperatingPointFigures | None] = {}
    latency_ms: dict[str, StageTimes] = {}
    run_budgets: list[RunBudget] = []
    usage: Counts = {}
    cost_usd: float | None = None
    outcomes: dict[str, Counts] = {}
    stability: SectionStability | None = None


class ComparedSection(MetricsSection, msgspec.Struct, kw_only=True):
    """What a section must hold to be compared with another."""

    mean: Numbers
    ci95: dict[str, tuple[float, float] | None]
    definitions: dict[str, str]


class MeasuredSection(ComparedSection, msgspec.Struct, kw_only=True):
    """What a section must hold to be looked at by itself."""

    n: Counts
    not_applicable: Counts
    failed: Counts
    operating_points: dict[str, Estimable | None] = {}
    latency_ms: dict[str, dict[str, Any]] = {}
