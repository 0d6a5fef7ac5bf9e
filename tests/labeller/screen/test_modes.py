"""Snippet mode, adjudication and conflicts: every key of their tables, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from labeller.actions import actions_of
from labeller.passages import Chunk
from labeller.ports import Conflict

TEXT = "First things first. Audit events are kept for 30 days. The owner can extend it."
SNIPPET_KEYS = {action.id for action in actions_of("snippet")}
ADJUDICATE_KEYS = {action.id for action in actions_of("adjudicate")}


@pytest.fixture
def one_chunk(bench: Any) -> Any:
    """An app whose first question has one chunk of three sentences."""
    return bench(chunks={"q-01": [Chunk("guide/a.md", "Plans", TEXT)]})


def picked(b: Any) -> list[str]:
    """The snippets of the only support."""
    return list(b.session.supports()[0].snippets) if b.session.supports() else []


async def test_pick_sentences(one_chunk: Any) -> None:
    b = one_chunk
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "j", "space", "down", "space", "k", "up", "down")
        assert ">*" in b.shown()
        assert "sentence 2 of 3" in b.shown()
        await pilot.press("enter")
        assert b.app.screen is b.main
    # Two picked sentences side by side are one snippet.
    assert picked(b) == ["Audit events are kept for 30 days. The owner can extend it."]
    assert {"pick", "down", "up", "keep"} <= SNIPPET_KEYS


async def test_words_inside_a_sentence(one_chunk: Any) -> None:
    b = one_chunk
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "j", "v", "W", "w", "w", "b", "e", "l", "h", "right", "left")
        assert "INSIDE" in b.shown()
        await pilot.press("space", "enter")
    # v takes "Audit", W begins at "events", w w adds "are kept", b drops and e adds "kept".
    assert picked(b) == ["events are kept"]


async def test_v_again_leaves_the_inside(one_chunk: Any) -> None:
    b = one_chunk
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "v", "v", "space", "enter")
    assert picked(b) == ["First things first."]


async def test_key_fact(one_chunk: Any) -> None:
    b = one_chunk
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "j", "F", "enter")
    assert b.session.case["expected_key_facts"] == ["Audit events are kept for 30 days."]


async def test_leaving_takes_the_picks_back(one_chunk: Any) -> None:
    b = one_chunk
    start = b.session.state()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "space", "j", "space", "F", "escape")
        assert b.app.screen is b.main
    assert b.session.state() == start


async def test_help_of_a_mode_shows_its_keys(one_chunk: Any) -> None:
    b = one_chunk
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "?")
        assert "Pick the sentence, or drop it." in b.shown()


def second_annotator() -> dict[str, dict[str, Any]]:
    """What B says: q-01 is answered by part 3, q-02 cannot be answered."""
    support = {"rel_path": "guide/part03.md", "heading_path": "Part 3 > Section 3", "grade": 2}
    return {
        "q-01": {"id": "q-01", "answerable": True, "gold_supports": [support]},
        "q-02": {"id": "q-02", "answerable": False},
    }


async def test_adjudicate_every_choice(bench: Any) -> None:
    b = bench(others={"maria": second_annotator()})
    async with b.app.run_test(size=(80, 24)) as pilot:
        # A marks part 5 (whatever row it is on), B marked part 3: two differences.
        row = next(r for r in b.session.rows() if r.chunk.rel_path == "guide/part05.md")
        b.session.toggle(row.number)
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
        assert b.session.brief("q-01").status == "labelled"
        assert b.session.current == "q-02"
        await pilot.press("2", "enter", "?", "escape", "q")
        assert b.app.screen is b.main
    assert b.session.brief("q-02").status == "unanswerable"
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
    b = bench(cases={"q-01": ours}, others={"maria": {"q-01": theirs}})
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("D")
        rows = [line for line in b.shown().split("\n") if "try.md" in line and "grade" in line]
        assert rows[0].split("  ")[0] == " > need 1, grade 3"
        assert "need 1, grade 2" in rows[0]
        assert "not required, grade 1" in rows[1]
        passages = [line[line.index("try.md") :].strip() for line in rows]
        assert passages == ['try.md > The "a" c…', 'try.md > The "b" c…']


async def test_conflicts_are_shown_and_settled(bench: Any) -> None:
    conflicts = [
        Conflict(f"q-0{n}", ("question",), {"question": "Old?"}, {"question": f"Mine {n}?"}, theirs)
        for n, theirs in ((1, {"question": "Theirs [bold]?"}), (2, None))
    ]
    b = bench(conflicts=conflicts)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        shown = b.shown()
        assert "q-01 was changed here and in the file (2 to settle)" in shown
        assert "Mine 1?" in shown
        assert "Theirs [bold]?" in shown
        await pilot.press("1")
        assert "(no such question)" in b.shown()
        await pilot.press("2")
        assert b.app.screen is b.main
    assert b.store.asked == ["q-01 mine", "q-02 theirs"]


async def test_conflicts_can_wait(bench: Any) -> None:
    conflict = Conflict("q-01", ("question",), {}, {"question": "a"}, {"question": "b"})
    b = bench(conflicts=[conflict])
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("escape", "1")
        assert b.app.screen is b.main
    assert b.store.conflicts == [conflict]


async def test_adjudication_fetches_the_chunks_of_a_far_question(bench: Any) -> None:
    support = {"rel_path": "guide/part03.md", "heading_path": "Part 3 > Section 3", "grade": 2}
    theirs = {"q-09": {"id": "q-09", "answerable": True, "gold_supports": [support]}}
    cases = {name: {"id": name, "question": "Who?"} for name in (f"q-0{n}" for n in range(1, 10))}
    b = bench(cases=cases, others={"maria": theirs})
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
