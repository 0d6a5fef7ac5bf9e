"""The screen of differences: every key of its table, and keys that wait for passages."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from tests.contrasts import unreadable_on
from tests.key_names import textual_name
from tests.labeller.screen.test_hostile import hostile_case
from tests.labeller.screen.test_storm import WEIGHTED, storm, valid
from tests.labeller.screen.test_waiting import Slow

from labeller import marks
from labeller.actions import actions_of, keymap_problems
from labeller.passages import Chunk
from labeller.windows import help_screen
from terminal.action_screen import _keys_for

ADJUDICATE_KEYS = {action.id for action in actions_of("adjudicate")}


def second_annotator() -> dict[str, dict[str, Any]]:
    """What B says: q-01 is answered by part 3, q-02 cannot be answered."""
    support = {"rel_path": "guide/part03.md", "heading_path": "Part 3 > Section 3", "grade": 2}
    return {
        "q-01": {"id": "q-01", "answerable": True, "gold_supports": [support]},
        "q-02": {"id": "q-02", "answerable": False},
    }


async def test_adjudicate_every_choice(bench: Any) -> None:
    b = bench()
    b.store.others = {"maria": second_annotator()}
    async with b.app.run_test(size=(80, 24)) as pilot:
        # A marks part 5 (whatever row it is on), B marked part 3: two differences.
        row = next(r for r in b.session.rows() if r.chunk.rel_path == "guide/part05.md")
        b.session.on_row(row.number, marks.toggle)
        await pilot.press("D")
        assert "2 differences, 2 to settle" in b.shown()
        assert "maria" not in b.shown(), "A and B are shown without names"
        await pilot.press("enter")
        assert "not chosen yet" in b.shown()
        for key, paths in (
            ("1", {"guide/part05.md"}),
            ("4", set()),
            ("2", set()),
            ("3", {"guide/part05.md"}),
        ):
            await pilot.press("k", "up", key)
            assert {s.rel_path for s in b.session.supports()} == paths, key
        await pilot.press("j", "down", "2")
        paths = {support.rel_path for support in b.session.supports()}
        assert paths == {"guide/part05.md", "guide/part03.md"}
        await pilot.press("u")
        assert {support.rel_path for support in b.session.supports()} == {"guide/part05.md"}
        await pilot.press("2", "c", *"why", "enter")
        await pilot.pause()
        assert b.session.judgement["note"] == "why"
        await pilot.press("enter")
        assert b.session.queue.summaries["q-01"].status == "labelled"
        assert b.session.current == "q-02"
        await pilot.press("2", "enter", "?", "escape", "q")
        assert b.app.screen is b.main
    assert b.session.queue.summaries["q-02"].status == "unanswerable"
    tried = {"take-a", "take-b", "take-both", "take-none", "note", "next", "undo", "help"}
    assert {"down", "up", "close", *tried} == ADJUDICATE_KEYS


async def test_adjudication_shows_grades_and_sections_at_80_columns(bench: Any) -> None:
    """Only the grade differs, in two sections of one file with long headings."""
    heads = [f'The "try" statement of compound statements > The "{name}" clause' for name in "ab"]

    def labels(grades: list[int]) -> list[dict[str, Any]]:
        pairs = zip(heads, grades, strict=True)
        return [{"rel_path": "try.md", "heading_path": h, "grade": grade} for h, grade in pairs]

    first = {"id": "q-01", "question": "Why?", "answerable": True}
    ours = {**first, "gold_supports": labels([3, 1]), "required_support_groups": [[0]]}
    theirs = {**first, "gold_supports": labels([2, 2]), "required_support_groups": [[0], [1]]}
    b = bench(cases={"q-01": ours})
    b.store.others = {"maria": {"q-01": theirs}}
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("D")
        rows = [line for line in b.shown().split("\n") if "try.md" in line and "grade" in line]
        assert rows[0].split("  ")[0] == " > need 1, grade 3"
        assert "need 1, grade 2" in rows[0]
        assert "not required, grade 1" in rows[1]
        passages = [line[line.index("try.md") :].strip() for line in rows]
        assert passages == ['try.md > The "a" c…', 'try.md > The "b" c…']


async def test_adjudication_fetches_the_chunks_of_a_far_question(bench: Any) -> None:
    support = {"rel_path": "guide/part03.md", "heading_path": "Part 3 > Section 3", "grade": 2}
    theirs = {"q-09": {"id": "q-09", "answerable": True, "gold_supports": [support]}}
    cases = {name: {"id": name, "question": "Who?"} for name in (f"q-0{n}" for n in range(1, 10))}
    b = bench(cases=cases)
    b.store.others = {"maria": theirs}
    arrivals = b.source.arrivals
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.source.arrivals = list  # nothing comes yet
        await pilot.press("D", "j")
        await pilot.pause()
        assert b.session.current == "q-09"
        assert "fetching…" in b.shown()
        b.source.arrivals = arrivals
        b.app.post_message(b.app.Arrived())
        await pilot.pause()
        await pilot.pause()
        assert "Note 3 for q-09." in b.shown()
        lines = b.shown().splitlines()
        (note,) = (n for n, line in enumerate(lines) if "Note 3 for q-09." in line)
        assert lines[note - 2].strip() == "guide/part03.md > Part 3 > Section 3"


@pytest.mark.parametrize("keys", [("1", "enter"), ("4", "enter")])
async def test_adjudication_waits_too(bench: Any, keys: tuple[str, ...]) -> None:
    theirs = {"q-01": {"id": "q-01", "answerable": False}}
    cases = {"q-01": {"id": "q-01", "question": "Who?", "answerable": True}}
    b = bench(cases=cases)
    b.store.others = {"maria": theirs}
    slow = Slow(b)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("D", *keys)
        await pilot.pause()
        assert b.events == []
        assert "2 keys wait for the passages" in b.shown()
        await slow.bring(pilot, "q-01")
        assert [event["action"] for event in b.events] == ["adjudicate", "adjudicated"]


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_it_can_be_read_in_both_themes(bench: Any, theme: str) -> None:
    b = bench(theme=theme)
    b.store.others = {"maria": second_annotator()}
    async with b.app.run_test(size=(120, 40)) as pilot:
        await pilot.press("2", "D")
        await pilot.pause()
        assert unreadable_on(b.app) == set()


async def test_foreign_text_stays_text(bench: Any, hostile: tuple[str, ...]) -> None:
    text = " ".join(part for part in hostile if "\n" not in part)
    b = bench(cases={"q1": hostile_case("q1", text)}, chunks={"q1": [Chunk(text, text, text)]})
    support = {"rel_path": text, "heading_path": text}
    b.store.others = {text: {"q1": {"id": "q1", "answerable": True, "gold_supports": [support]}}}
    async with b.app.run_test(size=(80, 24), notifications=True, tooltips=True) as pilot:
        await pilot.press("D", "2", "2")
        await pilot.pause()
        assert "differences, 0 to settle" in b.shown()
        assert "\x1b" not in b.shown()
        await pilot.press("enter")
        assert not b.app._exit, "a [@click=app.quit] was obeyed"


@pytest.mark.slow
def test_random_keys_of_both_screens_are_undone(bench: Any) -> None:
    """Of 600 keys every tenth opens the screen of differences, where they mean something else."""
    b = bench(validate=valid)
    b.store.others = {"maria": second_annotator()}
    chance = random.Random(5)
    keys = [
        chance.choice([key for key in WEIGHTED if key not in ("q", "ctrl+q", "ctrl+c")])
        if number % 10
        else "D"
        for number in range(600)
    ]
    asyncio.run(storm(b, keys))
    assert "adjudicate" in {event["action"] for event in b.events}


async def test_without_a_second_annotator_the_key_says_so(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("D")
        assert b.status == "no second annotator: label with --annotator NAME first"
        b.session.annotator = "maria"
        b.store.others = {"gold": second_annotator()}
        await pilot.press("D")
        assert "no second annotator" in b.status, "only a session of the set itself settles"


def test_every_key_is_bound_and_on_the_help_page() -> None:
    assert keymap_problems({"adjudicate.take-a": "f2"}) == []
    keys = _keys_for(actions_of("adjudicate"))
    for action in actions_of("adjudicate"):
        for index, key in enumerate(action.keys):
            assert keys[textual_name(key)] == (action, index)
        text, _ = help_screen("adjudicate", {})._pages[0]
        assert action.help in text
    assert "Resolve differences between two annotators." in help_screen("main", {})._pages[0][0]
