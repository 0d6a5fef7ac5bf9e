"""Another model answers than was asked for: no score, no verdict of it anywhere, and a way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.processes import refused

from calibrate_judge import main as calibrate
from judging.cache import VerdictCache
from records.judgements import read_verdicts
from records.runs import JUDGE_CACHE, VERDICTS
from records.verdicts import read_lines

OTHER = "gpt-4o-mini-2024-07-18"
ANSWERS = 6
Reply = Callable[[Any, dict[str, Any]], tuple[int, Any]]


def answers_as(name: str, after: int = 0) -> Reply:
    """The usual replies, from the one after ``after`` on under another model's name."""

    def reply(server: Any, body: dict[str, Any]) -> tuple[int, Any]:
        status, said = type(server).support(server, body)
        return status, said | ({"model": name} if server.judgements > after else {})

    return reply


def by_name(server: Any, *more: str) -> tuple[str, ...]:
    """The options of a judge that is known by its dated name alone."""
    return (*server.words("--set", "concurrency=1", pinned=False), *more)


@pytest.fixture
def six(run: Any) -> Any:
    cases = [{"id": f"q{n}"} for n in range(ANSWERS)]
    run.write(cases, [run.result(f"q{n}", f"The fee is {n} euros.") for n in range(ANSWERS)])
    return run


def flat(done: Any) -> str:
    return " ".join(done.output.split())


def cache_of(run: Any) -> bytes:
    path = run.finished.folder / "cache" / JUDGE_CACHE
    return bytes(path.read_bytes()) if path.exists() else b""


def test_a_model_that_changes_in_mid_run_is_judged_anew(six: Any, server: Any) -> None:
    server.reply = answers_as(OTHER, after=3)
    done = refused(six.call(*by_name(server)))
    assert f"answered with different models: {OTHER}, {server.model}" in done
    assert "judge again" in done
    assert server.judgements == 4, "after the fourth nobody is asked any more"
    assert len(cache_of(six).splitlines()) == 4, "three were paid and written, one line takes back"
    withdrawn = [json.loads(cache_of(six).splitlines()[-1]), six.lines()[-1]]
    assert withdrawn[0] == withdrawn[1]
    assert withdrawn[0].keys() == {"withdrawn", "reason"}
    assert list(read_lines(six.finished.run / VERDICTS)) == []
    assert "no verdicts" in refused(six.call("--rescore"))
    assert "has no verdicts of groundedness" in flat(six.finished.score(calibrate))

    server.reply = type(server).support
    found = six.judge(*by_name(server))
    assert (found["n"]["groundedness"], found["mean"]["groundedness"]) == (ANSWERS, 5.0)
    assert server.judgements == 4 + ANSWERS, "none of the old verdicts was taken"
    assert found["options"]["judge"]["answered_as"] == [server.model]
    judge = json.loads((six.finished.run / "config.json").read_text("utf-8"))["judge"]
    verdicts = read_verdicts(six.finished.run, judge)
    assert (len(verdicts.by_answer), verdicts.others) == (ANSWERS, 0)
    assert "people have decided no claim" in flat(six.finished.score(calibrate))
    (six.finished.run / VERDICTS).unlink()
    assert six.judge(*by_name(server, "--offline"))["n"]["groundedness"] == ANSWERS


def test_verdicts_of_earlier_runs_of_judging_stay(six: Any, server: Any) -> None:
    words = by_name(server)
    six.judge(*words)
    server.reply = answers_as(OTHER, after=ANSWERS + 2)
    done = six.call(*words, "--repeats", "2")
    assert done.exit_code == 2, done.output
    assert six.judge("--rescore")["n"]["groundedness"] == ANSWERS
    paid = server.judgements
    six.judge(*words)
    assert server.judgements == paid


def test_what_another_run_withdrew_is_withdrawn_here_too(six: Any, server: Any) -> None:
    """It took the verdicts from the cache before the one that had asked took them back."""
    six.judge(*by_name(server))
    first = json.loads(cache_of(six).splitlines()[0])
    VerdictCache(six.finished.folder / "cache" / JUDGE_CACHE).withdraw(
        first["judging_run"], "the judge changed"
    )
    assert len(list(read_lines(six.finished.run / VERDICTS))) == ANSWERS
    assert six.judge(*by_name(server))["n"]["groundedness"] == ANSWERS
    assert server.judgements == 2 * ANSWERS
    assert sum("withdrawn" in line for line in six.lines()) == 1


