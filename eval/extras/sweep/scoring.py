"""Scores of the part of a run that is there already, by the ordinary scorers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from decisions.case_rules import Basis, basis_of, read_case_rules
from decisions.case_verdict import Ruling, RunVerdicts, read_verdicts
from decisions.pairing import places_of
from decisions.primary import as_stored
from ragmetrics import catalogue
from records.asked import ASKED
from records.cases import ignore, iter_cases
from records.errors import StorageError
from records.files import scratch_folder
from records.id_numbers import id_number
from records.lines import Report
from records.results import TestResult, iter_results
from records.run import Run
from records.runs import PARTIAL, ResultsWriter, read_config, results_file
from records.section_table import ANSWERED, MEASURED, SectionTable
from scorers import SECTIONS
from scorers.contract import CannotRun, Scorer, ScoringJob
from scorers.loop import score_run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_SCRATCH = ".look."

Name = TypeVar("Name", int, str)


def scorer_of(section: str, job: ScoringJob) -> Scorer:
    """The scorer of a section with its usual options. Raises StorageError for a section that is
    not scored from the results alone."""
    if section not in SECTIONS or SECTIONS[section].scorer is None or section == "judged":
        raise StorageError(
            f"section {section!r} needs more than results, so it cannot be tested during a run; "
            "name a metric of retrieval, context, groundedness, abstention, pipeline or embedding."
        )
    code = SECTIONS[section]
    assert code.scorer is not None
    try:
        return code.scorer(job, code.options())
    except CannotRun as error:
        raise StorageError(f"section {section} cannot be scored here: {error.message}") from None


def full_name(metric: str) -> str:
    """``section.metric`` of a metric of the catalogue, or of a measurement of a call. Raises
    StorageError for any other name."""
    if metric.partition(".")[0] in catalogue.SECTIONS:
        return metric
    if metric in (*MEASURED, ANSWERED):
        return f"pipeline.{metric}"
    stem = metric.partition("@")[0]
    for row in catalogue.SECTIONS.values():
        if stem in [own.name for own in row.metrics]:
            return f"{row.name}.{metric}"
    raise StorageError(f"metric {metric!r}: no such metric; docs/metrics.md lists all.")


def results_so_far(folder: Path, report: Report | None = None) -> Iterator[TestResult]:
    """The results that a run has by now, finished or not; see ``iter_results``."""
    for path in (folder / PARTIAL, results_file(folder)):
        if path.exists():
            yield from iter_results(path, report)
            return


def replies_are_equal(folders: Sequence[Path]) -> bool:
    """Whether two or more runs have the same answer and the same passages for each case that all
    have answered; False without such a case."""
    runs = [
        {
            (result.test_case_id, result.repeat): hash(
                (result.answer, *((chunk.chunk_id, chunk.text) for chunk in result.chunks()))
            )
            for result in results_so_far(folder)
            if result.error is None
        }
        for folder in folders
    ]
    shared = set.intersection(*map(set, runs)) if len(runs) > 1 else set()
    return bool(shared) and all(len({run[key] for run in runs}) == 1 for key in shared)


@contextmanager
def part_of_run(folder: Path, ids: Collection[str], eval_set: Path) -> Iterator[Path]:
    """A run folder for a moment, with the results of some cases, as if they were all asked."""
    with scratch_folder(folder, _SCRATCH) as scratch:
        config = read_config(folder)
        config.run = config.run | {"selected": len(ids), ASKED: sorted(ids)}
        # an id is a plain folder name; the scratch folder's own begins with a dot
        writer = ResultsWriter(scratch, "part", store_full_text=True)
        writer.write_config(config)
        for result in results_so_far(folder):
            if result.test_case_id in ids:
                writer.write_result(result)
        writer.finish(case.id for case in iter_cases(eval_set, ignore))
        yield writer.folder


def scores_by_case(folder: Path, section: str, metric: str, ids: Ints) -> Floats:
    """A metric's scores of cases by the numbers of their ids, as metrics.json rounds them; not a
    number where a case has none."""
    return _column(Run(folder).section(section), metric, ids)


def _column(columns: SectionTable, metric: str, ids: Ints) -> Floats:
    import numpy as np

    values = np.full(len(ids), np.nan)
    if metric in columns.names:
        at = places_of(ids, columns.ids)
        values[at >= 0] = as_stored(columns.column(metric)[at[at >= 0]])
    return values


class PartScorer:
    """Scores some cases of a run that goes on, by the ordinary scorers."""

    def __init__(self, metrics: Iterable[str], job: ScoringJob) -> None:
        """``metrics``: ``section.metric``. Raises StorageError for one that is not scored from
        results alone."""
        self._job = job
        self._names: dict[str, list[str]] = {}
        for full in metrics:
            section, _, name = full.partition(".")
            self._names.setdefault(section, []).append(name)
        self.scorers = {section: scorer_of(section, job) for section in self._names}
        for section, names in self._names.items():
            there = {row.name for row in self.scorers[section].metrics}
            there |= {*MEASURED, ANSWERED} if section == "pipeline" else set()
            if missing := [name for name in names if name not in there]:
                raise StorageError(
                    f"metric {section}.{missing[0]}: the section has no such metric."
                )

    def scores(self, folder: Path, asked: Sequence[str]) -> dict[str, Floats]:
        """The scores of each metric, by its full name, in the order of ``asked``."""
        import numpy as np

        ids = np.fromiter(map(id_number, asked), np.int64, len(asked))
        values: dict[str, Floats] = {}
        with part_of_run(folder, frozenset(asked), self._job.eval_set) as part:
            self.score_whole(part)
            for section, names in self._names.items():
                columns = Run(part).section(section)
                values |= {f"{section}.{name}": _column(columns, name, ids) for name in names}
        return values

    def score_whole(self, folder: Path) -> None:
        """Score a finished run in these sections."""
        job = self._job
        for scorer in self.scorers.values():
            score_run(
                folder, job.eval_set, scorer, labels_dir=job.labels_dir, seed=job.seed, jobs=1
            )


def failing_cases(folders: Mapping[str, Path]) -> dict[str, int]:
    """The number of failing cases of each run, by the metrics that all runs have and within the
    smallest depth. A run without scores is left out."""
    runs = verdicts_alike(folders) if folders else {}
    return {name: run.counts().failing for name, run in runs.items() if run.cases}


def verdicts_alike(folders: Mapping[Name, Path]) -> dict[Name, RunVerdicts]:
    """The verdicts of some runs by the metrics that all have and within the smallest depth."""
    ruling = ruling_of(folders.values())
    return {
        name: read_verdicts(folder, ruling.case_rules, ruling.basis)
        for name, folder in folders.items()
    }


def ruling_of(folders: Iterable[Path]) -> Ruling:
    """The rules by which the verdicts of some runs are alike."""
    return Ruling(read_case_rules(), reduce(Basis.shared, map(basis_of, folders)))
