"""Did a share rise since a reference period, however often one looks? An e-process; pure functions.

A figure of production is a share of units (traces or sessions) that are bad, counted by day. An
e-value is a bet against "nothing rose": its mean is at most 1 while nothing did, and the chance
that it ever reaches 1/alpha is at most alpha (Ville 1939; Ramdas, Grunwald, Vovk and Shafer 2023).
So one may look every day, and stop at the first alarm.

For each share p that the reference period allows, two bets are multiplied:

- against p in the reference: a quarter of the stake stays, the rest goes on a share two standard
  errors below p (the more the reference speaks against p, the more is won);
- against p in the days that are watched: likelihood ratios of 1.25, 1.5, 2 and 3 times p, mixed
  with equal weights over ratios and over the days of the calendar quarter at which a rise may
  start.

The e-value is the least such product over all p, so that no share explains both periods. A fixed
upper limit of the reference, at half of alpha, is the coarser way to the same promise: it needs
about half as many traces again.

Days differ more than chance explains (a launch, a holiday), and traces of one session resemble each
other. Counts of a day are therefore beta-binomial, with the scatter seen between the days of the
reference and between neighbouring days before the one that is judged: a scatter that a change of
level hardly moves. Its excess over chance is taken at its upper 98 % limit. Without excess this is
the binomial distribution. The promise holds as far as the days keep to that scatter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby, pairwise
from math import exp, log, sqrt
from typing import NamedTuple

from ragmetrics.stats.arrays import Floats, np

ALPHA = 0.05
"""Chance of any false alarm in a quarter, shared by all figures that are watched."""

RATIOS = (1.25, 1.5, 2.0, 3.0)
"""How many times the reference's share a rise may lead to."""

_STAKE_LEFT = 0.25
_ERRORS_BELOW = 2.0
_LEAST_PART = 0.2
"""The bet against a share p in the reference is on p less two standard errors, at least p / 5."""

_SCORES = (-2.0, 10.0, 49)
"""From, to and number of the normal scores at whose Wilson limits a reference share is tried."""

_SCATTER_TAIL = 0.02
_MOST_SCATTER = 0.5
_NO_SCATTER = 1e-7
_LARGEST_LOG = 690.0


@dataclass(frozen=True, slots=True)
class DayCount:
    """How many of a day's ``n`` units (traces or sessions) were bad. Raises ValueError unless
    0 <= bad <= n."""

    day: date
    bad: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.bad <= self.n:
            raise ValueError(f"{self.day}: {self.bad} bad of {self.n} is no share")


@dataclass(frozen=True, slots=True)
class ReferenceShare:
    """What the reference period says of a share.

    ``share``: bad / n, range 0-1. ``upper``: its upper limit at half of the figure's alpha
    (Clopper and Pearson 1934, on as many units as independent ones would tell the same).
    ``scatter``: how alike two units of one day are beyond the share, as a correlation; 0 where the
    days differ by chance alone. ``days``: those with any unit.
    """

    bad: int
    n: int
    days: int
    share: float
    upper: float
    scatter: float


@dataclass(frozen=True, slots=True)
class WatchedDay:
    """A day's counts with the quarter's e-value at its end, range 0 to about 1e299."""

    day: date
    bad: int
    n: int
    e_value: float


@dataclass(frozen=True, slots=True)
class QuarterWatch:
    """What one calendar quarter says of a share: whether it rose, and since when.

    ``alarm``: the e-value reached ``threshold`` (figures / 0.05) at the end of some day;
    ``sounded``: the first such day. ``lasting``: it still does on the last day.
    ``since``: the day at which the rise most likely began, None without alarm; ``until``: the last
    day that speaks for it (the quarter's last day while the rise lasts). ``share``: of the units
    from ``since`` to ``until``, or of the whole quarter without alarm; ``bad`` of ``n``.
    ``share_after``: of the units after ``until``, None where there are none.
    ``e_value``: the highest at the end of any day.
    """

    start: date
    alarm: bool
    e_value: float
    threshold: float
    sounded: date | None
    since: date | None
    until: date | None
    lasting: bool
    bad: int
    n: int
    share: float | None
    share_after: float | None
    reference: ReferenceShare
    days: tuple[WatchedDay, ...]


def watch_share(
    reference: Sequence[DayCount], days: Sequence[DayCount], figures: int = 1
) -> list[QuarterWatch]:
    """Watch a share against its reference period: one answer a calendar quarter, oldest first.

    ``reference``: its counts by day (a single count is allowed, but tells nothing of how much days
    differ). ``days``: the counts to watch, in order, none of them of the reference. ``figures``:
    how many shares are watched together. Days without units are left out. The same counts give the
    same answer, whenever and however often one looked before.

    Raises ValueError for days out of order, a reference without units, or figures below 1.
    """
    if figures < 1:
        raise ValueError("at least one figure is watched")
    for name, counts in (("reference", reference), ("days", days)):
        if any(later.day <= earlier.day for earlier, later in pairwise(counts)):
            raise ValueError(f"{name}: each day once, oldest first")
    watched = [count for count in days if count.n]
    base = _Base.of(reference)
    scatters = base.scatters(watched)
    facts = _reference_share(base, ALPHA / figures)
    quarters = []
    for _, group in groupby(range(len(watched)), key=lambda i: quarter_start(watched[i].day)):
        places = list(group)
        part = [watched[i] for i in places]
        spread = scatters[places[0] : places[-1] + 1]
        quarters.append(_quarter(base, facts, part, spread, figures / ALPHA))
    return quarters


