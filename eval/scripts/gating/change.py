"""How far a number moved, and whether a rule on the baseline allows it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gating.forms import AgainstBase
from ragmetrics.stats import UNRELIABLE_BELOW
from suite.baseline import EPSILON
from tables import number


@dataclass(frozen=True, slots=True)
class Change:
    """How a metric moved. ``worse_by`` and ``at_worst`` are above 0 for the bad direction."""

    old: float
    now: float
    delta: float
    interval: tuple[float, float] | None
    method: str | None
    n: int
    sign: float

    @property
    def worse_by(self) -> float:
        return -self.sign * self.delta

    @property
    def at_worst(self) -> float | None:
        if self.interval is None:
            return None
        return -self.interval[0] if self.sign > 0 else self.interval[1]

    @property
    def at_best(self) -> float | None:
        if self.interval is None:
            return None
        return -self.interval[1] if self.sign > 0 else self.interval[0]


def why(rule: AgainstBase, change: Change) -> str:
    """Why a rule is broken; "" when it is kept."""
    moved = f"{number(change.old)} → {number(change.now)}"
    if rule.kind == "drop":
        allowed = rule.size * abs(change.old) if rule.relative else rule.size
        if change.worse_by <= allowed + EPSILON:
            return ""
        share = ""
        if rule.relative and abs(change.old) > EPSILON:
            share = f", {100 * change.worse_by / abs(change.old):.1f} %"
        return (
            f"{moved}: worse by {number(change.worse_by)}{share}, at most {_size(rule)} is allowed"
        )
    worst, best = change.at_worst, change.at_best
    if worst is None or best is None:
        return f"{moved}: has no interval, so chance cannot be ruled out; write a drop rule for it"
    few = f" (n = {change.n}: unreliable)" if change.n < UNRELIABLE_BELOW else ""
    basis = f"{change.method}, n = {change.n}"
    if rule.kind == "regression":
        if best <= EPSILON:
            return ""
        return f"{moved}: worse by {number(best)} to {number(worst)} ({basis}){few}"
    if worst <= rule.size + EPSILON:
        return ""
    if change.worse_by <= rule.size:
        wide = "a loss within the margin, but chance leaves room for more: ask more cases"
        return f"{moved}: may be worse by up to {number(worst)} ({basis}){few}; {wide}"
    return (
        f"{moved}: may be worse by up to {number(worst)} ({basis}){few}, {_size(rule)} is allowed"
    )


def _size(rule: AgainstBase) -> str:
    return str(rule).partition(" ")[2]
