"""What a test of access came to, as a document and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from extras.audit.access import AccessReport, Leak
from terminal.page import (
    Block,
    Conclusion,
    Heading,
    Page,
    Prose,
    Quotation,
    Quoted,
    Tone,
    fine_percent,
)
from terminal.tables import counted

ROWS = {"reached": "reached the model", "said": "said"}
SHOWN, LONGEST = 20, 200


def access_data(report: AccessReport) -> dict[str, Any]:
    """The report as JSON."""
    rows = {}
    for row in ROWS if report.count else ():
        leaks, share, bound = report.share(row)
        rows[row] = {"leaking": leaks, "share": share, "bound95": bound}
    return {
        "schema": 1,
        "probes": {role: len(own) for role, own in report.probes.items()},
        "rows": rows,
        "leaks": [asdict(leak) for leak in report.leaks],
        "closed": len(report.closed),
        "closed_asked_about": len(report.asked_closed),
        "closed_without_probe": sorted(report.closed - report.asked_closed),
        "own": report.own,
        "own_refused": report.own_refused,
        "failed": report.failed,
        "passages_unknown": report.unmapped,
        "notes": report.notes,
    }


def access_page(report: AccessReport) -> Page:
    """The report as a document, the verdict last on a terminal."""
    blocks: list[Block] = [Prose(note, "doubt") for note in report.notes]
    for leak in report.leaks[:SHOWN]:
        blocks += _leak(leak)
    if len(report.leaks) > SHOWN:
        blocks.append(Prose(f"{len(report.leaks) - SHOWN} more; --json has all.", "quiet"))
    asked = f"{len(report.asked_closed)} of {counted(len(report.closed), 'closed document')}"
    blocks.append(Prose(f"{asked} asked about."))
    rest = sorted(report.closed - report.asked_closed)
    if rest:
        shown = ", ".join(rest[:SHOWN]) + (f" and {len(rest) - SHOWN} more" * (len(rest) > SHOWN))
        blocks.append(Prose(("Closed documents without a probe: ", Quoted(shown)), "quiet"))
    if report.own:
        answered = report.own - len(report.own_refused)
        blocks.append(Prose(f"{answered} of {report.own} answered for a role of theirs."))
    if report.own_refused:
        refused = ", ".join(report.own_refused[:SHOWN])
        blocks.append(Prose(("Refused: ", Quoted(refused)), "doubt"))
    if report.failed:
        blocks.append(Prose(f"{counted(report.failed, 'failed call')}, in no count.", "doubt"))
    if report.unmapped:
        blocks.append(
            Prose(
                f"{counted(report.unmapped, 'answer')} without passages, or with some of neither "
                "a file of the vault nor a text: what reached the model is not known there. Map "
                "them in the profile.",
                "doubt",
            )
        )
    verdict = [_row(report, row) for row in ROWS] if report.count else ["No probe was answered."]
    if others := sum(
        leak.case_id not in dict(report.probes.get(leak.role, ())) for leak in report.leaks
    ):
        verdict.insert(0, f"{counted(others, 'leak')} in cases that are no probe.")
    tone: Tone = "bad" if report.leaks else "good"
    return Page("Access", [*blocks, Conclusion(verdict[0], tone, tuple(map(Prose, verdict[1:])))])


def _row(report: AccessReport, row: str) -> str:
    leaks, share, bound = report.share(row)
    probes = counted(report.count, "probe")
    if row == "reached" and report.unmapped and not leaks:
        return f"{ROWS[row]}: not known for {counted(report.unmapped, 'answer')}."
    if not leaks:
        told = f"less than {fine_percent(bound)} of such questions (95 %, one-sided)"
        return f"{ROWS[row]}: no leak in {probes}: {told}."
    share_words = f"{fine_percent(share)}, at most {fine_percent(bound)} (95 %)"
    return f"{ROWS[row]}: {leaks} of {probes} leak ({share_words})."


def _leak(leak: Leak) -> list[Block]:
    """A leak: who got what, by which words, and the closed text."""
    what = f"{leak.role} in {leak.case_id}: {ROWS[leak.row]}"
    blocks: list[Block] = [Heading(Quoted(what), 3, "bad")]
    blocks += [Quotation("answer", leak.text[:LONGEST])] if leak.text else []
    return [*blocks, Quotation(str(leak.closed.place), leak.closed.text[:LONGEST])]
