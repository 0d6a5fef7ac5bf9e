"""Hostile text on every screen, any window, no colours, no runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.contrasts import unreadable_on
from tests.screens import press, see

from views.browser.app import BrowseApp
from views.browser.query import QueryError

SIZES = ((80, 24), pytest.param((200, 60), marks=pytest.mark.thorough))


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_text_is_shown_letter_by_letter_on_every_screen(
    fakes: Any, hostile: tuple[str, ...], size: tuple[int, int]
) -> None:
    """Run names, ids, questions, answers, claims, notes, metrics: all of them hold all of it."""
    app = BrowseApp(fakes.library(" ".join(hostile)))
    async with app.run_test(size=size) as pilot:
        seen = await fakes.press_everywhere(pilot, app)
        assert not app._exit, "a [@click=app.quit] was obeyed"
        assert app.screen is app.first
    text = "\n".join(seen)
    assert not set(text) & set("\x1b\x9b\x9d\x00\x07\u202e\ufeff\u2028")
    assert "[bold]" in text
    assert "[@click=app.quit]" in text


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_every_screen_can_be_read_in_both_themes(fakes: Any, theme: str) -> None:
    """On terminals of all colours and of 256."""
    app = BrowseApp(fakes.library(), theme=theme)
    async with app.run_test(size=(120, 40)) as pilot:
        seen = await fakes.press_everywhere(pilot, app, unreadable_on)
    assert set().union(*seen) == set()


async def test_a_click_on_hostile_text_does_nothing_else(fakes: Any) -> None:
    app = BrowseApp(
        fakes.library("[@click=app.quit]leave[/] " * 9), ["new" + "[@click=app.quit]leave[/] " * 9]
    )
    async with app.run_test(size=(80, 24)) as pilot:
        for y in range(24):
            await pilot.click(offset=(30, y))
        await pilot.pause()
        assert not app._exit


async def test_huge_lines_are_cut_and_do_not_stop_the_screen(fakes: Any) -> None:
    text = "x" * (1 << 20)
    app = BrowseApp(fakes.library(text), [f"new{text}"])
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "enter z G r G escape")
        assert "question" in fakes.shown(app).splitlines()[2]


@pytest.mark.parametrize(
    "size", [(1, 1), *(pytest.param(s, marks=pytest.mark.thorough) for s in [(20, 5), (300, 80)])]
)
async def test_any_size_of_window(fakes: Any, size: tuple[int, int]) -> None:
    app = BrowseApp(fakes.library())
    async with app.run_test(size=size) as pilot:
        await fakes.press_everywhere(pilot, app)
        await pilot.resize_terminal(80, 24)
        await see(pilot, "", "Runs  2 runs")


async def test_wide_windows_show_two_pages(fakes: Any) -> None:
    app = BrowseApp(fakes.library(), ["new"])
    async with app.run_test(size=(200, 60)) as pilot:
        await pilot.press("enter")
        line = next(row for row in fakes.shown(app).splitlines() if "── Question" in row)
        assert "── Retrieved" in line
        await see(pilot, "w", "right side")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        line = next(row for row in fakes.shown(app).splitlines() if "── Question" in row)
        assert "── Retrieved" not in line


async def test_signs_do_not_need_colours_and_ascii_needs_no_more(fakes: Any) -> None:
    app = BrowseApp(fakes.library(), ["new"], ascii_only=True, theme="light")
    async with app.run_test(size=(80, 24)) as pilot:
        assert fakes.shown(app).isascii()
        await see(pilot, "enter", "Thirty days. + For ever. !")
        assert fakes.shown(app).isascii()
        screen: Any = app.screen
        screen.perform("theme")
        assert app.theme == "textual-dark"


async def test_the_palette_runs_actions_and_opens_a_case_by_id(fakes: Any) -> None:
    app = BrowseApp(fakes.library(), ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("colon", *"q3")
        await pilot.pause(0.5)
        await see(pilot, "enter", "new  q3")


async def test_no_runs_at_all(fakes: Any) -> None:
    app = BrowseApp(fakes.Library({}))
    async with app.run_test(size=(80, 24)) as pilot:
        assert "No run here yet" in fakes.shown(app)
        await see(pilot, "enter", "there is no run yet")


def test_a_run_that_is_not_there_is_a_sentence(fakes: Any) -> None:
    with pytest.raises(ValueError, match="gone: no such folder"):
        BrowseApp(fakes.library(), ["gone"])
    cases: Any = BrowseApp(fakes.library(), ["new"]).first
    cases = cases.cases
    with pytest.raises(QueryError, match="near it: recall@5"):
        cases.set_success("recall@4>0")
    with pytest.raises(QueryError, match="write a condition on a score"):
        cases.set_success("failing")


async def test_a_crash_tells_where_and_not_what(fakes: Any) -> None:
    def fail(row: int) -> None:
        raise ZeroDivisionError("the text of an answer")

    made = fakes.library()
    made.runs["new"].detail = fail
    app = BrowseApp(made, ["new"])
    with pytest.raises(ZeroDivisionError):
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("enter")
    assert app.return_code == 1
    path = Path(app.crash_file)
    assert "the text of an answer" not in path.read_text(encoding="utf-8")
    path.unlink()
