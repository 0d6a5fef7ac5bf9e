"""A passage counts as read to its end when its end was on the screen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.rows import each_row

from labeller.lines import chunks_rule
from labeller.passages import Chunk
from labeller.session import Session
from terminal.frame import Look


async def test_a_long_passage_is_read_in_part_until_its_end_is_shown(bench: Any) -> None:
    long = Chunk("guide/long.md", "Long", "\n".join(f"Line {n}." for n in range(200)))
    short = Chunk("guide/short.md", "Short", "One line.")
    cut = Chunk("guide/cut.md", "Cut", "The beginning", cut=True)
    async with bench.run(chunks={"q-01": [long, short, cut]}, blind=False) as (b, pilot):
        await pilot.press("j", "j", "k", "k")
        assert [row.seen for row in b.session.rows()] == [False, True, True]
        await pilot.press("x", "enter")
        assert b.status == "Saved as unanswerable. 1 of 3 passages was never shown."
        rows = b.session.ledger["q-01"].judgement["rows"]
        expected = [(None, None), (0, None), (0, True)]
        assert [(row["grade"], row.get("part")) for row in rows] == expected


async def test_scrolling_to_the_end_reads_it(bench: Any) -> None:
    long = Chunk("guide/long.md", "Long", "\n".join(f"Line {n}." for n in range(60)))
    async with bench.run(chunks={"q-01": [long]}) as (b, pilot):
        assert not b.session.rows()[0].seen
        for _ in range(20):
            await pilot.press("pagedown")
        assert b.session.rows()[0].seen


async def test_reading_on_turns_full_pages_and_takes_the_lists_lines_for_a_long_text(
    bench: Any,
) -> None:
    """At 80x24 the question has 1 line, the needs 1: 17 lines for rows and text, 12 + 5 at first.

    A text of 14 lines asks for 2 of the list's, one of 40 for all but one: 3 pages of 16.
    """
    texts = (1, 14, 40, 1, 1, 1)
    chunks = [
        Chunk(f"guide/{n}.md", "G", "\n".join(f"- line {line}." for line in range(count)))
        for n, count in enumerate(texts)
    ]
    async with bench.run(chunks={"q-01": chunks}, blind=False) as (b, pilot):
        await pilot.pause()
        sizes, tops = [], []
        for _ in range(5):
            sizes.append((b.main.chunks.size.height, b.main.text.size.height))
            tops.append((b.main.chunks.cursor, b.main.text.top))
            await pilot.press("full_stop")
            await pilot.pause()
        assert sizes == [(5, 12), (3, 14), (1, 16), (1, 16), (1, 16)]
        assert tops == [(0, 0), (1, 0), (2, 0), (2, 16), (2, 24)]
        assert [row.seen for row in b.session.rows()] == [True, True, True, True, False, False]
        assert (b.main.chunks.cursor, b.main.chunks.size.height) == (3, 5)
        await pilot.press("k")
        await pilot.pause()
        assert (b.main.chunks.cursor, b.main.chunks.size.height) == (2, 5), "a move shows the list"


@each_row("auto", [True, False])
def test_the_sign_of_an_automatic_snippet_is_explained_where_it_is_shown(auto: bool) -> None:
    session = Session({}, {}, record=lambda event: None, now=lambda: 0.0, blind=False)
    row: Any = SimpleNamespace(seen=True, chunk=SimpleNamespace(origin=""), auto=auto)
    line = chunks_rule(session, [row], Look(), 80, "", focused=False)
    text = "".join(part for _, part in line)
    assert ("~ automatic snippet" in text) == auto
    filtered = chunks_rule(session, [row], Look(), 80, "heap", focused=False)
    assert "filter: heap" in "".join(part for _, part in filtered)
