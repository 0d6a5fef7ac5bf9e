"""The options that scripts which score a section share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragmetrics.defaults import DIMENSIONS
from records import opt

if TYPE_CHECKING:
    from scorers.loop import OutcomeMap

_SLICES = (*DIMENSIONS, "match")  # match: how retrieval found its gold


@dataclass(frozen=True, kw_only=True)
class ScoreRequest(opt.Output):
    """The options that all score_* scripts share; ``outcome_map``: as of score_run."""

    run: str = opt.run()
    eval_set: Path = opt.eval_set()
    labels_dir: Path = opt.labels_dir()
    results_dir: Path = opt.results_dir()
    by: tuple[str, ...] = opt.repeated(
        f"Show means by slice: {', '.join(_SLICES)}.", choices=_SLICES, metavar="SLICE"
    )
    worst: int = opt.value("Show the N worst cases.", default=0, low=0, shown=False)
    worst_by: str | None = opt.value("Metric that --worst sorts by.")
    jobs: int = opt.value("Number of processes.", default=1, low=1)
    seed: int = opt.seed()
    outcome_map: OutcomeMap | None = None


@dataclass(frozen=True, kw_only=True)
class MatchScoring(ScoreRequest):
    """The options of sections that match retrieved passages with the gold."""

    match: str = opt.value(
        "What counts as a match; auto takes the first kind that a case has gold for.",
        default="auto",
        choices=("auto", "chunk", "anchor", "doc", "page", "text"),
    )
    min_similarity: float | None = opt.setting(
        "Levenshtein similarity from which texts match (default 0.8)", low=0, high=1
    )
