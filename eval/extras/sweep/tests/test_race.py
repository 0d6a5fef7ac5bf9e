"""Who is dropped from a race, which limits are proven broken, who is on the Pareto line."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from math import sqrt

import numpy as np
import pytest
from scipy import stats as peer
from tests.rows import each_row

from extras.sweep import race
from extras.sweep.order import portions, random_order
from records.cases import TestCase
from records.errors import StorageError

NAMES = ("good", "same", "bad")
RULES = race.Rules(NAMES)


def quality(cases: int = 200) -> dict[str, race.Floats]:
    """good hits 9 of 10 cases, same hits as many others, bad 3 of 10."""
    at = np.arange(cases) % 10
    return {
        "good": (at != 0).astype(float),
        "same": (at != 1).astype(float),
        "bad": (at < 3).astype(float),
    }


def test_what_is_proven_worse_is_dropped_and_nothing_else() -> None:
    (drop,) = race.dropped(quality(), None, RULES, NAMES)
    assert (drop.setting, drop.better) == ("bad", "good")
    # good - bad: 0 hits only of bad in 1 of 10, both in 2, only good in 7: mean .6
    assert drop.seen.difference == pytest.approx(-0.6)
    assert "against good" in drop.reason


def test_the_interval_by_hand() -> None:
    """Differences of same and good: one of 10 is 1, one is -1, so their mean is 0 and their
    variance n (.2) / (n - 1); an unseen change would add .8 · 1² / (n - 1), as every interval here
    does. Three pairs share .05, and ten looks divide by 5: t at .05/3/5/2."""
    values, n = quality(), 200
    seen = race.held_against(values["good"], values["same"], None, RULES, 3)
    assert seen is not None
    variance = 0.2 * n / (n - 1) + 0.8 / (n - 1)
    half = peer.t.isf(0.05 / 3 / 5 / 2, n - 1) * sqrt(variance / n)
    assert seen == pytest.approx((0.0, -half, half))
    fewer = race.held_against(values["good"], values["same"], None, RULES, 2)
    assert fewer is not None
    assert fewer.high == pytest.approx(half * peer.t.isf(0.005, n - 1) / peer.t.isf(1 / 600, n - 1))


def test_the_chance_to_be_told_apart_by_hand() -> None:
    """Half of 400 cases asked; differences as above, so their variance at the end is that of 400,
    and the last mean is normal around 0 with its standard error times sqrt(.5 / .5)."""
    values, n = quality(), 200
    chance = race.chance_apart(values["good"], values["same"], None, RULES, 2, 0.5)
    error = sqrt((0.2 * n / (n - 1) + 0.8 / 399) / 400)
    half = peer.t.isf(0.05 / 5 / 2, 399) * error
    assert chance == pytest.approx(2 * peer.norm.sf(half / error), rel=1e-6)
    sure = race.chance_apart(values["good"], values["bad"], None, RULES, 2, 0.5)
    assert sure == pytest.approx(1.0, abs=1e-6)


def test_a_race_is_futile_from_half_of_it_on_when_nothing_will_be_told_apart() -> None:
    values = quality()
    pair = ["good", "same"]
    # at half there is a chance of 1 in 100 (above: 2 sf(2.82)), and it is less later
    assert race.futile(values, None, RULES, pair, 0.5)
    assert race.futile(values, None, RULES, pair, 0.9)
    assert not race.futile(values, None, RULES, pair, 0.4)
    assert not race.futile(values, None, RULES, NAMES, 0.5)  # bad will be told apart
    assert not race.futile(values, None, RULES, ["good"], 0.5)
    five = np.arange(200) % 5  # five clusters say nothing
    assert not race.futile(values, five, RULES, pair, 0.5)


def test_clusters_few_cases_and_protection() -> None:
    values = quality()
    assert race.dropped(values, np.arange(200) % 5, RULES, NAMES) == []  # five clusters
    protected = race.Rules(NAMES, frozenset(["bad"]))
    assert race.dropped(values, None, protected, NAMES) == []
    assert race.dropped({name: own[:8] for name, own in values.items()}, None, RULES, NAMES) == []
    nothing = {name: np.full(50, np.nan) for name in NAMES}
    assert race.dropped(nothing, None, RULES, NAMES) == []
    assert race.best_of(values, ["same", "good"]) == "same"  # of equal ones the first


def test_a_case_that_failed_is_compared_nowhere() -> None:
    values = quality()
    values["bad"][::2] = np.nan
    (drop,) = race.dropped(values, None, RULES, NAMES)
    # of the odd places 1, 3, 5, 7, 9 good hits all, bad hits the first: mean -.8
    assert drop.seen.difference == pytest.approx(-0.8)


@each_row(
    ("text", "name", "percent", "bound"),
    [
        ("p95_latency_ms <= 3000", "latency_ms", 95, 3000.0),
        (" cost_usd<=.01 ", "cost_usd", None, 0.01),
        ("evidence_recall@5 >= 0.7", "evidence_recall@5", None, 0.7),
        ("pass >= 1e-1", "pass", None, 0.1),
    ],
)
def test_limits_are_read(text: str, name: str, percent: int | None, bound: float) -> None:
    limit = race.limit_of(text)
    assert (limit.name, limit.percent, limit.bound) == (name, percent, bound)


@each_row("text", ["fast", "p95_latency_ms < 3000", "x <= y", "<= 3"])
def test_other_texts_are_no_limits(text: str) -> None:
    with pytest.raises(StorageError, match="write NAME <= NUMBER"):
        race.limit_of(text)


def test_a_percentile_is_broken_when_the_binomial_says_so() -> None:
    """One limit of three settings: level .05/3/5 = 1/300. Of 100 calls at most 5 % may be slow."""
    limit = race.limit_of("p95_latency_ms <= 100")
    rules = race.Rules(NAMES, limits=(limit,))
    for slow in range(5, 20):
        times = np.where(np.arange(100) < slow, 200.0, 50.0)
        is_proven = peer.binom.sf(slow - 1, 100, 0.05) <= 0.05 / 3 / 5
        assert bool(race.broken(limit, times, None, rules)) == is_proven, slow
    assert race.broken(limit, np.full(3, np.nan), None, rules) == ""


def test_a_mean_is_broken_by_its_standard_error() -> None:
    """Costs of 0 and 2: mean 1, sd √(n/(n - 1)); with 100 calls t at 1/300 is 2.76, so a limit of
    .5 is broken by 5 standard errors and one of .8 is not (2 of them)."""
    costs = np.tile([0.0, 2.0], 50)
    rules = race.Rules(NAMES, limits=(race.limit_of("cost_usd <= 1"),))
    assert "0.5" in race.broken(race.limit_of("cost_usd <= 0.5"), costs, None, rules)
    assert race.broken(race.limit_of("cost_usd <= 0.8"), costs, None, rules) == ""
    assert race.broken(race.limit_of("cost_usd <= 0.5"), costs, np.arange(100) % 4, rules) == ""
    assert race.broken(race.limit_of("cost_usd >= 1.5"), costs, None, rules) != ""


def test_the_pareto_line() -> None:
    points = {"best": (-0.9, 50.0, None), "fast": (-0.8, 10.0, None)}
    points |= {"beaten": (-0.8, 20.0, None), "twin": (-0.9, 50.0, None)}
    assert race.pareto(points) == ["best", "fast", "twin"]


def cases(count: int) -> list[TestCase]:
    """Three quarters factual; every tenth document holds five cases."""
    made = [TestCase(f"q{n}", f"question {n}") for n in range(count)]
    for n, case in enumerate(made):
        case.category = "reasoning" if n % 4 == 0 else "factual"
        case.group = f"g{n // 5}" if n // 5 % 10 == 0 else None
    return made


def test_every_case_once_and_clusters_whole() -> None:
    order = random_order(cases(200), seed=1)
    ids = sorted(case.id for cluster in order for case in cluster)
    assert ids == sorted(case.id for case in cases(200))
    sizes = Counter(map(len, order))
    assert sizes == {5: 4, 1: 180}  # g0, g10, g20, g30 hold 5 cases each
    assert all(len({case.group for case in cluster}) == 1 for cluster in order)


def test_the_seed_decides_and_the_order_of_the_set_is_gone() -> None:
    first, same, other = (random_order(cases(100), seed) for seed in (1, 1, 2))
    assert first == same
    assert first != other
    ids = [case.id for cluster in first for case in cluster]
    assert ids != sorted(ids, key=lambda name: int(name[1:]))


def test_kinds_are_mixed_evenly() -> None:
    """Of m clusters of a kind, any share t of the order holds t·m of them, give or take three."""
    order = [c for c in random_order(cases(400), seed=3) if len(c) == 1]
    for category in ("reasoning", "factual"):
        own = [cluster[0].category == category for cluster in order]
        total = sum(own)
        for at, count in enumerate(accumulate(own), 1):
            assert abs(count - total * at / len(own)) <= 3


def test_portions_are_equal_and_cut_no_cluster() -> None:
    order = random_order(cases(200), seed=1)
    parts = portions(order, 5)
    assert [case for part in parts for case in part] == [c for cluster in order for c in cluster]
    assert len(parts) == 5
    assert all(abs(len(part) - 40) <= 5 for part in parts)
    groups = [{case.group for case in part} - {None} for part in parts]
    assert sum(map(len, groups)) == len(set().union(*groups))


def test_fewer_clusters_than_portions() -> None:
    assert [len(part) for part in portions(random_order(cases(5), 0), 5)] == [5]
    assert portions([], 5) == []


def test_a_conversation_is_asked_whole_and_in_order() -> None:
    """Two conversations of a group stand together, too: as the set has them."""
    talks = [
        TestCase(f"{c}{n}", "?", conversation=c, turn=n, group="g" if c in "ab" else None)
        for c in "abcdefgh"
        for n in (1, 2, 3)
    ]
    order = random_order(talks, seed=3)
    names = ["".join(case.id for case in cluster) for cluster in order]
    assert sorted(names) == ["a1a2a3b1b2b3", *(f"{name}1{name}2{name}3" for name in "cdefgh")]
    for part in portions(order, 5):
        turns = [case.turn for case in part]
        assert turns == [1, 2, 3] * (len(part) // 3)
