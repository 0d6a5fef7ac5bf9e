"""The verdict on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from decisions.compare_markdown import cell, clean_text, code
from decisions.gate_checks import amount
from records.gate_verdict import Check, Verdict
from terminal.tables import number, plain, print_columns

if TYPE_CHECKING:
    from rich.console import Console


MARKS = {"failed": "✗", "accepted": "!", "skipped": "–", "passed": "✓"}

STYLES = {"failed": "red", "accepted": "yellow", "skipped": "dim", "passed": "green"}

HEAD = ("check", "must be", "value", "baseline", "change", "n")

LEAST_NEEDED = ("n", "baseline", "change")
"""Columns that a narrow terminal does without, in this order."""


def print_verdict(console: Console, verdict: Verdict, every: bool) -> None:
    """The verdict, a table of the checks (without the passed ones unless ``every``), reasons and
    counts."""
    from rich.text import Text

    against = f" against {verdict.baseline}" if verdict.baseline else ""
    head = f"Gate {verdict.outcome}: run {verdict.run_id}{against}, rules of {verdict.gates}"
    console.print(Text(plain(head), style="bold"))
    shown = list(verdict.checks) if every else verdict.of("failed", "accepted", "skipped")
    rows = []
    for check in shown:
        value, baseline, _, n = _figures(check)
        change = "" if check.delta is None else _signed(check.delta)
        cells = (plain(check.name), plain(check.must), value, baseline, change, n)
        rows.append((MARKS[check.status], *cells))
    if shown:
        styles = [STYLES[check.status] for check in shown]
        print_columns(
            console, ("", *HEAD), rows, styles=styles, droppable=LEAST_NEEDED, left=HEAD[:2]
        )
    for check in verdict.of("failed", "accepted", "skipped"):
        text = f"{MARKS[check.status]} {check.name}: {check.reason}"
        if check.accepted:
            text += f". Accepted: {check.accepted}"
        console.print(Text(plain(text, 2000), style=STYLES[check.status]))
    for note in verdict.caveats:
        console.print(Text(plain(note, 500), style="yellow"))
    console.print(Text(verdict.summary(), style="bold"))


MARKER = "<!-- rag-eval-gate -->"
"""First line of the comment, by which a job finds its own to replace it."""

COMMENT_MARKS = {"failed": "❌", "accepted": "⚠️", "skipped": "➖", "passed": "✅"}

OUTCOME_MARKS = {"FAILED": "❌", "without a verdict": "➖", "passed": "✅"}

MOST = 60_000
"""Characters; GitHub refuses comments of more than 65,536."""

LONGEST = 500
"""Characters of one text."""

CUT = "\n… cut here; gate.json holds all checks."

COMMENT_HEAD = ("", "check", "must be", "value", "baseline", "difference", "n")


def markdown(verdict: Verdict) -> str:
    """Verdict first, then what failed and why, what was accepted, and a folded table of all."""
    against = f" against {_shown(verdict.baseline)}" if verdict.baseline else ""
    mark = OUTCOME_MARKS[verdict.outcome]
    lines = [
        MARKER,
        f"## {mark} {verdict.summary()}",
        "",
        f"Run {_shown(verdict.run_id)}{against}.",
    ]
    failed, accepted = verdict.of("failed"), verdict.of("accepted")
    if failed:
        lines += [
            "",
            "### Failed",
            "",
            *(f"- {_shown(c.name)}: {_shown(c.reason)}" for c in failed),
        ]
    if accepted:
        lines += ["", "### Accepted trade-offs", ""]
        for check in accepted:
            name, reason, excuse = map(_shown, (check.name, check.reason, check.accepted or ""))
            lines.append(f"- {name}: {reason}; accepted: {excuse}")
    if notes := [*verdict.caveats, *(check.reason for check in verdict.of("skipped"))]:
        lines += ["", "### Notes", "", *(f"- {_shown(note)}" for note in notes)]
    body = "\n".join(lines)
    folded = "\n".join(_folded(verdict.checks))
    if len(body) > MOST:
        return body[: MOST - len(CUT)].rsplit("\n", 1)[0] + CUT + "\n"
    if len(body) + len(folded) > MOST:
        return body + "\n" + CUT + "\n"
    return f"{body}\n\n{folded}\n"


def _folded(checks: Sequence[Check]) -> Iterable[str]:
    yield f"<details><summary>All {len(checks)} checks</summary>"
    yield ""
    yield "| " + " | ".join(COMMENT_HEAD) + " |"
    yield "|" + "---|" * len(COMMENT_HEAD)
    for check in checks:
        texts = (cell(plain(text, LONGEST)) for text in (check.name, check.must))
        cells = (*texts, *_figures(check))
        yield f"| {COMMENT_MARKS[check.status]} | " + " | ".join(cells) + " |"
    yield ""
    yield "</details>"


def _figures(check: Check) -> tuple[str, str, str, str]:
    """Value, baseline, difference with its interval, and n; "" for what a check does not have."""
    words = amount if check.section == "run" else number
    value = "" if check.value is None else words(check.value)
    baseline = "" if check.baseline is None else words(check.baseline)
    change = "" if check.delta is None else _signed(check.delta)
    if check.delta is not None and check.interval is not None:
        change += f" ({_signed(check.interval[0])} … {_signed(check.interval[1])})"
    return value, baseline, change, "" if check.n is None else str(check.n)


def _signed(value: float) -> str:
    """A difference, with its sign."""
    return f"{'+' if value > 0 else '-' if value < 0 else '±'}{number(abs(value))}"


def _shown(text: str) -> str:
    """Foreign text as a code span: in one, GitHub reads no markup, mentions and links."""
    return code(plain(text, LONGEST))


GITHUB_MOST = 10
"""Annotations of one kind that GitHub shows a step; what comes later is dropped in silence."""


@dataclass(frozen=True, slots=True)
class _Annotation:
    """``level``: error, warning or notice."""

    level: str
    title: str
    message: str
    line: int | None = None

    def command(self, file: str) -> str:
        """As a workflow command, on one line whatever the texts hold."""
        properties = [f"title={_escape_property(self.title)}"]
        if self.line is not None:
            properties = [f"file={_escape_property(file)}", f"line={self.line}", *properties]
        return f"::{self.level} {','.join(properties)}::{_escape_data(self.message)}"


def workflow_commands(verdict: Verdict, file: str) -> list[str]:
    """An error a failed check, a warning an accepted one, a notice each for the rest of what a
    reader must know. ``file``: the gates file as the repository names it."""
    errors = [_of(check) for check in verdict.of("failed")]
    warnings = [_of(check) for check in verdict.of("accepted")]
    notices = [_Annotation("notice", "Gate", verdict.summary())]
    notices += [_Annotation("notice", "Gate", text) for text in verdict.caveats]
    notices += [
        _Annotation("notice", f"Not checked: {check.name}", check.reason)
        for check in verdict.of("skipped")
    ]
    return [
        annotation.command(file)
        for part in (errors, warnings, notices)
        for annotation in _at_most(part, GITHUB_MOST)
    ]


def _of(check: Check) -> _Annotation:
    if check.status == "failed":
        return _Annotation("error", f"Gate failed: {check.name}", check.reason, check.line)
    message = f"{check.reason}\nAccepted: {check.accepted}"
    return _Annotation("warning", f"Gate failed, accepted: {check.name}", message, check.line)


def _at_most(part: list[_Annotation], most: int) -> Iterator[_Annotation]:
    """All, or as many as are shown, the last of which tells the rest."""
    if len(part) <= most:
        yield from part
        return
    yield from part[: most - 1]
    rest = part[most - 1 :]
    lines = "\n".join(f"{annotation.title}: {annotation.message}" for annotation in rest)
    yield _Annotation(rest[0].level, f"{len(rest)} more", lines)


def _escape_data(text: str) -> str:
    """The message of a command, without what a terminal or a log would obey."""
    return clean_text(text).replace("%", "%25").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    """A property of a command, where colons and commas end it."""
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML 1.0 document may hold, however it is written."""


