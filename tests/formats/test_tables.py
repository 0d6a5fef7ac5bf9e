"""Files as products write them: DeepEval's last test run, Phoenix' table of spans, Parquet."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

CASE = {
    "name": "test_case_0",
    "input": "How long may I return shoes?",
    "actualOutput": "30 days.",
    "expectedOutput": "Within 30 days.",
    "context": ["Shoes may be returned for 30 days."],
    "retrievalContext": ["Shoes: 30 days.", "Hats: 14 days."],
    "metricsData": [{"name": "Exact", "score": 1.0, "reason": "ok"}],
    "metadata": {"team": "t"},
    "tags": ["returns"],
    "success": True,
    "runDuration": 0.5,
    "order": 0,
}
SAID = (("user", "And hats?"), ("assistant", "14 days."))
TURNS = [{"role": role, "content": text, "order": n} for n, (role, text) in enumerate(SAID)]
RUN = {
    "testCases": [CASE],
    "conversationalTestCases": [{"name": "talk", "success": True, "turns": TURNS}],
    "metricsScores": [{"metric": "Exact", "scores": [1.0]}],
    "prompts": [],
    "testPassed": 2,
}
"""What DeepEval 4.3 keeps of a run of evaluate(), shortened."""


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_last_test_run_of_deepeval(desk: Any, wrapped: bool) -> None:
    """Both of its hidden files; conversations come behind the other cases."""
    content = {"testRunData": RUN} if wrapped else RUN
    report = desk.take(
        "deepeval", desk.file(".deepeval/.latest_test_run.json", json.dumps(content))
    )
    single, turn = desk.cases()
    assert single["question"] == "How long may I return shoes?"
    assert single["reference_answer"] == "Within 30 days."
    assert single["tags"] == ["returns"]
    assert single["metadata"]["team"] == "t"
    assert single["metadata"]["metricsData"][0]["score"] == 1.0
    assert turn["question"] == "And hats?"
    answers = desk.results("latest_test_run")
    assert [answer["answer"] for answer in answers] == ["30 days.", "14 days."]
    texts = [passage["text"] for passage in answers[0]["retrieved"]]
    assert texts == ["Shoes: 30 days.", "Hats: 14 days."]
    left_out = {"metricsScores of the whole file": 1, "testPassed of the whole file": 1}
    assert report["left_out"] == left_out
    assert report["kept"]["metricsData"] == 1


def span(kind: str, name: str, parent: str | None, seconds: tuple[float, float]) -> dict[str, Any]:
    """A row of Phoenix' table without attributes: each cell that has none is empty."""
    start, end = (int((1_767_225_600 + second) * 1000) for second in seconds)
    columns = ("input.value", "output.value", "retrieval.documents", "llm.token_count.prompt")
    return {
        "name": name,
        "span_kind": kind,
        "parent_id": parent,
        "start_time": start,
        "end_time": end,
        "status_code": "OK",
        "status_message": "",
        "events": [],
        "context.span_id": name,
        "context.trace_id": "t1",
        **{f"attributes.{column}": None for column in (*columns, "llm.output_messages")},
    }


DOCUMENTS = [
    {
        "document.content": "Shoes: 30 days.",
        "document.id": "c1",
        "document.score": 0.9,
        "document.metadata": {"file_path": "/srv/docs/returns.md", "file_name": "returns.md"},
    }
]

TABLE = [
    span("CHAIN", "qa", None, (0, 2.5))
    | {"attributes.input.value": "How long?", "attributes.output.value": "30 days."},
    span("RETRIEVER", "search", "qa", (0.1, 0.4))
    | {"attributes.input.value": "How long?", "attributes.retrieval.documents": DOCUMENTS},
    span("LLM", "llm", "qa", (0.5, 2))
    | {
        "attributes.llm.token_count.prompt": 11.0,
        "attributes.llm.output_messages": [
            {"message.role": "assistant", "message.content": "30 days."}
        ],
    },
]


def as_iso(row: dict[str, Any]) -> dict[str, Any]:
    names = ("start_time", "end_time")
    times = {name: datetime.fromtimestamp(row[name] / 1000, UTC).isoformat() for name in names}
    return row | times


