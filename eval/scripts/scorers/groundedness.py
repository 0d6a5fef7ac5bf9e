"""Scores groundedness without a model: an answer's claims, numbers and citations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragmetrics import groundedness, support
from ragmetrics.catalogue.groundedness import ROWS, RUN_ROWS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.citations import marks
from ragmetrics.groundedness import Labels
from records.cases import TestCase
from records.results import TestResult
from records.run import Run
from records.runs import known_config
from records.scores import ScoreLine
from scorers.abstention import decide, usual_language
from scorers.common import citation_count, row_of, with_known_passages, without
from scorers.contract import (
    NOTHING,
    Evidence,
    ScoreRow,
    ScoringJob,
    SectionScorer,
    add_metric,
)
from scorers.loop import results_of
from terminal.page import number

if TYPE_CHECKING:
    from rich.console import Console

    from ragmetrics.support import SupportModel


_OF_NUMBERS = (
    *("citation_validity_form", "citation_validity_content", "citation_joint"),
    *("citation_precision", "expected_citation_recall"),
)
"""What rests on which passage a number in the answer means."""

_ENOUGH_CLAIMS = 100
"""Claims from which their strengths are compared with those of the training."""

_FAR = 0.30
"""Distance from which a threshold is not known to hold."""

WORD_FEATURES = "word features"
"""The method that decides about claims unless a model is named."""


@dataclass(frozen=True)
class GroundednessScorer:
    """Scores one answer against its retrieved chunks and the labels of its case.

    ``first_index``: the number of the first chunk in citation marks. ``min_score``: what the best
    retrieval score must exceed. ``usual_language``: the most frequent one of the run.
    ``support_model``: what decides about claims in the place of the word features.
    ``names_sources``: whether any answer of the run cites, or the profile maps what is cited.
    """

    first_index: int = 1
    min_score: float = 0.0
    usual_language: str | None = None
    support_model: SupportModel | None = None
    names_sources: bool = True

    section = "groundedness"
    metrics: tuple[Metric, ...] = ROWS

    @property
    def options(self) -> dict[str, Any]:
        deciding = self.support_model.identity if self.support_model else WORD_FEATURES
        return {
            "first_index": self.first_index,
            "min_score": self.min_score,
            "support_model": deciding,
        }

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Scores of one result; an abstention or an empty answer keeps its plain checks only."""
        if result.answer is None:
            return ScoreRow((None,) * len(self.metrics), (("*", "no answer"),)), NOTHING
        tools = result.tool_sources()
        chunks = [*result.chunks(), *tools]
        sent = [chunk.score_final for chunk in chunks if chunk.score_final is not None]
        scores = groundedness.score_case(
            result.answer,
            chunks,
            question=case.question_alone or case.question,
            references=result.references or (),
            abstained=bool(decide(result).abstained),
            labels=Labels(
                case.answerable,
                case.reference_answer,
                case.expected_claims,
                case.forbidden_claims,
                case.expected_citations,
                case.gold_facts,
            ),
            best_score=max(sent, default=None),
            min_score=self.min_score,
            first_index=self.first_index,
            usual_language=self.usual_language,
            support_model=self.support_model,
            names_sources=self.names_sources,
            passages_known=result.retrieved is not None or bool(tools),
        )
        if not tools:
            scores = with_known_passages(scores, result, groundedness.OF_PASSAGES)
        if len(result.rankings()) > 1 and _cites_by_number(result):
            scores = without(scores, _OF_NUMBERS, "the number fits several lists")
        return row_of(scores, self.metrics), scores.evidence

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[ScoreLine], seed: int
    ) -> dict[str, Any]:
        """Report how far the strengths of the run's claims are from those of the training."""
        counts, cases, failed, other = [0] * support.BINS, 0, 0, 0
        for line in lines:
            failed += line.status == "failed"
            if line.scores.get("unsure_claim_rate") is None:
                other += line.status != "failed"
                continue
            cases += 1
            for claim in line.evidence["claims"]:
                if "strength" in claim:
                    counts[min(int(claim["strength"] * support.BINS), support.BINS - 1)] += 1
        value, nearest = None, ""
        if sum(counts) >= _ENOUGH_CLAIMS:
            value, nearest = support.distance(counts)
        n = cases if value is not None else 0
        add_metric(
            section, RUN_ROWS[0], value, n=n, not_applicable=other + cases - n, failed=failed
        )
        return section | {"nearest_texts": nearest, "english_claims": sum(counts)}


def _cites_by_number(result: TestResult) -> bool:
    """Whether a citation is a number alone, which no reference of the bot explains by a name."""
    explained: set[int | None] = set()
    bare: set[int | None] = set()
    for reference in result.references or ():
        named = reference.chunk_id or reference.doc_id or reference.rel_path
        (explained if named else bare).add(reference.index)
    numbers = {t for mark in marks(result.answer or "") for t in mark.targets if isinstance(t, int)}
    return bool((numbers | bare - {None}) - explained)


@dataclass(frozen=True)
class GroundednessOptions:
    """The scorer's options; the language of the run is looked up.

    ``support_model``: loads what decides about claims in the place of the word features, and raises
    CannotRun when it cannot be used.
    """

    first_index: int = 1
    min_score: float = 0.0
    support_model: Callable[[], SupportModel] | None = None


def _make_scorer(job: ScoringJob, options: GroundednessOptions) -> GroundednessScorer:
    """The scorer for a run, which knows its most frequent language.

    Raises CannotRun when the support model cannot be used.
    """
    model = options.support_model() if options.support_model is not None else None
    language = usual_language(job.folder)
    cites = names_sources(job.folder)
    return GroundednessScorer(options.first_index, options.min_score, language, model, cites)


def names_sources(folder: Path) -> bool:
    """Whether the bot has a way to cite: a mapped field, or a mark or source in any answer."""
    config = known_config(folder)
    if "references" in config.api.get("mapped", ()):
        return True
    results_of(folder)
    run = Run(folder, tolerant=True)  # the scoring that follows reports damaged lines
    return any(map(citation_count, run.iter_results()))


def _show_more(console: Console, section: Mapping[str, Any]) -> None:
    """How many claims are unsure and what rests on them; whether the texts are of a known kind."""
    mean, claims = section["mean"], section["english_claims"]
    unsure, distance = mean["unsure_claim_rate"], mean["strength_distance"]
    if unsure is None:
        return
    text = (
        f"Unsure claims (strength .40 to .55): {unsure:.0%} of an answer's claims on average. "
        f"claim_support_rate is between {number(mean['claim_support_low'])} and "
        f"{number(mean['claim_support_high'])} if all of these failed or held (not a confidence "
        "interval)."
    )
    console.print(text)
    if distance is not None and distance > _FAR:
        text = (
            f"Warning: the threshold is not known to hold for such texts. The strengths of the "
            f"{claims:,} claims are far from those of every set that it was chosen on (distance "
            f"{distance:.2f}; nearest: {section['nearest_texts']}). Label about 100 of your own "
            "claims and compare."
        )
        console.print(text)


SECTION = SectionScorer(options=GroundednessOptions, scorer=_make_scorer, show_more=_show_more)
