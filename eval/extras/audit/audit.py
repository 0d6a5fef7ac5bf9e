"""The whole audit of a vault: every kind of finding, sorted by harm, without the accepted ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from documents.vault import Vault, read_vault
from extras.audit.audit_options import AuditOptions
from extras.audit.confirm import REJECTED, confirm
from extras.audit.contradictions import contradiction_candidates
from extras.audit.doubles import double_findings, groups_of
from extras.audit.findings import ACCEPTED, AuditReport, Finding, by_harm, read_accepted
from extras.audit.gaps import Subjects, facts_of, gap_findings, weight_findings
from extras.audit.gold import VaultIndex, gold_findings
from extras.audit.pages import page_note
from extras.audit.passages import paragraphs_of, sections_of
from extras.audit.stale import stale_findings
from judging.connect import JudgeOptions
from judging.cost import CostEstimate
from ragmetrics.matching import normalise_path
from records.cases import TestCase
from records.errors import StorageError
from records.files import replace_bytes, sha256_file
from records.labels import read_cases
from records.runs import EVAL_SET, find_run

if TYPE_CHECKING:
    from rich.console import Console

DEMO = "demo"
LAST_AUDIT = "audit.json"
"""The latest audit in the cache's folder, which the report of a run shows."""


def vault_of(name: str) -> tuple[Vault, Path | None]:
    """A folder, or ``demo`` for the notes of the embedded bot, and where its history may be."""
    if name == DEMO:
        from demo.vault import python_reference

        return Vault(python_reference()), None
    return read_vault(name), Path(name)


def audit(
    options: AuditOptions,
    judge: JudgeOptions | None = None,
    agree: Callable[[CostEstimate], bool] | None = None,
    console: Console | None = None,
) -> AuditReport | None:
    """The report; None when the judge was not to be asked. ``agree`` and ``console``: as of
    ``confirm``."""
    vault, root = vault_of(options.vault)
    sections = sections_of(vault.notes)
    cases, notes = _cases_of(options, vault)
    facts = facts_of([find_run(options.results_dir, name) for name in options.runs], sections)
    notes += filter(None, [page_note(facts.paged, vault.notes)])
    paragraphs = paragraphs_of(sections)
    groups, pairs = groups_of(paragraphs, sections)
    findings = [Finding("unreadable", str(problem)) for problem in vault.unreadable]
    findings += gold_findings(cases, VaultIndex(vault.notes, root))
    findings += double_findings(groups, paragraphs, sections, facts.together)
    stale = list(stale_findings(sections, pairs, (options.today or datetime.now()).date()))
    findings += stale
    older = {frozenset(quote.text for quote in each.quotes) for each in stale}
    candidates = [
        each
        for each in contradiction_candidates(sections)
        if frozenset(quote.text for quote in each.quotes) not in older
    ]
    accepted = read_accepted(options.accepted or ACCEPTED)
    open_pairs = [each for each in candidates if each.key not in accepted]
    asked = open_pairs[: options.candidates]
    if judge is not None and agree is not None and asked:
        verdicts = confirm(asked, judge, agree, console)
        if verdicts is None:
            return None
        confirmed = [each for each in verdicts if isinstance(each, Finding)]
        findings += confirmed
        rejected = verdicts.count(REJECTED)
        notes.append(
            f"A judge was asked about {len(asked)} of {len(candidates)} pairs that may contradict: "
            f"{len(confirmed)} confirmed, {rejected} rejected, "
            f"{len(verdicts) - len(confirmed) - rejected} failed."
        )
    else:
        findings += candidates
    if cases:
        subjects = Subjects(sections)
        findings += gap_findings(cases, subjects, facts)
        documents = [note.rel_path for note in vault.notes]
        findings += weight_findings(cases, documents, subjects, facts)
    shown = [finding for finding in findings if finding.key not in accepted]
    touched = _with_cases(shown, cases)
    return AuditReport(
        options.vault,
        len(vault.notes),
        len(sections),
        by_harm(touched),
        len(findings) - len(shown),
        notes,
        sha256_file(options.eval_set) if cases else None,
    )


def _cases_of(options: AuditOptions, vault: Vault) -> tuple[list[TestCase], list[str]]:
    """The cases of a set that belongs to the vault, as people labelled them, and else a note."""
    eval_set = _usable_set(options.eval_set)
    cases = read_cases(eval_set, options.labels_dir) if eval_set is not None else []
    if not cases:
        return [], ["Without a set (--eval-set) no labels, gaps and dead weight are looked for."]
    files = {normalise_path(note.rel_path) for note in vault.notes}
    gold = {normalise_path(support.rel_path) for case in cases for support in case.gold_supports}
    if gold and not gold & files:
        why = f"None of the {len(gold)} gold files of {eval_set} is in the vault"
        return [], [f"{why}: another vault's set is not looked at."]
    return cases, []


def _with_cases(findings: Sequence[Finding], cases: Sequence[TestCase]) -> list[Finding]:
    """The findings with the cases whose gold is at one of their places; these do more harm, but
    for pairs that may contradict, where the likeliest come first."""
    at: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        for support in case.gold_supports:
            at.setdefault((support.rel_path, support.heading_path), []).append(case.id)
    result = []
    for finding in findings:
        places = [quote.place for quote in finding.quotes]
        own = [name for p in places for name in at.get((p.rel_path, p.heading_path), ())]
        if own and not finding.cases:
            named = tuple(dict.fromkeys(own))
            more = 0 if finding.kind == "may_contradict" else len(named)
            finding = replace(finding, cases=named, harm=finding.harm + more)
        result.append(finding)
    return result


def _usable_set(eval_set: Path) -> Path | None:
    """The set, or None for the usual one that is not there."""
    if eval_set.exists():
        return eval_set
    if eval_set == EVAL_SET:
        return None
    raise StorageError(f"{eval_set}: no such file; name a set with --eval-set.")


def save(report: AuditReport, path: Path) -> dict[str, Any]:
    """Write the report as JSON and return it."""
    data = report.as_data()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_bytes(path, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
    return data
