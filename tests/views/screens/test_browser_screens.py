"""The browser's screens over made-up runs: keys, filters, order, columns, flips, growing runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.screens import press, see
from tests.views.tables import answer
from textual.widgets import Input

from terminal.keys import keys_on
from views.browser.actions import ACTIONS, HINTS, LISTS, TEXTS
from views.browser.app import BrowseApp


async def test_from_runs_to_a_case_and_back(fakes: Any) -> None:
    made = fakes.library()
    app = BrowseApp(made)
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "", "recall@5 0.50", "2026-01-02 03:04")
        await see(pilot, "j enter", " new  4 cases, 1 fails")
        await see(pilot, "down down enter", "3/4 new  q3", "Thirty days. ✓ For ever. ‼")
        await see(pilot, "l", "4/4 new  q5")
        await see(pilot, "right", "this is the last case")
        await see(pilot, "h left escape", "> q2")
        await pilot.press("q", "q")
    assert app.return_code == 0
    assert made.runs["new"].closed


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("/ f a i l i n g space o n l y enter", "1"),
        ("F", "1"),
        ("F F", "1235"),
        ("/ r e a s o n = o u t c o m e enter", "1"),
        ("A t a g enter enter", "13"),
        ("A t enter enter", "13"),
        ("/ t a g = o d d enter", "25"),
        ("/ q 3 enter", "3"),
        ("/ q 3 escape", "1235"),
        ("/ r e c a l l @ 5 < 1 enter", "2"),
        ("S l a t e n c y enter S enter", "5321"),
        ("S - l a t e n c y enter", "5321"),
        ("S - l a t e n c y escape", "1235"),
        ("S o u t c o m e _ m a t c h enter", "1235"),
        ("S s t a t e enter", "1235"),
        ("S n o n s e n s e enter", "1235"),
        ("! r e c a l l @ 5 > 0 . 7 enter F", "2"),
    ],
)
async def test_what_a_list_shows(fakes: Any, keys: str, wanted: str) -> None:
    app = BrowseApp(fakes.library(), ["new"])
    names = {"=": "equals_sign", "<": "less_than_sign", ">": "greater_than_sign", "@": "at"}
    names |= {"-": "minus", ".": "full_stop", "/": "slash", "!": "exclamation_mark"}
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*(names.get(key, key) for key in keys.split()))
        await pilot.pause()
        assert fakes.listed(app) == wanted


async def test_a_wrong_filter_is_said_while_it_is_typed_and_changes_nothing(fakes: Any) -> None:
    app = BrowseApp(fakes.library(), ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("F", "slash", *["backspace"] * 9, *"nothing", "equals_sign", *"1")
        await pilot.pause()
        assert "this run has no such column" in fakes.shown(app)
        await press(pilot, "enter")
        assert fakes.listed(app) == "1"
        assert "as before: nothing" in fakes.shown(app)


async def test_chosen_columns_and_a_click_on_a_heading(fakes: Any) -> None:
    app = BrowseApp(fakes.library(), ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "C ~latency enter")
        heading = fakes.shown(app).splitlines()[2]
        assert "outcome_match" not in heading
        place = heading.index("latency")
        await pilot.click(offset=(place, 2))
        assert "↑latency" in fakes.shown(app)
        await pilot.click(offset=(place, 2))
        assert fakes.listed(app) == "5321"
        await pilot.click(offset=(3, 6))
        assert "q2" in next(row for row in fakes.shown(app).splitlines() if row.startswith(">"))
        await pilot.click(offset=(3, 6))
        await see(pilot, "", "3/4 new  q2")


async def test_a_page_of_the_list_is_turned(fakes: Any) -> None:
    table = fakes.table_of({f"q{at:02}": (1.0, 1.0) for at in range(60)})
    app = BrowseApp(fakes.Library({"new": fakes.Run("new", table)}), ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        screen: Any = app.screen
        page = screen.rows.size.height - 1
        for key, cursor in (("pagedown", page), ("pagedown", 2 * page), ("pageup", page)):
            await press(pilot, key)
            assert screen.rows.cursor == cursor


async def test_flips_of_two_runs(fakes: Any) -> None:
    """q1 broke, q3 was fixed, q2 succeeds in both; q4 and q5 are in one run only."""
    app = BrowseApp(fakes.library(), ["base", "new"])
    async with app.run_test(size=(80, 24)) as pilot:
        assert "3 cases in both  1 broke  1 fixed  flips only" in fakes.shown(app)
        assert fakes.listed(app) == "13"
        await pilot.press("a")
        assert fakes.listed(app) == "132"  # broke, fixed, unchanged
        await see(pilot, "slash ~broke enter enter", "1/1 base → new  q1")
        await see(pilot, "", "BROKE  base: ok; new: FAILS: another outcome")
        await see(pilot, "1", "1/1 base  q1")
        await pilot.press("escape", "escape", "exclamation_mark", *"recall@5>0", "enter")
        await pilot.press("slash", *["backspace"] * 9, "enter")
        await pilot.pause()
        assert sorted(fakes.listed(app)) == ["1", "2", "3"]
        assert "0 broke  1 fixed" in fakes.shown(app)


async def test_two_runs_begin_with_the_verdict(fakes: Any) -> None:
    """As from the list of runs: the first line of the comparison, in place of what counts as ok."""
    made = fakes.library()
    made.runs["new"].verdict = ("WORSE: finds less.", "Next: look.")
    for keys, runs in (((), ["base", "new"]), (("space", "j", "D"), [])):
        app = BrowseApp(made, runs)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press(*keys)
            while "WORSE: finds less." not in fakes.shown(app):  # another thread reads it
                await pilot.pause(0.02)


async def test_tab_goes_through_what_a_prompt_could_become(fakes: Any) -> None:
    """Values come with their numbers of cases; letters typed before Tab are not overtaken."""
    app = BrowseApp(fakes.library(), ["new"])
    async with app.run_test(size=(120, 24)) as pilot:
        await pilot.press("slash", *"fail", "tab")
        assert app.screen.query_one(Input).value == "failing"
        await pilot.press("tab")
        assert app.screen.query_one(Input).value == "failed"
        await pilot.press("shift+tab")
        assert app.screen.query_one(Input).value == "failing"
        await pilot.press("escape", "A", *"cat", "tab")
        assert app.screen.query_one(Input).value == "category"
        await pilot.press("escape", "S", *"-lat", "tab")
        assert app.screen.query_one(Input).value == "-latency"


async def test_runs_are_marked_and_compared_from_the_list(fakes: Any) -> None:
    app = BrowseApp(fakes.library())
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "D", "mark the base run with Space")
        await see(pilot, "space D", "this is the base run itself")
        await see(pilot, "j D", "base → new")
        await see(pilot, "escape enter D enter", "base → new")


async def test_runs_are_filtered_and_the_cursor_stays_on_its_run(fakes: Any) -> None:
    """The runs base and new; both have a mean recall@5 of 0.5, and new is under the cursor."""
    app = BrowseApp(fakes.library())
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "j slash ~new", "such as base -stopped", "1 of 2 runs")
        await see(pilot, "enter", "2 runs   / new: 1 shown")
        await press(pilot, "slash backspace backspace backspace enter")
        assert "> new" in "".join(row[:6] for row in fakes.shown(app).splitlines())
        await see(pilot, "slash ~recall@5>0.5 enter enter", "no run fits the filter")
        await pilot.press("slash", *["backspace"] * 12, *"category=x", "enter")
        await pilot.pause()
        assert "category: no run has such a metric" in fakes.shown(app)
        await pilot.press("slash", *["backspace"] * 12, *"-BASE complete", "enter", "enter")
        await pilot.pause()
        assert " new  4 cases" in fakes.shown(app)


async def test_a_run_that_grows_keeps_the_cursor_on_its_case(fakes: Any) -> None:
    made = fakes.library()
    run = made.runs["new"]
    run.state = "running"
    app = BrowseApp(made, ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "j", "in progress: 4 of 9")
        more = [answer("q6", question="another", status="error")]
        run.table = fakes.table_of(fakes.new_scores, more=more)
        run.tell()
        await pilot.pause()
        assert fakes.listed(app) == "12356"
        assert "5 cases, 2 fail" in fakes.shown(app)
        run.table = fakes.table_of(
            dict(reversed(fakes.new_scores.items()))
        )  # the finished file, in another order
        run.tell()
        await pilot.pause()
        assert fakes.listed(app) == "5321"
        assert "> q2" in fakes.shown(app)
        await pilot.press("enter")
        run.table = fakes.table_of(fakes.new_scores)
        run.tell()
        await see(pilot, "", "new  q2")


async def test_labelling_that_cannot_start_is_refused_before_it_asks(fakes: Any) -> None:
    made = fakes.library()
    made.command = "this run is not complete yet"
    app = BrowseApp(made, ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "L", "this run is not complete yet")
        assert "start it" not in fakes.shown(app)


async def test_labelling_says_that_there_is_no_terminal_to_hand_over(fakes: Any) -> None:
    started: list[Any] = []

    def launch(argv: Sequence[str]) -> int:
        started.append(argv)
        return 0

    app = BrowseApp(fakes.library(), ["new"], launch=launch)
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "L", "opens q1 with this run")
        await see(pilot, "enter", "cannot be handed to another program")
    assert started == []


async def test_the_help_window_names_its_own_pages(fakes: Any) -> None:
    app = BrowseApp(fakes.library(), ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "question_mark", "Tab other page   / search")
        assert "guideline" not in fakes.shown(app)
        await see(pilot, "tab", "terms side by side must all hold")


async def test_every_action_of_the_table_has_a_function_and_every_hint_an_action(
    fakes: Any,
) -> None:
    """Keys that move through all five screens: each is checked where it is open."""
    app = BrowseApp(fakes.library())
    checked = set()
    async with app.run_test(size=(120, 40)) as pilot:
        for keys in ("", "enter", "enter", "escape D enter", "a enter"):
            for key in keys.split():
                await pilot.press(key)
                await pilot.pause()
            screen: Any = app.screen
            checked.add(screen.where)
            assert set(screen.acts()) >= set(ACTIONS[screen.where])
            assert set(HINTS[screen.where].split()) <= set(ACTIONS[screen.where])
    assert checked == {"runs", "cases", "case", "flips", "pair"}


def test_the_table_of_keys_and_that_of_actions_have_the_same_actions() -> None:
    """Each key of the one table does something here, and only the theme is without a key."""
    for column, screens in (("lists", LISTS), ("pages", TEXTS)):
        actions = {name for screen in screens.split() for name in ACTIONS[screen]}
        assert actions - set(keys_on(column)) == {"theme"}
        assert set(keys_on(column)) - actions == set()
