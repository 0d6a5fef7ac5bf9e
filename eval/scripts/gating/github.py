"""The verdict as GitHub Actions annotations: workflow commands, a line each.

The forms of the lines and their escapes are those of GitHub's documentation of workflow commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from comparing.markdown import clean_text
from gating.verdict import Check, Verdict

MOST = 10
"""Annotations of one kind that GitHub shows a step; what comes later is dropped in silence."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """``level``: error, warning or notice."""

    level: str
    title: str
    message: str
    line: int | None = None

    def command(self, file: str) -> str:
        """As a workflow command, on one line whatever the texts hold."""
        properties = [f"title={escape_property(self.title)}"]
        if self.line is not None:
            properties = [f"file={escape_property(file)}", f"line={self.line}", *properties]
        return f"::{self.level} {','.join(properties)}::{escape_data(self.message)}"


def workflow_commands(verdict: Verdict, file: str) -> list[str]:
    """An error a failed check, a warning an accepted one, a notice each for the rest of what a
    reader must know. ``file``: the gates file as the repository names it."""
    errors = [_of(check) for check in verdict.of("failed")]
    warnings = [_of(check) for check in verdict.of("accepted")]
    notices = [Annotation("notice", "Gate", verdict.summary())]
    notices += [Annotation("notice", "Gate", text) for text in verdict.caveats]
    notices += [
        Annotation("notice", f"Not checked: {check.name}", check.reason)
        for check in verdict.of("skipped")
    ]
    return [
        one.command(file) for part in (errors, warnings, notices) for one in _at_most(part, MOST)
    ]


def _of(check: Check) -> Annotation:
    if check.status == "failed":
        return Annotation("error", f"Gate failed: {check.name}", check.reason, check.line)
    said = f"{check.reason}\nAccepted: {check.accepted}"
    return Annotation("warning", f"Gate failed, accepted: {check.name}", said, check.line)


def _at_most(part: list[Annotation], most: int) -> Iterator[Annotation]:
    """All, or as many as are shown, the last of which tells the rest."""
    if len(part) <= most:
        yield from part
        return
    yield from part[: most - 1]
    rest = part[most - 1 :]
    lines = "\n".join(f"{one.title}: {one.message}" for one in rest)
    yield Annotation(rest[0].level, f"{len(rest)} more", lines)


def escape_data(text: str) -> str:
    """The message of a command, without what a terminal or a log would obey."""
    return clean_text(text).replace("%", "%25").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """A property of a command, where colons and commas end it."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")
