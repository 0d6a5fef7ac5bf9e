"""What each line of the main screen says: pure functions from the session's values to spans.

Every foreign string passes `display` or `one_line` here. State is never colour alone: marks,
grades, cursor and unread rows have signs of their own.
"""

from __future__ import annotations

import time

from labeller.session import Session
from labeller.worklist import CaseSummary, Progress, is_draft
from terminal.frame import cut
from terminal.lists import Line, Span
from terminal.safe_text import DisplayText, cells, display, fit, one_line, wrap

STATUS_SIGNS = {
    "open": ".",
    "labelled": "v",
    "unanswerable": "x",
    "skipped": "s",
    "cannot_tell": "?",
}
STATUS_WORDS = {
    "open": "OPEN",
    "labelled": "ANSWERABLE",
    "unanswerable": "UNANSWERABLE",
    "skipped": "SKIPPED",
    "cannot_tell": "CANNOT TELL",
}
STATES = {True: "OPEN, answerable", False: "OPEN, unanswerable"}
LEGEND = "v done  x unanswerable  . open  s later  ? cannot tell  f flag"


def duration(seconds: float) -> str:
    """`90` as `1m30s`, `7200` as `2h00m`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def _bar(progress: Progress, size: int) -> str:
    done = size * progress.done // progress.total if progress.total else 0
    return "#" * done + "-" * (size - done)


def header(session: Session, progress: Progress, width: int, saved: Span, *, waiting: bool) -> Line:
    """Place, counts, progress, mode, annotator and whether all is saved."""
    position, total = session.position
    name = one_line(session.current or "no question", 40)
    if width < 100:
        name = DisplayText(fit(name, 16).rstrip())
    spans: list[Span] = [("term", display(f" Q {position}/{total} {name}"))]
    if session.filter:
        spans.append(("warn", one_line(f" /{session.filter}", 18)))
    bar = display(f" |{_bar(progress, 20 if width >= 100 else 10)}|")
    counts = f" | open {progress.open} flag {progress.flagged} skip {progress.skipped}"
    spans.append(("row", display(counts)))
    spans.append(("dim", bar))
    mode = "INSPECT" if session.inspect else "BLIND" if session.blind else "open view"
    if session.read_only and not session.inspect:
        spans.append(("warn", display(" READ-ONLY")))
    spans.append(("key", display(f" {mode}")))
    spans.append(("row", display(f" | {one_line(session.annotator, 16)} | ")))
    spans.append(saved)
    if waiting:
        spans.append(("dim", display(" fetching…")))
    if progress.seconds_each is not None and progress.seconds_left is not None and width >= 100:
        pace, left = duration(progress.seconds_each), duration(progress.seconds_left)
        spans.append(("dim", display(f" | {pace} each, {left} left")))
    if sum(cells(text) for _, text in spans) > width:
        spans.remove(("dim", bar))
    return cut(spans, width)


def saved_span(problem: str, saved_at: float | None, dirty: bool) -> Span:
    """`saved 14:02`, `in journal` (not yet in the file), or the problem that stays."""
    if problem:
        return ("warn", one_line(problem))
    if saved_at is None or dirty:
        return ("row", display("in journal" if dirty else "all saved"))
    return ("good", display(time.strftime("saved %H:%M", time.localtime(saved_at))))


def question_lines(session: Session, width: int, height: int) -> list[Line]:
    """The question on at most `height` lines; `…` where it is cut."""
    text = one_line(str(session.case.get("question", "")))
    breaks = wrap(text, max(1, width - 2))
    lines = [DisplayText(text[start:end]) for start, end in breaks[:height]]
    if len(breaks) > height and lines:
        lines[-1] = fit(DisplayText(lines[-1] + "…" + " " * width), width - 2)
        lines[-1] = DisplayText(lines[-1].rstrip().removesuffix("…") + "…")
    return [(("term", DisplayText(f" {line}")),) for line in lines] + [()] * (height - len(lines))


def state_line(session: Session, width: int) -> Line:
    """The decision so far and what would be written for it, in words."""
    case, brief = session.case, session.brief(session.current)
    answerable = case.get("answerable")
    if brief.status == "open":
        word = "OPEN" if answerable is None else STATES[bool(answerable)]
    else:
        word = STATUS_WORDS.get(brief.status, brief.status)
    snippets = sum(len(support.snippets) for support in session.supports())
    parts = [
        f"needs: {session.needs() or 'nothing yet'}",
        f"marks join {session.letter}",
        f"facts {len(case.get('expected_key_facts') or ())}",
        f"forbidden {len(case.get('forbidden_claims') or ())}",
        f"snippets {snippets}",
    ]
    if session.judgement.get("note"):
        parts.append("note")
    style = "good" if brief.status in ("labelled", "unanswerable") else "key"
    flag: list[Span] = [("warn", display(" FLAG"))] if brief.flagged else []
    draft: list[Span] = [("warn", display(" DRAFT"))] if is_draft(case) else []
    row: Span = ("row", one_line("  " + "   ".join(parts)))
    return cut([(style, display(f" {word}")), *flag, *draft, row], width)


def question_row(brief: CaseSummary, width: int, *, sign: str) -> Line:
    """One line of the question list: `sign` (open now), id, status, flag, the question's start."""
    status = STATUS_SIGNS.get(brief.status, " ")
    flag = "f" if brief.flagged else " "
    name = fit(one_line(brief.id, 40), min(10, max(4, width // 4)))
    head = display(f"{sign}{name} {status}{flag} ")
    text = fit(one_line(brief.question, 200), max(0, width - cells(head)))
    style = "dim" if brief.status in ("labelled", "unanswerable") else "row"
    return ((style, head), (style, text))
