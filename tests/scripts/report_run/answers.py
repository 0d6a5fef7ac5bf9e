"""Five cases and their answers: a report of them is known by heart."""

from __future__ import annotations

from typing import Any

from storage import ErrorInfo, Reference, RetrievedChunk, TestResult


def result(case_id: str, rank: int | None, **more: Any) -> TestResult:
    """An answer whose gold passage stands at ``rank`` of three."""
    chunks: list[RetrievedChunk | str] = [
        RetrievedChunk(chunk_id="gold" if place == rank else f"x{place}", text="Words.", rank=place)
        for place in (1, 2, 3)
    ]
    said: dict[str, Any] = {"answer": "It is so [1].", "confidence": 0.5} | more
    refs = [Reference(index=1, chunk_id="gold" if rank == 1 else "x1")]
    return TestResult(case_id, f"About {case_id}?", retrieved=chunks, references=refs, **said)


CASES: list[dict[str, Any]] = [
    {"id": "first", "relevant_chunks": ["gold"], "category": "factual"},
    {"id": "third", "relevant_chunks": ["gold"], "category": "factual"},
    {"id": "never", "relevant_chunks": ["gold"], "category": "reasoning"},
    {"id": "bare", "category": "reasoning"},
    {"id": "broken", "relevant_chunks": ["gold"], "category": "reasoning"},
]
RESULTS = [
    result("first", 1),
    result("third", 3, confidence=0.9),
    result("never", None, confidence=0.9),
    result("bare", 1),
    TestResult("broken", "?", status="error", error=ErrorInfo("timeout", "no answer in 60 s", 4)),
]
