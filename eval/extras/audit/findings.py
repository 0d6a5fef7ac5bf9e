"""What an audit finds, each with its places, quotes and reason, without the accepted ones."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from extras.audit.passages import Place
from records.errors import StorageError
from records.files import read_toml, replace_bytes
from records.runs import HOME
from terminal.page import Block, Conclusion, Heading, Page, Prose, Quotation, Quoted
from terminal.tables import counted

KINDS: Mapping[str, tuple[str, str]] = {
    "gold": ("Gold labels", "A label whose place is gone or moved can never be retrieved."),
    "contradiction": ("Contradictions", "A judge confirmed them, with quotes from both passages."),
    "stale": ("Stale passages", "An older date or version beside a newer one."),
    "expired": ("Past deadlines", "The present tense with a date that is over."),
    "may_contradict": (
        "May contradict",
        "Sentences on one subject that differ in a number, date or negation. Not judged.",
    ),
    "near_double": ("Near doubles", "They push other passages out of the retrieved list."),
    "gap": (
        "Gaps",
        "Questions whose best section lacks their words, or that the bot does not answer.",
    ),
    "crowding": ("Often retrieved, never gold", "Documents that may crowd out better ones."),
    "dead_weight": ("Dead weight", "Documents that no question is about and no run retrieved."),
    "unreadable": ("Files that could not be read", "Their text is missing in everything above."),
}
"""The kinds of findings in the order of harm: title, and why it matters."""

_KEY = re.compile(rf"(?:{'|'.join(KINDS)})-[0-9a-f]{{8}}")
ACCEPTED = HOME / "eval" / "audit_accepted.toml"
_HEAD = "# Findings of audit_documents.py that are fine as they are.\n[accepted]\n"


@dataclass(frozen=True, slots=True)
class Quote:
    """A text at a place."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. ``harm`` sorts within its kind; ``cases``: those that it touches."""

    kind: str
    why: str
    quotes: tuple[Quote, ...] = ()
    cases: tuple[str, ...] = ()
    harm: float = 0.0
    moved_to: Place | None = None

    @property
    def key(self) -> str:
        """A name that stays while places and quotes do: ``stale-1a2b3c4d``."""
        parts = [self.kind, *(f"{quote.place}\0{quote.text}" for quote in self.quotes)]
        parts += [*self.cases, self.why] if not self.quotes else []
        return f"{self.kind}-{hashlib.sha256(chr(1).join(parts).encode()).hexdigest()[:8]}"

    def as_data(self) -> dict[str, Any]:
        """The finding as JSON."""
        return {"key": self.key} | asdict(self)


def by_harm(findings: Iterable[Finding]) -> list[Finding]:
    """The most harmful first: by kind, then by what the finding touches."""
    order = list(KINDS)
    return sorted(
        findings, key=lambda each: (order.index(each.kind), -each.harm, each.why, each.key)
    )


def read_accepted(path: Path) -> dict[str, str]:
    """Accepted findings by key, each with its reason; {} without a file."""
    accepted = read_toml(path).get("accepted", {}) if path.exists() else {}
    if not isinstance(accepted, dict) or not all(isinstance(v, str) for v in accepted.values()):
        raise StorageError(f'{path}: accepted: write a reason for each finding: KEY = "why".')
    return accepted


def accept(path: Path, key: str, reason: str) -> None:
    """Add a finding to the end of the file of accepted ones; what stands there stays.

    Raises StorageError for what is no key of a finding, and for a second reason.
    """
    import json

    name = key.strip().rstrip(":")
    if not _KEY.fullmatch(name):
        raise StorageError(f"--accept {key}: is no key of a finding; write one as printed.")
    if name in read_accepted(path):
        raise StorageError(f"{path}: {name} is accepted already; change its reason there.")
    text = path.read_text("utf-8") if path.exists() else _HEAD
    text += "" if text.endswith("\n") else "\n"
    text += f"{name} = {json.dumps(reason, ensure_ascii=False)}\n"
    if name not in tomllib.loads(text).get("accepted", {}):
        raise StorageError(f"{path}: [accepted] must be the last table, to which lines are added.")
    replace_bytes(path, text.encode())


@dataclass(frozen=True)
class AuditReport:
    """The findings by harm, without the accepted ones, and what the audit looked at."""

    vault: str
    documents: int
    sections: int
    findings: Sequence[Finding]
    accepted: int = 0
    notes: Sequence[str] = ()
    set_sha256: str | None = None
    """Of the file of the set that was looked at."""

    def as_data(self) -> dict[str, Any]:
        """The report as JSON."""
        own = {name: getattr(self, name) for name in ("vault", "documents", "sections", "accepted")}
        findings = [finding.as_data() for finding in self.findings]
        head = {"schema": 1, "set_sha256": self.set_sha256, **own}
        return head | {"notes": list(self.notes), "findings": findings}

    @property
    def counts(self) -> dict[str, int]:
        """Findings by kind, in the order of harm."""
        kinds = [finding.kind for finding in self.findings]
        return {kind: kinds.count(kind) for kind in KINDS if kind in kinds}


SHOWN = 20
"""Findings of a kind that a terminal shows."""
LONGEST_QUOTE = 300


def audit_page(report: AuditReport, most: int | None = SHOWN) -> Page:
    """The report as a document; ``most``: findings of each kind, None for all."""
    blocks: list[Block] = [Heading(("Audit of ", Quoted(report.vault)), 1)]
    for kind, count in report.counts.items():
        title, why = KINDS[kind]
        blocks += [Heading(f"{title}: {count}"), Prose(why, "quiet")]
        shown = [finding for finding in report.findings if finding.kind == kind][:most]
        for finding in shown:
            blocks += finding_blocks(finding)
        if len(shown) < count:
            blocks.append(Prose(f"{count - len(shown)} more; -v shows all.", "quiet"))
    blocks += [Prose(note, "quiet") for note in report.notes]
    total = ", ".join(f"{KINDS[kind][0].lower()} {count}" for kind, count in report.counts.items())
    looked = f"{counted(report.documents, 'document')}, {counted(report.sections, 'section')}"
    accepted = f"; {report.accepted} accepted" if report.accepted else ""
    blocks.append(Conclusion(f"{total or 'Nothing found'} (in {looked}{accepted})."))
    return Page("Audit of documents", blocks)


def finding_blocks(finding: Finding) -> list[Block]:
    """A finding: why, where, in which words."""
    blocks: list[Block] = [Prose((f"{finding.key}: ", Quoted(finding.why)), "strong")]
    for quote in finding.quotes:
        text = quote.text if len(quote.text) <= LONGEST_QUOTE else f"{quote.text[:LONGEST_QUOTE]}…"
        blocks.append(Quotation(str(quote.place), text))
    if finding.cases:
        blocks.append(Prose(("cases: ", Quoted(", ".join(finding.cases))), "quiet", item=1))
    return blocks
