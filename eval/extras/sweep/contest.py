"""Which settings of a race are still in, and what can be said of each by its scores so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from decisions.change import higher_is_better, range_of
from decisions.effects import compact
from decisions.pairing import ClusterCodes
from extras.sweep import race
from extras.sweep.grid import Grid
from extras.sweep.record import SettingOutcome
from extras.sweep.setting_run import SettingState
from records.clusters import AUTO, read_clusters
from records.id_numbers import id_number
from records.targets import read_decide

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LATENCY, COST, ANSWERED = "pipeline.latency_ms", "pipeline.cost_usd", "pipeline.answered"
"""What is measured of every call, beside the grid's own metrics."""


class Contest:
    """The settings of a race, by their scores so far."""

    def __init__(
        self, grid: Grid, runners: Sequence[SettingState], most_failed: float, eval_set: Path
    ) -> None:
        """``most_failed``: the share of failed calls above which a setting is out."""
        self._grid, self.runners, self._eval_set = grid, runners, eval_set
        self._baseline_worse = False
        answered = race.limit_of(f"answered >= {1 - most_failed:g}")
        self.rules = race.Rules(
            tuple(setting.name for setting in grid.settings),
            frozenset([grid.baseline]),
            (*grid.limits, replace(answered, name=ANSWERED)),
            largest=_width_of(grid.quality),
        )

    @property
    def racing(self) -> list[SettingState]:
        return [runner for runner in self.runners if runner.state == "racing"]

    @property
    def contenders(self) -> list[SettingState]:
        """Those that may still be the best."""
        baseline = self._grid.baseline
        return [
            runner
            for runner in self.racing
            if not runner.reason and not (self._baseline_worse and runner.setting.name == baseline)
        ]

    @property
    def baseline_settled(self) -> bool:
        contender = self.contenders[0].setting.name
        return (
            self._baseline_worse
            or contender == self._grid.baseline
            or any(runner.reason for runner in self.racing)
        )

    def look(self) -> list[SettingState]:
        """Drop what breaks a limit, then what is worse than the best of the others.

        Returns those that are out.
        """
        before = self.racing
        self._drop_broken()
        self._drop_worse()
        return [runner for runner in before if runner.state != "racing"]

    def _drop_broken(self) -> None:
        for runner in self.racing:
            codes = self.clusters_of(runner.asked_ids)
            reasons = [
                race.broken(limit, runner.values[limit.name], codes, self.rules)
                for limit in self.rules.limits
            ]
            if reason := "; ".join(filter(None, reasons)):
                self._drop(runner, "broken", reason)

    def _drop_worse(self) -> None:
        among = [runner.setting.name for runner in self.racing if not runner.reason]
        if not among:
            return
        codes = self.clusters_of(self.racing[0].asked_ids)
        quality = {runner.setting.name: self.quality(runner.values) for runner in self.racing}
        rules = replace(self.rules, protected=frozenset())
        self._baseline_worse = False
        by_name = {runner.setting.name: runner for runner in self.racing}
        for drop in race.dropped(quality, codes, rules, among):
            if drop.setting == self._grid.baseline:
                self._baseline_worse = True
            else:
                by_name[drop.setting].dropped = drop
                self._drop(by_name[drop.setting], "worse", drop.reason)

    def is_futile(self, cases: int) -> bool:
        """Whether nothing will be told apart any more, if it goes on as it has until now.

        ``cases``: of the whole race.
        """
        among = [runner.setting.name for runner in self.contenders]
        quality = {runner.setting.name: self.quality(runner.values) for runner in self.contenders}
        asked = self.contenders[0].asked_ids
        share = len(asked) / cases
        return race.futile(quality, self.clusters_of(asked), self.rules, among, share)

    def _drop(self, runner: SettingState, state: str, reason: str) -> None:
        """Out of the race; the baseline goes on being asked, but cannot win."""
        if runner.setting.name == self._grid.baseline:
            runner.reason = reason
            return
        runner.state, runner.reason = state, reason

    def quality(self, values: Mapping[str, Floats]) -> Floats:
        """The weighted quality of each case by its scores, higher is better."""
        weights = self._grid.quality
        signs = {name: 1.0 if higher_is_better(name) else -1.0 for name in weights}
        parts = [weights[name] * signs[name] * values[name] for name in weights]
        total: Floats = sum(parts[1:], parts[0])
        return total

    @cached_property
    def _codes(self) -> ClusterCodes:
        return ClusterCodes(read_clusters(self._eval_set, AUTO, read_decide().documents))

    def clusters_of(self, ids: Sequence[str]) -> NDArray[np.int64] | None:
        import numpy as np

        return compact(self._codes.of(np.fromiter(map(id_number, ids), np.int64, len(ids))))

    def outcomes(self, *, ended: bool) -> tuple[list[SettingOutcome], str | None]:
        """What can be said of each setting, and the name of the best one; None before any score."""
        outcomes = [self._outcome(runner) for runner in self.runners]
        contenders = {runner.setting.name for runner in self.contenders}
        quality = {
            runner.setting.name: self.quality(runner.values)
            for runner in self.runners
            if runner.values
        }
        best = race.best_of(quality, [name for name in quality if name in contenders])
        for outcome, runner in zip(outcomes, self.runners, strict=True):
            if best is None or not runner.values:
                continue
            if outcome.name == best:
                outcome.state = "best" if ended else outcome.state
            elif ended and outcome.state == "racing":
                is_worse = outcome.baseline and self._baseline_worse
                outcome.state = "broken" if runner.reason else "worse" if is_worse else "left"
            seen = runner.dropped.seen if runner.dropped else None
            if outcome.name != best and runner in self.racing:
                codes = self.clusters_of(runner.asked_ids)
                pair = quality[best], quality[outcome.name]
                seen = race.held_against(*pair, codes, self.rules, len(self.racing))
            if seen is not None:
                outcome.difference = seen.difference
                outcome.interval = (seen.low, seen.high)
        _mark_pareto(outcomes)
        return outcomes, best

    def _outcome(self, runner: SettingState) -> SettingOutcome:
        import numpy as np

        outcome = SettingOutcome(
            name=runner.setting.name,
            run=runner.run_id,
            values=dict(runner.setting.values),
            state=runner.state,
            reason=runner.reason,
            baseline=runner.setting.name == self._grid.baseline,
            cases=len(runner.asked_ids),
            calls=runner.calls,
        )
        if runner.values:
            latency, cost = runner.values[LATENCY], runner.values[COST]
            outcome.failed = int((runner.values[ANSWERED] < 1).sum())
            own = self.quality(runner.values)
            outcome.quality = float(np.nanmean(own)) if np.isfinite(own).any() else None
            outcome.latency_p50_ms = race.Limit("", "", "<=", 0, 50).value(latency)
            outcome.latency_p95_ms = race.Limit("", "", "<=", 0, 95).value(latency)
            outcome.cost_usd = race.Limit("", "", "<=", 0).value(cost)
        return outcome


def _mark_pareto(outcomes: Sequence[SettingOutcome]) -> None:
    points = {
        outcome.name: tuple(
            None if value is None else float(f"{value:.9g}")  # means of the same differ by bits
            for value in (-outcome.quality, outcome.latency_p50_ms, outcome.cost_usd)
        )
        for outcome in outcomes
        if outcome.quality is not None and outcome.state != "broken"
    }
    ahead = race.pareto(points)
    for outcome in outcomes:
        outcome.pareto = outcome.name in ahead


def _width_of(weights: Mapping[str, float]) -> float | None:
    """The width of the quality's range; None where a metric has no lowest and highest value."""
    widths = [range_of(name) for name in weights]
    if None in widths:
        return None
    return sum(w * (width or 0.0) for w, width in zip(weights.values(), widths, strict=True))
