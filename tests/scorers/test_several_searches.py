"""Answers that saw the passages of several searches: which metric takes what."""

from __future__ import annotations

from typing import Any

import pytest

from ragmetrics.catalogue import KS
from records.cases import TestCase, case_from_dict
from records.checked_results import checked_result
from records.results import TestResult, union_of
from scorers.groundedness import GroundednessScorer
from scorers.retrieval import SEVERAL, RetrievalScorer

A, B, C = (
    {"chunk_id": n, "rel_path": f"{n}.md", "heading_path": "H", "text": f"Text of {n} in full."}
    for n in "abc"
)


def answered(*searches: list[dict[str, Any]], answer: str = "Text of a in full.") -> TestResult:
    listed = [{"query": f"q{n}", "retrieved": found} for n, found in enumerate(searches)]
    return checked_result({"answer": answer, "searches": listed}, "one", "?")


def case(*paths: str, snippets: list[str] | None = None) -> TestCase:
    supports = [
        {"rel_path": path, "heading_path": "H", "snippets": snippets or []} for path in paths
    ]
    made, problems = case_from_dict({"id": "one", "question": "?", "gold_supports": supports})
    assert made is not None, problems
    return made


def scores(
    scorer: Any, case: TestCase, result: TestResult
) -> tuple[dict[str, Any], dict[str, str]]:
    row, _ = scorer.score(case, result)
    names = [metric.name for metric in scorer.metrics]
    return dict(zip(names, row.values, strict=True)), dict(row.reasons)


def test_recall_is_of_the_first_k_of_each_search_and_no_ranking_is_made_up() -> None:
    """Gold a is first in search 1, gold c second in search 2: at k 1 one of two is found, at k 3
    both; as one list of four, c would be third or fourth."""
    result = answered([A, B], [B, C])
    assert (result.seen, [chunk.chunk_id for chunk in result.chunks()]) == (
        "union",
        ["a", "b", "c"],
    )
    values, reasons = scores(RetrievalScorer(), case("a.md", "c.md"), result)
    assert (KS[0], KS[1]) == (1, 3)
    assert [values[f"evidence_recall@{k}"] for k in (1, 3)] == [0.5, 1.0]
    assert [values[f"recall_any@{k}"] for k in (1, 3)] == [1.0, 1.0]
    assert [values[f"recall_all@{k}"] for k in (1, 3)] == [0.0, 1.0]
    for name in ("precision@1", "f1@3", "ndcg@3", "map@3", "mrr"):
        assert values[name] is None
        assert reasons[name] == SEVERAL


def test_snippets_of_several_searches_count_together() -> None:
    """One is in what the first search brought, the other in what the second did."""
    result = answered([A], [C])
    gold = case("a.md", snippets=["Text of a in full.", "Text of c in full."])
    values, _ = scores(RetrievalScorer(), gold, result)
    assert values["snippet_recall@1"] == 1.0


def test_one_search_is_scored_as_ever() -> None:
    one, listed = answered([A, B], []), answered([A, B])
    assert one.retrieved_from_search == 1
    gold = case("a.md", "c.md")
    assert scores(RetrievalScorer(), gold, one) == scores(RetrievalScorer(), gold, listed)
    assert scores(RetrievalScorer(), gold, one)[0]["mrr"] == 1.0


def test_a_claim_of_the_first_search_is_supported() -> None:
    """Its words stand in what the first of two searches brought, which is no fabrication."""
    values, _ = scores(GroundednessScorer(), case("a.md"), answered([A], [B]))
    assert values["claim_support_rate"] == 1.0


def test_results_of_tools_ground_an_answer_and_are_no_passages() -> None:
    result = TestResult("one", "?", answer="It rains in Lyon all day.")
    result.seen_tools = ["It rains in Lyon all day."]
    values, _ = scores(GroundednessScorer(), case("a.md"), result)
    assert values["claim_support_rate"] == 1.0
    _, reasons = scores(RetrievalScorer(), case("a.md"), result)
    assert set(reasons.values()) == {"passages are not mapped"}


def test_a_number_that_fits_several_lists_cites_nothing() -> None:
    answer = "Text of a in full [1]."
    several = scores(GroundednessScorer(), case("a.md"), answered([A], [B], answer=answer))
    assert several[0]["citation_validity_form"] is None
    assert several[1]["citation_validity_form"] == "the number fits several lists"
    one = scores(GroundednessScorer(), case("a.md"), answered([A], answer=answer))
    assert one[0]["citation_validity_form"] == 1.0


def test_a_passage_of_two_searches_is_seen_once() -> None:
    lists = [chunks for _, chunks in answered([A, B], [B, C]).searched()]
    assert [(c.chunk_id, c.rank) for c in union_of(lists)] == [("a", 1), ("b", 2), ("c", 3)]


@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
def test_ids_alone_are_known_by_their_names(ids: list[str]) -> None:
    result = answered([{"chunk_id": n} for n in ids], [{"chunk_id": "a"}])
    assert [chunk.chunk_id for chunk in result.chunks()] == ids
