"""Header values and passwords are written nowhere, whatever the bot does with them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.clients.run.conftest import Desk

from records.runs import PROFILES


def everything(folder: Path, done: subprocess.CompletedProcess[str]) -> str:
    """All that a run wrote and printed."""
    written = [path.read_text() for path in (folder / "results" / "r").iterdir()]
    return "\n".join([*written, done.stdout, done.stderr])


def test_a_secret_is_written_nowhere(desk: Desk) -> None:
    """The bot sends the header back in every way it can."""
    token = desk.environment["BOT_TOKEN"]

    def echo(exchange: Any) -> None:
        seen = exchange.headers["X-Key"].encode("latin-1").decode("utf-8", "replace")
        value = exchange.headers["X-Key"]
        exchange.reply(
            desk.bot.answer("x", answer=f"{value} {seen}", usage={value: 1}, index={"v": value})
        )

    desk.bot.default = echo
    desk.bot.script("question 1", lambda e: e.reply({"error": e.headers["X-Key"]}))
    desk.bot.script("question 2", lambda e: e.reply(e.headers["X-Key"], 401))
    url = desk.bot.url.replace("http://", "http://user:pass-word@") + "/?key=query-secret"
    flags = ("--header", "X-Key=BOT_TOKEN", "--max-error-rate", "1", "-v", "--run-id", "r")
    done = desk.invoke(*flags, url=url)
    garbled = token.encode().decode("latin-1")  # the server reads the header's UTF-8 as Latin-1
    assert desk.bot.seen[0].headers["X-Key"] == garbled
    shown = everything(desk.folder, done)
    assert "[secret]" in shown
    for secret in (token, garbled, json.dumps(token)[1:-1], "pass-word", "query-secret"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ("", "[request.headers]\nX-Key = 'Key ${BOT_TOKEN}'\nX-Team = 'red'", ""),
        ("", "[request.headers]\nX-Key = 'KEY'\nX-Team = 'red'", "headers: X-Key"),
        ("query = { debug = true }", "query = { api_key = 'KEY', a = 'short' }", "query.api_key"),
        (
            "[request.body]",
            "[request.body]\nlogin = { key = 'KEY', a = 'short' }",
            "body.login.key",
        ),
    ],
)
def test_a_secret_of_the_profile_is_written_nowhere_and_a_literal_one_told(
    desk: Desk, old: str, new: str, warning: str
) -> None:
    key = "sk-literal-0123" if warning else desk.environment["BOT_TOKEN"]
    shipped = (PROFILES / "default.toml").read_text()
    new = new.replace("KEY'", f"{key}'")
    text = shipped.replace(old, new) if old else shipped + new
    profile = desk.folder / "mine.toml"
    profile.write_text(text)
    desk.bot.default = lambda e: e.reply(
        desk.bot.answer("x", answer=f"a short {key} answer to {e.headers.get('X-Key')}")
    )
    done = desk.invoke("--profile", profile, "--run-id", "r")
    shown = everything(desk.folder, done)
    assert "a short [secret] answer" in shown
    assert not [
        part for part in (key, "sk-literal", key.encode().decode("latin-1")) if part in shown
    ]
    assert (f"request.{warning}: looks like a secret" in done.stderr) is bool(warning)
    if not old:
        sent = desk.bot.seen[0].headers
        assert sent["X-Key"] == ("" if warning else "Key ") + key.encode().decode("latin-1")
        assert sent["X-Team"] == "red"


def test_a_login_without_a_scheme_is_not_repeated(desk: Desk) -> None:
    done = desk.invoke(url="bob:PASS-WORD@host", ends=2)
    assert "--api-url 'host': write http://HOST" in done.stderr
    assert "PASS-WORD" not in done.stderr
