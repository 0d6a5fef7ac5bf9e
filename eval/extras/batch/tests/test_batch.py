"""Judging by files: the same verdicts as online, and nothing that failed becomes one."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.scripts.judging.conftest import JudgedRun, Server, reply_to

from clients.http import RetryPolicy
from extras.batch import import_results
from extras.batch import request_files as batches
from extras.batch.server import BatchServer, submit
from extras.batch.tests.provider import KEY, Provider, answer
from records.files import locked

METRICS = ("--metrics", "groundedness,correctness")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "batches"


def requests_of(path: Path) -> list[dict[str, Any]]:
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        requests: list[dict[str, Any]] = json.loads(text)["requests"]
        return requests
    return [json.loads(line) for line in text.splitlines()]


def run_batch(folder: Path, round_number: int) -> list[Path]:
    """What a provider does: a file of results for each file of requests of a round."""
    results = []
    for path in sorted(folder.glob(f"round{round_number}-*.jsonl")):
        if "results" in path.name:
            continue
        target = folder / f"{path.stem}.results.jsonl"
        lines = [json.dumps(answer(request)) for request in requests_of(path)]
        target.write_text("".join(line + "\n" for line in lines), "utf-8")
        results.append(target)
    return results


def out(run: JudgedRun, server: Server, folder: Path, *more: str) -> dict[str, Any]:
    words = server.words()[:-2]  # without its own --metrics
    call = run.call(*words, *METRICS, "--batch-out", str(folder), "--json", *more)
    assert call.exit_code == 0, call.output
    report: dict[str, Any] = json.loads(call.stdout)
    return report


def take_in(run: JudgedRun, *paths: Path) -> dict[str, Any]:
    cache = run.finished.folder / "cache" / "judge_cache.jsonl"
    words = [*map(str, paths), "--cache-dir", str(cache), "--json"]
    call = CliRunner().invoke(import_results.main, words)
    assert call.exit_code == 0, call.output
    report: dict[str, Any] = json.loads(call.stdout)
    return report


def test_by_files_gives_the_verdicts_of_the_online_way(
    run: JudgedRun, server: Server, folder: Path
) -> None:
    """Two rounds: the facts of the one reference without key facts come first."""
    run.write()
    first = out(run, server, folder)
    # groundedness of good and bad, correctness of good, the facts of bad
    assert (first["round"], first["requests"], first["preliminary"]) == (1, 4, {"facts": 1})
    assert server.calls == []
    assert take_in(run, *run_batch(folder, 1))["verdicts"] == 4
    second = out(run, server, folder)
    assert (second["round"], second["requests"], second["preliminary"]) == (2, 1, {})
    assert take_in(run, *run_batch(folder, 2))["verdicts"] == 1
    assert out(run, server, folder)["requests"] == 0
    words = (*server.words()[:-2], *METRICS)
    run.judge(*words, "--offline")
    by_files = (run.finished.run / "verdicts.jsonl").read_bytes()
    scores = (run.finished.run / "scores" / "judged.jsonl").read_bytes()

    (run.finished.run / "verdicts.jsonl").unlink()
    cache = run.finished.folder / "cache"
    salt = (cache / "judge_salt").read_bytes()
    shutil.rmtree(cache)
    cache.mkdir()
    (cache / "judge_salt").write_bytes(salt)
    server.form = reply_to
    server.reply = lambda own, body: (200, own.completion(reply_to(body)))
    run.judge(*words)
    online = comparable((run.finished.run / "verdicts.jsonl").read_bytes())
    for left, right in zip(online, comparable(by_files), strict=True):
        assert {k for k in left if left[k] != right[k]} == set(), (left, right)
    assert (run.finished.run / "scores" / "judged.jsonl").read_bytes() == scores


WHEN_AND_HOW = ("judging_runs", "attempts", "cached", "seconds", "messages", "usage", "cost_usd")


def comparable(lines: bytes) -> list[dict[str, Any]]:
    """Verdict lines without what tells when and by which run of judging they were asked."""
    rows = [row for row in map(json.loads, lines.splitlines()) if "case_id" in row]
    for row in rows:
        for name in WHEN_AND_HOW:
            row.pop(name, None)
            row.get("extra", {}).pop(name, None)
    return sorted(rows, key=lambda row: (row["case_id"], row["metric"]))


def test_a_request_under_way_is_not_written_twice(
    run: JudgedRun, server: Server, folder: Path
) -> None:
    run.write()
    out(run, server, folder)
    again = out(run, server, folder)
    assert (again["requests"], again["under_way"]) == (0, 4)


Damage = Callable[[Any], Any]


def body_of(line: Any) -> Any:
    return line["response"]["body"]


def choice_of(line: Any) -> Any:
    return body_of(line)["choices"][0]


def saying(change: Callable[[str], str]) -> Damage:
    """Damage to the text of a reply."""

    def damage(line: Any) -> None:
        message = choice_of(line)["message"]
        message["content"] = change(message["content"])

    return damage


def failed(code: str) -> Damage:
    return lambda line: line.update(response=None, error={"code": code, "message": "no"})


def damaged(line: dict[str, Any], kind: str) -> Any:
    """The line as text, damaged in place or replaced by what the damage gives."""
    return DAMAGE[kind][0](line) or json.dumps(line)


REFUSAL = {"content": None, "refusal": "I cannot judge this."}
OVERLOADED = {"error": {"message": "overloaded"}}
DAMAGE: dict[str, tuple[Damage, str]] = {
    "torn line": (lambda line: json.dumps(line)[:400], "damaged"),
    "no object": (lambda line: "[1, 2]", "damaged"),
    "no id": (lambda line: line.__delitem__("custom_id"), "damaged"),
    "another id": (lambda line: line.update(custom_id="0" * 64), "unknown"),
    "id with a suffix": (lambda line: line.update(custom_id=line["custom_id"] + "-1"), "damaged"),
    "id is a number": (lambda line: line.update(custom_id=7), "damaged"),
    "status 500": (lambda line: line["response"].update(status_code=500), "error"),
    "error": (failed("server_error"), "error"),
    "expired": (failed("batch_expired"), "expired"),
    "no response": (lambda line: line.update(response=None), "error"),
    "no body": (lambda line: line["response"].update(body=None), "error"),
    "error as body": (lambda line: line["response"].update(body=OVERLOADED), "error"),
    "no choices": (lambda line: body_of(line).update(choices=[]), "error"),
    "another model": (lambda line: body_of(line).update(model="other-2024-01-01"), "other_model"),
    "cut reply": (lambda line: choice_of(line).update(finish_reason="length"), "truncated"),
    "refusal": (lambda line: choice_of(line)["message"].update(REFUSAL), "refused"),
    "filtered": (lambda line: choice_of(line).update(finish_reason="content_filter"), "refused"),
    "prose": (saying(lambda text: "The claim is supported."), "malformed"),
    "half an object": (saying(lambda text: text[:-9]), "malformed"),
    "wrong field": (saying(lambda text: '{"verdict": "supported"}'), "schema"),
    "unknown verdict": (saying(lambda text: text.replace('"not_found"', '"perfect"')), "schema"),
    "cut prompt": (lambda line: body_of(line)["usage"].update(prompt_tokens=9), "prompt_truncated"),
    "empty": (saying(lambda text: ""), "malformed"),
}


def test_no_damaged_result_becomes_a_verdict(run: JudgedRun, server: Server, folder: Path) -> None:
    """Each kind of damage to one result: counted by its kind, and nothing is in the cache."""
    run.write()
    out(run, server, folder)
    whole = next(path for path in run_batch(folder, 1) if "groundedness" in path.name)
    line = whole.read_text("utf-8").splitlines()[0]
    for kind, (_, failure) in DAMAGE.items():
        whole.write_text(damaged(json.loads(line), kind) + "\n", "utf-8")
        report = take_in(run, whole)
        assert (report["failures"], report["verdicts"]) == ({failure: 1}, 0), kind
        assert not (run.finished.folder / "cache" / "judge_cache.jsonl").exists(), kind


def test_what_failed_is_asked_again_with_its_faults(
    run: JudgedRun, server: Server, folder: Path
) -> None:
    """A malformed reply and an expired request come back in the next round, a good one does not."""
    run.write()
    out(run, server, folder)
    results = run_batch(folder, 1)
    whole = next(path for path in results if "groundedness" in path.name)
    good, bad = whole.read_text("utf-8").splitlines()
    bad = damaged(json.loads(bad), "prose")
    whole.write_text(f"{good}\n{bad}\n", "utf-8")
    correct = next(path for path in results if "correctness" in path.name)
    correct.write_text(damaged(json.loads(correct.read_text()), "expired") + "\n", "utf-8")
    assert take_in(run, *results)["failures"] == {"expired": 1, "malformed": 1}
    second = out(run, server, folder)
    assert (second["again"], second["requests"]) == (2, 3)  # and the correctness of bad
    retried = requests_of(folder / "round2-groundedness-attempt2-001.jsonl")[0]["body"]
    assert "Your reply cannot be used" in retried["messages"][-1]["content"]
    plain = requests_of(folder / "round2-correctness-attempt2-001.jsonl")[0]["body"]
    assert len(plain["messages"]) == 2
    assert out(run, server, folder)["under_way"] == 3
    assert take_in(run, *run_batch(folder, 2))["verdicts"] == 3
    assert out(run, server, folder)["requests"] == 0


def test_limits_of_a_file_are_respected(
    run: JudgedRun, server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.write()
    one = batches._Provider("http://x/v1", "json_schema", 1, 10**6)
    monkeypatch.setitem(batches.PROVIDERS, "openai", one)
    report = out(run, server, folder)
    assert len(report["files"]) == report["requests"] == 4
    assert (folder / "round1-groundedness-attempt1-002.jsonl").exists()


def test_a_format_alone_is_refused_when_typed_and_waits_when_it_is_a_setting(
    run: JudgedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.write()
    call = run.call("--batch-format", "vllm")
    assert call.exit_code == 2
    assert "--batch-format says whose files --batch-out FOLDER writes." in call.output
    monkeypatch.setenv("RAG_EVAL_BATCH_FORMAT", "vllm")
    call = run.call("--judge", "local", "--metrics", "groundedness")
    assert call.exit_code == 0, call.output
    assert len(run.lines()) > 1, "it judged"


def test_anthropic_files_and_results(run: JudgedRun, server: Server, folder: Path) -> None:
    """The system prompt apart, a forced tool, no seed; results of its four types."""
    run.write()
    options = ("--batch-out", str(folder), "--batch-format", "anthropic", "--json")
    words = ("--model", "claude-x-20250101", "--metrics", "groundedness", *options)
    call = run.call(*words)
    assert call.exit_code == 0, call.output
    (path,) = [Path(name) for name in json.loads(call.stdout)["files"]]
    first, second = requests_of(path)
    params = first["params"]
    assert params["model"] == "claude-x-20250101"
    assert "seed" not in params
    assert [message["role"] for message in params["messages"]] == ["user"]
    assert params["tool_choice"] == {"type": "tool", "name": params["tools"][0]["name"]}
    entry = {"id": "1", "context": "c1", "quote": "The fee is 15 euros", "reason": ""}
    verdicts = [entry | {"verdict": "supported"}]
    reply = {"notes": "", "verdicts": verdicts, "manipulation": False}
    message = {
        "model": "claude-x-20250101",
        "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "name": "verdict", "input": reply}],
        "usage": {"input_tokens": 5000, "output_tokens": 40},
    }
    results = folder / "results.jsonl"
    lines = [
        {"custom_id": first["custom_id"], "result": {"type": "succeeded", "message": message}},
        {"custom_id": second["custom_id"], "result": {"type": "expired"}},
    ]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    report = take_in(run, results)
    assert (report["verdicts"], report["failures"]) == (1, {"expired": 1})
    again = take_in(run, results)
    assert (again["verdicts"], again["there"]) == (0, 1)


TOO_OLD = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
ONLY_1 = "'temperature' does not support 0 with this model."


def refused(request: dict[str, Any]) -> dict[str, Any] | None:
    """What a model of the kind of gpt-5 says of a request: one parameter at a time, in the form of
    OpenAI's error files (https://platform.openai.com/docs/guides/batch)."""
    told = {"max_tokens": f"parameter: {TOO_OLD}", "temperature": f"value: {ONLY_1}"}
    name = next((name for name in told if name in request["body"]), None)
    if name is None:
        return None
    kind = told[name].partition(":")[0]
    error = {"message": f"Unsupported {told[name]}", "param": name, "code": f"unsupported_{kind}"}
    error |= {"type": "invalid_request_error"}
    response = {"status_code": 400, "request_id": "r", "body": {"error": error}}
    return {"id": "b", "custom_id": request["custom_id"], "response": response, "error": None}


