"""Retrieval metrics by hand, as invariants, and against trec_eval's own code (pytrec_eval)."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Sequence
from math import log2
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics import retrieval as r
from ragmetrics.matching import Matches, match_ids

KS = (1, 3, 5, 10)
DATA = os.environ.get("RAG_EVAL_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="RAG_EVAL_DATA names no folder of TREC data")


def ranked(
    first: Sequence[int | None],
    hits: Sequence[int],
    grades: Sequence[float] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
) -> r.Ranking:
    return r.ranking(Matches(list(first), list(hits)), grades or [3.0] * len(first), groups)


def test_one_support_at_rank_two() -> None:
    one = ranked([2], [2])
    assert [r.recall_any(one, k) for k in (1, 2)] == [0.0, 1.0]
    assert r.recall(one, 3) == 1.0
    assert r.precision(one, 5) == 0.2  # 1 of 5 places, whether filled or not
    assert r.f1(one, 5) == pytest.approx(2 * 0.2 * 1 / 1.2)  # = 1/3
    assert r.ndcg(one, 5) == pytest.approx(1 / log2(3))  # ideal: rank 1, discount 1
    assert r.average_precision(one, 5) == 0.5
    assert r.reciprocal_rank(one) == 0.5
    assert r.reciprocal_rank(one, 1) == 0.0


def test_two_graded_supports_by_hand() -> None:
    # Grades 1 and 3 found at ranks 1 and 3, a third (grade 2) never.
    three = ranked([1, 3, None], [1, 3], [1.0, 3.0, 2.0])
    dcg = 1 / log2(2) + 3 / log2(4)  # 1 + 1.5
    ideal = 3 / log2(2) + 2 / log2(3) + 1 / log2(4)
    assert r.ndcg(three, 3) == pytest.approx(dcg / ideal)
    # exp gain: 2^g - 1 = 1, 7, 3.
    exp = (1 + 7 / 2) / (7 + 3 / log2(3) + 1 / 2)
    assert r.ndcg(three, 3, "exp") == pytest.approx(exp)
    assert r.recall(three, 3) == pytest.approx(2 / 3)
    assert r.precision(three, 3) == pytest.approx(2 / 3)
    # Precision 1/1 at rank 1 and 2/3 at rank 3, over three supports.
    assert r.average_precision(three, 3) == pytest.approx((1 + 2 / 3) / 3)
    assert r.recall_all(three, 10) == 0.0


def test_duplicates_pay_once() -> None:
    # One support, matched by the chunks at ranks 1, 2 and 3.
    same = ranked([1], [1, 2, 3])
    assert r.recall(same, 3) == r.ndcg(same, 3) == r.average_precision(same, 3) == 1.0
    assert r.precision(same, 3) == 1.0  # each of the three places holds a matching chunk
    # Both found at rank 1 by one chunk: gain 3, ideal 3 + 2/log2(3).
    both = ranked([1, 1], [1], [2.0, 3.0])
    assert r.ndcg(both, 5) == pytest.approx(3 / (3 + 2 / log2(3)))
    assert r.recall(both, 1) == 1.0
    assert r.average_precision(both, 1) == 1.0  # each is found at rank 1, precision 1


def test_groups_decide_recall_all_and_evidence_recall_only() -> None:
    grouped = ranked([None, 2, 4], [2, 4], groups=[[0], [1, 2]])
    assert [r.recall_all(grouped, k) for k in KS] == [0.0, 0.0, 1.0, 1.0]
    assert r.recall(grouped, 10) == pytest.approx(2 / 3)
    # Of {1, 2} one support stands at rank 2, the other at 4; of {0} never any.
    assert [r.evidence_recall(grouped, k) for k in KS] == [0.0, 0.5, 1.0, 1.0]


def test_evidence_recall_takes_the_best_group_and_counts_no_related_support() -> None:
    # Supports 3 and 4 are in no group: found or not, they change nothing.
    three = ranked([1, None, None, 2, None], [1, 2], groups=[[0, 1, 2], [0, 1]])
    assert r.evidence_recall(three, 5) == 1 / 2  # {0, 1}: one of two; {0, 1, 2}: one of three
    assert r.recall(three, 5) == 2 / 5
    # A group of six counts as six, also at k = 3: three of six.
    six = ranked([1, 2, 3, 4, 5, 6], range(1, 7), groups=[[0, 1, 2, 3, 4, 5]])
    assert [r.evidence_recall(six, k) for k in (3, 10)] == [0.5, 1.0]
    # An index that is there twice is one support.
    assert r.evidence_recall(ranked([1, None], [1], groups=[[0, 0, 1]]), 5) == 0.5


@given(
    st.lists(st.one_of(st.none(), st.integers(1, 25)), min_size=1, max_size=6),
    st.data(),
    st.integers(1, 30),
)
def test_evidence_recall_is_whole_exactly_when_the_evidence_is(
    first: list[int | None], data: st.DataObject, k: int
) -> None:
    indices = st.lists(st.integers(0, len(first) - 1), min_size=1, max_size=6)
    groups = data.draw(st.one_of(st.none(), st.lists(indices, max_size=4)))
    hits = sorted({rank for rank in first if rank is not None})
    one = ranked(first, hits, groups=groups)
    share = r.evidence_recall(one, k)
    assert (share == 1.0) == (r.recall_all(one, k) == 1.0)
    assert 0.0 <= share <= r.evidence_recall(one, k + 1) <= 1.0
    if not groups:
        assert share == r.recall(one, k)
    cut = r.ranking(Matches(first, hits), [3.0] * len(first), groups, depth=10)
    if k <= 10:
        assert r.evidence_recall(cut, k) == share


def test_nothing_found_is_zero_everywhere() -> None:
    none = ranked([None, None], [])
    values = [f(none, 10) for f in ALL]
    assert values == [0.0] * len(ALL)
    with pytest.raises(ValueError, match="at least one"):
        ranked([], [])


ALL = (
    r.recall_any,
    r.recall_all,
    r.evidence_recall,
    r.recall,
    r.precision,
    r.f1,
    r.ndcg,
    r.average_precision,
    r.reciprocal_rank,
)

ranks = st.one_of(st.none(), st.integers(1, 25))


@st.composite
def rankings(draw: st.DrawFn) -> tuple[list[int | None], list[int], list[float]]:
    first = draw(st.lists(ranks, min_size=1, max_size=6))
    extra = draw(st.lists(st.integers(1, 25), max_size=6))
    lowest = min((rank for rank in first if rank is not None), default=None)
    hits = {rank for rank in first if rank is not None}
    hits |= {rank for rank in extra if lowest is not None and rank > lowest}
    grades = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=6, max_size=6))
    return first, sorted(hits), grades[: len(first)]


@given(rankings(), st.integers(1, 30))
def test_every_metric_stays_in_range_and_never_falls_with_k(
    made: tuple[list[int | None], list[int], list[float]], k: int
) -> None:
    first, hits, grades = made
    one = ranked(first, hits, grades)
    for metric in ALL:
        assert 0.0 <= metric(one, k) <= 1.0
    for metric in (r.recall_any, r.recall_all, r.recall, r.average_precision, r.reciprocal_rank):
        assert metric(one, k) <= metric(one, k + 1)


@given(rankings(), st.sampled_from(KS))
def test_a_depth_changes_no_value_within_it(
    made: tuple[list[int | None], list[int], list[float]], k: int
) -> None:
    first, hits, grades = made
    matches = Matches(first, hits)
    whole, cut = r.ranking(matches, grades), r.ranking(matches, grades, depth=10)
    assert [metric(whole, k) for metric in ALL] == [metric(cut, k) for metric in ALL]
    assert r.reciprocal_rank(whole) == r.reciprocal_rank(cut)


def ours(judged: dict[str, int], ids: list[str]) -> dict[str, float]:
    """Our values under trec_eval's names, for one query with a relevant document."""
    gold = {doc: grade for doc, grade in judged.items() if grade > 0}
    places = {doc: place for place, doc in enumerate(gold)}
    one = r.ranking(match_ids(places, ids, len(gold)), [float(g) for g in gold.values()])
    values = {"recip_rank": r.reciprocal_rank(one)}
    for k in KS:
        values |= {
            f"success_{k}": r.recall_any(one, k),
            f"recall_{k}": r.recall(one, k),
            f"P_{k}": r.precision(one, k),
            f"ndcg_cut_{k}": r.ndcg(one, k),
            f"map_cut_{k}": r.average_precision(one, k),
        }
    return values


