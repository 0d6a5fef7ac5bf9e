"""The part of a web framework that the three bots need: JSON in, JSON or a stream out."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class Answer:
    """A status with JSON, with bytes, or with pieces of a text that are sent one by one."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


View = Callable[[Any, Mapping[str, str]], Answer]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: BotServer

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        allowed = [method for method, known in self.server.views if known == path]
        view = self.server.views.get((self.command, path))
        if view is None:
            missing = Answer({"detail": "Not Found"}, 404)
            other = Answer({"detail": "Method Not Allowed"}, 405, {"Allow": ", ".join(allowed)})
            self.send(other if allowed else missing)
            return
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            self.send(Answer({"detail": "JSON decode error"}, 400))
            return
        self.send(view(body, dict(self.headers)))

    do_GET = do_POST = do_PUT = do_DELETE = _serve

    def send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if isinstance(answer.body, Iterator):
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in answer.body:
                data = piece.encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            return
        data = answer.body
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        if "Content-Type" not in answer.headers:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Silent."""


class BotServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # see tests/fake_bot.py
    handler: type[Handler] = Handler

    def __init__(self, views: Mapping[tuple[str, str], View], port: int = 0) -> None:
        self.views = views
        super().__init__(("127.0.0.1", port), self.handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


def run(make: Callable[[int], BotServer], port: int) -> None:
    """Serve until Ctrl+C: what ``python tests/bots/NAME.py PORT`` does."""
    with make(port) as server:
        print(server.url, flush=True)
        threading.Event().wait()
