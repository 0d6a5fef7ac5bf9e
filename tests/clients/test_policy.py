"""The rules of every request: the same from the session of a bot and from a single request."""

from __future__ import annotations

import ast
import asyncio
import gzip
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.sources import SOURCES, imports_of, tree_of

from clients import transport as bot_transport
from clients.bot import ChatApi, Question
from clients.http import CallError, NotConnected, Reply, RetryPolicy, finish
from clients.policy import BUNDLES, PolicyTransport, proxy_for
from clients.probe import Prober
from clients.profile import load_profile
from clients.secrets import Headers, Redactor
from clients.shapes import Shape
from clients.single import SingleTransport
from clients.transport import HttpTransport
from judging.identity import JudgeError, JudgeUnreachable
from judging.server import HttpJudge
from records.errors import Unreachable
from records.runs import PROFILES

QUESTION = Question("case", "q")
BODY = b'{"question": "q"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
HEADERS = {
    "User-Agent": "rag",
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate",
    "Content-Type": "application/json",
}

Send = Callable[..., Reply]


@pytest.fixture(params=[HttpTransport, SingleTransport])
def library(request: pytest.FixtureRequest) -> type[PolicyTransport]:
    kind: type[PolicyTransport] = request.param
    return kind


@pytest.fixture
def send(library: type[PolicyTransport]) -> Send:
    """One request in a session of its own."""

    def send_once(
        url: str,
        headers: dict[str, str] | None = None,
        *,
        method: str = "POST",
        seconds: float = 60,
        **rules: Any,
    ) -> Reply:
        client = library(url, timeout=seconds, **rules)
        body = None if method == "GET" else BODY
        try:
            return finish(client.send(method, url, {**HEADERS, **(headers or {})}, body, seconds))
        finally:
            client.close()

    return send_once


def failure(send: Send, url: str, *words: Any, **more: Any) -> CallError:
    with pytest.raises(CallError) as failed:
        send(url, *words, **more)
    return failed.value


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no", "http", "https", "all"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)
    for name in BUNDLES:
        monkeypatch.delenv(name, raising=False)


def scripted(fake_bot: Any, sent: bytes) -> None:
    """The bot answers with these bytes and closes."""

    def answer(exchange: Any) -> None:
        exchange.handler.wfile.write(sent)
        exchange.handler.close_connection = True

    fake_bot.default = answer


def test_the_request_that_goes_out(fake_bot: Any, send: Send) -> None:
    """Headers unchanged, in UTF-8, and none that a library adds of itself."""
    sent = HEADERS | {"X-Key": "ä"}
    url = f"{fake_bot.url}/a%20b/é?x=1%2F2&y=A"
    fake_bot.question = lambda exchange: "q"
    send(url, sent)
    send(url, sent, method="GET")
    post, get = fake_bot.seen
    assert post.path == get.path == "/a%20b/%C3%A9?x=1%2F2&y=A"
    assert post.body == BODY
    seen_key = "ä".encode().decode("latin-1")  # the server reads bytes as Latin-1
    expected = sent | {"Host": f"127.0.0.1:{fake_bot.port}", "X-Key": seen_key}
    assert get.headers == expected
    assert post.headers == expected | {"Content-Length": str(len(BODY))}


def test_a_header_cannot_begin_another_one(fake_bot: Any, send: Send) -> None:
    error = failure(send, fake_bot.url, {"X": "a\r\nY: b"})
    assert "line break" in error.message
    assert not fake_bot.seen


def test_what_a_server_says_before_its_answer_is_passed_over(fake_bot: Any, send: Send) -> None:
    scripted(fake_bot, b"HTTP/1.1 100 Continue\r\n\r\n" + OK)
    assert send(fake_bot.url).body == b"{}"


def test_bytes_of_a_header_that_are_no_text_can_be_told(fake_bot: Any, send: Send) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/\xe4\xff\r\nContent-Length: 2\r\n\r\n{}"
    scripted(fake_bot, head)
    assert send(fake_bot.url).headers["content-type"] == "text/äÿ"


