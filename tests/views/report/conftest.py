"""A scored run full of hostile text; and a headless Chromium to look at its report.

Tests that want the browser run where RAG_EVAL_CHROMIUM names the program. Nothing is downloaded,
and the browser gets a new, empty profile.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import click
import pytest
from click.testing import CliRunner, Result
from tests.pages import Blocks, page_of

import report_run
import storage
from records.files import sha256_file

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-default-apps", "--disable-extensions"),
    *("--metrics-recording-only", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
    *("--remote-debugging-port=0", "--window-size=1280,900"),
)
START_SECONDS = 60


def chromium() -> str | None:
    """The browser to test with."""
    named = os.environ.get("RAG_EVAL_CHROMIUM")
    return shutil.which(named) if named else None


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

    @contextlib.asynccontextmanager
    async def page(
        self,
        path: Path,
        fragment: str = "",
        width: int = 1280,
        scheme: str = "light",
        mobile: bool = False,
    ) -> AsyncIterator[Tab]:
        """A tab in which a page has loaded."""
        async with self.tab() as tab:
            await tab.look(width, scheme, mobile=mobile)
            await tab.open(path.as_uri() + fragment)
            yield tab

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium: name one in RAG_EVAL_CHROMIUM")
    started = Browser(program, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


HOSTILE = (
    '<script>window.ran = 1; console.log("ran")</script>'
    '<img src="http://192.0.2.1/x.png" onerror="window.ran = 2">'
    '"><svg onload=window.ran=3></svg></style></title></details></section>'
    "<style>body{display:none}</style><base href='//192.0.2.1/'>"
    "<iframe src='//192.0.2.1/'></iframe><meta http-equiv=refresh content=0;url=//192.0.2.1>"
    "<a href='javascript:window.ran=4'>x</a> [x](javascript:alert(1)) ![x](http://192.0.2.1/y.png)"
    " {{ 7 * 7 }} {% raw %} ``` ~~~ | a | \x1b]0;title\x07\x1b[31m \u202etxt.exe\u202c \ufeff"
)
"""Text as an attacker of the report's reader would put into a note, a question or an answer."""


def _cases(count: int) -> list[dict[str, Any]]:
    """Cases of every kind; some are answered well, some badly, one in eight fails."""
    return [
        {
            "id": f"case-{n}" if n else HOSTILE[:150],
            "question": f"What holds thing {n}? {HOSTILE if n % 3 == 0 else ''}",
            "answerable": n % 5 != 4,
            "category": ("factual", "reasoning")[n % 2],
            "difficulty": HOSTILE if n % 7 == 0 else "easy",
            "tags": [f"tag-{n % 40}", HOSTILE[:60]],
            "reference_answer": f"Thing {n} holds the shard {n}. {HOSTILE}",
            "gold_supports": [
                {"rel_path": f"notes/{n}.md", "heading_path": "Part", "snippets": [HOSTILE]}
            ],
            "expected_outcome": "success",
        }
        for n in range(count)
    ]


def _result(n: int, case: dict[str, Any]) -> storage.TestResult:
    if n % 8 == 7:
        error = storage.ErrorInfo("timeout", f"no answer {HOSTILE}", 3)
        return storage.TestResult(case["id"], case["question"], status="error", error=error)
    hit = n % 4 + 1
    chunks = [
        storage.RetrievedChunk(
            chunk_id=f"{n}-{rank}",
            rel_path=f"notes/{n if rank == hit and n % 3 else 10_000 + rank}.md",
            heading_path=f"Part > {HOSTILE}" if rank == hit else "Part",
            score_final=1 / rank,
            text=f"Thing {n} holds shard {rank}. {HOSTILE}",
            rank=rank,
        )
        for rank in range(1, 6)
    ]
    return storage.TestResult(
        case["id"],
        case["question"],
        answer=f"Thing {n} holds {n} shards and 99 leases [1]. {HOSTILE}",
        references=[storage.Reference(index=1, chunk_id=f"{n}-{1 + n % 2}")],
        retrieved=list(chunks),
        abstained=n % 6 == 5,
        abstain_reason=HOSTILE if n % 6 == 5 else None,
        confidence=n % 10 / 10,
        policy_flags=[HOSTILE[:40]],
        latency_ms={"retrieve": 10.0 + n, "generate": 400.0 - n, HOSTILE[:60]: 3.0, "total": 900.0},
        usage={"prompt_tokens": 10 + n},
    )


