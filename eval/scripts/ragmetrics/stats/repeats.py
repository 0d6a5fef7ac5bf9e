"""Measures repeats of a case: whether any passes, whether all do, and where scores vary.

Pure functions of plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from math import comb, fsum

LEVELS = ("cases", "retrieval", "answer", "rest")
"""Sources of variance, each nested in the one before it."""

Repeat = tuple[float, Hashable, Hashable]
"""A repeat's score, the passages retrieved, and the answer."""


def pass_at_k(repeats: int, passed: int, k: int) -> float:
    """Chance that at least one of ``k`` repeats passes, drawn from those that were made.

    1 - C(n-c, k) / C(n, k), unbiased (Chen et al. 2021). In [0, 1]. Raises ValueError unless
    0 <= passed <= repeats and 1 <= k <= repeats.
    """
    _check(repeats, passed, k)
    return 1 - comb(repeats - passed, k) / comb(repeats, k)


def pass_all_k(repeats: int, passed: int, k: int) -> float:
    """Chance that all of ``k`` repeats pass, pass^k: C(c, k) / C(n, k), unbiased (Yao et al. 2024).

    In [0, 1]. Raises ValueError unless 0 <= passed <= repeats and 1 <= k <= repeats.
    """
    _check(repeats, passed, k)
    return comb(passed, k) / comb(repeats, k)


def _check(repeats: int, passed: int, k: int) -> None:
    if not 0 <= passed <= repeats or not 1 <= k <= repeats:
        raise ValueError(f"{passed} of {repeats} passed, k = {k}: no such draw")


@dataclass
class RepeatTally:
    """Adds up the repeats of one metric, case by case; cases without a score are left out.

    The variance is split by a nested model with random effects, case > retrieval > answer > rest,
    whose components are estimated from sums of squares (Henderson's method 1; Searle, Casella and
    McCulloch 1992, chapter 5.3).
    """

    higher_is_better: bool = True
    cases: int = 0
    repeated: int = 0
    """Cases with two scored repeats or more."""
    flipped: int = 0
    """Those of them whose scores differ."""
    _worst: float = 0.0
    _values: int = 0
    _sum: float = 0.0
    _squares: list[float] = field(default_factory=lambda: [0.0] * 4)
    """By level: the sum of n * mean^2 over its groups."""
    _nested: dict[tuple[int, int], float] = field(default_factory=dict)
    """By level and a lower one: the sum of n_lower^2 / n over their groups."""
    _sizes: list[float] = field(default_factory=lambda: [0.0] * 4)
    """By level: the sum of n^2 over its groups."""

    def add(self, repeats: Sequence[Repeat]) -> None:
        """Add all scored repeats of a case."""
        if not repeats:
            return
        scores = [score for score, _, _ in repeats]
        self.cases += 1
        self.repeated += len(scores) > 1
        self.flipped += len(set(scores)) > 1
        self._worst += min(scores) if self.higher_is_better else max(scores)
        self._values += len(scores)
        self._sum += fsum(scores)
        keys = [
            ((), (retrieval,), (retrieval, answer), (retrieval, answer, number))
            for number, (_, retrieval, answer) in enumerate(repeats)
        ]
        for level in range(4):
            groups = _groups([key[level] for key in keys])
            for group in groups:
                size = len(group)
                self._squares[level] += fsum(scores[i] for i in group) ** 2 / size
                self._sizes[level] += size * size
                for lower in range(level + 1, 4):
                    parts = _groups([keys[i][lower] for i in group])
                    squares = sum(len(part) ** 2 for part in parts) / size
                    pair = (level, lower)
                    self._nested[pair] = self._nested.get(pair, 0.0) + squares

    @property
    def worst(self) -> float | None:
        """Mean over cases of the worst repeat; None without a case."""
        return self._worst / self.cases if self.cases else None

    @property
    def flips(self) -> float | None:
        """Share of the repeated cases whose scores differ; None without any."""
        return self.flipped / self.repeated if self.repeated else None

    def variance(self) -> dict[str, float | None]:
        """The variance components, by ``LEVELS``, in squares of the metric's unit, at least 0.

        None where the data cannot tell a source from the one before it, which then contains it:
        ``rest`` when no case gave the same answer twice, ``answer`` when every repeat retrieved
        something else. All None without two cases, or without a repeated one.
        """
        components: list[float | None] = [None] * 4
        if self.cases < 2 or not self.repeated:
            return dict(zip(LEVELS, components, strict=True))
        total = self._values
        for level in reversed(range(4)):
            explained = self._squares[level]
            explained -= self._squares[level - 1] if level else self._sum**2 / total
            weight = total - self._within(level - 1, level)
            if weight <= 1e-9 * total:
                continue
            for lower in range(level + 1, 4):
                above = self._within(level, lower) - self._within(level - 1, lower)
                explained -= above * (components[lower] or 0.0)
            components[level] = max(0.0, explained / weight)
        return dict(zip(LEVELS, components, strict=True))

    def _within(self, level: int, lower: int) -> float:
        """The weight of a lower level's variance in the sum of squares of a level; -1: of all."""
        if level < 0:
            return self._sizes[lower] / self._values
        return self._nested.get((level, lower), 0.0)


def _groups(keys: Iterable[Hashable]) -> list[list[int]]:
    """The places of equal keys."""
    groups: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    return list(groups.values())


@dataclass
class PassTally:
    """Adds up which repeats of each case passed."""

    _counts: dict[tuple[int, int], int] = field(default_factory=dict)
    """Number of cases by repeats and passed ones."""

    def add(self, passed: Sequence[bool]) -> None:
        if passed:
            key = (len(passed), sum(passed))
            self._counts[key] = self._counts.get(key, 0) + 1

    def at_least_once(self, k: int) -> float | None:
        """Mean pass@k over the cases with k repeats or more; None without any."""
        return self._mean(pass_at_k, k)

    def always(self, k: int) -> float | None:
        """Mean pass^k over the cases with k repeats or more; None without any."""
        return self._mean(pass_all_k, k)

    def _mean(self, estimate: Callable[[int, int, int], float], k: int) -> float | None:
        counts = {key: cases for key, cases in self._counts.items() if key[0] >= k}
        if not counts:
            return None
        parts = [cases * estimate(n, c, k) for (n, c), cases in sorted(counts.items())]
        return float(fsum(parts) / sum(counts.values()))
