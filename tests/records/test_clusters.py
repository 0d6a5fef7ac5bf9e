"""Which cases are counted together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.rows import each_row

from records.cases import TestCase
from records.clusters import clusters_of, label_of, read_clusters
from records.errors import StorageError
from records.id_numbers import id_number
from records.targets import Decide, read_decide


def case(case_id: str, **fields: Any) -> TestCase:
    return msgspec.convert({"id": case_id, "question": "?"} | fields, TestCase)


def support(path: str) -> dict[str, Any]:
    return {"gold_supports": [{"rel_path": path}, {"rel_path": "other.md"}]}


@each_row(
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
    with pytest.raises(StorageError, match=r"--set cluster=nurse: no case of .* has that key"):
        read_clusters(path, "nurse")
    with pytest.raises(StorageError, match="--set cluster=group: no case of"):
        read_clusters(path, "group")
    assert read_clusters(path).by == "none"
    path.write_text("[]\n")
    with pytest.raises(StorageError, match=r"set.jsonl:1: is no"):
        read_clusters(path)
    with pytest.raises(StorageError, match=r"set.jsonl:1: is not a JSON object"):
        read_clusters(path, "patient")
    path.write_text('{"question": "?"}\n')
    with pytest.raises(StorageError, match=r"set.jsonl:1: id: is missing"):
        read_clusters(path, "patient")


def written(folder: Path, golds: list[dict[str, Any]]) -> Path:
    """A set with a case for each first gold support."""
    path = folder / "set.jsonl"
    lines = [{"id": f"q{n}", "question": "?"} | gold for n, gold in enumerate(golds)]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path


def place(path: str, heading: str = "", **more: Any) -> dict[str, Any]:
    return {"gold_supports": [{"rel_path": path, "heading_path": heading} | more]}


def test_cases_of_few_documents_are_put_together_by_section_else_quote_else_alone(
    tmp_path: Path,
) -> None:
    golds = [place("a.pdf", "Fees"), place("a.pdf", "Fees"), place("b.pdf", "Fees")]
    golds += [place("a.pdf", snippets=["Two weeks."])]
    golds += [place("a.pdf", quote={"exact": "Two weeks."})]
    golds += [place("a.pdf"), {"group": "talk"} | place("a.pdf", "Fees"), {"relevant_docs": ["a"]}]
    clustering = read_clusters(written(tmp_path, golds))
    assert [clustering.labels[f"q{n}"] for n in range(8)] == [
        "section: a.pdf#Fees", "section: a.pdf#Fees", "case: q2",
        "quote: a.pdf: Two weeks.", "quote: a.pdf: Two weeks.", "case: q5", "case: q6", "case: q7",
    ]  # fmt: skip
    assert clustering.by == "section"
    assert clustering.sentence == "8 cases: 6 in 4 clusters, 2 without one, of 3 documents"
    assert clustering.scope == "on these 3 documents; other documents may differ"


def test_documents_count_as_if_all_had_as_many_cases(tmp_path: Path) -> None:
    """Six documents of two cases: 12² / (6 · 2²) = 6. With three more in the first: 15² / (5² +
    5 · 2²) = 5."""
    golds = [place(f"{n % 6}.md", f"h{n}") for n in range(12)]
    six = read_clusters(written(tmp_path, golds))
    assert (six.by, six.effective, six.scope) == ("doc", 6.0, "")
    fixed = read_clusters(tmp_path / "set.jsonl", documents="fixed")
    assert (fixed.by, fixed.fixed, fixed.documents) == ("none", True, 6)
    path = written(tmp_path, golds + [place("0.md", f"h{n}") for n in range(3)])
    assert read_clusters(path, documents="sampled").effective == 5.0
    assert read_clusters(path).labels["q0"] == "section: 0.md#h0"
    assert read_clusters(path, documents="sampled").labels["q0"] == "document: 0.md"
    assert read_clusters(path, "doc").by == "doc"
    # of the first six cases, one a document, nothing is few
    some = read_clusters(path, ids={id_number(f"q{n}") for n in range(6)})
    assert (some.sentence, some.fixed) == ("6 cases, each by itself", False)


def test_targets_declare_how_documents_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "targets.toml"
    assert read_decide(path).documents == "auto"
    path.write_text('[decide]\ndocuments = "sampled"\nprimary = ["pipeline.pass"]\n')
    assert read_decide(path) == Decide(("pipeline.pass",), "sampled")
    path.write_text('[decide]\ndocuments = "few"\n')
    with pytest.raises(StorageError, match=r"decide\.documents: must be one of auto, fixed"):
        read_decide(path)
