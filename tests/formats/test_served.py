"""LangSmith and Langfuse by the shapes that their documentation tells."""

from __future__ import annotations

import json
from typing import Any

T0, T1 = "2026-01-01T00:00:00.000000", "2026-01-01T00:00:02.000000"
DOCUMENT = {"page_content": "Of A.", "metadata": {"source": "a.md", "heading_path": "A > B"}}


def run(name: str, kind: str, **more: Any) -> dict[str, Any]:
    times = {"start_time": T0, "end_time": T1}
    return {"id": name, "trace_id": "t1", "name": name, "run_type": kind} | times | more


def runs() -> list[dict[str, Any]]:
    return [
        run(
            "root",
            "chain",
            inputs={"question": "What is A?", "k": 3},
            outputs={"answer": "An A.", "trust": 0.5},
            session_name="nightly",
            reference_example_id="ex-1",
            tags=["x"],
        ),
        run(
            "find",
            "retriever",
            parent_run_id="root",
            inputs={"query": "What is A?"},
            outputs={"documents": [DOCUMENT]},
        ),
        run(
            "say",
            "llm",
            parent_run_id="root",
            inputs={"messages": [[{"type": "human", "data": {"content": "Use Of A. What is A?"}}]]},
            outputs={"generations": [[{"message": {"role": "assistant", "content": "An A."}}]]},
            prompt_tokens=8,
            completion_tokens=4,
            total_cost="0.002",
            extra={"metadata": {"ls_model_name": "m-1"}},
        ),
    ]


def test_langsmith_runs(desk: Any) -> None:
    report = desk.take("langsmith", desk.rows("runs.jsonl", runs()))
    (case,) = desk.cases()
    assert (case["id"], case["question"]) == ("ex-1", "What is A?")
    assert case["metadata"]["inputs"] == {"k": 3}
    assert case["metadata"]["outputs"] == {"trust": 0.5}
    assert case["metadata"]["tags"] == ["x"]
    (result,) = desk.results("nightly")
    assert (result["answer"], result["cost_usd"]) == ("An A.", 0.002)
    assert result["usage"] == {"input_tokens": 8, "output_tokens": 4}
    assert result["latency_ms"] == {"total": 2000.0, "retrieve": 2000.0, "generate": 2000.0}
    (chunk,) = result["retrieved"]
    assert (chunk["doc_id"], chunk["heading_path"], chunk["text"]) == ("a.md", "A > B", "Of A.")
    assert any("documented shape" in name for name in report["changed"])
    assert report["left_out"]["extra of inner spans"] == 1


def test_langsmith_examples_with_runs(desk: Any) -> None:
    outermost = runs()[0] | {"outputs": {"answer": "An A.", "documents": [DOCUMENT]}}
    example = {"id": "ex-1", "inputs": {"question": "What is A?"}, "runs": [outermost]}
    example |= {"outputs": {"answer": "The A."}}
    desk.take("langsmith", desk.file("experiment.json", json.dumps([example])))
    (case,) = desk.cases()
    assert case["reference_answer"] == "The A."
    (result,) = desk.results("nightly")
    assert result["test_case_id"] == "ex-1"
    assert [chunk["text"] for chunk in result["retrieved"]] == ["Of A."]


def test_langsmith_tables_and_uploads(desk: Any) -> None:
    text = (
        "inputs.question,outputs.answer,reference.answer,error,feedback.correct,execution_time,"
        "example_id\nWhat is A?,An A.,The A.,,1,1.5,ex-1\nWhat is B?,,The B.,boom,0,0.5,ex-2\n"
    )
    desk.take("langsmith", desk.file("table.csv", text))
    assert [case["reference_answer"] for case in desk.cases()] == ["The A.", "The B."]
    done, failed = desk.results("table")
    assert (done["answer"], done["latency_ms"]) == ("An A.", {"total": 1500.0})
    assert failed["error"]["message"] == "boom"
    assert desk.cases()[0]["metadata"] == {"feedback.correct": "1"}
    row = {
        "row_id": "r1",
        "inputs": {"q": "What is A?"},
        "expected_outputs": {"answer": "The A."},
        "actual_outputs": {"answer": "An A.", "contexts": ["Of A."]},
    }
    desk.take("langsmith", desk.file("up.json", json.dumps({"results": [row]})), out="up")
    assert desk.cases("up")[0]["reference_answer"] == "The A."
    assert desk.results("up", "up")[0]["retrieved"][0]["text"] == "Of A."


