"""Searching, noting and taking out on the browser's screens, over made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.screens import press, see
from textual.widgets import Input

from records.notes import CaseNote
from views.browser.app import BrowseApp


async def test_a_page_is_searched_copied_noted_and_read_on(fakes: Any) -> None:
    made = fakes.library()
    app = BrowseApp(made, ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "enter n", "nothing is searched for yet")
        await pilot.press("slash", *"for ever")
        await pilot.pause()
        assert "Search:  2 hits" in fakes.shown(app)  # in the answer, and as a claim
        await see(pilot, "enter n", '"for ever": 2 of 2')
        await see(pilot, "N", '"for ever": 1 of 2')
        await pilot.press("slash", *"never", "escape", "n")
        assert '"for ever": ' in fakes.shown(app), "Escape keeps the words of before"
        await pilot.press("y")
        assert app.clipboard == "q1"
        await pilot.press("Y")
        assert app.clipboard.startswith("## q1, run new\n")
        assert "\nFAILS: another outcome" in app.clipboard
        await press(pilot, "c ~odd enter f")
        assert made.notes.own("q1") == CaseNote("odd", True, run="new")
        assert "flagged: odd (new)" in fakes.shown(app)
        await pilot.press("u", "u")
        assert made.notes.own("q1") == CaseNote("")
        assert "note or flag of q1" in fakes.shown(app)
        await see(pilot, "u", "no note or flag to undo")
        await pilot.press("U")
        assert made.notes.own("q1").text == "odd"
        await pilot.press("T")
        await app.workers.wait_for_complete()
        await see(pilot, "", "m ▁·┊█  0.50 → 1")
        await press(pilot, "full_stop")
        assert "2/4 new  q2" in fakes.shown(app), "the page was shown to its end"
        await see(pilot, "left_curly_bracket", "1/4 new  q1")
        await see(pilot, "l right_curly_bracket", "no case that fails after this one")
        await see(pilot, "l l f", "No space left on device")
        await pilot.press("escape")
        assert " *q1" in fakes.shown(app), "a case with a note has a sign"
        await press(pilot, "slash ~noted enter")
        assert fakes.listed(app) == "1"


async def test_the_help_is_searched_too(fakes: Any) -> None:
    app = BrowseApp(fakes.library(), ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "question_mark tab slash ~flagged", "Search:  1 hit ")


async def test_n_shows_what_failing_cases_have_in_common(fakes: Any) -> None:
    """Of 60 cases 24 of the 30 with the tag `odd` fail, and 3 of the others."""
    failing = {*range(1, 49, 2), 0, 2, 4}
    scores = {f"q{at:02}": (1.0, float(at not in failing)) for at in range(60)}
    fine = dict.fromkeys(scores, (1.0, 1.0))
    names = {"base": fine, "new": scores}
    before = "Of the questions that were ok before, those"
    for runs, whom, verb in ((["new"], "Questions", "fail"), (["base", "new"], before, "broke")):
        made = {name: fakes.Run(name, fakes.table_of(values)) for name, values in names.items()}
        app = BrowseApp(fakes.Library(made), runs)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            await press(pilot, "n")
            assert "with tag odd" in fakes.shown(app), runs
            await press(pilot, "enter")
            said = f"{whom} with tag odd {verb} more often: 24 of 30, against 3 of 30 others "
            said += "(p < .001)"
            assert said in fakes.shown(app), runs
            shown = fakes.shown(app).splitlines()
            assert sum(line[2:].startswith("q") for line in shown) == (30 if verb == "fail" else 24)
    app = BrowseApp(fakes.library(), ["new"])
    async with app.run_test(size=(120, 40)) as pilot:
        await see(pilot, "n", "no slice in which more cases fail than chance explains")


async def test_what_is_shown_is_counted_averaged_and_exported(fakes: Any) -> None:
    """recall@5: 1, 0.5, 1, 1; outcome_match: 0, 1, 1, 1."""
    made = fakes.library()
    app = BrowseApp(made, ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "C ~recall@5·outcome_match enter")
        lines = fakes.shown(app).splitlines()
        assert lines[1].startswith(" 1 failing: 1 ended differently than expected")
        assert lines[3].split() == ["mean", "of", "4", "0.88", "0.75"]
        await press(pilot, "semicolon 2 enter slash ~recall@5<1·or enter F slash ctrl+u enter F")
        lines = fakes.shown(app).splitlines()
        parts = [" filter: failing", "1 failing: 1 ended differently than expected"]
        assert lines[1].rstrip().split("  ") == parts
        assert lines[3].split() == ["mean", "of", "1", "1", "0"]
        await press(pilot, "X j")
        assert app.screen.query_one(Input).value == "new-cases.jsonl"
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        expected = ([("q1", 0)], ["outcome"], "jsonl", Path("new-cases.jsonl"))
        assert made.runs["new"].exported == expected
        assert "Wrote 1 case to new-cases.jsonl." in fakes.shown(app)
        await pilot.press("X", "c", "ctrl+u", *"taken", "enter")
        await app.workers.wait_for_complete()
        await see(pilot, "", "taken: exists already; choose another name.")
        await see(pilot, "A ~colour enter", "group by one of status")


async def test_words_that_differ_are_marked_on_both_sides(fakes: Any) -> None:
    made = fakes.library()
    made.runs["new"].answer = "Forty days. For ever."
    app = BrowseApp(made, ["base", "new"])
    async with app.run_test(size=(200, 50)) as pilot:
        await pilot.press("enter")
        page_screen: Any = app.screen
        words = [
            [page._text[start:end] for start, end, style in page._marks if style == "term"]
            for page in page_screen.pages
        ]
        assert words == [["Thirty"], ["Forty"]]
        await see(pilot, "slash ~retrieved·in·new enter", '"retrieved in new": 1 of 1')
        assert "right side" in fakes.shown(app), "the other side has the only hit"


async def test_one_esc_too_many_asks(fakes: Any) -> None:
    app = BrowseApp(fakes.library(), ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "escape", "Leave the program?")
        await press(pilot, "escape")
        assert not app._exit
        await press(pilot, "escape y")
        assert app._exit