def test_facts_of_a_withdrawn_run_are_asked_for_anew(run: Any, server: Any) -> None:
    run.write(
        [{"id": "q", "reference_answer": "The fee is 15 euros."}],
        [run.result("q", "The fee is 15 euros.")],
    )
    facts: list[str] = []

    def reply(server: Any, body: dict[str, Any]) -> tuple[int, Any]:
        entry = {"id": "f1", "quote": "The fee is 15 euros", "reason": "", "verdict": "present"}
        said = {"notes": "", "addresses_question": True, "verdicts": [entry], "manipulation": False}
        return 200, server.completion(said) | ({"model": OTHER} if len(facts) == 1 else {})

    def form(body: dict[str, Any]) -> dict[str, Any]:
        if "facts" in json.dumps(body.get("response_format")):
            facts.append("asked")
            return {"notes": "", "facts": ["The fee is 15 euros"], "manipulation": False}
        filled: dict[str, Any] = usual(body)
        return filled

    usual, server.form, server.reply = server.form, form, reply
    words = (*by_name(server), "--metrics", "correctness")
    assert run.call(*words).exit_code == 2
    assert run.judge(*words)["mean"]["fact_recall"] == 1.0
    assert len(facts) == 2


def test_an_allowed_alias_is_judged_under_both_names(
    six: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = type(server).completion
    monkeypatch.setattr(
        server, "completion", lambda reply, finish="stop": usual(reply, finish) | {"model": OTHER}
    )
    words = by_name(server, "--set", f"alias={server.model}={OTHER}")
    found = six.judge(*words)
    assert found["options"]["judge"]["identity"]["revision"] == OTHER
    line = next(line for line in six.lines() if line["status"] == "ok")
    assert line["answered_as"] == [OTHER]
    assert len(line["judging_runs"]) == 1
    paid = server.judgements
    (six.finished.run / VERDICTS).unlink()
    six.judge(*words)
    assert server.judgements == paid, "the second time is free"
    before = cache_of(six)
    refused = six.call(*by_name(server))  # without the option, with both names
    assert (refused.exit_code, cache_of(six)) == (2, before)
    assert all(name in flat(refused) for name in (server.model, OTHER, "--set alias="))


@pytest.mark.parametrize("value", ["gpt-4o", "=gpt-4o", "gpt-4o=", " = "])
def test_an_alias_is_two_names(six: Any, server: Any, value: str) -> None:
    assert "must be ASKED=ANSWERED" in refused(
        six.call(*by_name(server, "--set", f"alias={value}"))
    )


def broken_from(number: int) -> Reply:
    """The usual replies but for the first ``number`` of the six cases: those are no JSON."""

    def reply(server: Any, body: dict[str, Any]) -> tuple[int, Any]:
        bad = any(f"The fee is {n} euros" in json.dumps(body) for n in range(number))
        if bad:
            return 200, server.completion("Sure!")
        usual: tuple[int, Any] = type(server).support(server, body)
        return usual

    return reply


@pytest.mark.parametrize(
    ("broken", "words", "code"),
    [
        (1, (), 0),  # 1 of 6 is 0.17
        (2, (), 3),  # 2 of 6 are 0.33
        (2, ("--max-error-rate", "0.34"), 0),
        (1, ("--max-error-rate", "0"), 3),
        (6, (), 3),
        (6, ("--max-error-rate", "1"), 0),
    ],
)
def test_too_many_failed_judgements_end_with_3(
    six: Any, server: Any, broken: int, words: tuple[str, ...], code: int
) -> None:
    server.reply = broken_from(broken)
    done = six.call(*by_name(server, *words))
    assert done.exit_code == code, done.output
    said = f"{broken} of 6 judgements failed, more than --max-error-rate"
    assert (said in flat(done)) is (code == 3)
    assert six.judge("--rescore")["n"]["groundedness"] == ANSWERS - broken


def test_verdicts_that_stood_there_count_among_the_judgements(six: Any, server: Any) -> None:
    server.reply = broken_from(2)
    assert six.call(*by_name(server)).exit_code == 3
    server.reply = broken_from(1)
    assert six.call(*by_name(server)).exit_code == 0, "1 of 6, though only 2 were asked for"
