"""judge_answers.py against a server: replays, failures, lies, kill and rerun, secrets."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from tests.scripts.judging.conftest import Server

import judge_answers

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
    done = run.finished.score(score_abstention, *words)
    assert done.exit_code == 2
    assert "--metrics abstained_judged" in done.output.replace("\n", " ")

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
