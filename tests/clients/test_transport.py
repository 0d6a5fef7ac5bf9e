"""How requests are sent: one loop, connections that stay open, deadlines, TLS and proxies."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from clients.http import CallError, NotConnected, Reply, ask_all, finish
from clients.transport import HttpTransport

BODY = b'{"question": "q"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no", "http", "https", "all"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)


def send(client: HttpTransport, url: str, seconds: float = 60, **headers: str) -> Reply:
    try:
        return finish(client.send("POST", url, headers, BODY, seconds))
    finally:
        client.close()


def test_the_request_that_goes_out(fake_bot: Any) -> None:
    """Headers as given, and none that a library adds of itself."""
    sent = {"User-Agent": "rag", "Accept": "application/json", "X-Key": "ä"}
    url = f"{fake_bot.url}/a%20b/é?x=1%2F2&y=%41"
    fake_bot.question = lambda exchange: "q"
    transport = HttpTransport(url)
    finish(transport.send("POST", url, sent, BODY, 60))
    finish(transport.send("GET", url, sent, None, 60))
    transport.close()
    post, get = fake_bot.seen
    assert post.path == get.path == "/a%20b/%C3%A9?x=1%2F2&y=%41"
    assert post.body == BODY
    expected = {"Host": f"127.0.0.1:{fake_bot.port}", **sent}
    assert get.headers == expected
    assert post.headers == expected | {"Content-Length": str(len(BODY))}


def test_each_call_has_its_own_headers(fake_bot: Any) -> None:
    """Headers of an earlier call of the same address are not sent again."""
    client = HttpTransport(fake_bot.url)
    for header in ({"X-Call": "1", "X-First": "yes"}, {"X-Call": "2"}, {"X-Call": "1"}):
        finish(client.send("POST", fake_bot.url, header, BODY, 60))
    client.close()
    headers = [exchange.headers for exchange in fake_bot.seen]
    assert [header["X-Call"] for header in headers] == ["1", "2", "1"]
    assert ["X-First" in header for header in headers] == [True, False, False]


def test_a_header_cannot_begin_another_one(fake_bot: Any) -> None:
    with pytest.raises(NotConnected, match="line break"):
        send(HttpTransport(fake_bot.url), fake_bot.url, X="a\r\nY: b")
    assert not fake_bot.seen


def test_many_calls_keep_their_answers(fake_bot: Any) -> None:
    transport = HttpTransport(fake_bot.url)

    async def ask(number: int) -> tuple[int, bytes]:
        body = b'{"question": "q%d"}' % number
        return number, (await transport.send("POST", fake_bot.url, {}, body, 60)).body

    answers = dict(ask_all(range(200), ask, 40, threading.Event()))
    assert len(answers) == 200
    assert all(b'"answer to q%d [1]"' % number in body for number, body in answers.items())
    transport.close()


def test_pieces_of_a_stream_have_their_times(fake_bot: Any) -> None:
    def slowly(exchange: Any) -> None:
        exchange.handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        exchange.drip(b"abcd", 0.02)

    fake_bot.default = slowly
    reply = send(HttpTransport(fake_bot.url, timed=True), fake_bot.url)
    assert reply.body == b"abcd"
    sizes = [size for size, _ in reply.arrivals]
    moments = [moment for _, moment in reply.arrivals]
    assert len(sizes) >= 2
    assert sizes[-1] == 4
    assert moments == sorted(moments)
    assert reply.seconds >= moments[-1] >= 0.02


def test_what_a_server_says_before_its_answer_is_passed_over(fake_bot: Any) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    fake_bot.default = lambda exchange: exchange.handler.wfile.write(early + OK)
    assert send(HttpTransport(fake_bot.url), fake_bot.url).body == b"{}"


def test_bytes_of_a_header_that_are_no_text_can_be_told(fake_bot: Any) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/\xe4\xff\r\nContent-Length: 2\r\n\r\n{}"
    fake_bot.default = lambda exchange: exchange.handler.wfile.write(head)
    reply = send(HttpTransport(fake_bot.url), fake_bot.url)
    assert reply.headers["content-type"] == "text/äÿ"


def test_work_that_holds_the_loop_up_costs_no_other_call_its_answer(fake_bot: Any) -> None:
    """Answers that came while a huge one was read are read before their deadline counts."""
    transport = HttpTransport(fake_bot.url)
    transport_of_first = HttpTransport(fake_bot.url)
    begun = threading.Event()

    def late(exchange: Any) -> None:
        begun.wait(60)  # the answer comes while the loop stands still
        fake_bot.reply_properly(exchange)

    fake_bot.script("late", late)

    async def ask(name: str) -> int:
        if name == "late":
            body = b'{"question": "late"}'
            return len((await transport.send("POST", fake_bot.url, {}, body, 1.0)).body)
        await transport_of_first.send("POST", fake_bot.url, {}, BODY, 60)
        while not fake_bot.asked["late"]:
            await asyncio.sleep(0.001)
        begun.set()
        time.sleep(1.5)
        return 0

    sizes = sorted(ask_all(["huge", "late"], ask, 2, threading.Event()))
    assert sizes[0] == 0
    assert sizes[1] > 100
    transport.close()
    transport_of_first.close()


def test_a_call_that_hangs_ends_on_time_though_another_one_works(fake_bot: Any) -> None:
    fake_bot.default = lambda exchange: exchange.hang()
    transport = HttpTransport(fake_bot.url, timeout=0.2)

    async def ask(name: str) -> str:
        if name == "busy":
            for _ in range(20):
                time.sleep(0.06)  # each time longer than a deadline may be late
                await asyncio.sleep(0)
            return "done"
        with pytest.raises(CallError) as failed:
            await transport.send("POST", fake_bot.url, {}, BODY, 0.2)
        return failed.value.message

    first, second = ask_all(["hangs", "busy"], ask, 2, threading.Event())
    assert first == "no complete answer within 0.2 s"
    assert second == "done"
    transport.close()


def test_closing_breaks_off_what_is_under_way(fake_bot: Any) -> None:
    fake_bot.script("hangs", lambda exchange: exchange.hang())
    transport = HttpTransport(fake_bot.url)

    async def ask(name: str) -> int:
        body = b'{"question": "%b"}' % name.encode()
        return (await transport.send("POST", fake_bot.url, {}, body, 60)).status

    start = time.monotonic()
    answers = ask_all(["hangs", "quick"], ask, 2, threading.Event())
    assert next(answers) == 200
    answers.close()
    assert time.monotonic() - start < 30
    assert finish(transport.send("POST", fake_bot.url, {}, BODY, 60)).status == 200
    transport.close()


@pytest.mark.usefixtures("without_proxies")
def test_a_proxy_is_asked_with_the_whole_address(
    fake_bot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scripted bot as the proxy; its login goes to the proxy alone."""
    monkeypatch.setenv("http_proxy", fake_bot.url.replace("//", "//user:pass@"))
    reply = send(HttpTransport("http://bot.invalid/x"), "http://bot.invalid/x?y=1")
    assert reply.status == 200
    (exchange,) = fake_bot.seen
    assert exchange.path == "http://bot.invalid/x?y=1"
    assert exchange.headers["Host"] == "bot.invalid"
    assert exchange.headers["Proxy-Authorization"] == "Basic dXNlcjpwYXNz"


