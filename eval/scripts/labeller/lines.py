"""What each line of the main screen says: pure functions from the session's values to spans.

Every foreign string passes `display` or `one_line` here. State is never colour alone: marks,
grades, cursor and unread rows have signs of their own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from labeller.display import DisplayText, display, one_line
from labeller.lists import Line, Span
from labeller.measure import cells, fit, wrap
from labeller.model import Brief, Progress, Row, Session
from labeller.worklist import is_draft

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


@dataclass(frozen=True, slots=True)
class Look:
    """How lines are drawn: choices of the user, not of the data."""

    ascii: bool = False
    info: bool = False

    @property
    def rule(self) -> str:
        return "-" if self.ascii else "─"

    @property
    def unread(self) -> str:
        return "*" if self.ascii else "·"


def words_pattern(words: Collection[str]) -> re.Pattern[str] | None:
    """Matches any of `words` as a whole word, whatever its case; None when there is none."""
    if not words:
        return None
    choices = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{choices})(?!\w)", re.IGNORECASE)


def rule(look: Look, width: int, left: str, right: str = "", *, focused: bool = False) -> Line:
    """A line of dashes with words set into it at both ends; heavy above the focused pane."""
    dash = look.rule
    if focused:
        dash = "=" if look.ascii else "━"
    head = display(f"{dash}{dash} {left} ")
    tail = display(f" {right} {dash}{dash}") if right else DisplayText("")
    gap = width - cells(head) - cells(tail)
    if gap < 0:
        return (("rule", fit(head, width)),)
    return (("rule", DisplayText(head + dash * gap + tail)),)


def cut(spans: Sequence[Span], width: int) -> Line:
    """The line on `width` cells at most; `…` ends it where something is left out."""
    left = width
    if sum(cells(text) for _, text in spans) > width:
        for place, (style, text) in enumerate(spans):
            if cells(text) >= left:
                rest = DisplayText("".join(text for _, text in spans[place:]))
                return (*spans[:place], (style, fit(rest, left)))
            left -= cells(text)
    return tuple(spans)


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
    place, total = session.place
    name = one_line(session.current or "no question", 40)
    if width < 100:
        name = DisplayText(fit(name, 16).rstrip())
    spans: list[Span] = [("term", display(f" Q {place}/{total} {name}"))]
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


def path_of(rel_path: str, heading_path: str) -> DisplayText:
    """`faq.md > Billing > Plans`."""
    return one_line(f"{rel_path} > {heading_path}" if heading_path else rel_path)


def short_path(rel_path: str, heading_path: str, width: int) -> DisplayText:
    """The path on `width` cells at most: the middle goes first, then folders, then ends."""
    full = path_of(rel_path, heading_path)
    if cells(full) <= width:
        return full
    last = heading_path.rpartition(" > ")[2]
    middle = " > … > " if " > " in heading_path else " > "
    name = rel_path.rpartition("/")[2]
    for shown in (f"{rel_path}{middle}{last}", f"{name}{middle}{last}"):
        if last and cells(one_line(shown)) <= width:
            return one_line(shown)
    if not last:
        return fit(one_line(name), width)
    half = max(1, width * 2 // 5)
    start = one_line(name) if cells(one_line(name)) <= half else fit(one_line(name), half)
    return fit(one_line(f"{start} > {last}"), width)


def preview(text: str, pattern: re.Pattern[str] | None) -> DisplayText:
    """The text on one line, from a little before the question's first word in it."""
    head = one_line(text, 2048)
    found = pattern.search(head) if pattern else None
    if found is None or found.start() < 40:
        return DisplayText(head.lstrip())
    start = head.find(" ", found.start() - 24) + 1
    return DisplayText("…" + head[start:])


def mark_sign(letters: str) -> str:
    """`[ ] `, `[A] `, `[AB]`, and `[A+]` from three groups on."""
    if len(letters) > 2:
        letters = f"{letters[0]}+"
    return f"[{letters or ' '}]".ljust(4)


SUPPORT_SIGNS = {"moved": "!", "fuzzy": "?", "heading": "^"}
"""How the support of a row was found, where it was not found exactly."""


