"""The list of cases as rows of a table, of at most 250 bytes each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from views.report.text import anchor, one_line
from views.report.words import short

ROW_BYTES = 250
"""What a row of the list takes at most, with its line end."""

ListRow = Sequence[Any]
"""Case id, repeat, state, category, scores, question: see ``case_list.COLUMNS``."""

MOST_ID, MOST_CATEGORY = 40, 20
MOST_SCORE = 12
"""Characters of a score: one of a damaged file must not take the room of the rest."""


def case_rows(case_list: Mapping[str, Any], in_full: frozenset[str]) -> Iterator[str]:
    """HTML of each row, harmless. ``in_full``: anchors of the answers that are shown in full.

    A row leads to its answer in full; one without is itself the place that a link leads to. The
    question is cut to the room that is left.
    """
    return (_row(row, in_full) for row in case_list["rows"])


def _row(row: ListRow, in_full: frozenset[str]) -> str:
    case_id, repeat, state, category, values, question = row
    name = anchor(case_id, repeat)
    opening = "<tr>" if name in in_full else f'<tr id="{name}">'
    scores = "".join(f"<td>{_score(score)}</td>" for score in values)
    for shown_category, longest, link in _lengths(category or "", own_place=name not in in_full):
        shown = one_line(case_id, longest) + (f" r{repeat}" if repeat else "")
        head = escape(shown)
        if link:
            head = f'<a href="#{name}">{head}</a>'
        head = f'{opening}<th scope="row">{head}</th>'
        fixed = f"{head}<td>{state}</td><td>{escape(shown_category)}</td>{scores}<td>"
        room = ROW_BYTES - len(fixed.encode()) - len("</td></tr>\n")
        if room >= 0:
            return f"{fixed}{_cut(question, room)}</td></tr>\n"
    raise ValueError(f"{len(values)} scores leave no room for a case's id")


def _lengths(category: str, *, own_place: bool) -> Iterator[tuple[str, int, bool]]:
    """Category, characters of the id, and whether it is a link: from what is wanted to what fits in
    any case. Only a row that is itself the place may do without the link to it."""
    cut = one_line(category, MOST_CATEGORY)
    yield from ((cut, MOST_ID, True), (cut, 20, True), ("", 20, True), ("", 5, True), ("", 0, True))
    if own_place:
        yield from (("", 20, False), ("", 0, False))


def _cut(text: str, room: int) -> str:
    """As much of a text as its escaped bytes leave room for."""
    shown = one_line(text, 100)
    whole = escape(shown, quote=False)
    if len(whole.encode()) <= room:
        return whole
    pieces, used = [], len("…".encode())
    if used > room:
        return ""
    for char in shown:
        piece = escape(char, quote=False)
        used += len(piece.encode())
        if used > room:
            break
        pieces.append(piece)
    return f"{''.join(pieces)}…"


def _score(score: float | None) -> str:
    """A score, in few characters whatever its size; an en dash for none."""
    if score is None:
        return "–"
    shown = short(score)
    return shown if len(shown) <= MOST_SCORE else f"{score:.3g}"
