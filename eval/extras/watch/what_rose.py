"""Finds the properties that the traces of a rise share, and three of them to read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import Any

from decisions.slices import SliceMember, find_rise, places_in
from extras.watch.figures import FIGURES, ReferencePeriod, condition_of, day_of
from extras.watch.texts import TraceText, texts_of
from extras.watch.trace_index import TraceIndex, hash_of
from formats.traces.private import masked
from terminal.tables import plain

_READ, _SHOWN, _LONGEST = 500, 3, 110
"""Traces of either period that are read, those with the smallest hashes; examples, and their
characters."""


@dataclass(frozen=True, slots=True)
class RisenTraces:
    """``slices``: in which traces a share rose more than in the others, a sentence each.
    ``examples``: three traces since the rise, private values blotted."""

    figure: str
    slices: tuple[str, ...]
    examples: tuple[str, ...]


def what_rose(index: TraceIndex, name: str, reference: ReferencePeriod, since: date) -> RisenTraces:
    """Look at the texts of a figure's traces in the reference and since a day."""
    figure = next(figure for figure in FIGURES if figure.name == name)
    condition = condition_of(figure, reference)

    def read(first: date, last: date) -> tuple[list[TraceText], list[bool]]:
        days = (figure.bit, f"day <= {day_of(last):d}", day_of(first), _READ)
        keys = index.keys_where(*days)
        worst = f"({condition}) AND {days[1]} AND key <= {max(keys, default=0):d}"
        bad = set(index.keys_where(figure.bit, worst, *days[2:]))
        texts = list(texts_of(index, keys, Counter(), with_history=False))
        return texts, [text.key in bad for text in texts]

    before, was = read(reference.first, reference.last)
    texts, marks = read(since, date.max)
    found = find_rise([*map(_sliced, before)], was, [*map(_sliced, texts)], marks)
    ids = found.significant[0].marked_ids if found.significant else frozenset[str]()
    bad = [text for text, mark in zip(texts, marks, strict=True) if mark]
    bad.sort(key=lambda text: text.item.case["id"] not in ids)
    shown = {text.question: text for text in reversed(bad)}
    examples = [_example(text) for text in [*shown.values()][: -_SHOWN - 1 : -1]]
    return RisenTraces(name, tuple(found.sentences()), tuple(examples))


def _sliced(text: TraceText) -> SliceMember:
    """A trace as slices see it: its question, and the documents and folders of its passages."""
    paths = {chunk.rel_path or chunk.doc_id or "" for chunk in text.result.seen_chunks()}
    places = {place for path in sorted(filter(None, paths)) for place in places_in(path)}
    session = str(text.item.case.get("conversation") or "")
    cluster = hash_of(session) if session else 0
    return SliceMember(text.item.case["id"], text.question, (), tuple(sorted(places)), cluster)


def _example(text: TraceText) -> str:
    def shown(value: str | None) -> str:
        blotted: Any = masked(value or "", "", Counter())
        return plain(blotted, _LONGEST)

    answer = shown(text.result.answer) or f"({text.result.status})"
    return f"{text.item.case['id']}: {shown(text.question)} → {answer}"
