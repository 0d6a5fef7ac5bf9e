"""A list of plain ids scores as the same list of passages with ids and ranks."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scorers.retrieval import RetrievalScorer, _only_ids
from storage import Reference, RetrievedChunk, TestCase, TestResult

names = st.sampled_from(["a", "b", "c", "d", "e", ""])
cases = st.builds(
    TestCase,
    id=st.just("q"),
    question=st.just("?"),
    answerable=st.none() | st.booleans(),
    chunk_relevance_grades=st.dictionaries(
        names, st.sampled_from([-1.0, 0.0, 1.0, 2.5, 3.0]), max_size=4
    ),
    relevant_chunks=st.lists(names, max_size=2),
)


@settings(max_examples=1000, deadline=None)
@given(
    cases,
    st.lists(names, max_size=14),
    st.lists(st.builds(Reference, chunk_id=st.none() | names), max_size=2),
    st.sampled_from(["linear", "exp"]),
    st.sampled_from([(1, 3, 5, 10), (2,), (1, 20)]),
    st.booleans(),
)
def test_ids_score_as_passages_with_these_ids(
    case: TestCase,
    ids: list[str],
    cited: list[Reference],
    gain: Any,
    ks: tuple[int, ...],
    documents: bool,
) -> None:
    scorer = RetrievalScorer(ks, "chunk", gain, documents=documents)
    chunks = [RetrievedChunk(name, rank=rank) for rank, name in enumerate(ids, 1)]
    row, evidence = scorer.score(case, TestResult("q", retrieved=[*ids], references=cited))
    expected, facts = scorer.score(case, TestResult("q", retrieved=[*chunks], references=cited))
    assert row == expected
    assert {
        key: [*value] if key in ("found", "hits") else value for key, value in evidence.items()
    } == facts


def test_the_short_way_is_for_ids_alone() -> None:
    case = TestCase("q", "?", chunk_relevance_grades={"a": 1.0})
    assert _only_ids(case, TestResult("q", retrieved=["x", "a"])) == ["x", "a"]
    assert _only_ids(case, TestResult("q", retrieved=["x"], references=[Reference()])) is None
    assert _only_ids(case, TestResult("q", retrieved=[RetrievedChunk("a")])) is None
    judged = TestCase("q", "?", chunk_relevance_grades={"a": 1.0, "x": 0.0})
    assert _only_ids(judged, TestResult("q", retrieved=["x", "a"])) is None
    scorer = RetrievalScorer()
    first, again = (scorer.score(case, TestResult("q", retrieved=[name, "a"])) for name in "xy")
    assert first is again  # the gold has the same ranks
