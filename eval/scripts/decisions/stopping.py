"""A run that was stopped as soon as it was decided, and the interval that allows for the looks."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import msgspec

from decisions.change import FEWEST_CLUSTERS, Change, ChangeVerdict, higher_is_better
from ragmetrics.stats.sequential import InterimLook, look
from records.errors import StorageError
from records.results import RunConfig

DECIDED = "decided"
"""Key of config.json's ``run``: what the looks came to."""

FIRST_LOOK = 50
"""Cases before which no look decides: rare large losses do not show in fewer."""

PLANNED = "planned"
"""How every run is looked at now; runs of before may say "any time"."""


class Decided(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The result of the last look at a run. ``share``: of the cases that the other run scored, how
    many were asked by then. ``calls``: asked; ``of``: planned."""

    against: str
    metric: str
    way: str
    share: float
    verdict: str
    calls: int
    of: int
    saved: float
    difference: float | None = None
    interval: tuple[float, float] | None = None

    def decides(self, base: str) -> bool:
        """True when the looks were planned ones, against this run: their interval decides."""
        return self.against == base and self.way == PLANNED


def decided_of(config: RunConfig) -> Decided | None:
    """The result of a run's looks; None for a run without looks while it was asked."""
    raw = config.run.get(DECIDED)
    if raw is None:
        return None
    try:
        decided = msgspec.convert(raw, Decided)
        if decided.way not in (PLANNED, "any time") or not 0 < decided.share <= 1:
            raise msgspec.ValidationError("way or share is none of this version")
    except msgspec.ValidationError as error:
        raise StorageError(
            f"config.json of {config.run_id}: run.{DECIDED}: {error}; take the file from a backup."
        ) from None
    return decided


def look_at(change: Change, share: float) -> InterimLook | None:
    """The decision that a look allows. None for fewer clusters than any verdict needs, before
    ``FIRST_LOOK`` cases, and while the variance of the differences is unknown."""
    spread = change.spread
    if share < 1 and change.n < FIRST_LOOK:
        return None
    if change.delta is None or spread is None or change.units < FEWEST_CLUSTERS:
        return None
    error = sqrt(spread.variance_with_unseen() / spread.n)
    return look(change.delta, error, spread.freedom(), share) if error else None


def verdict_at(seen: InterimLook | None, name: str) -> ChangeVerdict:
    """The verdict of a look at a metric, ``section.metric``."""
    if seen is None:
        return "too few"
    side = seen.side if higher_is_better(name) else -seen.side
    return "better" if side > 0 else "worse" if side < 0 else "no evidence"


def with_looks(change: Change, decided: Decided) -> Change:
    """The change with the interval, p and verdict that are valid at all looks of the run at
    once."""
    if not change.n:
        return change
    seen = look_at(change, decided.share)
    interval = (seen.low, seen.high) if seen else None
    p = seen.p if seen else None
    change = replace(change, interval=interval, p_joint=p, p_worse=None, mde=None, look=False)
    verdict = verdict_at(seen, change.name)
    return replace(change, verdict=verdict, test=f"looks ({decided.way})")


def stopped_note(config: RunConfig, base: str) -> str:
    """A note for a comparison with ``base`` on a run that was looked at while it was asked; "" for
    other runs."""
    decided = decided_of(config)
    if decided is None:
        return ""
    run, asked = config.run_id, f"{decided.calls:,} of {decided.of:,} calls"
    if decided.decides(base):
        return (
            f"{run} was looked at against {base} while it was asked ({asked}): the interval of "
            f"{decided.metric} allows for every look, and decides alone."
        )
    if not config.run.get("stopped"):
        return ""
    return (
        f"{run} was stopped by its looks at {decided.metric} against {decided.against} ({asked}): "
        "intervals here do not allow for that, so the metric is biased to one side."
    )
