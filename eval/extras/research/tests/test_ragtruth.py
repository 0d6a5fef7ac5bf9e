"""Answers with spans that people marked."""

from __future__ import annotations

import hashlib
from typing import Any

ANSWER = "The hall opens at nine each day. It seats 500 people in two tiers."
SPAN = {"start": 33, "end": 65, "text": ANSWER[33:65], "label_type": "Baseless Info"}


def original(desk: Any) -> list[str]:
    """The two files of the data set itself."""
    asked = {"question": "When?", "passages": "passage 1:One.\n\npassage 2:Two.\n"}
    info: list[dict[str, Any]] = [{"source_id": "1", "task_type": "QA", "source": "MARCO"}]
    info[0] |= {"source_info": asked}
    for name, text in (("2", "An article."), ("9", "Nobody answers.")):
        info.append({"source_id": name, "task_type": "Summary", "source_info": text})
    answers = [
        {"id": "0", "source_id": "1", "model": "m-a", "response": ANSWER, "labels": [SPAN]},
        {"id": "1", "source_id": "2", "model": "m-a", "response": "Short text.", "labels": []},
        {"id": "2", "source_id": "1", "model": "m/b", "response": "At nine o'clock.", "split": "t"},
    ]
    return [desk.rows("response.jsonl", answers), desk.rows("source_info.jsonl", info)]


def test_sources_become_cases_and_systems_runs(desk: Any) -> None:
    report = desk.take("ragtruth", *original(desk))
    of_qa, of_summary = {"task_type": "QA", "source": "MARCO"}, {"task_type": "Summary"}
    assert desk.cases() == [
        {"id": "1", "question": "When?", "tags": ["QA"], "metadata": of_qa},
        {"id": "2", "question": "(Summary)", "tags": ["Summary"], "metadata": of_summary},
    ]
    first, second = desk.results("m-a")
    assert (first["test_case_id"], first["answer"]) == ("1", ANSWER)
    assert [one["text"] for one in first["retrieved"]] == ["One.", "Two."]
    assert {one["doc_id"] for one in first["retrieved"]} == {"1"}
    assert [one["text"] for one in second["retrieved"]] == ["An article."]
    assert desk.results("m-b")[0]["answer"] == "At nine o'clock."
    unnamed = "sources without a question: the task replaces it"
    assert report["changed"] == {"run 'm/b': named 'm-b'": 1, unnamed: 1}
    assert report["left_out"] == {"id": 3, "sources without an answer": 1, "split": 1}


def test_spans_are_kept_and_become_labels_of_claims(desk: Any) -> None:
    desk.take("ragtruth", *original(desk))
    spans = desk.read("results/m-a/human_spans.jsonl")
    assert spans[0] == {"case_id": "1", "repeat": 0, "spans": [SPAN]}
    first, second = [
        row for row in desk.read("labels/verdicts/people-m-a.jsonl") if row["case_id"] == "1"
    ]
    # the span covers the second sentence
    assert (first["label"], second["label"]) == ("supported", "not_supported")
    assert first["claim"] == "The hall opens at nine each day."
    assert first["answer_sha256"] == hashlib.sha256(ANSWER.encode()).hexdigest()
    assert [first["claim_id"], second["claim_id"]] == ["1", "2"]


def test_flat_rows(desk: Any) -> None:
    row = {"source_id": "s", "question": "Q?", "contexts": ["c"], "system": "x"}
    rows = [
        row | {"answer": ANSWER, "spans": [SPAN | {"text": "moved"}]},
        row | {"answer": "Other words.", "system": "y"},
    ]
    report = desk.take("ragtruth", desk.rows("rows.jsonl", rows))
    assert report["changed"] == {"spans whose own text differs from the answer at their place": 1}
    assert report["rows"] == {"answers": 2, "spans": 1, "answers without marks": 1}
    assert len(desk.results("x")) == len(desk.results("y")) == 1


def test_faults_are_told_at_once(desk: Any) -> None:
    rows: list[Any] = [
        {"question": "no source", "answer": "x"},
        {"source_id": "1", "question": "Q?", "model": "m", "response": "abc"},
        {"source_id": "1", "question": "Q?", "model": "m", "response": "again"},
        {"source_id": "2", "question": "Q?", "model": "m"},
        {"source_id": "3", "question": "Q?", "response": "abc", "labels": [{"start": 1, "end": 4}]},
        {"source_id": "4", "question": "Q?", "response": "abc", "labels": [{"start": True}]},
        "text",
    ]
    path = desk.rows("r.jsonl", rows)
    said = desk.refused("ragtruth", path)
    for place in (
        f"{path}:1: source_id: is missing",
        f"{path}:3: model: 'm' already has an answer to '1' on an earlier line",
        f"{path}:4: response: is missing",
        f"{path}:5: labels: is not a list of {{start, end, …}} within the answer",
        f"{path}:6: labels: is not a list",
        f"{path}:7: source_id: is missing",
    ):
        assert place in said


def test_an_answer_that_nobody_marked_gets_no_labels(desk: Any) -> None:
    row = {"source_id": "1", "question": "Q?", "model": "m", "response": "The hall opens at nine."}
    report = desk.take("ragtruth", desk.rows("a.jsonl", [row]))
    assert report["rows"]["answers without marks"] == 1
    assert not (desk.folder / "out/labels").exists()
    assert not (desk.folder / "out/results/m/human_spans.jsonl").exists()
    read: dict[str, Any] = row | {"labels": []}
    desk.take("ragtruth", desk.rows("b.jsonl", [read]), out="read")
    (label,) = desk.read("labels/verdicts/people-m.jsonl", "read")
    assert label["label"] == "supported"


def test_a_group_of_several_questions(desk: Any) -> None:
    """Conversations: the group alone does not tell which answers belong together."""
    rows = [
        {"group": "g", "question": question, "system": system, "answer": "A.", "reference": "R."}
        for system in ("m", "n")
        for question in ("First?", "Then?")
    ]
    desk.take("ragtruth", desk.rows("a.jsonl", rows))
    first, then = desk.cases()
    assert (first["question"], then["question"]) == ("First?", "Then?")
    assert first["id"].startswith("g-")
    assert first["reference_answer"] == "R."
    assert [one["test_case_id"] for one in desk.results("n")] == [first["id"], then["id"]]
