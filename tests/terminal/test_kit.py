"""The parts of the kit that every screen shares: tables of actions, help pages, lines, undo."""

from __future__ import annotations

import io
from pathlib import Path
from typing import ClassVar

import pytest
from tests.screens import press, see, shown
from textual.command import CommandPalette, SearchIcon

from terminal.action_screen import ActionScreen, Acts, _keys_for
from terminal.actions import Action, ActionRefused, UndoSteps, shown_key
from terminal.app import STYLE_SHEET, StyleSheets, TerminalApp
from terminal.frame import Look
from terminal.help import HelpScreen, keys_page
from terminal.line_mode import LineTerminal
from terminal.safe_text import display
from terminal.text_pane import TextPane
from terminal.windows import Palette

ACTIONS = (
    Action("down", ("j", "down"), "down", "Next row."),
    Action("top", ("g",), "first", "First row.", then="g"),
    Action("stop", ("x",), "stop", "Cannot be done.", part="End"),
    Action("help", ("?", "f1"), "help", "This page.", part="End"),
)


def test_each_key_has_its_action_under_the_name_that_textual_gives_it() -> None:
    keys = _keys_for(ACTIONS, {"down": "n"})
    expected = {"n": "down", "g": "top", "x": "stop", "question_mark": "help", "f1": "help"}
    assert {key: action.id for key, (action, _) in keys.items()} == expected
    assert keys["f1"][1] == 1  # the second key of its action


def test_the_help_page_has_headings_and_marks_where_they_stand() -> None:
    text, marks = keys_page(ACTIONS, lambda action: shown_key(action.keys[0]))
    assert text.splitlines()[0] == "Move"
    assert "" in text.splitlines()  # a blank line before the second part
    headings = [text[start:end] for start, end, style in marks if style == "rule"]
    assert headings == ["Move", "End"]
    keys = [text[start:end] for start, end, style in marks if style == "key"]
    assert keys == ["j", "g", "x", "?"]


def test_lines_end_with_q_or_the_end_and_come_without_blanks() -> None:
    out = io.StringIO()
    typed = io.StringIO(" a b \n\nq\nnever\n")
    assert list(LineTerminal(typed, out, "go on").lines()) == ["a b", ""]
    assert out.getvalue() == "go on> " * 3
    assert list(LineTerminal(io.StringIO("x"), out).lines()) == ["x"]


def test_a_line_is_said_harmlessly() -> None:
    out = io.StringIO()
    LineTerminal(io.StringIO(), out).say("a\x1b[2Jb")
    assert out.getvalue() == "a\u241b[2Jb\n"


def test_undo_and_redo_walk_the_steps_and_a_new_step_ends_redo() -> None:
    steps: UndoSteps[str] = UndoSteps()
    steps.add("a")
    steps.add("b")
    steps.undo()
    assert (steps.done, steps.undone) == (["a"], ["b"])
    steps.redo()
    assert (steps.done, steps.undone) == (["a", "b"], [])
    steps.undo()
    steps.add("c")
    assert (steps.done, steps.undone) == (["a", "c"], [])
    with pytest.raises(IndexError):
        steps.redo()


class Counter(ActionScreen[None]):
    """Counts what was done."""

    def __init__(self) -> None:
        super().__init__(ACTIONS, ["down", "top"], Look(ascii=True))
        self.acted: list[str] = []

    def compose(self) -> list[object]:  # type: ignore[override]
        return [self.end]

    def show(self) -> None:
        """Nothing but the status line."""

    def acts(self) -> Acts:
        return {
            "down": lambda: self.acted.append("down"),
            "top": lambda: self.acted.append("top"),
            "stop": self.stop,
            "help": lambda: None,
        }

    def stop(self) -> None:
        raise ActionRefused("there is nothing to stop")