def run_gpt5(folder: Path, round_number: int) -> list[Path]:
    """Results and errors of a round, as a provider with such a model gives them."""
    files = []
    for path in sorted(folder.glob(f"round{round_number}-*.jsonl")):
        if "results" in path.name or "errors" in path.name:
            continue
        lines = [refused(request) or answer(request) for request in requests_of(path)]
        for line in lines:
            line["response"]["body"] |= {"model": "gpt-5-2025-08-07"}
        kind = "errors" if "error" in lines[0]["response"]["body"] else "results"
        target = folder / f"{path.stem}.{kind}.jsonl"
        target.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        files.append(target)
    return files


GPT5 = ("--model", "gpt-5-2025-08-07", "--metrics", "groundedness")


def test_a_batch_with_a_reasoning_model_ends_in_two_rounds(
    run: JudgedRun, server: Server, folder: Path
) -> None:
    """One error names one parameter; the one that such models refuse, too, goes with it."""
    run.write()
    assert run.call(*GPT5, "--batch-out", str(folder)).exit_code == 0
    files = run_gpt5(folder, 1)
    assert [path.name.split(".")[1] for path in files] == ["errors"]
    report = take_in(run, *files)
    assert (report["verdicts"], report["failures"]) == (0, {"error": 2})
    assert report["notes"] == [
        f"The provider's message about 2 requests: Unsupported parameter: {TOO_OLD}",
        "The next round leaves out max_tokens and temperature, which the provider refuses.",
    ]
    assert run.call(*GPT5, "--batch-out", str(folder)).exit_code == 0
    (path,) = folder.glob("round2-*.jsonl")
    for request in requests_of(path):
        assert not request["body"].keys() & {"max_tokens", "temperature"}
        assert request["body"]["max_completion_tokens"] > 0
    assert take_in(run, *run_gpt5(folder, 2))["verdicts"] == 2
    third = run.call(*GPT5, "--batch-out", str(folder), "--json")
    assert json.loads(third.stdout)["requests"] == 0
    done = run.judge(*GPT5, "--offline")
    assert done["mean"]["faithfulness"] == 0.0
    other = folder.parent / "other"
    (run.finished.run / "verdicts.jsonl").unlink()
    again = run.call(*GPT5, "--batch-out", str(other), "--json", "--repeats", "2")
    assert again.exit_code == 0, again.output
    (path,) = [Path(name) for name in json.loads(again.stdout)["files"]]
    assert not requests_of(path)[0]["body"].keys() & {"max_tokens", "temperature"}, (
        "another folder begins with what the cache knows of this judge"
    )


