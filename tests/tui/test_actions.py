"""One test a row of the table of actions: press its key, see what it did. None may be missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from labeller.actions import ACTIONS, Action, actions_of, keymap_id, keymap_problems
from labeller.keys import keys_for

Run = Callable[[Any, Pilot[None], str], Awaitable[None]]
CHECKS: dict[str, Run] = {}


def check(name: str) -> Callable[[Run], Run]:
    """Register the check of one action."""

    def register(run: Run) -> Run:
        assert name not in CHECKS
        CHECKS[name] = run
        return run

    return register


def status(b: Any) -> str:
    """The message on the status line."""
    return str(b.main._message[1])


async def marks(b: Any) -> list[str]:
    """The labels of the marked rows."""
    return [row.label for row in b.session.rows() if row.marked]


@check("down")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.main.chunks.cursor == 1
    assert b.session.rows()[1].seen
    assert not b.session.rows()[2].seen


@check("up")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("j", "j", key)
    assert b.main.chunks.cursor == 1


@check("first")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("j", "j", key)
    assert b.main.chunks.cursor == 0


@check("top")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("j", "j", key, "g")
    assert b.main.chunks.cursor == 0


@check("last")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.main.chunks.cursor == 11


@check("page-down")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.main.text.top == 4  # half of the 8 lines in view


@check("page-up")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("ctrl+d", "ctrl+d", key)
    assert b.main.text.top == 4


@check("line-down")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.main.text.top == 1


@check("line-up")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("J", "J", key)
    assert b.main.text.top == 1


@check("next-question")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.session.current == "q-02"
    assert "case 2" in b.shown()


@check("previous-question")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("l", "l", key)
    assert b.session.current == "q-02"


@check("back")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("l", "l", key)
    assert b.session.current == "q-02"


@check("next-marked")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("3", key)
    assert b.main.chunks.cursor == 2


@check("previous-marked")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("3", "5", key)
    assert b.main.chunks.cursor == 4


@check("next-in-group")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("3", "M", "5", key, "b")
    assert b.main.chunks.cursor == 4
    await pilot.press(key, "c")
    assert "group C is empty" in status(b)


@check("next-pane")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.main.pane == "text"


@check("previous-pane")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("tab", key)
    assert b.main.pane == "chunks"


@check("mark")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("j", key)
    assert await marks(b) == ["2"]
    await pilot.press(key)
    assert await marks(b) == []


@check("mark-row")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(*"1234567890")
    assert await marks(b) == list("1234567890")
    await pilot.press("5")
    assert await marks(b) == list("123467890")


@check("mark-high-row")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert "(1-0, Esc)" in b.shown()
    await pilot.press("2")
    assert await marks(b) == [".2"]


@check("range")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("j", key, "j", "j", "space")
    assert await marks(b) == ["2", "3", "4"]


@check("grade-up")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("space", key)
    assert b.session.rows()[0].grade == 3


@check("grade-down")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("space", key)
    assert b.session.rows()[0].grade == 1


@check("grade")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key, "1")
    assert b.session.rows()[0].grade == 1
    await pilot.press(key, "x")
    assert "takes 0 to 3" in status(b)
    assert b.session.case.get("answerable") is True, "x was swallowed, not done"


@check("rate-mode")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key, "3", "1", "escape", "3")
    grades = [row.grade for row in b.session.rows()[:2]]
    assert grades == [3, 1]
    assert await marks(b) == ["1", "2", "3"]


@check("group")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", "2", key, "b")
    assert b.session.needs() == "A (2) or B (1)"


@check("share")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", key, "b")
    assert b.session.rows()[0].letters == "AB"


@check("shorten")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", key)
    heading = b.session.rows()[0].chunk.heading_path.split(" > ")[0]
    assert b.session.supports()[0].heading_path == heading


@check("lengthen")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", "<", "<", key)
    heading = b.session.rows()[0].chunk.heading_path.split(" > ")[0]
    assert b.session.supports()[0].heading_path == heading


@check("reanchor")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", "<", key)
    assert b.session.supports()[0].heading_path == b.session.rows()[0].chunk.heading_path


@check("supports")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", "2", key)
    assert "needs both 1 and 2" in b.shown()
    await pilot.press("d", "escape")
    assert len(b.session.supports()) == 1
    await pilot.press("u")
    assert len(b.session.supports()) == 2


@check("next-group")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", key, "2")
    assert b.session.needs() == "A (1) or B (2)"


@check("snippets")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.app.screen.where == "snippet"


@check("confirm")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert "Nothing is decided" in status(b)
    await pilot.press("2", key)
    assert b.session.brief("q-01").status == "labelled"
    assert b.session.current == "q-02"


@check("unanswerable")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", key)
    assert await marks(b) == []
    assert b.session.case["answerable"] is False


@check("answerable")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.session.case["answerable"] is True


@check("skip")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.session.brief("q-01").status == "skipped"
    assert b.session.current == "q-02"


@check("flag")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.session.brief("q-01").flagged
    assert "FLAG" in b.shown()


@check("note")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key, "h", "m", "enter")
    await pilot.pause()
    assert b.session.judgement["note"] == "hm"
    await pilot.press(key, "ctrl+t", "enter")
    await pilot.pause()
    assert b.session.judgement["decision"] == "cannot_tell"


@check("undo")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", "enter", key)
    assert b.session.current == "q-01"
    await pilot.press(key)
    assert await marks(b) == []


@check("redo")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", "u", key)
    assert await marks(b) == ["1"]


@check("filter")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key, *"billing", "enter")
    await pilot.pause()
    assert [row.chunk.text.count("billing") for row in b.main.rows] == [1] * 4
    await pilot.press("escape")
    assert len(b.main.rows) == 12


@check("next-hit")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("/", *"billing", "enter")
    await pilot.pause()
    await pilot.press("escape", "home", key)
    assert "billing" in b.main.row.chunk.text


@check("previous-hit")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("/", *"billing", "enter")
    await pilot.pause()
    await pilot.press("escape", "home", key)
    assert "billing" in b.main.row.chunk.text
    assert b.main.chunks.cursor > 5


@check("clear")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("v", key, "j", "space")
    assert await marks(b) == ["2"]
    await pilot.press("m", key, "b")
    assert b.session.rows()[1].letters == "A"


@check("probe")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key, *"extend k=50", "enter")
    await pilot.pause()
    assert ("probe", "q-01", "extend", "50") in b.source.asked
    assert b.session.rows()[-1].label == "+1"
    assert "1 new chunks" in status(b)


@check("add-path")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key, *"part03", "enter")
    await pilot.pause()
    assert [s.rel_path for s in b.session.supports()] == ["guide/part03.md"]
    await pilot.press(key, *"other.md > Free", "enter")
    await pilot.pause()
    assert b.session.supports()[-1].rel_path == "other.md"
    assert b.session.supports()[-1].heading_path == "Free"


@check("refetch")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", key)
    await pilot.pause()
    assert ("refetch", "q-01") in b.source.asked
    assert await marks(b) == ["1"]


@check("edit")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key, "X", "ctrl+s")
    await pilot.pause()
    assert b.session.case["question"].startswith("XHow long")


@check("edit-text")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    b.main._run_editor = lambda text: text.replace("How long", "Until when")
    await pilot.press(key)
    assert b.session.case["question"].startswith("Until when")
    b.main._run_editor = lambda text: "{"
    await pilot.press(key)
    assert "The record was not taken" in b.shown()
    await pilot.press("d")
    assert b.session.case["question"].startswith("Until when")


@check("new")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key, *"Why?", "ctrl+s")
    await pilot.pause()
    assert b.session.case["question"] == "Why?"
    assert b.session.current == "q-05"


@check("copy")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("1", key, *"Why? ", "ctrl+s")
    await pilot.pause()
    assert b.session.case["question"].startswith("Why? How long")
    assert b.session.current == "q-05"
    assert await marks(b) == []


@check("delete")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    b.main.perform("delete")
    await pilot.press("n")
    assert b.session.knows("q-01")
    b.main.perform("delete")
    await pilot.press("y")
    assert not b.session.knows("q-01")
    await pilot.press("u")
    assert b.session.knows("q-01")


@check("copy-anchor")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    chunk = b.session.rows()[0].chunk
    assert b.app.clipboard == f"{chunk.rel_path} > {chunk.heading_path}"


@check("copy-text")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.app.clipboard == b.session.rows()[0].chunk.text


@check("toggle-questions")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert "q-04" in b.shown()
    await pilot.press("j", "enter")
    await pilot.pause()
    assert b.session.current == "q-02"
    assert "q-04" not in b.shown()


@check("zoom")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    await pilot.pause()
    assert b.main.text.size.height > 14
    await pilot.press("q")
    await pilot.pause()
    assert b.main.text.size.height < 10


@check("info")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert "blind" in status(b)
    await pilot.press("B", key)
    assert "0.8" in b.shown()


@check("order")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    paths = [row.chunk.rel_path for row in b.main.rows]
    assert paths == sorted(paths)


@check("blind")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    assert all(row.rank is None for row in b.session.rows())
    await pilot.press(key)
    assert b.session.rows()[0].rank is not None
    assert "BLIND" not in b.shown()


@check("theme")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    b.main.perform("theme")
    assert b.app.theme == "textual-light"
    b.main.perform("theme")
    assert b.app.theme == "textual-dark"


@check("adjudicate")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert "no second annotator" in status(b)


@check("help")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert "Mark the chunk as support" in b.shown()
    await pilot.press("tab")
    assert "How to label" in b.shown()
    await pilot.press("escape")
    assert b.app.screen is b.main


@check("palette")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key, "3")
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.press("enter")
    await pilot.pause()
    assert b.session.current == "q-03"


@check("save")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    assert b.store.asked == ["save"]
    assert status(b) == "saved"


@check("redraw")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    before = b.shown()
    await pilot.press(key)
    assert b.shown() == before


@check("leave")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key)
    assert b.app._exit


@check("quit")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press("e", key)
    assert b.app._exit


@check("interrupt")
async def _(b: Any, pilot: Pilot[None], key: str) -> None:
    await pilot.press(key, "j", key)
    assert not b.app._exit
    assert "again" in status(b)
    await pilot.press(key)
    assert b.app._exit


MAIN = [action for action in ACTIONS if action.where == "main"]
LONG = "\n".join(f"line {number} of a text" for number in range(60))


def test_every_action_has_a_check() -> None:
    assert set(CHECKS) == {action.id for action in MAIN}


def test_the_table_is_sound() -> None:
    names = [keymap_id(action) for action in ACTIONS]
    assert len(names) == len(set(names))
    assert keymap_problems({}) == []
    assert all(action.label and action.help.endswith(".") for action in ACTIONS)


def test_every_key_of_the_table_is_bound() -> None:
    for where in ("main", "snippet", "adjudicate"):
        keys = keys_for(where, {})
        for action in actions_of(where):
            for number, key in enumerate(action.keys, start=1):
                wanted = str(number % 10) if action.id == "mark-row" else ""
                assert keys[textual_name(key)] == (action.id, wanted)


def textual_name(key: str) -> str:
    """The name of a one-character key, written out by hand for the signs that the table uses."""
    names = {
        "?": "question_mark",
        "/": "slash",
        ".": "full_stop",
        "+": "plus",
        "=": "equals_sign",
        "-": "minus",
        "'": "apostrophe",
        "<": "less_than_sign",
        ">": "greater_than_sign",
        "@": "at",
        "&": "ampersand",
        "}": "right_curly_bracket",
        "{": "left_curly_bracket",
    }
    return names.get(key, key)


@pytest.mark.parametrize("action", MAIN, ids=lambda action: action.id)
async def test_action(bench: Any, action: Action) -> None:
    options: dict[str, Any] = {}
    if action.id.startswith(("page-", "line-")):
        options["chunks"] = {"q-01": [bench.long_chunk(LONG)]}
    made = bench(**options)
    async with made.app.run_test(size=(80, 24), notifications=True, tooltips=True) as pilot:
        await CHECKS[action.id](made, pilot, action.keys[0] if action.keys else "")
