"""Each action of the main screen by its key: what is pressed, and what is so then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.labeller.screen.conftest import TEXTS
from tests.screens import press, see

from labeller import case_keys
from labeller.actions import ACTIONS, actions_of, all_actions, keymap_problems
from records.tool_calls import ToolCall
from terminal.actions import ActionRefused, keymap_id

LONG = "\n".join(f"line {number} of a text" for number in range(60))
IDS = ["q-01", "q-02", "q-03", "q-04"]
ROWS = [str(number) for number in range(1, 13)]

READ: Final[dict[str, Callable[[Any], Any]]] = {
    "answerable": lambda b: b.session.case.get("answerable"),
    "asked": lambda b: b.source.asked[-1],
    "clipboard": lambda b: b.app.clipboard,
    "current": lambda b: b.session.current,
    "cursor": lambda b: b.main.chunks.cursor,
    "decision": lambda b: b.session.judgement["decision"],
    "exit": lambda b: b.app._exit,
    "flagged": lambda b: b.session.queue.summaries["q-01"].flagged,
    "grades": lambda b: [row.grade for row in b.session.rows()[:2]],
    "heading": lambda b: b.session.supports()[-1].heading_path,
    "hits": lambda b: [row.chunk.text.count("billing") for row in b.main.chunks.rows],
    "ids": lambda b: b.session.queue.ids,
    "last row": lambda b: b.session.rows()[-1].label,
    "line": lambda b: b.main.text.top,
    "marks": lambda b: b.marks,
    "needs": lambda b: b.session.view.needs(),
    "note": lambda b: b.session.judgement["note"],
    "open need": lambda b: b.session.layout.open,
    "pane": lambda b: b.main.panes.focus,
    "parts": lambda b: [row.parts for row in b.session.rows()[:2]],
    "paths": lambda b: [row.chunk.rel_path for row in b.main.chunks.rows],
    "question": lambda b: b.session.case["question"].partition(" long ")[0],
    "rank": lambda b: b.session.rows()[0].rank,
    "rows": lambda b: len(b.main.chunks.rows),
    "screen": lambda b: type(b.app.screen).__name__,
    "seen": lambda b: [row.label for row in b.session.rows() if row.seen],
    "state": lambda b: b.session.queue.summaries["q-01"].status,
    "store": lambda b: b.store.asked,
    "supports": lambda b: [support.rel_path for support in b.session.supports()],
    "text": lambda b: "billing" in b.main.chunks.row.chunk.text,
    "theme": lambda b: b.app.theme,
}
"""What can be looked at; `shown`, `hidden` and `status` are words that stand there, or not."""

Step = tuple[str, str, Any]

STEPS: Final[dict[str, list[Step]]] = {
    # marking; row 1 is part 3, row 2 part 7 in the order of the seed
    "mark": [("j *", "marks", ["2"]), ("*", "marks", [])],
    "mark-row": [("1 2 3 4 5 6 7 8 9 0", "marks", ROWS[:10]), ("5", "marks", [*"12346789", "10"])],
    "mark-high-row": [("*", "shown", "(1-9 0, Esc)"), ("2", "marks", ["12"])],
    "range": [("j * j j space", "marks", ["2", "3", "4"])],
    "grade-up": [("space *", "grades", [3, None])],
    "grade-down": [("space *", "grades", [1, None])],
    "grade": [
        ("* 1", "grades", [1, None]),
        ("* x", "status", "takes 0-3"),
        ("", "answerable", True),  # x was swallowed, not done
    ],
    "rate-mode": [("* 3 1 escape 3", "grades", [3, 1]), ("", "marks", ["1", "2", "3"])],
    "group": [
        ("1 2 * 2", "needs", "(2 part07.md) AND (1 part03.md)"),
        ("* 0", "needs", "2 part07.md; not required: 1 part03.md"),
    ],
    "need": [
        ("1 * ' 2 * 1 3", "needs", "(1 part03.md or 3 part02.md) AND (2 part07.md)"),
        ("", "shown", "(1 part03.md or 3 part02.md) AND (2 part07.md) marks join need 1"),
        ("* 0 4", "shown", "; not required: 4 part"),
        ("* 7", "status", "There is no need 7"),
        ("*", "shown", "(1-9 0 ', Esc)"),
    ],
    "next-group": [("1 * 2", "needs", "(1 part03.md) AND (2 part07.md)")],
    "next-need": [
        ("1 M 2 *", "open need", 1),
        ("* M enter", "current", "q-01"),
        ("", "status", "Need 3 has no passage yet"),
    ],
    "previous-need": [("1 M 2 M 3 *", "open need", 2)],
    "turn-needs": [("1 2 *", "shown", "ways: (1 part03.md) or (2 part07.md)")],
    "share": [("1 * 2", "parts", [(1, 2), ()]), ("M 2 up * &", "parts", [(1, 2, 3), (3,)])],
    "shorten": [("1 *", "heading", "Part 3")],
    "lengthen": [("1 < < *", "heading", "Part 3")],
    "reanchor": [("1 < *", "heading", "Part 3 > Section 3")],
    "supports": [
        ("1 2 *", "shown", "The answer needs (1 part03.md or 2 part07.md)."),
        ("d escape", "supports", ["guide/part07.md"]),
        ("u", "supports", ["guide/part03.md", "guide/part07.md"]),
    ],
    "snippets": [("*", "screen", "SnippetScreen")],
    # deciding
    "confirm": [
        ("*", "status", "Nothing is decided"),
        ("2 *", "state", "labelled"),
        ("", "current", "q-02"),
    ],
    "unanswerable": [("1 *", "marks", []), ("", "answerable", False)],
    "answerable": [("*", "answerable", True)],
    "skip": [("*", "state", "skipped"), ("", "current", "q-02")],
    "flag": [("*", "flagged", True), ("", "shown", "FLAG")],
    "note": [("* h m enter", "note", "hm"), ("* ctrl+t enter", "decision", "cannot_tell")],
    "undo": [("1 enter *", "current", "q-01"), ("*", "marks", [])],
    "redo": [("1 u *", "marks", ["1"])],
    # moving; of 24 lines the text has 17 beside one row
    "down": [("*", "cursor", 1), ("", "seen", ["1", "2"])],
    "up": [("j j *", "cursor", 1)],
    "first": [("j j *", "cursor", 0)],
    "top": [("j j * g", "cursor", 0)],
    "last": [("*", "cursor", 11)],
    "next-marked": [("3 *", "cursor", 2)],
    "previous-marked": [("3 5 *", "cursor", 4)],
    "page-down": [("*", "line", 8)],
    "page-up": [("ctrl+d ctrl+d *", "line", 8)],
    "line-down": [("*", "line", 1)],
    "line-up": [("J J *", "line", 1)],
    "next-question": [("*", "current", "q-02"), ("", "shown", "case 2")],
    "previous-question": [("l l *", "current", "q-02")],
    "back": [("l l *", "current", "q-02")],
    "next-pane": [("*", "pane", "text")],
    "previous-pane": [("tab *", "pane", "chunks")],
    "next-in-group": [("3 M 5 * 2", "cursor", 4), ("* 3", "status", "no row meets need 3")],
    "read-on": [
        (" ".join("*" * 11), "cursor", 11),
        ("", "seen", ROWS),
        ("*", "status", "all rows here are read"),
    ],
    "go-to-row": [
        ("* 1 2 enter", "cursor", 11),
        ("", "marks", []),
        ("* 9 9 enter", "status", "no row 99 here"),
    ],
    "digits-look": [("* 3", "cursor", 2), ("", "marks", []), ("3", "marks", ["3"])],
    # finding
    "filter": [("* ~billing enter", "hits", [1] * 4), ("escape", "rows", 12)],
    "next-hit": [("/ ~billing enter", "rows", 4), ("escape home *", "text", True)],
    "previous-hit": [
        ("/ ~billing enter", "rows", 4),
        ("escape home *", "text", True),
        ("", "cursor", 11),
    ],
    "clear": [("v * j space", "marks", ["2"]), ("m * b", "parts", [(), (1,)])],
    "probe": [
        ("* ~extend_k=50 enter", "asked", ("probe", "q-01", "extend", "50")),
        ("", "last row", "+1"),
        ("", "status", "1 new chunk,"),
    ],
    "add-path": [
        ("* ~part03 enter", "supports", ["guide/part03.md"]),
        ("* ~other.md_>_Free enter", "supports", ["guide/part03.md", "other.md"]),
        ("", "heading", "Free"),
    ],
    "refetch": [("1 *", "asked", ("refetch", "q-01")), ("", "marks", ["1"])],
    # editing
    "edit": [("* X ctrl+s", "question", "XHow")],
    "new": [
        ("* ~Why?", "shown", "never change later) why Reference answer"),  # follows the question
        ("ctrl+s", "question", "Why?"),
        ("", "current", "why"),
        ("* ~Why_else? tab ctrl+u ~mine ctrl+s", "current", "mine"),
    ],
    "copy": [
        ("1 * ~Why?_ ctrl+s", "question", "Why? How"),
        ("", "current", "long-audit-logs-kept-case"),
        ("", "marks", []),
    ],
    "delete": [("* n", "ids", IDS), ("* y", "ids", IDS[1:]), ("u", "ids", IDS)],
    "copy-anchor": [("*", "clipboard", "guide/part03.md > Part 3 > Section 3")],
    "copy-text": [("*", "clipboard", f"Note 3 for q-01. {TEXTS[0]}")],
    # the view
    "toggle-questions": [
        ("*", "shown", "q-04"),
        ("j enter", "current", "q-02"),
        ("", "hidden", "q-04"),
    ],
    "info": [("*", "status", "blind"), ("B *", "shown", "0.8")],
    "order": [("*", "paths", [f"guide/part{number:02d}.md" for number in range(1, 13)])],
    "blind": [("", "rank", None), ("*", "rank", 3), ("", "hidden", "BLIND")],
    "theme": [("*", "theme", "textual-light"), ("*", "theme", "textual-dark")],
    # the program
    "help": [
        ("*", "shown", "Mark the passage as support"),
        ("tab", "shown", "How to label"),
        ("escape", "screen", "MainScreen"),
    ],
    "palette": [("* 3", "screen", "Palette"), ("enter", "current", "q-03")],
    "save": [("*", "store", ["save"]), ("", "status", "saved")],
    "suspend": [("1 *", "status", "there is no shell here"), ("", "marks", ["1"])],
    "leave": [("*", "exit", True)],
    "quit": [("e *", "exit", True)],
    "interrupt": [("* j *", "exit", False), ("", "status", "again"), ("*", "exit", True)],
}
"""By action: keys, then what is looked at, and how it is.