def test_three_rounds_without_a_verdict_are_the_last(
    run: JudgedRun, server: Server, folder: Path
) -> None:
    """Rounds in which nothing came back yet do not count, and one verdict begins anew."""
    run.write()
    out(run, server, folder)

    def fail_all(number: int) -> None:
        results = run_batch(folder, number)
        for path in results:
            lines = []
            for line in map(json.loads, path.read_text("utf-8").splitlines()):
                error = {"message": "You exceeded your \x1b[31mquota", "code": "insufficient_quota"}
                line["response"] = {"status_code": 429, "body": {"error": error}}
                lines.append(json.dumps(line) + "\n")
            path.write_text("".join(lines), "utf-8")
        take_in(run, *results)

    take_in(run, *run_batch(folder, 1))
    out(run, server, folder)  # the verdicts that need facts: round 2
    for number in (2, 3, 4):
        assert out(run, server, folder)["under_way"] in (0, 1)
        fail_all(number)
        if number < 4:
            assert out(run, server, folder)["round"] == number + 1
    words = server.words()[:-2]
    names = sorted(path.name for path in folder.iterdir())
    last = run.call(*words, *METRICS, "--batch-out", str(folder))
    assert last.exit_code == 3
    assert "the last 3 rounds brought no verdict" in last.output
    assert "You exceeded your" in last.output
    assert "\x1b" not in last.output
    assert sorted(path.name for path in folder.iterdir()) == names
    assert out(run, server, folder.parent / "new")["requests"] == 1


