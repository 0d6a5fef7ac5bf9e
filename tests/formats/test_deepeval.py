"""DeepEval's goldens, as its own save_as writes them."""

from __future__ import annotations

import json
from typing import Any

GOLDEN = {
    "input": "Q?",
    "actual_output": "A.",
    "expected_output": "T.",
    "retrieval_context": ["one", "deepeval_source=notes.md,deepeval_context=two"],
    "context": ["gold"],
    "name": "first",
    "source_file": None,
    "tools_called": [{"name": "search"}],
    "token_cost": 0.5,
    "input_token_count": 10,
    "output_token_count": 4,
    "additional_metadata": {"level": 2},
}


def test_goldens_in_json(desk: Any) -> None:
    report = desk.take("deepeval", desk.file("g.json", json.dumps([GOLDEN, {"input": "R?"}])))
    case, bare = desk.cases()
    assert case["reference_answer"] == "T."
    assert case["metadata"] == {"level": 2, "name": "first", "tools_called": [{"name": "search"}]}
    assert bare == {"id": bare["id"], "question": "R?"}
    assert desk.labels("retrieval_labels") == {case["id"]: {"gold_contexts": ["gold"]}}
    (result,) = desk.results("g")
    assert result["answer"] == "A."
    passages = [(one["text"], one["doc_id"]) for one in result["retrieved"]]
    assert passages == [("one", None), ("two", "notes.md")]
    assert result["usage"] == {"input_tokens": 10, "output_tokens": 4}
    assert result["cost_usd"] == 0.5
    assert report["kept"] == {"additional_metadata": 1, "name": 1, "tools_called": 1}
    assert report["changed"] == {"rows without an id, named by a hash of the input": 2}


def test_test_cases_by_their_aliases(desk: Any) -> None:
    case = {
        "input": "Q?",
        "actualOutput": "A.",
        "expectedOutput": "T.",
        "retrievalContext": [{"source": "n.md", "context": "text"}],
        "completionTime": 1.5,
        "tags": ["a"],
    }
    desk.take("deepeval", desk.file("t.json", json.dumps({"testCases": [case]})))
    (result,) = desk.results("t")
    assert (result["answer"], result["latency_ms"]) == ("A.", {"total": 1500.0})
    assert result["retrieved"][0]["doc_id"] == "n.md"
    assert desk.cases()[0]["tags"] == ["a"]


def test_csv_and_jsonl_part_passages_at_a_bar(desk: Any) -> None:
    head = "input,actual_output,expected_output,retrieval_context,context,additional_metadata,"
    head += "input_token_count,token_cost\n"
    text = head + 'Q?,A.,T.,one|two,gold;more,"{""a"": 1}",12,0.25\n'
    desk.take("deepeval", desk.file("g.csv", text))
    assert [one["text"] for one in desk.results("g")[0]["retrieved"]] == ["one", "two"]
    assert list(desk.labels("retrieval_labels").values()) == [{"gold_contexts": ["gold;more"]}]
    assert desk.cases()[0]["metadata"] == {"a": 1}
    assert desk.results("g")[0]["usage"] == {"input_tokens": 12}
    assert desk.results("g")[0]["cost_usd"] == 0.25
    row = {"input": "Q?", "actual_output": "A.", "retrieval_context": "one|two"}
    desk.take("deepeval", desk.rows("g2.jsonl", [row]), out="two")
    assert len(desk.results("g2", "two")[0]["retrieved"]) == 2
    desk.take("deepeval", desk.file("g.csv", text), out="three", more=["--set", "delimiter=;"])
    assert len(desk.results("g", "three")[0]["retrieved"]) == 1


def test_conversational_goldens_become_turns(desk: Any) -> None:
    """A name is the conversation's; what is said of the whole goes to its first turn; a scenario
    alone has no question. A question without an answer is a case without a result."""
    turns = [
        {"role": "user", "content": "Free plan?"},
        {"role": "assistant", "content": "Yes.", "retrieval_context": ["Plans are free."]},
        {"role": "user", "content": "And next year?"},
    ]
    rows = [
        {"name": "plans", "scenario": "s", "expected_outcome": "done", "turns": turns},
        {"scenario": "alone"},
        {"input": "Q?"},
    ]
    report = desk.take("deepeval", desk.file("g.json", json.dumps({"goldens": rows})))
    first, second, third = desk.cases()
    assert first == {
        "id": "plans-1",
        "question": "Free plan?",
        "conversation": "plans",
        "turn": 1,
        "metadata": {"scenario": "s", "expected_outcome": "done"},
    }
    assert (second["id"], second["turn"], third["question"]) == ("plans-2", 2, "Q?")
    (result,) = desk.results("g")
    assert (result["answer"], result["asked_with"]) == ("Yes.", "live")
    assert [chunk["text"] for chunk in result["retrieved"]] == ["Plans are free."]
    assert report["left_out"] == {"scenarios without a turn of the user": 1}


def test_faults_have_their_place_in_the_list(desk: Any) -> None:
    rows = [{"input": 1}, {"input": "a", "retrieval_context": [{"source": "x"}]}, "text"]
    path = desk.file("g.json", json.dumps(rows))
    said = desk.refused("deepeval", path)
    assert f"{path}: [0].input: is not a text" in said
    assert f"{path}: [1].retrieval_context: has passages without a text" in said
    assert f"{path}: [2]: is not an object" in said
