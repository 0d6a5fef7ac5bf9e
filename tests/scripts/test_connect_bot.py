"""connect_bot.py against bots that refuse, redirect, wait, break or are not there."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import tomllib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.bots.query_engine import query
from tests.fake_bot import Exchange, FakeBot
from tests.processes import refused
from tests.rows import each_row

import connect_bot
import options
from clients.connect import Talk
from clients.connect import connect as connect_to
from clients.connect_job import Draft
from clients.connect_options import ConnectOptions
from records.runs import ROOT

SECRET = "sk-canary-4711-0815"
GOOD: dict[str, Any] = {
    "answer": "Within thirty days of the purchase. [1]",
    "sources": [
        {"file": "rental/returns.md", "section": "Returns", "text": "Within thirty days of it."}
    ],
}
Connect = Callable[..., Result]
TRIES = count()


@pytest.fixture
def connect(fake_bot: FakeBot, tmp_path: Path) -> Connect:
    """``connect("/ask", "--dry-run")``: against the scripted bot, which scripts by path."""
    fake_bot.question = lambda exchange: exchange.path.partition("?")[0]
    fake_bot.default = lambda exchange: exchange.reply({"detail": "Not Found"}, 404)

    def run(path: str, *more: str, **environ: Any) -> Result:
        name = ["--name", str(tmp_path / "bot.toml")]
        words = [fake_bot.url + path, *name, *more] if path else [*name, *more]
        return CliRunner().invoke(connect_bot.main, words, env=environ)

    return run


def said(done: Result) -> str:
    """What stands on the terminal; a traceback would not come through here."""
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return " ".join(done.output.split())


def asked(bot: FakeBot) -> list[tuple[str, str]]:
    return [(exchange.handler.command, exchange.path) for exchange in bot.seen]


def reply(payload: Any, status: int = 200, **headers: str) -> Callable[[Exchange], None]:
    return lambda exchange: exchange.reply(payload, status, **headers)


def test_without_a_terminal_the_profile_is_printed_and_nothing_written(
    fake_bot: FakeBot, connect: Connect, tmp_path: Path
) -> None:
    fake_bot.script("/ask", reply(GOOD))
    done = connect("/ask")
    assert done.exit_code == options.Exit.BAD_INPUT
    assert "Nothing was written" in said(done)
    assert tomllib.loads(done.stdout)["response"]["retrieved"] == "sources"
    assert list(tmp_path.iterdir()) == []
    # openapi.json, the request, two more questions, one repeat: each told before it is sent
    assert asked(fake_bot) == [("GET", "/openapi.json"), *[("POST", "/ask")] * 4]
    assert re.findall(r"^(\d)\. ", done.stderr, re.MULTILINE) == list("12345")


def test_two_answers_that_differ_are_shown(fake_bot: FakeBot, connect: Connect) -> None:
    """A bot that declines the first two questions; the proof shows a refusal and an answer."""

    def ask(exchange: Exchange) -> None:
        if "first" in exchange.json()["question"]:
            cited = {
                "reply": "Read the rental terms before anything else.",
                "cited": [{"index": 1}],
            }
        else:
            cited = {"reply": "Sorry, I do not know that.", "cited": []}
        exchange.reply({**cited, "sources": GOOD["sources"]})

    fake_bot.script("/ask", ask)
    paths = ("--set", "answer=reply", "--set", "references=cited")
    text = said(connect("/ask", "--dry-run", *paths))
    assert "Sorry, I do not know that. | Read the rental terms before anything else." in text
    assert "The answers differ" in text
    assert "cited 0 | 1: [1] The 1 citation names a passage of the answer." in text


def test_a_profile_in_the_toolkit_is_not_followed_by_the_set_of_the_demo(
    fake_bot: FakeBot, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default set asks about Python, so the next command names a set of one's own."""
    fake_bot.script("/ask", reply(GOOD))
    monkeypatch.setattr("records.runs.HOME", ROOT)
    done = connect("/ask", "--yes", RAG_EVAL_EVAL_SET=None)
    assert "write your questions, one a line, in my_set.jsonl" in said(done)
    assert f"--eval-set {os.path.abspath('my_set.jsonl')}" in said(done)


