"""The text of each line of the labelling screens: pure functions of the session's values.

Every foreign string passes `display` or `one_line` here. State is never colour alone: marks,
grades, cursor and unread rows have signs of their own.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection

from labeller import worklist
from labeller.rows import ChunkRow, file_and_section, sentences_of
from labeller.session import Session
from labeller.worklist import CANNOT_TELL, LABELLED, OPEN, SKIPPED, UNANSWERABLE, CaseSummary
from terminal.frame import Look, cut, rule
from terminal.lists import Line, Span
from terminal.safe_text import DisplayText, cells, display, fit, fit_middle, one_line
from terminal.text_pane import Mark

STATUSES = {
    OPEN: (".", "OPEN"),
    LABELLED: ("v", "ANSWERABLE"),
    UNANSWERABLE: ("x", "UNANSWERABLE"),
    SKIPPED: ("s", "SKIPPED"),
    CANNOT_TELL: ("?", "CANNOT TELL"),
}
"""The sign of a status in the list of questions, and its word above the rows."""

LEGEND = ("v done  x unanswerable  . open  ", "s later  ? cannot tell  f flag")
"""Below the list of questions."""


def _duration(seconds: float) -> str:
    """`90` as `1m30s`, `7200` as `2h00m`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def header(session: Session, look: Look, width: int, saved: Span) -> Line:
    """Place, counts, progress, mode, annotator and whether all is saved."""
    progress = session.queue.progress()
    position, total = session.queue.position_and_total
    name = one_line(session.current or "no question", 40)
    if width < 100 and cells(name) > 16:
        name = fit_middle(name, 16)
    size, (full, free) = 20 if width >= 100 else 10, "#-" if look.ascii else "━─"
    done = size * progress.done // max(1, progress.counts.total())
    bar = [("good", display(f" |{full * done}")), ("dim", display(f"{free * (size - done)}|"))]
    counts = ("row", display(f" flag {progress.flagged} skip {progress.counts[SKIPPED]}"))
    annotator = ("row", display(f"{one_line(session.annotator, 16)} | "))
    mode = "INSPECT" if session.inspect else "BLIND" if session.blind else "open view"
    read_only = session.ledger.read_only and not session.inspect
    spans: list[Span] = [
        ("term", display(f" Q {position}/{total} {name}")),
        *([("warn", one_line(f" /{session.queue.filter}", 18))] if session.queue.filter else []),
        ("row", display(f" | open {progress.counts[OPEN]}")),
        *(counts, *bar),
        *([("warn", display(" READ-ONLY"))] if read_only else []),
        *(("key", display(f" {mode}")), ("row", display(" | ")), annotator, saved),
        *([("dim", display(" fetching…"))] if session.fetching else []),
    ]
    pace: list[Span] = []
    if progress.seconds_each and progress.seconds_left is not None:
        each, left = _duration(progress.seconds_each), _duration(progress.seconds_left)
        pace = [("dim", display(f" | {each} each, {left} left"))]
    # What is needed least goes first; the pace comes when all else has room.
    if sum(cells(text) for _, text in [*spans, *pace]) <= width:
        return (*spans, *pace)
    for parts in (bar, [counts], [annotator]):
        if sum(cells(text) for _, text in spans) > width:
            spans = [span for span in spans if span not in parts]
    return cut(spans, width)


def saved_span(problem: str, saved_at: float | None, dirty: bool) -> Span:
    """`saved 14:02`, the changes that are not in the set yet, or the problem that stays."""
    if problem:
        return ("warn", one_line(problem))
    if saved_at is None or dirty:
        return ("row", display("kept in journal" if dirty else "all saved"))
    return ("good", display(time.strftime("saved %H:%M", time.localtime(saved_at))))


