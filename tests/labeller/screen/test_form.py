"""The form of a case: its fields, what it refuses to keep, and an editor in its place."""

from __future__ import annotations

from typing import Any

import pytest
from tests.screens import press, see


async def test_form_fields(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        await press(pilot, "e tab ~All·of·it. tab ~one enter ~two tab ~claim tab ~never tab")
        await press(pilot, "~x,·y tab " + "delete " * 7 + "~multi_hop tab ~hard ctrl+s")
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


async def test_form_keeps_what_was_not_edited(bench: Any) -> None:
    """A tab and an escape character, which the form shows as signs, stay what they are."""
    facts = ["a\tb", "[/]", "\x1b[31mred"]
    case = {"id": "q-01", "question": "Why\x07?", "expected_key_facts": facts}
    async with bench.run(cases={"q-01": case}) as (b, pilot):
        await see(
            pilot, "e", "Question (with hidden characters, which an edit makes visible signs)"
        )
        assert b.shown().count("hidden characters") == 1
        await press(pilot, "tab tab down down end enter ~new ctrl+s")
    assert b.session.case == case | {"expected_key_facts": [*facts, "new"]}


async def test_form_keeps_what_cannot_be_kept(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        await press(pilot, "o ctrl+s")
        assert b.app.screen is b.main, "nothing typed: nothing added"
        b.session.ledger._validate = lambda case: ["category: no such category"]
        await see(pilot, "o ~Why? ctrl+s", "category: no such category")
        await see(pilot, "escape", "The form was changed.")
        await press(pilot, "escape escape d")
        assert b.app.screen is b.main
    assert len(b.session.queue.visible) == 4


async def test_undo_and_redo_of_lines_that_need_a_scroll_bar(bench: Any) -> None:
    async with bench.run() as (b, pilot):
        await press(pilot, "e tab a enter enter enter enter enter enter b")
        field = b.app.screen.focused
        assert field.text == "a" + "\n" * 6 + "b"
        for undone in ("a" + "\n" * 6, *("a" + "\n" * n for n in range(5, -1, -1)), ""):
            await pilot.press("ctrl+z")
            assert field.text == undone
        await pilot.press(*["ctrl+y"] * 8)
        assert field.text == "a" + "\n" * 6 + "b"
        assert field.cursor_location == (6, 1)


async def test_an_editor_where_the_screen_cannot_be_given_up(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The driver of tests cannot suspend, as that of a browser cannot.
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "false")
    async with bench.run() as (b, pilot):
        await see(pilot, "E", "an editor cannot be opened here; press e for the form")
    assert not b.events
