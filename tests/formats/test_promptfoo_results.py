"""What ``promptfoo eval -o`` writes (shapes of 0.121)."""

from __future__ import annotations

import json
from typing import Any

TEST = {
    "description": "first",
    "vars": {"question": "What is A?", "context": "of the test"},
    "assert": [{"type": "icontains", "value": "an a"}],
}


def result(provider: str, response: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "x",
        "latencyMs": 9,
        "cost": 0.25,
        "prompt": {"raw": "What is A?", "label": "{{question}}"},
        "promptIdx": 0,
        "provider": {"id": "p", "label": provider},
        "response": response,
        "score": 1,
        "success": True,
        "testCase": TEST,
        "testIdx": 0,
        "vars": TEST["vars"],
        "failureReason": 0,
    } | more


DONE = result(
    "bot",
    {
        "output": "An A.",
        "tokenUsage": {"prompt": 8, "completion": 4, "total": 12},
        "metadata": {"retrieved": [{"id": "c1", "rel_path": "a.md", "text": "of the bot"}]},
        "cached": True,
    },
)
MISSED = result("echo", {"output": "What is A?"}, error="Expected more", failureReason=1)
FAILED = result("bot", {"error": "boom"}, error="boom", failureReason=2, success=False)
FILE = {
    "evalId": "e",
    "results": {"version": 3, "stats": {"n": 1}, "results": [DONE, MISSED, FAILED]},
    "config": {"a": 1},
}


def test_results_in_json(desk: Any) -> None:
    report = desk.take("promptfoo", desk.file("out.json", json.dumps(FILE)))
    (case,) = desk.cases()
    assert desk.labels("groundedness_labels")[case["id"]] == {"expected_claims": ["an a"]}
    done, failed = desk.results("bot")
    assert (done["answer"], done["latency_ms"], done["cost_usd"]) == ("An A.", {"total": 9}, 0.25)
    assert done["usage"] == {"input_tokens": 8, "output_tokens": 4}
    places = [(c["chunk_id"], c["rel_path"], c["text"]) for c in done["retrieved"]]
    assert places == [("c1", "a.md", "of the bot")]
    assert (failed["status"], failed["error"]["message"], failed["repeat"]) == ("error", "boom", 1)
    (missed,) = desk.results("echo")
    assert (missed["status"], missed["answer"]) == ("ok", "What is A?")
    assert [chunk["text"] for chunk in missed["retrieved"]] == ["of the test"]
    assert case["metadata"]["promptfoo"]["bot"][1] == {"score": 1, "success": False}
    assert report["left_out"]["response.cached"] == 1
    assert report["left_out"]["config of the whole file"] == 1


def test_lines_of_results_give_the_same(desk: Any) -> None:
    desk.take("promptfoo", desk.file("out.json", json.dumps(FILE)))
    desk.take("promptfoo", desk.rows("out.jsonl", [DONE, MISSED, FAILED]), out="lines")
    assert desk.cases() == desk.cases("lines")
    assert desk.results("bot") == desk.results("bot", "lines")


def test_a_table_of_results(desk: Any) -> None:
    judged = "Status,Score,Named Scores,Grader Reason,Comment"
    text = (
        f"Description,question,context,[bot] {{{{question}}}},{judged},[bot] Say {{{{question}}}},"
        f"{judged}\nfirst,What is A?,text,An A.,PASS,1.00,,fine,,An A!,FAIL,0.00,,not so,\n"
        ",What is B?,,,ERROR,0.00,,,,A B.,PASS,1.00,,,\n"
    )
    desk.take("promptfoo", desk.file("out.csv", text))
    assert [case["question"] for case in desk.cases()] == ["What is A?", "What is B?"]
    one, failed = desk.results("bot-prompt-1")
    assert (one["answer"], one["retrieved"][0]["text"]) == ("An A.", "text")
    assert failed["status"] == "error"
    assert [row["answer"] for row in desk.results("bot-prompt-2")] == ["An A!", "A B."]