def test_pieces_of_a_body_that_is_packed(fake_bot: Any, send: Send) -> None:
    text = b"a" * 300_000
    fake_bot.default = lambda exchange: exchange.raw(gzip.compress(text), Content_Encoding="gzip")
    assert send(fake_bot.url).body == text


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"])
def test_a_server_that_drips_meets_the_deadline(fake_bot: Any, send: Send, head: bytes) -> None:
    """A byte every 20 ms: each single wait is short, in the status line as in the body."""

    def drip(exchange: Any) -> None:
        exchange.handler.wfile.write(head)
        exchange.drip((b"" if head else OK.replace(b"OK", b"O" * 900)) + b" " * 900, 0.02)

    fake_bot.default = drip
    begin = time.monotonic()
    error = failure(send, fake_bot.url, seconds=0.5)
    assert time.monotonic() - begin < 5  # the whole answer takes 18 s
    assert (error.kind, error.message) == ("timeout", "no complete answer within 0.5 s")
    assert error.retryable


def test_a_single_request_whose_loop_is_late_ends_on_time_as_well(fake_bot: Any) -> None:
    """The thread ends by itself: what it has read by then is never taken for the answer."""

    def drip(exchange: Any) -> None:
        exchange.handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
        exchange.drip(b" " * 900, 0.02)

    fake_bot.default = drip
    client = SingleTransport(fake_bot.url, timeout=0.3)

    async def send_while_busy() -> None:
        call = asyncio.create_task(client.send("POST", fake_bot.url, HEADERS, BODY, 0.3))
        await asyncio.sleep(0.05)
        time.sleep(0.6)  # the deadline of the loop comes late, that of the thread does not
        await call

    with pytest.raises(CallError, match=r"no complete answer within 0\.3 s") as failed:
        finish(send_while_busy())
    assert failed.value.kind == "timeout"
    client.close()


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_a_broken_connection_is_not_tried_again(fake_bot: Any, send: Send, method: str) -> None:
    """A bot that remembers would hear a question twice; how often to try is the caller's."""
    fake_bot.question = lambda exchange: "q"
    fake_bot.default = lambda exchange: exchange.reset()
    error = failure(send, fake_bot.url, method=method)
    assert (error.kind, error.retryable) == ("connection", True)
    assert not isinstance(error, NotConnected)
    assert fake_bot.asked["q"] == 1


def test_a_password_of_netrc_is_not_sent(
    fake_bot: Any, send: Send, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go to any server on this host, in place of the header that the user has set."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password of-netrc\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    send(fake_bot.url)
    send(fake_bot.url, {"Authorization": "Bearer mine"})
    first, second = fake_bot.seen
    assert "Authorization" not in first.headers
    assert second.headers["Authorization"] == "Bearer mine"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "all_proxy"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_loopback_is_never_asked_through_a_proxy(
    fake_bot: Any, send: Send, monkeypatch: pytest.MonkeyPatch, name: str, host: str
) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert send(f"http://{host}:{fake_bot.port}").status == 200


def test_a_proxy_is_asked_with_the_whole_address(
    fake_bot: Any, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scripted bot as the proxy; its login goes to the proxy alone."""
    monkeypatch.setenv("http_proxy", fake_bot.url.replace("//", "//user:pass@"))
    assert send("http://bot.invalid/x?y=1").status == 200
    (exchange,) = fake_bot.seen
    assert exchange.path == "http://bot.invalid/x?y=1"
    assert exchange.headers["Host"] == "bot.invalid"
    assert exchange.headers["Proxy-Authorization"] == "Basic dXNlcjpwYXNz"


def test_a_proxy_that_refuses_says_so(
    fake_bot: Any, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scripted bot as the proxy: it knows no CONNECT and says 501."""
    monkeypatch.setenv("https_proxy", fake_bot.url)
    error = failure(send, "https://bot.invalid")
    assert error.message.startswith("Tunnel connection failed: 501")
    assert isinstance(error, NotConnected)


@pytest.mark.parametrize("excluded", ["10.0.0.0/8", "10.1.2.3", "*", "10.1.2.3:81"])
def test_addresses_without_a_proxy(monkeypatch: pytest.MonkeyPatch, excluded: str) -> None:
    monkeypatch.setenv("http_proxy", "proxy.invalid:3128")
    assert proxy_for("http://10.1.2.3:81") == "http://proxy.invalid:3128"
    assert proxy_for("http://localhost:81") is None
    assert proxy_for("http://127.0.0.1:81") is None
    assert proxy_for("http://0.0.0.0:81") is None  # also this machine
    monkeypatch.setenv("no_proxy", excluded)
    assert proxy_for("http://10.1.2.3:81") is None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "127.0.0.1.nip.invalid"])