async def test_a_screen_does_what_its_table_says() -> None:
    """`g` waits for its second key; another key drops it; what is refused is said."""
    app = Kit()
    async with app.run_test(size=(60, 8)) as pilot:
        screen = Counter()
        await app.push_screen(screen)
        await see(pilot, "", "j down", "? help")
        assert screen.take_key("j", "j")
        assert screen.take_key("g", "g")
        await see(pilot, "", "g to go on, Esc")
        assert screen.take_key("j", "j")  # is not `down`: it ends what was started
        assert screen.acted == ["down"]
        for _ in range(2):
            screen.take_key("g", "g")
        assert screen.acted == ["down", "top"]
        assert screen.take_key("x", "x")
        await see(pilot, "", "there is nothing to stop")
        assert not screen.take_key("y", "y")
        screen.dismiss()
        screen.dismiss()  # a second time closes nothing
        await pilot.pause()
        assert len(app.screen_stack) == 1


class Reader(ActionScreen[None]):
    """One text, and nothing else."""

    def __init__(self, text: str) -> None:
        super().__init__(ACTIONS, ["down"], Look(ascii=True))
        self.pane = TextPane(id="text")
        self._shown = text

    def compose(self) -> list[object]:  # type: ignore[override]
        return [self.pane, self.end]

    def show(self) -> None:
        """Show the text."""
        self.pane.show(display(self._shown))

    def acts(self) -> Acts:
        return {}


class Kit(TerminalApp):
    """An application of the kit, without anything of its own."""

    CSS_PATH: ClassVar[StyleSheets] = [STYLE_SHEET]
    CSS = "#text { height: 1fr; } #end { height: 2; }"
    FAILURE = "{file}"


async def test_words_are_searched_in_a_text_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hits in 40 lines: line 5, line 20 (over a line end) and line 38."""
    lines = [f"line {number}" for number in range(1, 41)]
    lines[4], lines[19], lines[20], lines[37] = "Two Words", "two", "words", "two  words [b]"
    app, screen = Kit(), Reader("\n".join(lines))
    async with app.run_test(size=(40, 12)) as pilot:
        await app.push_screen(screen)
        await pilot.pause()
        with pytest.raises(ActionRefused, match="/ asks for words"):
            screen.next_hit(screen.pane, 1)
        screen.ask_search(screen.pane)
        await pilot.pause()
        await see(pilot, "~two·words", "3 hits")
        await see(pilot, "enter", '"two words": 1 of 3')
        for at in (2, 3, 1):
            screen.next_hit(screen.pane, 1)
            await see(pilot, "", f"{at} of 3")
        screen.next_hit(screen.pane, -1)
        await see(pilot, "", "two  words [b]")
        hits = [s.text for row in range(10) for s in screen.pane.render_line(row) if "wo" in s.text]
        assert hits == ["two  words"]  # the marked stretch, apart from what stands around it
        assert screen.pane.search("absent") == 0
        assert screen.pane.next_hit(1) == '"absent" is not in this text'

        with pytest.raises(ActionRefused, match="no shell"):
            app.suspend_to_shell()
        monkeypatch.setenv("TERM", "linux")
        message = app.copy_out("a\x1b[2Jb", "text")
        assert "no clipboard" in message
        assert Path(message.rpartition(" ")[2]).read_text("utf-8") == "a\u241b[2Jb\n"

        screen.ask_to_leave()
        await see(pilot, "", "Leave the program?")
        await press(pilot, "escape")
        assert app.is_running
        await app.push_screen(Palette())
        await pilot.pause()
        assert not app.screen.query_one(SearchIcon).display, "an emoji is no fixed width"
        await pilot.press(*"xyzzy", "pageup", "pagedown")  # nothing to go to: nothing happens
        assert isinstance(app.screen, CommandPalette)
        app.screen.dismiss()


async def test_a_help_page_is_searched_and_its_rows_hang() -> None:
    """At 50 columns a sentence goes on below its beginning: 20 + 1 cells and two margins of 1."""
    rows = [Action("down", ("j",), "down", "Go to the next row of the list, or the text.")]
    page = keys_page(rows, lambda action: action.keys[0])
    app = Kit()
    async with app.run_test(size=(50, 10)) as pilot:
        await app.push_screen(HelpScreen([page], "Esc back"))
        await pilot.pause()
        lines = shown(app).splitlines()
        assert any(row.startswith("  j" + " " * 20 + "Go to the next") for row in lines), lines
        assert any(row.startswith(" " * 23 + "list, or") for row in lines), lines
        await see(pilot, "slash ~list enter", '"list": 1 of 1')
