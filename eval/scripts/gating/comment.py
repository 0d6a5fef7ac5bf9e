"""The verdict as Markdown, for the comment of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from comparing.markdown import cell, code
from gating.numbers import amount
from gating.verdict import Check, Verdict
from tables import number, plain

MARKER = "<!-- rag-eval-gate -->"
"""First line of the comment, by which a job finds its own to replace it."""
MARKS = {"failed": "❌", "accepted": "⚠️", "skipped": "➖", "passed": "✅"}
MOST = 60_000
"""Characters; GitHub refuses comments of more than 65,536."""
LONGEST = 500
"""Characters of one text."""
CUT = "\n… cut here; gate.json holds all checks."
HEAD = ("", "check", "must be", "value", "baseline", "difference", "n")


def markdown(verdict: Verdict) -> str:
    """Verdict first, then what failed and why, what was accepted, and a folded table of all."""
    against = f" against {shown(verdict.baseline)}" if verdict.baseline else ""
    mark = MARKS["passed" if verdict.passed else "failed"]
    lines = [MARKER, f"## {mark} {verdict.summary()}", "", f"Run {shown(verdict.run_id)}{against}."]
    failed, accepted = verdict.of("failed"), verdict.of("accepted")
    if failed:
        lines += ["", "### Failed", "", *(f"- {shown(c.name)}: {shown(c.reason)}" for c in failed)]
    if accepted:
        lines += ["", "### Accepted trade-offs", ""]
        lines += [
            f"- {shown(check.name)}: {shown(check.reason)}; accepted: {shown(check.accepted or '')}"
            for check in accepted
        ]
    if notes := [*verdict.caveats, *(check.reason for check in verdict.of("skipped"))]:
        lines += ["", "### Notes", "", *(f"- {shown(note)}" for note in notes)]
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
    yield "| " + " | ".join(HEAD) + " |"
    yield "|" + "---|" * len(HEAD)
    for check in checks:
        texts = (cell(plain(text, LONGEST)) for text in (check.name, check.must))
        cells = (*texts, *figures(check))
        yield f"| {MARKS[check.status]} | " + " | ".join(cells) + " |"
    yield ""
    yield "</details>"


def figures(check: Check) -> tuple[str, str, str, str]:
    """Value, baseline, difference with its interval, and n; "" for what a check does not have."""
    words = amount if check.section == "run" else number
    value = "" if check.value is None else words(check.value)
    baseline = "" if check.baseline is None else words(check.baseline)
    change = "" if check.delta is None else signed(check.delta)
    if check.delta is not None and check.interval is not None:
        change += f" ({signed(check.interval[0])} … {signed(check.interval[1])})"
    return value, baseline, change, "" if check.n is None else str(check.n)


def signed(value: float) -> str:
    """A difference, with its sign."""
    return f"{'+' if value > 0 else '-' if value < 0 else '±'}{number(abs(value))}"


def shown(text: str) -> str:
    """Foreign text as a code span: in one, GitHub reads no markup, mentions and links."""
    return code(plain(text, LONGEST))