def theirs(qrels: Any, run: Any) -> Any:
    cuts = ",".join(map(str, KS))
    names = {f"{name}.{cuts}" for name in ("success", "recall", "P", "ndcg_cut", "map_cut")}
    return pytrec_eval.RelevanceEvaluator(qrels, names | {"recip_rank"}).evaluate(run)


documents = st.sampled_from([f"d{n}" for n in range(12)])


@settings(max_examples=300)
@given(
    st.dictionaries(documents, st.integers(-1, 4), min_size=1),
    st.lists(documents, unique=True, min_size=1, max_size=12),
)
def test_equal_to_trec_eval_on_random_judgements(judged: dict[str, int], ids: list[str]) -> None:
    if not any(grade > 0 for grade in judged.values()):
        return  # trec_eval says 0 where nothing is relevant; here such a case is not applicable
    run = {"q": {doc: float(len(ids) - place) for place, doc in enumerate(ids)}}
    expected = theirs({"q": judged}, run)["q"]
    assert ours(judged, ids) == pytest.approx(expected, abs=1e-9)


def read_qrels(text: str) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        query, _, doc, grade = line.split()
        qrels.setdefault(query, {})[doc] = int(grade)
    return qrels


def read_run(text: str) -> dict[str, list[str]]:
    """Documents in trec_eval's order: by score, then by name, both downwards."""
    found: dict[str, list[tuple[float, str]]] = {}
    for line in text.splitlines():
        query, _, doc, _, score, _ = line.split()
        found.setdefault(query, []).append((float(score), doc))
    return {query: [doc for _, doc in sorted(pairs)[::-1]] for query, pairs in found.items()}


