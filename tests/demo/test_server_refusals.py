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
from tests.rows import each_row

from clients.embedder import EmbeddingUnavailable
from demo.bot import Bot, BotServer
from demo.index import Index
from demo.retriever import Retriever

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


@each_row(
    ("body", "says"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"\xff\xfe", "malformed"),
        (b'{"question": "\xff"}', "utf"),
        ([], "object"),
        ({}, "`question`"),
        ({"question": " \n"}, "$.question"),
        ({"question": 3}, "$.question"),
        ({"question": "x" * 20_001}, "20000"),
        ({"question": "x", "k": 0}, "$.k"),
        ({"question": "x", "k": 101}, "100"),
        ({"question": "x", "k": 10**30}, "$.k"),
        ({"question": "x", "folders": ["birds", 1]}, "$.folders[1]"),
        ({"question": "x", "folders": ["cats"]}, "there are ['birds', 'fish']"),
        ({"question": "x", "vaults": ["w"]}, "['v']"),
        ({"question": "x", "folder_mode": "yes"}, "$.folder_mode"),
        ({"question": "x", "folder": ["birds"]}, "unknown field `folder`"),
        ({"question": "x", "history": ["x"]}, "$.history[0]"),
    ],
)
def test_bad_requests_name_the_field(post: Post, body: Any, says: str) -> None:
    response = post(body)
    assert response.status_code == 400
    assert says in response.json()["error"]["message"]
    assert "Traceback" not in response.text


@each_row(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/api/v2/ask", 404),
        ("GET", "/api/v1/ask", 404),
        ("BREW", "/api/v1/ask", 501),
    ],
)
def test_wrong_path_or_method(server: BotServer, method: str, path: str, status: int) -> None:
    response = requests.request(method, server.url + path, data=b"{}", timeout=60)
    assert response.status_code == status
    assert response.json()["error"]["message"]


@each_row(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", b" 400 "),
        (b"GET / HTTP/9.9\r\n\r\n", b" 505 "),
        (b"POST /api/v1/ask HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b" 413 "),
        (b"POST /api/v1/ask HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n", b" 413 "),
        (b"POST /api/v1/ask HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b" 400 "),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b" 414 "),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", b" 431 "),
    ],
)
def test_no_http_gets_json(
    server: BotServer, post: Post, request_bytes: bytes, status: bytes
) -> None:
    answer = raw(server, request_bytes)
    assert status in answer.partition(b"\r\n")[0]
    assert json.loads(answer.rpartition(b"\r\n")[2])["error"]["message"]
    assert post(QUESTION).status_code == 200


def test_a_client_that_leaves_early_harms_nobody(
    server: BotServer, post: Post, capfd: pytest.CaptureFixture[str]
) -> None:
    raw(server, b"POST /api/v1/ask HTTP/1.1\r\nContent-Length: 50\r\n\r\n{")
    assert post(QUESTION).status_code == 200
    assert capfd.readouterr().err == ""


@each_row(
    ("host", "status"),
    [("127.0.0.1:PORT", 200), ("localhost:PORT", 200), ("LOCALHOST", 200), ("evil.example", 403)],
)
def test_no_web_page_reads_the_notes(server: BotServer, host: str, status: int) -> None:
    """A page elsewhere whose name was made to point here gets no passage."""
    port = str(server.server_address[1])
    headers = {"Host": host.replace("PORT", port)}
    response = requests.post(
        f"{server.url}/api/v1/ask", json.dumps(QUESTION), headers=headers, timeout=60
    )
    assert response.status_code == status
    assert ("error" in response.json()) is (status == 403)
    assert "Access-Control-Allow-Origin" not in response.headers


def test_connections_are_kept(server: BotServer) -> None:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=60)  # type: ignore[arg-type]
    own_ports = set()
    for _ in range(3):
        connection.request("POST", "/api/v1/ask", json.dumps(QUESTION))
        assert json.loads(connection.getresponse().read())["answer"]
        assert connection.sock is not None
        own_ports.add(connection.sock.getsockname()[1])
    assert len(own_ports) == 1
    connection.close()


def test_a_missing_model_is_503(
    make_index: MakeIndex,
    serve: Serve,
    zoo: dict[str, str],
    scripted_embedder: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedder, _ = scripted_embedder(lambda _: [1, 0])
    bot = Bot(Retriever(make_index(zoo, embedder)))

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
    zoo: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    bot = Bot(Retriever(make_index(zoo)))
    monkeypatch.setattr(bot, "ask", lambda *_, **__: 1 / 0)
    with serve(bot) as server:
        response = requests.post(f"{server.url}/api/v1/ask", json=QUESTION, timeout=60)
    assert response.status_code == 500
    assert "ZeroDivisionError" not in response.text
    assert "ZeroDivisionError" in capfd.readouterr().err
