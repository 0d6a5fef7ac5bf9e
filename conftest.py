"""Fixtures for several folders: a bot and a judge that a test can script, behind real servers."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.fake_bot import FakeBot
from tests.fake_judge import FakeJudge
from tests.hostile_texts import CONTROLS, MARKUP, WIDE

# A busy machine makes examples slow, which says nothing about the code. The examples of a test are
# the same at each run, so that what fails is what was changed; `drawn` draws new ones.
BUSY: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, **BUSY)
settings.register_profile("drawn", **BUSY)
settings.load_profile("same")


FOR_TESTS = {"RAG_EVAL_DATA", "RAG_EVAL_CHROMIUM"}
"""Variables that say where the tests find something; all others are settings of the scripts."""


LONGEST_ID = 60
"""Characters of a parameter in the name of a test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="write the golden files anew")


def _no_sync(fd: Any) -> None:
    """What os.fsync does with a file that is not open, and no wait for the disk."""
    os.fstat(fd if isinstance(fd, int) else fd.fileno())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than processors: a third of the time, tests wait for servers and screens."""
    return (os.cpu_count() or 1) + 1


def pytest_configure() -> None:
    """Whose machine this is must not matter, to this process and to those that tests start.

    No RAG_EVAL_* setting and no eval/config.toml reaches a script. Tests press Ctrl-C and hang up;
    started in the background (nohup, CI), they would hand on that both are ignored. A hang-up that
    is ignored stays without effect on the tests themselves.
    """
    for name in [name for name in os.environ if name.startswith("RAG_EVAL_")]:
        if name not in FOR_TESTS:
            del os.environ[name]
    os.environ["RAG_EVAL_CONFIG"] = os.devnull
    # Hundreds of scripts are started: without their compiled modules each would compile anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # No test cuts the power: those about the disk watch which calls come, and in which order.
    os.fsync = _no_sync
    # The tests run side by side already: threads of a library would only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        if ignored or "PYTEST_XDIST_WORKER" in os.environ:  # a worker ends with the one above it
            signal.signal(signal.SIGHUP, lambda *_: None)


BEAT = 0.002
"""Seconds between two drawings of a screen under test: a sixtieth, as for eyes, would be waited out after each key."""


async def _until_idle(min_sleep: float = BEAT, max_sleep: float = 60.0) -> None:
    """Until an application under test has nothing left to do.

    Textual takes a process that gets no processor for one that is idle, and waits a second at most.
    """
    loop: Any = asyncio.get_running_loop()
    end = loop.time() + max_sleep
    await asyncio.sleep(2 * BEAT)
    while loop._ready and loop.time() < end:
        await asyncio.sleep(BEAT)


def _until_open(wait_for_screen: Callable[..., Any]) -> Callable[..., Any]:
    """Pilot's wait, which also lasts until a screen that opens has taken the keys for it."""

    async def wait(pilot: Any, timeout: float = 120.0) -> bool:
        done: bool = await wait_for_screen(pilot, timeout)
        app, loop = pilot.app, asyncio.get_running_loop()
        end = loop.time() + 60
        while getattr(app, "_opening", False) and app.is_running and app._exception is None:
            assert loop.time() < end, "a screen does not open"
            await asyncio.sleep(0.01)
        return done

    return wait


def pytest_runtest_setup() -> None:
    """No test of a screen depends on how busy the machine is."""
    if "textual.app" in sys.modules:
        import textual.app
        import textual.pilot
        import textual.screen

        modules: tuple[Any, Any] = (textual.app, textual.pilot)
        if modules[0].wait_for_idle is _until_idle:
            return
        vars(textual.screen)["UPDATE_PERIOD"] = BEAT
        for module in modules:
            module.wait_for_idle = _until_idle
        pilot: Any = textual.pilot.Pilot
        pilot._wait_for_screen = _until_open(pilot._wait_for_screen)


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long text stands in the name of a test by its beginning: each worker sends all names."""
    if not isinstance(val, str | bytes) or len(val) <= LONGEST_ID:
        return None
    text = val if isinstance(val, str) else val.decode("latin-1")
    return f"{ascii(text[:LONGEST_ID])[1:-1]}..{len(val)}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and their modules stay until the end: no search for garbage reads them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first: one that begins last would leave the other processors without work."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def fake_bot() -> Iterator[FakeBot]:
    bot = FakeBot()
    yield bot
    bot.close()


@pytest.fixture
def fake_judge() -> Iterator[FakeJudge]:
    """A scripted OpenAI-compatible server on loopback."""
    judge = FakeJudge()
    yield judge
    judge.close()


@pytest.fixture(scope="session")
def pseudo_terminal() -> Callable[..., Any]:
    """`PseudoTerminal` of the benchmark: a real process in a real pty."""
    path = Path(__file__).parent / "bench" / "pseudo_terminal.py"
    spec = importlib.util.spec_from_file_location("pseudo_terminal", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pseudo_terminal"] = module
    spec.loader.exec_module(module)
    terminal: Callable[..., Any] = module.PseudoTerminal
    return terminal


@pytest.fixture(scope="session")
def hostile() -> tuple[str, ...]:
    """Every hostile string: markup, control sequences, characters of unusual width."""
    return MARKUP + CONTROLS + WIDE


@pytest.fixture(scope="session")
def markup() -> tuple[str, ...]:
    """Strings that a markup parser would crash on or obey."""
    return MARKUP


@pytest.fixture(scope="session")
def controls() -> tuple[str, ...]:
    """Strings with characters that a terminal would obey or hide."""
    return CONTROLS
