"""Answers that saw the passages of several searches: which metric takes what."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson
from rich.console import Console
from tests.rows import each_row

from decisions.measures import measures
from decisions.primary import PrimaryScores, paired_table
from ragmetrics.catalogue import BY_DEFINITION, KS, find
from records.cases import TestCase, case_from_dict
from records.checked_results import checked_result
from records.metrics import read_metrics
from records.results import Reference, TestResult, union_of
from scorers.groundedness import GroundednessScorer
from scorers.loop import score_run
from scorers.retrieval import SEVERAL, RetrievalScorer
from scorers.section_page import section_blocks
from terminal.print_page import print_blocks

NAME = "retrieval.evidence_recall@5"
EVIDENCE_RECALL = find("evidence_recall")

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


@each_row("ids", [["a"], ["a", "b"]])
def test_ids_alone_are_known_by_their_names(ids: list[str]) -> None:
    result = answered([{"chunk_id": n} for n in ids], [{"chunk_id": "a"}])
    assert [chunk.chunk_id for chunk in result.chunks()] == ids


@each_row("searches", [[[A, B]], [[A, B], [B, C]]])
def test_the_row_of_a_recall_that_is_per_search_says_so(
    tmp_path: Path, searches: list[list[dict[str, Any]]]
) -> None:
    """One of two answers saw two searches; a run without such an answer has no word of it."""
    supports = [{"rel_path": "a.md", "heading_path": "H", "snippets": []}]
    cases = [{"id": name, "question": "?", "gold_supports": supports} for name in ("one", "two")]
    results = [answered(*searches), answered([A, B])]
    results[1].test_case_id = "two"
    eval_set, folder = tmp_path / "eval_set.jsonl", tmp_path / "run"
    folder.mkdir()
    eval_set.write_bytes(b"".join(orjson.dumps(case) + b"\n" for case in cases))
    lines = (result.to_dict(store_full_text=True) for result in results)
    (folder / "results.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    section = score_run(folder, eval_set, RetrievalScorer())
    stored = read_metrics(folder)["sections"]["retrieval"]
    rows = measures({"retrieval": stored}, {})
    titles = [row.title for row in rows.values()]
    out = StringIO()
    print_blocks(Console(file=out, width=200), section_blocks(section, [*rows.values()]))
    printed = out.getvalue()
    if len(searches) == 1:
        assert "per_search" not in section
        assert sorted(titles) == sorted(section["mean"])
        assert "per search" not in printed
        assert stored["definitions"]["evidence_recall@5"] == EVIDENCE_RECALL.definition
        return
    assert section["per_search"] == 1
    assert section["n"]["evidence_recall@5"] == 2
    assert section["n"]["ndcg@5"] == 1
    assert {"evidence_recall@5 (per search)", "recall_all@1 (per search)", "mrr"} <= {*titles}
    assert "snippet_recall@3 (per search)" in printed
    assert "per search: 1 answer saw several searches." in printed
    assert stored["definitions"]["evidence_recall@5"] == EVIDENCE_RECALL.per_search_definition
    assert stored["definitions"]["ndcg@5"] == find("ndcg").definition
    row = rows["retrieval", "evidence_recall@5"]
    assert (row.higher_is_better, row.band) == (True, "too few to tell")


def test_recalls_per_search_and_of_one_list_are_not_compared() -> None:
    """The id of the one is the id of the other with a name and the next version; whoever compares
    metrics of one definition sees two, and both have the same row of the catalogue."""
    of_list, of_searches = EVIDENCE_RECALL.definition, EVIDENCE_RECALL.per_search_definition
    name, _, version = of_list.partition("@")
    assert of_searches == f"{name}_per_search@{int(version) + 1}"
    assert BY_DEFINITION[of_list] is BY_DEFINITION[of_searches] is EVIDENCE_RECALL
    old, new = (
        PrimaryScores("r", (NAME,), ("one",), np.ones((1, 1)), {NAME: definition})
        for definition in (of_list, of_searches)
    )
    assert paired_table(old, new).names == ()
    assert paired_table(old, old).names == (NAME,)


@each_row(
    ("mark", "references", "score"),
    [
        ("[a.md]", [], 1.0),  # a path is the same in every list
        ("[1]", [{"index": 1, "chunk_id": "a"}], 1.0),
        ("[1]", [{"index": 1}], None),  # the reference says no more than the mark
        ("[2]", [{"index": 1, "chunk_id": "a"}], None),
        ("[a.md] [1]", [], None),
    ],
)
def test_a_citation_by_name_counts_over_all_that_was_seen(
    mark: str, references: list[dict[str, Any]], score: float | None
) -> None:
    result = answered([A], [B], answer=f"Text of a in full {mark}.")
    result.references = [Reference(**reference) for reference in references]
    values, reasons = scores(GroundednessScorer(), case("a.md"), result)
    assert values["citation_validity_form"] == score
    told = reasons.get("citation_validity_form")
    assert told == (None if score else "the number fits several lists")


@each_row(
    ("tools", "support"),
    [
        ([], 0.0),  # nothing was retrieved and nothing called: the claim rests on nothing
        ([{"name": "order", "error": "no such order"}], 0.0),
        ([{"name": "order", "result": "Your order A17 was shipped on Monday."}], 1.0),
        ([{"name": "weather", "result": "It rains in Porto and the wind is strong."}], 0.0),
    ],
)
@each_row("retrieved", [None, []])
def test_an_answer_may_rest_on_the_result_of_a_tool_alone(
    tools: list[dict[str, Any]], support: float, retrieved: list[Any] | None
) -> None:
    told = {"answer": "Your order A17 was shipped on Monday.", "tools": tools}
    told |= {} if retrieved is None else {"retrieved": retrieved}
    result = checked_result(told, "one", "?")
    values, _ = scores(GroundednessScorer(), case(), result)
    is_unknown = retrieved is None and not any("result" in call for call in tools)
    assert values["claim_support_rate"] == (None if is_unknown else support)


def test_results_of_tools_that_are_the_passages_are_no_second_source() -> None:
    """Once as the same list in JSON, once as text; a call that hands over the answer is none."""
    listed = json.dumps({"hits": [{"text": A["text"]}, {"text": B["text"]}]})
    calls = [
        {"name": "search", "result": listed},
        {"name": "find", "result": f"1. {A['text']}\n\n2. {B['text']}"},
        {"name": "final_answer", "arguments": {"answer": "Yes, it is."}, "result": "Yes, it is."},
        {"name": "order", "result": "Order A17: shipped."},
        {"name": "order", "result": "Order A17: shipped."},
    ]
    told = {"answer": "Yes, it is.", "retrieved": [A, B], "tools": calls}
    result = checked_result(told, "one", "?")
    sources = [(chunk.chunk_id, chunk.text, chunk.rank) for chunk in result.tool_sources()]
    assert sources == [("tool-1", "Order A17: shipped.", 3)]
    assert [chunk.chunk_id for chunk in result.seen_chunks(1)] == ["a", "tool-1"]


def test_of_several_searches_the_other_ones_result_is_a_source() -> None:
    """The bot lists the passages of its last search alone; both are among its calls."""
    calls = [{"name": "search", "result": A["text"]}, {"name": "search", "result": B["text"]}]
    told = {"answer": A["text"], "retrieved": [B], "tools": calls}
    result = checked_result(told, "one", "?")
    assert [chunk.text for chunk in result.tool_sources()] == [A["text"]]
    values, _ = scores(GroundednessScorer(), case(), result)
    assert values["claim_support_rate"] == 1.0


def test_a_result_that_was_stored_cut_is_a_cut_source() -> None:
    """Of 500 characters 200 are stored: no claim can be compared with them."""
    told = {"answer": "Your order A17 was shipped on Monday.", "retrieved": []}
    tools = [{"name": "order", "result": "Order A17 was shipped on Monday. " + "x" * 500}]
    whole = checked_result(told | {"tools": tools}, "one", "?")
    stored = msgspec.convert(whole.to_dict(), TestResult)
    assert [source.truncated for source in whole.tool_sources()] == [False]
    assert [source.truncated for source in stored.tool_sources()] == [True]
    values, reasons = scores(GroundednessScorer(), case(), stored)
    assert values["claim_support_rate"] is None
    assert "truncated" in reasons["claim_support_rate"]
