"""The retrieved chunks of each case, and the numbered rows that a screen shows of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from labeller import supports as gold
from labeller.case_state import CaseState, Record
from labeller.passages import Chunk, Sentence, locate, sentence_spans
from labeller.supports import USUAL_GRADE, Needs, Support, read_supports, spans_in
from labeller.worklist import shuffle_key
from records.judged import heading, norm_path, segments
from records.tool_calls import ToolCall
from terminal.actions import ActionRefused

ROW_ORDERS: Final = ("shuffled", "rank", "path")
GENERIC: Final = "probe"
"""The query of rows that were added without one."""


@dataclass(frozen=True)
class ChunkRow:
    """A chunk on screen. `label` is its number, `+1` for the first one that a search found.

    `seen` says that its last line was shown; `blind` that rank and scores are hidden. `parts` are
    the numbers of the needs (or ways) that it meets; `state` says how its support was found (see
    `passages.locate`), ``""`` for an unmarked row. `supports` are the indices of the supports that
    mark it; `pool` and `labels` have the passages of all rows, and their labels.
    """

    number: int
    label: str
    chunk: Chunk
    parts: tuple[int, ...]
    grade: float | None
    snippets: int
    auto: bool
    seen: bool
    state: str
    blind: bool
    supports: tuple[int, ...] = ()
    pool: Sequence[Chunk] = field(default=(), repr=False, compare=False)
    labels: Sequence[str] = field(default=(), repr=False, compare=False)

    @property
    def marked(self) -> bool:
        """Does a support point at this row?"""
        return bool(self.state)

    @property
    def rank(self) -> int | None:
        """The rank of the chunk, unless it is hidden."""
        return None if self.blind else self.chunk.rank

    @property
    def scores(self) -> tuple[float | None, ...]:
        """The scores by vectors and by words, and the final one, unless they are hidden."""
        c = self.chunk
        return (None,) * 3 if self.blind else (c.score_vector, c.score_lexical, c.score_final)


@dataclass(frozen=True)
class SupportView:
    """A gold support of the current case and the labels of the rows that show it."""

    index: int
    rel_path: str
    heading_path: str
    parts: tuple[int, ...]
    grade: float | None
    snippets: tuple[str, ...]
    rows: tuple[str, ...]
    state: str

    @property
    def name(self) -> str:
        """The labels of its rows and the name of its file, else file and section."""
        if self.rows:
            return f"{'+'.join(self.rows)} {self.rel_path.rpartition('/')[2]}"
        return file_and_section(self.rel_path, self.heading_path)


def file_and_section(rel_path: str, heading_path: str) -> str:
    """`faq.md > … > Plans`: a path without its folders, and the last of its headings."""
    name, (above, _, last) = rel_path.rpartition("/")[2], heading_path.rpartition(" > ")
    middle = " > … > " if above else " > "
    return f"{name}{middle}{last}" if last else name


class CaseView(NamedTuple):
    """A case as the screen shows it."""

    rows: list[ChunkRow]
    supports: list[SupportView]
    layout: Needs

    def row(self, number: int) -> ChunkRow:
        """A row by its number on screen, from 1."""
        if not 1 <= number <= len(self.rows):
            raise self._no_row(number)
        return self.rows[number - 1]

    def row_by_label(self, label: str) -> ChunkRow:
        """A row by its number, ``3`` or ``+1``, or by its keys: ``0`` is row 10, ``,5`` row 15."""
        key = label.strip()
        for row in self.rows:
            if row.label == key:
                return row
        if high := re.fullmatch("[,.]([0-9])", key):
            return self.row(10 + (int(high[1]) or 10))
        if key == "0":
            return self.row(10)
        raise self._no_row(key)

    def _no_row(self, name: int | str) -> ActionRefused:
        return ActionRefused(f"There is no row {name}." if self.rows else "No passages are here.")

    def needs(self) -> str:
        """The needs of the answer: ``(1 try.md or 4 with.md) AND (2 with.md)``; ``""`` without."""
        return "".join(piece for piece, _ in self.needs_pieces())

    def needs_pieces(self) -> list[tuple[str, bool]]:
        """The same in pieces, each with whether it is the need that marks join."""
        names = self._names()
        if not names and len(self.layout.parts) == 1 and self.layout.open == 1:
            return []
        return gold.formula(self.layout, names)

    def needs_words(self) -> str:
        """The same as a sentence."""
        return gold.sentence(self.layout, self._names())

    def _names(self) -> list[str]:
        """The name of each support; whole where a short name is not unique."""
        names = [view.name for view in self.supports]
        return [
            " > ".join(filter(None, (view.rel_path, view.heading_path)))
            if names.count(name) > 1 and not view.rows
            else name
            for view, name in zip(self.supports, names, strict=True)
        ]


def _grade_of(support: Support) -> float | None:
    """The grade of a support, an int when it is whole."""
    grade = support.data.get("grade")
    return None if grade is None else int(grade) if grade == int(grade) else float(grade)


def arranged(
    chunks: Sequence[Chunk], order: str, shuffled_by: tuple[str, ...]
) -> list[tuple[str, Chunk]]:
    """The chunks in the order of the screen, each with its label; probed ones come last."""
    own = [chunk for chunk in chunks if not chunk.origin]
    if order == "shuffled":
        own.sort(key=lambda chunk: shuffle_key(*shuffled_by, chunk.key))
    elif order == "path":
        own.sort(key=lambda chunk: (norm_path(chunk.rel_path), segments(chunk.heading_path)))
    probed = (chunk for chunk in chunks if chunk.origin)
    labelled = [(str(position), chunk) for position, chunk in enumerate(own, start=1)]
    return labelled + [(f"+{position}", chunk) for position, chunk in enumerate(probed, start=1)]


def view_of(
    state: CaseState, labelled: Sequence[tuple[str, Chunk]], *, seen: Collection[str], blind: bool
) -> CaseView:
    """Rows and supports of a case; `seen` contains the keys of the chunks whose end was shown."""
    supports = read_supports(state.case, state.layout)
    labels, chunks = [label for label, _ in labelled], [chunk for _, chunk in labelled]
    located = [locate(support.data, chunks) for support in supports]
    rows = []
    for position, (label, chunk) in enumerate(labelled):
        marks = [i for i, (positions, _) in enumerate(located) if position in positions]
        marking = [supports[i] for i in marks]
        grades = [grade for support in marking if (grade := _grade_of(support)) is not None]
        row = ChunkRow(
            number=position + 1,
            label=label,
            chunk=chunk,
            parts=tuple(sorted(set().union(*(support.parts for support in marking)))),
            grade=max(grades, default=None),
            snippets=sum(len(spans_in(support, chunk.text)) for support in marking),
            auto=any(support.auto for support in marking),
            seen=chunk.key in seen,
            state=located[marks[0]][1] if marks else "",
            blind=blind,
            supports=tuple(marks),
            pool=chunks,
            labels=labels,
        )
        rows.append(row)
    views = [
        SupportView(
            index,
            *support.anchor,
            tuple(sorted(support.parts)),
            _grade_of(support),
            tuple(support.data.get("snippets") or ()),
            tuple(rows[position].label for position in positions),
            state,
        )
        for index, (support, (positions, state)) in enumerate(zip(supports, located, strict=True))
    ]
    return CaseView(rows, views, state.layout)


def sentences_of(row: ChunkRow, case: Record) -> list[Sentence]:
    """The sentences of a row's text; picked ones are in a snippet of a support that marks it."""
    text, supports = row.chunk.text, read_supports(case)
    spans = [span for index in row.supports for span in spans_in(supports[index], text)]
    return [
        Sentence(i, start, end, text[start:end], any(a < end and b > start for a, b in spans))
        for i, (start, end) in enumerate(sentence_spans(text))
    ]