@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_elsewhere_gets_no_key(
    fake_bot: Any, send: Send, host: str, status: int
) -> None:
    """requests and aiohttp take Authorization out, and send every other header on."""
    target = f"http://{host}:{fake_bot.port}/elsewhere"
    fake_bot.question = lambda exchange: "q"
    fake_bot.script("q", lambda e: e.raw(b"", status, Location=target), fake_bot.reply_properly)
    for method in ("POST", "GET"):
        error = failure(send, fake_bot.url, {"X-Api-Key": "sk-key"}, method=method)
        assert error.kind == "redirect"
        assert error.message == f"HTTP {status} to another host ({host}); not followed"
        fake_bot.script("q", lambda e: e.raw(b"", status, Location=target))
    assert [exchange.path for exchange in fake_bot.seen] == ["/", "/"]


def test_a_redirect_on_one_host_takes_headers_and_body_along(fake_bot: Any, send: Send) -> None:
    """The body of the redirect itself is not read: here it would have no end."""

    def moved(exchange: Any) -> None:
        exchange.handler.wfile.write(
            b"HTTP/1.1 307 Moved\r\nLocation: /other\r\nContent-Length: 1000000\r\n\r\n"
        )
        exchange.hang()

    fake_bot.script("q", moved, fake_bot.reply_properly)
    assert send(fake_bot.url, {"X-Api-Key": "sk-key"}, seconds=10).status == 200
    first, second = fake_bot.seen
    assert (second.path, second.body, second.headers["X-Api-Key"]) == ("/other", BODY, "sk-key")
    assert first.headers == second.headers


@pytest.mark.parametrize(
    "location", ["http://[::1/x", "http://127.0.0.1:99999/x", "http://127.0.0.1:port/x", "//[/", ""]
)
def test_a_redirect_to_no_address(fake_bot: Any, send: Send, location: str) -> None:
    fake_bot.default = lambda exchange: exchange.raw(b"", 307, Location=location)
    assert failure(send, fake_bot.url).kind == "redirect"
    assert fake_bot.asked["q"] == 1


@pytest.mark.parametrize("announce", [True, False])
def test_a_huge_body_is_cut_off(fake_bot: Any, send: Send, announce: bool) -> None:
    sent: list[int] = []
    left = threading.Event()

    def flood(exchange: Any) -> None:
        sent.append(exchange.stream(200 * 2**20, announce))
        left.set()

    fake_bot.default = flood
    assert failure(send, fake_bot.url, max_bytes=2**20).kind == "too_large"
    assert fake_bot.asked["q"] == 1
    assert left.wait(60)
    # the limit, and what lies in the sockets' buffers
    assert sent[0] < 40 * 2**20


def test_a_body_that_unpacks_beyond_the_limit(fake_bot: Any, send: Send) -> None:
    packed = gzip.compress(b" " * (30 * 2**20))
    fake_bot.default = lambda exchange: exchange.raw(packed, Content_Encoding="gzip")
    assert failure(send, fake_bot.url, max_bytes=2**20).kind == "too_large"


def test_an_error_page_is_read_to_its_first_piece_without_secrets(
    fake_bot: Any, send: Send
) -> None:
    page = b"bad key tok-5f3a9c; " + b"x" * 2**20
    fake_bot.default = lambda exchange: exchange.raw(page, 503, Retry_After="7")
    error = failure(send, fake_bot.url, redactor=Redactor(["tok-5f3a9c"]))
    assert (error.kind, error.status, error.retryable) == ("server_error", 503, True)
    assert error.retry_after == 7
    assert error.message.startswith("HTTP 503: bad key [secret]; xxx")
    assert len(error.body) == 65_536


