"""One metric of two runs, and the joint test: by hand where it can be done, else beside scipy."""

from __future__ import annotations

import ast
import gzip
import json
import os
from dataclasses import replace
from math import atan, exp, pi, sqrt, tan
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as peer
from tests.rows import each_row

from decisions import change
from decisions.change import measure, one_loss_undoes, plain_p
from decisions.effects import Spread, compact, minimum_detectable_effect, power_of, spread_of
from decisions.joint import PrimaryTable, decide, headline_of, joint_p

Floats = NDArray[np.float64]


def column(*values: float) -> Floats:
    return np.array(values, dtype=float)[:, None]


class TestJointTest:
    def test_one_metric_counts_half_of_the_ties(self) -> None:
        # |sum| of the patterns of 3, 1: 4, 2, 2, 4; observed 4, a tie in 2 of 4, counted half.
        assert joint_p(column(3, 1))[0] == 2 / 4 / 2
        # observed 3 - 1 = 2: larger in 2 of 4, a tie in 2 of 4
        assert joint_p(column(3, -1))[0] == (2 + 2 / 2) / 4

    def test_towards_worse_is_one_side(self) -> None:
        # sums 4, 2, -2, -4 of which -4 was seen: nothing is worse, one of four is alike
        assert joint_p(column(-3, -1), side="worse")[0] == 1 / 4 / 2
        assert joint_p(column(3, 1), side="worse")[0] == (3 + 1 / 2) / 4

    def test_the_largest_of_two_metrics_counts(self) -> None:
        """Cases 1 to 3 change the first metric by 1, cases 4 to 6 the second one: of 2^6 patterns a
        |T| of sqrt(3) is reached by 2/8 in each, so by 1 - (6/8)² = 7/16 in any, always a tie."""
        table = np.zeros((6, 2))
        table[:3, 0], table[3:, 1] = 1, 1
        assert joint_p(table).tolist() == [7 / 16 / 2, 7 / 16 / 2]

    def test_what_never_changed_has_p_1_and_is_no_test(self) -> None:
        p = joint_p(np.stack([np.ones(8), np.zeros(8)], axis=1))
        assert p.tolist() == [2 / 2**8 / 2, 1.0]
        assert joint_p(np.zeros((5, 3))).tolist() == [1.0] * 3

    def test_cases_without_a_score_are_no_difference(self) -> None:
        assert joint_p(column(3, np.nan, -1)) == joint_p(column(3, 0, -1))

    def test_clusters_are_one_unit(self) -> None:
        clusters = np.array([7, 7, 7, 3, 3, 3])
        # the sums 3 and 1 of two clusters
        assert joint_p(column(1, 1, 1, 0.5, 0.25, 0.25), clusters)[0] == 2 / 4 / 2

    def test_above_two_thousand_units_the_normal_law_stands_for_the_flips(self) -> None:
        rng = np.random.default_rng(0)
        table = rng.normal(0.03, 1, (2100, 2)) @ np.array([[1, 0.7], [0, 0.7]])
        many, few = joint_p(table), joint_p(table[:1900])
        t = [
            part.sum(axis=0) / np.sqrt((part * part).sum(axis=0)) for part in (table, table[:1900])
        ]
        for p, statistics in zip((many, few), t, strict=True):
            draws = np.random.default_rng(1).standard_normal((100_000, 2))
            factor = np.linalg.cholesky(np.corrcoef(table.T))
            largest = np.abs(draws @ factor.T).max(axis=1)
            expected = [(largest > abs(value)).mean() for value in statistics]
            assert p.tolist() == pytest.approx(expected, abs=0.02)


