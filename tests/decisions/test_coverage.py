"""Which cases are left to compare: by hand, against scipy, and what the engine makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.rows import each_row

from decisions.change import Change
from decisions.coverage import Coverage, Unscored, at_worst, coverage_of, permutation_p, unscored_of
from decisions.joint import Decision, PrimaryTable, decide

NAN = float("nan")
ANSWERED, RIGHT = "pipeline.answered", "abstention.decision_right"
RECALL, CLAIMS = "retrieval.evidence_recall@5", "groundedness.claim_support_rate"


def scores(*values: float) -> Any:
    return np.array(values, dtype=float)


def decided(columns: dict[str, tuple[Any, Any]], **more: Any) -> Decision:
    sides = [np.array([both[at] for both in columns.values()], float).T for at in (0, 1)]
    n = len(sides[0])
    return decide(PrimaryTable(tuple(columns), [], np.arange(n), sides[0], sides[1]), **more)


@each_row(
    ("lost", "loss"),
    [(0, "none"), (5, "few"), (6, "by chance"), (50, "by chance"), (51, "too many")],
)
def test_how_much_may_be_lost(lost: int, loss: str) -> None:
    """Of 100 cases that score alike: up to 5 % without a question, more than half too many."""
    a = np.ones(100)
    b = np.where(np.arange(100) < lost, NAN, 1.0)
    found = coverage_of(a, b, None)
    assert (found.both, found.lost, found.loss) == (100 - lost, (0, lost), loss)
    assert found.decides == (loss != "too many")
    mirrored = coverage_of(b, a, None)
    assert (mirrored.lost, mirrored.loss) == ((lost, 0), loss)


def test_cases_that_a_run_was_not_asked_and_rightly_declined_ones_are_not_lost() -> None:
    """Of six cases: both; lost; not asked; no label; declined rightly; failed call."""
    a = scores(1, 1, NAN, NAN, 1, 1)
    b = scores(1, NAN, NAN, NAN, NAN, NAN)
    answered = scores(1, 1, NAN, 1, 1, 0)
    base_right = scores(1, 1, NAN, 1, 0, 1)
    new_right = scores(1, 0, NAN, 1, 1, NAN)
    unscored = unscored_of(CLAIMS, answered, new_right, base_right)
    found = coverage_of(a, b, None, unscored=(None, unscored))
    # lost: the second, declined although the question has an answer, and the failed call
    assert (found.both, found.lost, found.counted) == (1, (0, 2), 2)
    passages = unscored_of(RECALL, answered, new_right, base_right)
    assert passages is not None
    assert not passages.rightly.any(), "an answer that declines has passages all the same"
    assert unscored_of(RECALL, None, None, None) is None


def test_without_a_verdict_for_the_sake_of_declined_answers() -> None:
    assert Coverage(0, (0, 100), 100, "too many").left_out
    assert Coverage(10, (0, 90), 85, "too many").left_out, "without them 10 of 15 are left"
    assert not Coverage(10, (0, 90), 70, "too many").left_out, "10 of 30 are left"
    assert not Coverage(60, (0, 40), 40, "by chance").left_out


@each_row("seed", range(6))
def test_the_permutation_agrees_with_scipy(seed: int) -> None:
    from scipy.stats import permutation_test

    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 0.5, 1.0], 60)
    marked = rng.random(60) < 0.25
    p, difference = permutation_p(values, marked, None)
    assert difference == pytest.approx(values[marked].mean() - values[~marked].mean())
    theirs = permutation_test(
        (values[marked], values[~marked]),
        lambda x, y: abs(x.mean() - y.mean()),
        n_resamples=20_000,
        alternative="greater",
        rng=np.random.default_rng(0),
    )
    assert p == pytest.approx(theirs.pvalue, abs=0.04)
    order = rng.permutation(60)
    assert permutation_p(values[order], marked[order], None)[0] == p, "the order tells nothing"
    clusters = np.repeat(np.arange(20), 3)
    p, _ = permutation_p(values, marked, clusters)
    other = permutation_p(values[order], marked[order], (7 * clusters[order]) % 20)
    assert other[0] == pytest.approx(p, abs=0.03)


def test_a_cluster_counts_once() -> None:
    """Six documents of ten cases each; all ten of one are lost and score 0, the others 1: of six
    documents any may be the odd one by chance, while ten cases of sixty could not be."""
    clusters = np.repeat(np.arange(6), 10)
    marked = clusters == 0
    values = np.where(marked, 0.0, 1.0)
    assert permutation_p(values, marked, clusters)[0] == pytest.approx(1 / 6, abs=0.04)
    assert permutation_p(values, marked, None)[0] < 0.001


def test_many_cases_are_tested_by_the_normal_distribution() -> None:
    rng = np.random.default_rng(0)
    values, marked = rng.random(4_100), rng.random(4_100) < 0.2
    from scipy.stats import ttest_ind

    by_t = ttest_ind(values[marked], values[~marked]).pvalue
    assert permutation_p(values, marked, None)[0] == pytest.approx(by_t, abs=0.002)


def test_the_worst_that_lost_cases_could_have_scored() -> None:
    a, b = scores(1, NAN, 0.5, NAN), scores(NAN, 1, 0.5, NAN)
    worst = at_worst(a, b, (0, 1), against="better")
    np.testing.assert_array_equal(worst, [[1, 1, 0.5, NAN], [0, 1, 0.5, NAN]])
    best = at_worst(a, b, (0, 1), against="worse")
    np.testing.assert_array_equal(best, [[1, 0, 0.5, NAN], [1, 1, 0.5, NAN]])
    none = np.zeros(4, bool)
    rightly = Unscored(none, np.array([True, False, False, False]))
    kept = at_worst(a, b, (0, 1), against="better", unscored=(None, rightly))
    assert np.isnan(kept[1][0])


def loss_of(change: Change) -> str:
    return change.coverage.loss if change.coverage else ""


def harder(change: Change) -> bool:
    return change.coverage is not None and change.coverage.harder


def lost_where_it_fails(share: float) -> tuple[Any, Any]:
    """200 cases: base fails the last 60; new passes 20 of these and loses 20 others, which base
    fails, too."""
    a = (np.arange(200) < 140).astype(float)
    b = np.where(np.arange(200) < 160, 1.0, 0.0)
    b[200 - int(share * 200) :] = NAN
    return a, b


def test_a_verdict_on_a_chosen_rest_must_hold_against_the_worst() -> None:
    """With 10 % lost at the worst: 20 better, 20 (lost, both 0) alike: holds. 20 lost that base
    passes: 20 up, 20 down, so nothing is left."""
    a, b = lost_where_it_fails(0.1)
    (row,) = decided({"pipeline.pass": (a, b)}).rows
    assert (loss_of(row), harder(row), row.verdict) == ("chosen", True, "better")
    easy = b.copy()
    easy[180:], easy[:20] = 0.0, NAN
    (row,) = decided({"pipeline.pass": (a, easy)}).rows
    assert (loss_of(row), harder(row)) == ("chosen", False)
    assert (row.verdict, row.look) == ("no evidence", False)
    assert row.p_joint is not None
    assert row.p_joint > 0.05
    (row,) = decided({"pipeline.pass": (easy, a)}).rows
    assert row.verdict == "no evidence", "the same for a fall"
    assert row.p_worse is not None
    assert row.p_worse > 0.05, "which the gate asks"
    spread = b.copy()
    spread[180:] = 0.0
    spread[::10] = NAN  # 20 of all kinds
    (row,) = decided({"pipeline.pass": (a, spread)}).rows
    assert (loss_of(row), row.verdict) == ("by chance", "better")


def test_a_metric_without_ends_has_no_verdict_on_a_chosen_rest() -> None:
    a = np.concatenate([np.full(60, 100.0), np.full(20, 900.0)])
    b = np.where(a > 500, NAN, 200.0)
    (row,) = decided({"pipeline.latency_ms": (a, b)}).rows
    assert (loss_of(row), row.verdict) == ("chosen", "no evidence")


def test_what_does_not_matter_is_the_same_whatever_p_says() -> None:
    """Of 5,000 cases 15 rise: by .3 points, and by no chance (2 of 2^15)."""
    a, b = np.zeros(5_000), (np.arange(5_000) < 15).astype(float)
    columns = {"pipeline.pass": (a, b)}
    (row,) = decided(columns).rows
    assert row.verdict == "better"
    found = decided(columns, margin=0.05)
    assert (found.rows[0].verdict, found.headline) == ("equal", "SAME")
    assert found.rows[0].p_joint is not None
    assert found.rows[0].p_joint < 0.001
    # the margin is a share of the range: 5 % of 5 points are .25
    judged = {"judged.correctness": (np.full(400, 3.0), np.where(np.arange(400) % 2, 3.0, 3.3))}
    assert decided(judged, margin=0.05).rows[0].verdict == "equal"
    assert decided(judged, margin=0.02).rows[0].verdict == "better"
