"""The searches on the way to an answer: what each asked, when, and what it brought that was new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET

from ragmetrics.searches import new_passages
from records.judged import identity_of
from records.results import RetrievedChunk, TestResult
from records.scores import SearchesEvidence, SearchEvidence

SHOWN_NEW = 3
"""New passages of a search that are listed besides gold ones."""


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A passage that no search before brought. ``gold``: None when that is unknown."""

    rank: int
    location: str
    gold: bool | None = None


@dataclass(frozen=True, slots=True)
class SearchStep:
    """One search. Times in milliseconds from the beginning of the call, None when not told.

    ``count``: its passages; ``new``: those that no search before it brought; ``gold``: ranks of
    all its passages that match a gold support, None when that was not scored. ``evidence_recall``
    in [0, 1], of this search alone.
    """

    query: str
    tool: str
    start_ms: float | None
    latency_ms: float | None
    error: str
    count: int
    new: tuple[NewPassage, ...]
    gold: tuple[int, ...] | None
    evidence_recall: float | None

    def shown_new(self) -> tuple[NewPassage, ...]:
        """The new passages to be listed: gold ones, and the first of the others."""
        others = [passage.rank for passage in self.new if not passage.gold][:SHOWN_NEW]
        return tuple(passage for passage in self.new if passage.gold or passage.rank in others)

    def says(self) -> str:
        """The result of the search, in words: ``10 passages, 4 new, gold at 2, 7, evidence_recall
        0.50``."""
        if self.error:
            return f"failed: {self.error}"
        if not self.count:
            return "nothing"
        parts = [f"{self.count} passage{'s' * (self.count != 1)}", f"{len(self.new)} new"]
        if self.gold is not None:
            ranks = ", ".join(map(str, self.gold))
            parts.append(f"gold at {ranks}" if ranks else "no gold")
        if self.evidence_recall is not None:
            parts.append(f"evidence_recall {self.evidence_recall:.2f}")
        return ", ".join(parts)

    def bar(self, longest: float, width: int) -> tuple[int, int] | None:
        """First cell and number of cells of its bar in ``width`` cells for ``longest`` ms; None
        when its times are unknown."""
        if self.start_ms is None or longest <= 0:
            return None
        start = min(width - 1, int(self.start_ms / longest * width))
        end = (self.start_ms + (self.latency_ms or 0.0)) / longest * width
        return start, max(1, min(width - start, round(end) - start))


def search_steps(result: TestResult, evidence: SearchesEvidence) -> tuple[SearchStep, ...]:
    """The searches of a result; ``evidence`` is that of its line in the section ``searches``, empty
    where that was not scored."""
    searched = result.searched()
    rows = evidence.searches
    if len(rows) != len(searched):
        rows = [SearchEvidence()] * len(searched)
    fresh = new_passages([[identity_of(chunk) for chunk in chunks] for _, chunks in searched])
    steps = []
    for (search, chunks), row, new in zip(searched, rows, fresh, strict=True):
        gold = None if row.hits is None else tuple(row.hits)
        steps.append(
            SearchStep(
                query=search.query or "",
                tool=search.tool or "",
                start_ms=search.start_ms,
                latency_ms=search.latency_ms,
                error=search.error or "",
                count=len(chunks),
                new=tuple(
                    NewPassage(
                        rank, location_of(chunks[rank - 1]), None if gold is None else rank in gold
                    )
                    for rank in (new if row.new is None else row.new)
                ),
                gold=gold,
                evidence_recall=row.evidence_recall,
            )
        )
    return tuple(steps)


def complete_words(evidence: SearchesEvidence) -> str:
    """At which search all needed evidence was there, in words; "" where that was not scored."""
    number = evidence.complete_at
    if number is UNSET:
        return ""
    return f"evidence complete at search {number}" if number else "evidence never complete"


def longest_ms(steps: Sequence[SearchStep]) -> float:
    """Milliseconds until the last search had ended."""
    ends = ((step.start_ms or 0.0) + (step.latency_ms or 0.0) for step in steps)
    return max(ends, default=0.0)


def location_of(chunk: RetrievedChunk) -> str:
    """Path and headings of a passage, else its id."""
    path = chunk.rel_path or chunk.doc_id or ""
    return " > ".join(part for part in (path, chunk.heading_path) if part) or chunk.chunk_id
