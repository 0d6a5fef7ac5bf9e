"""Searches and tool calls on the way to an answer: what each asked, when, and what it brought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET

from ragmetrics.searches import new_passages
from records.cases import TestCase
from records.judged import identity_of
from records.results import RetrievedChunk, TestResult
from records.scores import SearchesEvidence, SearchEvidence, ToolCallEvidence, ToolsEvidence
from records.tool_calls import AnyTool, ToolCall, call_words, expected_tool

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


SHOWN = 600
"""Characters of a result that are shown."""


@dataclass(frozen=True, slots=True)
class ToolStep:
    """One call. ``call``: its name and arguments; ``marks``: what the score says of it."""

    call: str
    result: str
    error: str
    latency_ms: float | None
    marks: tuple[str, ...]
    bad: bool

    def says(self) -> str:
        """Marks and time: ``expected, 120 ms``."""
        time = [] if self.latency_ms is None else [f"{self.latency_ms:,.0f} ms"]
        return ", ".join([*self.marks, *time])


def tool_steps(result: TestResult, evidence: ToolsEvidence) -> tuple[ToolStep, ...] | None:
    """The calls of a result; None where it reports none. ``evidence`` is that of its line in the
    section ``tools``, empty where that was not scored."""
    if not isinstance(result.tools, list):
        return None
    rows = evidence.calls
    if len(rows) != len(result.tools):
        rows = [ToolCallEvidence()] * len(result.tools)
    return tuple(map(_step, result.tools, rows))


def _step(call: ToolCall, row: ToolCallEvidence) -> ToolStep:
    marks = [name for name in ("forbidden", "redundant", "retry") if getattr(row, name)]
    if row.expected is not None:
        marks.insert(0, "expected")
    arguments = call_words(call.name, call.arguments)
    if call.arguments_length is not None:
        arguments = f"{call.name}(… {call.arguments_length:,} characters, not kept)"
    result = (call.result or "")[:SHOWN]
    if (length := call.result_length or len(call.result or "")) > len(result):
        result += f" … ({length:,} characters)"
    return ToolStep(
        arguments,
        result,
        (call.error or "")[:SHOWN],
        call.latency_ms,
        tuple(marks),
        row.forbidden or call.error is not None,
    )


def missing_calls(asked: TestCase | None, evidence: ToolsEvidence) -> tuple[str, ...]:
    """The expected calls that were not made."""
    expected = (asked.expected_tools if asked else None) or []
    return tuple(stated_words(expected[at]) for at in evidence.missing if at < len(expected))


def tool_labels(asked: TestCase) -> list[tuple[str, str]]:
    """A case's expectations on tools, as labels with their texts."""
    labels = [("expected call", stated_words(tool)) for tool in asked.expected_tools or ()]
    if asked.expected_tools == []:
        labels.append(("expected call", "none"))
    labels += [("forbidden call", stated_words(tool)) for tool in asked.forbidden_tools]
    if asked.max_tool_calls is not None:
        labels.append(("most tool calls", str(asked.max_tool_calls)))
    if asked.tool_order is not None:
        labels.append(("order of calls", asked.tool_order))
    return labels


def stated_words(tool: AnyTool) -> str:
    """An expected or forbidden call: ``search(query="hats")``."""
    stated = expected_tool(tool)
    exact = " exactly" if stated.match == "exact" else ""
    return call_words(stated.name, stated.arguments) + exact


def tools_note(steps: Sequence[ToolStep], missing: Sequence[str]) -> str:
    """How many calls there were, and how many expected ones were not made."""
    from terminal.tables import counted

    note = counted(len(steps), "call") if steps else "no tool was called"
    return f"{note}, {counted(len(missing), 'expected call')} not made" if missing else note
