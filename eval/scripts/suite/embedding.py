"""An embedding scorer for a run, all of whose texts have been embedded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clients.embedder import Embedder, EmbeddingUnavailable
from scorers.embedding import EmbeddingScorer, answered
from storage import CACHE_DIR
from suite.errors import CannotRun

if TYPE_CHECKING:
    from rich.console import Console

    from ragmetrics.embedding import Vectors

Thresholds = tuple[float, float, float]
THRESHOLDS: Thresholds = (0.5, 0.4, 0.65)


class CachedEmbedder(Embedder):
    """Gives vectors that are kept already, and loads no model for others."""

    def _run_model(self, texts: list[str]) -> Vectors:
        raise CannotRun(
            "left out of the smoke suite: some texts have no vector yet, and embedding them is "
            "slow; run score_embedding.py or the full suite once."
        )


def warm_scorer(
    folder: Path,
    eval_set: Path,
    labels_dir: Path | None,
    *,
    model: str | None = None,
    cache_dir: Path = CACHE_DIR,
    thresholds: Thresholds = THRESHOLDS,
    console: Console | None = None,
    cached_only: bool = False,
) -> EmbeddingScorer:
    """Embed what the run's scores need and has no vector yet; the scorer then embeds nothing.

    Raises CannotRun, with what to install or correct, when there is no model, or when one would
    have to be loaded and only kept vectors are wanted.
    """
    try:
        embedder = (CachedEmbedder if cached_only else Embedder)(model, cache_dir)
        scorer = EmbeddingScorer(embedder, _identity(embedder), *thresholds)
        pairs = answered(folder, eval_set, labels_dir)
        if console is None or not console.is_terminal:
            scorer.warm(pairs)
        else:
            with console.status("Embedding what has no vector yet…"):
                scorer.warm(pairs)
    except EmbeddingUnavailable as error:
        raise CannotRun(str(error)) from error
    return scorer


def _identity(embedder: Embedder) -> str:
    """The model's name, for a folder with the hash of its content; no path of this machine."""
    if embedder.folder is None:
        return embedder.name
    return f"{Path(embedder.name).name} {embedder.identity[:12]}"
