"""What an address holds that is secret, and that it is written nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_plus

import pytest
from tests.rows import each_row

from clients.bot import ChatApi, Question
from clients.http import finish
from clients.secrets import (
    MIN_LENGTH,
    Headers,
    Redactor,
    literal_warnings,
    resolve_headers,
    url_in_message,
    url_secrets,
)

MakeApi = Callable[..., ChatApi]


@each_row(
    ("url", "secrets"),
    [
        ("http://bot.example/ask", []),
        ("http://user:p%40ss%20word@bot.example/", ["user:p@ss word", "p@ss word"]),
        # without a password to speak of, the user name is the key
        ("http://tok-1234@bot.example/", ["tok-1234:", "tok-1234"]),
        ("http://tok-1234:x@bot.example/", ["tok-1234:x", "tok-1234"]),
        # a key by its name, a key by its looks
        ("http://bot.example/?api_key=only+words", ["only words"]),
        ("http://bot.example/?x=s3cretvalue&y=verysecretvalue", ["s3cretvalue", "verysecretvalue"]),
        # settings, whose words may stand in any answer
        ("http://bot.example/?format=json&debug=true&api-version=2024-05-01", []),
    ],
)
def test_secrets_of_an_address(url: str, secrets: list[str]) -> None:
    assert url_secrets(url) == secrets


def test_a_value_is_found_as_an_address_writes_it() -> None:
    redactor = Redactor(url_secrets("http://bot.example/?token=ab+c%2Fd%C3%A4"))
    for text in ("ab c/dä", "ab+c%2Fd%C3%A4", "ab%20c%2Fd%C3%A4", "ab c\\/d\\u00e4"):
        assert redactor.text(f"<{text}>") == "<[secret]>"


def test_an_echoed_address_and_login_are_blotted_out(fake_bot: Any, api: MakeApi) -> None:
    """The bot repeats its whole request line, the login in plain words, and as the header has it:
    base64 of user:pass-word."""
    basic = "dXNlcjpwYXNzLXdvcmQ="

    def echo(exchange: Any, status: int = 200) -> None:
        said = f"{exchange.path} {unquote_plus(exchange.path)} user:pass-word pass-word {basic}"
        exchange.reply(fake_bot.answer("q", answer=said, usage={said: 1}), status)

    fake_bot.script("answer", echo)
    fake_bot.script("error", lambda exchange: echo(exchange, 403))
    address = fake_bot.url.replace("http://", "http://user:pass-word@")
    client = api(url=f"{address}/?key=query%20secret&format=json")
    for name in ("answer", "error"):
        asked = repr(finish(client.ask(Question("case", name))))
        assert "[secret]" in asked
        for secret in ("pass-word", basic, "query secret", "query+secret", "query%20secret"):
            assert secret not in asked
    assert "key=query+secret" in fake_bot.seen[0].path
    assert fake_bot.seen[0].headers["Authorization"] == f"Basic {basic}"
    assert finish(client.ask(Question("case", "json"))).result.answer == "answer to json [1]"


TOKEN = "sk-live-CANARY-0123456789-abcdefghij-0123456789-end"


def heads(secret: str) -> list[str]:
    """All beginnings of a secret that are long enough to be told from ordinary text."""
    return [secret[:size] for size in range(MIN_LENGTH, len(secret) + 1)]


@pytest.mark.parametrize("before", [100, 140, 170, 185, 250, 295])
def test_an_error_page_shows_no_head_of_a_secret(fake_bot: Any, api: MakeApi, before: int) -> None:
    """The page repeats header and address; any cut falls into one of them."""
    headers = Headers({"Authorization": f"Bearer {TOKEN}"}, (TOKEN,))

    def fail(exchange: Any) -> None:
        said = "x" * before + f" header was {exchange.headers['Authorization']} at {exchange.path}"
        exchange.reply(said, 403)

    fake_bot.script("error", fail)
    key = "CANARYq123456789"
    client = api(url=f"{fake_bot.url}/?api_key={key}", headers=headers)
    error = finish(client.ask(Question("case", "error"))).result.error
    assert error is not None
    assert error.message.startswith('HTTP 403: "xxx')
    assert not [head for head in heads(TOKEN) + heads(key) if head in error.message]


@each_row("end", ["", "...", "…", '"}', "\n", '..."}\n'])
@each_row("size", [MIN_LENGTH, 10, len(TOKEN) - 1])
def test_a_secret_that_the_server_itself_cut_is_dropped(size: int, end: str) -> None:
    assert Redactor([TOKEN]).excerpt(f"key was {TOKEN[:size]}{end}", 200) == "key was [secret]"


def test_an_excerpt_is_one_line_and_a_short_tail_is_ordinary_text() -> None:
    redactor = Redactor([TOKEN])
    assert redactor.excerpt("no\n such   task", 200) == "no such task"
    assert redactor.excerpt("ask", 200) == "ask"  # "sk" begins the token, and words end with it
    assert redactor.excerpt("abcdef", 3) == "abc"


@each_row(
    ("url", "shown"),
    [
        ("bob:pass-word@host", "host"),
        ("bob:pa/ss@wo?rd@host:80/ask", "host:80/ask"),
        ("http://bob:pass-word@host:port/", "http://host:port/"),
        ("ftp://host/?key=secret#secret", "ftp://host/"),
        ("bob:pass-word@host/?next=http://other", "host/"),
        ("localhost:8080", "localhost:8080"),
        ("http://[::1/ask", "http://[::1/ask"),
    ],
)
def test_what_a_message_shows_of_an_address_that_is_none(url: str, shown: str) -> None:
    assert url_in_message(url) == shown


@each_row(
    ("name", "secret"),
    [
        *((name, True) for name in ("X-Key", "api-key", "Authorization", "X-Auth-Token", "Cookie")),
        *((name, False) for name in ("X-Team", "Accept-Encoding", "X-Author", "X-Keyword")),
    ],
)
def test_a_literal_header_is_secret_by_its_name(name: str, secret: bool) -> None:
    headers, problems = resolve_headers({name: "Bearer literal-value"}, {}, "profile mine")
    assert problems == []
    assert headers.secrets == (("Bearer literal-value",) if secret else ())
    warnings = literal_warnings(headers, {"k": 3}, None, "profile mine")
    assert len(warnings) == secret
    for warning in warnings:
        assert name in warning
        assert "${VARIABLE}" in warning
        assert "literal-value" not in warning