`*` is the action's own key; without one it is called by name, as the palette does. Letters behind
`~` are typed, `_` for a blank.
"""

PARTS = [*dict.fromkeys(action.part for action in actions_of("main"))]


@pytest.mark.parametrize("part", PARTS)
async def test_each_action_does_what_its_name_says(bench: Any, part: str) -> None:
    for action in actions_of("main"):
        if action.part != part or action.id not in STEPS:
            continue
        scrolled = action.id.startswith(("page-", "line-"))
        b = bench(chunks={"q-01": [bench.long_chunk(LONG)]}) if scrolled else bench()
        async with b.app.run_test(size=(80, 24), notifications=True, tooltips=True) as pilot:
            for keys, name, expected in STEPS[action.id]:
                for key in keys.split():
                    if key == "*" and not action.keys:
                        b.main.perform(action.id)
                    elif key.startswith("~"):
                        await pilot.press(*key[1:].replace("_", " "))
                    else:
                        await pilot.press(action.keys[0] if key == "*" else key)
                await pilot.app.workers.wait_for_complete()
                await pilot.pause()
                place = f"{action.id}: {keys}: {name}"
                words = " ".join((b.status if name == "status" else b.shown()).split())
                if name in ("shown", "status"):
                    assert expected in words, place
                elif name == "hidden":
                    assert expected not in words, place
                else:
                    assert READ[name](b) == expected, place


async def test_zoom(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        await press(pilot, "z")
        assert b.main.text.size.height > 14
        await press(pilot, "q")
        assert b.main.text.size.height < 10


async def test_conversation(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        await pilot.press("H")
        assert b.status == "nothing was said before this question"
        b.session.case["history"] = [{"role": "user", "content": f"Said {n}?"} for n in range(5)]
        b.main.panes.new_case()
        await see(pilot, "H", "Said 0?")
        assert b.main.panes.focus == "conversation"


async def test_redraw(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        while not b.session.rows()[0].seen:
            await pilot.pause()
        before = b.shown()
        await pilot.press("ctrl+l")
        assert b.shown() == before


async def test_tools(bench: Any) -> None:
    b = bench()
    calls = ToolCall("search", {"query": "hat"}, result="3 hats"), ToolCall("delete", error="down")
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.session.pool.calls[b.session.current] = calls
        await see(pilot, "T", '> [         ] search(query="hat")  gave 3 hats')
        await pilot.press("space", "j", "x")
        assert b.session.case["expected_tools"] == [
            {"name": "search", "arguments": {"query": "hat"}}
        ]
        assert b.session.case["forbidden_tools"] == ["delete"]
        assert "> [forbidden] delete()  failed: down" in b.shown()
        await see(pilot, "escape", "tool calls 2 (T)", "expected calls 1")
        await pilot.press("u", "u")
        assert "expected_tools" not in b.session.case


async def test_edit_text(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that is refused is offered again; an editor that fails then is refused too."""
    left = ["{", '{"id": "q-01", "question": "Until when?"}']

    def edit(app: object, text: str) -> str:
        if left:
            return left.pop()
        raise ActionRefused("the editor ended with 1; nothing was changed")

    monkeypatch.setattr(case_keys, "_edit_outside", edit)
    async with bench.run() as (b, pilot):
        await pilot.press("E")
        assert b.session.case["question"] == "Until when?"
        await see(pilot, "E", "The record was not accepted")
        await press(pilot, "e")
        assert b.status == "the editor ended with 1; nothing was changed"
        assert b.session.case["question"] == "Until when?"


def test_every_action_has_a_test_here() -> None:
    own = [name[5:].replace("_", "-") for name in globals() if name.startswith("test_")]
    core = {action.id for action in ACTIONS if action.where == "main"}
    assert core == core & {*STEPS, *own}
    assert STEPS.keys() <= core


def test_the_table_is_sound() -> None:
    names = [keymap_id(action) for action in all_actions()]
    assert len(names) == len(set(names))
    assert keymap_problems({}) == []
    assert all(action.label and action.help.endswith(".") for action in all_actions())


async def test_every_action_of_the_main_screen_has_a_function(bench: Any) -> None:
    async with bench.run() as (b, _):
        assert sorted(b.main.acts()) == sorted(action.id for action in actions_of("main"))