class TestSpread:
    def test_by_hand(self) -> None:
        """Differences 0, 0, -1, 1: variance 2/3, half unchanged, a change is of 1."""
        spread = spread_of(np.array([0.0, 0, -1, 1]), None, 1.0)
        assert spread == Spread(4, 4.0, spread.variance, 0.5, 1.0, 1.0)
        assert spread.variance == pytest.approx(2 / 3)
        assert spread.variance_with_unseen() == pytest.approx(2 / 3 + 0.5 * 1 / 3)

    def test_clusters_that_go_together_count_as_one(self) -> None:
        """Four clusters of two equal differences: S_c = 2 d_c, var = n Σ S_c² / n² / (1 - 1/4)."""
        values = np.array([1.0, -1.0, 0.5, -0.5])
        spread = spread_of(np.repeat(values, 2), np.repeat(np.arange(4), 2), 1.0)
        assert spread.effective == 4.0
        assert spread.variance == pytest.approx(float((4 * values**2).sum()) / 8 / 0.75)
        assert spread.freedom() == 3.0

    def test_the_mde_solves_its_equation_and_power_is_its_inverse(self) -> None:
        spread = Spread(90, 90.0, 0.08, 0.85, 0.7, 1.0)
        for metrics in (1, 5):
            # what a joint test of so many unrelated metrics asks of a statistic, with many cases
            critical = NormalDist().inv_cdf(1 - 0.05 / 2 / metrics)
            mde = minimum_detectable_effect(spread, critical)
            assert mde is not None
            assert power_of(mde, spread, critical, 90) == pytest.approx(0.8, abs=1e-9)

    def test_clusters_that_count_as_fewer_than_two_have_a_power_and_one_has_none(self) -> None:
        """Of 3 cases and 1: 4² / (3² + 1²) = 1.6, so t has one degree of freedom, where its upper
        tail is 1/2 - atan(t)/π. An effect of 1 is two standard errors of √(1/4)."""
        spread = Spread(4, 1.6, 1.0, 0.0, 1.0)
        reach = tan(pi * (0.975 - 0.5)) - 2
        assert power_of(1.0, spread, 0.0, 4) == pytest.approx(1 / 2 - atan(reach) / pi, abs=1e-9)
        assert power_of(1.0, replace(spread, effective=1.0), 0.0, 4) is None

    def test_a_score_in_between_may_fall_to_the_bad_end(self) -> None:
        """Scores 1, 1/2, 1/2, 0 and 1, 1, 1/2, 0: Σab = 7/4, Σa² = 3/2, Σb² = 9/4, Σa = 2,
        Σb = 5/2: (2 · 7/4 - 15/8) / (9/4) = 13/18."""
        a, b = np.array([1.0, 0.5, 0.5, 0.0]), np.array([1.0, 1.0, 0.5, 0.0])
        spread = measure(a, b, None, largest=1.0, worst=0.0)[0].spread
        assert spread is not None
        assert spread.loss == pytest.approx(13 / 18)
        # π u = 3/4 · 1/2 is less, so v = 13/18: D²(1 + c) - c v D - c s² = 0
        assert list(spread.carried) == pytest.approx([13 / 18, 1.0])
        mde = minimum_detectable_effect(spread, 0.0)
        assert mde is not None
        c = ((peer.t.ppf(0.975, 3) + peer.t.ppf(0.8, 3)) ** 2) / 4
        equation = mde**2 * (1 + c) - c * spread.loss * mde - c * spread.variance_with_unseen()
        assert min(equation, 1 - mde) == pytest.approx(0, abs=1e-9)
        assert power_of(0.3, spread, 0.0, 400) == pytest.approx(
            1
            - peer.t.cdf(
                peer.t.ppf(0.975, 399)
                - 0.3 * (400 / (spread.variance_with_unseen(400) + 0.3 * (13 / 18 - 0.3))) ** 0.5,
                399,
            ),
            abs=1e-9,
        )
        mirrored = measure(1 - a, 1 - b, None, largest=1.0, worst=1.0)[0].spread
        assert mirrored is not None
        assert mirrored.loss == pytest.approx(13 / 18)
        binary = measure(np.round(a + 0.1), np.round(b + 0.1), None, largest=1.0, worst=0.0)
        assert binary[0].spread is not None
        assert binary[0].spread.loss is None

    def test_small_gains_that_one_large_loss_would_undo(self) -> None:
        """Nine of 30 gain 1/3: mean .1. One loss of 1 leaves a sum of 2 and Σd² of 2: t is
        2 / √(30 · (2 - 4/30) / 29) = 1.44. Of 90 cases 27 gain: 8 / √(90 · (4 - 64/90) / 89) =
        4.4. A gain of the whole range is no small one."""
        for n, gain, undone in ((30, 1 / 3, True), (90, 1 / 3, False), (30, 1.0, False)):
            a = np.where(np.arange(n) % 10 < 3, 0.0, 0.5)
            b = np.where(np.arange(n) % 10 < 3, gain, 0.5)
            assert one_loss_undoes(measure(a, b, None, largest=1.0, worst=0.0)[0]) is undone

    def test_nothing_changed_and_nobody_knows_how_far_it_could(self) -> None:
        spread = spread_of(np.zeros(20), None, None)
        assert minimum_detectable_effect(spread, 0.0) is None
        assert measure(np.zeros(20), np.zeros(20), None)[0].interval is None

    def test_at_most_the_range(self) -> None:
        mde = minimum_detectable_effect(spread_of(np.zeros(3), None, 1.0), 0.0)
        assert mde == 1.0


