"""Shares that rise: e-values by hand and by a second implementation, and what must always hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import product
from math import comb, exp, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import beta, betabinom, chi2

from ragmetrics.stats.rise import DayCount, quarter_days, quarter_start, watch_share

QUARTER = date(2026, 1, 1)
"""The first of a quarter of 31 + 28 + 31 = 90 days."""


def series(start: date, counts: Sequence[tuple[int, int]]) -> list[DayCount]:
    """Counts of bad and all, a day each."""
    return [DayCount(start + timedelta(i), bad, n) for i, (bad, n) in enumerate(counts)]


def one_day(bad: int, n: int) -> list[DayCount]:
    return [DayCount(date(2025, 12, 1), bad, n)]


def ratio(bad: int, n: int, times: float, share: float) -> float:
    return times**bad * ((1 - times * share) / (1 - share)) ** (n - bad)


def test_the_first_day_by_hand() -> None:
    """A reference so large that its share is .1 to five digits, whatever p is tried: only its bet
    is left, which is least at two standard errors below, .25 + .75 e^(2 (-2) - 2) = .251859.

    3 bad of 5 at p = .1: 1.25³ (.875/.9)² = 1.84613, 1.5³ (.85/.9)² = 3.01042,
    2³ (.8/.9)² = 6.32099, 3³ (.7/.9)² = 16.33333; mean 6.87772. One of 90 starts has begun:
    .251859 (6.87772 / 90 + 89/90) = .268308.
    """
    huge = one_day(10**9, 10**10)
    (quarter,) = watch_share(huge, series(QUARTER, [(3, 5)]))
    assert quarter.e_value == pytest.approx(0.268308, rel=1e-4)
    assert (quarter.alarm, quarter.since, quarter.sounded) == (False, None, None)
    # Without any unit on the days before it, the tenth day carries the weight of ten starts.
    (late,) = watch_share(huge, [DayCount(date(2026, 1, 10), 3, 5)])
    assert late.e_value == pytest.approx(0.251859 * (10 * 6.87772 + 80) / 90, rel=1e-4)


def test_two_days_by_hand() -> None:
    """Starts on day one multiply both days, starts on day two count the second alone, and 88 have
    not begun: .251859 (mean of L1 L2 + mean of L2 + 88) / 90, with 2 bad of 4, then 5 of 6, p .1.

    L1 = 1.25² (.875/.9)² = 1.476900, 1.5² (.85/.9)² = 2.006944, 4 (.8/.9)² = 3.160494,
    9 (.7/.9)² = 5.444444. L2 = 1.25⁵ (.875/.9) = 2.966987, 1.5⁵ (.85/.9) = 7.171875,
    32 (.8/.9) = 28.444444, 243 (.7/.9) = 189. Mean of L1 L2 = (4.381944 + 14.393554 + 89.898491 +
    1029) / 4 = 284.418497, mean of L2 = 56.895827.
    """
    (quarter,) = watch_share(one_day(10**9, 10**10), series(QUARTER, [(2, 4), (5, 6)]))
    expected = 0.251859 * (284.418497 + 56.895827 + 88) / 90
    assert quarter.days[-1].e_value == pytest.approx(expected, rel=1e-4)


def second_opinion(
    reference: Sequence[DayCount], days: Sequence[DayCount], figures: int
) -> tuple[list[float], float, float]:
    """E-values, scatter and upper limit, by plain products of scipy's distributions."""
    bad, n, k = sum(c.bad for c in reference), sum(c.n for c in reference), len(reference)
    p = (bad + 0.5) / (n + 1)
    squares = sum((c.bad - c.n * p) ** 2 / (c.n * p * (1 - p)) for c in reference)
    weight, free, freedom = n - sum(c.n**2 for c in reference) / n - (k - 1), k - 1.0, k - 1.0
    scatters = []
    for place in range(len(days)):
        if place >= 2:
            a, b = days[place - 2 : place]
            pooled = (a.bad + b.bad + 0.5) / (a.n + b.n + 1)
            chance = 1 / a.n + 1 / b.n
            squares += (a.bad / a.n - b.bad / b.n) ** 2 / pooled / (1 - pooled) / chance
            weight, free, freedom = weight + 2 / chance - 1, free + 1, freedom + 2 / 3
        excess = max(0.0, squares - free) / weight if weight > 0 else 0.0
        limit = freedom / chi2.ppf(0.02, freedom) if excess else 0.0
        scatters.append(min(0.5, excess * limit))

    def likelihood(count: DayCount, share: float, scatter: float) -> float:
        if scatter < 1e-7:
            ways = comb(count.n, count.bad)
            return float(ways * share**count.bad * (1 - share) ** (count.n - count.bad))
        pairs = 1 / scatter - 1
        return float(betabinom.pmf(count.bad, count.n, share * pairs, (1 - share) * pairs))

    scatter = first_scatter(reference)
    size = n / (1 + (sum(c.n**2 for c in reference) / n - 1) * scatter)
    values = [float("inf")] * len(days)
    for z in np.linspace(-2, 10, 49):
        centre = (p + z * z / 2 / size) / (1 + z * z / size)
        tried = centre + z * sqrt(p * (1 - p) / size + z * z / 4 / size**2) / (1 + z * z / size)
        below = max(tried - 2 * sqrt(tried * (1 - tried) / size), tried / 5)
        against = 1.0
        for count in reference:
            against *= likelihood(count, below, scatter) / likelihood(count, tried, scatter)
        for last in range(len(days)):
            total = quarter_days(QUARTER) - last - 1.0
            for first in range(last + 1):
                for times in (1.25, 1.5, 2, 3):
                    after = min(times * tried, (1 + tried) / 2)
                    product_ = 1.0
                    for place in range(first, last + 1):
                        product_ *= likelihood(days[place], after, scatters[place])
                        product_ /= likelihood(days[place], tried, scatters[place])
                    total += product_ / 4
            value = (0.25 + 0.75 * against) * total / quarter_days(QUARTER)
            values[last] = min(values[last], value)
    tail = 0.05 / figures / 2
    shrink = size / n
    upper = beta.ppf(1 - tail, bad * shrink + 1, (n - bad) * shrink)
    return values, scatter, float(upper)