def state_text(session: Session) -> tuple[DisplayText, list[Mark]]:
    """The decision so far and its needs, whole; the open need is highlighted.

    Foreign text is made harmless piece by piece, so that the marks stay where they are.
    """
    case, brief = session.case, session.summary
    word = STATUSES.get(brief.status, ("", brief.status))[1]
    if brief.status == OPEN and case.get("answerable") is not None:
        word = f"OPEN, {'answerable' if case['answerable'] else 'unanswerable'}"
    text = ""
    marks: list[Mark] = []

    def add(piece: str, style: str = "") -> None:
        nonlocal text
        harmless = one_line(piece)
        if style:
            marks.append((len(text), len(text) + len(harmless), style))
        text += harmless

    add(word, "good" if brief.status in ("labelled", "unanswerable") else "key")
    add(" FLAG" if brief.flagged else "", "warn")
    add(" DRAFT" if worklist.is_draft(case) else "", "warn")
    layout, pieces = session.layout, session.view.needs_pieces()
    if pieces or brief.status != "unanswerable":
        add("  ways: " if layout.ways else "  needs: ")
    for piece, is_open in pieces:
        add(piece, "marked" if is_open and len(layout.parts) > 1 else "")
    add("" if pieces or brief.status == "unanswerable" else "nothing yet")
    if len(layout.parts) > 1 or layout.open != 1:
        part = f"{layout.noun} {layout.open}" if layout.open else "what is not required"
        add(f"   marks join {part}", "key")
    for name, field in (("facts", "expected_key_facts"), ("forbidden", "forbidden_claims")):
        add(f"   {name} {len(case[field])}" if case.get(field) else "")
    if calls := len(session.pool.calls.get(session.current, ())):
        add(f"   tool calls {calls} (T)", "key")
    if (expected := case.get("expected_tools")) is not None:
        add(f"   expected calls {len(expected)}")
    add("   note" if session.judgement.get("note") else "")
    return DisplayText(text), marks


