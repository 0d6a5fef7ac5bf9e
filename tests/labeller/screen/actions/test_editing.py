"""Editing, adding and deleting questions; copying. One test an action."""

from __future__ import annotations

from typing import Any

import pytest

from labeller import case_keys
from terminal.actions import ActionRefused


async def test_edit(action: Any) -> None:
    async with action("edit") as (b, pilot, key):
        await pilot.press(key, "X", "ctrl+s")
        await pilot.pause()
        assert b.session.case["question"].startswith("XHow long")


async def test_edit_text(action: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with action("edit-text") as (b, pilot, key):
        monkeypatch.setattr(
            case_keys,
            "_edit_outside",
            lambda app, text: text.replace("How long", "Until when"),
        )
        await pilot.press(key)
        assert b.session.case["question"].startswith("Until when")
        monkeypatch.setattr(case_keys, "_edit_outside", lambda app, text: "{")
        await pilot.press(key)
        assert "The record was not accepted" in b.shown()
        await pilot.press("d")
        assert b.session.case["question"].startswith("Until when")


async def test_an_editor_that_fails_the_second_time_is_refused_too(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = bench()
    texts = iter(["{"])

    def edit_once(app: object, text: str) -> str:
        try:
            return next(texts)
        except StopIteration:
            raise ActionRefused("the editor ended with 1; nothing was changed") from None

    monkeypatch.setattr(case_keys, "_edit_outside", edit_once)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("E", "e")
        await pilot.pause()
        assert b.status == "the editor ended with 1; nothing was changed"


async def test_new(action: Any) -> None:
    async with action("new") as (b, pilot, key):
        await pilot.press(key, *"Why?")
        await pilot.pause()
        assert "why" in b.shown().splitlines()[7], "the id follows the question"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert b.session.case["question"] == "Why?"
        assert b.session.current == "why"
        await pilot.press(key, *"Why else?", "tab", "ctrl+u", *"mine", "ctrl+s")
        await pilot.pause()
        assert b.session.current == "mine"


async def test_copy(action: Any) -> None:
    async with action("copy") as (b, pilot, key):
        await pilot.press("1", key, *"Why? ", "ctrl+s")
        await pilot.pause()
        assert b.session.case["question"].startswith("Why? How long")
        assert b.session.current == "long-audit-logs-kept-case"
        assert b.marks == []


async def test_delete(action: Any) -> None:
    async with action("delete") as (b, pilot, _key):
        b.main.perform("delete")
        await pilot.press("n")
        assert "q-01" in b.session.queue
        b.main.perform("delete")
        await pilot.press("y")
        assert "q-01" not in b.session.queue
        await pilot.press("u")
        assert "q-01" in b.session.queue


async def test_copy_anchor(action: Any) -> None:
    async with action("copy-anchor") as (b, pilot, key):
        await pilot.press(key)
        chunk = b.session.rows()[0].chunk
        assert b.app.clipboard == f"{chunk.rel_path} > {chunk.heading_path}"


async def test_copy_text(action: Any) -> None:
    async with action("copy-text") as (b, pilot, key):
        await pilot.press(key)
        assert b.app.clipboard == b.session.rows()[0].chunk.text
