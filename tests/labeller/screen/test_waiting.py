"""Keys that come before the passages wait for them; until then no key decides a case."""

from __future__ import annotations

from typing import Any

from tests.labeller.screen.conftest import plain_chunks

from labeller.fetching import Arrival


class Slow:
    """A bench whose source says nothing until `bring` is called."""

    def __init__(self, b: Any) -> None:
        self.bench = b
        b.source.request = lambda case_id, question: None

    async def bring(self, pilot: Any, case_id: str, problem: str = "") -> None:
        chunks = () if problem else tuple(plain_chunks(case_id))
        self.bench.source._answer(Arrival(case_id, chunks, problem=problem))
        await pilot.pause()
        await pilot.pause()


async def test_no_key_decides_a_case_that_shows_nothing(bench: Any) -> None:
    b = bench()
    slow = Slow(b)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("x", "enter")
        assert b.events == []
        assert "2 keys wait for the passages, Esc drops them" in b.shown()
        await slow.bring(pilot, "q-01")
        assert b.session.queue.summaries["q-01"].status == "unanswerable"
        assert b.session.current == "q-02"
        assert "wait" not in b.shown()
        await pilot.press("x", "enter", "escape")
        assert b.status == "2 keys dropped"
        await slow.bring(pilot, "q-02")
        assert b.session.queue.summaries["q-02"].status == "open"
        await pilot.press("2")
        assert b.marks == ["2"]


async def test_the_order_of_keys_is_kept_over_several_cases(bench: Any) -> None:
    b = bench()
    slow = Slow(b)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("j", "space", "enter", "f", "l", "4")
        for number in (1, 2):
            await slow.bring(pilot, f"q-0{number}")
        assert "1 key waits for the passages, Esc drops it" in b.shown()
        await slow.bring(pilot, "q-03")
        done = [(event["case"], event["action"]) for event in b.events]
        expected = [("q-01", "toggle"), ("q-01", "confirm"), ("q-02", "flag"), ("q-03", "toggle")]
        assert done == expected
        assert b.marks == ["4"]


async def test_passages_that_cannot_be_had_let_keys_wait_for_a_person(bench: Any) -> None:
    b = bench()
    slow = Slow(b)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2", "x", "enter")
        await slow.bring(pilot, "q-01", problem="the API does not answer")
        assert b.events == []
        assert "3 keys wait: F5 tries again, Esc drops them" in b.shown()
        await pilot.press("f5")
        await pilot.pause()
        assert b.session.queue.summaries["q-01"].status == "unanswerable", (
            "2 marked, x took it back"
        )


async def test_a_key_that_waited_and_opens_a_window_is_no_more_waited_for(bench: Any) -> None:
    """Else the screen below would go on counting it, and take the next Esc for dropping keys."""
    b = bench()
    slow = Slow(b)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("1", "slash")
        assert b.main.held == 2
        await slow.bring(pilot, "q-01")
        assert b.app.screen is not b.main
        assert b.main.held == 0
        await pilot.press(*"billing", "enter")
        assert len(b.main.chunks.rows) == 4
        await pilot.press("escape")
        assert len(b.main.chunks.rows) == 12, b.status


async def test_looking_around_does_not_wait(bench: Any) -> None:
    b = bench()
    Slow(b)
    async with b.app.run_test(size=(120, 40)) as pilot:
        await pilot.press("l", "l")
        assert b.session.current == "q-03"
        await pilot.press("tab", "tab", "down", "enter")  # in the list of questions
        assert b.session.current == "q-04"
        await pilot.press("question_mark")
        assert b.app.screen is not b.main
        await pilot.press("escape", "x")
        assert b.main.held == 1
        await pilot.click(b.main.questions, offset=(3, 1))
        assert b.session.current == "q-04", "the key that waits is for this question"
        await pilot.press("ctrl+c", "ctrl+c")
    assert b.app._exit


async def test_the_palette_decides_nothing_either(bench: Any) -> None:
    b = bench()
    Slow(b)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        b.main.perform("unanswerable")
        assert b.status == "the passages are not here yet"
    assert b.events == []
