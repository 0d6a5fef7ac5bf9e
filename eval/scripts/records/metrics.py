"""metrics.json of a run: one section a scorer, made to be committed."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import orjson

from records import metric_lines
from records.errors import Problem, StorageError
from records.file_access import read_whole
from records.files import clear_leftovers, locked, read_json, replace_bytes, sha256_file
from records.fingerprints import is_short
from records.lines import parse_json
from records.metric_lines import PRIMARY, MetricLine, metrics_bytes
from records.results import UNREADABLE
from records.runs import METRICS, SLICES, half_scored, halfway_mark

ROUND = 6

SCHEMA = metric_lines.SCHEMA

PRIMARY_METRICS = "primary_metrics"
"""The metric of each score in ``PRIMARY``, as ``section.metric``."""

REMEDY = "score the run again, or restore the file from git"

CASE_RULE = "case_rule"
"""The member with the rule behind the verdicts of cases: the rule's hash, the depth."""

CASE_VERDICTS = "case_verdicts"
"""In the file as read, the verdict and the first reason of each case that has them on its line."""

CASE_FINGERPRINTS = "case_fingerprints"
"""In the file as read, of each case what was asked and labelled, see ``fingerprints.short``."""

OF_CASES = (PRIMARY_METRICS, PRIMARY, CASE_RULE)
"""Members about single cases."""

OF_RESULTS = frozenset({"cases", "errors", "asked", "missing", UNREADABLE})
"""Counts in the head that all sections share: where one changes, results.jsonl has changed."""


def update_metrics(
    folder: Path,
    section: str,
    values: dict[str, Any],
    header: dict[str, Any],
    *,
    case_lines: bool = True,
) -> Path:
    """Put one section (and the header's fields) into metrics.json, under its lock.

    Other sections stay as they are, unless the head's counts of results change: they were made of
    other results, which the new head does not describe, and go. Floats are rounded to 6 places,
    keys sorted, no clock time: the same results give the same bytes. Its means by slice go to
    slices.json. ``case_lines``: whether those of the cases stay; without them none is left that was
    made of earlier scores, should ``update_primary`` not be reached. Raises StorageError for NaN
    and infinities, which no metric may be.
    """
    path = folder / METRICS
    with locked(path):
        clear_leftovers(path)
        metrics, slices = {}, {}
        if path.exists():
            metrics, slices = read_json(path, SCHEMA), _slices(path)
        counts = {name: header[name] for name in OF_RESULTS & header.keys()}
        before = {UNREADABLE: 0} | metrics
        if any(name in before and before[name] != count for name, count in counts.items()):
            metrics, slices = {}, {}
        values = rounded(values)
        written = metric_lines.written_section(values)
        slices[section] = _marked(written, values)
        sections = metrics.get("sections", {}) | {section: written}
        for name in () if case_lines else OF_CASES:
            metrics.pop(name, None)
        head = {name: value for name, value in header.items() if value or name != UNREADABLE}
        _replace(path, metrics | rounded(head) | {"sections": sections}, slices)
    return path


@contextlib.contextmanager
def replacing_section(folder: Path, section: str) -> Iterator[None]:
    """Lock metrics.json while the score lines and the numbers of a section are replaced.

    A mark beside the score lines stays if the block does not end; see ``half_scored``.
    """
    mark = halfway_mark(folder, section)
    with locked(folder / METRICS):
        try:
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
        except OSError as error:
            raise StorageError(f"{mark}: cannot be written ({error.strerror}).") from None
        yield
        mark.unlink(missing_ok=True)


Row = Sequence[float | None]


class StoredVerdicts(msgspec.Struct, frozen=True):
    """Which cases of a run fail, as decisions/case_verdict.py says it and a line of a case ends.

    ``rule``: hash of the rule, the depth to which passages counted, and the like. ``by_case``: by
    case id ``("ok",)``, ``("unreadable",)`` or ``("fails", reason)``, the first reason alone.
    """

    rule: Mapping[str, Any]
    by_case: Mapping[str, tuple[str, ...]]


def update_primary(
    folder: Path,
    names: Sequence[str],
    rows: Mapping[str, Row],
    verdicts: StoredVerdicts | None = None,
    fingerprints: Mapping[str, str] | None = None,
) -> None:
    """Put the primary scores and verdicts of every case into metrics.json, under its lock.

    ``rows``: by case id in eval-set order, a score for each name, None where a case has none; of
    neither: what is there goes. ``fingerprints``: by case id, written with verdicts alone.
    """
    path = folder / METRICS
    with locked(path):
        metrics = read_json(path, SCHEMA)
        before = {name: metrics.pop(name) for name in OF_CASES if name in metrics}
        if rows and (names or verdicts):
            ends = verdicts.by_case if verdicts else {}
            marks = fingerprints or {} if verdicts else {}
            metrics |= {
                PRIMARY_METRICS: list(names),
                PRIMARY: {
                    case_id: [
                        *map(_whole, rounded(row)),
                        *filter(None, [marks.get(case_id)]),
                        *ends.get(case_id, ()),
                    ]
                    for case_id, row in rows.items()
                },
            }
            metrics |= {CASE_RULE: dict(verdicts.rule)} if verdicts else {}
        elif not before:
            return
        replace_bytes(path, metrics_bytes(metrics))


