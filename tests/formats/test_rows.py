"""Plain rows in and out, ragas samples, and rows as other tools write them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.shared.item import Ids

OLD = {"question": "Q?", "answer": "A.", "contexts": ["c1", "c2"], "ground_truth": "T."}
NEW = {
    "user_input": "Q?",
    "response": "A.",
    "retrieved_contexts": ["c1", "c2"],
    "reference": "T.",
    "reference_contexts": ["gold"],
    "rubrics": {"score1": "bad"},
}


def test_a_json_list_becomes_a_set_and_a_run(desk: Any) -> None:
    rows = [
        {"question": "Q?", "reference_answer": "T.", "answer": "A.", "contexts": ["c"], "x": 1},
        {"id": 7, "question": "Q?", "tags": ["t"], "relevant_docs": ["d"]},
        {"question": "Q?"},
    ]
    report = desk.take("json", desk.file("answers.json", json.dumps(rows)))
    first, second, third = desk.cases()
    named = {"id": Ids().make("Q?"), "question": "Q?"}
    assert first == named | {"reference_answer": "T.", "metadata": {"x": 1}}
    assert second == {"id": "7", "question": "Q?", "tags": ["t"]}
    assert third == {"id": f"{first['id']}-2", "question": "Q?"}
    (result,) = desk.results("answers")
    assert (result["test_case_id"], result["answer"]) == (first["id"], "A.")
    assert result["retrieved"][0]["text"] == "c"
    assert report["kept"] == {"x": 1}
    assert report["changed"] == {
        "id: a number, written as text": 1,
        "rows without an id, named by a hash of the question": 2,
    }


def test_ids_are_the_same_for_another_file_of_the_questions() -> None:
    one, two = Ids(), Ids()
    assert [one.make(q) for q in ("a", "b", "a")] == [two.make(q) for q in ("a", "b", "a")]
    assert one.make("b").endswith("-2")
    assert one.make("a").endswith("-3")


@pytest.mark.parametrize(("row", "gold"), [(OLD, None), (NEW, ["gold"])])
def test_ragas_by_its_old_and_its_new_names(desk: Any, row: Any, gold: Any) -> None:
    desk.take("ragas", desk.rows("samples.jsonl", [row]))
    (case,) = desk.cases()
    assert (case["question"], case["reference_answer"]) == ("Q?", "T.")
    (result,) = desk.results("samples")
    assert result["answer"] == "A."
    assert [one["text"] for one in result["retrieved"]] == ["c1", "c2"]
    if gold:
        assert desk.labels("retrieval_labels")[case["id"]] == {"gold_contexts": gold}
        assert case["metadata"] == {"rubrics": {"score1": "bad"}}


def test_ragas_csv_with_lists_in_pythons_spelling(desk: Any) -> None:
    """This is how EvaluationDataset.to_csv writes them."""
    head = "user_input,retrieved_contexts,response,reference,rubrics\n"
    row = "Q?,\"['it\\'s one', 'two, three']\",A.,T.,{'score1': 'bad'}\n"
    desk.take("ragas", desk.file("s.csv", "\ufeff" + head + row))
    assert [one["text"] for one in desk.results("s")[0]["retrieved"]] == ["it's one", "two, three"]
    assert desk.cases()[0]["metadata"] == {"rubrics": {"score1": "bad"}}


def test_ragas_ids_and_earlier_ground_truths(desk: Any) -> None:
    ids = {"retrieved_context_ids": ["x", 2], "reference_context_ids": [2]}
    rows: list[dict[str, Any]] = [
        ids | {"user_input": "Q?", "retrieved_contexts": ["a", "b"]},
        {"question": "R?", "ground_truths": ["one", "two", "three"]},
    ]
    report = desk.take("ragas", desk.rows("s.jsonl", rows))
    names = [one["chunk_id"] for one in desk.results("s")[0]["retrieved"]]
    assert names == ["x", "2"]
    assert list(desk.labels("retrieval_labels").values()) == [{"relevant_chunks": ["2"]}]
    assert desk.cases()[1]["reference_answer"] == "one"
    assert report["changed"]["reference_context_ids: numbers, written as texts"] == 1
    assert report["left_out"] == {"further ground_truths": 2}


def test_wrong_types_are_told_with_their_places(desk: Any) -> None:
    path = desk.rows(
        "s.jsonl",
        [
            {"user_input": 5},
            {"user_input": " "},
            {"response": "no question"},
            {"user_input": "a", "retrieved_contexts": ["b", 3]},
            {"user_input": "a", "retrieved_contexts": ["b"], "retrieved_context_ids": ["x", "y"]},
            {"user_input": "a", "response": ["x"]},
        ],
    )
    said = desk.refused("ragas", path)
    for place in (
        f"{path}:1: user_input: is not a text",
        f"{path}:2: user_input: is empty",
        f"{path}:3: user_input: is missing",
        f"{path}:4: retrieved_contexts[1]: is not a text",
        f"{path}:5: retrieved_context_ids: has 2 ids for 1 retrieved_contexts",
        f"{path}:6: response: is not a text",
    ):
        assert place in said


def test_what_plain_rows_cannot_hold_is_counted(desk: Any) -> None:
    desk.take(
        "json", desk.rows("rows.jsonl", [{"id": "a", "question": "Q?", "category": "general"}])
    )
    report = desk.give("json", "r.jsonl")
    assert desk.text("r.jsonl") == '{"id":"a","question":"Q?"}\n'
    assert report["left_out"] == {"case.category": 1}


def test_a_failed_call_is_no_answer(desk: Any) -> None:
    desk.take("json", desk.rows("rows.jsonl", [{"id": "a", "question": "Q?", "answer": "A."}]))
    path = desk.folder / "out/results/rows/results.jsonl"
    row = json.loads(path.read_text())
    row |= {"status": "error", "error": {"kind": "timeout"}, "answer": None}
    path.write_text(json.dumps(row) + "\n")
    report = desk.give("json", "r.jsonl", run="rows")
    assert json.loads(desk.text("r.jsonl")) == {"id": "a", "question": "Q?"}
    assert report["left_out"]["failed calls"] == 1
    assert report["left_out"]["result.error"] == 1


def test_nothing_retrieved_is_told_from_not_told(desk: Any) -> None:
    """An empty list is a result that a metric counts; a missing one is no result at all."""
    rows = [
        {"user_input": "none found?", "response": "A.", "retrieved_contexts": []},
        {"user_input": "not told?", "response": "A."},
        {"user_input": "no answer?", "retrieved_contexts": []},
    ]
    desk.take("ragas", desk.rows("s.jsonl", rows))
    results = desk.results("s")
    assert [row.get("retrieved") for row in results] == [[], None, []]
    assert [row.get("answer") for row in results] == ["A.", "A.", None]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
QUESTION = TEXT.filter(str.strip)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"id": QUESTION, "question": QUESTION},
        optional={
            "reference_answer": TEXT.filter(bool),
            "answer": TEXT,
            "contexts": st.lists(TEXT.filter(bool), max_size=3),
        },
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda row: row["id"],
)


@settings(max_examples=60)
@given(rows=ROWS)
def test_plain_rows_come_back_as_they_were(desk_class: Any, rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk = desk_class(Path(folder))
        desk.take("json", desk.file("s.json", json.dumps(rows)))
        answered = any("answer" in one or "contexts" in one for one in rows)
        report = desk.give("json", "back.jsonl", run="s" if answered else "")
        assert [json.loads(line) for line in desk.text("back.jsonl").split("\n")[:-1]] == rows
        assert report["lossless"]


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


CONTEXTS: list[Any] = [["a"], ["b", "c"]]
COLUMNS = {"question": ["Q?", "R?"], "contexts": CONTEXTS, "answer": ["x", "y"]}
NUMBERED = {name: {str(n): v for n, v in enumerate(vs)} for name, vs in COLUMNS.items()}


@pytest.mark.parametrize("columns", [COLUMNS, NUMBERED], ids=["datasets", "pandas"])
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