def chunk_line(
    row: Row, width: int, look: Look, shown: DisplayText, longest: int, *, sign: str
) -> Line:
    """One row: `sign` (cursor, range), mark, grade, snippet, key, path, start of its text.

    `longest` is the width of the longest path, so that the texts begin in one column.
    """
    snippet = '"' if row.snippets and not row.auto else "~" if row.auto else " "
    found = SUPPORT_SIGNS.get(row.state, " ")
    unread = " " if row.seen else look.unread
    grade = " " if row.grade is None or not row.marked else f"{row.grade:g}"
    head = f"{sign}{mark_sign(row.letters)}{grade}{snippet}{found}{unread}"
    spans: list[Span] = [
        ("marked" if row.marked else "row", display(head)),
        ("key", display(f"{row.label:>3} ")),
    ]
    used = len(head) + 4
    if look.info:
        spans.append(("dim", _scores(row)))
        used += cells(spans[-1][1])
    left = width - used
    path_width = max(0, min(longest, left * 11 // 20)) if left > 30 else max(0, left)
    path = short_path(row.chunk.rel_path, row.chunk.heading_path, path_width)
    spans.append(("dim" if row.seen and not row.marked else "row", fit(path, path_width)))
    if left > path_width + 2:
        spans.append(("row", fit(DisplayText("  " + shown), left - path_width)))
    return tuple(spans)


def _scores(row: Row) -> DisplayText:
    rank = "  -" if row.rank is None else f"{row.rank:>3}"
    scores = (row.score_vector, row.score_lexical, row.score_final)
    return display(
        f"{rank} " + " ".join("  -  " if s is None else f"{s:5.3g}"[:5] for s in scores) + " "
    )


def chunks_rule(
    session: Session, rows: Collection[Row], look: Look, width: int, words: str, *, focused: bool
) -> Line:
    """How many chunks there are and were read, their order and filter."""
    seen = sum(row.seen for row in rows)
    probed = sum(bool(row.chunk.origin) for row in rows)
    more = f" + {probed} found" if probed else ""
    lost = len(session.lost_probes())
    more += f", {lost} search{'es' if lost > 1 else ''} lost (w)" if lost else ""
    order = session.row_order
    if order == "shuffled":
        order += f" #{one_line(session.seed, 8)}"
    left = f"chunks {len(rows) - probed}{more} ({seen} read) {look.rule * 2} order: {order}"
    right = f"filter: {one_line(words, 30)}" if words else ""
    return rule(look, width, left, right, focused=focused)


def question_row(brief: Brief, width: int, *, sign: str) -> Line:
    """One line of the question list: `sign` (open now), id, status, flag, the question's start."""
    status = STATUS_SIGNS.get(brief.status, " ")
    flag = "f" if brief.flagged else " "
    name = fit(one_line(brief.id, 40), min(10, max(4, width // 4)))
    head = display(f"{sign}{name} {status}{flag} ")
    text = fit(one_line(brief.question, 200), max(0, width - cells(head)))
    style = "dim" if brief.status in ("labelled", "unanswerable") else "row"
    return ((style, head), (style, text))


def status(message: Span, pending: str, width: int) -> Line:
    """The last message, and at the right end what the started keys wait for."""
    tail = display(f" {pending} ") if pending else DisplayText("")
    style, text = message
    return ((style, fit(DisplayText(" " + text), width - cells(tail))), ("key", tail))


def hints(parts: Iterable[tuple[str, str]], help_key: str, width: int) -> Line:
    """`key label` pairs as far as they fit, and the help key always at the right end."""
    tail = f" {help_key} help "
    left = width - len(tail)
    spans: list[Span] = [("row", DisplayText(" "))]
    left -= 1
    for key, label in parts:
        size = len(key) + len(label) + 3
        if size > left:
            break
        spans += [("key", display(key)), ("dim", display(f" {label}  "))]
        left -= size
    spans.append(("row", DisplayText(" " * max(0, left))))
    return (*spans, ("key", display(tail[:-6])), ("dim", display(tail[-6:])))