START = b"HTTP/1.1 200 OK\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (START + b"X: y\r\n" * 300 + b"\r\n", "too many headers"),
        (START + b"X: " + b"y" * 100_000 + b"\r\n\r\n", "too long"),
        (START + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "contradict"),
        (CHUNKED + b"ZZ\r\n{}\r\n", "match its framing"),
        (b"SSH-2.0-x\r\n", "does not speak HTTP"),
        (b"HTTP/9.9 200 OK\r\n\r\n", "does not speak HTTP"),
        (b"", "without an answer"),
        (START + b"Content-Length: 20\r\n\r\n{}", "before the end"),
        (CHUNKED + b"5\r\n{}", "before the end"),
        (START + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "compression"),
    ],
    ids=[f"row{n}" for n in range(10)],
)
def test_what_is_no_http_is_put_in_words(
    fake_bot: Any, send: Send, sent: bytes, words: str
) -> None:
    scripted(fake_bot, sent)
    error = failure(send, fake_bot.url)
    assert error.kind == ("malformed" if words == "compression" else "connection")
    assert words in error.message
    assert not isinstance(error, NotConnected)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://exa mple", "the URL has no valid host"),
        ("http://a..b", "the URL has no valid host"),
        (f"http://{'a' * 80}.invalid", "the URL has no valid host"),
        ("http://x%zz", "the URL has no valid host"),
        ("http://bot.invalid", "Name or service not known"),
        ("http://127.0.0.1:1", "Connection refused"),
    ],
)
def test_an_address_that_reaches_no_server(send: Send, url: str, words: str) -> None:
    error = failure(send, url)
    assert error.message == words
    assert isinstance(error, NotConnected)


