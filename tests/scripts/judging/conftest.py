"""A run to be judged, and a server on loopback that plays an OpenAI-compatible API."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from judge_answers import main
from records.verdict_lines import full_line, read_settings
from storage import ErrorInfo, RetrievedChunk, TestResult

FEE = "The fee is 15 euros. It is paid at the north desk."
TOUR = "The tour begins at noon and takes two hours."


def result(name: str, answer: str, **fields: Any) -> TestResult:
    chunks: list[RetrievedChunk | str] = [
        RetrievedChunk("k1", text=FEE + " " * 200, rank=1),
        RetrievedChunk("k2", text=TOUR, rank=2),
    ]
    return TestResult(name, answer=answer, **({"retrieved": chunks} | fields))


CASES = [
    {"id": "good", "category": "factual", "expected_key_facts": ["The fee is 15 euros"]},
    {"id": "bad", "category": "reasoning", "reference_answer": "The tour begins at noon."},
    {"id": "shy", "answerable": False},
    {"id": "broken"},
]
RESULTS = [
    result("good", "The fee is 15 euros."),
    result("bad", "The tour begins at noon. Dogs pay [bold]31[/] \x1b[Heuros at the south gate."),
    result("shy", "I cannot find this in the documents."),
    TestResult("broken", status="error", error=ErrorInfo("timeout")),
]


class JudgedRun:
    """A finished run of four cases: a good answer, a bad one, an abstention, a failed call."""

    result = staticmethod(result)

    def __init__(self, finished: Any) -> None:
        self.finished = finished

    def write(self, cases: Any = None, results: Any = None, **more: Any) -> None:
        """``cases`` and ``results`` instead of the four."""
        self.finished.write(cases or CASES, results or RESULTS, **more)

    def judge(self, *words: str) -> dict[str, Any]:
        """The section that judge_answers.py prints."""
        cache = str(self.finished.folder / "cache")
        found: dict[str, Any] = self.finished.section(main, "--cache-dir", cache, "-q", *words)
        return found

    def call(self, *words: str) -> Any:
        """judge_answers.py as it ends, with its output."""
        cache = str(self.finished.folder / "cache")
        return self.finished.score(main, "--cache-dir", cache, *words)

    def lines(self) -> list[dict[str, Any]]:
        """verdicts.jsonl, each line with all that it leaves out or names; without the settings."""
        path = self.finished.run / "verdicts.jsonl"
        settings = read_settings(path)
        raw = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return [
            {"cached": False, "mode": ""} | full_line(line, settings[line["setting"]])
            if "case_id" in line
            else line
            for line in raw
            if "case_id" in line or "setting" not in line
        ]


@pytest.fixture
def run(finished: Any) -> JudgedRun:
    return JudgedRun(finished)


class Server(ThreadingHTTPServer):
    """Plays an OpenAI-compatible API; ``reply`` makes the answer of a judgement from its claims.

    ``form`` fills what is asked for besides judgements: a probe, a list of facts.
    """

    daemon_threads = True
    request_queue_size = 256  # see tests/fake_bot.py

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls: list[dict[str, Any]] = []
        self.reply: Callable[[Server, dict[str, Any]], tuple[int, Any]] = Server.support
        self.form: Callable[[dict[str, Any]], dict[str, Any]] = canary
        self.delay = 0.0
        self.model = "judge-2025-01-01"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def judgements(self) -> int:
        return sum("verdicts" in schema_of(call) for call in self.calls)

    def words(self, *more: str, pinned: bool = True) -> tuple[str, ...]:
        """Options that make this server the judge of groundedness."""
        words = ("--judge", self.url, "--model", self.model, "--set", "retries=0")
        pin = ("--set", "revision=r1") if pinned else ()
        return (*words, *pin, "--metrics", "groundedness", *more)

    @staticmethod
    def completion(reply: Any, finish: str = "stop") -> dict[str, Any]:
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return {
            "model": "judge-2025-01-01",
            "choices": [{"message": {"content": text}, "finish_reason": finish}],
            "usage": {"prompt_tokens": 5000, "completion_tokens": 50, "total_tokens": 5050},
        }

    def support(self, body: dict[str, Any]) -> tuple[int, Any]:
        """Every claim is supported by the first passage."""
        entry = {
            "context": "c1",
            "quote": "The fee is 15 euros",
            "reason": "",
            "verdict": "supported",
        }
        verdicts = [{"id": name} | entry for name in ids_in(body)]
        return 200, self.completion({"notes": "", "verdicts": verdicts, "manipulation": False})


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are sent apart

    def log_message(self, *words: Any) -> None: ...

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            return self._send(200, {"object": "list", "data": [{"id": self.server.model}]})
        self._send(404, {"error": "no such path"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            return self._send(404, {"error": "no such path"})
        self.server.calls.append(body)
        time.sleep(self.server.delay)
        if "questions" in schema_of(body):
            asked = ["What is the fee?", "How much is the fee?", "What does it cost?"]
            reply = {"notes": "", "noncommittal": False, "questions": asked, "manipulation": False}
            return self._send(200, self.server.completion(reply))
        if "verdicts" not in schema_of(body):
            return self._send(200, self.server.completion(self.server.form(body)))
        status, reply = self.server.reply(self.server, body)
        self._send(status, reply)

    def _send(self, status: int, reply: Any) -> None:
        data = json.dumps(reply).encode()
        with contextlib.suppress(BrokenPipeError):  # the client was killed
            self._write(status, data)

    def _write(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def ids_in(body: dict[str, Any]) -> list[str]:
    """The ids that a prompt asks about: its last line."""
    last: str = body["messages"][1]["content"].splitlines()[-1]
    return last.rpartition(": ")[2].rstrip(".").split(", ")


def reply_to(body: dict[str, Any]) -> dict[str, Any]:
    """A form filled by its schema: facts, or the last of the possible verdicts, without a quote."""
    fields = schema_of(body)
    if "facts" in fields:
        return {"notes": "", "facts": ["The tour begins at noon."], "manipulation": False}
    if "verdicts" not in fields:
        return {"wet": "yes", "code": "zq-17-umber"}
    entry = fields["verdicts"]["items"]["properties"]
    verdicts = []
    for name in entry["id"]["enum"]:
        line = {"id": name, "context": "", "quote": "", "reason": "Nothing says so."}
        line["verdict"] = entry["verdict"]["enum"][-1]
        verdicts.append({key: line[key] for key in entry})
    extra = {key: True for key in fields if fields[key] == {"type": "boolean"}}
    return {"notes": ""} | extra | {"verdicts": verdicts, "manipulation": False}


def schema_of(body: dict[str, Any]) -> dict[str, Any]:
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    found: dict[str, Any] = schema.get("properties", {})
    return found


def canary(body: dict[str, Any]) -> dict[str, Any]:
    """The smallest reply that fits a flat schema: what a probe asks for."""
    reply: dict[str, Any] = {}
    for name, part in schema_of(body).items():
        if "enum" in part:
            reply[name] = part["enum"][0]
        elif "const" in part:
            reply[name] = part["const"]
        else:
            reply[name] = {"integer": 1, "number": 1, "boolean": True, "array": []}.get(
                part.get("type"), "text"
            )
    return reply


LABELS = ("not helpful", "partly helpful", "helpful")


def helpful_as_said(_: Server, body: dict[str, Any]) -> tuple[int, Any]:
    """The verdict of ``rubrics.helpful`` that an answer such as "Verdict 2 of q1." names."""
    if "helpful" not in json.dumps(schema_of(body)):
        return 200, Server.completion(canary(body))
    text = body["messages"][1]["content"].rpartition("Verdict ")[2]
    entry = {"id": "1", "quote": f"Verdict {text[0]}", "reason": "short"}
    verdicts = [entry | {"verdict": LABELS[int(text[0])]}]
    return 200, Server.completion({"notes": "", "verdicts": verdicts, "manipulation": False})


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.shutdown()
    running.server_close()
