"""BEIR folders become sets."""

from __future__ import annotations

import csv
import io
import string
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

HEAD = "query-id\tcorpus-id\tscore\n"


def folder_of(desk: Any, name: str = "data") -> str:
    first = {"_id": "1", "text": "One?", "metadata": {"source": "x"}}
    others = [{"_id": 2, "text": "Two?", "metadata": {}}, {"_id": "3", "text": "Three?"}]
    desk.rows(f"{name}/queries.jsonl", [first, *others])
    desk.file(f"{name}/qrels/test.tsv", HEAD + "1\td1\t2\n2\td 2\t1\n")
    desk.file(f"{name}/qrels/train.tsv", HEAD + "3\td1\t1\n")
    return str(desk.folder / name)


def test_a_folder_becomes_a_set(desk: Any) -> None:
    report = desk.take("beir", folder_of(desk))
    assert desk.cases() == [
        {"id": "1", "question": "One?", "metadata": {"source": "x"}, "tags": ["split:test"]},
        {"id": "2", "question": "Two?", "tags": ["split:test"]},
        {"id": "3", "question": "Three?", "tags": ["split:train"]},
    ]
    assert desk.labels("retrieval_labels")["2"] == {"relevance_grades": {"d 2": 1}}
    assert report["kept"] == {"source": 1}
    assert report["changed"] == {"_id: a number, written as text": 1}


def test_one_split_alone(desk: Any) -> None:
    report = desk.take("beir", folder_of(desk), more=["--split", "train"])
    assert [case["id"] for case in desk.cases()] == ["3"]
    assert report["left_out"] == {"queries that the split does not judge": 2}
    assert "no such file" in desk.refused("beir", folder_of(desk), more=["--split", "dev"])


def test_runs_may_be_named_behind_the_folder(desk: Any) -> None:
    run = desk.file("bm25.txt", "1 Q0 d1 1 3.5 tag\n")
    desk.take("beir", folder_of(desk), run)
    assert desk.results("bm25")[0]["retrieved"][0]["doc_id"] == "d1"


def test_faults_are_told_at_once(desk: Any) -> None:
    folder = folder_of(desk)
    desk.file(
        "data/queries.jsonl", '{"_id": "1", "text": "a"}\n{"text": "b"}\n{"_id": "1", "text":'
    )
    desk.file("data/qrels/test.tsv", HEAD + "1\td1\n1\td1\tx\n")
    said = desk.refused("beir", folder)
    for place in (
        "queries.jsonl:2: _id: is missing",
        "queries.jsonl:3: column",
        "test.tsv:2: has 2 columns",
        "test.tsv:3: score: 'x' is not a finite number",
    ):
        assert place in said
    desk.rows("data/queries.jsonl", [{"_id": "1", "text": "a"}, {"_id": "1", "text": "b"}])
    assert "topic '1' is there twice" in desk.refused("beir", folder)
    assert "no such file" in desk.refused("beir", str(desk.folder / "nowhere"))


IDS = st.text(string.printable.replace("\n", "").replace("\r", "") + "é\u2028", min_size=1)
NAMES = IDS.filter(lambda name: name.strip() and not set(name) & set("\x0b\x0c\x1c\x1d\x1e\x85"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)


@settings(max_examples=50)
@given(
    queries=st.dictionaries(NAMES, TEXTS.filter(str.strip), min_size=1, max_size=4),
    grades=st.dictionaries(NAMES, st.integers(-1, 3), min_size=1, max_size=4),
)
def test_any_ids_and_texts_are_read(
    desk_class: Any, queries: dict[str, str], grades: dict[str, int]
) -> None:
    """Tables as Python's csv writes them, with quotes where a name has a tab or a quote."""
    with tempfile.TemporaryDirectory() as folder:
        desk = desk_class(Path(folder))
        desk.rows("d/queries.jsonl", [{"_id": q, "text": text} for q, text in queries.items()])
        rows = [[q, name, str(grade)] for q in queries for name, grade in grades.items()]
        table = io.StringIO()
        csv.writer(table, "excel-tab", lineterminator="\n").writerows([HEAD.split(), *rows])
        desk.file("d/qrels/test.tsv", table.getvalue())
        desk.take("beir", str(desk.folder / "d"))
        cases = {case["id"]: case["question"] for case in desk.cases()}
        assert cases == queries
        assert desk.labels("retrieval_labels") == {q: {"relevance_grades": grades} for q in queries}
