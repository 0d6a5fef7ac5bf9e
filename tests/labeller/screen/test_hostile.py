"""Hostile text in every field: shown letter by letter, never obeyed, kept as it is in the set."""

from __future__ import annotations

import copy
from typing import Any

from labeller.merging import Conflict
from labeller.passages import Chunk
from terminal.safe_text import display


def hostile_case(case_id: str, text: str) -> dict[str, Any]:
    """A case whose every field holds `text`."""
    return {
        "id": case_id,
        "question": f"{text} question",
        "reference_answer": text,
        "expected_key_facts": [text, f"{text} fact"],
        "expected_claims": [text],
        "forbidden_claims": [text],
        "tags": [text],
        "category": text,
        "difficulty": text,
        "own_field": text,
    }


def visible(text: str, shown: str) -> bool:
    """Is the display form of `text` on screen? Spaces may have been wrapped or cut away."""
    return display(text).split("\n")[0].strip() in shown


async def test_every_field_shows_hostile_text_as_it_is(
    bench: Any, markup: tuple[str, ...], controls: tuple[str, ...]
) -> None:
    texts = markup + controls
    cases = {f"q{n}{text}": hostile_case(f"q{n}{text}", text) for n, text in enumerate(texts)}
    chunks = {
        f"q{n}{text}": [
            Chunk(f"{text}.md", f"{text} heading", f"{text} body. {text} again.", text, rank=1)
        ]
        for n, text in enumerate(texts)
    }
    before = copy.deepcopy(cases)
    b = bench(cases=cases, chunks=chunks, notices=list(texts), annotator=texts[0])
    async with b.app.run_test(size=(160, 48), notifications=True, tooltips=True) as pilot:
        for number, text in enumerate(texts):
            b.session.queue.goto(f"q{number}{text}")
            b.main.sync()
            b.main.say(text)
            await pilot.pause()
            shown = b.shown()
            assert visible(f"{text} question", shown), ascii(text)
            assert visible(f"{text} body", shown), ascii(text)
            assert visible(f"{text} heading", shown), ascii(text)
            assert not set(shown) & set("\x1b\x9b\x9d\x00\x07\u202e\ufeff\u2028"), ascii(text)
    assert cases == before


async def test_every_window_with_hostile_text(bench: Any, hostile: tuple[str, ...]) -> None:
    text = " ".join(part for part in hostile if "\n" not in part)
    cases = {"q1": hostile_case("q1", text), "q2": hostile_case("q2", text)}
    chunk = Chunk(f"{text}.md", f"{text} heading", f"{text}. {text}. ", rank=1)
    b = bench(
        cases=cases,
        chunks={"q1": [chunk], "q2": [chunk]},
        probed=[Chunk(text, text, f"{text} probe")],
    )
    async with b.app.run_test(size=(80, 24), notifications=True, tooltips=True) as pilot:
        for keys in ("e", "c", "p", "P", "1w", "t", "?", ":", "/", "b"):
            await pilot.press(*("colon" if key == ":" else key for key in keys))
            await pilot.pause()
            shown = b.shown()
            assert "\x1b" not in shown
            await pilot.press("escape")
            await pilot.pause()
            assert b.app.screen is b.main, keys
            b.main.remove_class("-side-on")
        b.store.conflicts.append(
            Conflict(text, (text,), {text: text}, {text: text}, {text: [text]})
        )
        b.main.cases.show_conflicts()
        await pilot.pause()
        assert "\x1b" not in b.shown()
        await pilot.press("escape")
        assert not b.app._exit, "a [@click=app.quit] was obeyed"


async def test_clicks_on_hostile_text_do_nothing_else(bench: Any) -> None:
    text = "[@click=app.quit]leave[/] " * 30
    b = bench(
        cases={"q1": {"id": "q1", "question": text}}, chunks={"q1": [Chunk("a.md", text, text)]}
    )
    async with b.app.run_test(size=(80, 24)) as pilot:
        for y in range(24):
            await pilot.click(offset=(20, y))
        assert not b.app._exit


async def test_an_untouched_field_keeps_its_bytes(bench: Any) -> None:
    async with bench.run(cases={"q1": hostile_case("q1", "\x1b[2J\u202e")}) as (b, pilot):
        await pilot.press("e", "X", "ctrl+s")
        await pilot.pause()
    case = b.session.case
    assert case["question"] == "X␛[2J\ufffd question", "what was edited is what was shown"
    assert case["expected_key_facts"] == ["\x1b[2J\u202e", "\x1b[2J\u202e fact"]
    assert case["own_field"] == "\x1b[2J\u202e"


async def test_snippets_are_cut_from_the_original(bench: Any) -> None:
    body = "First\tone. Second \x1b[31mred\u202e one.\r\nThird 日本 one."
    async with bench.run(chunks={"q-01": [Chunk("a.md", "H", body)]}) as (b, pilot):
        await pilot.press("t", "j", "space", "enter")
    (snippet,) = b.session.supports()[0].snippets
    assert snippet in body
    assert "\x1b[31mred\u202e" in snippet


async def test_a_text_of_a_megabyte_is_cut_until_asked_for(bench: Any) -> None:
    body = "x" * (1 << 20)
    async with bench.run(
        chunks={"q-01": [Chunk("a.md", "H", body), Chunk("b.md", "H", "\n" * 20_000)]}
    ) as (b, pilot):
        big = next(i for i, row in enumerate(b.main.chunks.rows) if row.chunk.text == body)
        await pilot.press(*["j"] * big)
        # 64 Ki characters at 78 a line: 840.2 lines.
        assert b.main.text.line_count == 841
        assert "cut, z shows all" in b.shown()
        await pilot.press("z")
        await pilot.pause()
        assert b.main.text.line_count > 13_000
        await pilot.press("G", "t")
        await pilot.pause()
        assert b.app.screen.where == "snippet"


async def test_pasted_text_is_made_harmless(bench: Any) -> None:
    from textual.events import Paste

    async with bench.run() as (b, pilot):
        await pilot.press("/")
        await pilot.pause()
        b.app.post_message(Paste("a\x1b]0;x\x07b"))
        await pilot.pause()
        assert b.main.chunks.words == "a␛]0;x␡b".replace("␡", "␇")
        await pilot.press("escape")
        b.app.post_message(Paste("xxx"))
        await pilot.pause()
    assert b.events == [], "a paste on the main screen is no command"
