"""Batch files of rubrics."""

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