def test_a_parameter_that_anthropic_refuses_is_learnt(run: JudgedRun, folder: Path) -> None:
    """A result of type errored: https://docs.anthropic.com/en/docs/build-with-claude/
    batch-processing; the words are those of its newer models."""
    run.write()
    options = ("--batch-out", str(folder), "--batch-format", "anthropic", "--json")
    words = ("--model", "claude-x-20250101", "--metrics", "groundedness", *options)
    (path,) = [Path(name) for name in json.loads(run.call(*words).stdout)["files"]]
    told = "`temperature` is deprecated for this model."
    error = {"type": "invalid_request_error", "message": told}
    whole = {"type": "error", "error": error, "request_id": "r"}
    results = folder / "results.jsonl"
    lines = [
        {"custom_id": request["custom_id"], "result": {"type": "errored", "error": whole}}
        for request in requests_of(path)
    ]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    report = take_in(run, results)
    assert report["failures"] == {"error": 2}
    assert "`temperature` is deprecated" in report["notes"][0]
    (path,) = [Path(name) for name in json.loads(run.call(*words).stdout)["files"]]
    assert "temperature" not in requests_of(path)[0]["params"]


def test_a_judges_settings_are_in_its_batch(run: JudgedRun, folder: Path) -> None:
    run.write()
    options = ("--set", "reasoning_effort=low", "--set", 'extra_body={"top_k": 5}', "--json")
    words = (*GPT5, *options, "--batch-out", str(folder))
    (path,) = [Path(name) for name in json.loads(run.call(*words).stdout)["files"]]
    body = requests_of(path)[0]["body"]
    assert (body["reasoning_effort"], body["top_k"]) == ("low", 5)
    assert body["max_tokens"] > 8192
    assert take_in(run, *run_batch_as(folder, "gpt-5-2025-08-07"))["verdicts"] == 2
    assert run.judge(*GPT5, *options[:-1], "--offline")["mean"]["faithfulness"] == 0.0
    config = json.loads((run.finished.run / "config.json").read_text("utf-8"))
    assert config["judge"]["parameters"]["reasoning_effort"] == "low"
    call = run.call(*GPT5, "--batch-out", str(folder))
    assert call.exit_code == 2
    assert "another judge or of other settings" in call.output


