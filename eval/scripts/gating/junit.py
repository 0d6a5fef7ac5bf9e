"""The verdict as JUnit XML, the form that CI servers read: a test case a check."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from gating.verdict import Check, Verdict

FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML 1.0 document may hold, however it is written."""


def junit(verdict: Verdict) -> bytes:
    """One suite a section. Failed checks are failures; accepted and skipped ones are skipped, with
    the reason, since the format has no third state. Without times: a gate measures none."""
    root = ET.Element("testsuites", name=clean(f"gate of {verdict.run_id}"))
    sections = dict.fromkeys(check.section for check in verdict.checks)
    for section in sections:
        _suite(root, section, [one for one in verdict.checks if one.section == section], verdict)
    _count(root, verdict.checks)
    del root.attrib["skipped"]  # the schema knows it for a suite only
    ET.indent(root)
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


def _suite(root: ET.Element, section: str, checks: list[Check], verdict: Verdict) -> None:
    suite = ET.SubElement(root, "testsuite", name=clean(f"gate.{section}"))
    _count(suite, checks)
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("run", verdict.run_id),
        ("baseline", verdict.baseline or "none"),
        ("gates", verdict.gates),
    ):
        ET.SubElement(properties, "property", name=name, value=clean(value))
    for check in checks:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=clean(f"gate.{section}"),
            name=clean(f"{check.name}: {check.must}"),
            time="0",
        )
        if check.status == "failed":
            said = clean(check.reason)
            failure = ET.SubElement(case, "failure", type=clean(check.rule), message=said)
            failure.text = said
        elif check.status == "accepted":
            said = f"accepted: {check.accepted} ({check.reason})"
            ET.SubElement(case, "skipped", message=clean(said))
        elif check.status == "skipped":
            ET.SubElement(case, "skipped", message=clean(check.reason))


def _count(element: ET.Element, checks: Iterable[Check]) -> None:
    statuses = [check.status for check in checks]
    skipped = sum(status in ("accepted", "skipped") for status in statuses)
    element.set("tests", str(len(statuses)))
    element.set("failures", str(statuses.count("failed")))
    element.set("errors", "0")
    element.set("skipped", str(skipped))
    element.set("time", "0")


def clean(text: str) -> str:
    """Foreign text without what XML forbids; markup is escaped by the writer."""
    return FORBIDDEN.sub("\ufffd", text)