def assert_equal_to_trec(qrels: dict[str, dict[str, int]], run: dict[str, list[str]]) -> int:
    scores = {
        query: {doc: float(len(docs) - place) for place, doc in enumerate(docs)}
        for query, docs in run.items()
    }
    expected = theirs(qrels, scores)
    compared = 0
    for query, values in expected.items():
        if any(grade > 0 for grade in qrels[query].values()):
            assert ours(qrels[query], run[query]) == pytest.approx(values, abs=1e-9)
            compared += len(values)
    return compared


@needs_data
def test_equal_to_trec_eval_on_six_systems_of_trec_2003() -> None:
    folder = Path(DATA or "") / "trec_robust03"
    qrels = read_qrels(gzip.decompress((folder / "qrels.txt.gz").read_bytes()).decode())
    runs = sorted(folder.glob("run.*.txt.gz"))
    assert len(runs) == 6
    for path in runs:
        run = read_run(gzip.decompress(path.read_bytes()).decode())
        assert assert_equal_to_trec(qrels, run) > 1000


@needs_data
def test_equal_to_trec_evals_own_test_files() -> None:
    folder = Path(DATA or "") / "trec_eval"
    run = read_run((folder / "results.test").read_text())
    for name in ("qrels.test", "qrels.rel_level"):
        assert assert_equal_to_trec(read_qrels((folder / name).read_text()), run) > 0


@needs_data
def test_equal_to_the_values_that_ir_measures_asserts() -> None:
    folder = Path(DATA or "") / "ir_measures"
    names = {"nDCG": "ndcg_cut", "P": "P", "R": "recall", "AP": "map_cut", "Success": "success"}
    compared = 0
    for line in (folder / "cases.jsonl").read_bytes().splitlines():
        case = orjson.loads(line)
        stem, _, k = case["measure"].partition("@")
        if case["provider"] != "pytrec_eval" or stem not in names or k not in ("1", "3", "5", "10"):
            continue
        qrels, run = read_qrels(case["qrels"]), read_run(case["run"])
        for query, value in (case["per_query"] or {}).items():
            if any(grade > 0 for grade in qrels[query].values()):
                mine = ours(qrels[query], run[query])[f"{names[stem]}_{k}"]
                assert mine == pytest.approx(value, abs=1e-4)
                compared += 1
    assert compared > 0


@each_row(
    ("rule", "cited", "dates", "facts", "value"),
    [
        ("cite_newer", [[1], [0]], [None, None], False, 1.0),  # the last listed is the newest
        ("cite_newer", [[0], [1]], [None, None], False, 0.0),  # the older one stands first
        ("cite_newer", [[], [1]], [None, None], False, 1.0),  # an unrelated source may lead
        ("cite_newer", [[0]], ["2024-05-01", "2020-01-01"], False, 1.0),  # dates decide
        ("cite_newer", [[0]], ["2024-05-01", "2024-05-01", None], False, 1.0),  # copies of one date
        ("cite_newer", [[2]], ["2024-05-01", "2024-05-01", None], False, 0.0),
        ("cite_newer", [], [None, None], True, 0.0),
        ("cite_both", [[0], [1]], [None, None], False, 1.0),
        ("cite_both", [[0], [0]], [None, None], True, 0.0),
        ("acknowledge_both", [[0]], [None, None], True, 1.0),  # the answer tells both
        ("acknowledge_both", [[0]], [None, None], False, 0.0),
        ("acknowledge_both", [[0, 1]], [None, None], False, 1.0),
    ],
)
def test_recency_rules(
    rule: Any, cited: list[list[int]], dates: list[str | None], facts: bool, value: float
) -> None:
    assert r.recency_rule_ok(rule, cited, dates, facts) == value


def hidden(
    judged: dict[str, int], rng: random.Random, share: float
) -> tuple[dict[str, int], dict[str, int]]:
    """The judgements that are left, and all; at least one relevant document stays."""
    relevant = [doc for doc, grade in judged.items() if grade > 0]
    kept = rng.choice(relevant)
    left = {doc: g for doc, g in judged.items() if doc == kept or rng.random() >= share}
    return left, judged


