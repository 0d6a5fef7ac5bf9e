"""Pages of cases while their files are still written, written anew, or lose the case."""

from __future__ import annotations

from typing import Any

from tests.screens import press, see
from tests.views.tables import answer

from views.browser.app import BrowseApp
from views.case import JudgedMetric


async def test_the_page_of_a_case_grows_with_its_run(fakes: Any) -> None:
    made = fakes.library()
    run = made.runs["new"]
    run.state = "running"
    app = BrowseApp(made, ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "G enter", "4/4 new  q5", "in progress: 4 of 9")
        await see(pilot, "l", "this is the last case")
        more = [answer("q6", question="What of q6?")]
        run.table = fakes.table_of(fakes.new_scores, more=more)
        run.tell()
        await see(pilot, "", "4/5 new  q5", "in progress: 5 of 9")
        await see(pilot, "l", "5/5 new  q6", "What of q6?")


async def test_what_is_said_of_a_case_later_comes_to_its_page(fakes: Any) -> None:
    made = fakes.library()
    run = made.runs["new"]
    app = BrowseApp(made, ["new"])
    async with app.run_test(size=(80, 60)) as pilot:
        await press(pilot, "enter")
        assert "late-verdict" not in fakes.shown(app)
        run.more = [JudgedMetric("late-verdict", "a judge", "ok")]
        run.tell()  # the table is what it was: verdicts are in none of its columns
        await see(pilot, "", "late-verdict")


async def test_new_cases_come_behind_those_of_a_filtered_list(fakes: Any) -> None:
    made = fakes.library()
    run = made.runs["new"]
    app = BrowseApp(made, ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "slash ~outcome_match=1 enter")
        assert fakes.listed(app) == "235"
        await see(pilot, "j enter", "2/3 new  q3")
        # q2 passes no more, q1 does now, and the finished file has another order
        scores = {"q5": (1.0, 1.0), "q3": (1.0, 1.0), "q2": (0.5, 0.0), "q1": (1.0, 1.0)}
        run.table = fakes.table_of(scores)
        run.tell()
        await see(pilot, "", "2/4 new  q3")
        order = []
        for key in ("h", "l", "l", "l"):
            await pilot.press(key)
            await pilot.pause()
            order.append(fakes.shown(app).split("new  ")[1][:2])
        assert order == ["q2", "q3", "q5", "q1"]


async def test_a_case_that_is_gone_stays_as_it_was_read(fakes: Any) -> None:
    made = fakes.library()
    run = made.runs["new"]
    app = BrowseApp(made, ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "j enter")
        for scores in ({"q1": (1.0, 0.0)}, {}):
            run.table = fakes.table_of(scores)
            run.tell()
            await see(pilot, "", "new  q2", "Thirty days", "not in the files any more")
        await see(pilot, "l", "new  q3", "the files do not hold this case now")
        await press(pilot, "escape")
        assert fakes.listed(app) == ""


async def test_a_pair_whose_case_left_one_run_stays_in_view(fakes: Any) -> None:
    made = fakes.library()
    app = BrowseApp(made, ["base", "new"])
    async with app.run_test(size=(80, 24)) as pilot:
        assert fakes.listed(app) == "13"
        await see(pilot, "enter", "base → new  q1")
        made.runs["base"].table = fakes.table_of({"q3": (0.0, 0.0)})
        made.runs["base"].tell()
        await see(pilot, "", "base → new  q1", "not in the files any more")
        await see(pilot, "1", "base does not hold this case any more")
        await see(pilot, "l", "base → new  q3")
        assert "not in the files any more" not in fakes.shown(app)


async def test_several_notices_are_counted_and_the_first_is_cut(fakes: Any) -> None:
    made = fakes.library()
    made.runs["new"].notices = ["pass.jsonl: 2 lines cannot be read " + "x" * 90, "another set"]
    app = BrowseApp(made, ["new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        line = fakes.shown(app).splitlines()[1]
        assert line.startswith(" pass.jsonl: 2 lines cannot be read xxx")
        assert line.endswith("… (and 1 more)")


async def test_a_key_reads_both_runs_again_on_lists_and_pages(fakes: Any) -> None:
    made = fakes.library()
    app = BrowseApp(made, ["base", "new"])
    async with app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "R", "files that changed are read again")
        assert [made.runs[name].looked for name in ("base", "new")] == [1, 1]
        await press(pilot, "enter R")
        assert [made.runs[name].looked for name in ("base", "new")] == [2, 2]
