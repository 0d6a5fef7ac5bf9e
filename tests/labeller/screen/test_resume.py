"""A restart goes on where the session was left: in a real terminal, and on the screen."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.labeller.screen.conftest import Start, write_data

from labeller.passages import Chunk
from labeller.session import resume


def await_view(folder: Path, **wanted: str) -> None:
    """Wait until the view on disk is the wanted one."""
    end = time.monotonic() + 60
    while True:
        path = folder / "eval_set.jsonl.view"
        view = json.loads(path.read_text()) if path.exists() else {}
        if wanted.items() <= view.items() and view["row"]:
            return
        assert time.monotonic() < end, view
        time.sleep(0.05)


def test_after_kill_and_after_quit_all_is_looked_at_again(tmp_path: Path, start: Start) -> None:
    cases = [{"id": f"q-{n}", "question": f"How long is log {n} kept?"} for n in range(1, 6)]
    write_data(tmp_path, cases, [f"Text {n}." for n in range(1, 6)])
    with start("--order", "random") as terminal:
        terminal.wait_for(b"lines 1-")
        terminal.write(b":q-3\r")
        await_view(tmp_path, case="q-3", order="random", row_order="shuffled")
        terminal.write(b"Sjj")
        terminal.write(b"b/log\r")
        await_view(tmp_path, case="q-3", filter="log", row_order="path")
        terminal.write(b"b")
        terminal.write(b"2\r")  # the one looked at is done: Enter goes on, Ctrl+o comes back
        terminal.wait_for(b"open 4")  # in the head: a message may be painted over at once
        terminal.write(b"\x0f")
        await_view(tmp_path, case="q-3", filter="log")
        before = json.loads((tmp_path / "eval_set.jsonl.view").read_text())
        terminal.write(b"jjj")
        terminal.wait_for(b"row 4")
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.wait()
    kept = json.loads((tmp_path / "eval_set.jsonl.view").read_text())
    assert kept == {**before, "row": kept["row"]} != before
    for ending in (b"q", b"\x11"):
        with start() as terminal:
            terminal.wait_for(b"row 4")
            for shown in (b"q-3", b" /log", b"order: path"):
                assert shown in terminal.output
            terminal.write(ending)
            assert terminal.wait() == 0
        assert json.loads((tmp_path / "eval_set.jsonl.view").read_text()) == kept
    with start("--order", "file", "--case", "q-5") as terminal:
        terminal.wait_for(b"q-5")
        await_view(tmp_path, case="q-5", order="file", filter="log")
        terminal.write(b"q")
        assert terminal.wait() == 0
    assert sum('"answerable"' in line for line in read(tmp_path)) == 1


def read(folder: Path) -> list[str]:
    """The lines of the set."""
    return (folder / "eval_set.jsonl").read_text().splitlines()


async def test_each_change_of_view_is_kept_at_once(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        await pilot.pause()
        keys = [row.chunk.key for row in b.main.chunks.rows]
        await pilot.press("j", "j")
        assert [view.row for view in b.store.views[-3:]] == keys[:3]
        await pilot.press("l", "S")
        last = b.store.views[-1]
        assert (last.case, last.row_order) == ("q-02", "path")
        count = len(b.store.views)
        await pilot.press("ctrl+l", "escape")
        assert len(b.store.views) == count


async def test_the_cursor_stands_on_the_chunk_of_last_time(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        await pilot.press("j", "j", "j", "j")
        view = b.store.views[-1]
    again = bench()
    resume(again.session, view)
    again.main.chunks.resumed_row = again.session.resumed_row
    async with again.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert again.main.chunks.cursor == 4
        assert again.main.chunks.row.chunk.key == view.row
        await pilot.press("j")
        assert again.main.chunks.cursor == 5


async def test_a_place_is_found_by_some_letters_and_a_new_one_is_taken_as_typed(bench: Any) -> None:
    async with bench.run(
        chunks={"q-01": [Chunk("guide/retention.md", "Plans > Free", "Text.")]}
    ) as (b, pilot):
        await pilot.press("P", *"gdretfr")
        assert "> guide/retention.md > Plans > Free" in b.shown()
        assert "gdretfr   (as typed)" in b.shown()
        await pilot.press("enter")
        (support,) = b.session.supports()
        assert (support.rel_path, support.heading_path) == ("guide/retention.md", "Plans > Free")
        await pilot.press("P", *"guide/retention.md", "space", ">", "space", *"Plan", "enter")
        await pilot.pause()
        assert len(b.session.supports()) == 1, "a part of a known one is that one"
        await pilot.press("P", *"guide/retention.md", "space", ">", "space", *"Fee", "enter")
        assert [s.heading_path for s in b.session.supports()] == ["Plans > Free", "Fee"]
