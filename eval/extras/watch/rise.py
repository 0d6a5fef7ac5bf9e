"""Finds when a share rises above a reference period, and when it is back, by whole weeks.

A figure of production is a share of units (traces or sessions) that are bad, counted by day. Weeks
of quiet traffic differ by more than chance: what users ask changes in waves. So the last one, two
and four whole weeks are compared with the reference as if the logit of each week's share had its
own shift, with the standard deviation t that the weeks of the reference show, .3 at least:

    p = (x + .5) / (n + 1),  SS = sum over the W weeks of (x_w - n_w p)^2 / (n_w p (1 - p)),
    t^2 = max(.3^2, (SS / (W - 1) - 1) / (mean n_w · p (1 - p))),
    rho = min(.5, p (1 - p) t^2 (1/k + 1/W) + 1/n).

An alarm: P(X >= x) of the beta-binomial distribution with mean p and correlation rho is at most
.05 / (40 · figures) at the end of a day. A quarter has about 90 looks, of which neighbouring ones
share most of their days; 40 was chosen by simulation. No window is shorter than a week: of quarters
whose days differ, half would have a false alarm.

It ends when the last two weeks are at or under p, or the last four within a standard deviation
above it, and the share of the rise itself would hardly ever give so few. bench/validate_watch.py of
this folder prints how often an alarm is false, how soon a rise is found, and how soon its end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import accumulate, pairwise
from math import exp, lgamma, log, sqrt
from typing import NamedTuple

from ragmetrics.stats.arrays import np

ALPHA, LOOKS = 0.05, 40
"""Chance of any false alarm in a quarter, shared by all figures, and the number of looks."""

WEEKS = (1, 2, 4)
"""The last whole weeks that are compared with the reference."""

ENOUGH_WEEKS, LEAST_WAVE, MOST_WAVE = 8, 0.3, 0.4
"""Weeks of reference, and the most that they may differ (t), for the promise; the least t."""

DAYS_OF_WEEK = 5
"""Days with units that a week needs; with fewer it reaches further back."""

BACK_ALPHA = 0.05
_TERMS, _SMALL = 1 << 14, 1e-9
_WEEK = timedelta(7)


@dataclass(frozen=True, slots=True)
class DayCount:
    """Number of bad units among a day's ``n`` (traces or sessions). Raises ValueError unless 0 <=
    bad <= n."""

    day: date
    bad: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.bad <= self.n:
            raise ValueError(f"{self.day}: {self.bad} bad of {self.n} is not a share")


@dataclass(frozen=True, slots=True)
class Rise:
    """An alarm. ``since``: the day on which the rise most likely began; ``sounded``: at whose end
    it was found. ``ended``: the day on which it was back; None while it lasts. ``seen``: when a
    person said so; from then on only a rise above the level seen is another alarm."""

    since: date
    sounded: date
    ended: date | None = None
    seen: date | None = None

    @property
    def alarms(self) -> bool:
        """Whether the alarm lasts and has not been seen."""
        return self.ended is None and self.seen is None


@dataclass(frozen=True, slots=True)
class ReferenceShare:
    """A share in the reference period, with the least rise that is an alarm.

    ``share``: bad / n, range 0-1. ``weeks``: whole ones with any unit, counted from its last day
    back. ``wave``: t, how much weeks differ, a standard deviation of logits, at least .3. ``limit``
    the least share of four whole weeks that is an alarm, at the reference's traffic; 1 where not
    even all bad ones are.
    """

    bad: int
    n: int
    weeks: int
    share: float
    wave: float
    limit: float

    @property
    def promises(self) -> bool:
        """Whether the weeks are enough, and similar enough, for the promised false-alarm rate."""
        return self.weeks >= ENOUGH_WEEKS and self.wave <= MOST_WAVE


class _Level(NamedTuple):
    """A share to compare with: p, on how many units and weeks it rests, and t."""

    p: float
    n: int
    weeks: float
    wave: float

    def rho(self, weeks: float) -> float:
        """The correlation of units within ``weeks`` weeks, as far as this level is known."""
        waves = self.p * (1 - self.p) * self.wave**2 * (1 / weeks + 1 / self.weeks)
        return min(0.5, waves + 1 / self.n)

    def score(self, bad: int, n: int, weeks: float) -> float:
        """How many predictive standard deviations a count lies above the level."""
        rho = self.rho(weeks)
        return (bad / n - self.p) / sqrt(self.p * (1 - self.p) * (rho + (1 - rho) / n))

    def is_risen(self, bad: int, n: int, weeks: float, level: float) -> bool:
        # Under two standard deviations the tail is far above any level that is used.
        return self.score(bad, n, weeks) > 2 and upper_tail(bad, n, self.p, self.rho(weeks)) <= (
            level
        )


def watch_share(
    reference: Sequence[DayCount],
    days: Sequence[DayCount],
    figures: int = 1,
    known: Sequence[Rise] = (),
) -> list[Rise]:
    """Compare a share with its reference period and return every alarm so far, oldest first.

    ``reference``: its counts by day. ``days``: the counts of days that are over, in order, none of
    them of the reference; days without units are left out. ``figures``: how many shares are watched
    together. ``known``: what earlier looks found, which stays; only an alarm that lasts may end.
    The same counts give the same answer, however often one looked before.

    Raises ValueError for days out of order, a reference without units, or figures below 1.
    """
    if figures < 1:
        raise ValueError("at least one figure is watched")
    for name, counts in (("reference", reference), ("days", days)):
        if any(later.day <= earlier.day for earlier, later in pairwise(counts)):
            raise ValueError(f"{name}: each day once, oldest first")
    base = _level_of(reference)
    watched = _Days([count for count in days if count.n], reference[-1].day + timedelta(1))
    level, rises = ALPHA / (figures * LOOKS), list(known)
    for place, count in enumerate(watched.counts):
        last = rises[-1] if rises else None
        lasts = last is not None and last.ended is None
        if last is not None and count.day <= (last.ended or last.seen or last.sounded):
            continue
        if last is not None and lasts and watched.is_back(place, last, base):
            rises[-1] = replace(last, ended=count.day)
            continue
        compared, first = base, watched.first
        if last is not None and lasts:
            if last.seen is None:
                continue
            compared = watched.level_seen(last, base)
            first = last.seen + timedelta(1)
        elif last is not None and last.ended is not None:
            first = max(first, last.ended - 2 * _WEEK + timedelta(1))
        if any(watched.is_risen(place, weeks, first, compared, level) for weeks in WEEKS):
            if last is not None and lasts:
                rises[-1] = replace(last, ended=count.day)
            rises.append(Rise(watched.likeliest_start(place, first, compared.p), count.day))
    return rises


def reference_share(reference: Sequence[DayCount], figures: int = 1) -> ReferenceShare:
    """Summarise a share in the reference period, for all figures that are watched together.

    Raises ValueError for a reference without units.
    """
    base, weeks = _level_of(reference), _weeks_of(reference)
    bad = sum(count.bad for count in reference)
    n = max(1, round(WEEKS[-1] * base.n / (len(weeks) or 1)))
    low, high = int(base.p * n), n + 1  # the least count that alarms is above low, at most high
    while high - low > 1:
        middle = (low + high) // 2
        risen = base.is_risen(middle, n, WEEKS[-1], ALPHA / (figures * LOOKS))
        low, high = (low, middle) if risen else (middle, high)
    return ReferenceShare(bad, base.n, len(weeks), bad / base.n, base.wave, min(1.0, high / n))


def upper_tail(bad: int, n: int, p: float, rho: float) -> float:
    """P(X >= bad) of a beta-binomial X: n units, mean p n, correlation rho (0 < p, rho < 1)."""
    if bad <= 0 or bad > n:
        return float(bad <= 0)
    pairs = 1 / rho - 1
    a, b = p * pairs, (1 - p) * pairs
    ways = lgamma(n + 1) - lgamma(bad + 1) - lgamma(n - bad + 1)
    term = ways + lgamma(bad + a) + lgamma(n - bad + b) - lgamma(n + pairs)
    term += lgamma(pairs) - lgamma(a) - lgamma(b)
    total = exp(term)
    for start in range(bad, n, _TERMS):
        k = np.arange(start, min(n, start + _TERMS), dtype=float)
        logs = term + np.cumsum(np.log((n - k) * (k + a) / ((k + 1) * (n - k - 1 + b))))
        total += float(np.exp(logs).sum())
        falls, term = logs[-1] < term, float(logs[-1])
        if falls and b > 1 and exp(term) * (n - start) < _SMALL * total:
            break  # from here on every term is smaller
    return min(1.0, total)


class _Days:
    """The watched days with any unit, and sums over stretches of them."""

    def __init__(self, counts: Sequence[DayCount], first: date) -> None:
        self.counts, self.first = counts, first
        self._dates = [count.day for count in counts]
        self._bad = [0, *accumulate(count.bad for count in counts)]
        self._n = [0, *accumulate(count.n for count in counts)]

    def _sums(self, start: int, end: int) -> tuple[int, int]:
        return self._bad[end] - self._bad[start], self._n[end] - self._n[start]

    def _last_weeks(self, place: int, weeks: int, first: date) -> tuple[int, int] | None:
        """The counts of the last whole weeks; None where they begin before ``first``.

        They reach further back where too few of their days have units."""
        day = self._dates[place]
        start = bisect_right(self._dates, day - weeks * _WEEK)
        start = min(start, place + 1 - DAYS_OF_WEEK * weeks)
        if start < 0 or self._dates[start] < first or day - weeks * _WEEK < first - timedelta(1):
            return None
        return self._sums(start, place + 1)

    def is_risen(self, place: int, weeks: int, first: date, than: _Level, level: float) -> bool:
        counts = self._last_weeks(place, weeks, first)
        return counts is not None and than.is_risen(*counts, weeks, level)

    def is_back(self, place: int, rise: Rise, base: _Level) -> bool:
        """Whether the last two weeks are at or under the reference, or the last four hardly over
        it, and few for the share that rose."""
        risen_bad, risen_n = self._between(rise.since, rise.sounded)
        for weeks, most in ((2, 0.0), (4, 1.0)):
            counts = self._last_weeks(place, weeks, self._dates[0])
            if counts is None or base.score(*counts, weeks) > most:
                continue
            bad, n = counts
            if bad > n * (risen_bad + 1) / (risen_n + 1):
                continue
            share = (risen_bad + 0.5) / (risen_n + 1)
            if not risen_n or 1 - upper_tail(bad + 1, n, share, 1 / (risen_n + 1)) <= BACK_ALPHA:
                return True
        return False

    def level_seen(self, rise: Rise, base: _Level) -> _Level:
        """The level that a person has seen, never under the reference's."""
        until = rise.seen or rise.sounded
        bad, n = self._between(rise.since, until)
        weeks = max(1.0, (until - rise.since) / _WEEK)
        seen = _Level((bad + 0.5) / (n + 1), n, weeks, base.wave)
        return seen if n and seen.p > base.p else base

    def _between(self, first: date, last: date) -> tuple[int, int]:
        start = bisect_right(self._dates, first - timedelta(1))
        return self._sums(start, max(start, bisect_right(self._dates, last)))

    def likeliest_start(self, place: int, first: date, p: float) -> date:
        """The day from which on the share, whatever it is, explains the counts best beside p."""
        starts = range(bisect_right(self._dates, first - timedelta(1)), place + 1)
        best = max(starts, key=lambda start: _gain(*self._sums(start, place + 1), p))
        return self._dates[best]