@pytest.mark.parametrize("form", ["lines", "list", "ISO times", "columns", "parquet"])
def test_phoenix_table_of_spans(desk: Any, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pandas' to_json writes get_spans_dataframe(), in each of its forms."""
    if form == "parquet":
        source = parquet(desk, monkeypatch, [as_iso(row) for row in TABLE])
    elif form == "lines":
        source = desk.rows("spans.jsonl", TABLE)
    elif form == "columns":
        columns = {name: {row["context.span_id"]: row[name] for row in TABLE} for name in TABLE[0]}
        source = desk.file("spans.json", json.dumps(columns))
    else:
        rows = [as_iso(row) for row in TABLE] if form == "ISO times" else TABLE
        source = desk.file("spans.json", json.dumps(rows))
    report = desk.take("otel", source, more=["--run-id", "spans"])
    assert report["rows"] == {"spans": 3, "traces": 1}
    (case,) = desk.cases()
    assert (case["id"], case["question"]) == ("t1", "How long?")
    (result,) = desk.results("spans")
    assert result["answer"] == "30 days."
    assert result["latency_ms"] == {"total": 2500.0, "retrieve": 300.0, "generate": 1500.0}
    assert result["usage"] == {"input_tokens": 11}
    (passage,) = result["retrieved"]
    assert (passage["chunk_id"], passage["rel_path"]) == ("c1", "returns.md")
    assert passage["score_final"] == 0.9
    assert report["left_out"] == {"metadata.file_path of passages": 1}


class Batch:
    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def to_pylist(self, maps_as_pydicts: str) -> list[dict[str, Any]]:
        return self.rows


class ParquetFile:
    """What is used of pyarrow's class; the rows of ``tables`` by the file's bytes."""

    tables: dict[bytes, list[dict[str, Any]]]

    def __init__(self, path: Any) -> None:
        data = path.read_bytes()
        if data not in self.tables:
            raise ValueError("Parquet magic bytes not found in footer. Either the file …\nmore")
        self.rows = self.tables[data]

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def iter_batches(self, batch_size: int) -> list[Batch]:
        return [Batch(self.rows[:1]), Batch(self.rows[1:])]


def parquet(desk: Any, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]]) -> str:
    """A table and something that reads it: pyarrow is not needed for the tests."""
    package, module = ModuleType("pyarrow"), ModuleType("pyarrow.parquet")
    reader = type("Reader", (ParquetFile,), {"tables": {b"a table": rows}})
    vars(module)["ParquetFile"] = reader
    vars(package)["parquet"] = module
    monkeypatch.setitem(sys.modules, "pyarrow", package)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", module)
    path: str = desk.file("table.parquet", b"a table")
    return path


def test_parquet_rows_become_what_json_holds(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"user_input": "Q?", "retrieved_contexts": ["a", "b"], "response": "A", "cost": Decimal(2)},
        {"user_input": "R?", "reference": "S", "at": datetime(2026, 1, 2), "x": float("nan")},
    ]
    desk.take("ragas", parquet(desk, monkeypatch, rows))
    first, second = desk.cases()
    assert first["metadata"] == {"cost": "2"}
    assert second["reference_answer"] == "S"
    assert second["metadata"] == {"at": "2026-01-02T00:00:00"}
    (result,) = desk.results("table")
    assert [passage["text"] for passage in result["retrieved"]] == ["a", "b"]


def test_a_damaged_table_is_one_sentence(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet(desk, monkeypatch, [])
    message = desk.refused("json", desk.file("bad.parquet", b"no table"))
    assert "bad.parquet: cannot be read as Parquet (Parquet magic bytes not found" in message
    assert message.count("\n") == 1


@pytest.mark.parametrize("kind", ["ragas", "json", "otel", "deepeval"])
def test_the_remedy_without_pyarrow(desk: Any, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = desk.refused(kind, desk.file("t.parquet", b"PAR1"))
    assert "t.parquet: reading Parquet needs pyarrow, which is not installed" in message
    assert "pip install pyarrow, or write the table as JSON lines" in " ".join(message.split())


def test_a_table_that_pyarrow_wrote(desk: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet_module = pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_pylist([{"question": "Q?", "answer": "A", "contexts": ["a"]}])
    parquet_module.write_table(table, desk.folder / "real.parquet")
    desk.take("json", str(desk.folder / "real.parquet"))
    assert desk.results("real")[0]["retrieved"][0]["text"] == "a"


def test_the_reference_column_of_ragas_own_example(desk: Any) -> None:
    """Where a sample has both, the reference is the reference."""
    report = desk.take("ragas", desk.file("ex.csv", "question,expected_answer\nQ?,R\n"))
    assert desk.cases()[0]["reference_answer"] == "R"
    assert report["changed"]["expected_answer, read as the reference answer"] == 1
    rows = [{"user_input": "Q?", "reference": "R", "expected_answer": "S"}]
    report = desk.take("ragas", desk.rows("both.jsonl", rows), out="both")
    assert desk.cases("both")[0]["reference_answer"] == "R"
    assert report["kept"] == {"expected_answer": 1}
