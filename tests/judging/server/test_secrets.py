"""A key is sent to the judge and appears nowhere else: no file, no log, no traceback."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from clients.http import finish
from clients.secrets import Headers
from judging.identity import JudgeError, JudgePin, addresses
from judging.server import key_headers
from records.runs import JUDGE_CACHE

KEY = "sk-Very/Secret+Key-0123456789"


def with_key() -> Headers:
    return key_headers("JUDGE_KEY", {"JUDGE_KEY": KEY})


def files_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_no_file_and_no_log_holds_the_key(
    fake_judge: Any, judge: Any, cached: Any, task: Any, good: Any, tmp_path: Path, caplog: Any
) -> None:
    """Even from a server that says it back, in a reply, in a model's name, and in errors."""
    caplog.set_level(logging.DEBUG)

    def tells(exchange: Any) -> None:
        said = fake_judge.completion(exchange.json(), good)
        said["model"] = said["system_fingerprint"] = exchange.headers["Authorization"]
        exchange.reply(said)

    fake_judge.script("ships", tells)
    fake_judge.script("trees", fake_judge.fails(400, f"bad key {KEY}"))
    fake_judge.script("birds", fake_judge.says(f"I know {KEY}"))
    weights = tmp_path / "judge.gguf"
    weights.write_bytes(b"GGUF weights")  # the digest vouches: any name in a reply is only noted
    client = judge(headers=with_key(), pin=JudgePin(file=weights))
    front = cached(client)
    verdicts = [finish(front.ask(task(about))) for about in ("ships", "trees", "birds")]
    assert [verdict.failure for verdict in verdicts] == [None, "rejected", "malformed"]
    assert (tmp_path / JUDGE_CACHE).stat().st_size > 0
    told = f"{client.describe()} {client.changed()} {client.notes}"
    assert "answers as [secret];" in told
    shown = f"{verdicts} {told} {vars(client)} {caplog.text}"
    assert "[secret]" in shown
    assert KEY not in shown
    assert KEY.encode() not in files_below(tmp_path)


@each_row("before", [100, 140, 160, 180, 250])
def test_an_error_that_is_cut_does_not_show_the_head_of_the_key(
    fake_judge: Any, judge: Any, task: Any, before: int
) -> None:
    fake_judge.script("trees", fake_judge.fails(400, "x" * before + f" bad key {KEY}"))
    verdict = finish(judge(headers=with_key()).ask(task("trees")))
    assert "xxxx" in str(verdict)
    assert KEY[:4] not in str(verdict)


def test_a_login_without_a_scheme_is_not_repeated() -> None:
    with pytest.raises(JudgeError, match="address 'host' is not a URL"):
        addresses("bob:PASS-WORD@host")


def test_a_key_in_the_address_is_no_different(
    fake_judge: Any, judge: Any, cached: Any, task: Any, tmp_path: Path
) -> None:
    url = fake_judge.url.replace("//", "//me:pass-word-77@")
    client = judge(url=url)
    assert finish(cached(client).ask(task())).ok
    assert fake_judge.bot.seen[-1].headers["Authorization"].startswith("Basic ")
    assert "pass-word-77" not in str(client.describe())
    assert b"pass-word-77" not in files_below(tmp_path)


def test_no_traceback_holds_the_key(
    fake_judge: Any, judge: Any, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = judge(headers=with_key())

    def broken(*args: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr("judging.server.cut_prompt", broken)
    with pytest.raises(RuntimeError) as caught:
        finish(client.ask(task()))
    assert KEY not in "".join(traceback.format_exception(caught.value))
    fake_judge.script("/api/version", fake_judge.fails(401, f"key {KEY} is wrong"))
    with pytest.raises(JudgeError) as refused:
        client.identify()
    assert KEY not in "".join(traceback.format_exception(refused.value))


@each_row(
    ("variable", "environ", "said"),
    [
        ("JUDGE_KEY", {}, "variable JUDGE_KEY is not set"),
        ("JUDGE_KEY", {"JUDGE_KEY": ""}, "variable JUDGE_KEY is not set"),
        ("JUDGE_KEY", {"JUDGE_KEY": "abc"}, "fewer than 4 characters"),
        ("JUDGE_KEY", {"JUDGE_KEY": f"{KEY}\n"}, "characters that a header must not have"),
        (KEY, {}, "the name of an environment variable"),
        ("sk_live_abcdef", {"sk_live_abcdef": KEY}, "the name of an environment variable"),
    ],
)
def test_an_unusable_key_is_one_sentence(variable: str, environ: dict[str, str], said: str) -> None:
    with pytest.raises(JudgeError, match=said) as caught:
        key_headers(variable, environ)
    assert KEY not in caught.value.message
    assert "abcdef" not in caught.value.message


def test_without_a_variable_nothing_is_sent(fake_judge: Any, judge: Any) -> None:
    judge(headers=key_headers(None, {}))
    assert all("Authorization" not in one.headers for one in fake_judge.bot.seen)
