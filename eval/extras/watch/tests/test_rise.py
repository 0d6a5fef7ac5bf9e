"""Shares that rise: tails by a second implementation, alarms by hand, and what must always hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom

from extras.watch.rise import DayCount, Rise, reference_share, upper_tail, watch_share

FIRST = date(2026, 1, 5)
WEEKS = 8


def series(start: date, counts: Sequence[tuple[int, int]]) -> list[DayCount]:
    """Counts of bad and all, a day each."""
    return [DayCount(start + timedelta(i), bad, n) for i, (bad, n) in enumerate(counts)]


def day(place: int) -> date:
    return FIRST + timedelta(place)


STEADY = series(FIRST - timedelta(7 * WEEKS), [(4, 100)] * 7 * WEEKS)
"""224 of 5,600 in eight weeks that do not differ: p = 224.5 / 5601 = .040082, t = .3."""

P = 224.5 / 5601


def rho(weeks: int) -> float:
    """By hand: p (1 - p) .09 (1/k + 1/8) + 1/5600."""
    return P * (1 - P) * 0.09 * (1 / weeks + 1 / 8) + 1 / 5600


def tail(bad: int, n: int, weeks: int) -> float:
    """P(X >= bad), by scipy."""
    pairs = 1 / rho(weeks) - 1
    return float(betabinom.sf(bad - 1, n, P * pairs, (1 - P) * pairs))


@given(
    st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.floats(0.001, 0.999),
    st.floats(0.0005, 0.5),
)
def test_tails_are_those_of_scipy(counts: tuple[int, int], p: float, rho: float) -> None:
    bad, n = counts
    expected = betabinom.sf(bad - 1, n, p * (1 / rho - 1), (1 - p) * (1 / rho - 1))
    assert upper_tail(bad, n, p, rho) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_tails_at_the_ends_and_of_many_units() -> None:
    assert upper_tail(0, 9, 0.2, 0.1) == 1.0
    assert upper_tail(10, 9, 0.2, 0.1) == 0.0
    # 4 % of a million, 6 % seen, weeks that differ: a beta distribution in all but name.
    from scipy.stats import beta

    pairs = 1 / rho(1) - 1
    assert upper_tail(60_000, 1_000_000, P, rho(1)) == pytest.approx(
        beta.sf(0.06, P * pairs, (1 - P) * pairs), rel=0.01
    )


def test_the_day_of_an_alarm_is_that_of_the_rule() -> None:
    """Twenty days at 4 %, then 9 %: the alarm comes on the first day at whose end the last 7, 14
    or 28 days are as unlikely as .05 / (7 · 40), each by scipy's distribution."""
    bad = [4] * 20 + [9] * 40
    (rise,) = watch_share(STEADY, series(FIRST, [(b, 100) for b in bad]), 7)
    expected = next(
        end
        for end in range(7, 61)
        if any(
            end >= 7 * weeks
            and tail(sum(bad[end - 7 * weeks : end]), 700 * weeks, weeks) <= 0.05 / (7 * 40)
            for weeks in (1, 2, 4)
        )
    )
    assert rise == Rise(day(20), day(expected - 1))
    assert rise.alarms


def test_no_window_is_shorter_than_a_week() -> None:
    """Six days at 40 % are no look; the seventh is."""
    assert watch_share(STEADY, series(FIRST, [(40, 100)] * 6), 7) == []
    (rise,) = watch_share(STEADY, series(FIRST, [(40, 100)] * 7), 7)
    assert (rise.since, rise.sounded) == (FIRST, day(6))


def test_a_day_after_a_gap_is_no_week() -> None:
    """After three weeks without traffic the last seven days are one day: it reaches back to five
    days with units (four at 4 %, one at 20 %: 36 of 500), which are not unlikely enough."""
    counts = [(4, 100)] * 7 + [(0, 0)] * 21 + [(20, 100)]
    assert watch_share(STEADY, series(FIRST, counts), 7) == []
    assert tail(20, 100, 1) < 0.05 / (7 * 40)  # the day alone would have been
    assert watch_share(STEADY, series(FIRST, counts + [(20, 100)] * 4), 7) != []


def test_it_is_over_when_two_weeks_are_back() -> None:
    """30 days at 9 %, then 4 %: .04 is under p = .0401 after 14 days, not earlier. (Four weeks are
    within a predictive deviation later.)"""
    counts = [(9, 100)] * 30 + [(4, 100)] * 20
    (rise,) = watch_share(STEADY, series(FIRST, counts), 7)
    assert (rise.since, rise.ended, rise.alarms) == (FIRST, day(30 + 14 - 1), False)


def test_it_is_over_when_four_weeks_are_hardly_above() -> None:
    """At 5 % two weeks are never at or under 4 %; four weeks are within one predictive deviation:
    sqrt(p (1 - p) (rho + (1 - rho) / 2800)) = .0081 above .0401. At 6 % they are not."""
    reach = sqrt(P * (1 - P) * (rho(4) + (1 - rho(4)) / 2800))
    assert 0.047 < P + reach < 0.05
    above = [(9, 100)] * 30 + [(5, 100), (4, 100), (5, 100), (5, 100)] * 10  # 4.75 %
    (rise,) = watch_share(STEADY, series(FIRST, above), 7)
    assert rise.ended is not None
    assert 30 + 14 <= (rise.ended - FIRST).days <= 30 + 28
    (still,) = watch_share(STEADY, series(FIRST, [(9, 100)] * 30 + [(6, 100)] * 60), 7)
    assert still.ended is None


