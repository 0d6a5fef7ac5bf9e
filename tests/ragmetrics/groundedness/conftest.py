"""Two passages about plans, and the scores of an answer to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragmetrics.case_scores import CaseScores
from ragmetrics.groundedness import score_case
from records.results import RetrievedChunk

PLAN_B = RetrievedChunk(
    chunk_id="c1", doc_id="plans", text="Plan B costs 20 EUR a month. It includes phone support."
)
PLAN_C = RetrievedChunk(chunk_id="c2", doc_id="free", text="Plan C is free of charge for students.")


@pytest.fixture
def plan_b() -> RetrievedChunk:
    """c1 of the document plans."""
    return PLAN_B


@pytest.fixture
def plan_c() -> RetrievedChunk:
    """c2 of the document free."""
    return PLAN_C


@pytest.fixture
def scored() -> Callable[..., CaseScores]:
    """``scored(answer)``: by plans B and C unless other chunks are given."""

    def score(
        answer: str | None, chunks: list[RetrievedChunk] | None = None, **more: Any
    ) -> CaseScores:
        return score_case(answer, [PLAN_B, PLAN_C] if chunks is None else chunks, **more)

    return score