def test_a_profile_that_exists_stays_unless_forced(
    fake_bot: FakeBot, connect: Connect, tmp_path: Path
) -> None:
    fake_bot.script("/ask", reply(GOOD))
    (tmp_path / "bot.toml").write_text("mine")
    assert "--force" in refused(connect("/ask", "--yes"))
    assert fake_bot.seen == []
    assert (tmp_path / "bot.toml").read_text() == "mine"
    assert connect("/ask", "--yes", "--force").exit_code == 0
    assert "[request]" in (tmp_path / "bot.toml").read_text()


@each_row(
    ("behaviour", "words", "code"),
    [
        (reply({"error": "no"}, 401), "--header Authorization=BOT_TOKEN", 2),
        (reply({"error": "no"}, 403), "--header Authorization=BOT_TOKEN", 2),
        (reply({"error": "no"}, 500), "→ 500: {\"error\": \"no\"}", 2),
        (reply("", 302, Location="http://example.invalid/ask"), "to another host", 2),
        (reply({"status": "queued", "job_id": "7"}, 202), "polling", 2),
        (reply({"detail": "Upgrade Required"}, 426), "WebSocket", 2),
        (lambda it: it.reply({"error": f"'f{next(TRIES)}' is required"}, 400), "'f9' is", 2),
        (reply({"ok": True}), "--from-response", 2),
        (reply([]), "--from-response", 2),
        (lambda it: it.raw(b"<html>hi</html>", Content_Type="text/html"), "<html>hi</html>", 2),
        (lambda it: it.raw(b"<?xml version='1.0'?><a/>"), "answers in XML", 2),
        (lambda it: it.raw(b""), "(empty)", 2),
        (lambda it: it.raw(b"[" * 100_000), "--from-response", 2),
        (lambda it: it.raw(b"data: {\"a\n\n"), "--from-response", 2),
        (lambda it: it.raw(b'{"answer": "\xff\xfe"}'), "--from-response", 2),
        (lambda it: it.raw(b"\x1b]0;title\x07 no"), "--from-response", 2),
        (lambda it: it.cut(b'{"answer": "half'), "no answer from", 3),
        (lambda it: it.reset(), "no answer from", 3),
        (lambda it: it.hang(), "--set limits.timeout", 3),
        (reply({}, 429, Retry_After="99999"), "asks for 99,999 s", 2),
    ],
)  # fmt: skip
def test_a_bot_that_cannot_be_used_is_told_in_a_sentence(
    fake_bot: FakeBot,
    connect: Connect,
    tmp_path: Path,
    behaviour: Callable[[Exchange], None],
    words: str,
    code: int,
) -> None:
    fake_bot.seen.clear()
    fake_bot.default = behaviour
    done = connect("/ask", "--yes", "--set", "limits.timeout=0.3")
    assert done.exit_code == code, done.output
    assert words.lower() in said(done).lower()
    assert "\x1b" not in done.output
    assert len(fake_bot.seen) <= 10
    assert {path for _, path in asked(fake_bot)} <= {"/openapi.json", "/ask"}
    assert list(tmp_path.iterdir()) == []


def test_nobody_there(connect: Connect) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers at this port
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = CliRunner().invoke(connect_bot.main, [url, "--yes"])
    assert done.exit_code == options.Exit.UNREACHABLE
    assert "is the bot running?" in said(done)


def test_a_wait_is_kept_once(fake_bot: FakeBot, connect: Connect) -> None:
    fake_bot.script("/ask", reply({}, 429, Retry_After="0"), reply(GOOD))
    done = connect("/ask", "--yes")
    assert done.exit_code == 0, done.output
    assert "waiting 0 s" in said(done)


def test_a_method_that_the_bot_allows(fake_bot: FakeBot, connect: Connect, tmp_path: Path) -> None:
    def get_only(exchange: Exchange) -> None:
        if exchange.handler.command != "GET":
            exchange.reply({}, 405, Allow="GET, HEAD")
        else:
            exchange.reply(GOOD if "question=" in exchange.path else {}, 200)

    fake_bot.script("/ask", get_only)
    done = connect("/ask", "--yes", "--dry-run")
    assert (done.exit_code, list(tmp_path.iterdir())) == (0, []), done.output
    raw = tomllib.loads(done.stdout)["request"]
    assert (raw["method"], raw["query"]["question"]) == ("GET", "{question}")


