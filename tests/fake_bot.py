"""A bot that a test can script, behind a real server on loopback."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Exchange"], None]


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
        # Who finds no room knocks again after a second.
        request_queue_size = 256

        def handle_error(self, *args: Any) -> None:
            """Clients that were killed are part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server