def observations() -> list[dict[str, Any]]:
    common = {"traceId": "t1", "startTime": f"{T0}Z", "endTime": f"{T1}Z", "level": "DEFAULT"}
    find = {"id": "o1", "type": "RETRIEVER", "name": "find", "input": "What is A?"}
    say = {
        "id": "o2",
        "type": "GENERATION",
        "name": "say",
        "model": "m-1",
        "input": [{"role": "user", "content": "Use Of A. What is A?"}],
        "output": {"role": "assistant", "content": "An A."},
        "usageDetails": {"input": 8, "output": 4, "total": 12},
        "costDetails": {"total": 0.002},
        "promptName": "p",
    }
    return [common | find | {"output": [DOCUMENT]}, common | say]


TRACE = {
    "id": "t1",
    "timestamp": f"{T0}Z",
    "name": "ask",
    "input": {"question": "What is A?"},
    "output": {"answer": "An A.", "trust": 1},
    "sessionId": "s1",
    "latency": 2.5,
}


def check_langfuse(desk: Any, name: str, out: str) -> None:
    (result,) = desk.results(name, out)
    assert (result["question"], result["answer"]) == ("What is A?", "An A.")
    assert (result["usage"], result["cost_usd"]) == ({"input_tokens": 8, "output_tokens": 4}, 0.002)
    (chunk,) = result["retrieved"]
    assert (chunk["doc_id"], chunk["heading_path"], chunk["text"]) == ("a.md", "A > B", "Of A.")


def test_a_langfuse_trace_with_its_observations(desk: Any) -> None:
    scores = [{"name": "ok", "value": 1}]
    full = TRACE | {"observations": observations(), "scores": scores}
    report = desk.take("langfuse", desk.file("trace.json", json.dumps(full)))
    check_langfuse(desk, "trace", "out")
    (case,) = desk.cases()
    assert case["metadata"]["conversation"] == "h-bafa0f3c99f9abea"  # HMAC-SHA256 of s1
    assert case["metadata"]["scores"] == scores
    assert case["metadata"]["output"] == {"trust": 1}
    assert desk.results("trace")[0]["latency_ms"]["total"] == 2500.0
    assert report["left_out"]["promptName of inner spans"] == 1


def test_langfuse_tables_that_belong_together(desk: Any) -> None:
    """Observations by themselves, as the export to blob storage has them, and scores beside."""
    snake = {"traceId": "trace_id", "startTime": "start_time", "endTime": "end_time"}
    snake |= {"usageDetails": "usage_details", "costDetails": "cost_details"}
    rows = [{snake.get(k, k): v for k, v in row.items()} for row in observations()]
    score = {"id": "s", "trace_id": "t1", "name": "ok", "value": 1.0, "data_type": "NUMERIC"}
    sources = [desk.rows("observations.jsonl", rows), desk.rows("scores.jsonl", [score])]
    desk.take("langfuse", *sources)
    check_langfuse(desk, "observations", "out")
    assert desk.cases()[0]["metadata"]["scores"] == [score]


def test_langfuse_items_of_a_data_set(desk: Any) -> None:
    item = {"id": "i1", "input": {"question": "What is A?"}, "expectedOutput": "The A."}
    report = desk.take("langfuse", desk.rows("items.jsonl", [item | {"status": "ACTIVE"}]))
    case = {"id": "i1", "question": "What is A?", "reference_answer": "The A."}
    assert desk.cases() == [case | {"metadata": {"status": "ACTIVE"}}]
    assert report["kept"] == {"status": 1}


def test_what_tells_no_question_is_said(desk: Any) -> None:
    bare = desk.rows(
        "x.jsonl", [{"id": "i1", "input": {"a": "x", "b": "y"}, "expectedOutput": "z"}]
    )
    assert "--map question=FIELD" in desk.refused("langfuse", bare)
    bare = desk.rows("y.jsonl", [{"inputs": {"a": "x", "b": "y"}, "outputs": {"c": "z"}}])
    assert "--map question=FIELD" in desk.refused("langsmith", bare)