def test_a_refused_header_is_told_without_its_value(fake_bot: FakeBot, connect: Connect) -> None:
    def echo(exchange: Exchange) -> None:
        exchange.reply({"error": f"bad key {exchange.headers.get('X-Key')}"}, 401)

    fake_bot.script("/ask", echo)
    done = connect("/ask", "--header", "X-Key=BOT_KEY", BOT_KEY=SECRET)
    assert "refuses the value of X-Key (HTTP 401). The variable must hold the whole" in said(done)
    assert SECRET not in done.output
    missing = connect("/ask", "--header", "X-Key=NO_SUCH_KEY")
    assert "environment variable NO_SUCH_KEY is not set" in said(missing)
    assert missing.exit_code == options.Exit.BAD_INPUT


def test_no_secret_of_a_curl_command_is_written_or_shown(
    fake_bot: FakeBot, connect: Connect, tmp_path: Path
) -> None:
    """The bot says the key back in its answer and in an error page; both are shown."""

    def echo(exchange: Exchange) -> None:
        assert exchange.headers["Authorization"] == f"Bearer {SECRET}"
        assert exchange.json()["token"] == f"{SECRET}-body"
        exchange.reply({**GOOD, "debug": f"key {SECRET}"})

    fake_bot.script("/ask", echo)
    body = json.dumps({"query": "How long?", "token": f"{SECRET}-body", "n": 2})
    curl = f"curl {fake_bot.url}/ask -H 'Authorization: Bearer {SECRET}' -d '{body}'"
    done = connect("", "--curl", curl, "--ask", "How long?", "--yes")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "bot.toml").read_text()
    assert SECRET not in text + done.output
    raw = tomllib.loads(text)["request"]
    assert raw["headers"] == {"Authorization": "Bearer ${BOT_TOKEN}"}
    assert raw["body"] == {"query": "{question}", "token": "${BOT_TOKEN_2}", "n": 2}
    assert "export BOT_TOKEN=" in said(done)


def test_parameters_of_the_url_go_along_and_a_key_among_them_is_a_variable(
    fake_bot: FakeBot, connect: Connect
) -> None:
    fake_bot.script("/ask", reply(GOOD))
    done = connect("/ask?version=2&api_key=" + SECRET, "--dry-run")
    assert done.exit_code == 0, done.output
    request = tomllib.loads(done.stdout)["request"]
    assert request["query"] == {"version": "2", "api_key": "${BOT_API_KEY}"}
    assert fake_bot.seen[-1].path == f"/ask?version=2&api_key={SECRET}"
    assert SECRET not in done.output


def test_graphql_by_curl(fake_bot: FakeBot, connect: Connect) -> None:
    """Braces of the query are sent as they are; the question stands in the variables."""
    body = {"query": "query Q($q: String!) { ask(q: $q) { answer } }", "variables": {"q": "Why?"}}
    fake_bot.script("/graphql", reply({"data": {"ask": {"answer": "Because it is so."}}}))
    curl = f"curl {fake_bot.url}/graphql -d '{json.dumps(body)}'"
    done = connect("", "--curl", curl, "--ask", "Why?", "--dry-run")
    assert done.exit_code == 0, done.output
    assert tomllib.loads(done.stdout)["response"]["answer"] == "data.ask.answer"
    assert fake_bot.seen[0].json()["query"] == body["query"]
    asked_texts = [exchange.json()["variables"]["q"] for exchange in fake_bot.seen]
    assert asked_texts[0] == asked_texts[-1] == "Why?"  # the first question is asked twice
    assert len(asked_texts) == 4


def test_paths_set_by_hand_win(fake_bot: FakeBot, connect: Connect) -> None:
    fake_bot.script("/ask", reply({**GOOD, "short": "Thirty days."}))
    done = connect("/ask", "--set", "answer=short", "--set", "chunk.text=", "--dry-run")
    raw = tomllib.loads(done.stdout)
    assert raw["response"]["answer"] == "short"
    assert "text" not in raw["chunk"]
    for wrong in ("answer", "anser=a", "answer=a..b", "chunk.nothing=a"):
        assert "Error:" in refused(connect("/ask", "--set", wrong, "--dry-run"))