def junit(verdict: Verdict) -> bytes:
    """One suite a section. Failed checks are failures; accepted and skipped ones are skipped, with
    the reason, since the format has no third state. Without times: a gate measures none."""
    root = ET.Element("testsuites", name=_clean(f"gate of {verdict.run_id}"))
    sections = dict.fromkeys(check.section for check in verdict.checks)
    for section in sections:
        _suite(
            root, section, [check for check in verdict.checks if check.section == section], verdict
        )
    _count(root, verdict.checks)
    del root.attrib["skipped"]  # the schema knows it for a suite only
    ET.indent(root)
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


def _suite(root: ET.Element, section: str, checks: list[Check], verdict: Verdict) -> None:
    suite = ET.SubElement(root, "testsuite", name=_clean(f"gate.{section}"))
    _count(suite, checks)
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("run", verdict.run_id),
        ("baseline", verdict.baseline or "none"),
        ("gates", verdict.gates),
    ):
        ET.SubElement(properties, "property", name=name, value=_clean(value))
    for check in checks:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=_clean(f"gate.{section}"),
            name=_clean(f"{check.name}: {check.must}"),
            time="0",
        )
        if check.status == "failed":
            text = _clean(check.reason)
            failure = ET.SubElement(case, "failure", type=_clean(check.rule), message=text)
            failure.text = text
        elif check.status == "accepted":
            text = f"accepted: {check.accepted} ({check.reason})"
            ET.SubElement(case, "skipped", message=_clean(text))
        elif check.status == "skipped":
            ET.SubElement(case, "skipped", message=_clean(check.reason))


def _count(element: ET.Element, checks: Iterable[Check]) -> None:
    statuses = [check.status for check in checks]
    skipped = sum(status in ("accepted", "skipped") for status in statuses)
    element.set("tests", str(len(statuses)))
    element.set("failures", str(statuses.count("failed")))
    element.set("errors", "0")
    element.set("skipped", str(skipped))
    element.set("time", "0")


def _clean(text: str) -> str:
    """Foreign text without what XML forbids; markup is escaped by the writer."""
    return FORBIDDEN.sub("\ufffd", text)
