"""What an address holds that is secret, and that it is written nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_plus

import pytest

from clients.chat_api import ChatApi, Question
from clients.redact import Redactor, url_secrets

MakeApi = Callable[..., ChatApi]


@pytest.mark.parametrize(
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
    """The bot repeats its whole request line, and the login in plain words."""

    def echo(exchange: Any, status: int = 200) -> None:
        said = f"{exchange.path} {unquote_plus(exchange.path)} user:pass-word pass-word"
        exchange.reply(fake_bot.answer("q", answer=said, usage={said: 1}), status)

    fake_bot.script("answer", echo)
    fake_bot.script("error", lambda exchange: echo(exchange, 403))
    address = fake_bot.url.replace("http://", "http://user:pass-word@")
    client = api(url=f"{address}/?key=query%20secret&format=json")
    for name in ("answer", "error"):
        asked = repr(client.ask(Question("case", name)))
        assert "[secret]" in asked
        for secret in ("pass-word", "query secret", "query+secret", "query%20secret"):
            assert secret not in asked
    assert "key=query+secret" in fake_bot.seen[0].path
    assert client.ask(Question("case", "json")).result.answer == "answer to json [1]"
