"""The searches of single results by hand, and what the whole run says of each search."""

from __future__ import annotations

from typing import Any

import pytest

from ragmetrics.catalogue.searches import ROWS
from records.cases import GoldSupport, TestCase
from records.results import RetrievedChunk, Search, SearchedChunk, TestResult
from records.scores import ScoreLine
from scorers.searches import SearchesScorer

NAMES = [metric.name for metric in ROWS]


def case(*paths: str, **fields: Any) -> TestCase:
    return TestCase("q", "?", gold_supports=[GoldSupport(path, "Part") for path in paths], **fields)


def search(paths: str, **fields: Any) -> Search:
    """A search that brought the files of these letters."""
    chunks = [
        SearchedChunk(letter, rel_path=f"{letter}.md", heading_path="Part", rank=rank)
        for rank, letter in enumerate(paths, 1)
    ]
    return Search(f"about {paths}", retrieved=[*chunks], **fields)


def result(searches: list[Search], retrieved: str = "", **fields: Any) -> TestResult:
    chunks = [
        RetrievedChunk(letter, rel_path=f"{letter}.md", heading_path="Part", rank=rank)
        for rank, letter in enumerate(retrieved, 1)
    ]
    return TestResult("q", retrieved=[*chunks], searches=searches, **fields)


def score(labels: TestCase, answer: TestResult) -> tuple[dict[str, Any], dict[str, str], Any]:
    row, evidence = SearchesScorer().score(labels, answer)
    return dict(zip(NAMES, row.values, strict=True)), dict(row.reasons), evidence


FIVE = [search("ax"), search("xa"), search("bc"), search("", error="timeout"), search("")]


def test_what_each_search_and_all_of_them_bring() -> None:
    """Gold a, b, c. Evidence recall of the searches: 1/3, 1/3, 2/3, none (failed), 0 (empty).

    Their mean is (1/3 + 1/3 + 2/3 + 0) / 4 = 1/3. The union has all three with the third search;
    the second brought only what the first had. The answer saw a and b: c was lost.
    """
    scores, reasons, evidence = score(case("a.md", "b.md", "c.md"), result(FIVE, "ab"))
    once = ("union_evidence_recall", "lost_supports", "searches_without_new", "empty_searches")
    assert scores == {
        **dict.fromkeys((*once, "failed_searches"), 1.0),
        **{"complete_at_search": 3.0, "never_complete": 0.0, "search_count": 5.0},
        "search_evidence_recall": pytest.approx(1 / 3),
    }
    assert reasons == {}
    assert evidence["lost"] == [2]
    assert [row["new"] for row in evidence["searches"]] == [[1, 2], [], [1, 2], [], []]
    assert "evidence_recall" not in evidence["searches"][3]


def test_one_whole_group_is_enough() -> None:
    """(a and b) or c. The first search has half of the first group, the second has all of the
    other one; the union is complete there, and nothing is missing for want of b."""
    labels = case("a.md", "b.md", "c.md", required_support_groups=[[0, 1], [2]])
    scores, _, evidence = score(labels, result([search("a"), search("c")], "ac"))
    assert [row["evidence_recall"] for row in evidence["searches"]] == [0.5, 1.0]
    assert (scores["union_evidence_recall"], scores["complete_at_search"]) == (1.0, 2.0)
    assert scores["lost_supports"] == 0.0


def test_evidence_that_is_never_complete_has_no_search_that_completes_it() -> None:
    """Two of three supports: 2/3 in the union, and each search has 1/3."""
    scores, reasons, _ = score(case("a.md", "b.md", "c.md"), result([search("a"), search("b")]))
    assert scores["union_evidence_recall"] == pytest.approx(2 / 3)
    assert scores["search_evidence_recall"] == pytest.approx(1 / 3)
    assert (scores["never_complete"], scores["complete_at_search"]) == (1.0, None)
    assert reasons == {"complete_at_search": "never complete"}


def test_nothing_is_lost_where_retrieved_was_derived_from_a_search() -> None:
    answer = result([search("a"), search("b")], "b", retrieved_from_search=2)
    scores, reasons, _ = score(case("a.md", "b.md"), answer)
    assert scores["lost_supports"] is None
    assert reasons == {"lost_supports": "retrieved was derived from a search"}


def test_without_gold_the_counts_remain_and_without_searches_nothing() -> None:
    answer = result([search("a"), search("a")])
    for labels, why in ((case(), "no gold"), (case("a.md", answerable=False), "unanswerable")):
        scores, reasons, _ = score(labels, answer)
        assert (scores["search_count"], scores["searches_without_new"]) == (2.0, 1.0)
        assert scores["union_evidence_recall"] is None
        assert set(reasons.values()) == {why}
    scores, reasons, evidence = score(case("a.md"), TestResult("q"))
    assert (set(scores.values()), reasons, evidence) == ({None}, {"*": "no searches"}, {})


def test_a_failed_search_is_no_search_that_found_nothing() -> None:
    failed = [search("", error="503"), search("", error="503")]
    scores, reasons, _ = score(case("a.md"), result(failed))
    assert (scores["failed_searches"], scores["empty_searches"]) == (2.0, 0.0)
    assert (scores["union_evidence_recall"], scores["never_complete"]) == (None, None)
    assert set(reasons.values()) == {"every search failed"}


def test_a_passage_is_new_by_its_text_not_by_its_id() -> None:
    """Bots number the hits of each search anew: id 1 twice, other text, the same file."""
    chunks = [
        SearchedChunk("1", rel_path="a.md", text=text, text_length=len(text), rank=1)
        for text in ("one", "two", "one")
    ]
    searches = [Search(retrieved=[chunk]) for chunk in chunks]
    scores, _, evidence = score(case("a.md"), result(searches))
    assert [row["new"] for row in evidence["searches"]] == [[1], [1], []]
    assert scores["searches_without_new"] == 1.0


def test_the_section_names_the_search_and_the_turn_that_found_nothing() -> None:
    """Two conversations of four turns, three searches a turn; the second search of turn 4 was
    rewritten wrongly. It finds 0 of the evidence there, and 1 everywhere else."""
    scorer = SearchesScorer()
    lines = []
    for conversation in ("c1", "c2"):
        for turn in (1, 2, 3, 4):
            labels = case("a.md", conversation=conversation, turn=turn)
            wrong = search("z") if turn == 4 else search("a")
            _, evidence = scorer.score(labels, result([search("a"), wrong, search("a")]))
            assert isinstance(evidence, dict)
            lines.append(ScoreLine("q", 0, "scored", {}, evidence=evidence))
    section = scorer.aggregate({"by": {}}, iter(lines), 0)
    recalls = {
        (turn, number): row["evidence_recall"]
        for turn, table in section["by_turn"].items()
        for number, row in table.items()
    }
    assert [key for key, recall in recalls.items() if recall != 1.0] == [("4", "2")]
    assert recalls["4", "2"] == 0.0
    # over all turns: 6 of the 8 second searches found it
    counts = {"searches": 8, "failed": 0, "empty": 0, "nothing_new": 6, "n": 8}
    assert section["by_search"]["2"] == counts | {"evidence_recall": 0.75}
