"""Groundedness without a model: which claims, numbers and citations of an answer hold?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragmetrics import groundedness
from ragmetrics.catalogue.groundedness import ROWS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.groundedness import Labels
from records.cases import TestCase
from records.results import TestResult
from scorers.abstention import decide
from scorers.common import in_rank_order, row_of
from scorers.contract import NOTHING, Evidence, ScoreRow


@dataclass(frozen=True)
class GroundednessScorer:
    """Scores one answer against its retrieved chunks and the labels of its case.

    ``first_index``: the number of the first chunk in citation marks. ``min_score``: what the best
    retrieval score must exceed. ``usual_language``: the most frequent one of the run.
    """

    first_index: int = 1
    min_score: float = 0.0
    usual_language: str | None = None

    section = "groundedness"
    metrics: tuple[Metric, ...] = ROWS

    @property
    def options(self) -> dict[str, Any]:
        return {"first_index": self.first_index, "min_score": self.min_score}

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Scores of one result; an abstention or an empty answer keeps its plain checks only."""
        if result.answer is None:
            return ScoreRow((None,) * len(self.metrics), (("*", "no answer"),)), NOTHING
        chunks = in_rank_order(result)
        sent = [chunk.score_final for chunk in chunks if chunk.score_final is not None]
        scores = groundedness.score_case(
            result.answer,
            chunks,
            question=case.question,
            references=result.references,
            abstained=bool(decide(result).abstained),
            labels=Labels(
                case.answerable,
                case.reference_answer,
                case.expected_claims,
                case.forbidden_claims,
                case.expected_citations,
            ),
            best_score=max(sent, default=None),
            min_score=self.min_score,
            first_index=self.first_index,
            usual_language=self.usual_language,
        )
        return row_of(scores, self.metrics), scores.evidence
