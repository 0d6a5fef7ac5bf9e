"""What the figures need of a span, and of a trace, as numbers: no text goes further than here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from formats.shared.spans import (
    INPUT,
    QUERY,
    SESSIONS,
    WORDS,
    Span,
    document_rows,
    kind_of,
    messages_of,
    spans_in,
)
from ragmetrics.abstention import detect
from watching.trace_index import SpanRow, TraceRow, hash_of

AGENT, CHAT, RETRIEVAL, TOOL, OUTERMOST = 1, 2, 3, 4, 5
"""Kinds of spans; an outermost span may be none of the others."""

_KINDS = {"agent": AGENT, "chat": CHAT, "retrieval": RETRIEVAL, "reranker": RETRIEVAL, "tool": TOOL}

FAILED, ROOT, ASKED, REFUSED = 1, 2, 4, 8
"""Flags of a span: it failed; it has no parent; it says what was asked; its answer is a refusal."""

REFUSALS, EMPTY_RETRIEVALS, ERRORS, LATENCY, ANSWERS, CLAIMS, LEAKS = (1 << n for n in range(7))
"""The bit of each figure in ``applies`` and ``bad`` of a trace."""

MOST_LOOKED_AT = 20_000
"""Characters of an answer at which the detector of refusals looks."""

_DAY = 86_400_000_000
_EARLIEST = 10_957 * _DAY
"""The year 2000: earlier clocks are wrong."""
_LONGEST = _DAY
_MOST = (1 << 62) - 1

UNREADABLE = "spans that cannot be read"
STRANGE_TIMES = "traces with an impossible time"


class Place(NamedTuple):
    """Where a JSON value stands: the number of its file, its first byte, and its bytes."""

    file: int
    offset: int
    size: int


class SpanSummaries:
    """Makes rows of spans. Answers are looked at many at a time, each text once: between the
    parsing of other spans the rules of all languages would have to come into the cache again."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._answers: list[tuple[int, str]] = []
        self._rows = 0
        self.characters = 0
        """Of the answers that wait to be looked at."""

    def of(self, document: Any, place: Place) -> Iterator[SpanRow]:
        """The rows of the spans in a JSON value that tell of an answer, or are outermost."""
        is_empty = True
        for item in document if isinstance(document, list) else [document]:
            for _, span in spans_in(item):
                is_empty = False
                self._counts["spans"] += 1
                if isinstance(span, str):
                    self._counts[UNREADABLE] += 1
                    continue
                try:
                    row = self._row(span, place)
                except (TypeError, ValueError, AttributeError, RecursionError, OverflowError):
                    self._counts[UNREADABLE] += 1
                    continue
                if row is not None:
                    self._rows += 1
                    yield row
        if is_empty:
            self._counts["values without spans"] += 1

    def _row(self, span: Span, place: Place) -> SpanRow | None:
        kind = _KINDS.get(kind_of(span), OUTERMOST)
        if kind == OUTERMOST and span.parent:
            return None
        attributes = span.attributes
        flags = (FAILED if span.failed is not None else 0) | (0 if span.parent else ROOT)
        length = documents = answer = None
        if kind == RETRIEVAL:
            documents = len(document_rows(span))
        elif kind != TOOL:
            answer = _answer(span)
            if answer is not None:
                length = len(answer)
        if kind != TOOL and _tells_question(attributes):
            flags |= ASKED
        session = next((attributes[name] for name in SESSIONS if attributes.get(name)), None)
        row = SpanRow(
            hash_of(span.trace),
            hash_of(span.id),
            *place,
            kind,
            flags,
            _microseconds(span.start),
            _microseconds(span.end),
            length,
            documents,
            None if session is None else hash_of(str(session)),
        )
        if answer is not None:
            self._answers.append((self._rows, answer[:MOST_LOOKED_AT]))
            self.characters += len(self._answers[-1][1])
        return row

    def mark_refusals(self, rows: list[SpanRow]) -> None:
        """Set the flag of each refusal among all rows since the last call, which are ``rows``."""
        verdicts: dict[str, bool] = {}
        for number, text in self._answers:
            if text not in verdicts:
                verdicts[text] = detect(text).abstained
            if verdicts[text]:
                rows[number] = rows[number]._replace(flags=rows[number].flags | REFUSED)
        self._answers, self._rows, self.characters = [], 0, 0


def _answer(span: Span) -> str | None:
    texts = [text for role, text in messages_of(span, "out") if role in ("assistant", "")]
    return texts[-1] if texts else None


_QUESTION_NAMES = (*INPUT, *WORDS["in"], QUERY)
_QUESTION_PREFIXES = ("gen_ai.prompt.", "llm.prompts.", "llm.input_messages.")


def _tells_question(attributes: dict[str, Any]) -> bool:
    return any(attributes.get(name) for name in _QUESTION_NAMES) or any(
        name.startswith(_QUESTION_PREFIXES) for name in attributes
    )


def _microseconds(nanoseconds: int) -> int:
    return min(max(0, nanoseconds // 1000), _MOST)


def trace_numbers(
    key: int, spans: Sequence[SpanRow], now: int, earliest_day: int, counts: Counter[str]
) -> TraceRow | None:
    """A trace from its spans; None when none of them tells of an answer.

    ``now``: microseconds. ``earliest_day``: what was shown up to the day before stays as it is, so
    a trace that comes late counts on this day. Which span's answer counts is what the importer of
    traces takes, too.
    """
    if all(span.kind in (TOOL, OUTERMOST) and not span.flags & ASKED for span in spans):
        return None
    ordered = sorted(spans, key=lambda span: (span.start, span.end))
    roots = [span for span in ordered if span.flags & ROOT] or ordered
    answer = next((span for span in _by_answer(ordered) if span.length is not None), None)
    failed = any(span.flags & FAILED for span in (roots if answer else ordered))
    applies, bad = ERRORS, ERRORS if failed else 0
    if answer is not None and not failed:
        applies |= REFUSALS | ANSWERS
        bad |= REFUSALS if answer.flags & REFUSED else 0
    elif not failed and any(span.flags & ASKED for span in ordered):
        applies, bad = applies | ANSWERS, bad | ANSWERS
    retrievals = [span for span in ordered if span.kind == RETRIEVAL]
    if any(not span.flags & FAILED for span in retrievals):
        applies |= EMPTY_RETRIEVALS
        bad |= 0 if any(span.documents for span in retrievals) else EMPTY_RETRIEVALS
    start = next((span.start for span in roots if span.start), ordered[-1].start)
    lasted = roots[0].end - roots[0].start
    strange = not _EARLIEST <= start <= now + _DAY or not 0 <= lasted <= _LONGEST
    counts[STRANGE_TIMES] += strange
    latency = None
    if not strange:
        latency = lasted
        applies |= LATENCY
    day = min(start, now) // _DAY if _EARLIEST <= start <= now + _DAY else now // _DAY
    if day < earliest_day:
        counts["traces that came late and count on a later day"] += 1
    return TraceRow(
        key,
        max(day, earliest_day),
        next((span.session for span in ordered if span.session is not None), None),
        applies,
        bad,
        latency,
        None if answer is None or failed else answer.length,
    )


def _by_answer(spans: Sequence[SpanRow]) -> list[SpanRow]:
    """Spans in the order in which their answers count: agents, the chat that ended last, others."""
    chats = sorted((s for s in spans if s.kind == CHAT), key=lambda span: span.end, reverse=True)
    return [
        *(span for span in spans if span.kind == AGENT),
        *chats,
        *(span for span in spans if span.kind == OUTERMOST),
    ]