def run_batch_as(folder: Path, model: str) -> list[Path]:
    """Results of the first round that name this model."""
    paths = run_batch(folder, 1)
    for path in paths:
        text = path.read_text("utf-8").replace("judge-2025-01-01", model)
        path.write_text(text, "utf-8")
    return paths


def test_a_model_must_be_named_and_pinned(run: JudgedRun, folder: Path) -> None:
    run.write()
    call = run.call("--batch-out", str(folder))
    assert call.exit_code == 2, call.output
    assert "--model" in call.output, call.output
    call = run.call("--batch-out", str(folder), "--model", "gpt-4o")
    assert call.exit_code == 2, call.output
    assert "pinned" in call.output, call.output
    assert not folder.exists()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("BATCH_KEY", KEY)
    running = Provider()
    yield running
    running.shutdown()
    running.server_close()


def where(provider: Provider) -> tuple[str, ...]:
    """Options that name the provider and its key."""
    return "--judge", provider.url, "--set", "api_key=BATCH_KEY", "--set", "retries=0"


def test_submit_and_fetch_over_http(run: JudgedRun, provider: Provider, folder: Path) -> None:
    """Every file is uploaded with the boundary of its own form, in one go."""
    run.write()
    out(run, provider, folder)
    sent = run.call(*where(provider), "--batch-submit", str(folder))
    assert sent.exit_code == 0, (sent.output, provider.refused)
    assert "3 batches are in progress" in sent.stdout, sent.output
    forget_batches(folder)
    run.call(*where(provider), "--batch-submit", str(folder))
    assert len(provider.batches) == len(provider.files) == 3
    early = run.call(*where(provider), "--batch-fetch", str(folder))
    assert "3 batches still run" in early.stdout, early.output
    late = run.call(*where(provider), "--batch-fetch", str(folder))
    assert "import_results.py" in late.stdout, late.output
    results = sorted(folder.glob("*.results.jsonl"))
    assert take_in(run, *results)["verdicts"] == 4
    assert provider.refused == []
    assert set(provider.paid.values()) == {1}


FAULT = {"code": "token_limit_exceeded", "message": "Enqueued\x1b[31m token limit", "line": 3}


