"""Every problem of a set at once, with file and line; nothing is taken that cannot be scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

import storage
from storage import StorageError, read_cases

GOOD = {"id": "a", "question": "Why?"}


def case(**fields: Any) -> dict[str, Any]:
    return GOOD | fields


def write(path: Path, *lines: dict[str, Any] | bytes) -> Path:
    parts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"".join(part + b"\n" for part in parts))
    return path


def problems(path: Path, labels: Path | None = None) -> list[tuple[int | None, str, str]]:
    with pytest.raises(StorageError) as caught:
        read_cases(path, labels)
    assert caught.value.exit_code == 2
    return [(p.line, p.field, p.message) for p in caught.value.problems]


def test_a_whole_case_is_read(tmp_path: Path) -> None:
    support = {"rel_path": "a.md", "heading_path": "A > B", "snippets": ["s"], "grade": 2}
    full = case(answerable=True, category="multi_hop", gold_supports=[support])
    full |= {"required_support_groups": [[0]], "recency_conflict_rule": None, "tags": ["x"]}
    full |= {"chunk_relevance_grades": {"c1": 2, "c2": 0.5}, "latency_budget_ms": {"p95": 900}}
    full |= {"my_own_field": {"kept": "elsewhere"}}
    (one,) = read_cases(write(tmp_path / "set.jsonl", full))
    assert one.gold_supports[0].heading_path == "A > B"
    assert one.required_support_groups == [[0]]
    assert one.chunk_relevance_grades == {"c1": 2.0, "c2": 0.5}


OTHER_NAMES: list[dict[str, Any]] = [
    {"case_id": "q001", "query": "What is the vacation policy?", "query_type": "faq"},
    {"id": "q002", "query": "How?", "case_id": "of another tool"},
    {"case_id": "q003", "question": "When?", "query": "of another tool"},
]


def test_case_id_and_query_stand_for_id_and_question(tmp_path: Path) -> None:
    """Beside the name that they stand for they are unknown keys, which are left alone."""
    path = write(tmp_path / "cases.jsonl", *OTHER_NAMES)
    labels = tmp_path / "labels"
    labels.mkdir()
    write(labels / "pipeline_labels.jsonl", {"case_id": "q001", "min_citations": 1})
    found = read_cases(path, labels)
    assert [one.id for one in found] == ["q001", "q002", "q003"]
    questions = ["What is the vacation policy?", "How?", "When?"]
    assert [one.question for one in found] == questions
    assert (found[0].query_type, found[0].min_citations) == ("faq", 1)
    twice = write(tmp_path / "twice.jsonl", OTHER_NAMES[0], GOOD, GOOD | {"id": "q001"})
    assert problems(twice) == [(3, "id", "'q001' is also the id of line 1; give it another")]
    empty = write(tmp_path / "empty.jsonl", {"case_id": "a", "query": ""})
    assert problems(empty) == [(1, "question", "is empty; write some text")]


def test_null_means_absent_for_optional_fields(tmp_path: Path) -> None:
    (one,) = read_cases(write(tmp_path / "set.jsonl", case(tags=None, gold_supports=None)))
    assert one.tags == []
    assert one.gold_supports == []


def test_all_problems_of_all_lines_come_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path / "set.jsonl",
        case(id="a"),
        case(id="a", tags=["x", 7]),
        {"id": 5, "required_support_groups": [[3]]},
        case(id="c", category="facts"),
        case(id="d", gold_supports=[{"heading_path": "A"}, {"rel_path": "b.md", "grade": 0}]),
        case(id="e", gold_supports=[{"rel_path": "b.md"}], required_support_groups=[[0, 1], []]),
        b'{"id": "f", "question": ',
        b"[1, 2]",
        case(id="", question="  "),
        case(id="g", recency_conflict_rule="newest"),
    )
    found = problems(path)
    assert [(line, field) for line, field, _ in found] == [
        *((2, "tags[1]"), (2, "id"), (3, "question"), (3, "id")),
        *((3, "required_support_groups[0]"), (4, "category"), (5, "gold_supports[0]")),
        *((6, "required_support_groups[0]"), (6, "required_support_groups[1]"), (7, ""), (8, "")),
        *((9, "id"), (9, "question"), (10, "recency_conflict_rule")),
    ]
    said = {(line, field): message for line, field, message in found}
    assert said[2, "tags[1]"] == "is a whole number; write a string"
    assert said[2, "id"] == "'a' is also the id of line 1; give it another"
    assert "use one of: factual, reasoning, multi_hop" in said[4, "category"]
    assert said[5, "gold_supports[0]"] == "lacks 'rel_path'; add it"
    assert said[6, "required_support_groups[0]"] == "index 1 is out of range; allowed: 0 to 0"
    assert "not JSON" in said[7, ""]


def test_the_message_names_file_line_and_field(tmp_path: Path) -> None:
    path = write(tmp_path / "set.jsonl", case(), case(id="b", tags="x"))
    with pytest.raises(StorageError) as caught:
        read_cases(path)
    first, count = str(caught.value.format_message()).splitlines()
    assert first == f"{path}:2: tags: is a string; write a list"
    assert count == "1 problem; nothing was written."


@each_row(
    ("content", "line", "words"),
    [
        (b"", None, "contains no cases"),
        (b"\n \n", None, "contains no cases"),
        (b'\xef\xbb\xbf{"id":"a","question":"b"}\n', 1, "byte order mark"),
        (b'{"id":"a","question":"b"}\r\n{"id":"c","question":"d"}\r\n', 1, "CRLF"),
        (b'{"id":"a","question":"b"}\n\x00\x00\n', 2, "NUL"),
        (b'{"id":"a","question":"b\\u0000"}\n', 1, "NUL"),
        (b'{"id":"a","question":"\xff"}\n', 1, "not JSON"),
        (b'{"id":"a","question":"b"}\n{"id":"' + b"x" * 10**7 + b'"}\n', 2, "longer"),
        (b'{"id":"a","question":"b","chunk_relevance_grades":{"c":1e999}}\n', 1, "infinity"),
        (b'{"id":"a","question":"b","chunk_relevance_grades":{"c":NaN}}\n', 1, "not JSON"),
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, line: int | None, words: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_bytes(content)
    ((at, _, message),) = problems(path)
    assert at == line
    assert words in message


@each_row(
    ("content", "line"),
    [
        (b'{"id":"a","question":"b"}{"id":"c","question":"d"}\n', 1),
        (b'{"id":"a","question":"b"} {"id":"c","question":"d"}\n\n', 1),
        (b'{\n"id":"a",\n"question":"b"\n}\n', 1),
        (b'{"id":"a","question":"b"}\r{"id":"c","question":"d"}\r', 1),
        (b'{"id":"a","question":"b"}\n{"id":"c","question":"d"}{"id":"a","question":"d"}\n', 2),
    ],
)
def test_a_line_is_one_object(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "set.jsonl"
    path.write_bytes(content)
    assert problems(path)[0][0] == line


def test_labels_do_not_change_a_case_behind_its_back(tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    write(
        labels / "cases.jsonl",
        {"case_id": "a", "id": "z", "relevent_docs": ["typo"]},
        {"case_id": "b", "relevant_docs": ["other"]},
    )
    path = write(tmp_path / "set.jsonl", case(), case(id="b", relevant_docs=["own"]))
    found = problems(path, labels)
    places = {(line, field) for line, field, _ in found}  # the last: line 2 of the set
    assert places == {(1, "id"), (1, "relevent_docs"), (2, "relevant_docs")}


def test_labels_that_no_answer_could_meet_are_refused(tmp_path: Path) -> None:
    impossible = case(min_citations=-1, latency_budget_ms={"total": -5, "totl": 9})
    impossible |= {"gold_facts": [{"fact": "x"}, {"fact": " "}], "expected_outcome": "succes"}
    found = problems(write(tmp_path / "set.jsonl", impossible))
    fields = ["expected_outcome", "gold_facts[1]", "min_citations"]
    fields += ["latency_budget_ms.total", "latency_budget_ms.totl"]
    assert [field for _, field, _ in found] == fields


def test_whether_a_fact_is_vital_is_true_or_false(tmp_path: Path) -> None:
    facts = [{"fact": "x", "vital": "okay"}, {"fact": "y", "vital": False}, {"fact": "z"}]
    path = write(tmp_path / "set.jsonl", case(gold_facts=facts))
    assert problems(path) == [(1, "gold_facts[0].vital", "is a string; write true or false")]
    path = write(tmp_path / "set.jsonl", case(gold_facts=facts[1:]))
    assert [fact.vital for fact in read_cases(path)[0].gold_facts] == [False, True]


def test_a_faulty_label_line_gives_one_message(tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    write(labels / "groundedness_labels.jsonl", {"case_id": "a", "expected_claims": "x"})
    path = write(tmp_path / "set.jsonl", case())
    assert problems(path, labels) == [(1, "expected_claims", "is a string; write a list")]


def test_an_absent_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        read_cases(tmp_path / "none.jsonl")


def test_problems_far_into_a_large_set_have_the_right_line(tmp_path: Path) -> None:
    lines: list[dict[str, Any] | bytes] = [
        case(id=f"q{n}", question="w" * 200) for n in range(2000)
    ]
    lines[1500] = case(id="q7")
    lines[1800] = b"{"
    found = problems(write(tmp_path / "set.jsonl", *lines))
    assert [line for line, _, _ in found] == [1501, 1801]
    assert found[0][2].startswith("'q7' is also the id of line 8;")


def test_labels_are_joined_by_case_id(tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    write(labels / "retrieval_labels.jsonl", {"case_id": "a", "relevant_docs": ["d1"]})
    write(labels / "groundedness_labels.jsonl", {"case_id": "a", "expected_claims": ["x is y"]})
    write(labels / "safety_labels.jsonl", {"case_id": "s1", "kind": "attack", "text": "own prompt"})
    (one,) = read_cases(write(tmp_path / "set.jsonl", case()), labels)
    assert one.relevant_docs == ["d1"]
    assert one.expected_claims == ["x is y"]


def test_all_problems_of_labels_come_at_once(tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    write(
        labels / "cases.jsonl",
        {"case_id": "a", "query_type": "faq"},
        {"case_id": "a", "query_type": "faq"},
        {"case_id": "zz", "min_citations": 1},
        {"query_type": "faq"},
        {"case_id": "b", "min_citations": "two"},
    )
    write(labels / "pipeline_labels.jsonl", {"case_id": "a", "query_type": "research"})
    path = write(tmp_path / "set.jsonl", case(), case(id="b"))
    found = problems(path, labels)
    places = [(line, field) for line, field, _ in found]
    assert places[:3] == [(2, "case_id"), (4, "case_id"), (5, "min_citations")]
    assert any("another label file" in message for _, _, message in found)


def test_a_label_of_an_unknown_case_is_named(tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    write(labels / "cases.jsonl", {"case_id": "zz", "min_citations": 1})
    ((line, field, message),) = problems(write(tmp_path / "set.jsonl", case()), labels)
    assert (line, field) == (1, "case_id")
    assert "'zz' is not in" in message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FIELDS = sorted(storage.TestCase.__struct_fields__)


@given(st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=6))
def test_no_value_crashes_the_validation(fields: dict[str, Any]) -> None:
    found, findings = storage.case_from_dict(fields)
    assert (found is None) == bool(findings)
    if found is not None:
        assert found.id.strip()
        assert found.question.strip()