def test_a_path_that_does_not_fit_is_left_out_and_told(fake_bot: FakeBot, connect: Connect) -> None:
    fake_bot.script("/ask", reply({**GOOD, "confidence": 0.5, "mood": "fine"}))
    done = connect("/ask", "--set", "cost_usd=mood", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "cost_usd: mood was left out" in said(done)
    assert tomllib.loads(done.stdout)["response"]["confidence"] == "confidence"


def test_a_list_that_is_named_before_its_fields_is_kept(
    fake_bot: FakeBot, connect: Connect, tmp_path: Path
) -> None:
    """Names that no rule knows, typed one by one at the terminal: the list first, then its text."""
    del connect  # its bot answers by path
    found = [{"auszug": f"Die Gebühr {n} beträgt 84 Euro im Jahr.", "punkte": 1} for n in "ab"]
    fake_bot.script("/ask", reply({"answer": "84 Euro.", "belege": found}))
    given = ConnectOptions(url=f"{fake_bot.url}/ask", name=str(tmp_path / "own.toml"))
    typed = iter([{"retrieved": "belege"}, {"chunk.text": "auszug"}, {}])
    faults = []

    def edit(draft: Draft) -> dict[str, str]:
        faults.append(draft.faults)
        return next(typed)

    outcome = connect_to(given, [], {}, Talk(lambda line: None, edit))
    assert outcome is not None
    assert faults[0] == faults[2] == []
    (fault,) = faults[1]
    assert fault.startswith("retrieved: belege was left out (retrieved[0]: has no id, path or text")
    remedy = "Set chunk.text or chunk.rel_path too, with a path inside an item of belege."
    assert fault.endswith(remedy)
    profile = tomllib.loads(outcome.text)
    assert (profile["response"]["retrieved"], profile["chunk"]["text"]) == ("belege", "auszug")
    assert not any("left out" in note for note in outcome.notes)


def test_a_saved_answer_needs_no_bot(fake_bot: FakeBot, connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(
        json.dumps(query({"query": "late", "tenant": ""}, {}).body)
    )
    done = connect("/v2/query", "--from-response", str(tmp_path / "answer.json"), "--dry-run")
    assert done.exit_code == 0, done.output
    assert tomllib.loads(done.stdout)["chunk"]["rel_path"] == "node.metadata.file_path"
    assert fake_bot.seen == []
    assert "? How long did it take?" in said(done)
    (tmp_path / "other.json").write_text('{"a": 1}')
    assert "no recognisable answer or passages" in refused(
        connect("/x", "--from-response", str(tmp_path / "other.json"))
    )


def test_at_a_terminal_fields_are_accepted_or_changed(
    fake_bot: FakeBot, tmp_path: Path, pseudo_terminal: Callable[..., Any]
) -> None:
    """A real process in a real terminal: look at the tree, a wrong path, a right one, accept."""
    fake_bot.question = lambda exchange: exchange.path
    fake_bot.script("/ask", reply({**GOOD, "short": "Thirty days."}))
    target = tmp_path / "bot.toml"
    script = str(Path(connect_bot.__file__))
    command = [sys.executable, script, f"{fake_bot.url}/ask", "--name", str(target)]
    with pseudo_terminal(command, columns=100, rows=40, env={}, cwd=tmp_path) as terminal:
        for answer in ("t", "answer=short.", "answer=short", "abc", ""):
            terminal.wait_for(b"q: stop")
            terminal.write(f"{answer}\r".encode())
        assert terminal.wait() == 0
    assert tomllib.loads(target.read_text())["response"]["answer"] == "short"


@each_row(
    ("words", "message"),
    [
        ([], "which bot?"),
        (["ftp://host"], "write http://HOST"),
        (["http://h/a", "--body", "{"], "is not JSON"),
        (["http://h/a", "--body", "[1]"], "must be a JSON object"),
        (["http://h/a", "--body", "@/no/such"], "No such file"),
        (["http://h/a", "--body", '{"n": 1}'], "which part is the question"),
        (["http://h/a", "--curl", "curl x", "--body", "{}"], "leave out"),
        (["http://h/a", "--name", "../x"], "use letters"),
        (["http://h/a", "--from-response", "/no/such", "--dry-run"], "No such file"),
        (["http://h/a", "--header", "X=1 2"], "NAME=VARIABLE"),
        (["http://h/a", "--header", "X-Api-Key: u7"], "NAME=VARIABLE"),
    ],
)
def test_wrong_usage(words: list[str], message: str) -> None:
    assert message in refused(CliRunner().invoke(connect_bot.main, words))
