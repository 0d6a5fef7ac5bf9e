"""The chunks of a case as numbered rows, with what the supports make of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from labeller.anchors import Chunk, locate, norm_path, segments
from labeller.core import Core
from labeller.history import Event
from labeller.snippets import Sentence, content_words, sentence_spans
from labeller.supports import (
    Support,
    needs,
    needs_sentence,
    read_supports,
    short_name,
    spans_in,
)
from labeller.views import Row, SupportView, grade_of, label_of
from labeller.worklist import next_open, shuffle_key
from terminal.actions import ActionRefused

ROW_ORDERS: Final = ("shuffled", "rank", "path")


class Rows(Core):
    """What the screen shows of the current case."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._chunks: dict[str, list[Chunk]] = {}
        self._kept: dict[str, list[Chunk]] = {}
        self._problems: dict[str, str] = {}
        self._seen: dict[str, set[str]] = {}
        self._rows: tuple[tuple[Any, ...], list[Row], list[SupportView]] | None = None
        self._version = 0
        self.row_order = (
            "rank" if options.get("inspect") or not options.get("blind", True) else "shuffled"
        )
        super().__init__(*args, **options)

    # -- chunks --------------------------------------------------------------------------------

    def has_chunks(self, case_id: str | None = None) -> bool:
        """Have the chunks of the case come?"""
        return (case_id or self.current) in self._chunks

    def chunks_problem(self, case_id: str | None = None) -> str:
        """Why there are no chunks, or ``""``."""
        return self._problems.get(case_id or self.current, "")

    def set_chunks(self, case_id: str, chunks: Sequence[Chunk]) -> None:
        """The chunks of the case's own question, in rank order; probed ones stay."""
        kept = [chunk for chunk in self._chunks.get(case_id, ()) if chunk.origin]
        kept += self._kept.pop(case_id, [])
        fresh = distinct(chunks, ())
        self._chunks[case_id] = fresh + distinct(kept, fresh)
        self._problems.pop(case_id, None)
        self._version += 1

    def set_problem(self, case_id: str, text: str) -> None:
        """The chunks could not be fetched; the case stays open and can be edited."""
        self._problems[case_id] = text
        self._version += 1

    def forget_chunks(self, case_id: str) -> None:
        """Drop what was fetched for a case's own question, before it is fetched again."""
        self._problems.pop(case_id, None)
        kept = [chunk for chunk in self._chunks.pop(case_id, ()) if chunk.origin]
        if kept:
            self._kept[case_id] = kept
        self._version += 1

    def upcoming(self, ahead: int) -> list[str]:
        """The current case and the next `ahead` ones that still lack chunks."""
        found, at = [], self.current
        for _ in range(ahead + 1):
            if not at or at in found:
                break
            found.append(at)
            at = next_open(self.visible, self._briefs, at) or ""
        return [c for c in found if c not in self._chunks and c not in self._problems]

    def see(self, number: int) -> None:
        """The text of a row was shown."""
        chunk = self.row(number).chunk
        seen = self._seen.setdefault(self.current, set())
        if chunk.key not in seen:
            seen.add(chunk.key)
            self._version += 1

    def _go(self, case_id: str) -> None:
        if case_id != self.current:
            self._problems.pop(case_id, None)  # coming back is a reason to try again
        super()._go(case_id)

    # -- rows ----------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """The rows of the current case, numbered from 1 as they stand on screen."""
        return self._view()[0]

    def supports(self) -> list[SupportView]:
        """The gold supports of the current case, in the order of the set."""
        return self._view()[1]

    def row(self, number: int) -> Row:
        """A row by its number on screen, from 1."""
        self._need_case()
        rows = self.rows()
        if not 1 <= number <= len(rows):
            raise ActionRefused(f"There is no row {number}." if rows else "No chunks are here.")
        return rows[number - 1]

    def row_by_label(self, label: str) -> Row:
        """A row by its keys: ``3``, ``0``, ``.5``, ``+1``; ``10`` and up count as plain numbers."""
        wanted = label.strip()
        for row in self.rows():
            if row.label == wanted:
                return row
        if wanted.isascii() and wanted.isdigit() and len(wanted) < 6 and not wanted.startswith("0"):
            return self.row(int(wanted))
        raise ActionRefused(f"There is no row {wanted}.")

    def needs(self) -> str:
        """What the case needs: ``A (2 and 7) or B (.5)``; ``""`` when nothing is marked."""
        return needs(self._supports(), self._name)

    def needs_words(self) -> str:
        """The same as a sentence."""
        return needs_sentence(self._supports(), self._name)

    def sentences(self, number: int) -> list[Sentence]:
        """The sentences of a row's text; picked ones stand in a snippet."""
        row = self.row(number)
        text = row.chunk.text
        spans = [span for _, s in self._of_row(row) for span in spans_in(s, text)]
        return [
            Sentence(i, start, end, text[start:end], any(a < end and b > start for a, b in spans))
            for i, (start, end) in enumerate(sentence_spans(text))
        ]

    def terms(self) -> frozenset[str]:
        """Casefolded content words of the question, to be marked in the text."""
        return content_words(str(self.case.get("question") or ""))

    def set_row_order(self, order: str) -> str:
        """Order the rows: ``shuffled`` (by the seed), ``rank`` (not when blind), or ``path``."""
        if order not in ROW_ORDERS:
            raise ActionRefused(
                f"Row order {order!r} is unknown; use one of: {', '.join(ROW_ORDERS)}."
            )
        if order == "rank" and self.blind:
            raise ActionRefused("Blind mode hides the rank; B leaves it.")
        self.row_order = order
        return f"rows: {order}"

    def set_blind(self, blind: bool) -> str:
        """Hide or show rank and scores. Leaving blind mode is journalled, and noted at the case."""
        if self.inspect and blind:
            raise ActionRefused("Inspecting shows rank and scores.")
        if blind == self.blind:
            raise ActionRefused("It is so already.")
        self.blind = blind
        if blind and self.row_order == "rank":
            self.row_order = "shuffled"
        if self.current and not self.read_only:
            event: Event = self._event("blind", self.current)
            event["blind"] = blind
            self._emit(event)
            self._unblinded.add(self.current)
        return "blind: rank and scores are hidden" if blind else "rank and scores are shown"

    # -- inside --------------------------------------------------------------------------------

    def _supports(self) -> list[Support]:
        return read_supports(self.case)

    def _name(self, index: int) -> str:
        view = self.supports()[index]
        if not view.rows:
            return short_name(self._supports()[index])
        return view.rows[0] if len(view.rows) == 1 else "+".join(view.rows)

    def _of_row(self, row: Row) -> list[tuple[int, Support]]:
        """The supports that mark a row, with their indices."""
        views = self.supports()
        return [(i, s) for i, s in enumerate(self._supports()) if row.label in views[i].rows]

    def _view(self) -> tuple[list[Row], list[SupportView]]:
        entry = self.entry(self.current) if self.current else None
        key = (self.current, self._version, self.blind, self.row_order)
        if self._rows is None or self._rows[0][:-1] != key or self._rows[0][-1] is not entry:
            self._rows = ((*key, entry), *self._build(self._arranged()))
        return self._rows[1], self._rows[2]

    def _arranged(self) -> list[tuple[str, Chunk]]:
        chunks = self._chunks.get(self.current, [])
        own = [chunk for chunk in chunks if not chunk.origin]
        if self.row_order == "shuffled":
            who = (self.seed, self.annotator, self.current)
            own.sort(key=lambda chunk: shuffle_key(*who, chunk.key))
        elif self.row_order == "path":
            own.sort(key=lambda chunk: (norm_path(chunk.rel_path), segments(chunk.heading_path)))
        probed = [chunk for chunk in chunks if chunk.origin]
        labelled = [(label_of(place), chunk) for place, chunk in enumerate(own, start=1)]
        return labelled + [(f"+{place}", chunk) for place, chunk in enumerate(probed, start=1)]

    def _build(self, placed: list[tuple[str, Chunk]]) -> tuple[list[Row], list[SupportView]]:
        chunks = [chunk for _, chunk in placed]
        supports = self._supports()
        found = [locate(support.data, chunks) for support in supports]
        seen = self._seen.get(self.current, set())
        rows = [
            self._row(
                number,
                label,
                chunk,
                [
                    (support, state)
                    for support, (places, state) in zip(supports, found, strict=True)
                    if number - 1 in places
                ],
                chunk.key in seen,
            )
            for number, (label, chunk) in enumerate(placed, start=1)
        ]
        views = [
            SupportView(
                index,
                *support.anchor,
                "".join(sorted(support.letters)),
                grade_of(support),
                tuple(support.data.get("snippets") or ()),
                tuple(rows[place].label for place in places),
                state,
            )
            for index, (support, (places, state)) in enumerate(zip(supports, found, strict=True))
        ]
        return rows, views

    def _row(
        self, number: int, label: str, chunk: Chunk, marks: list[tuple[Support, str]], seen: bool
    ) -> Row:
        letters = sorted(set().union(*(support.letters for support, _ in marks)))
        grades = [grade for support, _ in marks if (grade := grade_of(support)) is not None]
        hidden = self.blind
        return Row(
            number=number,
            label=label,
            chunk=chunk,
            letters="".join(letters),
            grade=max(grades, default=None),
            snippets=sum(len(spans_in(support, chunk.text)) for support, _ in marks),
            auto=any(support.auto for support, _ in marks),
            seen=seen,
            state=marks[0][1] if marks else "",
            rank=None if hidden else chunk.rank,
            score_vector=None if hidden else chunk.score_vector,
            score_lexical=None if hidden else chunk.score_lexical,
            score_final=None if hidden else chunk.score_final,
        )

    def _lost(self, case_id: str) -> bool:
        chunks = self._chunks.get(case_id)
        if chunks is None:
            return False
        supports = read_supports(self.case_of(case_id))
        return any(locate(support.data, chunks)[1] == "absent" for support in supports)


def distinct(chunks: Iterable[Chunk], known: Iterable[Chunk]) -> list[Chunk]:
    """`chunks` without repeated passages and without those in `known`."""
    keys = {chunk.key for chunk in known}
    out = []
    for chunk in chunks:
        if chunk.key not in keys:
            keys.add(chunk.key)
            out.append(chunk)
    return out