def first_scatter(reference: Sequence[DayCount]) -> float:
    """By analysis of variance between the days of the reference, at the upper limit of chi²."""
    bad, n, free = sum(c.bad for c in reference), sum(c.n for c in reference), len(reference) - 1
    p = (bad + 0.5) / (n + 1)
    between = sum(c.n * (c.bad / c.n - p) ** 2 for c in reference) / (p * (1 - p))
    typical = (n - sum(c.n**2 for c in reference) / n) / free if free else 0.0
    excess = max(0.0, between / free - 1) / (typical - 1) if free else 0.0
    return min(0.5, excess * free / chi2.ppf(0.02, free)) if excess else 0.0


@pytest.mark.parametrize(
    "before",
    [[(5, 60)], [(2, 40), (3, 50), (2, 30)], [(0, 40), (9, 50), (1, 30), (4, 35)], [(0, 50)]],
    ids=["one day", "days alike", "days that scatter", "no bad one"],
)
def test_a_second_implementation_agrees(before: list[tuple[int, int]]) -> None:
    reference = series(date(2025, 12, 1), before)
    days = series(QUARTER, [(1, 20), (4, 22), (0, 15), (9, 30)])
    (quarter,) = watch_share(reference, days, 2)
    values, scatter, upper = second_opinion(reference, days, 2)
    assert [day.e_value for day in quarter.days] == pytest.approx(values, rel=1e-7)
    assert quarter.reference.scatter == pytest.approx(scatter, rel=1e-9)
    assert quarter.reference.upper == pytest.approx(upper, rel=1e-9)
    assert quarter.threshold == 40