@pytest.mark.parametrize(
    ("variable", "value", "url", "words"),
    [
        ("REQUESTS_CA_BUNDLE", "/none/such.pem", "https://bot.invalid", "/none/such.pem"),
        ("SSL_CERT_FILE", "/none/such.pem", "https://bot.invalid", "/none/such.pem"),
        ("http_proxy", "socks5://127.0.0.1:9", "http://bot.invalid", "SOCKS"),
        ("http_proxy", ":::x", "http://bot.invalid", "no valid host"),
    ],
)
def test_settings_that_reach_nobody_are_told(
    monkeypatch: pytest.MonkeyPatch, send: Send, variable: str, value: str, url: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    error = failure(send, url)
    assert words in error.message
    assert isinstance(error, NotConnected)


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a server on loopback, and its certificate, which it has signed itself."""
    if shutil.which("openssl") is None:
        pytest.skip("makes a certificate with openssl")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    words += ["-nodes", "-days", "2"]
    words += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    words += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(OK)

        def log_message(self, *_: object) -> None: ...

    class Server(HTTPServer):
        def handle_error(self, *args: Any) -> None:
            """A client that does not trust the certificate leaves."""

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}", certificate
        server.shutdown()


@pytest.mark.parametrize("variable", BUNDLES)
def test_a_certificate_that_is_trusted_and_no_other(
    library: type[PolicyTransport],
    tls_server: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    url, certificate = tls_server
    monkeypatch.setenv(variable, str(certificate))
    client = library(url)
    assert finish(client.send("POST", url, HEADERS, BODY, 60)).body == b"{}"
    assert len(client.certificates.get_ca_certs()) == 1  # requests would add Mozilla's list
    client.close()


def test_an_unknown_certificate_has_its_remedy(tls_server: tuple[str, Path], send: Send) -> None:
    error = failure(send, tls_server[0])
    assert isinstance(error, NotConnected)
    assert "self-signed certificate" in error.message.replace("self signed", "self-signed")
    assert "REQUESTS_CA_BUNDLE=FILE" in error.message


def connect(url: str, key: Headers) -> str:
    """What connect_bot's first request comes to."""
    prober = Prober(url, {"X-Api-Key": "${KEY}"}, {"KEY": "sk-key"}, lambda line: None, 60)
    try:
        prober.send(Shape("POST", "/ask", "a test", body={"question": "{question}"}), QUESTION)
    except (CallError, Unreachable) as error:
        return str(error)
    return ""


def run(url: str, key: Headers) -> str:
    """What a question of a run comes to."""
    client = ChatApi(url, load_profile("default", PROFILES), key, RetryPolicy(retries=0))
    result = finish(client.ask(QUESTION)).result
    client.close()
    return result.error.message if result.error else ""


def judge(url: str, key: Headers, model: str | None = "a-model-2024-08-06") -> str:
    """What a question to a judge comes to; without a model, a question about its server."""
    client = HttpJudge(f"{url}/v1", model, headers=key, policy=RetryPolicy(retries=0))
    try:
        client.probe() if model else client.identify()
    except (JudgeError, JudgeUnreachable) as error:
        return str(error)
    finally:
        client.close()
    return ""


list_of_models = partial(judge, model=None)


@pytest.mark.parametrize("caller", [connect, run, judge, list_of_models])
def test_whoever_asks_keeps_the_same_rules(
    fake_bot: Any,
    tls_server: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caller: Callable[[str, Headers], str],
) -> None:
    """Connect, a run and a judge: no key follows a redirect, no proxy is between this machine and
    itself, .netrc is not read, and an unknown certificate is reported with the remedy."""
    key = Headers({"X-Api-Key": "sk-key"}, ("sk-key",))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password of-netrc\n")
    target = f"http://localhost:{fake_bot.port}/elsewhere"
    fake_bot.question = lambda exchange: "q"
    fake_bot.default = lambda exchange: exchange.raw(b"", 307, Location=target)
    assert "HTTP 307 to another host (localhost); not followed" in caller(fake_bot.url, key)
    assert fake_bot.seen
    assert all(exchange.headers["X-Api-Key"] == "sk-key" for exchange in fake_bot.seen)
    assert all("Authorization" not in exchange.headers for exchange in fake_bot.seen)
    assert all("elsewhere" not in exchange.path for exchange in fake_bot.seen)
    assert "REQUESTS_CA_BUNDLE=FILE" in caller(tls_server[0], key)


DOCUMENTED = {
    "request",  # of ClientSession, with close
    "close",
    "status",  # of ClientResponse, with the next three
    "headers",
    "raw_headers",
    "content",
    "readany",  # of StreamReader, with at_eof
    "at_eof",
}
"""Members of aiohttp's objects that its reference describes and that we use."""


def test_only_documented_names_of_aiohttp_are_used() -> None:
    """Source: https://docs.aiohttp.org/en/stable/client_reference.html. What it does not name
    changes with any release."""
    names_of_classes = ("ClientSession", "ClientResponse", "StreamReader", "TCPConnector")
    classes = [getattr(aiohttp, name) for name in names_of_classes]
    named = [path for path in SOURCES if "aiohttp" in path.read_text("utf-8")]
    users = [path for path in named if any(item.top == "aiohttp" for item in imports_of(path))]
    assert users == [Path(bot_transport.__file__)]
    names = {item.module for item in imports_of(users[0]) if item.top == "aiohttp"}
    assert names <= {"aiohttp", *(f"aiohttp.{name}" for name in aiohttp.__all__)}
    tree = tree_of(users[0])
    members = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    of_module = {node.attr for node in members if ast.unparse(node.value) == "aiohttp"}
    of_objects = (
        {
            node.attr
            for node in members
            if ast.unparse(node.value) not in ("self", "call", "aiohttp", "asyncio")
            and any(hasattr(kind, node.attr) for kind in classes)
        }
        - set(dir(str))
        - set(dir(dict))
    )
    assert of_module <= set(aiohttp.__all__)
    assert of_objects <= DOCUMENTED
    private = [node.attr for node in members if node.attr.startswith("_")]
    assert set(private) <= {"_session", "_loop", "_of_loop"}
