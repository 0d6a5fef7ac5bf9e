"""Maps each action of the main screen to its function: a function for each action id of the table.

A function gets the screen, and for an action that takes one the key (a digit or a letter) as well.
It changes labels through the session alone, and refuses with one sentence. What opens another
window is in `labeller.window_commands`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from labeller import edits, marks
from labeller import window_commands as windows
from labeller.lines import holds
from labeller.rows import ROW_ORDERS
from terminal.actions import ActionRefused
from terminal.app import THEMES

if TYPE_CHECKING:
    from labeller.screen import Command, MainScreen
    from labeller.session import Session

PANES = ("chunks", "text", "questions", "conversation", "question", "state")
END: Final = 1 << 30
"""Past the last row of any list."""


# -- marking and deciding: each is one call of the session, and can be undone


def _case(change: Callable[[Session], str]) -> Command:
    """An action on the current case."""
    return lambda screen: screen.say(change(screen.session))


def _row(change: Callable[[Session, int], str]) -> Command:
    """An action on the row under the cursor."""
    return lambda screen: screen.say(change(screen.session, screen.need_row().number))


def _row_key(change: Callable[[Session, int, str], str]) -> Command:
    """An action on the row under the cursor that takes a key."""
    return lambda screen, key: screen.say(change(screen.session, screen.need_row().number, key))


def mark(screen: MainScreen) -> None:
    """Mark or unmark the row under the cursor, or the open range."""
    row = screen.need_row()
    if screen.range_start is None:
        screen.say(screen.session.on_row(row.number, marks.toggle))
        return
    start, screen.range_start = min(screen.range_start, len(screen.rows) - 1), None
    low, high = sorted((start, screen.chunks.cursor))
    screen.chunks.refresh()
    screen.say(screen.session.toggle_range(screen.rows[low].number, screen.rows[high].number))


def mark_row(screen: MainScreen, label: str) -> None:
    """Mark or unmark the row of that label; show it first, if digits look."""
    index = _index_of(screen, label)
    if screen.digits_look and index != screen.chunks.cursor:
        _to_row(screen, index)
    else:
        screen.say(screen.session.on_row(screen.rows[index].number, marks.toggle))


def _index_of(screen: MainScreen, label: str) -> int:
    for index, row in enumerate(screen.rows):
        if row.label == label:
            return index
    if not screen.rows:
        raise ActionRefused("no passage here; p searches for one")
    added = next((row.label for row in screen.rows if row.label.startswith("+")), "")
    remedy = f"; row {added} has no digit: go there and press Space" if added else ""
    raise ActionRefused(f"no row {label} here{remedy}")


def mark_high_row(screen: MainScreen, key: str) -> None:
    """Mark or unmark row 11 to 20, by its last digit."""
    mark_row(screen, str(10 + (int(key) or 10)))


def open_need(screen: MainScreen, key: str) -> None:
    """Let marks join a need; 0: they are not required; ': a new need."""
    screen.say(screen.session.open_need(None if key == "'" else int(key)))


def share(screen: MainScreen, key: str) -> None:
    """Let the row meet a need as well; &: the one that marks join."""
    session = screen.session
    number = session.layout.open if key == "&" else int(key)
    screen.say(session.on_row(screen.need_row().number, marks.share, number))


def digits_look(screen: MainScreen) -> None:
    """Let a digit show its row first, or mark it at once."""
    screen.digits_look = not screen.digits_look
    how = (
        "shows its row, and marks it when pressed again" if screen.digits_look else "marks its row"
    )
    screen.say(f"a digit {how}")


def start_range(screen: MainScreen) -> None:
    """Start a range at the cursor, or drop the one that was started."""
    screen.need_row()
    screen.range_start = None if screen.range_start is not None else screen.chunks.cursor
    screen.chunks.refresh()


def rate_mode(screen: MainScreen) -> None:
    """Let bare digits grade, or no longer."""
    screen.rating = not screen.rating


def confirm(screen: MainScreen) -> None:
    """Confirm the case and open the next one; in the list of questions, open the one there."""
    if screen.pane == "questions":
        screen.open_question(screen.questions.cursor)
        return
    if screen.range_start is not None:
        raise ActionRefused("a range is open: Space marks it, Esc drops it")
    confirmed = screen.session.confirm()
    screen.say(confirmed.message, "row" if confirmed.done else "warn")


def undo(screen: MainScreen) -> None:
    """Undo the last change of any case."""
    screen.say(screen.session.undo())
    screen.list_questions()