def quarter_start(day: date) -> date:
    """The first day of a day's calendar quarter."""
    return date(day.year, day.month - (day.month - 1) % 3, 1)


def quarter_days(day: date) -> int:
    """How many days the calendar quarter of a day has: 90 to 92."""
    start = quarter_start(day)
    return (quarter_start(start + timedelta(days=100)) - start).days


def reference_share(reference: Sequence[DayCount], figures: int = 1) -> ReferenceShare:
    """What the reference period says of a share, for as many figures as are watched together.

    Raises ValueError for a reference without units.
    """
    return _reference_share(_Base.of(reference), ALPHA / figures)


class _Excess(NamedTuple):
    """What days say of the scatter: sums of squared standard scores, how many the sum would be by
    chance, what a unit of scatter adds, and the degrees of freedom that the sum is worth."""

    squares: float
    expected: float
    weight: float
    freedom: float

    def plus(self, other: _Excess) -> _Excess:
        return _Excess(*(own + more for own, more in zip(self, other, strict=True)))

    @property
    def scatter(self) -> float:
        """The excess over chance at its upper 98 % limit, as a correlation within days."""
        from scipy.special import gammaincinv

        if self.weight <= 0 or self.squares <= self.expected:
            return 0.0
        limit = max(2 * float(gammaincinv(self.freedom / 2, _SCATTER_TAIL)), 1e-9)
        excess = (self.squares - self.expected) / self.weight * self.freedom / limit
        return min(_MOST_SCATTER, excess)


class _Base(NamedTuple):
    """The reference's days with any unit, and what they say of the scatter."""

    counts: Sequence[DayCount]
    bad: int
    n: int
    excess: _Excess

    @classmethod
    def of(cls, reference: Sequence[DayCount]) -> _Base:
        counts = [count for count in reference if count.n]
        if not counts:
            raise ValueError("the reference has no units: nothing can be held against it")
        bad, n = sum(count.bad for count in counts), sum(count.n for count in counts)
        p = _smoothed(bad, n)
        squares = sum((c.bad - c.n * p) ** 2 / (c.n * p * (1 - p)) for c in counts)
        free = len(counts) - 1
        weight = n - sum(c.n**2 for c in counts) / n - free
        return cls(counts, bad, n, _Excess(squares, free, weight, free))

    @property
    def p(self) -> float:
        """The share, kept away from 0 and 1 by half a unit."""
        return _smoothed(self.bad, self.n)

    @property
    def effective(self) -> float:
        """As many independent units as tell the same of the share."""
        crowd = sum(c.n**2 for c in self.counts) / self.n - 1
        return self.n / (1 + crowd * self.excess.scatter)

    def scatters(self, days: Sequence[DayCount]) -> list[float]:
        """The scatter to assume on each day: what the reference and earlier days showed."""
        excess, scatters = self.excess, []
        for place in range(len(days)):
            if place >= 2:
                excess = excess.plus(_neighbours(days[place - 2], days[place - 1]))
            scatters.append(excess.scatter)
        return scatters


def _smoothed(bad: int, n: int) -> float:
    return (bad + 0.5) / (n + 1)


def _neighbours(earlier: DayCount, later: DayCount) -> _Excess:
    """The squared difference of two days' shares. Neighbouring differences share a day, so they
    tell as much as two independent ones in three (von Neumann 1941)."""
    p = _smoothed(earlier.bad + later.bad, earlier.n + later.n)
    chance = 1 / earlier.n + 1 / later.n
    square = (earlier.bad / earlier.n - later.bad / later.n) ** 2 / (p * (1 - p) * chance)
    return _Excess(square, 1.0, (2 - chance) / chance, 2 / 3)


def _reference_share(base: _Base, alpha: float) -> ReferenceShare:
    from scipy.special import betaincinv

    upper = 1.0
    if base.bad < base.n:
        shrink = base.effective / base.n
        bad, good = base.bad * shrink, (base.n - base.bad) * shrink
        upper = float(betaincinv(bad + 1, good, 1 - alpha / 2))
    share = base.bad / base.n
    return ReferenceShare(base.bad, base.n, len(base.counts), share, upper, base.excess.scatter)


