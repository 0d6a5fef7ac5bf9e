"""The gate: rules and evidence in, a verdict out. The only place where gates are decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from decisions.gate_baseline import against
from decisions.gate_calibration import calibrated
from decisions.gate_checks import (
    GateEvidence,
    complete,
    failed_calls,
    finished,
    floors,
    limits,
    must_pass,
    shares,
)
from decisions.gate_rules import GateRules
from decisions.invariants import config_of, refuse_enriched
from records.errors import StorageError
from records.files import sha256_file
from records.gate_verdict import ORDER, Accept, Check, Verdict, with_accepts
from records.results import RunConfig
from records.targets import GATES
from terminal.tables import counted


def evaluate(
    rules: GateRules,
    evidence: GateEvidence,
    accepts: Sequence[Accept] = (),
    sections: set[str] | None = None,
) -> Verdict:
    """Hold a run against all rules, or against those that ``sections`` can answer.

    Raises StorageError for files that cannot be used, for a run that is its own baseline, and for
    accepts of what no rule looks at.
    """
    _refuse_same(evidence)
    if sections is not None:
        rules = rules.within(sections)
    rules, foreign = _of_this_set(rules, evidence)
    checks: list[Check] = [
        *foreign,
        complete(rules, evidence),
        *finished(rules, evidence),
        *failed_calls(rules, evidence),
        *floors(rules, evidence),
        *shares(rules, evidence),
        *limits(rules, evidence),
        *calibrated(rules, evidence),
        *must_pass(rules, evidence),
    ]
    notes: Sequence[str] = ()
    if evidence.base is None:
        checks.append(_skipped(rules))
    else:
        more, notes = against(rules, evidence, sections)
        checks += more
    judged, accepted = with_accepts(checks, accepts)
    judged.sort(key=lambda check: ORDER.index(check.status))
    return Verdict(
        run_id=evidence.new.label,
        gates=rules.name,
        checks=judged,
        baseline=evidence.base.label if evidence.base else None,
        accepts=accepted,
        caveats=[*_caveats(rules, evidence, accepted), *notes],
        header=dict(evidence.new.header)
        | {
            "gates_sha256": None if rules.path is None else sha256_file(rules.path),
            "seed": evidence.seed,
        },
    )


def _caveats(rules: GateRules, evidence: GateEvidence, accepts: Sequence[Accept]) -> list[str]:
    notes = [
        f"--accept {accept.name} was not needed: nothing of that name failed. Take it away."
        for accept in accepts
        if not accept.needed
    ]
    return notes


def check_names(rules: GateRules, sections: Sequence[str]) -> None:
    """Raises StorageError for rules on sections that do not exist, which nothing could miss."""
    sections = list(dict.fromkeys(sections))
    unknown = [name for name in dict.fromkeys(rules.named()) if name not in {*sections, "run"}]
    if unknown:
        raise StorageError(
            f"{rules.path}: [{'], ['.join(unknown)}]: no such section; the sections are: "
            f"{', '.join(sections)}."
        )


def _refuse_same(evidence: GateEvidence) -> None:
    """Raises StorageError when a run would be held against itself."""
    base, new = evidence.base, evidence.new
    if base is None or base.folder is None or new.folder is None:
        return
    if base.folder.resolve() == new.folder.resolve():
        raise StorageError(f"{new.folder}: is its own baseline; give another run to --baseline.")


def _of_this_set(rules: GateRules, evidence: GateEvidence) -> tuple[GateRules, list[Check]]:
    """The rules, or of a file that was made for another eval set nothing, which a check tells."""
    folder = evidence.new.folder
    config = config_of(folder) if folder else RunConfig("")
    if folder:
        refuse_enriched(folder, config)
    asked = config.dataset.get("path")
    if not rules.made_for or not isinstance(asked, str) or asked == rules.made_for:
        return rules, []
    reason = (
        f"{rules.name} was made for {rules.made_for}, and this run was asked {asked}: only the "
        "built-in rules count. Write rules for this set with gate_run.py --init RUN --gates FILE"
    )
    check = Check("gates", "run", "gates", "skipped", f"rules of {rules.name}", reason=reason)
    bare = GateRules(
        rules.path, allow_missing=rules.allow_missing, allow_stopped=rules.allow_stopped
    )
    return bare, [check]


def _skipped(rules: GateRules) -> Check:
    """The rules on a baseline when none was given; a failure where the file demands one."""
    must = f"no worse, {counted(len(rules.baseline), 'rule')}" if rules.baseline else "no worse"
    reason = "no --baseline was given; nothing was held against one"
    status: Any = "failed" if rules.require_baseline else "skipped"
    line = rules.lines.get((GATES, "baseline"))
    return Check("baseline", "run", "baseline", status, must, reason=reason, line=line)