def redo(screen: MainScreen) -> None:
    """Redo the last undone step."""
    screen.say(screen.session.redo())
    screen.list_questions()


def blind(screen: MainScreen) -> None:
    """Blind mode on or off."""
    screen.say(screen.session.set_blind(not screen.session.blind))
    screen.chunks.refresh()


# -- moving


def _down(screen: MainScreen) -> None:
    _step(screen, 1)


def _up(screen: MainScreen) -> None:
    _step(screen, -1)


def _step(screen: MainScreen, by: int) -> None:
    if screen.pane in screen.texts:
        screen.scroll_text(by, screen.pane)
    elif screen.pane == "questions":
        screen.questions.move_to(screen.questions.cursor + by)
    else:
        _to_row(screen, screen.chunks.cursor + by)


def read_on(screen: MainScreen) -> None:
    """A page of the text down; from its end to the next row that was not read.

    Pages share no line, and the list gives its lines to the text where that needs them.
    """
    if not screen.need_row() or not screen.text.display:
        zoom(screen)
        return
    screen.reading = True
    if not screen.scroll_text(max(1, screen.text.size.height)):
        _seek(screen, 1, lambda index: not screen.rows[index].seen, "all rows here are read")


def go_to_row(screen: MainScreen) -> None:
    """Ask for the number of a row, and show it."""
    from terminal.windows import LinePrompt

    screen.need_row()

    def closed(number: str | None) -> None:
        if number:
            screen.attempt(lambda: _to_row(screen, _index_of(screen, number.strip())))

    screen.app.push_screen(LinePrompt("Row number (+1 for a row that a search found):"), closed)


def _to_row(screen: MainScreen, index: int) -> None:
    before = screen.chunks.cursor
    if screen.chunks.move_to(index) and screen.range_start is not None:
        low, high = sorted((before, screen.chunks.cursor))
        screen.chunks.refresh_rows(range(low, high + 1))


def _jump(screen: MainScreen, index: int) -> None:
    """To the first line (0) or the last (`END`) of the pane."""
    if screen.pane in screen.texts:
        screen.scroll_text(END if index else -END, screen.pane)
    elif screen.pane == "questions":
        screen.questions.move_to(index)
    else:
        _to_row(screen, index)


