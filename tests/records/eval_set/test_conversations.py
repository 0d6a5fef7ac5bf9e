"""Turns of conversations: in order, beside each other, in the set alone, clustered together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from records.cases import TestCase
from records.clusters import clustered_by, clusters_of, label_of
from records.conversations import conversations_of
from records.editing import Document
from records.errors import StorageError
from records.labels import read_cases
from records.results import EARLIER_TURN_FAILED, ErrorInfo, TestResult, is_root_failure


def turn(conversation: str, number: int, **fields: Any) -> dict[str, Any]:
    """A line of a set: its id is made of conversation and turn."""
    line = {"id": f"{conversation}{number}", "question": "And then?"}
    return line | {"conversation": conversation, "turn": number} | fields


def write(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "set.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def problems(path: Path, labels: Path | None = None) -> list[tuple[int | None, str]]:
    with pytest.raises(StorageError) as caught:
        read_cases(path, labels)
    return [(problem.line, problem.field) for problem in caught.value.problems]


ALONE = {"id": "x", "question": "Who?"}
BOT, EMPTY = {"role": "bot", "content": "Hi"}, {"role": "user", "content": ""}


@each_row(
    ("lines", "expected", "words"),
    [
        ([turn("a", 1), turn("a", 3)], (2, "turn"), "lacks turn 2"),
        ([turn("a", 1), turn("a", 4)], (2, "turn"), "lacks turns 2 to 3"),
        ([turn("a", 2)], (1, "turn"), "begins with turn 2, not 1; add the missing turns or "),
        ([turn("a", 1), turn("a", 1, id="b")], (2, "turn"), "twice"),
        ([*(turn("a", n) for n in (1, 2, 3)), turn("a", 2, id="b")], (4, "turn"), "after turn 3"),
        ([turn("a", 1), ALONE, turn("a", 2)], (3, "conversation"), "between its turns"),
        ([turn("a", 1), turn("b", 1), turn("a", 2)], (3, "conversation"), "between its turns"),
        ([turn("a", 1, group="g"), turn("a", 2)], (2, "group"), "has 'g', this one none; give all"),
        ([turn("a", 1, history=[])], (1, "history"), "keep one of them"),
        ([ALONE | {"conversation": "a"}], (1, "turn"), "is missing, but conversation is given"),
        ([ALONE | {"turn": 1}], (1, "conversation"), "is missing, but turn is given"),
        ([turn("a", 0)], (1, "turn"), "count from 1"),
        ([ALONE | {"turn": "1", "conversation": "a"}], (1, "turn"), "write a whole number"),
        ([ALONE | {"conversation": 7, "turn": 1}], (1, "conversation"), "write a string"),
        ([ALONE | {"standalone": "no"}], (1, "standalone"), "write true or false"),
        ([ALONE | {"question_alone": " "}], (1, "question_alone"), "is empty"),
        ([ALONE | {"history": "user: Hi"}], (1, "history"), "write a list"),
        ([ALONE | {"history": [{"role": "user"}]}], (1, "history[0]"), "lacks 'content'"),
        ([ALONE | {"history": [BOT]}], (1, "history[0].role"), "use one of: user, assistant, s"),
        ([ALONE | {"history": [EMPTY]}], (1, "history[0].content"), "is empty"),
    ],
)
def test_what_is_no_conversation_is_refused_with_its_line(
    tmp_path: Path, lines: list[dict[str, Any]], expected: tuple[int, str], words: str
) -> None:
    path = write(tmp_path, *lines)
    with pytest.raises(StorageError) as caught:
        read_cases(path)
    assert expected in [(p.line, p.field) for p in caught.value.problems]
    assert words in str(caught.value)


def test_a_faulty_turn_does_not_make_the_next_one_faulty(tmp_path: Path) -> None:
    lines = [turn("a", 1), turn("a", 2, answerable="yes"), turn("a", 3)]
    assert problems(write(tmp_path, *lines)) == [(2, "answerable")]


def test_conversations_across_blocks_of_the_file_are_one(tmp_path: Path) -> None:
    # a block is about 16 kB; a turn here has 3 kB, so each block ends within a conversation
    lines = [turn(f"c{n:02d}-", at, reference_answer="x" * 3000) for n in range(9) for at in (1, 2)]
    cases = read_cases(write(tmp_path, *lines))
    assert [len(turns) for turns in conversations_of(cases)] == [2] * 9
    with_gap = [line for line in lines if line["id"] != "c07-1"]
    assert problems(write(tmp_path, *with_gap)) == [(15, "turn")]


def test_the_fields_of_turns_stand_in_the_set_alone(tmp_path: Path) -> None:
    path = write(tmp_path, turn("a", 1), turn("a", 2))
    (tmp_path / "cases.jsonl").write_text(
        '{"case_id": "a1", "turn": 1}\n{"case_id": "a2", "group": "g"}\n', encoding="utf-8"
    )
    with pytest.raises(StorageError, match=r"cases\.jsonl:1: turn: belongs in the set"):
        read_cases(path, tmp_path)
    # a group that a label file gives to one turn alone cuts the conversation as well
    (tmp_path / "cases.jsonl").write_text('{"case_id": "a2", "group": "g"}\n', encoding="utf-8")
    assert problems(path, tmp_path) == [(2, "group")]


def test_turns_of_a_conversation_stand_together() -> None:
    ends = [("a", 1), ("a", 2), ("a", 3), ("a", 4), (None, None), ("b", 1)]
    cases = [TestCase(str(n), "?", conversation=c, turn=t) for n, (c, t) in enumerate(ends)]
    ids = [[case.id for case in turns] for turns in conversations_of(cases)]
    assert ids == [["0", "1", "2", "3"], ["4"], ["5"]]


def test_scorers_read_the_question_that_is_whole() -> None:
    assert TestCase("a", "And Peter?").whole_question() == "And Peter?"
    assert TestCase("a", "And Peter?", standalone=False).whole_question() is None
    alone = TestCase("a", "And Peter?", standalone=False, question_alone="Who is Peter?")
    assert alone.whole_question() == "Who is Peter?"


def test_turns_are_counted_together_before_documents_and_after_groups() -> None:
    cases = [
        TestCase("a1", "?", conversation="a", turn=1, relevant_docs=["d"]),
        TestCase("a2", "?", conversation="a", turn=2),
        TestCase("b", "?", relevant_docs=["d"]),
        TestCase("c", "?", group="g", conversation="c", turn=1),
    ]
    clustering = clusters_of(cases[:3])
    assert (clustering.by, clustering.labels["a1"]) == ("conversation", clustering.labels["a2"])
    assert clustering.labels["b"] != clustering.labels["a1"]
    labels = [label_of(case) for case in cases]
    assert labels[0] == labels[1]
    assert clustered_by(labels) == clustered_by(labels[:3] * 2) == "conversation"
    assert clustered_by(labels * 2) == "group"
    assert clustered_by(labels[2:3] * 2) == "doc"
    assert clustered_by([*labels[1:], None, None]) == "none"


def test_a_new_turn_is_written_behind_its_conversation() -> None:
    lines = [turn("a", 1), turn("a", 2), turn("b", 1), ALONE]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    document = Document(data, lambda raw: (json.loads(raw)["id"], ""), cases=True)
    document.patch({"a3": turn("a", 3), "b2": turn("b", 2), "y": ALONE | {"id": "y"}}, [])
    ids = [json.loads(line)["id"] for line in document.render().splitlines()]
    assert [each for each in ids if each != "y"] == ["a1", "a2", "a3", "b1", "b2", "x"]


def test_a_line_says_which_history_it_was_asked_with_and_others_say_nothing() -> None:
    assert not {"asked_with", "session", "history_sha256"} & TestResult("a").to_dict().keys()
    line = TestResult("a", asked_with="live", session="s").to_dict()
    assert (line["asked_with"], line["session"], line["history_sha256"]) == ("live", "s", None)


def test_only_the_first_failure_of_a_conversation_is_a_failed_call() -> None:
    failed = TestResult("a", status="error", error=ErrorInfo("timeout"))
    behind = TestResult("b", status="error", error=ErrorInfo(EARLIER_TURN_FAILED))
    assert list(map(is_root_failure, (failed, behind, TestResult("c")))) == [True, False, False]