class Made:
    """A made-up run, scored by the scripts, and what report_run makes of it."""

    def __init__(self, folder: Path, count: int = 48) -> None:
        self.folder = folder
        self.run = folder / "results" / "run"
        self.page = self.run / "report.html"
        cases = _cases(count)
        lines = "".join(json.dumps(case) + "\n" for case in cases)
        (folder / "set.jsonl").write_text(lines, encoding="utf-8")
        note = {"case_id": "case-7", "note": f"Look at the chunker. {HOSTILE}", "flag": True}
        (folder / "labels" / "notes").mkdir(parents=True)
        (folder / "labels" / "notes" / "set.jsonl").write_text(json.dumps(note), encoding="utf-8")
        writer = storage.ResultsWriter(folder / "results", "run", store_full_text=True)
        writer.write_config(
            storage.RunConfig("run", api={"url": HOSTILE}, index={"chunker": HOSTILE}, run={"a": 1})
        )
        for n, case in enumerate(cases):
            writer.write_result(_result(n, case))
        writer.finish(case["id"] for case in cases)
        for name in ("retrieval", "context", "groundedness", "abstention", "pipeline"):
            command = importlib.import_module(f"score_{name}").main
            done = self.call(command, "--quiet")
            assert done.exit_code == 0, done.output

    def call(self, command: click.Command, *options: str) -> Result:
        words = ["--eval-set", str(self.folder / "set.jsonl"), "--run", str(self.run)]
        return CliRunner().invoke(command, [*words, *options])

    def report(self, *options: str) -> Blocks:
        """What --json prints, after the files were written."""
        done = self.call(report_run.main, "--json", *options)
        assert done.exit_code == 0, done.output
        return page_of(json.loads(done.stdout))

    def text(self, form: str) -> str:
        return (self.run / f"report.{form}").read_text("utf-8")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A run whose every text is hostile, with its report in all forms. Do not write into it."""
    run = Made(tmp_path_factory.mktemp("made"))
    run.report()
    return run


@pytest.fixture(scope="session")
def hostile() -> str:
    return HOSTILE


class Pair:
    """Two runs of 24 cases, and what the scripts make of them.

    Base finds the gold of cases 0 to 19. The new run loses that of 0 to 9, finds that of 20 and 21,
    and its call for 23 fails. All answers of the new run are hostile.
    """

    COUNT = 24
    reported: Blocks

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results"
        cases = [
            {
                "id": f"case-{n}",
                "question": f"What is thing {n}?",
                "answerable": True,
                "category": "factual" if n % 2 else "reasoning",
                "gold_supports": [{"rel_path": f"{n}.md", "heading_path": "Part", "snippets": []}],
                "expected_outcome": "success",
            }
            for n in range(self.COUNT)
        ]
        lines = "".join(json.dumps(case) + "\n" for case in cases)
        (folder / "set.jsonl").write_text(lines, encoding="utf-8")
        found = {"base": {*range(20)}, "new": {*range(10, 20), 20, 21}}
        for run, hits in found.items():
            writer = storage.ResultsWriter(self.results, run, store_full_text=True)
            dataset = {"path": "set.jsonl", "sha256": sha256_file(folder / "set.jsonl")}
            writer.write_config(storage.RunConfig(run, dataset=dataset, started=STARTED[run]))
            for n, case in enumerate(cases):
                failed = run == "new" and n == 23
                writer.write_result(self._result(run, n, str(case["question"]), n in hits, failed))
            writer.finish(str(case["id"]) for case in cases)
            for name in ("retrieval", "pipeline"):
                command = importlib.import_module(f"score_{name}").main
                done = self.call(command, "--run", run, "--quiet")
                assert done.exit_code == 0, done.output

    @staticmethod
    def _result(run: str, n: int, question: str, hit: bool, failed: bool) -> storage.TestResult:
        if failed:
            error = storage.ErrorInfo("timeout", "no answer in 60 s", 3)
            return storage.TestResult(f"case-{n}", question, status="error", error=error)
        chunk = storage.RetrievedChunk(
            chunk_id=f"{run}-{n}",
            rel_path=f"{n}.md" if hit else "other.md",
            heading_path="Part",
            text=f"Passage of {run} for {n}.",
            rank=1,
        )
        answer = f"Thing {n} as {run} has it. {HOSTILE if run == 'new' else ''}"
        references = [storage.Reference(index=1, chunk_id=chunk.chunk_id)]
        return storage.TestResult(
            f"case-{n}", question, answer=answer, references=references, retrieved=[chunk]
        )

    def call(self, command: click.Command, *options: str) -> Result:
        words = ["--eval-set", str(self.folder / "set.jsonl"), "--results-dir", str(self.results)]
        return CliRunner().invoke(command, [*options, *words])

    def report(self, target: Path, *options: str) -> Blocks:
        words = ("--run", "new", "--baseline", "base", "--output", str(target), "--json")
        done = self.call(report_run.main, *words, *options)
        assert done.exit_code == 0, done.output
        return page_of(json.loads(done.stdout))

    @property
    def page(self) -> Path:
        return self.folder / "report.html"


STARTED = {"base": "2026-01-01T10:00:00+00:00", "new": "2026-01-02T10:00:00+00:00"}


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Two scored runs, and the report of the new one against the base, in all forms."""
    runs = Pair(tmp_path_factory.mktemp("pair"))
    runs.reported = runs.report(runs.folder / "report", "--history")
    return runs
