"""Context quality of single results by hand, and document frequencies of a whole run."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics.catalogue.context import ROWS
from ragmetrics.context import METRICS
from ragmetrics.text.tfidf import Frequencies
from records.cases import GoldFact
from scorers.context import ContextScorer, _read_frequencies
from storage import ResultsWriter, RetrievedChunk, RunConfig, TestCase, TestResult

NAMES = [metric.name for metric in ROWS]
CATS = "cats sleep all day long"
DOGS = "dogs bark all night long"
CASE = TestCase("q", "?")


def chunk(name: str, text: str | None, **fields: Any) -> RetrievedChunk:
    return RetrievedChunk(name, text=text, **fields)


def frequencies(*texts: str) -> Frequencies:
    found = Frequencies()
    found.add(texts)
    return found


def score(
    texts: list[str], case: TestCase = CASE, **options: Any
) -> tuple[dict[str, Any], dict[str, str], Any]:
    scorer = ContextScorer(frequencies(*texts), **options)
    chunks: list[RetrievedChunk | str] = [chunk(f"c{n}", text) for n, text in enumerate(texts)]
    row, evidence = scorer.score(case, TestResult("q", retrieved=chunks))
    return dict(zip(NAMES, row.values, strict=True)), dict(row.reasons), evidence


def test_the_catalogue_has_a_row_for_each_metric() -> None:
    assert list(METRICS) == NAMES


def test_equal_chunks_are_wholly_redundant() -> None:
    """Two equal chunks and one other: one pair of three is 1, the others 0; 1 of 3 chunks repeats.

    3-grams of CATS and DOGS: none shared, so (1 + 0 + 0) / 3.
    """
    found, _, evidence = score([CATS, CATS, DOGS])
    assert found["redundancy_ngram"] == pytest.approx(1 / 3)
    assert found["redundant_chunks_ngram"] == pytest.approx(1 / 3)
    assert found["redundant_chunks_tfidf"] == pytest.approx(1 / 3)
    assert evidence["most_alike"] == {"chunks": ["c0", "c1"], "overlap": 1.0}
    # words: 15 in all; distinct: cats sleep all day long dogs bark night = 8
    assert found["unique_token_ratio"] == pytest.approx(8 / 15)


def test_one_chunk_repeats_nothing() -> None:
    found, _, _ = score([CATS])
    assert found["redundancy_ngram"] == found["redundancy_tfidf"] == 0.0
    assert found["unique_token_ratio"] == 1.0


@each_row(
    ("retrieved", "reason"),
    [
        ([chunk("a", "cut", text_length=900), chunk("b", DOGS)], "text was truncated"),
        ([chunk("a", None)], "no chunk texts"),
        (["a", "b"], "no chunk texts"),
        ([], "no contexts"),
    ],
)
def test_without_full_texts_nothing_applies(retrieved: list[Any], reason: str) -> None:
    row, _ = ContextScorer(frequencies()).score(CASE, TestResult("q", retrieved=retrieved))
    assert (set(row.values), row.reasons) == ({None}, (("*", reason),))


def test_facts_aliases_and_where_they_stand() -> None:
    """15 days stands in two chunks, accrues monthly in one, sick leave in none.

    Coverage 2 of 3 facts, dispersion (2 + 1) / 2.
    """
    facts = [GoldFact("15 days vacation", ["fifteen paid days off"])]
    facts += [GoldFact("accrues monthly"), GoldFact("sick leave")]
    case = TestCase("q", "?", gold_facts=facts)
    texts = ["You get 15 days vacation.", "That is fifteen paid days off; it accrues monthly."]
    found, _, evidence = score(texts, case)
    assert found["fact_coverage"] == pytest.approx(2 / 3)
    assert found["fact_dispersion"] == 1.5
    assert [fact["chunks"] for fact in evidence["facts"]] == [["c0", "c1"], ["c1"], []]


def test_facts_that_no_chunk_holds_have_no_dispersion() -> None:
    found, reasons, _ = score([CATS], TestCase("q", "?", gold_facts=[GoldFact("sick leave")]))
    assert found["fact_coverage"] == 0.0
    assert found["fact_dispersion"] is None
    assert reasons["fact_dispersion"] == "no fact found"
    assert score([CATS])[1]["fact_coverage"] == "no gold_facts"


def test_diversity_by_query_type() -> None:
    bands = {"faq": (0.0, 0.5), "research": (0.9, 1.0)}
    same = [CATS, CATS]  # redundancy_tfidf 1
    for kind, passed in (("faq", 0.0), ("research", 1.0), ("other", None), (None, None)):
        found, reasons, _ = score(same, TestCase("q", "?", query_type=kind), bands=bands)
        assert found["diversity_ok"] == passed, kind
        assert ("diversity_ok" in reasons) == (passed is None)


def test_top_counts_ranks_not_places_in_the_list() -> None:
    third, first = chunk("third", CATS, rank=3), chunk("first", CATS, rank=1)
    result = TestResult("q", retrieved=[third, first, chunk("second", DOGS, rank=2)])
    evidence: Any
    row, evidence = ContextScorer(frequencies(CATS, DOGS), top=2).score(CASE, result)
    assert evidence["most_alike"]["chunks"] == ["first", "second"]
    assert row.values[0] == 0.0


def test_frequencies_of_a_run_count_each_text_once_and_leave_cut_ones_out(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, "run", store_full_text=True)
    writer.write_config(RunConfig("run"))
    cut = chunk("x", "cats cut", text_length=999)
    first: list[RetrievedChunk | str] = [chunk("a", CATS), chunk("b", DOGS)]
    again: list[RetrievedChunk | str] = [chunk("a", CATS), cut, "an id"]
    writer.write_result(TestResult("q1", retrieved=first))
    writer.write_result(TestResult("q2", retrieved=again))
    writer.finish(["q1", "q2"])
    ours = _read_frequencies(tmp_path / "run").similarity([CATS, DOGS])
    assert ours == pytest.approx(frequencies(CATS, DOGS).similarity([CATS, DOGS]))
    other = frequencies(CATS, DOGS, "cats cut").similarity([CATS, DOGS])
    assert ours[0, 1] != pytest.approx(other[0, 1])


def test_a_scorer_can_be_sent_to_another_process() -> None:
    scorer = ContextScorer(frequencies(CATS, DOGS))
    result = TestResult("q", retrieved=[chunk("a", CATS), chunk("b", DOGS)])
    assert pickle.loads(pickle.dumps(scorer)).score(CASE, result) == scorer.score(CASE, result)


@settings(deadline=None)
@given(st.lists(st.text(max_size=200), max_size=5))
def test_any_text_scores_within_its_ranges(texts: list[str]) -> None:
    found, reasons, _ = score(texts)
    for metric in ROWS:
        value = found[metric.name]
        if value is None:
            assert {metric.name, "*"} & reasons.keys()
        else:
            assert value >= (metric.low or 0.0)
            assert metric.high is None or value <= metric.high
