"""The options of scripts that score a section: shared ones, and those of each section."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragmetrics.defaults import DIMENSIONS, KS
from records.option import (
    Output,
    cache_dir_option,
    eval_set_option,
    labels_option,
    option,
    repeated,
    results_dir_option,
    run_option,
    seed_option,
    setting,
)

if TYPE_CHECKING:
    from ragmetrics.support import SupportModel
    from scorers.loop import OutcomeMap

_SLICES = (*DIMENSIONS, "match")  # match: how retrieval found its gold
_TEXT_SLICES = ("attack_category", "leak_category", "tag")


@dataclass(frozen=True, kw_only=True)
class ScoreRequest(Output):
    """The options that all score_* scripts share; ``outcome_map``: as of score_run."""

    run: str = run_option()
    eval_set: Path = eval_set_option()
    labels_dir: Path = labels_option()
    results_dir: Path = results_dir_option()
    by: tuple[str, ...] = repeated(
        f"Show means by slice: {', '.join(_SLICES)}.", choices=_SLICES, metavar="SLICE"
    )
    worst: int = option("Show the N worst cases.", default=0, low=0, shown=False)
    worst_by: str | None = option("Metric that --worst sorts by.")
    jobs: int = option("Number of processes.", default=1, low=1)
    seed: int = seed_option()
    outcome_map: OutcomeMap | None = None


@dataclass(frozen=True, kw_only=True)
class MatchScoring(ScoreRequest):
    """The options of sections that match retrieved passages with the gold."""

    match: str = option(
        "What counts as a match; auto takes the first kind that a case has gold for.",
        default="auto",
        choices=("auto", "chunk", "anchor", "doc", "page", "text"),
    )
    min_similarity: float | None = setting(
        "Levenshtein similarity from which texts match (0.8)", low=0, high=1
    )


@dataclass(frozen=True, kw_only=True)
class RetrievalScoring(MatchScoring):
    """The options of score_retrieval.py."""

    ks: tuple[int, ...] = option(
        "Cut-offs, separated by commas.", names="--k ks", default=KS, shown="1,3,5,10"
    )
    gain: str | None = setting(
        "linear (NDCG's gain is the grade) or exp (2^grade - 1)", choices=("linear", "exp")
    )


@dataclass(frozen=True, kw_only=True)
class ContextScoring(ScoreRequest):
    """The options of score_context.py."""

    top: int | None = setting("only the first N chunks (all; those that the answer saw)", low=1)


@dataclass(frozen=True, kw_only=True)
class GroundednessScoring(ScoreRequest):
    """The options of score_groundedness.py. ``support_model``: of an extra."""

    first_index: int | None = setting("number of the first chunk in citation marks (1)", low=0)
    min_score: float | None = setting("what the best retrieval score must exceed (0)")
    support_model: Callable[[], SupportModel] | None = None


@dataclass(frozen=True, kw_only=True)
class EmbeddingScoring(ScoreRequest):
    """The options of score_embedding.py."""

    dataset: Path | None = option(
        "Score this JSON list of {question, reference_answer, answer, contexts}; no run needed.",
        path="file",
    )
    embedding_model: str | None = option(
        "Embedding model: a hub's name or a folder.  [default: bundled all-MiniLM-L6-v2]",
        names="--embedding-model --model",
    )
    allow_download: bool = setting(
        "true downloads a missing embedding model from its hub", default=False
    )
    cache_dir: Path = cache_dir_option("Where vectors are kept.")
    sufficiency_threshold: float | None = setting(
        "cosine with the question from which a context is sufficient (0.5)", low=-1, high=1
    )
    hallucination_threshold: float | None = setting(
        "cosine with a whole context under which a sentence is unsupported, @1 (0.4)",
        low=-1,
        high=1,
    )
    window_threshold: float | None = setting(
        "the same for 1-3 sentences of a context, @2 (0.65)", low=-1, high=1
    )


@dataclass(frozen=True, kw_only=True)
class AbstentionScoring(ScoreRequest):
    """The options of score_abstention.py."""

    decide_by: str | None = setting(
        "api (the bot's own field), phrases (the answer's wording), auto (the first of them), or "
        "judge (like auto, but a judge's verdict before the wording)",
        choices=("auto", "api", "phrases", "judge"),
    )


@dataclass(frozen=True, kw_only=True)
class PipelineScoring(ScoreRequest):
    """The options of score_pipeline.py."""

    uncertain_below: float | None = setting(
        "confidence under which a response is uncertain (0.5)", low=0, high=1
    )


@dataclass(frozen=True, kw_only=True)
class SafetyScoring(Output):
    """The options of score_safety.py, which scores labelled texts, not cases."""

    run: str = run_option()
    eval_set: Path = eval_set_option()
    labels_dir: Path = labels_option()
    results_dir: Path = results_dir_option()
    by: tuple[str, ...] = repeated(
        f"Show means by slice: {', '.join(_TEXT_SLICES)}.", choices=_TEXT_SLICES, metavar="SLICE"
    )
    worst: int = option(
        "Show N texts that were judged wrongly, the clearest mistakes first.",
        default=0,
        low=0,
        shown=False,
    )
    source: str | None = setting(
        "whose scores: system (the bot's own), reference, or auto (its own if it sends them)",
        choices=("auto", "system", "reference"),
    )
    warn: float | None = setting("score from which a prompt is detected (0.4)", low=0, high=1)
    block: float | None = setting(
        "score from which it is blocked, and an output a leak (0.5)", low=0, high=1
    )
    seed: int = seed_option()
