"""The screen that the labelling happens on: what is drawn when, and which key does what.

`sync` is called after every action: it compares what the session says with what is shown, and
repaints the difference only. The actions themselves are the functions of `labeller.commands`,
handed in as a table by action id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from labeller import lines
from labeller.actions import actions_of, hint_parts, hints_of, needs_passages
from labeller.conversation import conversation_text
from labeller.fetching import prefetch
from labeller.last_view import present_view
from labeller.lines import Terms, holds, marks_in, why_no_chunks
from terminal import frame
from terminal.action_screen import ActionScreen
from terminal.actions import ActionRefused, Keymap
from terminal.lists import Bar, Line, LineList
from terminal.safe_text import SHOWN_LIMIT, DisplayText, cells, display, one_line
from terminal.text_pane import Mark, TextPane

if TYPE_CHECKING:
    from labeller.fetching import Fetcher
    from labeller.rows import ChunkRow
    from labeller.session import Session
    from labeller.store import LabelStore

WHOLE = 1 << 30

_BARS = ("side-top", "side-end", "top", "chunks-rule", "text-rule")

FIXED_LINES = 5
"""Header, two rules, status and hints: the rest is for question, needs, rows and text."""

FOLDED_LINES = 2
"""Of a conversation above the question, unless it is unfolded."""

SHORT = 16
"""Lines below which question and needs get one line each."""

_LIST_MOVES = frozenset(("down", "up", "first", "top", "last", "clear", "range"))
"""Actions that look for a row: after reading on, the list has its lines again."""

Command = Callable[..., object]
"""Does one action on a `MainScreen`, its first argument; the second is the key of an action that
takes one (`Action.then`, the digits)."""


class MainScreen(ActionScreen[None], inherit_bindings=False):
    """Draws the session and turns keys into actions; shows the reason of a refused action.

    `commands` holds a function for each action of the table; `save` writes the set.
    """

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - the type is Textual's
        (0, "-tiny-x"),
        (40, "-narrow"),
        (60, "-stack"),
        (100, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-tiny-y"),
        (10, "-low"),
        (16, "-middle"),
        (32, "-tall"),
    ]

    def __init__(
        self,
        session: Session,
        store: LabelStore,
        source: Fetcher,
        *,
        look: frame.Look,
        keymap: Keymap,
        commands: Mapping[str, Command],
        save: Callable[[], None],
    ) -> None:
        super().__init__(actions_of("main"), hints_of("main"), look, keymap)
        self.session = session
        self.store = store
        self.source = source
        self.save = save
        self.anchors: set[tuple[str, str]] = set()  # of all chunks that have come
        self._commands = commands
        self._source_name = source.describe()
        self.rows: list[ChunkRow] = []
        self.unfolded = False  # all of the conversation is shown
        self.talk_ends = False  # the conversation's end has to come into view
        self.frozen = False  # a save is at work on the session in another thread
        self.pane = "chunks"
        self.words = ""  # filter of the chunk list
        self.zoomed = ""  # the pane that has the whole screen
        self.digits_look = False  # a digit shows its row first
        self.reading = False  # reads on from row to row: a long text may take the list's lines
        self.range_start: int | None = None
        self._shown_case: str | None = None
        self._shown_brief: object = None
        self._shown_text: object = None
        self._progress = session.queue.progress()
        self._visible: list[str] = []
        self._longest = self._id_width = 0
        self._texts_need = (0, 0)
        self._pattern: Terms = None
        self._previews: dict[str, DisplayText] = {}
        self._view: object = None
        self._heights: tuple[tuple[Widget, int | str], ...] | None = None
        self.held = 0  # keys that wait for the passages
        self.resumed_row = session.resumed_row  # until it is there, or a key was pressed
        self.rating = False
        self.last_action = ""
        self.last_words = ""  # what n and N look for
        if store.notices:
            self.say("; ".join(store.notices))

    def compose(self) -> ComposeResult:
        self.chunks = LineList(self._chunk_row, id="chunks")
        self.text = TextPane(id="text", reflow=True)
        self.talk = TextPane(id="conversation", hang=2)
        self.talk.display = False
        self.question = TextPane(id="question")
        self.state = TextPane(id="state", hang=2)
        self.texts = {
            "text": self.text,
            "conversation": self.talk,
            "question": self.question,
            "state": self.state,
        }
        self.questions = LineList(self._question_row, id="questions")
        self.questions.set_active(False)
        self.bars = {name: Bar(id=name) for name in _BARS}
        with Horizontal():
            with Vertical(id="side"):
                yield self.bars["side-top"]
                yield self.questions
                yield self.bars["side-end"]
            with Vertical(id="main"):
                yield self.bars["top"]
                yield self.talk
                yield self.question
                yield self.state
                yield self.bars["chunks-rule"]
                yield self.chunks
                yield self.bars["text-rule"]
                yield self.text
                yield self.end
        yield Bar(id="too-small")

    @property
    def row(self) -> ChunkRow | None:
        """The row under the cursor; None when there is none."""
        cursor = self.chunks.cursor
        return self.rows[cursor] if cursor < len(self.rows) else None

    # -- drawing

    def on_mount(self) -> None:
        small = display("too small: enlarge it, q quits")
        self.query_one("#too-small", Bar).show([(("warn", small),)])
        self.list_questions()
        self.sync()

    def redraw(self) -> None:
        """Draw every line again."""
        self._shown_brief = self._shown_text = None
        self._heights = None
        self.sync()
        self.chunks.refresh()
        self.questions.refresh()

    def show(self) -> None:
        self.sync()

    def sync(self) -> None:
        """Show the present state of the session; repaint only differences."""
        if self.frozen:
            return
        session = self.session
        if session.current != self._shown_case:
            self._new_case()
        self._show_rows(self._read_rows())
        self._show_top()
        self._fit_panes()
        if self.talk_ends and self._is_laid_out():
            self.talk_ends = False
            self.talk.scroll_by(WHOLE)
        self._show_text()
        if self._note_read():
            self._show_rows(self._read_rows())
            self._show_chunks_rule()
        brief = session.summary if session.current else None
        changed = brief != self._shown_brief
        if changed:
            # Progress counts all questions: too slow for every key, and unchanged by most.
            self._shown_brief = brief
            self._progress = session.queue.progress()
            self._show_side()
        self._show_header()
        self.show_end()
        self._remember()

    def _remember(self) -> None:
        """Have what is looked at kept, if that is another than before."""
        row = self.row
        view = present_view(self.session, row.chunk.key if row else self.resumed_row)
        if view != self._view:
            self._view = view
            self.store.remember(view)

    def _new_case(self) -> None:
        self._shown_case = self.session.current
        self._shown_brief = None
        self._previews.clear()
        self._pattern = frame.words_pattern(self.session.terms())
        self.words = ""
        self.range_start = None
        self.reading = False
        self.rows = []
        self.chunks.set_count(0)
        self._show_talk()
        prefetch(self.session, self.source)

    def _show_talk(self) -> None:
        """Show what was said before the question; no line where nothing was."""
        session, text, marks = self.session, DisplayText(""), list[Mark]()
        if session.current:
            said_before = session.messages_before()
            text, marks = conversation_text(said_before)
        self.talk.show(text, marks)
        self.talk_ends = self.talk.display = bool(text)
        if self.pane == "conversation" and not text:
            self.show_pane("chunks")

    def _read_rows(self) -> list[ChunkRow]:
        rows = self.session.rows()
        words = self.words.casefold().split()
        return [row for row in rows if holds(row, words)] if words else rows

    def _show_rows(self, rows: list[ChunkRow]) -> None:
        before, self.rows = self.rows, rows
        if len(before) != len(rows):
            paths = (lines.path_of(row.chunk.rel_path, row.chunk.heading_path) for row in rows)
            self._longest = max(map(cells, paths), default=0)
            self.chunks.set_count(len(rows), self._resumed(rows))
            self._texts_need = self._lines_of(rows)
        else:
            changed = [i for i, row in enumerate(rows) if row != before[i]]
            self.chunks.refresh_rows(changed)

    def _resumed(self, rows: list[ChunkRow]) -> int:
        """Where the cursor belongs now that rows have come: where the last session left it."""
        for index, row in enumerate(rows):
            if self.resumed_row and row.chunk.key == self.resumed_row:
                self.resumed_row = ""
                return index
        return self.chunks.cursor

    def _show_text(self) -> None:
        row = self.row
        if row is None:
            self._shown_text = None
            why = why_no_chunks(self.session, self.words, self._source_name)
            self.text.show(display(why))
            self.bars["text-rule"].show([self._text_rule("no chunk")])
            return
        picked = [s.snippets for s in self.session.supports() if row.label in s.rows]
        zoomed = self.zoomed == "text"
        shown = (row.chunk, picked, row.auto, zoomed, self._pattern)
        if shown != self._shown_text:
            self._shown_text = shown
            text = display(row.chunk.text, WHOLE if zoomed else SHOWN_LIMIT)
            self.text.show(text, marks_in(self.session, row, text, self._pattern))
        self.show_text_rule()

    def _note_read(self) -> bool:
        """Let the row count as read once its last line is in view; whether that is new."""
        row = self.row
        if row is None or row.seen or not self.text.display or self.text.size.height <= 0:
            return False
        if not self.zoomed and not self._is_laid_out():
            return False  # the text has more lines for a moment than it will have
        whole = self.zoomed == "text" or len(row.chunk.text) <= SHOWN_LIMIT
        if not whole or self.text.bottom < self.text.line_count:
            return False
        self.session.see(row.number)
        return True

    def scroll_text(self, by: int, pane: str = "text") -> bool:
        """Scroll a text by so many lines; False when it is at its end."""
        return self.texts[pane].scroll_by(by)

    def show_text_rule(self) -> None:
        """Draw the line above the text: row, path, and which lines of it are in view."""
        row = self.row
        if row is None:
            return
        span = f"lines {self.text.top + 1}-{self.text.bottom} of {self.text.line_count}"
        if self.zoomed != "text" and len(row.chunk.text) > SHOWN_LIMIT:
            span += "; cut, z shows all"
        width, focused = self.text.size.width, self.pane == "text"
        self.bars["text-rule"].show([lines.text_rule(row, self.look, width, span, focused=focused)])

    def _is_laid_out(self) -> bool:
        """Have the panes the heights that were given to them last?"""
        heights = self._heights or ()
        return bool(heights) and all(
            widget.size.height == lines_ for widget, lines_ in heights if isinstance(lines_, int)
        )

    def _text_rule(self, left: str, right: str = "") -> Line:
        focused = self.pane == "text"
        return frame.rule(self.look, self.text.size.width, left, right, focused=focused)

    def _show_top(self) -> None:
        """Draw question and needs; the one that has the focus stands out."""
        question, state = DisplayText(""), DisplayText("")
        marks: list[Mark] = []
        if self.session.current:
            question = lines.question_text(self.session)
            state, marks = lines.state_text(self.session)
        style = "focus" if self.pane == "question" else "term"
        self.question.show(question, [(0, len(question), style)])
        if self.pane == "state":
            marks = [(0, len(state), "focus")]
        if self.state.show(state, marks):
            opened = [mark for mark in marks if mark[2] == "marked"]
            if opened:
                self.state.reveal(*opened[0][:2])
        self._show_chunks_rule()

    def _show_chunks_rule(self) -> None:
        width = self.bars["chunks-rule"].size.width
        if width <= 0 or not self.session.current:
            self.bars["chunks-rule"].show([])
            return
        focused = self.pane == "chunks"
        rule = lines.chunks_rule(
            self.session, self.rows, self.look, width, self.words, focused=focused
        )
        heads = [lines.score_heading(width)] if self.look.info else []
        self.bars["chunks-rule"].show([rule, *heads])

    def _show_header(self) -> None:
        width = self.bars["top"].size.width
        if width <= 0:
            return
        session = self.session
        saved = lines.saved_span(self.store.problem, self.store.saved_at, session.ledger.dirty)
        waiting = session.fetching
        header = lines.header(session, self._progress, self.look, width, saved, waiting=waiting)
        self.bars["top"].show([header])

    # -- room for each pane

    def _lines_of(self, rows: list[ChunkRow]) -> tuple[int, int]:
        """The lines that the longest text needs, and the width that this holds for."""
        width = min(self.text.size.width - 2, 100)
        return max((lines.lines_needed(r.chunk.text, width) for r in rows), default=0), width

    def _fit_panes(self) -> None:
        """Give question, needs and rows the lines that they need; the text takes the rest."""
        height, width = self.size.height, self.question.size.width
        if width <= 0 or self.zoomed:
            return
        most = 1 if height < SHORT else max(2, height // 10)
        question = max(1, min(most, self.question.line_count))
        state = max(1, min(most, self.state.line_count))
        heads = 1 if self.look.info else 0
        talk = self._lines_of_talk(height)
        room = height - FIXED_LINES - heads - talk - question - state
        needed, at = self._texts_need
        if at != min(self.text.size.width - 2, 100):
            needed, _ = self._texts_need = self._lines_of(self.rows)
        count = max(1, len(self.rows))
        least = min(count, max(3, room // 3))
        if self.reading and self.row is not None:
            least = max(1, min(least, room - self._lines_of([self.row])[0]))
        rows = max(least, min(count, room - needed))
        heights: tuple[tuple[Widget, int | str], ...] = (
            *([(self.talk, talk)] if talk else []),
            (self.question, question),
            (self.state, state),
            (self.bars["chunks-rule"], 1 + heads),
            (self.chunks, rows if self.text.display else "1fr"),
        )
        if heights != self._heights:
            self._heights = heights
            for widget, lines_ in heights:
                widget.styles.height = lines_
            self.call_after_refresh(self.sync)

    def _lines_of_talk(self, height: int) -> int:
        """The lines that the conversation gets: folded two, unfolded up to half of the screen."""
        if not self.talk.display:
            return 0
        most = 1 if height < SHORT else FOLDED_LINES
        return max(1, min(height // 2 if self.unfolded else most, self.talk.line_count))

    def _show_side(self) -> None:
        if self._shown_case in self._visible:
            index = self._visible.index(self._shown_case)
            if self.pane != "questions":
                self.questions.move_to(index)
            self.questions.refresh_rows([index])
        queue, width = self.session.queue, self.questions.size.width
        words = f"filter: {one_line(queue.filter, 20)}" if queue.filter else "/ filter"
        title, focused = f"questions, {queue.order} order", self.pane == "questions"
        head = frame.rule(self.look, width, title, words, focused=focused)
        self.bars["side-top"].show([head])
        legend = one_line(lines.LEGEND)
        half = legend.index("s later")
        halves = DisplayText(legend[:half]), DisplayText(legend[half:])
        self.bars["side-end"].show([(("dim", text),) for text in halves])

    def list_questions(self) -> None:
        """Read the list of questions again, after its order, filter or members changed."""
        self._visible = list(self.session.queue.visible)
        self._id_width = max(map(len, self._visible), default=0)
        current = self.session.current
        cursor = self._visible.index(current) if current in self._visible else 0
        self.questions.set_count(len(self._visible), cursor)
        self._shown_brief = None

    def _chunk_row(self, index: int, width: int) -> Line:
        row = self.rows[index]
        key = row.chunk.key
        shown = self._previews.get(key)
        if shown is None:
            shown = self._previews[key] = lines.preview(row.chunk.text, self._pattern)
        sign = " "
        if index == self.chunks.cursor:
            sign = ">"
        elif self.range_start is not None:
            low, high = sorted((self.range_start, self.chunks.cursor))
            sign = ":" if low <= index <= high else " "
        return lines.chunk_line(row, width, self.look, shown, self._longest, sign=sign)

    def _question_row(self, index: int, width: int) -> Line:
        case_id = self._visible[index]
        if self.frozen:
            return (("dim", one_line(case_id)),)
        sign = "*" if case_id == self._shown_case else " "
        if index == self.questions.cursor:
            sign = ">"
        brief = self.session.queue.summaries[case_id]
        return lines.question_row(brief, width, self._id_width, sign=sign)

    def show_pane(self, name: str) -> None:
        """Let keys go to a pane: chunks, text, questions, or the question or needs above."""
        self.pane = name
        self.chunks.set_active(name == "chunks")
        self.questions.set_active(name == "questions")
        self._show_top()
        self._show_text()
        self._show_side()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.call_after_refresh(self.sync)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.call_after_refresh(self.sync)

    # -- keys and actions

    def need_row(self) -> ChunkRow:
        """The row under the cursor; refuses when there is none."""
        row = self.row
        if row is None:
            raise ActionRefused("no passage here; p searches for one, P adds a support by path")
        return row

    def perform(self, name: str, key: str = "") -> None:
        """Do the action `name` of this screen; `key` is its digit or letter, if it takes one."""
        action = self.actions[name]
        if action.then and not key:
            self.pending = action
            self.show_end()
            return
        self._message = ("row", DisplayText(""))
        self.resumed_row = ""
        self.reading = self.reading and name not in _LIST_MOVES
        if not self.frozen:
            self._note_read()  # of a layout that has settled since the last key
        command = self._commands[name]
        try:
            if self.session.fetching and needs_passages(action, self.pane):
                raise ActionRefused("the passages are not here yet")
            command(self, key) if key else command(self)
        except ActionRefused as refusal:
            self.say(str(refusal), "warn")
        self.last_action = name
        self.sync()

    def take_key(self, key: str, character: str) -> bool:
        """Perform the action of a key press: second key of an action, grade, or action."""
        action = self.pending
        if action is not None:
            self.pending = None
            if character and character in action.then:
                self.perform(action.id, character)
            elif key == "escape":
                self.say("")
            else:
                keys = _choices(action.then)
                self.say(f"{self.key_name(action)} takes {keys}; nothing was done", "warn")
            return True
        if self._is_tiny() and key in self._keys and self._keys[key][0].changes:
            return True  # nothing is shown: no label may be given
        if self.rating and character and character in "0123":
            self.perform("grade", character)
            self.chunks.move_to(self.chunks.cursor + 1)
            self.sync()
            return True
        if key not in self._keys:
            return False
        action, index = self._keys[key]
        # The n-th key of `mark-row` is for the n-th row.
        self.perform(action.id, str(index + 1) if action.id == "mark-row" else "")
        return True

    def needs_passages(self, key: str, character: str) -> bool:
        """Whether a key press means an action about passages."""
        if self.rating and character and character in "0123":
            return True
        known = self.pending is None and key in self._keys
        return known and needs_passages(self._keys[key][0], self.pane)

    def acts_at_once(self, key: str) -> bool:
        """May a key overtake those that wait: to leave, or to fetch the passages again?"""
        return key in self._keys and self._keys[key][0].id in ("interrupt", "refetch")

    def _is_tiny(self) -> bool:
        return self.has_class("-tiny-x") or self.has_class("-tiny-y")

    def attempt(self, change: Callable[[], str | None]) -> None:
        """Do something after a window closed: its message or refusal goes to the status line."""
        try:
            message = change()
        except ActionRefused as refusal:
            self.say(str(refusal), "warn")
        else:
            if message:
                self.say(message)
        self.sync()

    def open_question(self, index: int) -> None:
        """Open the question on row `index` of the question list, and look at its chunks."""
        if index < len(self._visible):
            self.session.queue.goto(self._visible[index])
            self.remove_class("-side-on")
            self.show_pane("chunks")

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        if event.list is self.chunks and not self.frozen:
            self.show_pane("chunks")
            self.sync()

    def on_line_list_clicked(self, event: LineList.Clicked) -> None:
        if self.frozen or self.held:  # the keys that wait are for the question that is open
            return
        if event.list is self.questions:
            self.open_question(event.index)
            self.sync()
        elif 1 <= event.x <= 4:
            self.perform("mark")

    # -- status line and hints

    def waits_for(self) -> str:
        if self.held:
            return lines.held_keys(self.held, self.session.problem)
        if self.pending is not None:
            return f"{self.key_name(self.pending)}_ ({_choices(self.pending.then)}, Esc)"
        if self.rating:
            return "RATE: 0-3 grades, Esc leaves"
        return "RANGE: move, Space marks, Esc leaves" if self.range_start is not None else ""

    def hint_parts(self) -> Iterable[tuple[str, str]]:
        return hint_parts("main", self.keymap)


def _choices(keys: str) -> str:
    """The keys that may follow, in few characters: `1-9 0 '`."""
    if keys.startswith("1234567890"):
        return " ".join(("1-9", *keys[9:]))
    return f"{keys[0]}-{keys[-1]}" if keys[1:] else keys