def _gain(bad: int, n: int, p: float) -> float:
    """The log likelihood ratio of a count's own share against p; 0 where it is not above it."""
    if bad <= n * p:
        return 0.0
    good = n - bad
    return bad * log(bad / n / p) + (good * log(good / n / (1 - p)) if good else 0.0)


def _weeks_of(reference: Sequence[DayCount]) -> list[tuple[int, int]]:
    """Bad units and units of each whole week of the reference, back from its last day; those
    without units are left out."""
    last, first = reference[-1].day, reference[0].day
    sums: dict[int, tuple[int, int]] = {}
    for count in reference:
        number = (last - count.day).days // 7
        bad, n = sums.get(number, (0, 0))
        sums[number] = bad + count.bad, n + count.n
    whole = ((last - first).days + 1) // 7
    return [(bad, n) for number, (bad, n) in sums.items() if number < whole and n]


def _level_of(reference: Sequence[DayCount]) -> _Level:
    n = sum(count.n for count in reference)
    if not n:
        raise ValueError("the reference has no units: nothing can be compared with it")
    p = (sum(count.bad for count in reference) + 0.5) / (n + 1)
    weeks, square = _weeks_of(reference), LEAST_WAVE**2
    if len(weeks) > 1:
        chance = p * (1 - p)
        excess = sum((bad - size * p) ** 2 / (size * chance) for bad, size in weeks)
        mean = sum(size for _, size in weeks) / len(weeks)
        square = max(square, (excess / (len(weeks) - 1) - 1) / (mean * chance))
    return _Level(p, n, max(1, len(weeks)), sqrt(square))
