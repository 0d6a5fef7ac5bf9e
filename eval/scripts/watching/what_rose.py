"""What the traces of a rise have in common, and three of them to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from math import sqrt
from pathlib import PurePosixPath
from typing import Any

from formats.traces.private import masked
from ragmetrics.text.language import guess
from ragmetrics.text.words import STOP_WORDS, fold, words
from terminal.tables import plain
from watching.figures import FIGURES, ReferencePeriod, condition_of, day_of
from watching.texts import TraceText, texts_of
from watching.trace_index import TraceIndex

_READ = 200
"""Bad traces, and others, that are read; the smallest hashes of ids, so any."""

_SHOWN, _LEAST, _SCORE = 3, 5, 4.0
"""Slices and examples that are shown; bad traces and the normal score that a slice needs: a
thousand words are tried."""

_LONGEST = 110
_WORD = "the question has "


@dataclass(frozen=True, slots=True)
class RisenTraces:
    """``slices``: what more of the bad traces since a rise have than of the others since then, a
    sentence each. ``examples``: three traces, private values blotted."""

    figure: str
    slices: tuple[str, ...]
    examples: tuple[str, ...]


def what_rose(index: TraceIndex, name: str, reference: ReferencePeriod, since: date) -> RisenTraces:
    """Look at the texts of a figure's traces since a day, bad ones and others."""
    figure = next(figure for figure in FIGURES if figure.name == name)
    condition, first = condition_of(figure, reference), day_of(since)

    def texts(where: str) -> list[TraceText]:
        keys = index.keys_where(figure.bit, where, first, _READ)
        return list(texts_of(index, keys, Counter(), with_history=False))

    bad, others = texts(condition), texts(f"NOT ({condition})")
    slices = list(_slices([_labels(t) for t in bad], [_labels(t) for t in others], figure.label))
    inside = [text for text in bad if slices and slices[0][0] in _labels(text)]
    shown: dict[str, TraceText] = {}
    for text in (*inside, *bad):
        shown.setdefault(text.question, text)
    return RisenTraces(
        name, tuple(text for _, text in slices), tuple(map(_example, [*shown.values()][:_SHOWN]))
    )


def _slices(
    bad: Sequence[set[str]], others: Sequence[set[str]], label: str
) -> Iterator[tuple[str, str]]:
    """The labels that bad traces have most more often, each with its sentence; none that marks
    nearly the same traces as one before it."""
    many, rest = (Counter(name for own in part for name in own) for part in (bad, others))
    scores = {}
    for name, n in many.items():
        pooled = (n + rest[name] + 1) / (len(bad) + len(others) + 2)
        spread = sqrt(pooled * (1 - pooled) * (1 / len(bad) + 1 / max(1, len(others))))
        scores[name] = (n / len(bad) - rest[name] / max(1, len(others))) / spread
    named: list[set[int]] = []
    for name in sorted(scores, key=lambda name: (-scores[name], name.startswith(_WORD), name)):
        inside = {place for place, own in enumerate(bad) if name in own}
        if scores[name] < _SCORE or len(named) == _SHOWN or not others:
            return
        alike = any(len(inside & other) > 0.7 * len(inside | other) for other in named)
        if len(inside) >= _LEAST and not alike:
            named.append(inside)
            n, m = round(100 * many[name] / len(bad)), round(100 * rest[name] / len(others))
            yield name, f"{plain(name, 60)}: {n} of 100 {label.lower()}, {m} of 100 others."


def _labels(text: TraceText) -> set[str]:
    """What a trace is: the language and words of its question, the folders of its passages."""
    question = text.question[:2000]
    labels = {f'{_WORD}"{word}"' for word in words(fold(question)) if word not in STOP_WORDS}
    if (language := guess(question)) is not None:
        labels.add(f"the question's language is {language}")
    paths = (chunk.rel_path or chunk.doc_id or "" for chunk in text.result.seen_chunks())
    folders = {str(PurePosixPath(path).parent) for path in paths if "/" in path}
    labels |= {f"passages of {folder}" for folder in folders}
    return labels


def _example(text: TraceText) -> str:
    def shown(value: str | None) -> str:
        blotted: Any = masked(value or "", "", Counter())
        return plain(blotted, _LONGEST)

    answer = shown(text.result.answer) or f"({text.result.status})"
    return f"{text.item.case['id']}: {shown(text.question)} → {answer}"
