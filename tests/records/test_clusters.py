"""Which cases are counted together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from records.cases import TestCase
from records.clusters import clusters_of, label_of, read_clusters
from records.errors import StorageError


def case(case_id: str, **fields: Any) -> TestCase:
    return msgspec.convert({"id": case_id, "question": "?"} | fields, TestCase)


def support(path: str) -> dict[str, Any]:
    return {"gold_supports": [{"rel_path": path}, {"rel_path": "other.md"}]}


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"group": "talk 7", **support("a.md")}, "group: talk 7"),
        ({"group": 7}, "group: 7"),
        ({"group": "", **support("a.md")}, "document: a.md"),
        ({**support("a.md"), "relevant_docs": ["d1"]}, "document: a.md"),
        ({"relevant_docs": ["d1", "d2"], "relevant_chunks": ["c1"]}, "document: d1"),
        # the document with the highest grade; none when every grade says "not relevant"
        ({"relevance_grades": {"d1": 1, "d2": 3, "d3": 3}}, "document: d2"),
        ({"relevance_grades": {"d1": 0}, "relevant_chunks": ["c1"]}, "chunk: c1"),
        ({"chunk_relevance_grades": {"c2": 2}}, "chunk: c2"),
        ({}, None),
    ],
)
def test_a_case_belongs_to_its_group_else_to_its_first_gold_document(
    fields: dict[str, Any], label: str | None
) -> None:
    assert label_of(case("q", **fields)) == label


def test_cases_of_a_document_share_a_label_and_others_have_their_own() -> None:
    cases = [case("q1", **support("a.md")), case("q2", **support("b.md"))]
    cases += [case("q3", **support("a.md")), case("q4")]
    clustering = clusters_of(cases)
    assert clustering.by == "doc"
    assert [clustering.labels[c.id] for c in cases] == [
        "document: a.md", "case: q2", "document: a.md", "case: q4",
    ]  # fmt: skip
    assert clustering.sentence == "4 cases: 3 in 2 documents, 1 without one"
    assert clusters_of(cases[:3]).sentence == "3 cases in 2 documents"
    assert clusters_of(cases, "none").labels["q1"] == "case: q1"


def test_long_labels_of_many_cases_are_those_of_the_first_that_has_them() -> None:
    paths = [f"{'ä' * 40}/{n}.md" for n in range(2000)]
    cases = [
        case(f"c{n}", **support(paths[n % 2000 if n < 3000 else n - 2000])) for n in range(3500)
    ]
    clustering = clusters_of(cases)
    # 0 to 999 come again at 2000 to 2999, 1000 to 1499 at 3000 to 3499; 1500 to 1999 are alone
    expected = {f"c{n}": f"document: {paths[n]}" for n in range(1500)}
    expected |= {f"c{n + 2000}": f"document: {paths[n]}" for n in range(1500)}
    expected |= {f"c{n}": f"case: c{n}" for n in range(1500, 2000)}
    assert {own.id: clustering.labels[own.id] for own in cases} == expected
    assert clustering.sentence == "3,500 cases in 2,000 documents"


def test_without_a_label_that_recurs_every_case_stands_by_itself() -> None:
    cases = [case("q1", **support("a.md")), case("q2", **support("b.md"))]
    for by in ("auto", "doc", "none"):
        clustering = clusters_of(cases, by)
        assert (clustering.by, clustering.sentence) == ("none", "2 cases, each by itself")
    assert clusters_of([]).by == "none"


def test_a_group_comes_before_the_document_and_names_the_way() -> None:
    cases = [case("q1", group="g", **support("a.md")), case("q2", **support("a.md"))]
    cases += [case("q3", group="g")]
    clustering = clusters_of(cases)
    assert clustering.by == "group"
    assert clustering.labels["q1"] == clustering.labels["q3"] == "group: g"
    assert clustering.labels["q2"] == "case: q2"
    assert clusters_of(cases, "doc").labels["q1"] == "document: a.md"
    assert clusters_of(cases, "category").by == "none"  # no case has one


def test_any_key_of_the_lines_can_put_cases_together(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(
        '{"id": "q1", "question": "?", "patient": ["p", "x"]}\n'
        '{"case_id": "q2", "question": "?", "patient": "p"}\n'
        '{"id": "q3", "question": "?"}\n'
    )
    clustering = read_clusters(path, "patient")
    assert clustering.by == "patient"
    assert clustering.labels["q1"] == clustering.labels["q2"] == "patient: p"
    assert clustering.sentence == "3 cases: 2 in 1 value of patient, 1 without one"
    with pytest.raises(StorageError, match=r"--cluster nurse: no case of .* has that key"):
        read_clusters(path, "nurse")
    with pytest.raises(StorageError, match="--cluster group: no case of"):
        read_clusters(path, "group")
    assert read_clusters(path).by == "none"
    path.write_text("[]\n")
    with pytest.raises(StorageError, match=r"set.jsonl:1: is no"):
        read_clusters(path)
    with pytest.raises(StorageError, match=r"set.jsonl:1: is no JSON object"):
        read_clusters(path, "patient")
    path.write_text('{"question": "?"}\n')
    with pytest.raises(StorageError, match=r"set.jsonl:1: id: is missing"):
        read_clusters(path, "patient")