@pytest.mark.parametrize("status", ["failed", "expired", "cancelled"])
def test_a_batch_that_ends_without_results_is_said_and_can_be_sent_again(
    run: JudgedRun, provider: Provider, folder: Path, status: str
) -> None:
    """The provider's words, exit code 3, and the next --batch-submit begins it anew."""
    run.write()
    out(run, provider, folder)
    run.call(*where(provider), "--batch-submit", str(folder))
    lost = provider.batches["batch-0"]
    lost |= {"status": status} | ({"errors": {"data": [FAULT]}} if status == "failed" else {})
    provider.looks = 0
    call = run.call(*where(provider), "--batch-fetch", str(folder))
    assert call.exit_code == 3, call.output
    assert f"batch batch-0: {status}, no results" in call.stdout, call.output
    words = "token_limit_exceeded: Enqueued [31m token limit (line 3)"
    assert (words in call.stdout) is (status == "failed"), call.stdout
    assert "Batches that ended without results: 1" in call.stderr
    assert f"--batch-submit {folder}" in " ".join(call.stderr.split())
    sent = run.call(*where(provider), "--batch-submit", str(folder))
    assert sent.exit_code == 0, sent.output
    assert "batch-3" in sent.stdout, sent.output
    assert len(provider.batches) == 4, "the two others are not begun again"
    late = run.call(*where(provider), "--batch-fetch", str(folder))
    assert late.exit_code == 0, late.output
    assert take_in(run, *sorted(folder.glob("*.results.jsonl")))["verdicts"] == 4
    assert out(run, provider, folder)["under_way"] == 0


def forget_batches(folder: Path) -> None:
    """As after a kill between the moment when the server began a batch and its note."""
    state = json.loads((folder / "batch.json").read_text())
    for file in state["files"].values():
        del file["batch_id"], file["status"]
    (folder / "batch.json").write_text(json.dumps(state))


def test_a_batch_is_found_behind_250_newer_ones(
    run: JudgedRun, provider: Provider, folder: Path
) -> None:
    run.write()
    out(run, provider, folder)
    run.call(*where(provider), "--batch-submit", str(folder))
    forget_batches(folder)
    for number in range(250):  # of colleagues with the same account
        name = f"other-{number}"
        provider.batches[name] = {"id": name, "status": "completed", "input_file_id": "theirs"}
    again = run.call(*where(provider), "--batch-submit", str(folder))
    assert again.exit_code == 0, (again.output, provider.refused)
    assert set(provider.paid.values()) == {1}


