"""Fixtures for several folders: a bot and a judge that a test can script, behind real servers."""

from __future__ import annotations

import json
import signal
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A busy machine makes examples slow, which says nothing about the code.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

Behaviour = Callable[["Exchange"], None]


def pytest_configure() -> None:
    """Tests press Ctrl-C; started in the background (nohup, CI), they would hand on that it is
    ignored."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first: one that begins last would leave the other processors without work."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


class Exchange:
    """One request and the ways to answer it. The methods named below are what a test scripts."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: bytes, stopped: threading.Event):
        self.handler = handler
        self.path = handler.path
        self.headers = dict(handler.headers.items())
        self.body = body
        self.stopped = stopped

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    def raw(self, body: bytes, status: int = 200, **headers: str) -> None:
        """Answer with these bytes; header names are written with _ for -."""
        self.handler.send_response(status)
        sent = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in sent.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def reply(self, payload: Any, status: int = 200, **headers: str) -> None:
        self.raw(json.dumps(payload).encode(), status, **headers)

    def hang(self) -> None:
        """Say nothing until the test is over."""
        self.stopped.wait(60)
        self.handler.close_connection = True

    def reset(self) -> None:
        """Break the connection with a TCP reset."""
        linger = struct.pack("ii", 1, 0)
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.handler.close_connection = True
        self.handler.wfile = _Nowhere()  # type: ignore[assignment]
        self.handler.connection.close()

    def cut(self, body: bytes) -> None:
        """Announce the whole body, send half of it, close."""
        self.handler.send_response(200)
        self.handler.send_header("Content-Length", str(len(body)))
        self.handler.end_headers()
        self.handler.wfile.write(body[: len(body) // 2])
        self.handler.close_connection = True

    def stream(self, total: int, announce: bool = False, piece: bytes = b" " * 65_536) -> int:
        """Send ``total`` bytes in pieces; returns how many the client took before it left."""
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "application/json")
        if announce:
            self.handler.send_header("Content-Length", str(total))
        self.handler.end_headers()
        self.handler.close_connection = True
        sent = 0
        try:
            while sent < total:
                self.handler.wfile.write(piece)
                sent += len(piece)
        except OSError:
            self.handler.wfile = _Nowhere()  # type: ignore[assignment]
        return sent

    def drip(self, data: bytes, pause: float = 0.05) -> None:
        """Send a byte at a time, status line and all, until the client leaves."""
        self.handler.close_connection = True
        try:
            for place in range(len(data)):
                self.handler.wfile.write(data[place : place + 1])
                if self.stopped.wait(pause):
                    break
        except OSError:
            self.handler.wfile = _Nowhere()  # type: ignore[assignment]


class _Nowhere:
    """Takes what the server still wants to send to a client that has left."""

    closed = False

    def write(self, data: bytes) -> int:
        return len(data)

    def flush(self) -> None: ...

    def close(self) -> None: ...


class FakeBot:
    """Answers every question properly unless told otherwise.

    ``script(question, a, b)``: the first time a, then b, then b for ever. ``default`` answers what
    has no script. ``asked`` counts the requests of each question.
    """

    def __init__(self) -> None:
        self.delay = 0.0
        self.asked: Counter[str] = Counter()
        self.seen: list[Exchange] = []
        self.most_at_once = 0
        self.default: Behaviour = lambda exchange: exchange.reply(
            self.answer(self.question(exchange))
        )
        self.question: Callable[[Exchange], str] = lambda exchange: exchange.json()["question"]
        self._scripts: dict[str, list[Behaviour]] = {}
        self._lock = threading.Lock()
        self._now = 0
        self.stopped = threading.Event()
        self._server = _server(self)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def answer(self, question: str, **fields: Any) -> dict[str, Any]:
        """A complete answer in the contract of the default profile."""
        chunk = {
            "chunk_id": f"c-{question}",
            "doc_id": "notes/a.md",
            "rel_path": "notes/a.md",
            "heading_path": "A > B",
            "score_vector": 0.5,
            "score_lexical": 2,
            "score_final": 0.75,
            "text": f"about {question} " + "x" * 300,
            "rank": 1,
        }
        return {
            "answer": f"answer to {question} [1]",
            "references": [{"index": 1, "chunk_id": f"c-{question}", "rel_path": "notes/a.md"}],
            "retrieved": [chunk],
            "folder_selection": {"chosen": ["notes"], "reason": "only one"},
            "abstained": False,
            "confidence": 0.9,
            "policy_flags": [],
            "guardrail": {"injection": 0.01},
            "latency_ms": {"retrieve": 2.0, "generate": 3.0, "total": 5.0},
            "usage": {"input_tokens": 10, "output_tokens": 5},
        } | fields

    def reply_properly(self, exchange: Exchange) -> None:
        exchange.reply(self.answer(self.question(exchange)))

    def script(self, question: str, *behaviours: Behaviour) -> None:
        self._scripts[question] = list(behaviours)

    def handle(self, exchange: Exchange) -> None:
        question = self.question(exchange)
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            self.asked[question] += 1
            self.seen.append(exchange)
            queue = self._scripts.get(question, [self.default])
            behaviour = queue.pop(0) if len(queue) > 1 else queue[0]
        try:
            if self.delay:
                time.sleep(self.delay)
            behaviour(exchange)
        finally:
            with self._lock:
                self._now -= 1

    def close(self) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()


def _server(bot: FakeBot) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            bot.handle(Exchange(self, self.rfile.read(length), bot.stopped))

        do_GET = do_PUT = do_POST

        def log_message(self, *args: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *args: Any) -> None:
            """Clients that were killed are part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


@pytest.fixture
def fake_bot() -> Iterator[FakeBot]:
    bot = FakeBot()
    yield bot
    bot.close()


class FakeJudge:
    """An OpenAI-compatible server. Every chat is answered by ``answer`` unless scripted.

    ``answer``: the reply's text, or its object, from the request's body. ``resources``: what GET
    (and POST, but chats) gives by path. ``modes``: ways to ask for JSON that the server knows; a
    request for another one is answered by ``unknown_mode``. ``script(text, a, b)``: chats whose
    messages hold ``text`` get a, then b, then b for ever.
    """

    def __init__(self) -> None:
        self.bot = FakeBot()
        self.url = f"{self.bot.url}/v1"
        self.model = "judge-2024-08-06"
        self.answer: Callable[[dict[str, Any]], Any] = lambda body: {}
        self.resources: dict[str, Any] = {}
        self.modes = {"json_schema", "json_object_schema", "tool", "json_object", "plain"}
        self.unknown_mode: Callable[[str], Behaviour] = lambda mode: self.says("Water is wet.")
        self._marks: list[str] = []
        self.bot.question = self._mark
        self.bot.default = self._default

    def script(self, text: str, *behaviours: Behaviour) -> None:
        self._marks.append(text)
        self.bot.script(text, *behaviours)

    def chats(self, canaries: bool = False) -> list[dict[str, Any]]:
        """The bodies of all chats so far, in order of arrival."""
        bodies = [one.json() for one in self.bot.seen if self._is_chat(one)]
        return [body for body in bodies if canaries or not self._is_canary(body)]

    def says(self, reply: Any, **more: Any) -> Behaviour:
        """Answer a chat with this text, or this object as JSON; ``more`` as in ``completion``."""
        return lambda exchange: exchange.reply(self.completion(exchange.json(), reply, **more))

    def fails(self, status: int, message: str = "no", **headers: str) -> Behaviour:
        """Answer with an error in the form that OpenAI gives it."""
        error = {"message": message, "type": "error", "param": None, "code": None}
        return lambda exchange: exchange.reply({"error": error}, status, **headers)

    def refuses(self, parameter: str, **fields: Any) -> Behaviour:
        """HTTP 400 for a request with this field, else the usual answer."""
        message = f"Unsupported parameter: '{parameter}' is not supported with this model."
        error = {"message": message, "param": parameter, "code": "unsupported_parameter"} | fields

        def behave(exchange: Exchange) -> None:
            if parameter in exchange.json():
                exchange.reply({"error": error}, 400)
            else:
                self._default(exchange)

        return behave

    def completion(
        self, body: dict[str, Any], reply: Any, finish_reason: str | None = "stop", **more: Any
    ) -> dict[str, Any]:
        """A chat completion; ``usage`` and ``message`` replace what is usual."""
        text = reply if isinstance(reply, str) else json.dumps(reply)
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if "tools" in body and not isinstance(reply, str):
            function = {"name": body["tools"][0]["function"]["name"], "arguments": text}
            call = {"id": "call_1", "type": "function", "function": function}
            message |= {"content": None, "tool_calls": [call]}
        length = sum(len(one["content"]) for one in body["messages"])
        usage = {"prompt_tokens": length // 4 + 1, "completion_tokens": len(text) // 4 + 1}
        usage["total_tokens"] = sum(usage.values())
        whole: dict[str, Any] = {"id": "chat-1", "object": "chat.completion"}
        whole |= {
            "created": int(time.time()),
            "model": body.get("model", self.model),
            "usage": more.get("usage", usage),
        }
        message |= more.get("message", {})
        choice = {"index": 0, "message": message, "finish_reason": finish_reason}
        fields: dict[str, Any] = more.get("fields", {})
        return whole | {"choices": [choice]} | fields

    def close(self) -> None:
        self.bot.close()

    def _is_chat(self, exchange: Exchange) -> bool:
        return exchange.path.endswith("/chat/completions")

    def _is_canary(self, body: dict[str, Any]) -> bool:
        return "Is water wet?" in body["messages"][1]["content"]

    def _mark(self, exchange: Exchange) -> str:
        if not self._is_chat(exchange):
            return exchange.path
        text = "\n".join(one["content"] for one in exchange.json()["messages"])
        return next((mark for mark in self._marks if mark in text), "")

    def _default(self, exchange: Exchange) -> None:
        if not self._is_chat(exchange):
            known = self.resources.get(exchange.path)
            exchange.reply(known if known is not None else {}, 404 if known is None else 200)
            return
        body = exchange.json()
        wanted = body.get("response_format", {})
        kind = "tool" if "tools" in body else wanted.get("type", "plain")
        kind += "_schema" if "schema" in wanted else ""
        if kind not in self.modes:
            self.unknown_mode(kind)(exchange)
        elif self._is_canary(body):
            self.says({"wet": "yes", "code": "zq-17-umber"})(exchange)
        else:
            self.says(self.answer(body))(exchange)


@pytest.fixture
def fake_judge() -> Iterator[FakeJudge]:
    """A scripted OpenAI-compatible server on loopback."""
    judge = FakeJudge()
    yield judge
    judge.close()
