"""Cases in full and conversations, as sections of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from decisions.case_verdict import Key
from records.results import UNREADABLE
from terminal.page import (
    Block,
    CaseRef,
    Heading,
    Part,
    PassageBlock,
    Prose,
    Quotation,
    Section,
    Tag,
)
from terminal.tables import counted
from views.case import Case
from views.case_blocks import ShownWith, case_blocks
from views.page import PASSAGE, TEXT
from views.text import anchor, one_line, visible

PAGE_BYTES = 5_000_000
"""Largest size of a page. Rows of the list and figures come first; answers in full fill the rest.
"""

FIGURE_BYTES, ROW_BYTES, BLOCK_BYTES = 700_000, 250, 130
"""Largest size of all figures, of a row of the list, and about that of the markup of a block."""

IN_PRINT, IN_TEXT = 10, 20
"""Answers in full that are printed, and that Markdown has."""

CASE = (
    *("notes", "question", "history", "answer", "why", "expected", "claims", "judged", "tools"),
    *("searches", "passages"),
)
"""The parts of a case that a report shows."""

SECTIONS = ("retrieval", "groundedness", "pipeline")
"""The sections that explain an answer beside another one."""

MOST_WHY = 6

ShownCase = tuple[Section, Case, ShownWith]


def case_section(case: Case, view: ShownWith) -> Section:
    """An answer in full, folded under its question and why it is listed."""
    title: list[Part] = [one_line(case.case_id, 80)]
    if case.repeat:
        title.append(f" (repeat {case.repeat})")
    if view.way:
        title.append(Tag(view.way, "bad" if view.way == "broke" else "good"))
    if case.no_answer:
        failed = case.status == "error"
        title.append(Tag("failed" if failed else UNREADABLE, "bad" if failed else None))
    if case.asked and case.asked.category:
        title.append(Tag(one_line(case.asked.category, 40)))
    why = "; ".join(filter(None, (", ".join(view.changes), _why(view))))
    return Section(
        tuple(title),
        case_blocks(case, CASE, view),
        anchor(case.case_id, case.repeat),
        level=3,
        lines=(one_line(case.question, 160), one_line(why, 300)),
    )


def _why(view: ShownWith) -> str:
    """Why an answer fails, the most harmful reasons first."""
    reasons = view.said.reasons
    more = [f"{len(reasons) - MOST_WHY} more"] if len(reasons) > MOST_WHY else []
    return "; ".join([*reasons[:MOST_WHY], *more])


def numbered(sections: Iterable[Section]) -> Iterator[Section]:
    """The cases in full: the first ones are printed, and are in Markdown."""
    for place, section in enumerate(sections):
        yield replace(section, screen=place >= IN_PRINT, page_only=place >= IN_TEXT)


def size_of(value: Any) -> int:
    """Approximate bytes of blocks on a page: their texts, escaped, and the markup around them."""
    if isinstance(value, str):
        return len(escape(visible(value)).encode())
    if isinstance(value, Quotation | PassageBlock):
        most = TEXT if isinstance(value, Quotation) else PASSAGE
        place = value.place if isinstance(value, PassageBlock) else ""
        marks = 13 * len(value.changed) if isinstance(value, Quotation) else BLOCK_BYTES
        return BLOCK_BYTES + size_of(value.text[:most]) + size_of(place) + marks
    if isinstance(value, tuple | list):
        return sum(map(size_of, value))
    names = getattr(type(value), "__dataclass_fields__", ())
    return sum(size_of(getattr(value, name)) for name in names) + BLOCK_BYTES * bool(names)


def conversations(cases: Sequence[tuple[Key, ShownCase]]) -> Iterator[Block]:
    """The conversations among the answers in full, turn by turn; those that fail first, the
    earliest turn first."""
    talks: dict[tuple[str, int], list[tuple[int, Case, ShownWith]]] = {}
    for _, (_, case, view) in cases:
        if case.conversation and case.turn:
            turns = talks.setdefault((case.conversation, case.repeat), [])
            turns.append((case.turn, case, view))
    for turns in talks.values():
        turns.sort(key=lambda turn: turn[0])
    failing = {
        key: [turn for turn, _, view in turns if view.failing] for key, turns in talks.items()
    }
    if not talks:
        return
    fails = sum(map(bool, failing.values()))
    yield Prose(
        f"In {fails:,} of {counted(len(talks), 'conversation')} a turn fails. Sorted by first "
        "failing turn. A conversation is shown with those of its turns that are among the cases in "
        "full."
    )
    for key in sorted(talks, key=lambda key: (not failing[key], failing[key][:1], key[0])):
        yield _conversation(key, talks[key], failing[key])


def _conversation(
    key: Key, turns: Sequence[tuple[int, Case, ShownWith]], failing: Sequence[int]
) -> Section:
    name, repeat = key
    first = failing[0] if failing else None
    tag = Tag(f"fails from turn {first}", "bad") if first else Tag("ok", "good")
    absent = sorted(set(range(1, turns[-1][0] + 1)).difference(turn for turn, _, _ in turns))
    verb = "fails" if len(failing) == 1 else "fail"
    text = f"{counted(len(turns), 'turn')}, {len(failing)} of them {verb}"
    if absent:
        text += f"; not shown: turn{'s' * (len(absent) > 1)} {', '.join(map(str, absent))}"
    blocks: list[Block] = []
    for turn, case, view in turns:
        state = Tag(one_line(_why(view), 200), "bad") if view.failing else Tag("ok", "good")
        ref = CaseRef(case.case_id, case.repeat)
        blocks.append(Heading((f"Turn {turn}: ", ref, " ", state), 4))
        blocks.append(Prose(one_line(case.question, 400), "strong"))
        own = case_blocks(case, ("answer", "searches"), ShownWith(brief=True))
        for block in own:
            if not isinstance(block, Heading):
                blocks.append(block)
            elif block.note:
                blocks.append(Prose(block.note, "quiet"))
    title = one_line(name, 80) + (f" (repeat {repeat})" if repeat else "")
    return Section((title, tag), blocks, level=3, lines=(text,))
