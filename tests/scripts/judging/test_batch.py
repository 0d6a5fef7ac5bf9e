"""Judging by files: the same verdicts as online, and nothing that failed becomes one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.scripts.judging.conftest import Handler, JudgedRun, Server, schema_of

import judge_cache
from judging import batch as batches

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


def reply_to(body: dict[str, Any]) -> dict[str, Any]:
    """A form filled by its schema: facts, or the last of the possible verdicts, without a quote."""
    fields = schema_of(body)
    if "facts" in fields:
        return {"notes": "", "facts": ["The tour begins at noon."], "manipulation": False}
    if "verdicts" not in fields:
        return {"wet": "yes", "code": "zq-17-umber"}
    entry = fields["verdicts"]["items"]["properties"]
    verdicts = []
    for name in entry["id"]["enum"]:
        line = {"id": name, "context": "", "quote": "", "reason": "Nothing says so."}
        line["verdict"] = entry["verdict"]["enum"][-1]
        verdicts.append({key: line[key] for key in entry})
    extra = {key: True for key in fields if fields[key] == {"type": "boolean"}}
    return {"notes": ""} | extra | {"verdicts": verdicts, "manipulation": False}


def answer(server: Server, request: dict[str, Any]) -> dict[str, Any]:
    """A line of results, with the reply that the server would have given online."""
    completion = server.completion(reply_to(request["body"]))
    response = {"status_code": 200, "request_id": "r", "body": completion}
    return {"id": "b", "custom_id": request["custom_id"], "response": response, "error": None}


def run_batch(server: Server, folder: Path, round_number: int) -> list[Path]:
    """What a provider does: a file of results for each file of requests of a round."""
    results = []
    for path in sorted(folder.glob(f"round{round_number}-*.jsonl")):
        if "results" in path.name:
            continue
        target = folder / f"{path.stem}.results.jsonl"
        lines = [json.dumps(answer(server, request)) for request in requests_of(path)]
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
    words = ["import", *map(str, paths), "--cache", str(cache), "--json"]
    call = CliRunner().invoke(judge_cache.main, words)
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
    assert take_in(run, *run_batch(server, folder, 1))["verdicts"] == 4
    second = out(run, server, folder)
    assert (second["round"], second["requests"], second["preliminary"]) == (2, 1, {})
    assert take_in(run, *run_batch(server, folder, 2))["verdicts"] == 1
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


def comparable(lines: bytes) -> list[dict[str, Any]]:
    """Verdict lines without what tells when and by which run of judging they were asked."""
    rows = [json.loads(line) for line in lines.splitlines()]
    for row in rows:
        for name in (
            "judging_runs",
            "attempts",
            "cached",
            "seconds",
            "messages",
            "usage",
            "cost_usd",
        ):
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


def damaged(line: dict[str, Any], kind: str) -> Any:
    body = line["response"]["body"]
    choice = body["choices"][0]
    whole = json.dumps(line)
    if kind == "torn line":
        return whole[: len(whole) // 2]
    if kind == "no object":
        return "[1, 2]"
    if kind == "no id":
        line.pop("custom_id")
    if kind == "another id":
        line["custom_id"] = "0" * 64
    if kind == "id with a suffix":
        line["custom_id"] += "-1"
    if kind == "id is a number":
        line["custom_id"] = 7
    if kind == "status 500":
        line["response"]["status_code"] = 500
    if kind == "error":
        line |= {"response": None, "error": {"code": "server_error", "message": "no"}}
    if kind == "expired":
        line |= {"response": None, "error": {"code": "batch_expired", "message": "late"}}
    if kind == "no response":
        line["response"] = None
    if kind == "no body":
        line["response"]["body"] = None
    if kind == "error as body":
        line["response"]["body"] = {"error": {"message": "overloaded"}}
    if kind == "no choices":
        body["choices"] = []
    if kind == "another model":
        body["model"] = "other-2024-01-01"
    if kind == "cut reply":
        choice["finish_reason"] = "length"
    if kind == "refusal":
        choice["message"] |= {"content": None, "refusal": "I cannot judge this."}
    if kind == "filtered":
        choice["finish_reason"] = "content_filter"
    if kind == "prose":
        choice["message"]["content"] = "The claim is supported."
    if kind == "half an object":
        choice["message"]["content"] = choice["message"]["content"][:-9]
    if kind == "wrong field":
        choice["message"]["content"] = '{"verdict": "supported"}'
    if kind == "unknown verdict":
        content = choice["message"]["content"]
        choice["message"]["content"] = content.replace('"not_found"', '"perfect"')
    if kind == "cut prompt":
        body["usage"]["prompt_tokens"] = 9
    if kind == "empty":
        choice["message"]["content"] = ""
    return json.dumps(line)


DAMAGE = {
    "torn line": "damaged",
    "no object": "damaged",
    "no id": "damaged",
    "another id": "unknown",
    "id with a suffix": "damaged",
    "id is a number": "damaged",
    "status 500": "error",
    "error": "error",
    "expired": "expired",
    "no response": "error",
    "no body": "error",
    "error as body": "error",
    "no choices": "error",
    "another model": "other_model",
    "cut reply": "truncated",
    "refusal": "refused",
    "filtered": "refused",
    "prose": "malformed",
    "half an object": "malformed",
    "wrong field": "schema",
    "unknown verdict": "schema",
    "cut prompt": "prompt_truncated",
    "empty": "malformed",
}


def test_no_damaged_result_becomes_a_verdict(run: JudgedRun, server: Server, folder: Path) -> None:
    """Each kind of damage to one result: counted by its kind, and nothing is in the cache."""
    run.write()
    out(run, server, folder)
    results = run_batch(server, folder, 1)
    whole = next(path for path in results if "groundedness" in path.name)
    line = whole.read_text("utf-8").splitlines()[0]
    cache = run.finished.folder / "cache" / "judge_cache.jsonl"
    for kind, failure in DAMAGE.items():
        whole.write_text(damaged(json.loads(line), kind) + "\n", "utf-8")
        report = take_in(run, whole)
        assert report["failures"] == {failure: 1}, kind
        assert report["verdicts"] == 0, kind
        assert not cache.exists(), kind


def test_what_failed_is_asked_again_with_its_faults(
    run: JudgedRun, server: Server, folder: Path
) -> None:
    """A malformed reply and an expired request come back in the next round, a good one does not."""
    run.write()
    out(run, server, folder)
    results = run_batch(server, folder, 1)
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
    assert take_in(run, *run_batch(server, folder, 2))["verdicts"] == 3
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


def test_a_model_must_be_named_and_pinned(run: JudgedRun, folder: Path) -> None:
    run.write()
    call = run.call("--batch-out", str(folder))
    assert call.exit_code == 2, call.output
    assert "--model" in call.output, call.output
    call = run.call("--batch-out", str(folder), "--model", "gpt-4o")
    assert call.exit_code == 2, call.output
    assert "pinned" in call.output, call.output
    assert not folder.exists()


class BatchHandler(Handler):
    """Files and batches as OpenAI has them; a batch ends as soon as it is looked at twice."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server: Any = self.server
        if self.path == "/v1/files":
            name = f"file-{len(server.files)}"
            server.files[name] = body.split(b"\r\n\r\n", 2)[2].rpartition(b"\r\n--")[0]
            return self._send(200, {"id": name})
        task = json.loads(body)
        name = f"batch-{len(server.batches)}"
        server.batches[name] = {
            "id": name,
            "status": "validating",
            "input_file_id": task["input_file_id"],
        }
        self._send(200, server.batches[name])

    def do_GET(self) -> None:
        server: Any = self.server
        parts = self.path.partition("?")[0].strip("/").split("/")
        if parts[1] == "batches" and len(parts) == 2:
            return self._send(200, {"data": list(server.batches.values())})
        if parts[1] == "batches":
            own = server.batches[parts[2]]
            if own["status"] == "validating":
                own["status"] = "in_progress"
            else:
                requests = [
                    json.loads(line) for line in server.files[own["input_file_id"]].splitlines()
                ]
                lines = [json.dumps(answer(server, request)) for request in requests]
                server.files[f"{parts[2]}-out"] = ("\n".join(lines) + "\n").encode()
                own |= {"status": "completed", "output_file_id": f"{parts[2]}-out"}
            return self._send(200, own)
        self._write(200, server.files[parts[2]])