def pool_of(judged: dict[str, int], ids: list[str]) -> tuple[Matches, list[int], list[int], int]:
    """Matches, unjudged and wrong ranks, and the number of negatives, by plain dictionaries."""
    places = {doc: at for at, doc in enumerate(doc for doc, g in judged.items() if g > 0)}
    unjudged = [rank for rank, doc in enumerate(ids, 1) if judged.get(doc, -1) < 0]
    wrong = [rank for rank, doc in enumerate(ids, 1) if judged.get(doc) == 0]
    negatives = sum(grade == 0 for grade in judged.values())
    return match_ids(places, ids, len(places)), unjudged, wrong, negatives


def assert_as_trec_eval(judged: dict[str, int], ids: list[str]) -> None:
    """bpref, and ndcg_cut of the list from which the unjudged are taken by hand."""
    matches, unjudged, wrong, negatives = pool_of(judged, ids)
    run = {doc: float(-rank) for rank, doc in enumerate(ids)}
    mine = r.bpref(matches, wrong, negatives)
    if negatives:
        expected = pytrec_eval.RelevanceEvaluator({"q": judged}, {"bpref"}).evaluate({"q": run})
        assert mine == pytest.approx(expected["q"]["bpref"] if ids else 0.0, abs=1e-9)
    else:
        assert mine is None
    seen = {doc: score for doc, score in run.items() if judged.get(doc, -1) >= 0}
    names = {"ndcg_cut.1,3,5,10"}
    expected = pytrec_eval.RelevanceEvaluator({"q": judged}, names).evaluate({"q": seen})
    grades = [float(grade) for grade in judged.values() if grade > 0]
    left = r.ranking(r.condensed(matches, unjudged), grades)
    for k in KS:
        whole = expected["q"][f"ndcg_cut_{k}"] if seen else 0.0
        assert r.ndcg(left, k) == pytest.approx(whole, abs=1e-9)


documents = st.sampled_from([f"d{n}" for n in range(14)])


@given(
    st.dictionaries(documents, st.sampled_from([-1, 0, 0, 1, 2, 3]), min_size=1),
    st.lists(documents, unique=True, max_size=14),
)
@settings(max_examples=150)
def test_bpref_and_condensed_lists_are_those_of_trec_eval(
    judged: dict[str, int], ids: list[str]
) -> None:
    if any(grade > 0 for grade in judged.values()):
        assert_as_trec_eval(judged, ids)


@needs_data
@each_row("share", [0.1, 0.3, 0.5])
def test_hidden_judgements_of_robust03(share: float) -> None:
    folder = Path(DATA or "") / "trec_robust03"
    qrels = read_qrels(gzip.decompress((folder / "qrels.txt.gz").read_bytes()).decode())
    run = read_run(gzip.decompress((folder / "run.uic0301.txt.gz").read_bytes()).decode())
    rng = random.Random(7)
    for query, ids in sorted(run.items())[::5]:
        judged = qrels.get(query, {})
        if any(grade > 0 for grade in judged.values()):
            left, whole = hidden(judged, rng, share)
            assert_as_trec_eval(left, ids)
            matches, unjudged, _, _ = pool_of(left, ids)
            for k in KS:  # the true precision lies between the two ends
                low = sum(rank <= k for rank in matches.hits) / k
                high = low + sum(rank <= k for rank in unjudged) / k
                assert low <= sum(whole.get(doc, 0) > 0 for doc in ids[:k]) / k <= high


def test_bpref_and_shares_by_hand() -> None:
    # Three supports, two found at ranks 2 and 5; judged irrelevant: ranks 1, 3 and one elsewhere.
    matches = Matches([2, 5, None], [2, 5])
    # R = 3, N = 3: (1 - 1/3) + (1 - 2/3) + 0, over 3.
    assert r.bpref(matches, [1, 3], 3) == pytest.approx((2 / 3 + 1 / 3) / 3)
    # N = 1: one above counts whole.
    assert r.bpref(matches, [1], 1) == 0.0
    assert r.bpref(matches, [], 1) == pytest.approx(2 / 3)
    assert r.bpref(matches, [], 0) is None
    one = ranked([1, None, None, None], [1], groups=[[0, 1], [2, 3]])
    # {0, 1}: one is there, one unjudged chunk may be the other; {2, 3} would need two.
    assert [r.evidence_recall_at_most(one, 5, n) for n in (0, 1, 2)] == [0.5, 1.0, 1.0]
    none = ranked([None, None, None], [])
    assert [r.evidence_recall_at_most(none, 5, n) for n in (0, 1, 5)] == [0.0, 1 / 3, 1.0]
    assert [r.snippet_recall([1, 4, None], k) for k in (1, 3, 5)] == [
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
        pytest.approx(2 / 3),
    ]
