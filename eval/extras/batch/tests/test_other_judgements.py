"""Batch files of rubrics and of a panel's members."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.scripts.judging.conftest import CASES, RESULTS, JudgedRun, Server
from tests.scripts.judging.test_rubrics import HELPFUL, judge_rubrics, rubric_reply

from extras.batch.tests.test_batch import requests_of, take_in


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """A provider's line of results for a request of a batch."""
    body = Server.completion(rubric_reply(request["body"]))
    return {
        "id": "r",
        "custom_id": request["custom_id"],
        "response": {"status_code": 200, "body": body},
        "error": None,
    }


def test_rubrics_by_files_give_the_bytes_of_the_online_way(
    run: JudgedRun, server: Server, tmp_path: Path
) -> None:
    run.write()
    server.reply, words = judge_rubrics, (*server.words()[:-2], *HELPFUL)
    online = run.judge(*words)
    kept = run.finished.bytes_of("rubrics")
    shown = {line["case_id"]: line["verdicts"] for line in run.lines()}
    other = JudgedRun(type(run.finished)(tmp_path / "second"))
    other.finished.folder.mkdir()
    other.finished.write(CASES, RESULTS)
    folder = tmp_path / "batches"
    call = other.call(*words, "--batch-out", str(folder), "--json")
    assert json.loads(call.stdout)["requests"] == 3
    (path,) = folder.glob("round1-*.jsonl")
    results = folder / f"{path.stem}.results.jsonl"
    results.write_text("".join(json.dumps(answered(one)) + "\n" for one in requests_of(path)))
    assert take_in(other, results)["verdicts"] == 3
    calls = len(server.calls)
    offline = other.judge(*words, "--offline")
    assert len(server.calls) == calls
    # all but how the judge was asked, which config.json tells
    assert offline | {"options": online["options"]} == online
    assert other.finished.bytes_of("rubrics")[0] == kept[0]
    assert {line["case_id"]: line["verdicts"] for line in other.lines()} == shown


def test_a_panel_is_asked_online(run: JudgedRun, tmp_path: Path) -> None:
    run.write()
    for name in "ab":
        text = f'server = "http://127.0.0.1:9/v1"\nmodel = "{name}-2025-01-01"\nrevision = "r1"\n'
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
    (tmp_path / "two.toml").write_text('panel = ["a", "b"]\n', "utf-8")
    done = run.call("--judge", str(tmp_path / "two.toml"), "--batch-out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "a panel is asked online" in done.output


def test_the_local_judge_needs_no_batch_files(run: JudgedRun, tmp_path: Path) -> None:
    run.write()
    done = run.call("--judge", "local", "--batch-out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "needs no batch files; leave the option out" in done.output
    assert not (tmp_path / "out").exists()
