"""The verdict of a gate as a page, and in the forms of CI: JUnit XML, GitHub's annotations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from decisions.gate_checks import amount
from decisions.gate_rules import BUILT_IN_RULES
from records.gate_verdict import WORSE, Check, Verdict
from terminal.page import (
    Block,
    Conclusion,
    DataColumn,
    DataTable,
    Page,
    Prose,
    Quoted,
    Tone,
    apart,
    between,
    number,
    p_value,
    signed,
    signed_between,
)
from terminal.tables import harmless_lines, plain

MARKS = {"failed": "✗", "accepted": "!", "skipped": "–", "passed": "✓"}

_TONES: dict[str, Tone] = {
    "failed": "bad",
    "accepted": "doubt",
    "skipped": "quiet",
    "passed": "good",
}

_OUTCOMES: dict[str, Tone] = {"FAILED": "bad", "passed": "good", "NOT CHECKED": "doubt"}

_LONGEST = 500
"""Characters of one text."""

MARKER = "<!-- rag-eval-gate -->"
"""First line of the comment, by which a job finds its own to replace it."""

MOST = 60_000
"""Characters of a comment; GitHub refuses more than 65,536."""


def _value(check: Check) -> str:
    if check.value is None:
        return ""
    return amount(check.value) if check.section == "run" else apart(check.value, check.baseline)[0]


def _baseline(check: Check) -> str:
    if check.baseline is None:
        return ""
    if check.section == "run":
        return amount(check.baseline)
    return apart(check.baseline, check.value)[0]


def _interval(check: Check) -> str:
    """Of the difference, or of a value that no baseline is beside."""
    if check.interval is None:
        return ""
    return between(check.interval) if check.delta is None else signed_between(check.interval)


_COLUMNS: tuple[DataColumn[Check], ...] = (
    DataColumn("", lambda check: MARKS[check.status], mark=True),
    DataColumn("check", lambda check: check.name, words=True, foreign=True),
    DataColumn("must be", lambda check: check.must, words=True, foreign=True),
    DataColumn("value", _value),
    DataColumn("baseline", _baseline, drop=2),
    DataColumn("change", lambda check: "" if check.delta is None else signed(check.delta), drop=5),
    DataColumn("95 % interval", _interval, drop=3),
    DataColumn("p", lambda check: "" if check.p is None else p_value(check.p), drop=4),
    DataColumn("n", lambda check: "" if check.n is None else str(check.n), drop=1),
)


def _is_said(check: Check) -> bool:
    """Whether the row of a check has all of its reason."""
    if check.value is None or check.accepted:
        return False
    bare = (f"{shown}, must be {check.must}" for shown in (number(check.value), _value(check)))
    tested = check.rule == WORSE and check.delta is not None
    return (tested and check.status == "failed") or check.reason in bare


def gate_page(verdict: Verdict) -> Page:
    """The checks that did not pass, each in a row of numbers or in a sentence; the others folded;
    the verdict."""
    run: tuple[str | Quoted, ...] = ("Run ", _quoted(verdict.run_id))
    if verdict.baseline:
        run = (*run, " against ", _quoted(verdict.baseline))
    rules = "" if verdict.gates == BUILT_IN_RULES else "rules of "
    blocks: list[Block] = [Prose((*run, f", {rules}", _quoted(verdict.gates)), "strong")]
    loud, passed = verdict.of("failed", "accepted", "skipped"), verdict.of("passed")
    blocks.append(DataTable(_COLUMNS, [check for check in loud if _is_said(check)], tone=_tone))
    for check in (check for check in loud if not _is_said(check)):
        rule = (_quoted(check.name), ", ", _quoted(check.must), ": ")
        why: tuple[str | Quoted, ...] = (*rule, _quoted(check.reason))
        if check.accepted:
            why = (*why, ". Accepted: ", _quoted(check.accepted))
        blocks.append(Prose((f"{MARKS[check.status]} ", *why), _tone(check), item=1))
    blocks += [Prose(_quoted(note), "doubt") for note in verdict.caveats]
    title = f"{len(passed)} passed"
    blocks.append(DataTable(_COLUMNS, passed, tone=_tone, folded=title))
    more = tuple(Prose(_quoted(line)) for line in verdict.says)
    tone: Tone = "doubt" if verdict.passed and verdict.doubt else _OUTCOMES[verdict.outcome]
    blocks.append(Conclusion(verdict.summary(), tone, more))
    return Page("", blocks)


def _tone(check: Check) -> Tone:
    return _TONES[check.status]


def _quoted(text: str) -> Quoted:
    return Quoted(plain(text, _LONGEST))


GITHUB_MOST = 10
"""Annotations of one kind that GitHub shows per step; it drops later ones silently."""


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
    """An error for each failed check, a warning for each accepted one, and a notice for each other
    necessary remark. ``file``: the gates file as the repository names it."""
    errors = [_of(check) for check in verdict.of("failed")]
    warnings = [_of(check) for check in verdict.of("accepted")]
    notices = [_Annotation("notice", "Gate", verdict.summary())]
    notices += [_Annotation("notice", "Gate", text) for text in (*verdict.says, *verdict.caveats)]
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
    """All, or as many as are shown, the last of which lists the rest."""
    if len(part) <= most:
        yield from part
        return
    yield from part[: most - 1]
    rest = part[most - 1 :]
    lines = "\n".join(f"{annotation.title}: {annotation.message}" for annotation in rest)
    yield _Annotation(rest[0].level, f"{len(rest)} more", lines)


def _escape_data(text: str) -> str:
    """The message of a command, without what a terminal or a log would obey."""
    return harmless_lines(text).replace("%", "%25").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    """A property of a command, where colons and commas end it."""
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document can contain, in any notation."""


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
        ("title", verdict.title),
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