def test_silence_ends_no_alarm() -> None:
    """A few units without a bad one, as 9 % gives them too, are no end: 5 a day for two weeks,
    P(0 of 70 | .09) = .0014 is one; 1 a day, P(0 of 14) = .27, is none."""
    for per_day, is_over in ((5, True), (1, False)):
        counts = [(9, 100)] * 30 + [(0, per_day)] * 14
        (rise,) = watch_share(STEADY, series(FIRST, counts), 7)
        assert (rise.ended is not None) == is_over


def test_what_was_seen_is_no_alarm_until_it_rises_further_or_anew() -> None:
    days = series(FIRST, [(9, 100)] * 30 + [(9, 100)] * 60)
    (rise,) = watch_share(STEADY, days[:30], 7)
    seen = replace(rise, seen=day(29))
    assert watch_share(STEADY, days, 7, [seen]) == [seen]
    assert not seen.alarms
    # 9 % was seen; 25 % is more.
    more = [*days[:40], *series(day(40), [(25, 100)] * 20)]
    was, now = watch_share(STEADY, more, 7, [seen])
    assert (was.seen, now.since, now.alarms) == (day(29), day(40), True)
    assert was.ended == now.sounded
    # Back, then 9 % again: a new alarm against the reference.
    again = [*days[:30], *series(day(30), [(4, 100)] * 20 + [(9, 100)] * 30)]
    was, now = watch_share(STEADY, again, 7, [seen])
    assert (was.ended, now.since, now.alarms) == (day(43), day(50), True)


def test_a_known_alarm_outlives_the_days_that_it_was_found_in() -> None:
    """The index was deleted, and the old traces are gone: the alarm lasts until it is back."""
    known = [Rise(day(3), day(10))]
    later = series(day(40), [(9, 100)] * 5)
    assert watch_share(STEADY, later, 7, known) == known
    back = series(day(40), [(4, 100)] * 14)
    assert watch_share(STEADY, back, 7, known) == [replace(known[0], ended=day(53))]
    assert watch_share(STEADY, [], 7, known) == known


def test_weeks_that_differ_are_taken_to_differ() -> None:
    """Weeks of 14 and 42 in turns, 14.06 below and 13.94 above 700 p = 28.06: SS = 4 (14.06² +
    13.94²) / (700 p (1 - p)) = 58.2, t² = (58.2 / 7 - 1) / (700 p (1 - p)) = .2717."""
    waves = [(2, 100)] * 7 + [(6, 100)] * 7
    reference = series(FIRST - timedelta(56), waves * 4)
    facts = reference_share(reference, 7)
    chance = P * (1 - P)
    squares = 4 * (14 - 700 * P) ** 2 + 4 * (42 - 700 * P) ** 2
    square = (squares / (700 * chance) / 7 - 1) / (700 * chance)
    assert facts.wave == pytest.approx(sqrt(square))
    assert facts.wave == pytest.approx(0.5212, abs=1e-4)
    assert (facts.weeks, facts.promises) == (8, False)
    assert watch_share(reference, series(FIRST, [(9, 100)] * 14), 7) == []
    assert reference_share(STEADY[14:]).promises is False  # six weeks
    assert reference_share(STEADY).wave == 0.3


def test_the_limit_is_the_least_share_of_four_weeks_that_alarms() -> None:
    facts = reference_share(STEADY, 7)
    bad = round(facts.limit * 2800)
    assert tail(bad, 2800, 4) <= 0.05 / 280 < tail(bad - 1, 2800, 4)
    assert reference_share(STEADY, 1).limit < facts.limit
    assert reference_share([DayCount(FIRST, 3, 4)]).limit == 1.0  # not even four of four


COUNT = st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(max_examples=60, deadline=None)
@given(st.lists(COUNT, min_size=1, max_size=60), st.lists(COUNT, max_size=60))
def test_what_always_holds(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
    reference = series(FIRST - timedelta(len(before)), [*before[:-1], (1, 9)])
    days = series(FIRST, after)
    rises = watch_share(reference, days, 3)
    for rise in rises:
        assert rise.since <= rise.sounded <= (rise.ended or date.max)
    for earlier, later in pairwise(rises):
        assert earlier.ended is not None
        assert earlier.ended < later.sounded
    # Looks in between, from what is known then on, find the same; so does one after a crash.
    known: list[Rise] = []
    for end in range(0, len(days) + 1, 7):
        known = watch_share(reference, days[:end], 3, known)
        assert watch_share(reference, days[:end], 3, known) == known
    assert watch_share(reference, days, 3, known) == rises
    # An alarm that is known is not lost when a clock goes back.
    back = watch_share(reference, days[: len(days) // 2], 3, known)
    assert back[: len(known)] == known
    # Days without units change nothing.
    assert watch_share(reference, [count for count in days if count.n], 3) == rises
    assert 0 < reference_share(reference, 3).limit <= 1


def test_what_cannot_be_watched_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2026-01-05: 3 bad of 2 is not a share"):
        DayCount(FIRST, 3, 2)
    with pytest.raises(ValueError, match="reference has no units"):
        watch_share([DayCount(day(-1), 0, 0)], [])
    one = [DayCount(day(-1), 1, 9)]
    with pytest.raises(ValueError, match="at least one figure"):
        watch_share(one, [], 0)
    with pytest.raises(ValueError, match="days: each day once, oldest first"):
        watch_share(one, [DayCount(FIRST, 0, 1), DayCount(FIRST, 0, 1)])
    assert watch_share(one, []) == []
