"""Whatever a client of the embedded bot may do wrong, and faults of the bot itself."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import requests

from clients.embedder import EmbeddingUnavailable
from demo.bot import BODY_LIMIT, Bot, BotServer
from demo.index import Index

MakeBot = Callable[[Index], Bot]
MakeIndex = Callable[..., Index]
Post = Callable[..., requests.Response]
Serve = Callable[[Bot], AbstractContextManager[BotServer]]
QUESTION = {"question": "Which animal lays eggs in the morning?"}


def raw(server: BotServer, request: bytes) -> bytes:
    with socket.create_connection(server.server_address[:2], timeout=60) as connection:  # type: ignore[arg-type]
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        (b"", "body", "send a JSON object"),
        (b"{", "body", "not JSON"),
        (b"\xff\xfe", "body", "not JSON"),
        (b'{"question": "\xff"}', "body", "not JSON"),
        (b'{"question": NaN}', "body", "not JSON"),
        ([], "body", "object"),
        (None, "body", "object"),
        ({}, "question", "question"),
        ({"question": ""}, "question", "white space"),
        ({"question": " \n"}, "question", "white space"),
        ({"question": 3}, "question", "str"),
        ({"question": None}, "question", "str"),
        ({"question": "x" * 20_001}, "question", "20000"),
        ({"question": "x", "k": 0}, "k", "1"),
        ({"question": "x", "k": 101}, "k", "100"),
        ({"question": "x", "k": "5"}, "k", "int"),
        ({"question": "x", "k": 2.5}, "k", "int"),
        ({"question": "x", "k": True}, "k", "int"),
        ({"question": "x", "k": 10**30}, "k", "int"),
        ({"question": "x", "folders": "birds"}, "folders", "array"),
        ({"question": "x", "folders": ["birds", 1]}, "folders[1]", "str"),
        ({"question": "x", "folders": ["cats"]}, "folders", "'birds', 'fish'"),
        ({"question": "x", "vaults": ["w"]}, "vaults", "'v'"),
        ({"question": "x", "folder_mode": "yes"}, "folder_mode", "yes"),
        ({"question": "x", "folder": ["birds"]}, "folder", "unknown field"),
    ],
)
def test_bad_requests_name_the_field(post: Post, body: Any, field: str, says: str) -> None:
    response = post(body)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["field"] == field
    assert says in error["message"]
    assert "Traceback" not in response.text


def test_bad_debug_flag(post: Post) -> None:
    response = post(QUESTION, "?debug=perhaps")
    assert (response.status_code, response.json()["error"]["field"]) == (400, "debug")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/api/v2/ask", 404),
        ("GET", "/api/v1/ask", 405),
        ("PUT", "/api/v1/ask", 405),
        ("DELETE", "/health", 405),
        ("POST", "/health", 405),
        ("BREW", "/health", 501),
    ],
)
def test_wrong_path_or_method(server: BotServer, method: str, path: str, status: int) -> None:
    response = requests.request(method, server.url + path, data=b"{}", timeout=60)
    assert response.status_code == status
    assert response.json()["error"]["message"]
    if status == 405:
        assert response.headers["Allow"] == ("GET, HEAD" if path == "/health" else "POST")


def test_too_large_a_body_is_refused_and_read_away(post: Post) -> None:
    response = post(b'{"question": "' + b"x" * (4 * BODY_LIMIT) + b'"}')
    assert response.status_code == 413
    assert str(BODY_LIMIT) in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", b" 400 "),
        (b"GET /health HTTP/9.9\r\n\r\n", b" 505 "),
        (b"POST /api/v1/ask HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b" 400 "),
        (b"POST /api/v1/ask HTTP/1.1\r\nContent-Length: many\r\n\r\n", b" 400 "),
        (b"POST /api/v1/ask HTTP/1.1\r\nContent-Length: 9000000000000\r\n\r\n", b" 413 "),
        (b"POST /api/v1/ask HTTP/1.1\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n", b" 400 "),
        (b"POST /api/v1/ask HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b" 411 "),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b" 414 "),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", b" 431 "),
    ],
    ids=["line", "version", "negative", "words", "huge", "digits", "chunked", "path", "headers"],
)
def test_broken_http_gets_json(server: BotServer, request_bytes: bytes, status: bytes) -> None:
    answer = raw(server, request_bytes)
    assert status in answer.partition(b"\r\n")[0]
    body = answer.rpartition(b"\r\n")[2]
    assert json.loads(body)["error"]["message"]
    assert requests.get(server.url + "/health", timeout=60).status_code == 200


def test_a_client_that_leaves_early_harms_nobody(
    server: BotServer, caplog: pytest.LogCaptureFixture
) -> None:
    assert raw(server, b"POST /api/v1/ask HTTP/1.1\r\nContent-Length: 50\r\n\r\n{") == b""
    assert requests.get(server.url + "/health", timeout=60).status_code == 200
    assert caplog.records == []


def test_head_has_no_body(server: BotServer) -> None:
    response = requests.head(server.url + "/health", timeout=60)
    assert (response.status_code, response.content) == (200, b"")
    whole = requests.get(server.url + "/health", timeout=60)
    assert int(response.headers["Content-Length"]) == len(whole.content)
    response = requests.head(server.url + "/api/v1/ask", timeout=60)
    assert (response.status_code, response.content) == (405, b"")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:PORT"}, 200),
        ({"Host": "[::1]:PORT", "Origin": "http://127.0.0.1:PORT"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:PORT", "Origin": "http://evil.example:PORT"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://127.0.0.1:PORT"}, 403),
    ],
)
def test_no_web_page_reads_the_notes(
    server: BotServer, headers: dict[str, str], status: int
) -> None:
    """A page elsewhere, also one whose name was made to point here, gets no passage."""
    port = str(server.server_port)
    headers = {name: value.replace("PORT", port) for name, value in headers.items()}
    body = json.dumps(QUESTION)
    response = requests.post(f"{server.url}/api/v1/ask", body, headers=headers, timeout=60)
    assert response.status_code == status
    assert ("error" in response.json()) is (status == 403)
    health = requests.get(f"{server.url}/health", headers=headers, timeout=60)
    assert health.status_code == status


def test_connections_are_kept_and_survive_refusals(server: BotServer) -> None:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=60)  # type: ignore[arg-type]
    own_ports = set()
    for body, status in ((b"{}", 400), (b"x", 400), (json.dumps(QUESTION).encode(), 200)):
        connection.request("POST", "/api/v1/ask", body)
        response = connection.getresponse()
        assert response.status == status
        assert json.loads(response.read())
        assert connection.sock is not None
        own_ports.add(connection.sock.getsockname()[1])
    connection.request("POST", "/nowhere", b"body that is not read otherwise")
    assert connection.getresponse().read()
    assert len(own_ports) == 1
    connection.close()


def test_a_missing_model_is_503(
    make_index: MakeIndex,
    serve: Serve,
    make_bot: MakeBot,
    zoo: dict[str, str],
    scripted_embedder: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedder, _ = scripted_embedder(lambda _: [1, 0])
    bot = make_bot(make_index(zoo, embedder))

    def fail(texts: list[str]) -> None:
        raise EmbeddingUnavailable("The model is gone: run `make setup`.")

    monkeypatch.setattr(embedder, "encode", fail)
    with serve(bot) as server:
        response = requests.post(f"{server.url}/api/v1/ask", json=QUESTION, timeout=60)
    assert response.status_code == 503
    assert "make setup" in response.json()["error"]["message"]


def test_a_fault_of_ours_is_500_without_a_traceback(
    make_index: MakeIndex,
    serve: Serve,
    make_bot: MakeBot,
    zoo: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bot = make_bot(make_index(zoo))
    monkeypatch.setattr(bot, "ask", lambda *_, **__: 1 / 0)
    with serve(bot) as server:
        response = requests.post(f"{server.url}/api/v1/ask", json=QUESTION, timeout=60)
    assert response.status_code == 500
    assert "ZeroDivisionError" not in response.text
    assert "ZeroDivisionError" in caplog.text
