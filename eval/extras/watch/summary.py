"""Summarises a span, and a trace, in the numbers that the figures need: no text goes further than
here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from extras.watch.span_stream import parse_value
from extras.watch.trace_index import RatingRow, SpanRow, TraceRow, hash_of
from formats.traces.feedback import (
    NO_FEEDBACK,
    PERSON,
    TAKEN,
    SourceRating,
    ratings_in,
    ratings_of_events,
)
from formats.traces.ids import hashed, key_of_ids
from formats.traces.reading import Trace
from formats.traces.spans import (
    AGENT,
    CHAT,
    EVALUATION,
    GUARD,
    RERANKER,
    RETRIEVAL,
    TOOL,
    Span,
    count_documents,
    given_out,
    kind_of,
    session_of,
)
from formats.traces.wire import spans_in
from ragmetrics.abstention import detect

OUTERMOST, LOG = 5, 6
_NUMBERS = {AGENT: 1, CHAT: 2, RETRIEVAL: 3, RERANKER: 3, TOOL: 4, GUARD: 7}
"""Kinds of spans; an outermost span may be none of the others."""
RETRIEVING = _NUMBERS[RETRIEVAL]
STEPS = tuple({_NUMBERS[kind] for kind in (RETRIEVAL, RERANKER, TOOL, GUARD)})
"""Kinds of spans on the way to an answer: who rates one does not rate the answer."""

FAILED, ROOT, TELLS, REFUSED, CERTAIN, OPEN = (1 << n for n in range(6))
"""Flags of a span: it failed; nothing is around it; it tells something of what was asked or
answered; its answer is a refusal; it is outermost and its answer certain; it has not ended."""

REFUSALS, EMPTY_RETRIEVALS, ERRORS, LATENCY, ANSWERS, CLAIMS, LEAKS, UNREADABLE, FEEDBACK = (
    1 << n for n in range(9)
)
"""The bit of each figure in ``applies`` and ``bad`` of a trace."""

MOST_LOOKED_AT = 20_000
"""Characters of an answer at which the detector of refusals looks."""

_DAY = 86_400_000_000
_EARLIEST = 10_957 * _DAY
"""The year 2000: earlier clocks are wrong."""
_LONGEST = _DAY
_MOST = (1 << 62) - 1
_DOUBTFUL = re.compile(r"\S*|.*(?:\.\.\.|…)|\s*Thought:.*", re.DOTALL)
"""An answer of one word, one that may be cut, one with its reasoning: the whole trace decides."""

DAMAGED_SPANS = "spans that cannot be read"
STRANGE_TIMES = "traces with an impossible time"
NOT_CAPTURED = "traces whose contents were not captured"
FAULTS = (TypeError, ValueError, AttributeError, RecursionError, OverflowError)


class Place(NamedTuple):
    """The position of a JSON value: the number of its file, its first byte, and its bytes."""

    file: int
    offset: int
    size: int


def spans_of_value(data: bytes, counts: Counter[str]) -> list[Span | str]:
    """The spans in the bytes of a JSON value; the name of a field for one that cannot be read.

    Raises ValueError for what is no JSON.
    """
    document = parse_value(data)
    items = document if isinstance(document, list) else [document]
    return [span for item in items for _, span in spans_in(item, counts)]


def keys_of(data: bytes) -> list[str]:
    """The first keys of an object, for a message about a value without spans."""
    value = parse_value(data)
    return [str(key)[:40] for key in [*value][:8]] if isinstance(value, dict) else []


class SpanSummaries:
    """Makes rows of spans. Answers are looked at many at a time, each text once: between the
    parsing of other spans the rules of all languages would have to come into the cache again."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._answers: list[tuple[int, str]] = []
        self._rows = 0
        self.characters = 0
        """Of the answers that wait to be looked at."""
        self.ratings: list[RatingRow] = []
        """Of people, found since the list was emptied."""

    def of(self, data: bytes, place: Place) -> Iterator[SpanRow]:
        """The rows of the spans in a JSON value that are answers, or outermost.

        Raises ValueError for what is no JSON.
        """
        spans = spans_of_value(data, self._counts)
        for span in spans:
            if isinstance(span, str):
                self._counts["spans"] += 1
                self._counts[DAMAGED_SPANS] += 1
                continue
            self._counts["log records" if span.is_log else "spans"] += 1
            for told in ratings_of_events(span.events) if span.events else ():
                self._rate(told, span.trace, span.id)
            if span.is_log and all(name == EVALUATION for name, _ in span.events):
                continue
            try:
                row = self._row(span, place)
            except FAULTS:
                self._counts[DAMAGED_SPANS] += 1
                continue
            if row is not None:
                self._rows += 1
                yield row
        if not spans or b'"scores"' in data:
            ratings = list(ratings_in(parse_value(data)))
            self._counts["values without spans"] += not spans and not ratings
            for told in ratings:
                self._rate(told, told.trace, told.span)

    def _rate(self, told: SourceRating, trace: str, span: str) -> None:
        self._counts[TAKEN if told.rater == PERSON else NO_FEEDBACK[told.rater]] += 1
        if told.rater == PERSON:
            user = hashed(told.user, key_of_ids) if told.user else ""
            ids = (trace, span, user, told.name)
            key, rated, rater, name = (hash_of(text) if text else 0 for text in ids)
            score = told.score(is_thumb=True)
            row = RatingRow(key, rated, rater, name, told.at, score, told.bare_number)
            self.ratings.append(row)

    def _row(self, span: Span, place: Place) -> SpanRow | None:
        kind = LOG if span.is_log else _NUMBERS.get(kind_of(span), OUTERMOST)
        is_root = span.is_root
        if kind == OUTERMOST and not is_root:
            return None
        flags = FAILED if span.failed is not None else 0
        length = None
        if kind != RETRIEVING and kind not in (_NUMBERS[TOOL], _NUMBERS[GUARD]):
            flags |= TELLS if span.shape.tells or span.events else 0
        if span.is_open:
            flags |= OPEN
        if is_root:
            flags |= ROOT
            answer = given_out(span) if flags & TELLS else None
            if answer is not None and not _DOUBTFUL.fullmatch(answer):
                flags |= CERTAIN
                length = len(answer)
                self._answers.append((self._rows, answer[:MOST_LOOKED_AT]))
                self.characters += len(self._answers[-1][1])
        session = session_of(span)
        # Log records of a span are rows of their own, which its own row must not displace.
        identity = f"{span.id} log {place.offset} {self._rows}" if span.is_log else span.id
        return SpanRow(
            hash_of(span.trace),
            hash_of(identity),
            *place,
            kind,
            flags,
            _microseconds(span.start),
            _microseconds(span.end),
            length,
            count_documents(span) if kind == RETRIEVING else None,
            None if session is None else hash_of(session),
            span.weight if is_root and span.weight != 1.0 else None,
        )

    def mark_refusals(self, rows: list[SpanRow]) -> None:
        """Set the flag of each refusal among all rows since the last call, which are ``rows``."""
        verdicts: dict[str, bool] = {}
        for number, text in self._answers:
            if text not in verdicts:
                verdicts[text] = detect(text).abstained
            if verdicts[text]:
                rows[number] = rows[number]._replace(flags=rows[number].flags | REFUSED)
        self._answers, self._rows, self.characters = [], 0, 0


