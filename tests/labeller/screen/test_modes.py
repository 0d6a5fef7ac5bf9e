"""Snippet mode and conflicts: every key of their tables, and what is kept."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.labeller.conftest import snapshot
from tests.rows import each_row

from labeller.merging import Conflict
from labeller.passages import Chunk

TEXT = "First things first. Audit events are kept for 30 days. The owner can extend it."


@each_row(
    ("keys", "shown", "snippets", "facts"),
    [
        # Two picked sentences side by side are one snippet.
        (
            "j space down space k up down | enter",
            "sentence 2 of 3",
            ["Audit events are kept for 30 days. The owner can extend it."],
            [],
        ),
        # v takes "Audit", W begins at "events", w w adds "are kept", b drops and e adds "kept".
        ("j v W w w b e l h right left | space enter", "INSIDE", ["events are kept"], []),
        ("v v space | enter", ">*First things first.", ["First things first."], []),
        ("j F | enter", "Audit events", [], ["Audit events are kept for 30 days."]),
        ("space j space F | escape", ">*Audit", [], []),
        ("? | escape escape", "Pick the sentence, or drop it.", [], []),
    ],
)
def test_snippets(bench: Any, keys: str, shown: str, snippets: list[str], facts: list[str]) -> None:
    """Keys in snippet mode, what is shown at the bar, and what is kept at the end."""

    async def press() -> Any:
        b = bench(chunks={"q-01": [Chunk("guide/a.md", "Plans", TEXT)]})
        start = snapshot(b.session)
        first, last = keys.split("|")
        async with b.app.run_test(size=(80, 24)) as pilot:
            await pilot.press("t", *first.split())
            assert shown in " ".join(b.shown().split()).replace(">* ", ">*")
            await pilot.press(*last.split())
            assert b.app.screen is b.main
        assert (snapshot(b.session) == start) == (not snippets and not facts)
        assert [s for support in b.session.supports() for s in support.snippets] == snippets
        assert b.session.case.get("expected_key_facts", []) == facts

    asyncio.run(press())


async def test_conflicts_are_shown_and_settled(bench: Any) -> None:
    conflicts = [
        Conflict(f"q-0{n}", ("question",), {"question": "Old?"}, {"question": f"Mine {n}?"}, theirs)
        for n, theirs in ((1, {"question": "Theirs [bold]?"}), (2, None))
    ]
    async with bench.run(conflicts=conflicts) as (b, pilot):
        await pilot.pause()
        shown = b.shown()
        assert "q-01 was changed here and in the file (2 to settle)" in shown
        assert "Mine 1?" in shown
        assert "Theirs [bold]?" in shown
        text, marks = b.app.screen.pane._text, b.app.screen.pane._marks
        heads = [text[start:end] for start, end, name in marks if name == "key"]
        assert heads == ["question, before:", "question, 1 mine:", "question, 2 in the file:"]
        await pilot.press("1")
        assert "(no such question)" in b.shown()
        await pilot.press("2")
        assert b.app.screen is b.main
    assert b.store.asked == ["q-01 mine", "q-02 theirs"]


async def test_conflicts_can_wait(bench: Any) -> None:
    conflict = Conflict("q-01", ("question",), {}, {"question": "a"}, {"question": "b"})
    async with bench.run(conflicts=[conflict]) as (b, pilot):
        await pilot.pause()
        await pilot.press("escape", "1")
        assert b.app.screen is b.main
    assert b.store.conflicts == [conflict]