def _quarter(
    base: _Base,
    facts: ReferenceShare,
    days: Sequence[DayCount],
    scatters: Sequence[float],
    threshold: float,
) -> QuarterWatch:
    logs = _evidence(base, days, scatters)
    values = [exp(min(value, _LARGEST_LOG)) for value in logs]
    reached = [place for place, value in enumerate(logs) if value >= log(threshold)]
    lasting = bool(reached) and reached[-1] == len(days) - 1
    first, last = 0, len(days) - 1
    if reached:
        last = last if lasting else max(reached, key=logs.__getitem__)
        first = _heaviest_start(base, days[: last + 1], scatters)
    bad, n = _sums(days[first : last + 1])
    bad_after, n_after = _sums(days[last + 1 :])
    return QuarterWatch(
        start=quarter_start(days[0].day),
        alarm=bool(reached),
        e_value=max(values),
        threshold=threshold,
        sounded=days[reached[0]].day if reached else None,
        since=days[first].day if reached else None,
        until=days[last].day if reached else None,
        lasting=lasting,
        bad=bad,
        n=n,
        share=bad / n,
        share_after=bad_after / n_after if n_after else None,
        reference=facts,
        days=tuple(
            WatchedDay(count.day, count.bad, count.n, value)
            for count, value in zip(days, values, strict=True)
        ),
    )


def _sums(days: Sequence[DayCount]) -> tuple[int, int]:
    return sum(count.bad for count in days), sum(count.n for count in days)


def _evidence(base: _Base, days: Sequence[DayCount], scatters: Sequence[float]) -> list[float]:
    """The logarithm of the e-value at the end of each day."""
    shares = np.array(list(_tried_shares(base)))
    against = _against_reference(base, shares)
    ratios = _day_ratios(days, scatters, shares)
    length, start = quarter_days(days[0].day), quarter_start(days[0].day)
    running = np.full((len(shares), len(RATIOS)), -np.inf)
    begun, values = 0, []
    for place, count in enumerate(days):
        today = (count.day - start).days + 1
        running = np.logaddexp(running, log((today - begun) / length)) + ratios[place]
        begun = today
        mixed = np.logaddexp.reduce(running, axis=1) - log(len(RATIOS))
        waiting = (length - today) / length
        if waiting:
            mixed = np.logaddexp(mixed, log(waiting))
        values.append(float((against + mixed).min()))
    return values


def _tried_shares(base: _Base) -> Iterator[float]:
    """Shares around the reference's: Wilson's limits at scores from below to far above it."""
    low, high, count = _SCORES
    n = base.effective
    for step in range(count):
        z = low + (high - low) * step / (count - 1)
        centre, reach = (
            base.p + z * z / (2 * n),
            z * sqrt(base.p * (1 - base.p) / n + z * z / (4 * n * n)),
        )
        yield (centre + reach) / (1 + z * z / n)


def _against_reference(base: _Base, shares: Floats) -> Floats:
    """The logarithm of the bet against each share in the reference period."""
    errors = np.sqrt(shares * (1 - shares) / base.effective)
    below = np.maximum(shares - _ERRORS_BELOW * errors, _LEAST_PART * shares)
    bad = np.array([count.bad for count in base.counts], dtype=float)[:, None]
    good = np.array([count.n - count.bad for count in base.counts], dtype=float)[:, None]
    scatter = np.full((len(base.counts), 1), base.excess.scatter)
    ratio = _log_ratio(bad, good, shares, below, scatter).sum(axis=0)
    bet: Floats = np.logaddexp(log(_STAKE_LEFT), log(1 - _STAKE_LEFT) + ratio)
    return bet


def _day_ratios(days: Sequence[DayCount], scatters: Sequence[float], shares: Floats) -> Floats:
    """Logarithms of the likelihood ratios of each day, for each share and each rise of it."""
    bad = np.array([count.bad for count in days], dtype=float)[:, None, None]
    good = np.array([count.n - count.bad for count in days], dtype=float)[:, None, None]
    before = shares[:, None]
    after = np.minimum(before * np.array(RATIOS), (1 + before) / 2)
    return _log_ratio(bad, good, before, after, np.array(scatters[: len(days)])[:, None, None])


def _log_ratio(bad: Floats, good: Floats, before: Floats, after: Floats, scatter: Floats) -> Floats:
    """log P(bad | after) / P(bad | before): beta-binomial, binomial where nothing scatters."""
    from scipy.special import gammaln

    plain = bad * np.log(after / before) + good * np.log((1 - after) / (1 - before))
    pairs = 1 / np.maximum(scatter, _NO_SCATTER) - 1

    def weight(share: Floats) -> Floats:
        a, b = share * pairs, (1 - share) * pairs
        logs: Floats = gammaln(bad + a) - gammaln(a) + gammaln(good + b) - gammaln(b)
        return logs

    ratio: Floats = np.where(scatter > _NO_SCATTER, weight(after) - weight(before), plain)
    return ratio


def _heaviest_start(base: _Base, days: Sequence[DayCount], scatters: Sequence[float]) -> int:
    """The day from which on the days speak most for a rise over the reference's own share."""
    ratios = _day_ratios(days, scatters, np.array([base.p]))[:, 0]
    from_here = np.cumsum(ratios[::-1], axis=0)[::-1]
    return int(np.logaddexp.reduce(from_here, axis=1).argmax())
