"""Header values and passwords are written nowhere, whatever the bot does with them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Read = Callable[..., list[dict[str, Any]]]


def test_a_secret_is_written_nowhere(
    fake_bot: Any, tmp_path: Path, invoke: Run, environment: dict[str, str]
) -> None:
    """The bot sends the header back in every way it can."""
    token = environment["BOT_TOKEN"]

    def echo(exchange: Any) -> None:
        seen = exchange.headers["X-Key"].encode("latin-1").decode("utf-8", "replace")
        value = exchange.headers["X-Key"]
        exchange.reply(
            fake_bot.answer("x", answer=f"{value} {seen}", usage={value: 1}, index={"v": value})
        )

    fake_bot.default = echo
    fake_bot.script("question 1", lambda e: e.reply({"error": e.headers["X-Key"]}))
    fake_bot.script("question 2", lambda e: e.reply(e.headers["X-Key"], 401))
    url = fake_bot.url.replace("http://", "http://user:pass-word@") + "/?key=query-secret"
    flags = ("--header", "X-Key=BOT_TOKEN", "--max-error-rate", "1", "-v", "--run-id", "r")
    done = invoke(*flags, url=url)
    assert done.returncode == 0, done.stderr
    garbled = token.encode().decode("latin-1")  # the server reads the header's UTF-8 as Latin-1
    assert fake_bot.seen[0].headers["X-Key"] == garbled
    written = [path.read_text() for path in (tmp_path / "results" / "r").iterdir()]
    for text in (*written, done.stdout, done.stderr):
        for secret in (token, garbled, json.dumps(token)[1:-1], "pass-word", "query-secret"):
            assert secret not in text
    assert json.loads(written[0] if "config_hash" in written[0] else written[1])


def test_a_header_of_the_profile_is_kept_secret_too(
    fake_bot: Any, tmp_path: Path, invoke: Run, environment: dict[str, str]
) -> None:
    token = environment["BOT_TOKEN"]
    shipped = Path(__file__).parents[3] / "eval" / "profiles" / "default.toml"
    text = shipped.read_text() + '[request.headers]\nX-Key = "Key ${BOT_TOKEN}"\nX-Team = "red"\n'
    profile = tmp_path / "mine.toml"
    profile.write_text(text)
    fake_bot.default = lambda e: e.reply(fake_bot.answer("x", answer=e.headers["X-Key"]))
    done = invoke("--profile", profile, "--run-id", "r")
    assert done.returncode == 0, done.stderr
    assert fake_bot.seen[0].headers["X-Key"] == "Key " + token.encode().decode("latin-1")
    assert fake_bot.seen[0].headers["X-Team"] == "red"
    written = [path.read_text() for path in (tmp_path / "results" / "r").iterdir()]
    assert all(token not in text for text in (*written, done.stdout, done.stderr))
    assert any("[secret]" in text for text in written)


def test_a_key_written_into_the_profile_is_kept_secret_with_a_warning(
    fake_bot: Any, tmp_path: Path, invoke: Run
) -> None:
    shipped = Path(__file__).parents[3] / "eval" / "profiles" / "default.toml"
    profile = tmp_path / "mine.toml"
    profile.write_text(shipped.read_text() + '[request.headers]\nX-Key = "sk-literal-value"\n')
    fake_bot.default = lambda e: e.reply(fake_bot.answer("x", answer=e.headers["X-Key"]))
    done = invoke("--profile", profile, "--run-id", "r")
    assert done.returncode == 0, done.stderr
    assert fake_bot.seen[0].headers["X-Key"] == "sk-literal-value"
    assert "request.headers: X-Key: looks like a secret" in done.stderr
    written = [path.read_text() for path in (tmp_path / "results" / "r").iterdir()]
    assert all("sk-literal" not in text for text in (*written, done.stdout, done.stderr))
    assert any("[secret]" in text for text in written)


def test_a_login_without_a_scheme_is_not_repeated(invoke: Run) -> None:
    done = invoke(url="bob:PASS-WORD@host")
    assert done.returncode == 2
    assert "--api-url 'host': write http://HOST" in done.stderr
    assert "PASS-WORD" not in done.stderr


@pytest.mark.parametrize("place", ["query", "body"])
def test_a_key_among_the_parameters_of_a_profile_is_kept_secret_with_a_warning(
    fake_bot: Any, tmp_path: Path, invoke: Run, place: str
) -> None:
    key = "sk-literal-0123"
    shipped = (Path(__file__).parents[3] / "eval" / "profiles" / "default.toml").read_text()
    old = {"query": "query = { debug = true }", "body": "[request.body]"}[place]
    new = {
        "query": f'query = {{ debug = true, api_key = "{key}", key_style = "short" }}',
        "body": f'[request.body]\nlogin = {{ api_key = "{key}", key_style = "short" }}',
    }[place]
    assert shipped.count(old) == 1
    profile = tmp_path / "mine.toml"
    profile.write_text(shipped.replace(old, new))
    fake_bot.default = lambda e: e.reply(fake_bot.answer("x", answer=f"a short {key} answer"))
    done = invoke("--profile", profile, "--run-id", "r")
    assert done.returncode == 0, done.stderr
    assert f"request.{place}{'.login' * (place == 'body')}.api_key: looks like" in done.stderr
    written = [path.read_text() for path in (tmp_path / "results" / "r").iterdir()]
    assert all("sk-literal" not in text for text in (*written, done.stdout, done.stderr))
    assert any("a short [secret] answer" in text for text in written)
