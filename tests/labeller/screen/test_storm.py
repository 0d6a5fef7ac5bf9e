"""Random keys: nothing crashes, every record stays valid, and undo leads back to the start."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.key_names import textual_name
from tests.labeller.conftest import snapshot

from labeller.actions import ACTIONS
from terminal.actions import ActionRefused

# Keys that leave the program, or start another one, are left out; all others of all screens are in.
LEAVING = {"leave", "quit", "interrupt", "edit-text"}
KEYS = sorted(
    {key for action in ACTIONS if action.id not in LEAVING for key in action.keys}
    | {"a", "b", "c", "g", "ctrl+t", "ctrl+v", "delete", "Z", "ö", "日", "f3"}
)
# Most keys open a window or type into one; the labelling keys and Esc are pressed more often.
HOT = [*"1234567890 xasfuuUUmbMrvtjklhRBS+-<>@&", "enter", "enter", "colon", "down", "tab"]
WEIGHTED = KEYS + ["space" if key == " " else key for key in HOT] * 8 + ["escape", "d"] * 25
LENGTH = 500
"""Presses of an example."""


def valid(case: dict[str, Any]) -> list[str]:
    """What is wrong with a record, told without the tool's own code."""
    problems = []
    supports = case.get("gold_supports", [])
    groups = case.get("required_support_groups", [])
    if not isinstance(case.get("question"), str) or not case["question"]:
        problems.append("question: must be a text")
    if any(not support.get("rel_path") for support in supports):
        problems.append("gold_supports: a support without a path")
    if any(index >= len(supports) for group in groups for index in group):
        problems.append("required_support_groups: no such support")
    if case.get("answerable") is False and supports:
        problems.append("answerable: false, but there are supports")
    return problems


async def storm(b: Any, keys: list[str]) -> bytes:
    """Press the keys as fast as they come; a window is given a moment now and then."""
    start: bytes = snapshot(b.session)
    cases = copy.deepcopy(b.session.ledger._records)
    async with b.app.run_test(size=(80, 24), notifications=True, tooltips=True) as pilot:
        for number, key in enumerate(keys):
            if b.app._exit:
                break
            b.app.simulate_key(textual_name(key))
            if number % 20 == 19 or key == "ctrl+s":
                # A q that met no window ended the app: that is its job, and the storm is over.
                await pilot.pause()
        await pilot.pause()
        assert b.app._exception is None
    for case_id in b.session.queue.visible:
        assert valid(b.session.ledger.case_of(case_id)) == []
    while b.session.ledger.history.done:
        try:
            b.session.undo()
        except ActionRefused as refusal:
            raise AssertionError(str(refusal)) from refusal
    assert snapshot(b.session) == start
    assert b.session.ledger._records == cases
    return start


@pytest.mark.slow
@pytest.mark.parametrize("examples", [2, pytest.param(10, marks=pytest.mark.thorough)])
def test_key_storm(bench: Any, examples: int) -> None:
    done: list[str] = []

    @settings(
        max_examples=examples,
        deadline=None,
        # Each example takes seconds: to shrink a failure would take longer than the time-out.
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    )
    @given(keys=st.lists(st.sampled_from(WEIGHTED), min_size=LENGTH, max_size=LENGTH))
    def run(keys: list[str]) -> None:
        b = bench(validate=valid)
        asyncio.run(storm(b, [key for key in keys if key not in ("q", "ctrl+q", "ctrl+c")]))
        done.extend(event["action"] for event in b.events)

    run()
    assert len(done) > 100, "the keys did something"
    assert {"toggle", "undo", "flag"} <= set(done)
