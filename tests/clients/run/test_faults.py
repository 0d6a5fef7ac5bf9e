"""run_eval.py and a bot that fails, a disk that is full, a user who errs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.clients.run.conftest import Desk

from clients.http import KINDS


def test_every_failure_has_its_kind_and_none_is_an_answer(desk: Desk) -> None:
    answer = json.dumps(desk.bot.answer("x")).encode()
    stream_left = threading.Event()
    streamed: list[int] = []

    def flood(exchange: Any) -> None:
        streamed.append(exchange.stream(200 * 2**20))
        stream_left.set()

    faults: list[tuple[str, Callable[[Any], None]]] = [
        ("rate_limited", lambda e: e.reply({}, 429, Retry_After="0")),
        ("server_error", lambda e: e.reply({}, 500)),
        ("client_error", lambda e: e.reply({}, 404)),
        ("connection", lambda e: e.reset()),
        ("malformed", lambda e: e.raw(answer[: len(answer) // 2])),
        ("malformed", lambda e: e.raw(b"<html>", Content_Type="text/html")),
        ("malformed", lambda e: e.raw(answer.replace(b"0.9", b"NaN"))),
        ("too_large", flood),
        ("mapping", lambda e: e.reply(desk.bot.answer("x", answer=["a"]))),
        ("mapping", lambda e: e.reply(desk.bot.answer("x", retrieved={"a": 1}))),
        ("redirect", lambda e: e.raw(b"", 302, Location="http://other.invalid/")),
        ("bot_error", lambda e: e.reply({"error": "no"})),
    ]
    for number, (_, behaviour) in enumerate(faults):
        desk.bot.script(f"question {number}", behaviour)
    recovers = len(faults)
    desk.bot.script(
        f"question {recovers}",
        lambda e: e.reply({}, 429, Retry_After="0"),
        lambda e: e.reply({}, 500),
        desk.bot.reply_properly,
    )
    flags = ("--set", "retries=2", "--set", "max_mb=1", "--max-error-rate", "1")
    done = desk.invoke(
        *flags, "--run-id", "bad", "--set", "concurrency=16", "-v", cases=recovers + 2
    )
    results = desk.results("bad")
    for (kind, _), line in zip(faults, results, strict=False):
        assert line["status"] == "error"
        assert line["error"]["kind"] == kind
        assert kind in KINDS
        assert line["answer"] is None
        assert line["retrieved"] is None
        assert f"{line['test_case_id']}: {kind}: " in done.stderr
    assert [line["status"] for line in results[recovers:]] == ["ok", "ok"]
    assert stream_left.wait(60)
    assert streamed[0] < 40 * 2**20


def test_a_bot_that_hangs(desk: Desk) -> None:
    desk.bot.default = lambda e: e.hang()
    flags = "--set timeout=0.5 --set retries=0 --max-error-rate 1 -v --run-id r"
    done = desk.invoke(*flags.split(), cases=2)
    for line in desk.results("r"):
        assert line["error"]["kind"] == "timeout"
        assert line["error"]["message"] == "no complete answer within 0.5 s"
        assert line["answer"] is None
        assert f"{line['test_case_id']}: timeout: " in done.stderr


def test_a_bot_that_is_not_there(desk: Desk) -> None:
    desk.bot.close()
    done = desk.invoke("--set", "retries=1", ends=3)
    assert len(done.stderr.strip().splitlines()) == 1
    assert desk.bot.url in done.stderr
    assert not (desk.folder / "results").exists()


def test_a_full_disk_is_a_sentence_and_loses_nothing(desk: Desk) -> None:
    """A limit on the size of files stands for the end of the disk."""
    resource = pytest.importorskip("resource")
    words = ("--run-id", "r", "--set", "concurrency=2")

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    done = desk.run(*words, cases=100, ends=2, before=little_room)
    assert "cannot be written" in done.stderr
    assert "--resume --run-id r" in done.stderr
    assert "Exception ignored" not in done.stderr
    desk.invoke(*words, "--resume")
    results = desk.results("r")
    assert [line["test_case_id"] for line in results] == [f"q{n}" for n in range(100)]
    assert max(desk.bot.asked.values()) <= 2


def test_escape_sequences_of_a_bot_do_not_reach_the_terminal(desk: Desk) -> None:
    desk.bot.script("question 1", lambda e: e.raw(b"\x1b[2J\x1b]0;owned\x07[red]x[/red]", 400))
    desk.bot.default = lambda e: e.reply(desk.bot.answer("x", latency_ms={"\x1b[31m": 1.0}))
    done = desk.invoke("-v", "--max-error-rate", "1")
    assert "\x1b" not in done.stderr
    assert "\x07" not in done.stderr
    assert "[red]x[/red]" in done.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--header", "X-Key=NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE is not set"),
        (("--header", "Authorization: Bearer sk-123456"), "--header Authorization"),
        (("--header", "Authorization=Bearer sk-123456"), "--header Authorization"),
        (("--profile", "nothing"), "known: "),
        (("--profile", "documents", "--set", "folder_mode=on"), "no {folder_mode}"),
        (("--filter", "colour=red"), "the names are"),
        (("--filter", "category=nothing"), "category: factual, reasoning"),
        (("--run-id", "../up"), "run id"),
        (("--run-id", "latest"), "the newest run"),
        (("--resume",), "--run-id"),
        (("--resume", "--run-id", "never-made"), "no such run"),
        (("--retry-errors",), "--resume"),
        (("--set", "chunk_size=400"), "chunk_size: is unknown"),
        (("--set", "x"), "write KEY=VALUE"),
        (("--api-url", "127.0.0.1:80"), "write http://HOST"),
        (("--api-url", "http://127.0.0.1:port"), "write http://HOST"),
        (("--api-url", "http://[::1"), "write http://HOST"),
        (("--k", "0"), "--k"),
        (("--k", "1" + "0" * 30), "--k"),
        (("--limit", "1" + "0" * 30), "--limit"),
        (("--max-error-rate", "2"), "--max-error-rate"),
        (("--max-error-rate", "nan"), "--max-error-rate"),
        *(
            (("--set", text), f"{text.partition('=')[0]}: must be a ")
            for text in (
                *("timeout=0", "timeout=nan", "timeout=inf", "timeout=1e12", "backoff=nan"),
                *("backoff=inf", "max_mb=nan", "max_mb=inf", "retries=1" + "0" * 400),
            )
        ),
    ],
)
def test_usage_errors_write_nothing(desk: Desk, flags: tuple[str, ...], words: str) -> None:
    done = desk.invoke(*flags, ends=2)
    assert words in done.stderr
    assert "sk-123456" not in done.stderr
    assert not (desk.folder / "results").exists()
    assert not desk.bot.seen


def test_an_id_that_exists_is_not_overwritten(desk: Desk) -> None:
    desk.invoke("--run-id", "r")
    before = (desk.folder / "results" / "r" / "results.jsonl").read_bytes()
    done = desk.invoke("--run-id", "r", "--k", "2", ends=2)
    assert "choose another --run-id" in done.stderr
    assert (desk.folder / "results" / "r" / "results.jsonl").read_bytes() == before