class TestRatios:
    def test_one_metric_is_wilcoxons_and_hodges_and_lehmanns(self) -> None:
        rng = np.random.default_rng(3)
        a = rng.lognormal(3, 1, 12)
        b = a * rng.lognormal(0.4, 0.5, 12)
        effect, evidence = measure(a, b, None, skewed=True)
        logs = np.log(b / a)
        walsh = [(logs[i] + logs[j]) / 2 for i in range(12) for j in range(i, 12)]
        assert effect.ratio == pytest.approx(exp(float(np.median(walsh))), rel=1e-9)
        p, test = plain_p(effect, evidence, None, binary=False, name="", seed=0)
        assert test == "signed ranks"
        assert p == pytest.approx(peer.wilcoxon(logs, method="exact").pvalue, rel=1e-9)
        # The 95 % limits are the 14th smallest and largest of the 78 means: P(W <= 13) = .021.
        assert effect.ratio_interval == pytest.approx(
            (exp(sorted(walsh)[13]), exp(sorted(walsh)[-14])), rel=1e-9
        )

    def test_zero_has_no_ratio(self) -> None:
        effect, evidence = measure(column(0, 1, 1)[:, 0], column(1, 0, 2)[:, 0], None, skewed=True)
        assert effect.n == 1
        assert np.isnan(evidence).tolist() == [True, True, False]

    def test_clusters_widen_the_limits(self) -> None:
        rng = np.random.default_rng(4)
        shared = np.repeat(rng.normal(0, 0.5, 12), 5)
        a = np.full(60, 100.0)
        b = a * np.exp(shared + rng.normal(0, 0.1, 60))
        clusters = np.repeat(np.arange(12), 5)
        widths = []
        for codes in (None, clusters):
            limits = measure(a, b, codes, skewed=True)[0].limits
            assert limits is not None
            widths.append(limits[1] - limits[0])
        assert widths[1] > 1.5 * widths[0]


def test_intervals_hold_what_no_case_showed() -> None:
    """None of 90 cases changed: one that changed by 1 adds 1/89 to the variance."""
    interval = measure(np.ones(90), np.ones(90), None, largest=1.0)[0].interval
    half = float(peer.t.ppf(0.975, 89)) * sqrt(1 / 89 / 90)
    assert interval == pytest.approx((-half, half))
    assert compact(np.array([9, -3, 9])).tolist() == [1, 0, 1]  # type: ignore[union-attr]
    assert compact(np.array([9, -3, 4])) is None
    assert compact(None) is None


def test_tables_of_different_shapes_are_refused_and_an_empty_one_says_nothing() -> None:
    table = PrimaryTable(("made.a",), ["1"], np.arange(2), np.zeros((2, 1)), np.zeros((1, 1)))
    with pytest.raises(ValueError, match="a row for each case"):
        decide(table)
    assert headline_of(()) == "TOO FEW"
    empty = PrimaryTable((), [], np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros((0, 0)))
    assert decide(empty).rows == ()