@pytest.mark.parametrize("p", [0.08, 0.3, 0.75])
def test_nobody_gains_on_average_while_nothing_rose(p: float) -> None:
    """The mean of the e-value over every outcome of a reference of 6 and two days of 2 is at most
    1, each outcome weighed by its chance: the promise itself, without a simulation."""
    mean = 0.0
    for before, first, second in product(range(7), range(3), range(3)):
        chance = 1.0
        for bad, n in ((before, 6), (first, 2), (second, 2)):
            chance *= comb(n, bad) * p**bad * (1 - p) ** (n - bad)
        (quarter,) = watch_share(one_day(before, 6), series(QUARTER, [(first, 2), (second, 2)]))
        mean += chance * quarter.days[-1].e_value
    assert 0.2 < mean <= 1.0


def test_a_rise_is_found_and_its_first_day_is_named() -> None:
    """Twenty days at 4 %, then 9 %, without noise: the heaviest start is the first of the rise."""
    reference = series(date(2025, 11, 1), [(4, 100)] * 30)
    days = series(QUARTER, [(4, 100)] * 20 + [(9, 100)] * 20)
    (quarter,) = watch_share(reference, days, 8)
    assert quarter.alarm
    assert quarter.lasting
    assert quarter.since == date(2026, 1, 21)
    assert quarter.until == date(2026, 2, 9)
    assert (quarter.bad, quarter.n, quarter.share) == (180, 2000, 0.09)
    assert quarter.sounded is not None
    assert date(2026, 1, 24) <= quarter.sounded <= date(2026, 1, 28), "within 700 traces"
    assert quarter.share_after is None


def test_a_rise_that_ended_keeps_its_days() -> None:
    reference = series(date(2025, 11, 1), [(4, 100)] * 30)
    days = series(QUARTER, [(4, 100)] * 10 + [(12, 100)] * 10 + [(2, 100)] * 50)
    (quarter,) = watch_share(reference, days)
    assert (quarter.alarm, quarter.lasting) == (True, False)
    assert (quarter.since, quarter.until) == (date(2026, 1, 11), date(2026, 1, 20))
    assert (quarter.share, quarter.share_after) == (0.12, 0.02)


def test_days_that_scatter_do_not_alarm_as_days_alike_would() -> None:
    """Days of 1 % and 9 % by turns, as in the reference: three high days in a row are no rise. The
    same days after a reference that is 5 % every day are one."""
    swinging = series(date(2025, 11, 1), [(10, 1000), (90, 1000)] * 15)
    steady = series(date(2025, 11, 1), [(50, 1000)] * 30)
    days = series(QUARTER, [(10, 1000), (90, 1000), (90, 1000), (90, 1000)])
    assert not watch_share(swinging, days)[0].alarm
    assert watch_share(steady, days)[0].alarm


def test_few_alarms_while_nothing_rose_and_many_when_it_did() -> None:
    """bench/validate_watch.py has the figures; 60 quarters show that the rule is wired up: three
    alarms or more have a chance below .001 at one in two hundred."""
    rng = np.random.default_rng(5)
    alarms = found = 0
    for _ in range(60):
        reference = series(date(2025, 10, 1), [(int(b), 60) for b in rng.binomial(60, 0.04, 60)])
        steady = [(int(b), 60) for b in rng.binomial(60, 0.04, 90)]
        risen = steady[:40] + [(int(b), 60) for b in rng.binomial(60, 0.09, 30)]
        alarms += watch_share(reference, series(QUARTER, steady), 8)[0].alarm
        found += watch_share(reference, series(QUARTER, risen), 8)[0].alarm
    assert alarms < 3
    assert found >= 57


counts = st.tuples(st.integers(0, 12), st.integers(0, 25)).map(lambda pair: (min(pair), pair[1]))
references = st.lists(counts, min_size=1, max_size=6).filter(lambda days: any(n for _, n in days))