def question_row(brief: CaseSummary, width: int, longest: int, *, sign: str) -> Line:
    """One line of the question list: `sign` (open now), id, status, flag, the question's start.

    `longest` is the length of the longest id, so that the questions begin in one column.
    """
    status = STATUSES.get(brief.status, " ")[0]
    flag = "f" if brief.flagged else " "
    name = fit_middle(one_line(brief.id, 200), max(4, min(longest, width * 2 // 5)))
    head = display(f"{sign}{name} {status}{flag} ")
    text = fit(one_line(brief.question, 200), max(0, width - cells(head)))
    style = "dim" if brief.status in ("labelled", "unanswerable") else "row"
    return ((style, head), (style, text))


def path_of(rel_path: str, heading_path: str) -> DisplayText:
    """`faq.md > Billing > Plans`."""
    return one_line(f"{rel_path} > {heading_path}" if heading_path else rel_path)


def short_path(rel_path: str, heading_path: str, width: int) -> DisplayText:
    """The path on `width` cells at most: the middle goes first, then folders, then ends."""
    full = path_of(rel_path, heading_path)
    if cells(full) <= width:
        return full
    last = heading_path.rpartition(" > ")[2]
    short, name = file_and_section(rel_path, heading_path), rel_path.rpartition("/")[2]
    for shown in (f"{rel_path}{short.removeprefix(name)}", short):
        if last and cells(one_line(shown)) <= width:
            return one_line(shown)
    if not last:
        return fit(one_line(name), width)
    half = max(1, width * 2 // 5)
    start = one_line(name) if cells(one_line(name)) <= half else fit(one_line(name), half)
    return fit(one_line(f"{start} > {last}"), width)


def preview(text: str, pattern: Terms) -> DisplayText:
    """The text on one line, from a little before the question's first word in it."""
    head = one_line(text, 2048)
    match = pattern.search(head) if pattern else None
    if match is None or match.start() < 40:
        return DisplayText(head.lstrip())
    start = head.find(" ", match.start() - 24) + 1
    return DisplayText("…" + head[start:])


def _mark_sign(row: ChunkRow) -> str:
    """`[ ] `, `[2] ` (need 2), `[12]`; `[2+]` in several, `[0] ` in none."""
    if not row.marked:
        return "[ ] "
    first = str(row.parts[0]) if row.parts else "0"
    if len(row.parts) > 1:
        first = f"{first}+" if len(first) == 1 else "9+"
    return f"[{first}]".ljust(4)


SUPPORT_SIGNS = {"moved": "!", "fuzzy": "?", "heading": "^"}
"""How the support of a row was found, where it was not found exactly."""


PREVIEW_LEAST = 18
"""Cells that the start of a text keeps beside a long path: the text itself is below the list."""


def chunk_line(
    row: ChunkRow, width: int, look: Look, shown: DisplayText, longest: int, *, sign: str
) -> Line:
    """One row: `sign` (cursor, range), mark, grade, snippet, key, path, start of its text.

    `longest` is the width of the longest path, so that the texts begin in one column.
    """
    snippet = '"' if row.snippets and not row.auto else "~" if row.auto else " "
    support = SUPPORT_SIGNS.get(row.state, " ")
    unread = " " if row.seen else look.unread
    grade = " " if row.grade is None or not row.marked else f"{row.grade:g}"
    head = f"{sign}{_mark_sign(row)}{grade}{snippet}{support}{unread}"
    spans: list[Span] = [
        ("marked" if row.marked else "row", display(head)),
        ("key", display(f"{row.label:>3} ")),
    ]
    used = len(head) + 4
    if look.info:
        spans.append(("dim", _scores(row)))
        used += cells(spans[-1][1])
    left = width - used
    most = max(left * 11 // 20, left - PREVIEW_LEAST)
    path_width = max(0, min(longest, most)) if left > 30 else max(0, left)
    path = short_path(row.chunk.rel_path, row.chunk.heading_path, path_width)
    spans.append(("dim" if row.seen and not row.marked else "row", fit(path, path_width)))
    if left > path_width + 2:
        spans.append(("row", fit(DisplayText("  " + shown), left - path_width)))
    return tuple(spans)


SCORE_HEADS: Line = (("dim", display(" " * 12 + "rank vector lexical final ")),)
"""Above the columns of rank and scores."""


def _scores(row: ChunkRow) -> DisplayText:
    rank = "-" if row.rank is None else f"{row.rank}"
    scores = zip(row.scores, (6, 7, 5), strict=True)
    shown = (f"{'-' if score is None else f'{score:.3f}'[:size]:>{size}}" for score, size in scores)
    return display(f"{rank:>4} {' '.join(shown)} ")


def chunks_rule(
    session: Session,
    rows: Collection[ChunkRow],
    look: Look,
    width: int,
    words: str,
    *,
    focused: bool,
) -> Line:
    """How many chunks there are and were read, their order and filter."""
    seen = sum(row.seen for row in rows)
    probed = sum(bool(row.chunk.origin) for row in rows)
    more = f" + {probed} found" if probed else ""
    order = session.row_order
    order += f" #{one_line(session.seed, 8)}" if order == "shuffled" else ""
    left = f"passages {len(rows) - probed}{more} ({seen} read) {look.rule * 2} order: {order}"
    signs = "~ automatic snippet" if any(row.auto for row in rows) else ""
    right = f"filter: {one_line(words, 30)}" if words else signs
    return rule(look, width, left, right, focused=focused)


def marks_in(session: Session, row: ChunkRow, text: DisplayText, terms: Terms) -> list[Mark]:
    """The question's terms, and the picked snippets, as offsets."""
    hits = terms.finditer(text) if terms else ()
    marks: list[Mark] = [(hit.start(), hit.end(), "term") for hit in hits]
    if row.snippets and not row.auto:
        picked = [s for s in sentences_of(row, session.case) if s.picked]
        marks += [(s.start, s.end, "marked") for s in picked]
    return marks


def text_rule(row: ChunkRow, look: Look, width: int, span: str, *, focused: bool) -> Line:
    """The line above the text: row, path, and `span`, which lines of it are in view.

    The words that found the row give way before its path does.
    """
    head = f"row {row.label} {look.rule * 2} "
    room = width - len(head) - len(span) - 9  # dashes and blanks around both
    anchor = (row.chunk.rel_path, row.chunk.heading_path)
    page = one_line(f", page {row.chunk.page}" if row.chunk.page else "")
    path = DisplayText(short_path(*anchor, max(8, room - cells(page))) + page)
    origin = one_line(" ".join(row.chunk.origin.split()))
    left = room - cells(path) - len(' (found by "")')
    if origin and left >= min(len(origin), 8):
        path = DisplayText(f'{path} (found by "{fit(origin, min(left, cells(origin))).rstrip()}")')
    return rule(look, width, head + path, span, focused=focused)


Terms = re.Pattern[str] | None
"""The words of a question, to be marked in a text."""


def why_no_chunks(session: Session, words: str, source: str) -> str:
    """The advice when there is no row to show."""
    if not session.current:
        return "No question to show: Esc drops the filter, o adds a question."
    if words:
        return "No passage holds these words. Esc drops the filter."
    if problem := session.problem:
        return f"{problem}\nF5 tries again; P adds a support by path; e edits the question."
    if session.current in session.pool:
        return "Nothing was found for this question. p searches with other words."
    return f"Fetching passages from {source} …"


def held_keys(count: int, problem: str) -> str:
    """The message that keys wait for passages, with advice."""
    keys, them = ("1 key waits", "it") if count == 1 else (f"{count} keys wait", "them")
    return f"{keys}{': F5 tries again' if problem else ' for the passages'}, Esc drops {them}"


def holds(row: ChunkRow, words: list[str]) -> bool:
    """Whether a row's path, heading or text contains all of these casefolded words."""
    chunk = row.chunk
    text = f"{chunk.rel_path} {chunk.heading_path} {chunk.text}".casefold()
    return all(word in text for word in words)
