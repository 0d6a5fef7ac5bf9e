"""Layouts at many sizes, messages in place, themes, what is shown from the start."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.contrasts import unreadable_on
from tests.rows import each_row
from tests.screens import press, see

from labeller import forms, windows
from labeller.app import LabelApp, run
from labeller.fetching import Arrival
from labeller.passages import Chunk
from terminal.frame import Look, cut
from terminal.safe_text import display

SIZES = [
    *((40, 10), (200, 60)),
    *(pytest.param(size, marks=pytest.mark.thorough) for size in ((50, 14), (80, 24), (160, 48))),
]
WINDOWS = {
    "main": [],
    "help": ["?"],
    "guideline": ["?", "tab"],
    "form": ["e"],
    "note": ["c"],
    "filter": ["/"],
    "probe": ["p"],
    "place": ["P"],
    "supports": ["1", "w"],
    "snippet": ["t"],
    "zoom": ["z"],
    "questions": ["b"],
}


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_every_window_at_every_size(bench: Any, size: tuple[int, int]) -> None:
    b = bench()
    async with b.app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        for name, keys in WINDOWS.items():
            await pilot.press(*keys)
            await pilot.pause()
            shown = b.shown().split("\n")
            assert len(shown) == size[1], name
            assert any(line.strip() for line in shown), name
            if name == "zoom":
                await pilot.press("z")
            elif name == "questions":
                await pilot.press("b")
            elif name != "main":
                await pilot.press("escape")
            await pilot.pause()
            assert b.app.screen is b.main, name


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_every_window_can_be_read_in_both_themes(bench: Any, theme: str) -> None:
    """On terminals of all colours and of 256, in each pane that has the focus."""
    b = bench(theme=theme)
    panes = {"pane 2": ["2", "tab"], "pane 3": ["tab"], "palette": [":"]}
    async with b.app.run_test(size=(120, 40)) as pilot:
        for name, keys in (WINDOWS | panes).items():
            await pilot.press(*keys)
            await pilot.pause()
            assert unreadable_on(b.app) == set(), name
            if b.app.screen is not b.main:
                await press(pilot, "escape")
            elif name in ("zoom", "questions"):
                await pilot.press(*keys)


async def test_small_window_says_so_and_keys_work(bench: Any) -> None:
    async with bench.run(size=(39, 9)) as (b, pilot):
        assert "too small: enlarge it, q quits" in b.shown()
        await pilot.press("2", "enter")
        assert b.marks == [], "what nobody sees is not labelled"
        for size in ((1, 1), (160, 48), (80, 24)):
            await pilot.resize_terminal(*size)
        await see(pilot, "", "case 1")
        await pilot.press("2", "enter")
        assert b.session.queue.summaries["q-01"].status == "labelled"


async def test_80x24_shows_what_the_plan_says(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        await pilot.press("2", "M", "7")
        lines = b.shown().split("\n")
    assert lines[0].startswith(" Q 1/4 q-01 | open 4 flag 0 skip 0 |")
    assert "BLIND" in lines[0]
    assert lines[1].startswith(" How long are audit logs kept in case 1")
    assert lines[2].startswith(" OPEN, answerable  needs: (2 part07.md) AND (7 part")
    assert lines[3].startswith("━━ passages 12 (1 read)")
    assert lines[4].startswith(">[ ]")
    assert lines[5].startswith(" [1]")
    assert sum(line[1:3] in ("[ ", "[1", "[2") for line in lines) == 12, "short texts: all rows"
    assert lines[16].startswith("── row 1 ──")
    assert lines[22].startswith(" row 7 meets need 2")
    assert "Enter ok+next" in lines[23]
    assert lines[23].endswith(" ? help ")


async def test_160x48_shows_questions_and_twelve_rows(bench: Any) -> None:
    async with bench.run(size=(160, 48)) as (b, _):
        shown = b.shown()
    assert all(f"q-0{number}" in shown for number in range(1, 5))
    assert shown.count("[ ]") == 12
    assert "v done  x unanswerable" in shown


async def test_long_texts_leave_the_list_a_third_of_the_lines(bench: Any) -> None:
    """Ten passages of 40 lines: at 120x40 all ten rows are shown, and their titles whole."""
    title = "The standard type hierarchy > Callable types > Generator functions"
    chunks = [
        Chunk(f"data-model/part{number:02d}.md", title, f"Line {number}.\n" * 40, f"c{number}")
        for number in range(10)
    ]
    b = bench(chunks={"q-01": chunks})
    for size, rows, whole in (((80, 24), 5, False), ((120, 40), 10, False), ((200, 60), 10, True)):
        async with b.app.run_test(size=size):
            lines = b.shown().split("\n")
        b = bench(chunks={"q-01": chunks})
        listed = [line for line in lines if "[ ]" in line]
        assert len(listed) == rows, size
        assert all("Generator functions" in line for line in listed), size
        assert all(f"> {title}  " in line for line in listed) == whole, size


async def test_the_list_of_questions_takes_its_part_of_a_wide_screen(bench: Any) -> None:
    """Ids lose their middle, not their ends: the turns of a conversation differ there."""
    names = [f"a-conversation-about-the-debugger-turn-{turn}" for turn in (2, 3)]
    async with bench.run(
        cases={name: {"id": name, "question": "And with a loop in it?"} for name in names},
        size=(120, 40),
    ) as (b, pilot):
        shown = b.shown()
        assert "turn-2 ." in shown
        assert "turn-3 ." in shown
        await pilot.resize_terminal(200, 60)
        await pilot.pause()
        assert b.main.questions.size.width == 59  # 30 of 100, but for a blank
        assert shown.count("And with a loop in it?") == 1, "the question that is open"
        assert b.shown().count("And with a loop in it?") == 3


async def test_the_help_says_what_blind_and_shuffled_mean(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        await pilot.press("?")
        shown = " ".join(b.shown().split())
    assert "BLIND Rank, scores and the labels of others are hidden" in shown
    assert "shuffled #0 The passages are in random order; 0 is the seed (--seed)" in shown


async def test_no_rank_or_score_is_shown_blind(bench: Any) -> None:
    async with bench.run(size=(200, 60)) as (b, pilot):
        await pilot.press("j", "i")
        assert "0.8" not in b.shown()
        assert "0.7" not in b.shown()
        assert [row.chunk.rank for row in b.main.chunks.rows] != list(range(1, 13)), "shuffled"


async def test_messages_in_place(bench: Any) -> None:
    b = bench(chunks={}, notices=["3 labels were taken from the journal"])
    b.source.known = {}
    b.store.problem = "NOT SAVED: disk full"
    async with b.app.run_test(size=(80, 24)) as pilot:
        await see(pilot, "", "3 labels were taken from the journal", "NOT SAVED: disk full")
        b.source._answer(Arrival("q-01", problem="the API does not answer"))
        await see(pilot, "", "the API does not answer", "F5 tries again")
        await see(pilot, "2", "no passage here; p searches")
        await pilot.press("x", "enter")
        assert b.session.queue.summaries["q-01"].status == "unanswerable", "labelling goes on"


async def test_light_theme_and_ascii(bench: Any) -> None:
    async with bench.run(theme="light", look=Look(ascii=True)) as (b, pilot):
        assert b.app.theme == "textual-light"
        await pilot.press("2", "t")
        b.shown().replace("…", "").encode("ascii")
        await pilot.press("escape")
        b.shown().replace("…", "").encode("ascii")


@pytest.mark.parametrize(
    ("options", "shown"), [({}, False), ({"blind": False}, True), ({"inspect": True}, True)]
)
def test_scores_are_shown_from_the_start_when_not_blind(
    bench: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool], shown: bool
) -> None:
    seen: list[bool] = []
    monkeypatch.setattr(LabelApp, "run", lambda app, mouse: seen.append(app.main.look.info))
    b = bench(**options)
    run(b.session, b.store, b.source)
    assert seen == [shown]


@each_row(
    ("width", "line"),
    [(9, "abc  defg"), (8, "abc  de…"), (5, "abc …"), (4, "abc…"), (3, "ab…"), (1, "…"), (0, "")],
)
def test_a_line_that_is_cut_says_so(width: int, line: str) -> None:
    spans = [("row", display(text)) for text in ("abc", "  ", "defg")]
    assert "".join(text for _, text in cut(spans, width)) == line


async def test_the_second_session_says_read_only_at_the_top(bench: Any) -> None:
    async with bench.run(read_only="maria is working on it") as (b, pilot):
        await see(pilot, "2", "Read-only: maria is working on it.")
        assert "READ-ONLY" in b.shown().splitlines()[0]
    assert b.events == []
    async with bench.run() as (b, pilot):
        await pilot.pause()
        assert "READ-ONLY" not in b.shown()
        await pilot.press("f")
        b.store.problem = "NOT SAVED: " + "a long way down/" * 9
        b.main.redraw()
        await pilot.pause()
        assert b.shown().splitlines()[0].rstrip().endswith("…")


def test_the_style_sheet_names_windows_that_there_are() -> None:
    """A window that was renamed would lose its place and size without any error."""
    sheet = Path(windows.__file__).with_name("labeller.tcss").read_text(encoding="utf-8")
    names = re.findall(r"\b[A-Z]\w+", " ".join(re.findall(r"^[A-Z].*(?= \{)", sheet, re.MULTILINE)))
    assert "CaseForm" in names
    assert [name for name in names if not (hasattr(windows, name) or hasattr(forms, name))] == []