def _whole(score: float | None) -> float | None:
    """A whole number as such, so that a line is short."""
    return int(score) if isinstance(score, float) and score.is_integer() else score


def _replace(path: Path, metrics: dict[str, Any], slices: dict[str, Any]) -> None:
    """Write both files; the slices first, since they say which section they belong to."""
    kept = {name: slices[name] for name in metrics.get("sections", {}) if name in slices}
    text = orjson.dumps({"schema": 1, "sections": kept}, option=orjson.OPT_SORT_KEYS)
    replace_bytes(path.with_name(SLICES), text + b"\n")
    replace_bytes(path, metrics_bytes(metrics | {"schema": SCHEMA}))


def _marked(written: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {_OF: metric_lines.mark_of(written), **metric_lines.slices_of_section(values)}


_OF = "of"
"""In slices.json, the mark of the section that the slices belong to."""


def _slices(path: Path) -> dict[str, Any]:
    """By section what slices.json beside a metrics.json holds; {} where it is not there, or not
    sound: it can be made anew."""
    with contextlib.suppress(StorageError):
        sections = read_json(path.with_name(SLICES)).get("sections")
        if isinstance(sections, dict):
            return {name: part for name, part in sections.items() if isinstance(part, dict)}
    return {}


def sections_without_slices(path: Path) -> list[str]:
    """The sections of a metrics.json whose slices slices.json lacks, or has of another scoring.

    Raises StorageError as read_json.
    """
    metrics = read_json(path, SCHEMA)
    marks = {name: part.get(_OF) for name, part in _slices(path).items()}
    sections = metrics.get("sections", {}).items()
    return [name for name, written in sections if marks.get(name) != metric_lines.mark_of(written)]


NUMBERS = frozenset({"sections", *OF_CASES, CASE_VERDICTS, CASE_FINGERPRINTS})
"""The member by which a report of the suite names a metrics.json in place of its numbers."""


def reference_to(metrics: Path, folder: Path) -> dict[str, Any]:
    """The reference of a report in ``folder`` to the metrics.json with its numbers."""
    if not metrics.exists():
        return {"schema": SCHEMA, _NAMED: None}
    place = os.path.relpath(metrics.resolve(), folder.resolve())
    named = {"path": Path(place).as_posix(), "sha256": sha256_file(metrics)}
    return {"schema": SCHEMA, _NAMED: named}


_NAMED = "metrics"
"""The member of a report that names a metrics.json."""


def load_metrics(path: Path, remedy: str = REMEDY, *, slices: bool = True) -> dict[str, Any]:
    """metrics.json as all readers see it, with slices where they are there. A report of the suite
    is read with the numbers of the metrics.json that it names. Without ``slices`` slices.json,
    which is ten times as large, is not opened.

    Raises StorageError, which names each member of a section that cannot be read, and for a
    metrics.json that is gone or another one than the report was written of.
    """
    metrics = read_json(path, SCHEMA)
    named = metrics.get(_NAMED)
    if _NAMED not in metrics:
        return _read_whole(path, metrics, remedy, slices=slices)
    if not isinstance(named, dict) or not isinstance(named.get("path"), str):
        raise StorageError(f"{path}: names no metrics.json, so it has no numbers; {_AGAIN}.")
    place = path.parent / named["path"]
    if not place.is_file() or Path(named["path"]).is_absolute():
        raise StorageError(f"{path}: its numbers are in {place}, which is missing; {_AGAIN}.")
    try:  # read whole, since it may be any file
        sha256 = hashlib.sha256(read_whole(place)).hexdigest()
    except OSError as error:
        raise StorageError(f"{place}: cannot be read ({error.strerror}).") from None
    if sha256 != named.get("sha256"):
        raise StorageError(
            f"{path}: its numbers are in {place}, which has changed since the report was written; "
            f"{_AGAIN}."
        )
    whole = _read_whole(place, read_json(place, SCHEMA), remedy, slices=slices)
    looked_at = metrics.get("perspectives", {})
    sections = {
        name: section
        for name, section in whole.get("sections", {}).items()
        if looked_at.get(name, {}).get("status", "cannot run") != "cannot run"
    }
    return whole | metrics | {"sections": sections}


_AGAIN = "run eval_suite.py again, or give a metrics.json instead"


def _read_whole(
    path: Path, metrics: dict[str, Any], remedy: str, *, slices: bool
) -> dict[str, Any]:
    """What was read of a metrics.json, its sections as all readers see them."""
    if faults := list(_line_faults(metrics)):
        raise _faulty(path, faults, remedy)
    return _unfolded(metrics, _slices(path) if slices else {})


def parse_metrics(data: bytes) -> Any:
    """The same of bytes, such as git's, without slices; no object: comes back unchanged.

    Raises ValueError for what is not JSON, or damaged.
    """
    metrics = parse_json(data)
    if not isinstance(metrics, dict) or metrics.get("schema") != SCHEMA:
        return metrics
    for field, message in _line_faults(metrics):
        raise ValueError(f"{field}: {message}")
    return _unfolded(metrics, {})


def _unfolded(metrics: dict[str, Any], slices: Mapping[str, Any]) -> dict[str, Any]:
    """The sections with a table for each number."""
    sections = {}
    for name, written in metrics.get("sections", {}).items():
        part = dict(slices.get(name, {}))
        fits = part.pop(_OF, None) == metric_lines.mark_of(written) if part else False
        sections[name] = metric_lines.read_section(written, part if fits else {})
    return metrics | ({"sections": sections} if "sections" in metrics else {}) | _cases(metrics)


def _cases(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of each case apart from the fingerprint, the verdict and the reason that its line
    ends with."""
    if CASE_RULE not in metrics:
        return {}
    width, rows = len(metrics.get(PRIMARY_METRICS, ())), metrics.get(PRIMARY, {})
    ends = {case_id: row[width:] for case_id, row in rows.items()}
    marked = {case_id: end[0] for case_id, end in ends.items() if end and is_short(end[0])}
    verdicts = {case_id: end[case_id in marked :] for case_id, end in ends.items()}
    return {
        PRIMARY: {case_id: row[:width] for case_id, row in rows.items()},
        CASE_FINGERPRINTS: marked,
        CASE_VERDICTS: {case_id: end for case_id, end in verdicts.items() if end},
    }


def _line_faults(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Field and fault of each metric's line that is not of its type."""
    sections = metrics.get("sections", {})
    if not isinstance(sections, dict):
        yield "sections", "Expected `object`"
        return
    for name, section in sections.items():
        if not metric_lines.is_written(section):
            yield f"sections.{name}", "Expected `object`, and one for each metric"
            continue
        for metric, line in section.get(metric_lines.METRICS, {}).items():
            yield from _faults(f"sections.{name}.{metric_lines.METRICS}.{metric}", line, MetricLine)
    yield from _faults("", metrics, _CaseLines)


class _CaseLines(msgspec.Struct):
    """The part about single cases, in the form that is written."""

    primary_metrics: list[str] = []
    primary: dict[str, list[float | str | None]] = {}
    case_rule: dict[str, Any] = {}


def section_names(folder: Path) -> frozenset[str]:
    """The sections in a run's metrics.json; none without the file."""
    path = folder / METRICS
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


Numbers = dict[str, float | None]

Counts = dict[str, int]


class SectionSlice(msgspec.Struct):
    """A section's means for one value of a dimension."""

    n: int
    mean: Numbers
    n_of: Counts = {}
    ci95: dict[str, tuple[float, float] | None] = {}


class SectionJudge(msgspec.Struct):
    """The judge of a section, from the section's options."""

    identity: dict[str, Any] | None = None
    prompts: dict[str, Any] | None = None
    answered_as: list[str] | None = None
    fingerprints: list[str] | None = None


class SectionOptions(msgspec.Struct):
    """How a section was scored, as far as its shape matters to a reader."""

    judge: SectionJudge | None = None


class PathMismatch(msgspec.Struct):
    """Files that a bot names as the labels never do.

    Of ``gold`` files, a case's once, ``seen`` were retrieved under their own paths, and
    ``seen_cut`` after ``steps`` and without ``root``. ``label``, ``bot``: one path of each.
    """

    gold: int
    seen: int
    seen_cut: int
    steps: str
    root: str
    label: str
    bot: str


class PlaceMismatch(msgspec.Struct):
    """Passages of the right files under headings that the labels never have.

    Of ``cases`` matched by their places, the right file was retrieved for ``path_found``, and the
    right heading for none of these. ``gold``, ``retrieved``: a gold place and a retrieved one.
    """

    cases: int
    path_found: int
    path: str
    gold: str = msgspec.field(name="wanted")
    retrieved: str = msgspec.field(name="got")


class MetricsSection(msgspec.Struct, kw_only=True):
    """The members of a section that any reader uses, if present.

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
    path_mismatch: PathMismatch | None = None
    per_search: int = 0


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
    unreadable: int = 0
    primary_metrics: list[str] | None = None
    primary: dict[str, list[float | None]] | None = None
    case_rule: dict[str, Any] | None = None
    case_verdicts: dict[str, list[str]] | None = None
    case_fingerprints: dict[str, str] | None = None


class _AnySections(_MetricsHead):
    sections: dict[str, dict[str, Any]] = {}


class SectionMeans(msgspec.Struct):
    """Of a section, by metric, mean, cases and definition, of whatever schema."""

    mean: Numbers = {}
    n: Counts = {}
    definitions: dict[str, str] = {}
    metrics: dict[str, MetricLine] = {}


class MetricsSummary(msgspec.Struct):
    """The counts of metrics.json, and the means of its sections."""

    asked: int | None = None
    cases: int | None = None
    missing: int | None = None
    errors: int | None = None
    unreadable: int = 0
    sections: dict[str, SectionMeans] = {}


def read_summary(path: Path) -> MetricsSummary:
    """The head and the means of a metrics.json, quicker than the whole.

    Raises OSError, UnicodeDecodeError and msgspec.MsgspecError.
    """
    summary = msgspec.json.decode(read_whole(path), type=MetricsSummary)
    for section in summary.sections.values():
        for name, line in section.metrics.items():
            section.mean[name], section.n[name] = line.mean, line.n
            section.definitions[name] = line.definition or ""
    return summary


def read_metrics(folder: Path, whole: type[MetricsSection] = MetricsSection) -> dict[str, Any]:
    """metrics.json of a run folder, see ``read_sections``.

    Raises StorageError where there is no file, or where a part is not of its type.
    """
    path = folder / METRICS
    if not path.exists():
        raise StorageError(
            f"{path}: no such file; score the run first (eval_suite.py --run {folder.name})."
        )
    metrics = read_sections(path, whole)
    if problems := [*filter(None, (half_scored(folder, name) for name in metrics["sections"]))]:
        raise StorageError.from_problems(problems)
    return metrics


def read_sections(
    path: Path,
    whole: type[MetricsSection] = MetricsSection,
    remedy: str = REMEDY,
    *,
    slices: bool = True,
) -> dict[str, Any]:
    """metrics.json, or another file with its ``sections``.

    ``whole``: what a section with means must hold; other scripts may keep other sections.
    ``slices``: as ``load_metrics``. Raises
    StorageError, with ``remedy``, that names each part that is not of its type.
    """
    metrics = load_metrics(path, remedy, slices=slices)
    faults = list(_faults("", metrics, _AnySections))
    for name, section in metrics.get("sections", {}).items() if not faults else ():
        faults += _faults(
            f"sections.{name}", section, whole if "mean" in section else MetricsSection
        )
    if faults:
        raise _faulty(path, faults, remedy)
    return metrics


def _faulty(path: Path, faults: Iterable[tuple[str, str]], remedy: str) -> StorageError:
    return StorageError.from_problems(
        Problem(str(path), None, field, f"{message}; {remedy}") for field, message in faults
    )


def _faults(where: str, value: Any, kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    """Field and fault of each part that is not of its type; of a table, of each of its entries."""
    for field in _fields(kind):
        path_of_part = f"{where}.{field.encode_name}".removeprefix(".")
        if field.encode_name not in value:
            if field.required:
                yield path_of_part, "is not there"
            continue
        part = value[field.encode_name]
        with contextlib.suppress(msgspec.ValidationError):
            msgspec.convert(part, field.type)
            continue
        table = isinstance(part, dict) and bool(part)
        for key, entry in ((k, {k: v}) for k, v in part.items()) if table else [("", part)]:
            try:
                msgspec.convert(entry, field.type)
            except msgspec.ValidationError as error:
                message = str(error).removesuffix(" - at `$[...]`")
                yield f"{path_of_part}.{key}" if table else path_of_part, message


_fields = lru_cache(maxsize=None)(msgspec.structs.fields)


class Estimable(msgspec.Struct):
    """Whether a number rests on enough texts."""

    estimable: bool


class OperatingPointFigures(Estimable):
    """The same, and notes on it."""

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
    met: bool = msgspec.field(name="kept")


class MetricStability(msgspec.Struct):
    """The spread of a metric over repeats: see ``scorers/variation.py``."""

    n: int
    within: float | None = None


class SectionStability(msgspec.Struct):
    """The spread of a section's metrics over repeats."""

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
    """The members that a section needs to be compared with another."""

    mean: Numbers
    ci95: dict[str, tuple[float, float] | None]
    definitions: dict[str, str]


class MeasuredSection(ComparedSection, msgspec.Struct, kw_only=True):
    """The members that a section needs to be examined by itself."""

    n: Counts
    not_applicable: Counts
    failed: Counts
    operating_points: dict[str, Estimable | None] = {}
    latency_ms: dict[str, dict[str, Any]] = {}
