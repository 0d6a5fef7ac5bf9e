"""What a gate looks at: a run's numbers and its cases, and those of the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from decisions.baseline import Measured, read_baseline
from decisions.compare import compare
from decisions.invariants import Run, config_of, controls, judge_of
from decisions.metric_rows import Wanted
from decisions.rows import Row
from ragmetrics.catalogue.metric import Metric
from records import jsonl
from records.errors import StorageError
from records.files import read_json, sha256_file
from records.labels import read_cases
from records.results import RunConfig
from records.runs import METRICS, SCORES, find_run, scored_sections, scores_file

L = TypeVar("L")

Section = Mapping[str, Any]

HEAD = (
    "run_id",
    "config_hash",
    "eval_set_sha256",
    "labels_sha256",
    "asked",
    "cases",
    "missing",
    "errors",
)
"""What metrics.json says of the run itself."""

FREE = ("definitions",)
"""Differences that each metric's own check tells."""


@dataclass(frozen=True)
class Side:
    """One run. ``folder`` is None when there is only a metrics.json or a report of it."""

    label: str
    sections: Mapping[str, Section]
    header: Mapping[str, Any]
    folder: Path | None = None

    def part(self, section: str, part: str, metric: str) -> Any:
        """One entry of a section, such as its mean of a metric; None when it is not there."""
        return self.sections.get(section, {}).get(part, {}).get(metric)

    def metrics(self) -> Iterator[tuple[str, str]]:
        """Section and name of each metric that has a mean."""
        for name, section in self.sections.items():
            for metric, mean in section.get("mean", {}).items():
                if mean is not None:
                    yield name, metric

    def counts(self, section: str, metric: str) -> tuple[int, int, int]:
        """Cases scored, not applicable, failed."""
        scored, missing, failed = (
            self.part(section, part, metric) or 0 for part in ("n", "not_applicable", "failed")
        )
        return scored, missing, failed


@dataclass(frozen=True)
class Evidence:
    """A run, what it is held against, and where its cases are described."""

    new: Side
    base: Side | None = None
    eval_set: Path | None = None
    labels_dir: Path | None = None
    custom: Sequence[Metric] = field(default=())
    seed: int = 0


class _Id(msgspec.Struct, gc=False):
    case_id: str


class Line(_Id, gc=False):
    """A score line, as far as a gate reads it."""

    repeat: int = 0
    status: str = ""
    scores: dict[str, float | None] = {}
    reasons: dict[str, str] = {}


def side_of(folder: Path) -> Side:
    """A scored run. Raises StorageError when it holds no metrics.json, or one with faults."""
    if not (folder / METRICS).exists():
        raise StorageError(
            f"{folder}: is not scored; run eval_suite.py or score_retrieval.py --run {folder.name}."
        )
    read = read_baseline(folder, Measured)
    return Side(folder.resolve().name, read.sections, _header(folder / METRICS), folder)


def baseline_of(results_dir: Path, given: str) -> Side:
    """A baseline: a run (id or folder), a metrics.json, or a report of eval_suite.py.

    With its run folder behind it, cases can be paired; else only means and intervals are there.
    """
    path = Path(given)
    if not path.is_file():
        return side_of(find_run(results_dir, given))
    if path.name == METRICS and (path.parent / SCORES).is_dir():
        return side_of(path.parent)
    read = read_baseline(path)
    header = _header(path)
    return Side(str(header.get("run_id") or path), read.sections, header)


def _header(path: Path) -> dict[str, Any]:
    raw = read_json(path)
    return {name: raw[name] for name in HEAD if name in raw}


def paired(evidence: Evidence, sections: set[str]) -> dict[str, Row]:
    """Paired differences by ``section.metric``, where both runs have their score lines."""
    base, new = evidence.base, evidence.new
    if base is None or base.folder is None or new.folder is None:
        return {}
    shared = sections & set(scored_sections(base.folder)) & set(scored_sections(new.folder))
    if not shared:
        return {}
    wanted = Wanted(sections=tuple(sorted(shared)), ignore_invariants=True, seed=evidence.seed)
    found = compare(base.folder, new.folder, wanted)
    return {row.name: row for row in found.rows if row.interval is not None}


def unlike(evidence: Evidence, sections: set[str]) -> list[str]:
    """What makes the two runs incomparable in these sections, a phrase each."""
    assert evidence.base is not None
    found = controls(_run(evidence.base), _run(evidence.new), sorted(sections))
    return [str(one) for one in found if not set(one.name.split(".")) & set(FREE)]


def judged_by(side: Side) -> Section:
    """Who judged a run and how, as its scores say, else its config.json; {} when nobody did."""
    return judge_of(_run(side))


def _run(side: Side) -> Run:
    """The run behind a side; of a metrics.json alone, what that tells."""
    config = config_of(side.folder) if side.folder else RunConfig(side.label)
    metrics = {**side.header, "sections": side.sections}
    return Run(side.folder or Path(side.label), config, metrics)


def missing_cases(evidence: Evidence) -> list[str] | None:
    """The baseline's cases that the run lacks, section by section; None when ids are unknown."""
    base, new = evidence.base, evidence.new
    if base is None or base.folder is None or new.folder is None:
        return None
    shared = [name for name in scored_sections(base.folder) if name in scored_sections(new.folder)]
    if not shared:
        return None
    gone: dict[str, None] = {}
    for name in shared:
        now = {line.case_id for line in _lines(new.folder, name, _Id)}
        gone |= dict.fromkeys(
            line.case_id for line in _lines(base.folder, name, _Id) if line.case_id not in now
        )
    return list(gone)


def score_lines(folder: Path, section: str) -> Iterator[Line]:
    """The score lines of a section. Raises StorageError for a line that is none."""
    return _lines(folder, section, Line)


def _lines(folder: Path, section: str, kind: type[L]) -> Iterator[L]:
    for _, _, line in jsonl.read(scores_file(folder, section), kind):
        yield line


def tagged(evidence: Evidence, tags: Sequence[str]) -> dict[str, list[str]]:
    """The cases that have each tag, by the eval set that the run was scored with.

    Raises StorageError when the set is not known, or has changed since.
    """
    path = evidence.eval_set
    if path is None or not path.exists():
        raise StorageError(f"{path}: no such file; must_pass by tags needs the run's --eval-set.")
    known = evidence.new.header.get("eval_set_sha256")
    if known and sha256_file(path) != known:
        raise StorageError(
            f"{path}: is not the set that the run was scored with; give that one with --eval-set, "
            "or score the run again."
        )
    cases = read_cases(path, evidence.labels_dir)
    return {tag: [case.id for case in cases if tag in (case.tags or ())] for tag in tags}
