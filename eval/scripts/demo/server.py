"""The embedded bot on a real HTTP server: ``POST /api/v1/ask`` and ``GET /health``.

In: a Bot. Out: a server on a loopback port, one thread a connection, connections kept alive.
Whatever a client sends, it gets JSON back: ``{"error": {"field": …, "message": …}}`` for a mistake.
"""

from __future__ import annotations

import logging
import re
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import orjson

from clients.embedder import EmbeddingUnavailable
from clients.own_pages import bracketed, is_own, own_hosts
from demo.retriever import UnknownFilter
from demo.service import AskRequest, Bot

ASK = "/api/v1/ask"
HEALTH = "/health"
METHODS = {ASK: ("POST",), HEALTH: ("GET", "HEAD")}
BODY_LIMIT = 1 << 20
"""Bytes of a request's body."""
DRAIN_LIMIT = 16 << 20
"""Bytes that are read and dropped, so that a client which sends too much can read the refusal."""
MOST_DIGITS = 20
"""Of a Content-Length: no body is longer, and int() refuses some thousands."""
IDLE_SECONDS = 120.0
FLAGS = {"true": True, "1": True, "": True, "false": False, "0": False}

_FIELD = re.compile(r" - at `\$\.?([^`]*)`$")
_UNKNOWN_FIELD = re.compile(r"contains unknown field `(.*)`")
_MISSING_FIELD = re.compile(r"missing required field `(.*)`")

log = logging.getLogger("demo.server")


class Refusal(Exception):
    """A request that gets no answer: the status, the field at fault (None: not in the body)."""

    def __init__(self, status: HTTPStatus, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field

    def payload(self) -> dict[str, Any]:
        return {"error": {"field": self.field, "message": str(self)}}


class BotServer(ThreadingHTTPServer):
    """Serves ``bot`` on ``host:port``; port 0 takes a free one (see ``url``)."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, host: str, port: int, bot: Bot) -> None:
        """Binds at once; raises OSError when the address is taken or unknown."""
        self.bot = bot
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)
        self.own = own_hosts(host, self.server_port)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{bracketed(str(host))}:{port}"

    def server_bind(self) -> None:
        """As in the base class, without its name lookup, which hangs where there is no network."""
        if self.allow_reuse_address:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no event; anything else is logged."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            log.exception("connection of %s failed", client_address)


class _Handler(BaseHTTPRequestHandler):
    server: BotServer
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # 0.9 would leave out the status of a refusal
    server_version = "rag-eval-demo"
    sys_version = ""
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one packet

    def _handle(self) -> None:
        try:
            status, payload = HTTPStatus.OK, self._answer()
        except Refusal as refusal:
            status, payload = refusal.status, refusal.payload()
        except (ConnectionError, TimeoutError):
            raise
        except Exception:  # the client gets no traceback, the log does
            log.exception("%s %s failed", self.command, self.path)
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            payload = Refusal(status, "internal error; see the server's log").payload()
        self._send(status, payload)

    do_GET = do_POST = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _handle

    def _answer(self) -> dict[str, Any]:
        target = urlsplit(self.path)
        body = self._body()  # read in any case, so that the connection can be kept
        if not is_own(self.server.own, self.headers.get("Host"), self.headers.get("Origin")):
            raise Refusal(
                HTTPStatus.FORBIDDEN,
                f"only requests to {self.server.url} and of no other web page are answered; to be "
                "asked by another name, start demo_api.py with --host NAME",
            )
        if target.path not in METHODS:
            raise Refusal(HTTPStatus.NOT_FOUND, f"no such path; there are: {', '.join(METHODS)}")
        if self.command not in METHODS[target.path]:
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"use {METHODS[target.path][0]}")
        if target.path == HEALTH:
            return self.server.bot.health()
        request = _parse(body)
        debug = _debug_flag(target.query)
        try:
            return self.server.bot.ask(request, debug=debug)
        except UnknownFilter as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, str(error), error.field) from None
        except EmbeddingUnavailable as error:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length")
        if self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "send the body with a Content-Length")
        if length is None:
            return b""
        if not (length.isascii() and length.isdigit() and len(length) <= MOST_DIGITS):
            self.close_connection = True
            raise Refusal(HTTPStatus.BAD_REQUEST, "Content-Length is not a whole number")
        size = int(length)
        if size > BODY_LIMIT:
            self.close_connection = True
            left = min(size, DRAIN_LIMIT)
            while left > 0 and (block := self.rfile.read(min(left, 1 << 16))):
                left -= len(block)
            limit = f"the body has {size} bytes; at most {BODY_LIMIT} are read"
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit, "body")
        body = self.rfile.read(size)
        if len(body) < size:
            raise ConnectionResetError("the client left before its request was whole")
        return body

    def _send(self, status: HTTPStatus, payload: dict[str, Any]) -> None:
        data = orjson.dumps(payload)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", ", ".join(METHODS[urlsplit(self.path).path]))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses by itself (a broken request line, too many headers)."""
        self.close_connection = True
        status = HTTPStatus(code)
        self._send(status, Refusal(status, message or status.phrase).payload())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        log.debug(format, *args)


def _parse(body: bytes) -> AskRequest:
    if not body:
        raise Refusal(HTTPStatus.BAD_REQUEST, "send a JSON object with a question", "body")
    try:
        return msgspec.json.decode(body, type=AskRequest)
    except msgspec.ValidationError as error:
        message = str(error)
        for pattern in (_UNKNOWN_FIELD, _MISSING_FIELD, _FIELD):
            if found := pattern.search(message):
                field = found[1] or "body"
                break
        else:
            field = "body"
        if field == "question" and "regex" in message:
            message = "must hold more than white space"
        raise Refusal(HTTPStatus.BAD_REQUEST, _FIELD.sub("", message), field) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refusal(HTTPStatus.BAD_REQUEST, f"not JSON: {error}", "body") from None


def _debug_flag(query: str) -> bool:
    value = parse_qs(query, keep_blank_values=True).get("debug", ["false"])[-1].lower()
    if value not in FLAGS:
        raise Refusal(HTTPStatus.BAD_REQUEST, "write debug=true or debug=false", "debug")
    return FLAGS[value]
