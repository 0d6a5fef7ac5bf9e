"""Three states of a case: scored, not applicable, failed; what is a miss and what is none."""

from __future__ import annotations

from typing import Any

from tests.definitions import definition_of

from records.metrics import load_metrics
from storage import ErrorInfo, RetrievedChunk, TestResult

Chunks = list[RetrievedChunk | str]


def test_three_states_of_a_case(evaluated: Any, chunk: Any, gold: Any) -> None:
    run = evaluated(
        [
            {"id": "found", "gold_supports": gold("a.md > A")},
            {"id": "missed", "gold_supports": gold("a.md > A")},
            {"id": "unanswerable", "answerable": False, "gold_supports": gold("a.md > A")},
            {"id": "unlabelled"},
            {"id": "broken", "gold_supports": gold("a.md > A")},
            {"id": "not asked", "gold_supports": gold("a.md > A")},
        ],
        [
            TestResult("found", retrieved=[chunk("b.md > B"), chunk("a.md > A > Deep")]),
            TestResult("missed", retrieved=[chunk("b.md > B")]),
            TestResult("unanswerable", retrieved=[chunk("a.md > A")]),
            TestResult("unlabelled", retrieved=[chunk("a.md > A")]),
            TestResult("broken", status="error", error=ErrorInfo("timeout")),
        ],
    )
    found = run.section()
    assert found["n"]["recall_any@5"] == 2
    assert found["not_applicable"]["recall_any@5"] == 2
    assert found["failed"]["recall_any@5"] == 1
    assert found["mean"]["recall_any@5"] == 0.5
    assert found["mean"]["mrr"] == 0.25  # 1/2 and 0
    assert found["definitions"]["ndcg@5"] == definition_of("retrieval", "ndcg")
    by_case = run.rows()
    assert {name: row["status"] for name, row in by_case.items()} == {
        "found": "scored",
        "missed": "scored",
        "unanswerable": "not_applicable",
        "unlabelled": "not_applicable",
        "broken": "failed",
    }
    assert by_case["unanswerable"]["reasons"] == {"*": "unanswerable"}
    assert by_case["unlabelled"]["reasons"] == {"*": "no gold"}
    assert by_case["broken"]["reasons"] == {"*": "call failed: timeout"}
    assert by_case["broken"]["scores"]["mrr"] is None
    found_at = {"match": "anchor", "found": [2], "hits": [2], "heading_found": True}
    assert by_case["found"]["evidence"] == found_at
    header = load_metrics(run.path / "metrics.json")
    assert (header["cases"], header["errors"], header["run_id"]) == (5, 1, "run")


def test_what_the_bot_does_not_send_is_no_miss(evaluated: Any, gold: Any) -> None:
    fields: dict[str, Any] = {
        "no rel_path in the result": {"gold_supports": gold("a.md > A")},
        "no doc_id or rel_path in the result": {"relevant_docs": ["a.md"]},
        "no chunk texts in the result": {"gold_contexts": ["some text"]},
    }
    chunks: Chunks = [RetrievedChunk("c1"), RetrievedChunk("c2")]
    cases = [{"id": reason} | fields[reason] for reason in fields]
    run = evaluated(cases, [TestResult(reason, retrieved=chunks) for reason in fields])
    assert run.section()["n"]["mrr"] == 0
    assert [row["reasons"]["*"] for row in run.rows().values()] == [*fields]


def test_a_cut_text_is_not_applicable_instead_of_a_miss(
    evaluated: Any, chunk: Any, gold: Any
) -> None:
    case = {"id": "q", "gold_supports": gold("a.md > A", snippets=["far behind"])}
    long = chunk("a.md > A", text="word " * 100 + "far behind")
    run = evaluated([case], [TestResult("q", retrieved=[long])], full=False)
    assert run.section()["mean"]["snippet_recall@5"] is None
    assert run.rows()["q"]["reasons"]["snippet_recall@*"] == "text was truncated"
    assert run.section("--match", "text")["n"]["mrr"] == 0
