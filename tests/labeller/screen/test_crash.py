"""A crash: exit code 1, a sentence for the user, and a file without any question or chunk in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.screens import see

from labeller import edits
from labeller.case_state import CaseState
from terminal.app import _write_crash_file

SECRET = "the text of a chunk"


def test_crash_file_holds_places_and_types_only() -> None:
    def fail(chunk_text: str) -> None:
        try:
            raise KeyError(chunk_text)
        except KeyError as error:
            raise ValueError(f"cannot use {chunk_text}") from error

    with pytest.raises(ValueError) as caught:  # noqa: PT011 - its text is the point
        fail(SECRET)
    path = Path(_write_crash_file(caught.value))
    text = path.read_text(encoding="utf-8")
    path.unlink()
    assert SECRET not in text
    assert text.startswith("ValueError\n")
    assert "KeyError\n" in text
    assert "test_crash.py" in text


async def test_a_crash_in_an_action_ends_with_code_1(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(state: CaseState) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(edits, "flag", fail)
    b = bench()
    with pytest.raises(ZeroDivisionError):
        async with b.app.run_test(size=(80, 24)) as pilot:
            await pilot.press("f")
    assert b.app.return_code == 1
    path = Path(b.app.crash_file)
    assert SECRET not in path.read_text(encoding="utf-8")
    path.unlink()


async def test_a_failing_save_does_not_end_the_session(bench: Any) -> None:
    def fail() -> str:
        raise OSError("disk")

    async with bench.run() as (b, pilot):
        b.store.save = fail
        await pilot.press("ctrl+s")
        await b.app.workers.wait_for_complete()
        await see(pilot, "", "NOT SAVED: OSError")
        await pilot.press("2")
        assert b.session.supports()
