"""Canaries: a fixed set of questions that a bot is asked every day, beside what users ask it.

Their questions do not change, so a change of them is no change of the bot; another set begins anew.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from decisions.alerts import AlertRule, make_lines
from decisions.conditions import measured_run
from decisions.gate import evaluate
from decisions.gate_checks import GateEvidence
from decisions.gate_rules import GateRules
from decisions.history import read_history
from decisions.primary import primary_names
from decisions.regressions import is_worse, regressions
from records.asked import asked_set
from records.errors import StorageError
from records.gate_verdict import WORSE
from terminal.tables import counted

SURE = 0.0005
"""p of a fall that is an alarm by itself: one in 2,000 quiet days has such a fall, so at most
1 of 20 quiet quarters of 90 days."""


@dataclass(frozen=True, slots=True)
class CanaryLook:
    """The result of the canary runs. ``alarms``: what is worse or broken, a sentence each;
    ``notes``: what else there is to know. ``passed``: whether the newest run passes the gate
    against ``baseline``."""

    newest: str
    baseline: str | None
    runs: int
    passed: bool
    alarms: tuple[str, ...]
    notes: tuple[str, ...]


def look_at_canaries(folder: Path) -> CanaryLook:
    """Compare the newest of the daily runs in a folder with the first one of the same set, as
    gate_run.py does. Also judge all of them in a line, as track_metrics.py does.

    A gate fails by chance on 1 of 20 quiet days, so a metric that is worse in the newest run is an
    alarm only where the line says so, too, or where p is at most ``SURE``; what cannot be chance
    (lost cases, failed calls) always is. Raises StorageError for a folder without scored runs.
    """
    history = read_history([folder], "runs")
    if not history.points:
        raise StorageError(f"{folder}: no scored run; ask the set with run_eval.py, and score it.")
    newest = history.points[-1]
    every = len(history.points)
    history.points = [p for p in history.points if p.eval_set == newest.eval_set]
    path, names = history.folder_of(newest), primary_names()
    first = history.folder_of(history.points[0]) if len(history.points) > 1 else None
    evidence = GateEvidence(
        measured_run(path), measured_run(first) if first else None, asked_set(path)
    )
    verdict = evaluate(GateRules(None), evidence)
    failed = verdict.of("failed")
    certain = [check for check in failed if check.rule != WORSE]
    worse = [check.name for check in failed if check.rule == WORSE]
    keys = [key for key in newest.values if ".".join(key) in names]
    lines = make_lines(history.points, keys, AlertRule(names))
    alarms = [f"{check.name}: {check.reason}." for check in certain]
    for line in lines:
        for alert in line.alerts:
            point = history.points[alert.at]
            since = f"{point.run_id} of {point.date[:10]}" if point.date else point.run_id
            alarms.append(f"{line.name} is worse since {since}: {line.values[-1].mean:.3f} now.")
    alarmed = {line.name for line in lines if line.alerts}
    alarms += [text for name, text in _sure(evidence, names).items() if name not in alarmed]
    notes = list(verdict.says[:1])
    if worse:
        notes.append(f"{', '.join(worse)}: worse in the newest run, as on 1 of 20 quiet days.")
    if skipped := every - len(history.points):
        notes.append(
            f"{counted(skipped, 'run')} of another set left out: the bot need not have changed."
        )
    return CanaryLook(
        newest.run_id,
        history.points[0].run_id if first else None,
        len(history.points),
        verdict.passed,
        tuple(alarms),
        (*notes, *history.notes),
    )


def _sure(evidence: GateEvidence, names: Collection[str]) -> dict[str, str]:
    """Metrics of the newest run that are worse than in the first one beyond doubt, a sentence
    each."""
    if evidence.base is None:
        return {}
    return {
        change.name: f"{change.name} is worse than in {evidence.base.id}: {change.new:.3f} now, "
        f"{change.base:.3f} then. Chance does this on at most 1 of 2,000 quiet days."
        for change in regressions(evidence, names).tested
        if is_worse(change) and (change.p_worse or 0.0) <= SURE
    }


def sentence(look: CanaryLook) -> str:
    """The canaries in a sentence."""
    against = f" against {look.baseline}" if look.baseline else "; there is no earlier run yet"
    gate = "passes the gate" if look.passed else "fails the gate"
    runs, n = counted(look.runs, "run"), len(look.alarms)
    alarms = counted(n, "alarm") if n else "no alarm"
    return f"Canaries: {look.newest} {gate}{against}; {alarms} in {runs}."
