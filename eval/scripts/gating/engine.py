"""The gate: rules and evidence in, a verdict out. The only place where gates are decided."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gating.against import against, refuse_same, skipped
from gating.calibrated import calibrated
from gating.cases import must_pass
from gating.evidence import Evidence
from gating.numbers import complete, floors, limits, shares
from gating.rules import Rules
from gating.verdict import ORDER, Accept, Check, Verdict, with_accepts
from storage import StorageError, sha256_file


def judge(
    rules: Rules,
    evidence: Evidence,
    accepts: Sequence[Accept] = (),
    sections: set[str] | None = None,
) -> Verdict:
    """Hold a run against all rules, or against those that ``sections`` can answer.

    Raises StorageError for files that cannot be used, for a run that is its own baseline, and for
    accepts of what no rule looks at.
    """
    refuse_same(evidence)
    if sections is not None:
        rules = rules.within(sections)
    checks: list[Check] = [
        complete(rules, evidence),
        *floors(rules, evidence),
        *shares(rules, evidence),
        *limits(rules, evidence),
        *calibrated(rules, evidence),
        *must_pass(rules, evidence),
    ]
    if evidence.base is None:
        checks += skipped(rules)
    else:
        checks += against(rules, evidence, sections)
    judged, accepted = with_accepts(checks, accepts)
    judged.sort(key=lambda check: ORDER.index(check.status))
    return Verdict(
        run_id=evidence.new.label,
        gates=rules.path.name,
        checks=judged,
        baseline=evidence.base.label if evidence.base else None,
        accepts=accepted,
        caveats=_caveats(rules, evidence, accepted),
        header=dict(evidence.new.header)
        | {"gates_sha256": sha256_file(rules.path), "seed": evidence.seed},
    )


def _caveats(rules: Rules, evidence: Evidence, accepts: Sequence[Accept]) -> list[str]:
    notes = [
        f"--accept {one.name} was not needed: nothing of that name failed. Take it away."
        for one in accepts
        if not one.needed
    ]
    if evidence.base is not None and not rules.baseline:
        notes.append(
            f"{rules.path.name} has no [gates.baseline]: only what was lost counts, no number is "
            "held against the baseline's."
        )
    if evidence.base is not None and evidence.base.folder is None:
        notes.append(
            "The baseline has no score lines: differences are judged by the two runs' own "
            "intervals, which asks for more than a comparison case by case."
        )
    return notes


def check_names(rules: Rules, known: Sequence[str], path: Path) -> None:
    """Raises StorageError for rules on sections that do not exist, which nothing could miss."""
    known = list(dict.fromkeys(known))
    unknown = [name for name in dict.fromkeys(rules.named()) if name not in {*known, "run"}]
    if unknown:
        raise StorageError(
            f"{path}: [{'], ['.join(unknown)}]: no such section; the sections are: "
            f"{', '.join(known)}."
        )