def _page(screen: MainScreen, by: int) -> None:
    """A page of the list of questions, or half a page of the text."""
    if screen.pane == "questions":
        page = max(1, screen.questions.size.height - 1)
        screen.questions.move_to(screen.questions.cursor + by * page)
    else:
        pane = screen.pane if screen.pane in screen.texts else "text"
        screen.scroll_text(by * max(1, screen.texts[pane].size.height // 2), pane)


def _seek_marked(screen: MainScreen, by: int) -> None:
    _seek(screen, by, lambda index: screen.rows[index].marked, "no row is marked; Space marks one")


def next_in_group(screen: MainScreen, key: str) -> None:
    """To the next passage of a need; 0: of those that are not required."""
    number = int(key)

    def matches(index: int) -> bool:
        row = screen.rows[index]
        return number in row.parts if number else row.marked and not row.parts

    _seek(screen, 1, matches, f"no row meets need {number}")


def _seek(screen: MainScreen, by: int, matches: Callable[[int], bool], otherwise: str) -> None:
    """To the next row that matches, round the end; refuses with `otherwise` when none does."""
    count = len(screen.rows)
    for step in range(1, count + 1):
        index = (screen.chunks.cursor + by * step) % count
        if matches(index):
            _to_row(screen, index)
            return
    raise ActionRefused(otherwise)


def _turn_pane(screen: MainScreen, by: int) -> None:
    panes = [name for name in PANES if _is_shown(screen, name)]
    index = panes.index(screen.pane) if screen.pane in panes else -by
    screen.show_pane(panes[(index + by) % len(panes)])


def _is_shown(screen: MainScreen, name: str) -> bool:
    if name in ("conversation", "question", "state"):
        pane = screen.texts[name]
        if pane.line_count <= pane.size.height and screen.zoomed != name:
            return False  # all of it is in view: there is nothing to scroll
    return all(node.display for node in screen.query_one(f"#{name}").ancestors_with_self)


def go_to(screen: MainScreen, name: str) -> None:
    """Open a question by its number or id (from the command palette)."""
    if name.isdecimal():
        screen.session.queue.goto_number(int(name))
    else:
        case_id = screen.session.queue.find(name)
        if case_id is None:
            raise ActionRefused(f"no question {name}")
        screen.session.queue.goto(case_id)


# -- finding and what is shown


def _hit(screen: MainScreen, by: int) -> None:
    if screen.pane == "questions":
        screen.questions.move_to(screen.questions.cursor + by)
    elif screen.pane in screen.texts and screen.texts[screen.pane].words:
        screen.next_hit(screen.texts[screen.pane], by)
    elif screen.last_words:
        words = screen.last_words.casefold().split()
        _seek(screen, by, lambda index: holds(screen.rows[index], words), "no passage holds it")
    else:
        raise ActionRefused("nothing to look for yet; / asks for words")


def clear(screen: MainScreen) -> None:
    """Take back the innermost thing that was started."""
    if screen.range_start is not None:
        screen.range_start = None
        screen.chunks.refresh()
    elif screen.rating:
        screen.rating = False
    elif screen.zoomed:
        zoom(screen)
    elif screen.pane == "questions" and screen.session.queue.filter:
        screen.session.queue.set_filter("")
        screen.list_questions()
    elif screen.words:
        screen.words = ""
    elif any(pane.words for pane in screen.texts.values()):
        for pane in screen.texts.values():
            pane.search("")
    elif screen.session.queue.filter:
        screen.session.queue.set_filter("")
        screen.list_questions()
    else:
        screen.show_pane("chunks")


def refetch(screen: MainScreen) -> None:
    """Fetch the chunks of the question again."""
    case_id = screen.session.current
    if case_id:
        screen.source.refetch(case_id, str(screen.session.case.get("question", "")))
        screen.say("fetching the passages again …")


def toggle_questions(screen: MainScreen) -> None:
    """The list of questions on or off."""
    wide = screen.has_class("-wide")
    screen.toggle_class("-side-off" if wide else "-side-on")
    on = not screen.has_class("-side-off") if wide else screen.has_class("-side-on")
    screen.show_pane("questions" if on else "chunks")
    screen.call_after_refresh(screen.redraw)


def zoom(screen: MainScreen) -> None:
    """The text, or question or needs if they have the focus, on the whole screen; or back."""
    pane = screen.pane if screen.pane in screen.texts else "text"
    before, screen.zoomed = screen.zoomed, "" if screen.zoomed else pane
    screen.set_class(bool(screen.zoomed), f"-zoom-{screen.zoomed or before}")
    for name in ("conversation", "question", "state"):
        screen.texts[name].styles.height = "1fr" if screen.zoomed == name else 1
    screen.show_pane(screen.zoomed or "chunks")
    screen.call_after_refresh(screen.redraw)


def conversation(screen: MainScreen) -> None:
    """All that was said before the question, or its last two lines."""
    if not screen.talk.display:
        raise ActionRefused("nothing was said before this question")
    screen.unfolded = not screen.unfolded
    screen.talk_ends = True
    screen.show_pane("conversation" if screen.unfolded else "chunks")


def info(screen: MainScreen) -> None:
    """Rank and scores on or off."""
    if screen.session.blind:
        raise ActionRefused("rank and scores are hidden in blind mode; B leaves it")
    screen.look = replace(screen.look, info=not screen.look.info)
    screen.chunks.refresh()
    screen.call_after_refresh(screen.redraw)


def row_order(screen: MainScreen) -> None:
    """The rows in their next order."""
    session = screen.session
    names = [name for name in ROW_ORDERS if name != "rank" or not session.blind]
    index = names.index(session.row_order) if session.row_order in names else -1
    session.set_row_order(names[(index + 1) % len(names)])
    screen.chunks.refresh()
    screen.say(f"rows in {session.row_order} order")


def queue_order(screen: MainScreen, name: str) -> None:
    """Put the questions in another order (from the command palette)."""
    screen.session.queue.set_order(name)
    screen.list_questions()
    screen.say(f"questions in {name} order")


def theme(screen: MainScreen) -> None:
    """Dark or light colours."""
    themes = list(THEMES.values())
    index = themes.index(screen.app.theme) if screen.app.theme in themes else -1
    screen.app.theme = themes[(index + 1) % len(themes)]


def redraw(screen: MainScreen) -> None:
    """Draw the whole screen again."""
    screen.redraw()
    screen.refresh(repaint=True, layout=True)


def copy_anchor(screen: MainScreen) -> None:
    """Path and heading to the clipboard."""
    chunk = screen.need_row().chunk
    anchor = " > ".join(part for part in (chunk.rel_path, chunk.heading_path) if part)
    screen.copy_out(anchor, "path and heading")


def copy_text(screen: MainScreen) -> None:
    """The passage's text to the clipboard."""
    screen.copy_out(screen.need_row().chunk.text, "text of the passage")


# -- saving and leaving


def save(screen: MainScreen) -> None:
    """Write the set now."""
    screen.say("saving …")
    screen.save()


def leave(screen: MainScreen) -> None:
    """Leave the zoomed text, or the program."""
    if screen.zoomed:
        zoom(screen)
    else:
        screen.app.exit()


def interrupt(screen: MainScreen) -> None:
    """Leave at the second Ctrl+C in a row."""
    if screen.last_action == "interrupt":
        screen.app.exit()
    else:
        screen.say("Ctrl+c again leaves; q leaves too; y and Y copy")


COMMANDS: Final[dict[str, Command]] = {
    "mark": mark,
    "mark-row": mark_row,
    "mark-high-row": mark_high_row,
    "range": start_range,
    "need": open_need,
    "next-group": _case(lambda session: session.open_need(None)),
    "next-need": _case(lambda session: session.next_need(1)),
    "previous-need": _case(lambda session: session.next_need(-1)),
    "share": share,
    "group": _row_key(lambda session, row, key: session.on_row(row, marks.group, int(key))),
    "next-in-group": next_in_group,
    "turn-needs": _case(lambda session: session.turn_needs()),
    "grade-up": _row(lambda session, row: session.on_row(row, marks.grade_step, 1)),
    "grade-down": _row(lambda session, row: session.on_row(row, marks.grade_step, -1)),
    "grade": _row_key(lambda session, row, key: session.on_row(row, marks.grade, int(key))),
    "rate-mode": rate_mode,
    "shorten": _row(lambda session, row: session.on_row(row, marks.shorten)),
    "lengthen": _row(lambda session, row: session.on_row(row, marks.lengthen)),
    "reanchor": _row(lambda session, row: session.on_row(row, marks.reanchor)),
    "supports": windows.supports,
    "snippets": windows.snippets,
    "tools": windows.tools,
    "confirm": confirm,
    "unanswerable": _case(lambda session: session.do(edits.unanswerable)),
    "answerable": _case(lambda session: session.do(edits.answerable)),
    "skip": _case(lambda session: session.skip()),
    "flag": _case(lambda session: session.do(edits.flag)),
    "note": windows.note,
    "undo": undo,
    "redo": redo,
    "read-on": read_on,
    "go-to-row": go_to_row,
    "digits-look": digits_look,
    "down": _down,
    "up": _up,
    "first": lambda screen: _jump(screen, 0),
    "top": lambda screen, key: _jump(screen, 0),
    "last": lambda screen: _jump(screen, END),
    "page-down": lambda screen: _page(screen, 1),
    "page-up": lambda screen: _page(screen, -1),
    "line-down": lambda screen: screen.texts["text"].scroll_by(1),
    "line-up": lambda screen: screen.texts["text"].scroll_by(-1),
    "next-question": lambda screen: screen.session.queue.next(),
    "previous-question": lambda screen: screen.session.queue.previous(),
    "back": lambda screen: screen.session.queue.back(),
    "next-marked": lambda screen: _seek_marked(screen, 1),
    "previous-marked": lambda screen: _seek_marked(screen, -1),
    "next-pane": lambda screen: _turn_pane(screen, 1),
    "previous-pane": lambda screen: _turn_pane(screen, -1),
    "filter": windows.filter_pane,
    "next-hit": lambda screen: _hit(screen, 1),
    "previous-hit": lambda screen: _hit(screen, -1),
    "clear": clear,
    "probe": windows.probe,
    "add-path": windows.add_path,
    "refetch": refetch,
    "edit": windows.edit,
    "edit-text": windows.edit_text,
    "new": windows.new,
    "copy": windows.copy,
    "delete": windows.delete,
    "copy-anchor": copy_anchor,
    "copy-text": copy_text,
    "toggle-questions": toggle_questions,
    "zoom": zoom,
    "conversation": conversation,
    "info": info,
    "order": row_order,
    "blind": blind,
    "theme": theme,
    "help": windows.help_page,
    "palette": windows.palette,
    "save": save,
    "suspend": lambda screen: screen.suspend(),
    "redraw": redraw,
    "leave": leave,
    "quit": lambda screen: screen.app.exit(),
    "interrupt": interrupt,
}
"""Function of the main screen's actions, by action id."""