def judged_rows(rows: Iterable[ChunkRow]) -> list[Record]:
    """The pool as judged: grade 0 a row read to its end and not marked, null one not read.

    ``part`` tells where the bot's text was cut: a grade 0 says little then.
    """
    return [
        {
            "key": row.chunk.key,
            "rel_path": row.chunk.rel_path,
            "heading_path": heading(row.chunk.heading_path),
            "grade": (row.grade or USUAL_GRADE) if row.marked else 0 if row.seen else None,
            **({"part": True} if row.seen and not row.marked and row.chunk.cut else {}),
            **({"origin": row.chunk.origin} if row.chunk.origin else {}),
        }
        for row in rows
    ]


def _distinct(chunks: Iterable[Chunk], others: Iterable[Chunk]) -> list[Chunk]:
    """`chunks` without repeated passages and without those in `others`."""
    keys = {chunk.key for chunk in others}
    new = []
    for chunk in chunks:
        if chunk.key not in keys:
            keys.add(chunk.key)
            new.append(chunk)
    return new


class ChunkPool:
    """The chunks that came for each case, from its own question and from probes (other queries)."""

    def __init__(self) -> None:
        self.version = 0  # counts the changes that a screen shows
        self.problems: dict[str, str] = {}
        """Why a case has no chunks."""
        self.calls: dict[str, tuple[ToolCall, ...]] = {}
        """The calls of tools that the bot reported for a case's own question."""
        self._chunks: dict[str, list[Chunk]] = {}
        self._waiting: dict[str, list[Chunk]] = {}
        self._seen: dict[str, set[str]] = {}

    def __contains__(self, case_id: str) -> bool:
        return case_id in self._chunks

    def waits(self, case_id: str) -> bool:
        """Are the chunks of a case on their way, with nothing said against it yet?"""
        return case_id not in self and case_id not in self.problems

    def chunks(self, case_id: str) -> list[Chunk]:
        """The arrived chunks of a case."""
        return self._chunks.get(case_id, [])

    def seen(self, case_id: str) -> set[str]:
        """The keys of the chunks of a case whose last line was shown."""
        return self._seen.get(case_id, set())

    def see(self, case_id: str, key: str) -> None:
        """The last line of a chunk was shown."""
        seen = self._seen.setdefault(case_id, set())
        if key not in seen:
            seen.add(key)
            self.version += 1

    def put(self, case_id: str, chunks: Sequence[Chunk]) -> None:
        """The chunks of a case's own question, in rank order; probed ones stay."""
        probed = [chunk for chunk in self.chunks(case_id) if chunk.origin]
        probed += self._waiting.pop(case_id, [])
        fresh = _distinct(chunks, ())
        self._chunks[case_id] = fresh + _distinct(probed, fresh)
        self.problems.pop(case_id, None)
        self.version += 1

    def put_problem(self, case_id: str, text: str) -> None:
        """The chunks of a case could not be fetched; it stays open and can be edited."""
        self.problems[case_id] = text
        self.version += 1

    def forget(self, case_id: str) -> None:
        """Drop the chunks of a case's own question, before they are fetched again."""
        self.problems.pop(case_id, None)
        if probed := [chunk for chunk in self._chunks.pop(case_id, ()) if chunk.origin]:
            self._waiting[case_id] = probed
        self.version += 1

    def add(self, case_id: str, chunks: Sequence[Chunk], query: str) -> int:
        """Append the new chunks of a probe. Returns how many rows are new."""
        present = self._chunks.setdefault(case_id, [])
        new = [replace(c, origin=query or GENERIC) for c in _distinct(chunks, present)]
        present.extend(new)
        self.problems.pop(case_id, None)
        self.version += 1
        return len(new)
