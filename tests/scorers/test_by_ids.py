"""A list of plain ids scores alike as columns, one by one, and as passages with ids and ranks."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorers.contract import ScoreOutcome
from scorers.loop import score_run
from scorers.retrieval import RetrievalScorer
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
    result = TestResult("q", retrieved=[*ids], references=cited)
    expected = scorer.score(case, TestResult("q", retrieved=[*chunks], references=cited))
    assert scorer.score(case, result) == expected
    if (key := scorer.key(case, result)) is not None:
        ((row, evidence),) = scorer.score_columns([key])
        assert (row, {**evidence, "found": [*evidence["found"]]}) == expected


class OneByOne(RetrievalScorer):
    """Scores every answer by itself."""

    def key(self, case: TestCase, result: TestResult) -> None:
        """No answer is decided by its ranks alone."""


@pytest.mark.parametrize("gain", ["linear", "exp"])
def test_a_run_has_the_same_bytes_as_columns_and_one_by_one(tmp_path: Path, gain: Any) -> None:
    draw = random.Random(7)
    places = [f"p{number}" for number in range(40)]
    cases, answers = [], []
    for number in range(1000):
        gold = draw.sample(places, draw.randint(1, 12))
        grades = {name: draw.choice([0.5, 1.0, 2.0, 3.0]) for name in gold}
        ungraded = number % 9 == 0
        labels = {"relevant_chunks": gold} if ungraded else {"chunk_relevance_grades": grades}
        ids = draw.sample(places, draw.randint(0, 25)) + ["p1"] * (number % 50 == 0)
        cases.append({"id": f"q{number}", "question": "?", "group": f"g{number % 300}", **labels})
        answers += [
            {"test_case_id": f"q{number}", "repeat": repeat, "retrieved": ids[repeat:]}
            for repeat in range(1 + (number % 100 == 0))
        ]
    for name, rows in (("set", cases), ("results", answers)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    files = []
    for scorer in (RetrievalScorer(gain=gain), OneByOne(gain=gain)):
        score_run(tmp_path, tmp_path / "set.jsonl", scorer)
        names = ("metrics.json", "slices.json", "scores/retrieval.jsonl")
        files.append([(tmp_path / name).read_bytes() for name in names])
    assert files[0] == files[1]


class AllMissing(RetrievalScorer):
    """A subclass that overrides ``score`` alone: nothing applies."""

    def score(self, case: TestCase, result: TestResult) -> ScoreOutcome:
        return self._nothing("of this subclass"), {}


def test_a_subclass_that_overrides_score_is_asked_for_ids_too(tmp_path: Path) -> None:
    """By hand: one answer that finds its gold; the subclass says that no metric applies to it."""
    case = {"id": "q", "question": "?", "relevant_chunks": ["a"]}
    (tmp_path / "set.jsonl").write_text(json.dumps(case) + "\n")
    answer = {"test_case_id": "q", "retrieved": ["a"]}
    (tmp_path / "results.jsonl").write_text(json.dumps(answer) + "\n")
    for scorer, scored in ((RetrievalScorer(), 1), (AllMissing(), 0)):
        section = score_run(tmp_path, tmp_path / "set.jsonl", scorer)
        assert section["n"].get("mrr", 0) == scored


def test_the_short_way_is_for_ids_alone() -> None:
    scorer = RetrievalScorer()
    case = TestCase("q", "?", chunk_relevance_grades={"a": 1.0})
    key = (2,), (1.0,)
    assert scorer.key(case, TestResult("q", retrieved=["x", "a"])) == key
    assert scorer.key(case, TestResult("q", retrieved=["y", "a"])) == key
    assert scorer.key(case, TestResult("q", retrieved=["a", "a"])) is None
    assert scorer.key(case, TestResult("q", retrieved=["x"], references=[Reference()])) is None
    assert scorer.key(case, TestResult("q", retrieved=[RetrievedChunk("a")])) is None
    judged = TestCase("q", "?", chunk_relevance_grades={"a": 1.0, "x": 0.0})
    assert scorer.key(judged, TestResult("q", retrieved=["x", "a"])) is None
