"""Cases that must pass, whatever the means say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from comparing.scores import scored_sections
from gating.evidence import Evidence, score_lines, tagged
from gating.forms import MustPass
from gating.rules import Rules
from gating.verdict import Check
from suite.measures import known_metrics
from tables import number
from targets import GATES, Target


def must_pass(rules: Rules, evidence: Evidence) -> Iterator[Check]:
    """A check for each case that a rule names; every answer of the case (repeat) counts."""
    line = rules.lines.get((GATES, "must_pass"))
    for rule in rules.must_pass:
        yield from (replace(check, line=line) for check in _rule(rule, evidence))


def _rule(rule: MustPass, evidence: Evidence) -> Iterator[Check]:
    section, _, metric = rule.metric.partition(".")
    ids = dict.fromkeys(rule.cases)
    for tag, cases in tagged(evidence, rule.tags).items() if rule.tags else ():
        ids |= dict.fromkeys(cases)
        if not cases:
            reason = f"no case of the eval set has the tag {tag!r}, so nothing could be checked"
            yield Check("must_pass", "case", f"tag:{tag}", "failed", "a case", reason=reason)
    target = rule.target or _good_end(evidence, section, metric)
    answers = _answers(evidence, section, metric, ids)
    for case_id in ids:
        found = answers.get(case_id)
        check = Check("must_pass", "case", case_id, "failed", str(target or "known"))
        if not found:
            yield replace(check, reason=f"the run has no {section} score of this case")
            continue
        known = [score for score, _ in found if score is not None]
        value = _worst(known, target)
        reason = _why(found, rule, target)
        status: Any = "failed" if reason else "passed"
        yield replace(check, status=status, value=value, reason=reason, n=len(found))


def _good_end(evidence: Evidence, section: str, metric: str) -> Target | None:
    """The best value that the metric can have; None when no catalogue row tells."""
    definition = evidence.new.part(section, "definitions", metric)
    row = known_metrics(evidence.custom).get(definition)
    if row is None:
        return None
    end = row.high if row.higher_is_better else row.low
    return None if end is None else Target(">=" if row.higher_is_better else "<=", end)


def _answers(
    evidence: Evidence, section: str, metric: str, ids: dict[str, None]
) -> dict[str, list[tuple[float | None, str]]]:
    """Score and reason of each answer to the named cases."""
    folder = evidence.new.folder
    if folder is None or section not in scored_sections(folder):
        return {}
    found: dict[str, list[tuple[float | None, str]]] = {}
    for line in score_lines(folder, section):
        if line.case_id in ids:
            reason = line.reasons.get(metric, line.status)
            found.setdefault(line.case_id, []).append((line.scores.get(metric), reason))
    return found


def _worst(known: list[float], target: Target | None) -> float | None:
    if not known:
        return None
    return max(known) if target is not None and target.sign in ("<", "<=") else min(known)


def _why(found: list[tuple[float | None, str]], rule: MustPass, target: Target | None) -> str:
    """Why a case does not pass; "" when every answer does."""
    if target is None:
        return f'what {rule.metric} should be is not known; write score = ">= …" with the rule'
    unscored = [reason for score, reason in found if score is None]
    if unscored:
        return f"{rule.metric} is not scored ({unscored[0] or 'no reason given'})"
    bad = [score for score, _ in found if not target.passed(score)]
    if not bad:
        return ""
    times = f" in {len(bad)} of {len(found)} answers" if len(found) > 1 else ""
    return f"{rule.metric} is {number(bad[0])}{times}, must be {target}"