@settings(max_examples=30, deadline=None)
@given(references, st.lists(counts, min_size=1, max_size=8), st.integers(0, 89))
@example([(0, 5)], [(5, 5)], 0)
@example([(5, 5)], [(5, 5)], 89)
def test_what_always_holds(
    before: list[tuple[int, int]], after: list[tuple[int, int]], skipped: int
) -> None:
    reference = series(date(2025, 12, 1), before)
    days = series(QUARTER + timedelta(skipped), after)
    quarters = watch_share(reference, days, 3)
    values = [(day.day, day.e_value) for quarter in quarters for day in quarter.days]
    assert [day for day, _ in values] == [count.day for count in days if count.n]

    # Earlier looks saw the same: a look uses no day after it.
    for end in range(len(days)):
        looked = watch_share(reference, days[:end], 3)
        part = [(day.day, day.e_value) for quarter in looked for day in quarter.days]
        assert part == values[: len(part)]

    # Days without units change nothing.
    assert watch_share(reference, [count for count in days if count.n], 3) == quarters

    for quarter in quarters:
        assert quarter.start == quarter_start(quarter.days[0].day)
        assert quarter.alarm == (quarter.e_value >= quarter.threshold == 60)
        reached = [day.day for day in quarter.days if day.e_value >= quarter.threshold]
        assert quarter.sounded == (reached[0] if reached else None)
        assert quarter.lasting == (quarter.days[-1].day in reached)
        if quarter.since and quarter.until:
            assert quarter.since <= quarter.until
            span = [d for d in quarter.days if quarter.since <= d.day <= quarter.until]
            assert quarter.bad == sum(d.bad for d in span)
            assert quarter.share == quarter.bad / quarter.n
        assert quarter.reference.share <= quarter.reference.upper <= 1

    # One more bad unit on the last day speaks more for a rise.
    bad, n = after[-1]
    if bad < n:
        more = [*days[:-1], DayCount(days[-1].day, bad + 1, n)]
        assert watch_share(reference, more, 3)[-1].days[-1].e_value > values[-1][1]


def test_a_new_quarter_begins_anew() -> None:
    """The evidence of one quarter is nothing in the next: the first day of April is the first of 91
    starts, whatever March was. (Days of 5 % each scatter less than chance.)"""
    reference = series(date(2025, 11, 1), [(50, 1000)] * 30)
    march = series(date(2026, 3, 20), [(150, 1000)] * 12)
    april = series(date(2026, 4, 1), [(60, 1000)])
    before, after = watch_share(reference, [*march, *april])
    assert (before.start, before.alarm) == (date(2026, 1, 1), True)
    assert (after.start, after.alarm) == (date(2026, 4, 1), False)
    assert after.days == watch_share(reference, april)[0].days
    assert [quarter_days(date(2026, month, 9)) for month in (2, 5, 8, 11)] == [90, 91, 92, 92]
    assert quarter_days(date(2028, 2, 29)) == 91


def test_more_figures_ask_for_more() -> None:
    reference = series(date(2025, 12, 1), [(4, 100)] * 30)
    days = series(QUARTER, [(9, 100)] * 30)
    alone, many = (watch_share(reference, days, figures)[0] for figures in (1, 8))
    assert (alone.threshold, many.threshold) == (20, 160)
    assert alone.e_value == many.e_value
    assert alone.sounded is not None
    assert many.sounded is not None
    assert alone.sounded < many.sounded
    assert alone.reference.upper < many.reference.upper


def test_huge_evidence_stays_a_number() -> None:
    (quarter,) = watch_share(one_day(0, 10**6), series(QUARTER, [(10**6, 10**6)]))
    assert quarter.e_value == pytest.approx(exp(690))
    assert quarter.reference.upper < 1e-5


def test_what_cannot_be_watched_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2026-01-01: 3 bad of 2 is no share"):
        DayCount(QUARTER, 3, 2)
    with pytest.raises(ValueError, match="reference has no units"):
        watch_share(one_day(0, 0), [])
    with pytest.raises(ValueError, match="at least one figure"):
        watch_share(one_day(1, 9), [], 0)
    with pytest.raises(ValueError, match="days: each day once, oldest first"):
        watch_share(one_day(1, 9), [DayCount(QUARTER, 0, 1), DayCount(QUARTER, 0, 1)])
    assert watch_share(one_day(1, 9), []) == []