def test_one_type_alone_is_a_change() -> None:
    """A metric of two runs is a Change; no other class of decisions has the word in its name."""
    folder = Path(change.__file__).parent
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted(folder.glob("*.py"))]
    names = [
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    assert len(names) > 50
    assert [name for name in names if "Change" in name] == ["Change"]


@each_row("side", ["both", "worse"])
def test_the_order_of_cases_changes_no_p(side: str) -> None:
    """40 changed clusters, so the flips are drawn and not enumerated."""
    rng = np.random.default_rng(0)
    differences = rng.choice([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0], (120, 3))
    clusters = np.arange(120) // 3
    expected = joint_p(differences, clusters, side)  # type: ignore[arg-type]
    for _ in range(5):
        order = rng.permutation(120)
        names = rng.permutation(1000)[:40]
        again = joint_p(differences[order], names[clusters][order], side)  # type: ignore[arg-type]
        np.testing.assert_array_equal(again, expected)


CASES = 40
METRICS = ("recall@5", "ndcg@5", "recall_any@5")


def asked(seed: int, drop: float = 0.0) -> dict[str, list[float | None]]:
    """One made-up system asked once: each case has its own chance to go well, less ``drop``."""
    easy = np.random.default_rng(0).random(CASES)
    draw = np.random.default_rng(seed)
    found: Any = draw.random((3, CASES)) < easy - drop
    return {
        "recall@5": [float(v) for v in found.mean(axis=0)],
        "ndcg@5": [float(v) for v in found[:2].mean(axis=0)],
        "recall_any@5": [float(v) for v in found.any(axis=0)],
    }


def calls(simulations: int, drop: float = 0.0) -> int:
    """In how many comparisons of two seeds any of the metrics gets a verdict."""
    names = tuple(f"retrieval.{name}" for name in METRICS)
    found = 0
    for seed in range(simulations):
        a, b = (
            np.array([scores[name] for name in METRICS], dtype=float).T
            for scores in (asked(2 * seed), asked(2 * seed + 1, drop))
        )
        ids = [str(number) for number in range(CASES)]
        rows = decide(PrimaryTable(names, ids, np.arange(CASES), a, b), seed=seed).rows
        found += any(row.verdict in ("better", "worse") for row in rows)
    return found


def test_a_system_against_itself_and_one_that_broke() -> None:
    """100 comparisons in one joint test of three metrics: 5 % are 5; chance adds up to 4 * 2.2."""
    assert calls(100) <= 5 + 4 * sqrt(100 * 0.05 * 0.95)
    # The same test sees a loss of .4 nearly always: it is not blind.
    assert calls(20, drop=0.4) >= 18


DATA = os.environ.get("RAG_EVAL_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="RAG_EVAL_DATA names no folder of real outputs")


def per_query(data: Path, name: str) -> dict[str, list[float]]:
    """Six TREC systems on the same 100 topics."""
    with gzip.open(data / "trec_robust03" / "reference.json.gz", "rt") as file:
        raw = json.load(file)
    return {
        system: [parts["depth100"]["per_query"][topic][name] for topic in sorted(topics)]
        for system, parts in raw.items()
        if (topics := parts["depth100"]["per_query"])
    }


@needs_data
@each_row("metric", ["P_10", "map"])
def test_real_systems_get_scipys_numbers(metric: str) -> None:
    values = per_query(Path(DATA or ""), metric)
    base = np.array(values.pop("uic0301"))
    for name, other in values.items():
        new = np.array(other)
        effect, evidence = measure(base, new, None)
        mine, test = plain_p(effect, evidence, None, binary=False, name=name, seed=0)
        p = peer.permutation_test(
            (new - base,), np.mean, permutation_type="samples", n_resamples=9999, rng=1
        ).pvalue
        assert test == "sign-flip"
        assert mine == pytest.approx(p, abs=6.5 * sqrt(p * (1 - p) / 10_000) + 2e-4)
        # half of the ties, and no more than them, separates the joint test of one metric
        joint = joint_p((new - base)[:, None])[0]
        assert joint == pytest.approx(p, abs=6.5 * sqrt(p * (1 - p) / 10_000) + 3e-4)


@needs_data
def test_a_real_system_against_itself() -> None:
    """The topics of one system in two halves by seed: 300 simulations, 5 % are 15."""
    values = np.array(per_query(Path(DATA or ""), "map")["uic0301"])
    found = 0
    for seed in range(300):
        order = np.random.default_rng(seed).permutation(values)
        found += joint_p((order[50:] - order[:50])[:, None], seed=seed, draws=2000)[0] < 0.05
    assert found <= 15 + 4 * sqrt(300 * 0.05 * 0.95)
