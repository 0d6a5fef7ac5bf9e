"""Layouts at many sizes, messages in place, mouse, keymap, themes, and the order of quick keys."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from labeller.actions import ACTIONS, keymap_id, keymap_problems
from labeller.app import LabelApp, run
from labeller.display import display
from labeller.lines import Look, cut
from labeller.model import Arrival

SIZES = [(80, 24), (160, 48), (200, 60), (40, 10), (50, 14)]
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


async def test_small_window_says_so_and_keys_work(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(39, 9)) as pilot:
        assert "window too small, keys still work" in b.shown()
        await pilot.press("2", "enter")
        assert b.session.brief("q-01").status == "labelled"
        for size in ((1, 1), (160, 48), (80, 24)):
            await pilot.resize_terminal(*size)
        await pilot.pause()
        assert "case 2" in b.shown()


async def test_80x24_shows_what_the_plan_says(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2", "M", "7")
        lines = b.shown().split("\n")
    assert lines[0].startswith(" Q 1/4 q-01 | open 4 flag 0 skip 0 |")
    assert "BLIND" in lines[0]
    assert lines[1].startswith(" How long are audit logs kept in case 1")
    assert "needs: A (2) or B (7)" in lines[3]
    assert "chunks 12 (1 read)" in lines[4]
    assert sum(line[1:3] in ("[ ", "[A", "[B") for line in lines) == 8
    assert lines[5].startswith(">[ ]")
    assert lines[6].startswith(" [A]")
    assert lines[13].startswith("── row 1 ──")
    assert lines[22].startswith(" row 7 -> group B")
    assert "Enter ok+next" in lines[23]
    assert lines[23].endswith(" ? help ")


async def test_160x48_shows_questions_and_twelve_rows(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(160, 48)):
        shown = b.shown()
    assert all(f"q-0{number}" in shown for number in range(1, 5))
    assert shown.count("[ ]") == 12
    assert "v done  x unanswerable" in shown


async def test_no_rank_or_score_is_shown_blind(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(200, 60)) as pilot:
        await pilot.press("j", "i")
        assert "0.8" not in b.shown()
        assert "0.7" not in b.shown()
        assert [row.chunk.rank for row in b.main.rows] != list(range(1, 13)), "shuffled"


async def test_keys_typed_before_a_window_is_open_reach_it(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.app.simulate_key("slash")
        for letter in "xub":  # each of them is a command on the main screen
            b.app.simulate_key(letter)
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert b.main.words == "xub"
    assert b.events == []


async def test_keys_wait_for_a_save_and_are_not_lost(bench: Any) -> None:
    b = bench()
    go_on = threading.Event()
    looked: list[bytes] = []

    def save() -> str:
        # As the real store: it reads and refreshes the session, in another thread.
        looked.append(b.session.state())
        assert go_on.wait(20)
        looked.append(b.session.state())
        b.session.refresh()
        return "saved"

    b.store.save = save
    async with b.app.run_test(size=(160, 48)) as pilot:
        await pilot.press("1", "ctrl+s")
        for key in ("2", "j", "3"):
            b.app.simulate_key(key)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        go_on.set()
        await b.app.workers.wait_for_complete()
        await pilot.pause()
        assert looked[0] == looked[1], "nothing reached the session while it was saved"
        assert [row.label for row in b.session.rows() if row.marked] == ["1", "2", "3"]
        assert b.main.chunks.cursor == 1


async def test_messages_in_place(bench: Any) -> None:
    b = bench(chunks={}, notices=["3 labels were taken from the journal"])
    b.source.known = {}
    b.store.problem = "NOT SAVED: disk full"
    async with b.app.run_test(size=(80, 24)) as pilot:
        assert "3 labels were taken from the journal" in b.shown()
        assert "NOT SAVED: disk full" in b.shown()
        b.source._answer(Arrival("q-01", problem="the API does not answer"))
        await pilot.pause()
        assert "the API does not answer" in b.shown()
        await pilot.press("2")
        assert "no chunk here; p searches" in b.shown()
        await pilot.press("x", "enter")
        assert b.session.brief("q-01").status == "unanswerable", "labelling goes on"


async def test_a_missing_api_says_what_can_be_done(bench: Any) -> None:
    b = bench(chunks={})
    b.source.request = lambda case_id, question: b.source._answer(
        Arrival(case_id, problem="no answer from http://127.0.0.1:1")
    )
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "no answer from http://127.0.0.1:1" in b.shown()
        assert "F5 tries again" in b.shown()


async def test_read_only_refuses_and_says_why(bench: Any) -> None:
    b = bench(read_only="held by pid 7 on host x")
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        assert "Read-only: held by pid 7 on host x." in b.shown()
    assert b.events == []


async def test_mouse(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(160, 48)) as pilot:
        await pilot.click(b.main.chunks, offset=(30, 4))
        assert b.main.chunks.cursor == 4
        await pilot.click(b.main.chunks, offset=(2, 6))
        assert [row.label for row in b.session.rows() if row.marked] == ["7"]
        await pilot.click(b.main.questions, offset=(3, 2))
        assert b.session.current == "q-03"


async def test_keymap(bench: Any) -> None:
    b = bench(keymap={"mark": "space,ы", "unanswerable": "f2", "mark-row": "f6,f7,f8,f9"})
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ы", "f8")
        assert [row.label for row in b.session.rows() if row.marked] == ["1", "3"]
        await pilot.press("x")
        assert b.session.supports()
        await pilot.press("f2")
        assert not b.session.supports()
        assert "f2 no answer" in b.shown().lower()


def test_keymap_faults_are_told(bench: Any) -> None:
    (said,) = keymap_problems({"nope": "x"})
    assert said.startswith("keymap: `nope` is no action; the actions are: ")
    assert {keymap_id(action) for action in ACTIONS} == set(said.partition("are: ")[2].split(", "))
    assert "`flag`" in keymap_problems({"flag": "x"})[0]
    b = bench()
    with pytest.raises(ValueError, match="no action"):
        run(b.session, b.store, b.source, keymap={"nope": "x"})
    with pytest.raises(ValueError, match="theme"):
        run(b.session, b.store, b.source, theme="plaid")


async def test_light_theme_and_ascii(bench: Any) -> None:
    b = bench(theme="light", look=Look(ascii=True))
    async with b.app.run_test(size=(80, 24)) as pilot:
        assert b.app.theme == "textual-light"
        await pilot.press("2", "t")
        b.shown().replace("…", "").encode("ascii")
        await pilot.press("escape")
        b.shown().replace("…", "").encode("ascii")


async def test_form_keeps_what_cannot_be_kept(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("o", "ctrl+s")
        await pilot.pause()
        assert b.app.screen is b.main, "nothing typed: nothing added"
        b.session._validate = lambda case: ["category: no such category"]
        await pilot.press("o", *"Why?", "ctrl+s")
        await pilot.pause()
        assert "category: no such category" in b.shown()
        await pilot.press("escape")
        assert "The form was changed." in b.shown()
        await pilot.press("escape")
        await pilot.press("escape", "d")
        await pilot.pause()
        assert b.app.screen is b.main
    assert len(b.session.visible) == 4


async def test_form_fields(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("e", "tab", *"All of it.", "tab", *"one", "enter", *"two", "tab")
        await pilot.press(*"claim", "tab", *"never", "tab", *"x, y", "tab")
        await pilot.press(*["delete"] * 7, *"multi_hop", "tab", *"hard", "ctrl+s")
        await pilot.pause()
    assert b.session.case == {
        "id": "q-01",
        "question": "How long are audit logs kept in case 1, and who can extend it?",
        "category": "multi_hop",
        "reference_answer": "All of it.",
        "expected_key_facts": ["one", "two"],
        "expected_claims": ["claim"],
        "forbidden_claims": ["never"],
        "tags": ["x", "y"],
        "difficulty": "hard",
    }


def test_every_action_says_whether_it_changes_something() -> None:
    changing = {action.id for action in ACTIONS if action.where == "main" and action.changes}
    assert {"mark", "confirm", "edit", "delete", "undo", "blind"} <= changing
    assert not changing & {"down", "help", "filter", "zoom", "leave", "copy-text"}


async def test_two_quick_enters_close_one_window(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        for opening in (["p", "x"], ["/", "x"], ["c", "x"], ["P", "x"], ["colon", "f", "l", "a"]):
            await pilot.press(*opening)
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
            for key in ("enter", "enter", "enter"):
                b.app.simulate_key(key)
            await pilot.pause()
            assert b.main in b.app.screen_stack, opening
            while b.app.screen is not b.main:
                await pilot.press("escape")
                await pilot.pause()
            await pilot.press("escape", "escape")


async def test_an_editor_where_the_screen_cannot_be_given_up(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The driver of tests cannot suspend, as that of --serve cannot.
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "false")
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("E")
        await pilot.pause()
        assert "an editor cannot be opened here; press e for the form" in b.shown()
    assert not b.events


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


@pytest.mark.parametrize(
    ("width", "line"),
    [(9, "abc  defg"), (8, "abc  de…"), (5, "abc …"), (4, "abc…"), (3, "ab…"), (1, "…"), (0, "")],
)
def test_a_line_that_is_cut_says_so(width: int, line: str) -> None:
    spans = [("row", display(text)) for text in ("abc", "  ", "defg")]
    assert "".join(text for _, text in cut(spans, width)) == line


async def test_the_second_session_says_read_only_at_the_top(bench: Any) -> None:
    b = bench(read_only="maria is at work on it")
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "READ-ONLY" in b.shown().splitlines()[0]
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "READ-ONLY" not in b.shown()
        await pilot.press("f")
        b.store.problem = "NOT SAVED: " + "a long way down/" * 9
        b.main.redraw()
        await pilot.pause()
        assert b.shown().splitlines()[0].rstrip().endswith("…")
