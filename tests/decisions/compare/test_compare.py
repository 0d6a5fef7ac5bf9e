"""compare(): pairs, means, tests, families, verdicts, coverage, repeats, slices, clusters."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decisions.compare import CompareOptions, compare, compare_many
from decisions.columns import read_section
from decisions.rows import MetricRow
from ragmetrics.stats.significance import mcnemar
from records.errors import StorageError

Targets = Callable[[str], Path]
Runs = Any


def row_of(comparison: Any, name: str) -> MetricRow:
    row: MetricRow | None = comparison.row(name)
    assert row is not None
    return row


def test_one_metric_by_hand(runs: Runs) -> None:
    """Twelve cases: ten lose .5, one gains .5, one stays: delta = (-5 + .5) / 12."""
    base = runs.make("base", {"ndcg@5": [1.0] * 10 + [0.5, 0.5]})
    new = runs.make("new", {"ndcg@5": [0.5] * 10 + [1.0, 0.5]})
    row = row_of(compare(base, new, CompareOptions(metrics=("ndcg@5",))), "retrieval.ndcg@5")
    assert (row.n, row.rose, row.fell, row.units) == (12, 1, 10, 12)
    assert row.base == pytest.approx(11 / 12)
    assert row.new == pytest.approx(6.5 / 12)
    assert row.delta == pytest.approx(-4.5 / 12)
    # 11 differences of one size: |sum| >= 9 of 11 has 2 * (1 + 11) of 2^11 patterns.
    assert row.p == row.p_holm == pytest.approx(24 / 2**11)
    assert (row.test, row.verdict, row.family) == ("sign-flip", "worse", True)
    assert row.interval is not None
    assert row.interval[0] <= -4.5 / 12 <= row.interval[1] < 0
    assert row.worse_by == pytest.approx(4.5 / 12)


def test_a_binary_metric_takes_mcnemar(runs: Runs) -> None:
    base = runs.make("base", {"pass": [1.0] * 9 + [0.0] * 11}, "pipeline")
    new = runs.make("new", {"pass": [1.0] * 18 + [0.0] * 2}, "pipeline")
    row = row_of(compare(base, new, CompareOptions(metrics=("pass",))), "pass")
    assert (row.rose, row.fell, row.test) == (9, 0, "McNemar mid-p")
    assert row.p == mcnemar(9, 0)[1]
    assert row.verdict == "better"


@pytest.mark.parametrize(
    ("metric", "section", "verdict"),
    [
        ("ndcg@5", "retrieval", "better"),
        ("redundancy_ngram", "context", "worse"),
        ("over_refusal", "abstention", "worse"),
        ("my_own", "custom", "differs"),
    ],
)
def test_the_catalogue_says_which_way_is_better(
    runs: Runs, metric: str, section: str, verdict: str
) -> None:
    base = runs.make("base", {metric: [0.1] * 20}, section)
    new = runs.make("new", {metric: [0.6] * 20}, section)
    row = row_of(compare(base, new), metric)
    assert row.verdict == verdict


def test_measured_time_cost_and_tokens_are_better_when_less(runs: Runs) -> None:
    def measured(cost: float) -> list[Any]:
        return [
            {"latency_ms": {"total": 100.0 * cost}, "cost_usd": cost, "usage": {"total_tokens": 7}}
        ] * 12

    base = runs.make("base", {"pass": [1.0] * 12}, "pipeline", evidence=measured(2.0))
    new = runs.make("new", {"pass": [1.0] * 12}, "pipeline", evidence=measured(1.0))
    found = compare(base, new)
    assert row_of(found, "latency_ms").delta == -100.0
    assert row_of(found, "cost_usd").verdict == "better"
    assert row_of(found, "total_tokens").verdict == "no evidence"


def test_only_cases_that_both_scored_are_compared(runs: Runs) -> None:
    base = runs.make("base", {"mrr": [1.0, 0.5, None, 0.25]}, ids=["a", "b", "c", "d"])
    new = runs.make("new", {"mrr": [0.25, 0.75, 1.0, None, 0.0]}, ids=["d", "b", "e", "a", "c"])
    found = compare(base, new)
    row = row_of(found, "mrr")
    # both: b (.5 → .75) and d (.25 → .25); base alone: a; new alone: c and e
    assert (row.n, row.lost, row.gained) == (2, 1, 2)
    assert row.delta == pytest.approx(0.125)
    assert (row.base_n, row.new_n) == (3, 4)
    assert (row.base_coverage, row.new_coverage) == (3 / 4, 4 / 5)
    assert row.base_mean == pytest.approx(1.75 / 3)
    assert row.new_mean == pytest.approx(2.0 / 4)
    assert (found.cases, found.only_base, found.only_new) == (4, 0, 1)
    assert any("0 cases are in base only and 1 in new only" in note for note in found.notes)


def test_repeats_are_averaged_within_their_case_first(runs: Runs) -> None:
    """Case q0 scores 1 and 0, q1 scores 1 and nothing: .5 and 1 against 0 and 1."""
    base = runs.make("base", {"mrr": [1.0, 0.0, 1.0, None]}, repeats=2)
    new = runs.make("new", {"mrr": [0.0, 0.0, 1.0, 1.0]}, repeats=2)
    row = row_of(compare(base, new), "mrr")
    assert (row.n, row.base, row.new, row.base_cases) == (2, 0.75, 0.5, 2)


def test_a_metric_of_one_run_alone_is_named(runs: Runs) -> None:
    base = runs.make("base", {"mrr": [1.0], "map@5": [None], "scope_miss": [0.0]})
    new = runs.make("new", {"mrr": [1.0], "map@5": [0.5], "ndcg@5": [None]})
    found = compare(base, new)
    verdicts = {row.metric: row.verdict for row in found.rows}
    assert verdicts == {
        "mrr": "no evidence",
        "map@5": "only in new",
        "scope_miss": "only in base",
        "ndcg@5": "not tested",
    }


def test_numbers_of_the_whole_run_are_shown_without_a_test(runs: Runs) -> None:
    base = runs.make("base", {"detection_rate": [1.0]}, "safety", whole_run={"auc": 0.9})
    new = runs.make("new", {"detection_rate": [1.0]}, "safety", whole_run={"auc": 0.8})
    row = row_of(compare(base, new), "auc")
    assert (row.base, row.new, row.p, row.verdict) == (0.9, 0.8, None, "not tested")
    assert row.delta == pytest.approx(-0.1)
    assert row.base_coverage is None


def falling(values: list[float]) -> dict[str, list[float]]:
    return {"ndcg@5": values, "recall@5": values, "mrr": values}


def test_holm_counts_the_family_and_the_rest_goes_apart(runs: Runs, targets: Targets) -> None:
    """7 of 7 cases fall: p = 2/128 each. Two tests in the family: .03125; mrr by itself."""
    base = runs.make("base", falling([1.0] * 7 + [0.5] * 3))
    new = runs.make("new", falling([0.5] * 10))
    wanted = CompareOptions(
        targets=targets('[retrieval]\n"ndcg@5" = "> 0.6"\n"recall@5" = "> 0.7"\n')
    )
    found = compare(base, new, wanted)
    assert [row.metric for row in found.rows if row.family] == ["ndcg@5", "recall@5"]
    p = 2 / 2**7
    assert [row.p_holm for row in found.rows] == [*holm([p, p]), None]
    assert [row.p_bh for row in found.rows] == [None, None, p]
    three = compare(base, new, CompareOptions(metrics=("ndcg@5", "recall@5", "retrieval.mrr")))
    assert [row.p_holm for row in three.rows] == [3 * p] * 3
    assert all(row.verdict == "worse" for row in three.rows)


def test_several_runs_are_corrected_together(runs: Runs) -> None:
    base = runs.make("base", {"mrr": [1.0] * 7})
    others = [runs.make(name, {"mrr": [0.5] * 7}) for name in ("one", "two", "three", "four")]
    alone = compare(base, others[0], CompareOptions(metrics=("mrr",)))
    assert row_of(alone, "mrr").verdict == "worse"  # 2/128
    found = compare_many(base, others, CompareOptions(metrics=("mrr",)))
    assert [row_of(one, "mrr").p_holm for one in found] == [4 * 2 / 2**7] * 4
    assert {row_of(one, "mrr").verdict for one in found} == {"no evidence"}


def test_an_unknown_metric_is_refused(runs: Runs) -> None:
    base = runs.make("base", {"mrr": [1.0]})
    with pytest.raises(StorageError, match=r"metric 'mmr': neither run has it.*retrieval\.mrr"):
        compare(base, base, CompareOptions(metrics=("mmr",)))


def test_slices_get_a_p_from_ten_cases_on(runs: Runs) -> None:
    base = runs.make("base", {"mrr": [1.0] * 19})
    new = runs.make("new", {"mrr": [0.5] * 19})
    parts = {f"q{i}": (("category", "a" if i < 10 else "b"), ("tag", "x")) for i in range(19)}
    found = compare(base, new, CompareOptions(metrics=("mrr",), by=("category",)), parts=parts)
    first, second = found.slices
    assert (first.slice, first.n, first.p) == ("category=a", 10, 2 / 2**10)
    assert first.verdict == "worse"
    assert (second.slice, second.n, second.p, second.interval) == ("category=b", 9, None, None)
    assert (second.delta, second.verdict) == (-0.5, "not tested")
    assert first.p_bh == first.p, "one test among the slices"


def test_clusters_are_flipped_together(runs: Runs) -> None:
    """Twelve cases of three documents: 2 of 8 patterns are as extreme, not 2 of 4096."""
    base = runs.make("base", {"pass": [1.0] * 12}, "pipeline")
    new = runs.make("new", {"pass": [0.0] * 12}, "pipeline")
    clusters = {f"q{i}": i // 4 for i in range(12)}
    row = row_of(compare(base, new, clusters=clusters), "pass")
    assert (row.n, row.units, row.p, row.verdict) == (12, 3, 0.25, "no evidence")
    # Without q11's cluster it stands alone: four units with sums 4, 4, 3 and 1.
    del clusters["q11"]
    row = row_of(compare(base, new, clusters=clusters), "pass")
    assert (row.units, row.p) == (4, 2 / 16)


def test_the_same_run_is_the_same(runs: Runs) -> None:
    base = runs.make("base", {"mrr": [1.0, 0.5, 0.0]})
    found = compare(base, base)
    row = row_of(found, "mrr")
    assert (row.delta, row.p, row.interval, row.mde) == (0.0, 1.0, (0.0, 0.0), 0.0)


def test_memory_is_a_number_a_case_and_metric(runs: Runs) -> None:
    """20,000 cases, 5 metrics, two runs: 1.6 MB of numbers and about 3 MB of ids."""
    scores = {f"recall@{k}": [(i * k) % 7 / 7 for i in range(20_000)] for k in range(1, 6)}
    base = runs.make("base", scores)
    new = runs.make("new", scores)
    tracemalloc.start()
    pairs = read_section(base, "retrieval"), read_section(new, "retrieval")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert pairs[0].cases == pairs[1].cases == 20_000
    assert peak < 8e6


class TestDamagedScores:
    def test_a_line_that_is_none(self, runs: Runs) -> None:
        base = runs.make("base", {"mrr": [1.0, 0.5]})
        path = base / "scores" / "retrieval.jsonl"
        path.write_text(path.read_text() + '{"case_id": "q9", "scores": {"mrr": "high"}}\n')
        with pytest.raises(StorageError, match=r"retrieval\.jsonl:3: is no score line"):
            compare(base, base)

    def test_a_case_whose_lines_lie_apart(self, runs: Runs) -> None:
        base = runs.make("base", {"mrr": [1.0, 0.5, 1.0]}, ids=["a", "b", "a"])
        with pytest.raises(StorageError, match=r"jsonl:3: .*'a' do not stand together"):
            compare(base, base)

    def test_a_run_without_scores(self, runs: Runs, tmp_path: Path) -> None:
        base = runs.make("base", {"mrr": [1.0]})
        bare = tmp_path / "results" / "bare"
        bare.mkdir()
        with pytest.raises(StorageError, match=r"bare: is not scored; run score_retrieval.py"):
            compare(base, bare)

    def test_a_section_that_one_lacks(self, runs: Runs) -> None:
        base = runs.make("base", {"mrr": [1.0]})
        new = runs.make("new", {"mrr": [1.0]})
        runs.make("base", {"groundedness": [5.0]}, "judged")
        found = compare(base, new)
        assert any("new: has no scores of judged; run judge_answers.py" in n for n in found.notes)
        with pytest.raises(StorageError, match=r"run judge_answers.py --run new"):
            compare(base, new, CompareOptions(sections=("judged",)))

    def test_metrics_without_score_lines(self, runs: Runs) -> None:
        base = runs.make("base", {"mrr": [1.0]})
        (base / "scores" / "retrieval.jsonl").unlink()
        with pytest.raises(StorageError, match=r"metrics\.json alone holds no cases"):
            compare(base, base)
