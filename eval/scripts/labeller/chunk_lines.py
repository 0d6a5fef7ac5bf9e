"""What the lines of a list of chunks say: marks, paths, the start of each text. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Collection

from labeller.rows import ChunkRow
from labeller.session import Session
from terminal.frame import Look, rule
from terminal.lists import Line, Span
from terminal.safe_text import DisplayText, cells, display, fit, one_line


def path_of(rel_path: str, heading_path: str) -> DisplayText:
    """`faq.md > Billing > Plans`."""
    return one_line(f"{rel_path} > {heading_path}" if heading_path else rel_path)


def short_path(rel_path: str, heading_path: str, width: int) -> DisplayText:
    """The path on `width` cells at most: the middle goes first, then folders, then ends."""
    full = path_of(rel_path, heading_path)
    if cells(full) <= width:
        return full
    last = heading_path.rpartition(" > ")[2]
    middle = " > … > " if " > " in heading_path else " > "
    name = rel_path.rpartition("/")[2]
    for shown in (f"{rel_path}{middle}{last}", f"{name}{middle}{last}"):
        if last and cells(one_line(shown)) <= width:
            return one_line(shown)
    if not last:
        return fit(one_line(name), width)
    half = max(1, width * 2 // 5)
    start = one_line(name) if cells(one_line(name)) <= half else fit(one_line(name), half)
    return fit(one_line(f"{start} > {last}"), width)


def preview(text: str, pattern: re.Pattern[str] | None) -> DisplayText:
    """The text on one line, from a little before the question's first word in it."""
    head = one_line(text, 2048)
    match = pattern.search(head) if pattern else None
    if match is None or match.start() < 40:
        return DisplayText(head.lstrip())
    start = head.find(" ", match.start() - 24) + 1
    return DisplayText("…" + head[start:])


def mark_sign(letters: str) -> str:
    """`[ ] `, `[A] `, `[AB]`, and `[A+]` from three groups on."""
    if len(letters) > 2:
        letters = f"{letters[0]}+"
    return f"[{letters or ' '}]".ljust(4)


SUPPORT_SIGNS = {"moved": "!", "fuzzy": "?", "heading": "^"}
"""How the support of a row was found, where it was not found exactly."""


def chunk_line(
    row: ChunkRow, width: int, look: Look, shown: DisplayText, longest: int, *, sign: str
) -> Line:
    """One row: `sign` (cursor, range), mark, grade, snippet, key, path, start of its text.

    `longest` is the width of the longest path, so that the texts begin in one column.
    """
    snippet = '"' if row.snippets and not row.auto else "~" if row.auto else " "
    support = SUPPORT_SIGNS.get(row.state, " ")
    unread = " " if row.seen else look.unread
    grade = " " if row.grade is None or not row.marked else f"{row.grade:g}"
    head = f"{sign}{mark_sign(row.letters)}{grade}{snippet}{support}{unread}"
    spans: list[Span] = [
        ("marked" if row.marked else "row", display(head)),
        ("key", display(f"{row.label:>3} ")),
    ]
    used = len(head) + 4
    if look.info:
        spans.append(("dim", _scores(row)))
        used += cells(spans[-1][1])
    left = width - used
    path_width = max(0, min(longest, left * 11 // 20)) if left > 30 else max(0, left)
    path = short_path(row.chunk.rel_path, row.chunk.heading_path, path_width)
    spans.append(("dim" if row.seen and not row.marked else "row", fit(path, path_width)))
    if left > path_width + 2:
        spans.append(("row", fit(DisplayText("  " + shown), left - path_width)))
    return tuple(spans)


def _scores(row: ChunkRow) -> DisplayText:
    rank = "  -" if row.rank is None else f"{row.rank:>3}"
    scores = (row.score_vector, row.score_lexical, row.score_final)
    return display(
        f"{rank} " + " ".join("  -  " if s is None else f"{s:5.3g}"[:5] for s in scores) + " "
    )


def chunks_rule(
    session: Session,
    rows: Collection[ChunkRow],
    look: Look,
    width: int,
    words: str,
    *,
    focused: bool,
) -> Line:
    """How many chunks there are and were read, their order and filter."""
    seen = sum(row.seen for row in rows)
    probed = sum(bool(row.chunk.origin) for row in rows)
    more = f" + {probed} found" if probed else ""
    lost = len(session.lost_probes())
    more += f", {lost} search{'es' if lost > 1 else ''} lost (w)" if lost else ""
    order = session.row_order
    if order == "shuffled":
        order += f" #{one_line(session.seed, 8)}"
    left = f"chunks {len(rows) - probed}{more} ({seen} read) {look.rule * 2} order: {order}"
    right = f"filter: {one_line(words, 30)}" if words else ""
    return rule(look, width, left, right, focused=focused)
