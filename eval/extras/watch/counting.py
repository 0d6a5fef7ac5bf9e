"""Counts the traces that have ended, and checks the texts of a share of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from extras.watch.summary import (
    CLAIMS,
    LEAKS,
    REFUSALS,
    answers_itself,
    is_complete,
    tells_anything,
    trace_numbers,
)
from extras.watch.texts import read_traces, texts_of
from extras.watch.trace_index import SHARE, TraceIndex, TraceRow
from records.results import TestResult

DAY_SHOWN = "last day shown"
"""The fact under which the index keeps up to which day figures were shown."""

_TRACES_A_STEP = 1000
_SECOND = 1_000_000
_MOST_CHECKED = 20_000
"""Characters of an answer whose claims are looked at."""


def count_due(
    index: TraceIndex, now: int, *, quiet: float, check_share: float, counts: Counter[str]
) -> int:
    """Count every trace whose last span is ``quiet`` seconds old; returns how many.

    ``now``: microseconds. Traces with a key below ``check_share`` of all keys are checked for
    unsupported claims and leaks. A step is one transaction; ``counts`` gets what it counted.
    """
    until = now - int(quiet * _SECOND)
    earliest_day = index.fact(DAY_SHOWN) or 0
    total = 0
    while batch := index.due(until, _TRACES_A_STEP):
        own: Counter[str] = Counter()
        ended = [(key, spans) for key, spans in batch if is_complete(spans)]
        unended = [key for key, spans in batch if not is_complete(spans)]
        unclear = [
            key for key, spans in ended if tells_anything(spans) and not answers_itself(spans)
        ]
        read = read_traces(index, unclear)
        rows = [
            (key, trace_numbers(key, spans, read.get(key), now, earliest_day, own))
            for key, spans in ended
        ]
        traces = [row for _, row in rows if row is not None]
        ignored = [key for key, row in rows if row is None]
        own["traces"] += len(traces)
        own["traces that are no answers of a bot"] += len(ignored)
        index.count(_checked(index, traces, check_share, own), ignored, unended, own)
        counts.update(own)
        total += len(traces)
    return total


def mark_shown(index: TraceIndex) -> None:
    """Remember that figures up to today's data were seen: what comes late counts on later days."""
    days = index.days()
    if days is not None and days[1] != index.fact(DAY_SHOWN):
        index.set_fact(DAY_SHOWN, days[1])


def _checked(
    index: TraceIndex, traces: list[TraceRow], share: float, counts: Counter[str]
) -> list[TraceRow]:
    """The traces, those of the share with the figures that need their texts."""
    limit = int(share * SHARE)
    answered = [row.key for row in traces if row.key < limit and row.applies & REFUSALS]
    bits: dict[int, tuple[int, int]] = {}
    for text in texts_of(index, answered, counts, with_history=False):
        bits[text.key] = _check(text.result)
        counts["traces checked for claims and leaks"] += 1
    return [
        row._replace(
            applies=row.applies | bits.get(row.key, (0, 0))[0],
            bad=row.bad | bits.get(row.key, (0, 0))[1],
        )
        for row in traces
    ]


def _check(result: TestResult) -> tuple[int, int]:
    """Which of the two figures apply to an answer, and which of them are bad."""
    from ragmetrics.groundedness import unsupported_claims  # slow to load, as what leaks needs

    if result.answer is None:
        return 0, 0
    answer, chunks = result.answer[:_MOST_CHECKED], result.seen_chunks()
    applies, bad = LEAKS, 0
    # Passages can only weaken what is found, and looking for copies of them is most of the work.
    if _leaks(answer, []) and _leaks(answer, [chunk.text or "" for chunk in chunks]):
        bad |= LEAKS
    unsupported = unsupported_claims(answer, chunks, result.question)
    if chunks and unsupported is not None:
        applies |= CLAIMS
        bad |= CLAIMS if unsupported else 0
    return applies, bad


def _leaks(answer: str, passages: Sequence[str]) -> bool:
    from guardrails.leakage import BLOCK, score_leakage

    leaks = score_leakage(answer, passages).categories
    return any(score >= BLOCK for name, score in leaks.items() if name != "verbatim_context")
