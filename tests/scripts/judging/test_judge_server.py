"""judge_answers.py against a server: the way to ask, replays, failures, lies, kills, secrets,
and a judge by its file: the same judge as by options."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.processes import refused
from tests.scripts.judging.conftest import CASES, RESULTS, Server

import judge_answers
from records.verdict_lines import read_settings
from storage import RetrievedChunk

SECRET = "sk-test-0123456789abcdef"


def test_a_server_judges_once_and_the_cache_replays(run: Any, server: Any) -> None:
    run.write()
    found = run.judge(*server.words())
    assert found["mean"]["faithfulness"] == 1.0
    paid, kept = len(server.calls), run.finished.bytes_of("judged")
    assert server.judgements == 2  # good and bad; shy abstains
    run.judge(*server.words())
    assert len(server.calls) == paid
    (run.finished.run / "verdicts.jsonl").unlink()
    run.judge(*server.words("--offline"))
    assert (len(server.calls), run.finished.bytes_of("judged")) == (paid, kept)
    asked = [line for line in run.lines() if line["status"] == "ok" and line["mode"] != "code"]
    assert [(line["cached"], line["judge"]["revision"]) for line in asked] == [(True, "r1")] * 2
    run.judge(*server.words("--repeats", "2"))
    assert server.judgements == 4
    changed = run.judge(*server.words("--set", "temperature=0.5"))
    assert server.judgements == 6
    assert changed["options"]["judge"]["parameters"]["temperature"] == 0.5


@pytest.mark.slow
def test_relevancy_by_the_real_embedding_model(run: Any, server: Any) -> None:
    cases = [{"id": "same", "question": "What is the fee?"}, {"id": "far", "question": "Who sang?"}]
    run.write(cases, [run.result(case["id"], "The fee is 15 euros.") for case in cases])
    run.judge(*server.words()[:-2], "--metrics", "answer_relevancy")
    scores = {name: row["scores"] for name, row in run.finished.rows("judged").items()}
    assert 0.7 < scores["same"]["answer_relevancy"] < 1.0  # one of three questions is the same
    assert scores["far"]["answer_relevancy"] < 0.4


REFUSAL = {"message": {"content": None, "refusal": "I cannot help."}, "finish_reason": "stop"}
FAILURES: dict[str, Any] = {
    "malformed": (200, Server.completion("Sure! All claims are fine.")),
    "truncated": (200, Server.completion('{"notes": "", "verdicts": [', "length")),
    "incomplete": (
        200,
        Server.completion({"notes": "", "verdicts": [], "manipulation": False}),
    ),
    "refused": (200, Server.completion("") | {"choices": [REFUSAL]}),
    "transport": (500, {"error": "overloaded"}),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_no_failed_judgement_becomes_a_score(run: Any, server: Any, failure: str) -> None:
    run.write()
    server.reply = lambda server, body: FAILURES[failure]
    done = run.call(*server.words())
    assert done.exit_code == 3, done.output
    statuses = {line["case_id"]: (line["status"], line["failure"]) for line in run.lines()}
    assert statuses == {
        "good": ("failed", failure),
        "bad": ("failed", failure),
        "shy": ("not_applicable", None),
    }
    assert "2 judgements failed" in done.stderr
    found = run.judge("--rescore")
    counts = [found[name]["groundedness"] for name in ("n", "not_applicable", "failed")]
    assert counts == [0, 1, 3]  # the bot's own failure is the third
    assert found["mean"]["groundedness"] is None
    server.reply = type(server).support
    assert run.judge(*server.words())["mean"]["groundedness"] == 5.0


def test_a_lying_judge_supports_nothing_without_a_quote(run: Any, server: Any) -> None:
    run.write()

    def lie(server: Any, body: dict[str, Any]) -> tuple[int, Any]:
        status, reply = server.support(body)
        text = reply["choices"][0]["message"]["content"]
        reply["choices"][0]["message"]["content"] = text.replace("15 euros", "nothing at all")
        return status, reply

    server.reply = lie
    found = run.judge(*server.words())
    assert found["mean"]["faithfulness"] == 0.0
    assert found["claims"]["claims_quote_unverified"] == 3


def test_the_key_is_written_nowhere(run: Any, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", SECRET)
    run.write()
    server.reply = lambda server, body: (401, {"error": f"bad key {SECRET}"})
    done = run.call(*server.words("--set", "api_key=JUDGE_KEY"))
    assert SECRET not in done.output
    for path in run.finished.folder.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def started(run: Any, server: Any, *words: str) -> subprocess.Popen[str]:
    """judge_answers.py as a process that judges thirty answers, when some were asked about."""
    cases = [{"id": f"q{n}"} for n in range(30)]
    texts = [f"The fee is 15 euros. Room {n} has chairs." for n in range(30)]
    if not run.finished.run.exists():
        run.write(cases, [run.result(f"q{n}", text) for n, text in enumerate(texts)])
    server.delay, before = 0.05, server.judgements
    own = run.finished
    command = [sys.executable, judge_answers.__file__, *server.words(*words)]
    command += ["--run", str(own.run), "--eval-set", str(own.folder / "set.jsonl")]
    command += ["--cache-dir", str(own.folder / "cache")]
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    process = subprocess.Popen(command, stdout=null, stderr=pipe, text=True)
    while server.judgements < before + 6 and process.poll() is None:
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be stopped"
    return process


def test_a_killed_run_pays_for_nothing_twice(run: Any, server: Any) -> None:
    for kills in (1, 2):
        process = started(run, server, "--set", "concurrency=2", "-q")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        time.sleep(0.3)  # what the server has begun it still counts
        before = server.judgements
        lines = (run.finished.folder / "cache" / "judge_cache.jsonl").read_text().splitlines()
        cached = len({json.loads(line)["key"] for line in lines})
        assert 0 < cached == len(lines) < 30
        # at most the two calls under way at each kill are paid again
        assert before - cached <= 2 * kills
    server.delay = 0.0
    assert run.judge(*server.words())["n"]["faithfulness"] == 30
    assert server.judgements - before == 30 - cached


def test_the_judge_decides_abstentions_that_the_wording_leaves_open(run: Any, server: Any) -> None:
    from score_abstention import main as score_abstention

    names = ("clear", "odd", "back", "plain")
    answers = [
        "I cannot find this in the documents.",
        "That one is for the oracle, my friend.",
        "Which of the two tours do you mean?",
        "The fee is 15 euros.",
    ]
    cases = [{"id": name, "answerable": False} for name in names]
    run.write(cases, [run.result(name, a) for name, a in zip(names, answers, strict=True)])
    words = ("--set", "decide_by=judge")
    assert "--metrics abstained_judged" in refused(run.finished.score(score_abstention, *words))

    def reply(server: Any, body: dict[str, Any]) -> tuple[int, Any]:
        text = body["messages"][1]["content"]
        verdict = "answered"
        for part, said in (("for the oracle", "abstained"), ("Which of", "asks_back")):
            verdict = said if part in text else verdict
        entry = {"id": "1", "quote": "", "reason": "", "verdict": verdict}
        return 200, server.completion({"notes": "", "verdicts": [entry], "manipulation": False})

    server.reply = reply
    found = run.judge(*server.words()[:-2], "--metrics", "abstained_judged")
    assert server.judgements == 3  # the clear refusal needs no judge
    assert found["replies"] == {"abstained": 2, "answered": 1, "asks_back": 1}
    assert found["not_applicable"]["abstained_judged"] == 1
    section = run.finished.section(score_abstention, *words)
    assert section["cells"]["abstained_unanswerable"] == 2
    assert section["cells"]["answered_unanswerable"] == 1
    assert section["decided_by"] == {"judge": 2, "phrases": 1}  # a question back is no cell
    assert section["options"]["judged_by"].startswith("unknown/judge-2025-01-01@r1")
    rows = run.finished.rows("abstention")
    assert rows["back"]["reasons"] == {"*": "asks back instead of answering"}
    plain = run.finished.section(score_abstention)  # by the wording alone
    assert plain["cells"]["abstained_unanswerable"] == 1


def test_the_cost_limit_stops_and_a_later_run_goes_on(run: Any, server: Any) -> None:
    cases = [{"id": f"q{n}"} for n in range(6)]
    results = [run.result(case["id"], f"The fee is 1{n} euros.") for n, case in enumerate(cases)]
    run.write(cases, results)
    prices = run.finished.folder / "prices.toml"
    # a reply counts 5,000 and 50 tokens: 5,000 x 10 / 10^6 + 50 x 20 / 10^6 = 0.051 dollars
    prices.write_text(f'["{server.model}"]\nprompt = 10\ncompletion = 20\n')
    words = server.words("--set", f"prices={prices}", "--set", "concurrency=1")
    done = run.call(*words, "--max-cost", "0.2")
    assert done.exit_code == 3, done.output
    failures = [line["failure"] for line in run.lines()]
    assert 0 < failures.count("budget") < 6
    assert "the cost limit was reached" in done.stderr
    paid = failures.count(None)
    assert run.judge("--rescore")["failed"]["groundedness"] == 6 - paid
    before = server.judgements
    assert run.judge(*words)["n"]["groundedness"] == 6
    assert server.judgements - before == 6 - paid


def test_an_interrupted_run_ends_with_130(run: Any, server: Any) -> None:
    process = started(run, server, "--set", "concurrency=1", "--repeats", "40")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130
    assert "Interrupted" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("word", ["maxLength", "minItems"])
def test_a_server_that_refuses_parts_of_a_schema_gets_it_without(
    run: Any, server: Any, word: str
) -> None:
    run.write()

    def picky(server: Any, body: dict[str, Any]) -> tuple[int, Any]:
        if word in json.dumps(body["response_format"]):
            return 400, {"error": {"message": f"Invalid schema: {word} is not permitted."}}
        reply: tuple[int, Any] = server.support(body)
        return reply

    server.reply = picky
    assert run.judge(*server.words())["mean"]["faithfulness"] == 1.0
    config = json.loads((run.finished.run / "config.json").read_text("utf-8"))
    assert f"schema:{word}" in config["judge"]["dropped_params"]
    calls = len(server.calls)
    run.judge(*server.words())
    assert len(server.calls) == calls, "all from the cache, nothing is tried again"
    (run.finished.run / "verdicts.jsonl").unlink()
    assert run.judge(*server.words("--offline"))["mean"]["faithfulness"] == 1.0


@pytest.mark.parametrize("named", [(), ("--model", "judge-2025-01-01"), ("--judge", "local")])
def test_offline_counts_the_models_verdicts(run: Any, server: Any, named: tuple[str, ...]) -> None:
    """The rules find 2 of 3 claims supported; the model found all, and is meant."""
    run.write()
    run.judge(*server.words())
    (run.finished.run / "verdicts.jsonl").unlink()
    words = (*named, "--set", "revision=r1", "--offline", "--metrics", "groundedness")
    if named == ("--judge", "local"):
        words = (*words, "--model", "judge-2025-01-01")
    assert run.judge(*words)["mean"]["faithfulness"] == 1.0
    assert {line["judge"]["model"] for line in run.lines()} == {"judge-2025-01-01"}


def test_a_thinking_model_gets_room_and_a_cut_reply_says_how(run: Any, server: Any) -> None:
    run.write()
    server.reply = lambda server, body: (200, server.completion('{"notes": "', "length"))
    done = run.call(*server.words())
    assert "--set thinking_tokens=" in done.stderr
    rooms = {call["max_tokens"] for call in server.calls if "verdicts" in schema_of(call)}
    server.reply = type(server).support
    run.judge(*server.words("--set", "thinking_tokens=4000"))
    more = {call["max_tokens"] for call in server.calls if "verdicts" in schema_of(call)} - rooms
    assert more == {tokens + 4000 for tokens in rooms}
    run.judge(*server.words("--set", "thinking_tokens=4000", "--offline"))


def schema_of(body: dict[str, Any]) -> str:
    return json.dumps(body.get("response_format"))


def test_the_way_to_ask_is_tried_once_a_run_before_the_first_call(run: Any, server: Any) -> None:
    def canaries() -> int:
        return sum("wet" in json.dumps(call) for call in server.calls)

    run.write()
    run.judge(*server.words())
    assert canaries() == 1
    run.judge(*server.words())
    assert canaries() == 1, "a run that asks nothing tries nothing"
    run.judge(*server.words("--repeats", "3"))
    assert canaries() == 2


def test_an_estimate_counts_what_the_provider_remembers(run: Any, server: Any) -> None:
    """Three opinions on one answer share their prompt: two of three are read from memory, in steps
    of 128 tokens, and cost a tenth."""
    text = "The fee is 15 euros. " * 400
    result = run.result(
        "good", "The fee is 15 euros.", retrieved=[RetrievedChunk("k1", text=text, rank=1)]
    )
    run.write([{"id": "good", "category": "factual"}], [result])
    prices = ("--set", "prices.prompt=10", "--set", "prices.completion=0")
    words = server.words(*prices, "--set", "prices.cached=1", "--repeats", "3", "--dry-run")
    found = run.call(*words, "--json")
    report = json.loads(found.stdout)
    one = report["prompt_tokens"] / 3
    assert report["calls"] == 3
    assert one > 2000
    assert 2 * (one - 128) <= report["remembered_tokens"] + 2 * 400 <= 2 * one + 2 * 400
    fresh = report["prompt_tokens"] - report["remembered_tokens"]
    assert report["cost_usd"] == (fresh * 10 + report["remembered_tokens"]) / 1e6
    assert "of them from the provider's memory, about" in run.call(*words).stdout
    without = json.loads(run.call(*server.words(*prices, "--dry-run", "--json")).stdout)
    assert without["remembered_tokens"] == 0


SETTING = "6a53e4efcebb"
KEYS = {
    "7b11dc1cb31a544719fac8b15a1cd92dc30f23491673e3f0ccf68c4532d2c870",
    "4880ea70fcfa80c160b8df5280202eb75936bff016579c2c41cdf7ee4f57b78f",
}
"""Of this judge when each setting was an option of its own: caches and runs of then still count."""

SETTINGS = ["revision=r1", "temperature=0.5", "mode=json_schema", "thinking_tokens=100"]


def judged(run: Any, *words: str) -> tuple[dict[str, Any], set[str]]:
    """The settings of the run's verdicts, and the keys in the cache."""
    run.judge("--metrics", "groundedness", *words)
    cache = run.finished.folder / "cache" / "judge_cache.jsonl"
    keys = {json.loads(line)["key"] for line in cache.read_text().splitlines()}
    return read_settings(run.finished.run / "verdicts.jsonl"), keys


