"""The texts of traces, read again from their files when they are needed, and kept nowhere."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from extras.watch.span_stream import open_spans
from extras.watch.summary import FAULTS, spans_of_value
from extras.watch.trace_index import TraceIndex, hash_of
from formats.traces.reading import Trace, read_trace
from formats.traces.spans import Span, messages_of
from records.results import TestResult

if TYPE_CHECKING:
    from formats.shared.item import ImportedCase

_AT_ONCE = 100
"""Traces whose texts are in memory together."""

_MOST_HISTORY = 20
"""Messages of a history at most."""

_SOURCE = Path("traces")

GONE = "traces whose files are gone or changed"
NO_QUESTION = "traces without a question (content capture off?)"


@dataclass(frozen=True, slots=True)
class TraceText:
    """A trace as the importer makes a case of it. ``history``: what was said before its question,
    as role and content."""

    key: int
    item: ImportedCase
    history: list[dict[str, str]]

    @property
    def question(self) -> str:
        return str(self.item.case["question"])

    @property
    def result(self) -> TestResult:
        return self.item.answers[0].result


def texts_of(
    index: TraceIndex, keys: Sequence[int], counts: Counter[str], *, with_history: bool = True
) -> Iterator[TraceText]:
    """Traces with their texts, in the order of the keys.

    Ids are hashes, since a trace's own may be anything; ``counts`` takes what has no case.
    """
    from formats.shared.item import Notes  # slow to load, as what makes a case
    from formats.traces.cases import case_of_trace

    for first in range(0, len(keys), _AT_ONCE):
        part = keys[first : first + _AT_ONCE]
        spans = _spans_of(index, part)
        for key in part:
            if not spans[key]:
                counts[GONE] += 1
                continue
            try:
                traced = case_of_trace(
                    _SOURCE, None, _case_id(key), spans[key], Notes(counts_rest=False)
                )
                item = traced.item if traced else None
                history = _history(spans[key], item) if item and with_history else []
            except FAULTS:
                item = None
            if item is None:
                counts[NO_QUESTION] += 1
                continue
            if with_history and not history:
                history = _earlier_traces(index, key)
            yield TraceText(key, item, history)


def read_traces(index: TraceIndex, keys: Sequence[int]) -> dict[int, Trace]:
    """The texts of some traces, by key; traces whose files are gone or changed are left out."""
    traces: dict[int, Trace] = {}
    for first in range(0, len(keys), _AT_ONCE):
        part = keys[first : first + _AT_ONCE]
        for key, spans in _spans_of(index, part).items():
            if spans:
                with contextlib.suppress(*FAULTS):
                    traces[key] = read_trace(spans)
    return traces


def _history(spans: Sequence[Span], item: ImportedCase) -> list[dict[str, str]]:
    """The messages before the question, as the model was given them; [] when it was given none."""
    question = str(item.case["question"]).strip()
    longest: list[dict[str, str]] = []
    for span in spans:
        messages = [
            {"role": message.role, "content": message.text}
            for message in messages_of(span, "in")
            if message.role in ("user", "assistant") and message.text.strip()
        ]
        asked = [
            n for n, m in enumerate(messages) if m["role"] == "user" and question in m["content"]
        ]
        if asked and len(messages[: asked[-1]]) > len(longest):
            longest = messages[: asked[-1]]
    return longest[-_MOST_HISTORY:]


def _earlier_traces(index: TraceIndex, key: int) -> list[dict[str, str]]:
    """Questions and answers of the traces before it in its session."""
    earlier = index.earlier_in_session(key, _MOST_HISTORY // 2)
    history: list[dict[str, str]] = []
    for text in texts_of(index, earlier, Counter(), with_history=False):
        if text.result.answer:
            history.append({"role": "user", "content": text.question})
            history.append({"role": "assistant", "content": text.result.answer})
    return history


def _case_id(key: int) -> str:
    """The id of a case that is made of a trace."""
    return f"trace-{key:016x}"


def _spans_of(index: TraceIndex, keys: Sequence[int]) -> dict[int, list[Span]]:
    """The spans of some traces; every JSON value that holds some is read once, in its order."""
    needed: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for key in keys:
        for row in index.spans(key):
            needed[row.file].add((row.offset, row.size))
    paths = {file.id: Path(file.path) for file in index.files()}
    spans: dict[int, list[Span]] = {key: [] for key in keys}
    for file, places in needed.items():
        for span in _spans_at(paths[file], sorted(places)):
            key = hash_of(span.trace)
            if key in spans:
                spans[key].append(span)
    return spans


def _spans_at(path: Path, places: Sequence[tuple[int, int]]) -> Iterator[Span]:
    try:
        with open_spans(path) as file:
            for offset, size in places:
                file.seek(offset)
                try:
                    spans = spans_of_value(file.read(size), Counter())
                except ValueError:
                    continue  # another file has taken its name
                yield from (span for span in spans if isinstance(span, Span))
    except OSError:
        return
