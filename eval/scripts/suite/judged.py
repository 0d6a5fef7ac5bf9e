"""The perspective ``judged``: counts the verdicts that a run has; no judge is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judging.lines import FILE
from judging.section import make_scorer, warm
from scoring import score_run
from storage import CACHE_DIR, StorageError
from suite.errors import CannotRun


def has_verdicts(folder: Path) -> bool:
    """judge_answers.py has left verdicts in this run folder."""
    return (folder / FILE).exists()


def score_verdicts(
    folder: Path,
    eval_set: Path,
    labels_dir: Path,
    *,
    model: str | None = None,
    cache_dir: Path = CACHE_DIR,
    seed: int = 0,
) -> dict[str, Any]:
    """The section of the run's verdicts. Raises CannotRun, with the remedy, when it has none."""
    try:
        scorer = make_scorer(folder, model=model, cache_dir=cache_dir)
    except StorageError as error:
        raise CannotRun(error.message) from None
    warm(scorer, folder, eval_set, labels_dir)
    return score_run(folder, eval_set, scorer, labels_dir=labels_dir, seed=seed, jobs=1)
