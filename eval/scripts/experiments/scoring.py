"""Scores of the part of a run that is there already, by the ordinary scorers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from decisions.columns import places_of, read_section
from decisions.primary import as_stored
from ragmetrics import catalogue
from records.asked import ASKED
from records.cases import ignore, iter_cases
from records.errors import StorageError
from records.files import scratch_folder
from records.results import TestResult, iter_results
from records.runs import PARTIAL, RESULTS, ResultsWriter, read_config
from scorers import SECTIONS
from scorers.contract import CannotRun, Scorer, ScoringJob
from scorers.loop import score_run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_SCRATCH = ".look."


def scorer_of(section: str, job: ScoringJob) -> Scorer:
    """The scorer of a section with its usual options. Raises StorageError for a section that is
    not scored from the results alone."""
    if section not in SECTIONS or SECTIONS[section].scorer is None or section == "judged":
        raise StorageError(
            f"section {section!r} is not scored from results alone, so nothing can be told while "
            "a run goes on; name a metric of retrieval, context, groundedness, abstention, "
            "pipeline or embedding."
        )
    code = SECTIONS[section]
    assert code.scorer is not None
    try:
        return code.scorer(job, code.options())
    except CannotRun as error:
        raise StorageError(f"section {section} cannot be scored here: {error.message}") from None


def full_name(metric: str) -> str:
    """``section.metric`` of a metric of the catalogue. Raises StorageError for one it lacks."""
    if metric.partition(".")[0] in catalogue.SECTIONS:
        return metric
    stem = metric.partition("@")[0]
    for row in catalogue.SECTIONS.values():
        if stem in [own.name for own in row.metrics]:
            return f"{row.name}.{metric}"
    raise StorageError(f"--metric {metric}: the catalogue has no such metric; EVAL.md lists them.")


def results_so_far(folder: Path) -> Iterator[TestResult]:
    """The results that a run has by now, finished or not."""
    for name in (PARTIAL, RESULTS):
        if (folder / name).exists():
            yield from iter_results(folder / name)
            return


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
    """A metric's scores of the cases with these hashes, as metrics.json rounds them; not a number
    where a case has none."""
    import numpy as np

    columns = read_section(folder, section)
    values = np.full(len(ids), np.nan)
    if metric in columns.names:
        at = places_of(ids, columns.ids)
        values[at >= 0] = as_stored(columns.column(metric)[at[at >= 0]])
    return values


def score_part(
    folder: Path, asked: Collection[str], metric: str, scorer: Scorer, job: ScoringJob
) -> Floats:
    """A metric's scores of some cases of an unfinished run, in the order of ``asked``."""
    import numpy as np

    hashes = np.fromiter(map(hash, asked), np.int64, len(asked))
    with part_of_run(folder, frozenset(asked), job.eval_set) as part:
        score_run(part, job.eval_set, scorer, labels_dir=job.labels_dir, seed=job.seed, jobs=1)
        return scores_by_case(part, scorer.section, metric, hashes)
