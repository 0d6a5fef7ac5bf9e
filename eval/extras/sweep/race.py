"""Several settings as a race: which of them are proven worse than the best, or break a limit.

Ten looks at one flat level (Pocock 1977), which is shared out over all pairs of the settings that
are still in, since those that are out can no longer be dropped; limits have a level of their own,
shared out over all settings and limits. So in 95 of 100 races no setting is dropped that is not
worse than another, and in 95 none that keeps its limits. Pure: arrays in, verdicts out.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from decisions.change import FEWEST_CLUSTERS, measure
from decisions.effects import compact, spread_of
from ragmetrics.pipeline import percentile
from ragmetrics.stats import sequential, student
from records.errors import StorageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

LOOKS = sequential.RACE_LOOKS

_EARLIEST_END, _FUTILE = 0.5, 0.05

_LIMIT = re.compile(r"\s*([\w@.:*]+)\s*(<=|>=)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")
_PERCENTILE = re.compile(r"p(\d{1,2})_(\w+)")
_WORSE = {"<=": operator.gt, ">=": operator.lt}


@dataclass(frozen=True, slots=True)
class Limit:
    """A constraint, such as ``p95_latency_ms <= 3000``. ``percent``: of a percentile, None for a
    mean; ``name``: of the metric or of what is measured of a call."""

    text: str
    name: str
    sign: str
    bound: float
    percent: int | None = None

    def broken_by(self, value: float) -> bool:
        """Whether a value is on the wrong side of the bound."""
        return bool(_WORSE[self.sign](value, self.bound))

    def value(self, values: Floats) -> float | None:
        """The mean, or the percentile by nearest rank, of the present values; None without any."""
        import numpy as np

        own = values[~np.isnan(values)]
        if not len(own):
            return None
        if self.percent is None:
            return float(own.mean())
        return percentile(np.sort(own).tolist(), self.percent)


def limit_of(text: str) -> Limit:
    """A constraint from its text. Raises StorageError for any other text."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise StorageError(
            f"constraint {text!r}: write NAME <= NUMBER or NAME >= NUMBER, such as "
            "'p95_latency_ms <= 3000'."
        )
    name, sign, bound = match[1], match[2], float(match[3])
    percentile = _PERCENTILE.fullmatch(name)
    if percentile and int(percentile[1]) > 0:
        return Limit(text, percentile[2], sign, bound, int(percentile[1]))
    return Limit(text, name, sign, bound)


class Against(NamedTuple):
    """A setting compared with the best: the difference, its interval at all looks and pairs."""

    difference: float
    low: float
    high: float


class Drop(NamedTuple):
    """A setting that is proven worse than the best one."""

    setting: str
    better: str
    seen: Against

    @property
    def reason(self) -> str:
        """In words."""
        difference, low, high = self.seen
        return f"{difference:+.4f} ({low:+.4f} to {high:+.4f}) against {self.better}"


@dataclass(frozen=True)
class Rules:
    """How a race is run. ``settings``: all that started; ``protected``: never dropped;
    ``largest``: the width of the quality's range, None without one."""

    settings: tuple[str, ...]
    protected: frozenset[str] = frozenset()
    limits: tuple[Limit, ...] = ()
    alpha: float = sequential.ALPHA
    largest: float | None = 1.0


def best_of(values: Mapping[str, Floats], among: Sequence[str]) -> str | None:
    """The setting with the highest mean over its scored cases; of equal ones the first."""
    import numpy as np

    means = {name: _mean(values[name]) for name in among}
    scored = {name: mean for name, mean in means.items() if not np.isnan(mean)}
    return max(scored, key=scored.__getitem__) if scored else None


def held_against(
    best: Floats, other: Floats, clusters: Ints | None, rules: Rules, still: int
) -> Against | None:
    """A setting's quality less that of the best one, over the cases that both have scores of; None
    for fewer clusters than any verdict needs. ``still``: settings that are in, these two too."""
    effect, _ = measure(best, other, clusters, largest=rules.largest)
    if effect.delta is None or effect.spread is None or effect.units < FEWEST_CLUSTERS:
        return None
    error = sqrt(effect.spread.variance_with_unseen() / effect.spread.n)
    pairs = still * (still - 1) // 2
    half = error * sequential.flat_quantile(pairs, effect.spread.freedom(), rules.alpha)
    return Against(effect.delta, effect.delta - half, effect.delta + half)