def test_a_list_that_has_no_end_is_left(
    run: JudgedRun, provider: Provider, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not know ``after`` gives its first page for ever."""
    run.write()
    out(run, provider, folder, "--metrics", "groundedness")
    run.call(*where(provider), "--batch-submit", str(folder))
    provider.batches.clear()
    forget_batches(folder)
    other = {"id": "other", "status": "completed", "input_file_id": "theirs"}
    monkeypatch.setattr(Provider, "page", lambda *words: {"data": [other], "has_more": True})
    again = run.call(*where(provider), "--batch-submit", str(folder))
    assert again.exit_code == 0, (again.output, provider.refused)


def test_two_at_once_begin_every_batch_once(
    run: JudgedRun, provider: Provider, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the first, and then has nothing to do."""
    run.write()
    out(run, provider, folder)
    both = threading.Barrier(2)
    at_once = BatchServer.upload

    def upload(server: BatchServer, path: Path) -> str:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(1)  # each would be uploading now, if both could
        return at_once(server, path)

    monkeypatch.setattr(BatchServer, "upload", upload)
    with closing_servers(provider, 2) as servers, ThreadPoolExecutor(2) as threads:
        jobs = [threads.submit(submit, folder, server, lambda line: None) for server in servers]
        assert [job.result() for job in jobs] == [3, 3]
    assert len(provider.files) == len(provider.batches) == 3
    assert set(provider.paid.values()) == {1}


@contextlib.contextmanager
def closing_servers(provider: Provider, number: int) -> Iterator[list[BatchServer]]:
    with contextlib.ExitStack() as stack:
        policy = RetryPolicy(20, 0)
        servers = [BatchServer(provider.url, "BATCH_KEY", policy) for _ in range(number)]
        yield [stack.enter_context(contextlib.closing(server)) for server in servers]


def test_whoever_finds_the_folder_in_use_is_told(
    run: JudgedRun, provider: Provider, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.write()
    out(run, provider, folder)
    monkeypatch.setattr("records.files.LOCK_TIMEOUT", 0.01)
    results = run_batch(folder, 1)
    in_use, done = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(folder / "batch.json"):
            in_use.set()
            done.wait(60)

    threading.Thread(target=hold, daemon=True).start()
    assert in_use.wait(60)
    calls = [
        run.call(*where(provider), "--batch-submit", str(folder)),
        run.call(*where(provider), "--batch-fetch", str(folder)),
        run.call(*provider.words()[:-2], *METRICS, "--batch-out", str(folder)),
        CliRunner().invoke(import_results.main, [*map(str, results)]),
    ]
    done.set()
    for call in calls:
        assert call.exit_code == 2, call.output
        assert "batch.json: another process holds" in " ".join(call.output.split()), call.output
    assert provider.files == {}


def test_a_server_that_is_gone_ends_with_3(run: JudgedRun, server: Server, folder: Path) -> None:
    run.write()
    out(run, server, folder)
    nobody = ("--judge", "http://127.0.0.1:9/v1", "--set", "retries=0")
    call = run.call(*nobody, "--batch-submit", str(folder))
    assert call.exit_code == 3, call.output
    assert "cannot be used" in call.output, call.output


@pytest.mark.parametrize("name", ["", ".", "../eval_set.jsonl", "/etc/hosts", "a/b.jsonl"])
def test_a_name_that_is_no_file_of_the_folder_is_refused(
    run: JudgedRun, server: Server, folder: Path, name: str
) -> None:
    """No file outside a folder of batches is sent to a provider or read."""
    run.write()
    out(run, server, folder)
    results = run_batch(folder, 1)
    state = json.loads((folder / "batch.json").read_text())
    state["files"][name] = next(iter(state["files"].values()))
    (folder / "batch.json").write_text(json.dumps(state))
    calls = [
        CliRunner().invoke(import_results.main, [*map(str, results)]),
        run.call("--judge", server.url, "--batch-submit", str(folder)),
    ]
    for call in calls:
        assert call.exit_code == 2, call.output
        assert f"batch.json: files: {name!r} is not a name" in call.output, call.output


def test_a_request_file_that_is_a_link_is_not_sent(
    run: JudgedRun, server: Server, folder: Path
) -> None:
    """A folder from another person may name any file of this machine in that way."""
    run.write()
    out(run, server, folder)
    path = folder / "round1-groundedness-attempt1-001.jsonl"
    path.unlink()
    path.symlink_to("/etc/hosts")
    call = run.call("--judge", server.url, "--batch-submit", str(folder))
    assert call.exit_code == 2, call.output
    assert f"{path}: is a link to /etc/hosts, outside of" in call.output


def cut_in_the_middle(line: bytes) -> bytes:
    return line[: len(line) // 2]


@pytest.mark.parametrize(
    "damage",
    [
        cut_in_the_middle,
        lambda line: cut_in_the_middle(line) + b"\n",
        lambda line: line.replace(b'"messages"', b'"massages"'),
        lambda line: line.replace(b'"content"', b'"contents"'),
        lambda line: line.replace(b'"content":"', b'"content":7,"was":"'),
        lambda line: line.replace(b'"schema"', b'"scheme"'),
    ],
)
def test_a_damaged_request_is_asked_again(
    run: JudgedRun, server: Server, folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    """Its result cannot be checked and gives no verdict; the other results are taken in."""
    run.write()
    out(run, server, folder)
    results = run_batch(folder, 1)
    path = folder / "round1-groundedness-attempt1-001.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damage(second))
    report = take_in(run, *results)
    assert (report["verdicts"], report["failures"]) == (3, {"request": 1})
    again = out(run, server, folder)
    assert (again["again"], again["under_way"]) == (1, 0)


def test_a_folder_in_place_of_a_request_file_is_no_traceback(
    run: JudgedRun, server: Server, folder: Path
) -> None:
    run.write()
    out(run, server, folder)
    results = run_batch(folder, 1)
    path = folder / "round1-groundedness-attempt1-001.jsonl"
    path.unlink()
    path.mkdir()
    assert take_in(run, *results)["failures"] == {"unknown": 2}
    out(run, server, folder)


def test_results_go_on_behind_a_torn_line_of_failures(
    run: JudgedRun, server: Server, folder: Path
) -> None:
    """A killed import leaves half a line; the next one does not write behind it."""
    run.write()
    out(run, server, folder)
    results = run_batch(folder, 1)
    for path in results:
        lines = path.read_text("utf-8").splitlines()
        failed = [damaged(json.loads(line), "expired") for line in lines]
        path.write_text("".join(line + "\n" for line in failed), "utf-8")
    take_in(run, results[0])
    failures = folder / "failures.jsonl"
    failures.write_bytes(failures.read_bytes()[:-9])
    take_in(run, *results)
    assert out(run, server, folder)["again"] == 4
