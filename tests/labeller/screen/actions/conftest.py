"""The app in a terminal of 80×24, for the test of one action."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot

from labeller.actions import ACTIONS

LONG = "\n".join(f"line {number} of a text" for number in range(60))
Bench = Any
Running = AbstractAsyncContextManager[tuple[Bench, Pilot[None], str]]


@pytest.fixture
def action(bench: Any) -> Callable[[str], Running]:
    """Runs the app: its bench, a pilot, and the first key of the named action."""

    @asynccontextmanager
    async def run(name: str) -> AsyncIterator[tuple[Bench, Pilot[None], str]]:
        (row,) = (one for one in ACTIONS if (one.where, one.id) == ("main", name))
        scrolled = name.startswith(("page-", "line-"))
        made = bench(chunks={"q-01": [bench.long_chunk(LONG)]}) if scrolled else bench()
        async with made.app.run_test(size=(80, 24), notifications=True, tooltips=True) as pilot:
            yield made, pilot, row.keys[0] if row.keys else ""

    return run