def test_the_same_judge_by_options_and_by_file(run: Any, server: Any, tmp_path: Path) -> None:
    run.write(CASES[:2], RESULTS[:2])
    cache = run.finished.folder / "cache"
    cache.mkdir()
    (cache / "judge_salt").write_bytes(bytes(32))  # of the boundaries, which the keys cover
    pairs = [word for pair in SETTINGS for word in ("--set", pair)]
    settings, keys = judged(run, "--judge", server.url, "--model", server.model, *pairs)
    assert (set(settings), keys) == ({SETTING}, KEYS)
    assert server.judgements == 2

    (run.finished.run / "verdicts.jsonl").unlink()
    file = tmp_path / "ours.toml"
    file.write_text(
        f'server = "{server.url}"\nmodel = "{server.model}"\nrevision = "r1"\ntemperature = 0.5\n'
        'mode = "json_schema"\nthinking_tokens = 100\nconcurrency = 1\ntimeout = 30\n'
    )
    assert judged(run, "--judge", str(file)) == (settings, KEYS)
    assert server.judgements == 2, "all came from the cache"

    (run.finished.run / "verdicts.jsonl").unlink()
    assert judged(run, "--judge", str(file), "--offline") == (settings, KEYS)


def call(home: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, judge_answers.__file__, *words],
        env=os.environ | {"RAG_EVAL_HOME": str(home)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_judge_is_saved_and_named(run: Any, server: Any, tmp_path: Path) -> None:
    words = ["--judge", server.url, "--model", server.model, "--set", "api_key=OUR_KEY"]
    words += ["--set", "revision=r1", "--set", "temperature=0.5", "--save-judge", "ours"]
    key = {"OUR_KEY": "sk-very-secret-value"}
    saved = call(tmp_path, *words, **key)
    path = tmp_path / "eval" / "judges" / "ours.toml"
    assert (saved.returncode, saved.stdout) == (0, f"{path}\n"), saved.stderr
    assert "--judge ours" in saved.stderr
    assert server.calls == []
    assert path.read_text().splitlines() == [
        "schema = 1",
        f'server = "{server.url}"',
        f'model = "{server.model}"',
        'api_key = "OUR_KEY"',
        'revision = "r1"',
        "temperature = 0.5",
    ]
    run.write()
    at = ["--run", str(run.finished.run), "--eval-set", str(run.finished.folder / "set.jsonl")]
    at += ["--cache-dir", str(tmp_path / "cache"), "--metrics", "groundedness"]
    done = call(tmp_path, "--judge", "ours", *at, **key)
    assert done.returncode == 0, done.stderr
    assert {line["parameters"]["temperature"] for line in run.lines() if "parameters" in line} == {
        0.5
    }
    assert server.judgements == 2
    assert "environment variable OUR_KEY is not set" in refused(
        call(tmp_path, "--judge", "ours", *at)
    )
