"""Measures repeats of a case: whether any passes, whether all do, and how much scores vary.

Pure functions of plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import comb, fsum


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
    """Adds up the repeats of one metric, case by case; a case with one score adds nothing."""

    repeated: int = 0
    """Cases with two scored repeats or more."""
    _squares: float = 0.0
    _degrees: int = 0

    def add(self, scores: Sequence[float]) -> None:
        """Add all scored repeats of a case."""
        if len(scores) < 2:
            return
        mean = fsum(scores) / len(scores)
        self.repeated += 1
        self._squares += fsum((score - mean) ** 2 for score in scores)
        self._degrees += len(scores) - 1

    @property
    def within(self) -> float | None:
        """The variance between repeats of a case, pooled over cases: sum of squares about the
        cases' means over sum of (repeats - 1). In squares of the metric's unit; None without a
        repeated case."""
        return self._squares / self._degrees if self._degrees else None


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