def _microseconds(nanoseconds: int) -> int:
    microseconds = nanoseconds // 1000
    return microseconds if 0 <= microseconds <= _MOST else min(max(0, microseconds), _MOST)


def is_complete(spans: Sequence[SpanRow]) -> bool:
    """Whether the outermost span of a trace is there, and nothing of it is still open."""
    return any(span.flags & ROOT for span in spans) and not any(span.flags & OPEN for span in spans)


def answers_itself(spans: Sequence[SpanRow]) -> bool:
    """Whether one outermost span certainly contains the answer, so that no text need be read."""
    roots = [span for span in spans if span.flags & ROOT]
    return len(roots) == 1 and bool(roots[0].flags & CERTAIN)


def tells_anything(spans: Iterable[SpanRow]) -> bool:
    """Whether any content of a trace was captured."""
    return any(span.flags & TELLS for span in spans)


def trace_numbers(
    key: int,
    spans: Sequence[SpanRow],
    trace: Trace | None,
    now: int,
    earliest_day: int,
    counts: Counter[str],
) -> TraceRow | None:
    """The numbers of a trace from its spans; None when none of them is an answer.

    ``trace``: read from its texts, where the outermost span does not tell the answer for certain.
    ``now``: microseconds. ``earliest_day``: what was shown up to the day before does not change, so
    a trace that comes late counts on this day.
    """
    if all(span.kind in (_NUMBERS[TOOL], OUTERMOST, LOG) for span in spans) and not tells_anything(
        spans
    ):
        return None
    ordered = sorted(spans, key=lambda span: (span.start, span.end))
    roots = [span for span in ordered if span.flags & ROOT]
    length, refuses, state = _answer(roots, trace)
    looked_at = roots if state == "read" else ordered
    if state == "unknown":  # what came is no failure because a step failed on the way to it
        looked_at = [span for span in ordered if span.kind not in STEPS]
    failed = any(span.flags & FAILED for span in looked_at)
    applies, bad = ERRORS, ERRORS if failed else 0
    if state == "read" and not failed:
        applies |= REFUSALS | ANSWERS
        bad |= REFUSALS if refuses else 0
    elif state == "none" and not failed:
        applies, bad = applies | ANSWERS, bad | ANSWERS
    if state in ("read", "none", "unknown") and not failed:
        applies |= UNREADABLE
        bad |= UNREADABLE if state == "unknown" else 0
    if state in ("not captured", "by reference"):
        counts[NOT_CAPTURED] += 1
    retrievals = [span for span in ordered if span.kind == RETRIEVING]
    if any(not span.flags & FAILED for span in retrievals) and _tells_documents(retrievals, state):
        applies |= EMPTY_RETRIEVALS
        bad |= 0 if any(span.documents for span in retrievals) else EMPTY_RETRIEVALS
    start = next((span.start for span in roots if span.start), ordered[-1].start)
    # A span for the whole trace may have no times of its own (Langfuse, the OpenAI Agents SDK).
    begin = roots[0].start or min((span.start for span in ordered if span.start), default=0)
    lasted = (roots[0].end or max(span.end for span in ordered)) - begin
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
        length if state == "read" and not failed else None,
        next((span.weight for span in roots if span.weight is not None), 1.0),
    )


def _answer(roots: Sequence[SpanRow], trace: Trace | None) -> tuple[int | None, bool, str]:
    """Length of the answer, whether it refuses, and what is known of it."""
    if trace is None:
        root = next((span for span in roots if span.flags & CERTAIN), None)
        if root is None:
            return None, False, "not captured"
        return root.length, bool(root.flags & REFUSED), "read"
    if trace.answer is None:
        # What was asked of a search service has no answer, and none is missing.
        return None, False, trace.state
    refuses = detect(trace.answer[:MOST_LOOKED_AT]).abstained
    return len(trace.answer), refuses, "read"


def _tells_documents(retrievals: Sequence[SpanRow], state: str) -> bool:
    """Whether an empty list says that nothing was found: not where contents were left out."""
    return state not in ("not captured", "by reference") or any(
        span.documents for span in retrievals
    )
