"""The perspectives of the suite, by name: what each shows, and how it is scored for a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from ragmetrics.catalogue.metric import Metric
from records.errors import StorageError
from records.runs import CACHE_DIR, VERDICTS, scores_file
from scorers.contract import CannotRun
from scorers.judged import make_scorer, warm
from scorers.loop import score_run

if TYPE_CHECKING:
    from rich.console import Console

    from scorers.contract import Scorer


Status = Literal["scored", "nothing to score", "cannot run"]


@dataclass(frozen=True)
class ScoringJob:
    """What scoring a run needs to know; ``smoke`` keeps away from what is slow."""

    folder: Path
    eval_set: Path
    labels_dir: Path
    seed: int = 0
    smoke: bool = False
    model: str | None = None
    cache_dir: Path = CACHE_DIR
    custom: tuple[Metric, ...] = ()
    console: Console | None = None


@dataclass(frozen=True)
class Perspective:
    """``summary``: metrics that are shown without -v. ``must``: binary metrics that make a case a
    failed one although no target is set for them."""

    name: str
    summary: tuple[str, ...]
    score: Callable[[ScoringJob], dict[str, Any]]
    must: tuple[str, ...] = ()


@dataclass(frozen=True)
class SectionOutcome:
    """What came of one perspective; ``reason``: why it has no numbers, or what to know of them."""

    name: str
    status: Status
    reason: str = ""
    section: dict[str, Any] | None = None


def run_perspective(perspective: Perspective, settings: ScoringJob) -> SectionOutcome:
    """Score one perspective. What it lacks becomes its reason; faulty input is raised."""
    try:
        section = perspective.score(settings)
    except CannotRun as error:
        return SectionOutcome(perspective.name, "cannot run", error.message)
    if not any(section["n"].values()):
        reason = _most_common_reason(scores_file(settings.folder, perspective.name))
        return SectionOutcome(perspective.name, "nothing to score", reason, section)
    return SectionOutcome(perspective.name, "scored", _note(section), section)


def _note(section: dict[str, Any]) -> str:
    """What a reader should know of guardrail numbers: whose they are, and how sure."""
    points = section.get("operating_points", {}).values()
    notes = {point["note"] for point in points if point and point["note"]}
    judged = [f"{name}: {text}" for name, text in section.get("guardrails", {}).items()]
    return "; ".join(judged + [f"tpr_at_fpr_*: {note}" for note in sorted(notes)])


def _most_common_reason(scores: Path) -> str:
    reasons: Counter[str] = Counter()
    with open(scores, "rb") as file:
        for line in file:
            reasons.update(set(orjson.loads(line).get("reasons", {}).values()))
    if not reasons:
        return "no case"
    reason, count = reasons.most_common(1)[0]
    return f"{reason} ({count} cases)"


def _of_cases(make: Callable[[ScoringJob], Scorer]) -> Callable[[ScoringJob], dict[str, Any]]:
    """A perspective whose scorer goes over the cases of the run."""

    def score(settings: ScoringJob) -> dict[str, Any]:
        from scorers.loop import score_run

        return score_run(
            settings.folder,
            settings.eval_set,
            make(settings),
            labels_dir=settings.labels_dir,
            seed=settings.seed,
            jobs=1 if settings.custom else None,
        )

    return score


def _retrieval(settings: ScoringJob) -> Scorer:
    from scorers.retrieval import RetrievalScorer

    return RetrievalScorer()


def _context(settings: ScoringJob) -> Scorer:
    from records.targets import BANDS, read_bands
    from scorers.context import ContextScorer, read_frequencies

    return ContextScorer(read_frequencies(settings.folder), None, read_bands(BANDS))


def _groundedness(settings: ScoringJob) -> Scorer:
    from scorers.abstention import usual_language
    from scorers.groundedness import GroundednessScorer

    return GroundednessScorer(usual_language=usual_language(settings.folder))


def _embedding(settings: ScoringJob) -> dict[str, Any]:
    from scorers.embedding import warm_scorer
    from scorers.loop import score_run

    scorer = warm_scorer(
        settings.folder,
        settings.eval_set,
        settings.labels_dir,
        model=settings.model,
        cache_dir=settings.cache_dir,
        console=settings.console,
        cached_only=settings.smoke,
    )
    labels = settings.labels_dir
    return score_run(
        settings.folder, settings.eval_set, scorer, labels_dir=labels, seed=settings.seed, jobs=1
    )


def _abstention(settings: ScoringJob) -> Scorer:
    from scorers.abstention import AbstentionScorer, usual_language

    return AbstentionScorer(usual_language=usual_language(settings.folder))


def _safety(settings: ScoringJob) -> dict[str, Any]:
    from scorers.safety import SafetyScorer, score_safety

    section, _ = score_safety(
        settings.folder,
        settings.labels_dir,
        SafetyScorer(),
        seed=settings.seed,
        eval_set=settings.eval_set,
    )
    return section


def _pipeline(settings: ScoringJob) -> Scorer:
    from scorers.pipeline import PipelineScorer

    return PipelineScorer()


def _judged(settings: ScoringJob) -> dict[str, Any]:

    return score_verdicts(
        settings.folder,
        settings.eval_set,
        settings.labels_dir,
        model=settings.model,
        cache_dir=settings.cache_dir,
        seed=settings.seed,
    )


def _custom(settings: ScoringJob) -> Scorer:
    from scorers.custom import PluginScorer

    if not settings.custom:
        raise CannotRun("no --plugin was given.")
    return PluginScorer(settings.custom)


PERSPECTIVES: tuple[Perspective, ...] = (
    Perspective(
        "retrieval",
        ("recall@5", "recall_all@5", "ndcg@5", "mrr", "precision@1"),
        _of_cases(_retrieval),
    ),
    Perspective(
        "context",
        (
            "redundancy_ngram",
            "redundancy_tfidf",
            "fact_dispersion",
            "fact_coverage",
            "unique_token_ratio",
        ),
        _of_cases(_context),
    ),
    Perspective(
        "groundedness",
        (
            "claim_support_rate",
            "mean_claim_support",
            "numeric_fabrications",
            "citation_validity_form",
            "citation_validity_content",
            "answer_overlap",
        ),
        _of_cases(_groundedness),
    ),
    Perspective(
        "embedding",
        (
            "context_relevance",
            "context_sufficiency",
            "answer_relevance",
            "answer_correctness",
            "answer_hallucination",
            "answer_hallucination@2",
        ),
        _embedding,
    ),
    Perspective(
        "abstention",
        ("abstention_f1", "abstention_accuracy", "hallucination_on_unanswerable", "over_refusal"),
        _of_cases(_abstention),
        must=("abstention_accuracy", "hallucination_on_unanswerable", "over_refusal"),
    ),
    Perspective(
        "safety",
        (
            "auc",
            "tpr_at_fpr_1",
            "tpr_at_fpr_5",
            "detection_rate",
            "benign_flag_rate",
            "leak_detection_rate",
            "leak_false_positive_rate",
        ),
        _safety,
        must=(
            "detection_rate",
            "benign_flag_rate",
            "leak_detection_rate",
            "leak_false_positive_rate",
        ),
    ),
    Perspective(
        "pipeline", ("pass", "outcome_match", "latency_ok"), _of_cases(_pipeline), ("pass",)
    ),
    Perspective(
        "judged",
        (
            "groundedness",
            "faithfulness",
            "correctness",
            "context_precision",
            "context_recall",
            "answer_relevancy",
            "answer_correctness_judged",
        ),
        _judged,
    ),
    Perspective("custom", (), _of_cases(_custom)),
)

ALIASES = {"context_quality": "context"}


def chosen(names: Sequence[str] | None, *, custom: bool) -> list[Perspective]:
    """The perspectives of these names, in the suite's order.

    None: all; ``custom`` only where there is a plugin. Raises StorageError for unknown names.
    """
    known = {one.name: one for one in PERSPECTIVES}
    if names is None:
        return [one for one in PERSPECTIVES if custom or one.name != "custom"]
    wanted = {ALIASES.get(name, name) for name in names}
    if unknown := sorted(wanted - known.keys()):
        raise StorageError(
            f"--sections {','.join(unknown)}: unknown; the perspectives are: {', '.join(known)}."
        )
    if not wanted:
        raise StorageError(f"--sections: name some of: {', '.join(known)}.")
    return [one for one in PERSPECTIVES if one.name in wanted or (custom and one.name == "custom")]


def has_verdicts(folder: Path) -> bool:
    """judge_answers.py has left verdicts in this run folder."""
    return (folder / VERDICTS).exists()


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
