"""Keys and the mouse: their order is kept while windows open and saves run; the keymap."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.labeller.conftest import snapshot
from textual.command import CommandList

from labeller.actions import ACTIONS, all_actions, keymap_problems
from labeller.app import run
from terminal.actions import keymap_id


async def test_keys_typed_before_a_window_is_open_reach_it(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        b.app.simulate_key("slash")
        for letter in "xub":  # each of them is a command on the main screen
            b.app.simulate_key(letter)
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert b.main.chunks.words == "xub"
    assert b.events == []


async def test_keys_wait_for_a_save_and_are_not_lost(bench: Any) -> None:
    b = bench()
    go_on = threading.Event()
    looked: list[bytes] = []

    def save() -> str:
        # As the real store: it reads and refreshes the session, in another thread.
        looked.append(snapshot(b.session))
        assert go_on.wait(60)
        looked.append(snapshot(b.session))
        b.session.ledger.refresh()
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


async def test_two_quick_enters_close_one_window(bench: Any) -> None:
    async with bench.run() as (b, pilot):
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


async def test_mouse(bench: Any) -> None:
    async with bench.run(size=(160, 48)) as (b, pilot):
        await pilot.click(b.main.chunks, offset=(30, 4))
        assert b.main.chunks.cursor == 4
        await pilot.click(b.main.chunks, offset=(2, 6))
        assert [row.label for row in b.session.rows() if row.marked] == ["7"]
        await pilot.click(b.main.questions, offset=(3, 2))
        assert b.session.current == "q-03"


async def test_keymap(bench: Any) -> None:
    async with bench.run(
        keymap={"mark": "space,ы", "unanswerable": "f2", "mark-row": "f6,f7,f8,f9"}
    ) as (b, pilot):
        await pilot.press("ы", "f8")
        assert [row.label for row in b.session.rows() if row.marked] == ["1", "3"]
        await pilot.press("x")
        assert b.session.supports()
        await pilot.press("f2")
        assert not b.session.supports()
        assert "f2 no answer" in b.shown().lower()


def test_keymap_faults_are_told(bench: Any) -> None:
    (said,) = keymap_problems({"nope": "x"})
    assert said.startswith("keymap: `nope` is not an action; the actions are: ")
    names = {keymap_id(action) for action in all_actions()}
    assert names == set(said.partition("are: ")[2].split(", "))
    assert "`flag`" in keymap_problems({"flag": "x"})[0]
    b = bench()
    with pytest.raises(ValueError, match="is not an action"):
        run(b.session, b.store, b.source, keymap={"nope": "x"})
    with pytest.raises(ValueError, match="theme"):
        run(b.session, b.store, b.source, theme="plaid")


def test_every_action_says_whether_it_changes_something() -> None:
    changing = {action.id for action in ACTIONS if action.where == "main" and action.changes}
    assert {"mark", "confirm", "edit", "delete", "undo", "blind"} <= changing
    assert not changing & {"down", "help", "filter", "zoom", "leave", "copy-text"}


async def test_a_search_of_the_palette_that_begins_when_the_list_is_gone_ends_nothing(
    bench: Any,
) -> None:
    async with bench.run() as (b, pilot):
        await pilot.press("colon")
        palette = b.app.screen
        await palette.query_one(CommandList).remove()
        palette._gather_commands("sav")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert b.app._exception is None
        assert b.app.screen is not palette