def dropped(
    values: Mapping[str, Floats], clusters: Ints | None, rules: Rules, among: Sequence[str]
) -> list[Drop]:
    """Which of the settings that are still in are proven worse than the best of them.

    ``values``: the quality of each case, higher is better, not a number where there is none; all of
    the same cases. Protected settings stay. To be called at ten looks at most.
    """
    best = best_of(values, among)
    if best is None:
        return []
    codes = compact(clusters)
    drops = []
    for name in among:
        if name == best or name in rules.protected:
            continue
        seen = held_against(values[best], values[name], codes, rules, len(among))
        if seen is not None and seen.high < 0:
            drops.append(Drop(name, best, seen))
    return drops


def chance_apart(
    best: Floats, other: Floats, clusters: Ints | None, rules: Rules, still: int, share: float
) -> float | None:
    """The chance that the last look separates a setting from the best one, after this ``share`` of
    the cases and if the trend continues. None before anything can be said.

    Predictive power: the mean of what is left to ask is as uncertain as that of what was asked, so
    the last mean varies around today's by (1 - share) / share of its own variance (Spiegelhalter
    et al. 1986).
    """
    effect, _ = measure(best, other, clusters, largest=rules.largest)
    spread = effect.spread
    if effect.delta is None or spread is None or effect.units < FEWEST_CLUSTERS:
        return None
    cases = spread.n / share
    error = sqrt(spread.variance_with_unseen(cases) / cases)
    if not error or share >= 1:
        return None
    pairs = still * (still - 1) // 2
    half = error * sequential.flat_quantile(pairs, spread.freedom(cases), rules.alpha)
    last = NormalDist(effect.delta, error * sqrt((1 - share) / share))
    return last.cdf(-half) + 1 - last.cdf(half)


def futile(
    values: Mapping[str, Floats],
    clusters: Ints | None,
    rules: Rules,
    among: Sequence[str],
    share: float,
) -> bool:
    """Whether further questions are not expected to separate any setting from the best one.

    From half of the cases on, when these chances together are below 5 in 100. Nothing is dropped
    for it, so it adds no false drop.
    """
    best = best_of(values, among)
    if best is None or share < _EARLIEST_END or len(among) < 2:
        return False
    codes = compact(clusters)
    chances = [
        chance_apart(values[best], values[name], codes, rules, len(among), share)
        for name in among
        if name != best
    ]
    known = [chance for chance in chances if chance is not None]
    return len(known) == len(chances) and sum(known) < _FUTILE


def broken(limit: Limit, values: Floats, clusters: Ints | None, rules: Rules) -> str:
    """The reason why the values, one a case, prove a limit broken; "" when they do not.

    Of a percentile: by the binomial chance of so many values beyond the bound. Of a mean: by its
    clustered standard error, Student's t.
    """
    import numpy as np

    there = ~np.isnan(values)
    own = values[there]
    tests = len(rules.settings) * max(1, len(rules.limits))
    value = limit.value(own)
    if value is None or not limit.broken_by(value):
        return ""
    words = f"{limit.text} is broken: {value:.6g} over {len(own):,} calls"
    if limit.percent is not None:
        beyond = int(_WORSE[limit.sign](own, limit.bound).sum())
        share = 1 - limit.percent / 100 if limit.sign == "<=" else limit.percent / 100
        level = rules.alpha / tests / 5
        return words if _at_least(beyond, len(own), share) <= level else ""
    codes = None if clusters is None else compact(clusters[there])
    spread = spread_of(own, codes, None)
    if min(len(own), spread.effective) < FEWEST_CLUSTERS:
        return ""
    error = sqrt(spread.variance / spread.n)
    needed = student.quantile(rules.alpha / tests / 5, spread.freedom())
    return words if abs(value - limit.bound) > needed * error else ""


def pareto(points: Mapping[str, Sequence[float | None]]) -> list[str]:
    """The names that no other one beats everywhere: coordinates of which less is better; None is
    not compared, and stands for no advantage."""

    def beats(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
        both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
        return bool(both) and all(a <= b for a, b in both) and any(a < b for a, b in both)

    return [
        name
        for name, point in points.items()
        if not any(beats(rival, point) for other, rival in points.items() if other != name)
    ]


def _mean(values: Floats) -> float:
    import numpy as np

    own = values[~np.isnan(values)]
    return float(own.mean()) if len(own) else float("nan")


def _at_least(count: int, n: int, share: float) -> float:
    """P(X >= count) of a binomial count of ``n`` with chance ``share``."""
    if count <= 0:
        return 1.0
    total = 0.0
    for k in range(count, n + 1):
        chance = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
        total += exp(chance + k * log(share) + (n - k) * log1p(-share))
    return min(1.0, total)