@pytest.mark.usefixtures("without_proxies")
@pytest.mark.parametrize("excluded", ["10.0.0.0/8", "10.1.2.3", "*", "10.1.2.3:81"])
def test_addresses_without_a_proxy(monkeypatch: pytest.MonkeyPatch, excluded: str) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    assert HttpTransport("http://10.1.2.3:81")._proxy == "http://proxy.invalid:3128"
    assert HttpTransport("http://localhost:81")._proxy is None
    assert HttpTransport("http://127.0.0.1:81")._proxy is None
    monkeypatch.setenv("no_proxy", excluded)
    assert HttpTransport("http://10.1.2.3:81")._proxy is None


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server on loopback, and its certificate, which it has signed itself."""
    if shutil.which("openssl") is None:
        pytest.skip("makes a certificate with openssl")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    words += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(OK)

        def log_message(self, *_: object) -> None: ...

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}", certificate
        server.shutdown()


def test_tls_with_a_certificate_that_is_trusted(
    tls_server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, certificate = tls_server
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    assert send(HttpTransport(url), url).body == b"{}"


def test_an_unknown_certificate_comes_with_the_remedy(tls_server: tuple[str, Path]) -> None:
    url, _ = tls_server
    with pytest.raises(NotConnected, match=r"self.signed.*REQUESTS_CA_BUNDLE"):
        send(HttpTransport(url), url)
