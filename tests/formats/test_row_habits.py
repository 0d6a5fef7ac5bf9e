"""Rows as other tools write them: passages, printed lists, columns, booleans."""

from __future__ import annotations

import json
from typing import Any

import pytest


def test_passages_with_ids_and_a_foreign_category(desk: Any) -> None:
    row = {
        "question": "Q?",
        "category": "billing",
        "contexts": [
            {"id": "d1", "text": "one", "score": 0.5, "metadata": {"source": "a.md"}},
            {"page_content": "two"},
        ],
    }
    report = desk.take(
        "json", desk.file("r.json", json.dumps([row, row | {"category": "factual"}]))
    )
    foreign, known = desk.cases()
    assert foreign["metadata"] == {"category": "billing"}
    assert (known["category"], known.get("metadata")) == ("factual", None)
    assert report["kept"] == {"category": 1}
    first, second = desk.results("r")[0]["retrieved"]
    places = [(c["chunk_id"], c["doc_id"], c["text"], c["score_final"]) for c in (first, second)]
    assert places == [("d1", "a.md", "one", 0.5), ("2", None, "two", None)]
    empty = [{"question": "Q?", "contexts": [{"score": 1}]}]
    assert "contexts[0]: has neither" in desk.refused("json", desk.rows("e.jsonl", empty))


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("['a b' 'c']", ["a b", "c"]),  # numpy prints no commas; Python would join the two
        ("[\"it's\"\n 'two' 'three']", ["it's", "two", "three"]),
        ("['a', 'b']", ["a", "b"]),
        ("['say \\'x\\' \\'y\\'', 'b']", ["say 'x' 'y'", "b"]),
    ],
)
def test_lists_as_numpy_and_pandas_print_them(desk: Any, cell: str, texts: list[str]) -> None:
    quoted = cell.replace('"', '""')
    table = f',user_input,retrieved_contexts,response\n0,Q?,"{quoted}",A.\n'
    report = desk.take("ragas", desk.file("t.csv", table))
    assert [chunk["text"] for chunk in desk.results("t")[0]["retrieved"]] == texts
    assert report["kept"] == {"column 1": 1}


@pytest.mark.parametrize(
    "columns",
    [
        {"question": ["Q?", "R?"], "contexts": [["a"], ["b", "c"]], "answer": ["x", "y"]},
        {
            "question": {"0": "Q?", "1": "R?"},
            "contexts": {"0": ["a"], "1": ["b", "c"]},
            "answer": {"0": "x", "1": "y"},
        },
    ],
    ids=["datasets", "pandas"],
)
def test_columns_in_the_place_of_rows(desk: Any, columns: Any) -> None:
    desk.take("ragas", desk.file("t.json", json.dumps(columns)))
    assert [case["question"] for case in desk.cases()] == ["Q?", "R?"]
    results = desk.results("t")
    assert [one["answer"] for one in results] == ["x", "y"]
    assert [chunk["text"] for chunk in results[1]["retrieved"]] == ["b", "c"]


def test_why_a_source_holds_no_case(desk: Any) -> None:
    turns = [{"user_input": [{"content": "Hi", "type": "ai"}]}]
    said = desk.refused("ragas", desk.file("t.json", json.dumps(turns)))
    assert "messages before the first question: 1; samples without a question: 1" in said


def test_booleans_of_other_tools_and_lists_in_cells(desk: Any) -> None:
    rows = [{"question": "Q?", "answerable": 0}, {"question": "R?", "answerable": True}]
    report = desk.take("json", desk.rows("r.jsonl", rows))
    assert [case["answerable"] for case in desk.cases()] == [False, True]
    assert report["changed"]["answerable: 0 or 1, written as false or true"] == 1
    table = 'question,answerable,tags,min_citations,difficulty\nQ?,TRUE,"[""a"", ""b""]",2,3\n'
    desk.take("json", desk.file("t.csv", table), out="table")
    (case,) = desk.cases("table")
    assert (case["answerable"], case["tags"], case["difficulty"]) == (True, ["a", "b"], "3")
    assert desk.labels("pipeline_labels", "table")[case["id"]] == {"min_citations": 2}


def test_the_place_of_a_langchain_passage() -> None:
    """Its file is ``source`` where that has the form of a path, its heading the levels together."""
    from formats.shared.item import Notes, chunk_of

    metadata = {"source": "shop/a.md", "Header 2": "Late", "Header 1": "Returns"}
    notes = Notes()
    chunk = chunk_of({"page_content": "Text.", "metadata": metadata}, 1, notes)
    assert (chunk.rel_path, chunk.heading_path) == ("shop/a.md", "Returns > Late")
    assert not +notes.left_out
    plain = chunk_of({"page_content": "Text.", "metadata": {"source": "wiki"}}, 1, notes)
    assert (plain.rel_path, plain.doc_id) == (None, "wiki")
    nameless = chunk_of({"page_content": "Text.", "": "A."}, 1, notes)
    assert (nameless.chunk_id, nameless.score_final, nameless.rel_path) == ("1", None, None)


def test_an_import_says_that_files_are_named_differently(desk: Any) -> None:
    """The labels have a folder that the answers' passages lack."""
    rows = [
        {
            "id": f"q{n}",
            "question": f"Why {n}?",
            "gold_supports": [{"rel_path": f"shop/f{n}.md", "heading_path": "A"}],
            "answer": "So it is.",
            "contexts": [{"text": "Of it.", "metadata": {"source": f"f{n}.md"}}],
        }
        for n in range(3)
    ]
    words = ("import", "json", desk.rows("rows.jsonl", rows), "--output", str(desk.folder / "out"))
    assert "gold files seen 0 of 3; 3 of 3 by their last part" in desk.convert(*words).stderr
