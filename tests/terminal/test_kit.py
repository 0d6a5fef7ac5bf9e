"""The parts of the kit that every screen shares: tables of actions, help pages, lines, undo."""

from __future__ import annotations

import io

import pytest
from textual.app import App
from textual.geometry import Size

from terminal.action_screen import ActionScreen, Acts, _keys_for
from terminal.actions import Action, ActionRefused, UndoSteps, shown_key
from terminal.frame import Look
from terminal.help import keys_page
from terminal.line_mode import LineTerminal

ACTIONS = (
    Action("down", ("j", "down"), "down", "Next row."),
    Action("top", ("g",), "first", "First row.", then="g"),
    Action("stop", ("x",), "stop", "Cannot be done.", part="End"),
    Action("help", ("?", "f1"), "help", "This page.", part="End"),
)


def test_each_key_has_its_action_under_the_name_that_textual_gives_it() -> None:
    keys = _keys_for(ACTIONS, {"down": "n"})
    assert {key: action.id for key, (action, _) in keys.items()} == {
        "n": "down",
        "g": "top",
        "x": "stop",
        "question_mark": "help",
        "f1": "help",
    }
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
    app: App[None] = App()
    async with app.run_test(size=(60, 8)) as pilot:
        screen = Counter()
        await app.push_screen(screen)
        await pilot.pause()

        def shown() -> str:
            return "\n".join(row.text for row in screen._compositor.render_strips(Size(60, 8)))

        assert "j down" in shown()
        assert "? help" in shown()
        assert screen.take_key("j", "j")
        assert screen.take_key("g", "g")
        await pilot.pause()
        assert "g to go on, Esc" in shown()
        assert screen.take_key("j", "j")  # is not `down`: it ends what was started
        assert screen.acted == ["down"]
        for _ in range(2):
            screen.take_key("g", "g")
        assert screen.acted == ["down", "top"]
        assert screen.take_key("x", "x")
        await pilot.pause()
        assert "there is nothing to stop" in shown()
        assert not screen.take_key("y", "y")
        screen.dismiss()
        screen.dismiss()  # a second time closes nothing
        await pilot.pause()
        assert len(app.screen_stack) == 1
