"""A passage counts as read to its end when its end was on the screen."""

from __future__ import annotations

from typing import Any

from labeller.passages import Chunk


async def test_a_long_passage_is_read_in_part_until_its_end_is_shown(bench: Any) -> None:
    long = Chunk("guide/long.md", "Long", "\n".join(f"Line {n}." for n in range(200)))
    short = Chunk("guide/short.md", "Short", "One line.")
    cut = Chunk("guide/cut.md", "Cut", "The beginning", cut=True)
    b = bench(chunks={"q-01": [long, short, cut]}, blind=False)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("j", "j", "k", "k")
        assert [row.seen for row in b.session.rows()] == [False, True, True]
        await pilot.press("x", "enter")
        assert b.status == "Saved as unanswerable. 1 of 3 passages was never shown."
        rows = b.session.entry("q-01").judgement["rows"]
        assert [(row["grade"], row.get("part")) for row in rows] == [
            (None, None),
            (0, None),
            (0, True),
        ]


async def test_scrolling_to_the_end_reads_it(bench: Any) -> None:
    long = Chunk("guide/long.md", "Long", "\n".join(f"Line {n}." for n in range(60)))
    b = bench(chunks={"q-01": [long]})
    async with b.app.run_test(size=(80, 24)) as pilot:
        assert not b.session.rows()[0].seen
        for _ in range(20):
            await pilot.press("pagedown")
        assert b.session.rows()[0].seen