@pytest.fixture
def batch_server(server: Server) -> Server:
    running: Any = server
    running.RequestHandlerClass = BatchHandler
    running.files, running.batches = {}, {}
    return server


def test_submit_and_fetch_over_http(run: JudgedRun, batch_server: Any, folder: Path) -> None:
    run.write()
    out(run, batch_server, folder)
    where = ("--judge", batch_server.url, "--retries", "0")
    sent = run.call(*where, "--batch-submit", str(folder))
    assert sent.exit_code == 0, sent.output
    assert "3 batches are under way" in sent.stdout, sent.output
    # killed after the server began a batch and before that was noted: it is found, not begun anew
    state = json.loads((folder / "batch.json").read_text())
    for file in state["files"].values():
        del file["batch_id"], file["status"]
    (folder / "batch.json").write_text(json.dumps(state))
    run.call(*where, "--batch-submit", str(folder))
    assert len(batch_server.batches) == len(batch_server.files) == 3
    early = run.call(*where, "--batch-fetch", str(folder))
    assert "3 batches still run" in early.stdout, early.output
    late = run.call(*where, "--batch-fetch", str(folder))
    assert "judge_cache.py import" in late.stdout, late.output
    results = sorted(folder.glob("*.results.jsonl"))
    assert take_in(run, *results)["verdicts"] == 4


def test_a_server_that_is_gone_ends_with_3(run: JudgedRun, server: Server, folder: Path) -> None:
    run.write()
    out(run, server, folder)
    nobody = ("--judge", "http://127.0.0.1:9/v1", "--retries", "0")
    call = run.call(*nobody, "--batch-submit", str(folder))
    assert call.exit_code == 3, call.output
    assert "cannot be used" in call.output, call.output
