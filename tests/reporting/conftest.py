"""A headless Chromium driven over its DevTools socket; tests that want it skip where there is none.

RAG_EVAL_CHROMIUM names the program; else it is looked for on the PATH. Nothing is downloaded, and
the browser gets a new, empty profile.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--metrics-recording-only",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-port=0",
    "--window-size=1280,900",
)
START_SECONDS = 60


def chromium() -> str | None:
    """The browser to test with."""
    named = os.environ.get("RAG_EVAL_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Tab:
    """One page: what it was told to do, and what it did (requests, console, exceptions)."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.events: list[dict[str, Any]] = []

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command; its result. Events that come meanwhile are kept."""
        self._number += 1
        number = self._number
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message: dict[str, Any] = await self._socket.receive_json(timeout=START_SECONDS)
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    async def open(self, url: str) -> None:
        """Go to an address and wait until all of it has loaded."""
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.send(f"{domain}.enable")
        await self.send("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(await self._socket.receive_json(timeout=START_SECONDS))

    async def value(self, expression: str) -> Any:
        """What a JavaScript expression gives in the page."""
        found = await self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "text": text}
        for kind in ("keyDown", "keyUp"):
            await self.send("Input.dispatchKeyEvent", type=kind, **common)

    async def look(self, width: int, scheme: str, *, mobile: bool = False) -> None:
        """Set the width of the window and the colour scheme."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": mobile}
        await self.send("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.send("Emulation.setEmulatedMedia", features=features)

    async def picture(self, *, whole: bool = True) -> bytes:
        """A PNG of the page."""
        shot = await self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])

    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def said(self) -> list[dict[str, Any]]:
        """Console messages, log entries and exceptions."""
        kinds = {"Runtime.consoleAPICalled", "Log.entryAdded", "Runtime.exceptionThrown"}
        kinds |= {"Page.javascriptDialogOpening"}
        return [event for event in self.events if event["method"] in kinds]


class Browser:
    def __init__(self, program: str, profile: Path) -> None:
        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": str(profile)},
        )
        port = profile / "DevToolsActivePort"
        until = time.monotonic() + START_SECONDS
        while not port.exists() or "\n" not in port.read_text():
            if self._process.poll() is not None or time.monotonic() > until:
                self.close()
                pytest.skip(f"{program} does not start here")
            time.sleep(0.05)
        self._base = f"http://127.0.0.1:{port.read_text().splitlines()[0]}"

    @contextlib.asynccontextmanager
    async def tab(self) -> AsyncIterator[Tab]:
        async with aiohttp.ClientSession() as session:
            async with session.put(f"{self._base}/json/new?about:blank") as answer:
                made = await answer.json()
            async with session.ws_connect(made["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Tab(socket)
            async with session.get(f"{self._base}/json/close/{made['id']}"):
                pass

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium: install one or name it in RAG_EVAL_CHROMIUM")
    started = Browser(program, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()
