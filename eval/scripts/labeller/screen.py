"""The screen that the labelling happens on: its panes, what is drawn when, and the way of a key.

`sync` is called after every action: it compares what the session says with what is shown, and
repaints the difference only. An action is a function of the pane that it is about, or of
`CaseKeys`; a text that it returns goes to the status line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from labeller import lines
from labeller.actions import actions_of, added_actions, hint_parts, hints_of, needs_passages
from labeller.case_keys import CaseKeys
from labeller.fetching import Fetcher, prefetch
from labeller.panes import Panes, QuestionList
from labeller.row_list import PassageText, RowList
from labeller.session import Session, present_view
from labeller.store import LabelStore
from labeller.windows import help_screen
from terminal import frame
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused, Keymap
from terminal.lists import Bar, LineList
from terminal.safe_text import DisplayText, display
from terminal.windows import Palette

WIDTHS = [(0, "-tiny-x"), (40, "-narrow"), (60, "-stack"), (100, "-wide")]
HEIGHTS = [(0, "-tiny-y"), (10, "-low"), (16, "-middle"), (32, "-tall")]
"""From which size on the screen is of a class of labeller.tcss."""

_LIST_MOVES = frozenset(("down", "up", "first", "top", "last", "clear", "range"))
"""Actions that look for a row: after reading on, the list has its lines again."""


class MainScreen(ActionScreen[None], inherit_bindings=False):
    """Draws the session and turns keys into actions, and says why one is refused."""

    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(
        self,
        session: Session,
        store: LabelStore,
        source: Fetcher,
        *,
        look: frame.Look,
        keymap: Keymap,
        save: Callable[[], None],
    ) -> None:
        super().__init__(actions_of("main"), hints_of("main"), look, keymap)
        self.session, self.store, self.source = session, store, source
        self._save = save
        self.chunks = RowList(self, session)
        self.text = PassageText(self, session, self.chunks)
        self.questions = QuestionList(self, session.queue)
        self.panes = Panes(self, session, self.chunks, self.text, self.questions)
        self.cases = CaseKeys(self, session, store, source, self.chunks, self.questions)
        self._top = Bar(id="top")
        self.held = 0  # keys that wait for the passages
        self._shown_case: str | None = None
        self._view: object = None
        self._last_action = ""
        self._acts: Acts = {}
        if store.notices:
            self.say("; ".join(store.notices))

    def compose(self) -> ComposeResult:
        panes, rows, text, questions = self.panes, self.chunks, self.text, self.questions
        with Horizontal():
            with Vertical(id="side"):
                yield from (questions.title, questions, questions.legend)
            with Vertical(id="main"):
                yield from (self._top, panes.talk, panes.question, panes.state)
                yield from (rows.rule, rows, text.rule, text, self.end)
        yield Bar(id="too-small")

    def on_mount(self) -> None:
        small = display("too small: enlarge it, q quits")
        self.query_one("#too-small", Bar).show([(("warn", small),)])
        self.questions.load()
        self.sync()

    def redraw(self) -> None:
        """Draw every line again."""
        self.text.shown = None
        self.panes.heights = ()
        self.sync()
        self.chunks.refresh()
        self.questions.refresh()

    def show(self) -> None:
        self.sync()

    @property
    def frozen(self) -> bool:
        """A save is at work on the session in another thread: nothing here looks at it."""
        return self.questions.frozen

    def sync(self) -> None:
        """Show the present state of the session; repaint only differences."""
        if self.frozen:
            return
        session, panes = self.session, self.panes
        if session.current != self._shown_case:
            self._shown_case = session.current
            self.chunks.new_case()
            panes.new_case()
            prefetch(session, self.source)
        other_rows = self.chunks.read()
        panes.show_texts()
        self.chunks.show_rule(focused=panes.focus == "chunks")
        panes.fit(other_rows=other_rows)
        panes.show_end_of_talk()
        why = lines.why_no_chunks(session, self.chunks.words, self.source.describe())
        self.text.show_row(why, focused=panes.focus == "text")
        if self._note_read():
            self.chunks.read()
            self.chunks.show_rule(focused=panes.focus == "chunks")
        self.questions.show_current(focused=panes.focus == "questions")
        if (width := self._top.size.width) > 0:
            saved = lines.saved_span(self.store.problem, self.store.saved_at, session.ledger.dirty)
            self._top.show([lines.header(session, self.look, width, saved)])
        self.show_end()
        row = self.chunks.row
        view = present_view(session, row.chunk.key if row else self.chunks.resumed_row)
        if view != self._view:
            self._view = view
            self.store.remember(view)

    def _note_read(self) -> bool:
        """Let the row count as read once its last line is in view; whether that is new."""
        settled = self.panes.zoomed or self.panes.laid_out  # else it has more lines for a moment
        row = self.chunks.row if self.text.is_read() and settled else None
        if row is not None:
            self.session.see(row.number)
        return row is not None

    def on_mouse_scroll_down(self, event: events.MouseEvent) -> None:
        self.call_after_refresh(self.sync)

    on_mouse_scroll_up = on_mouse_scroll_down

    def acts(self) -> Acts:
        if not self._acts:
            self._acts = {
                **self.chunks.acts(),
                **self.panes.acts(),
                **self.cases.acts(),
                "confirm": self._confirm,
                "theme": self.turn_theme,
                "help": lambda: self.app.push_screen(help_screen("main", self.keymap)),
                "palette": lambda: self.app.push_screen(Palette(id="--command-palette")),
                "save": self._write,
                "suspend": self.suspend,
                "redraw": self.redraw_all,
                "leave": lambda: self.panes.zoom() if self.panes.zoomed else self.app.exit(),
                "quit": self.app.exit,
                "interrupt": self._interrupt,
                **{each.action.id: partial(each.run, self) for each in added_actions()},
            }
        return self._acts

    def perform(self, name: str, key: str = "") -> None:
        """Do the action `name` of this screen; `key` is its digit or letter, if it takes one."""
        action = self.actions[name]
        if action.then and not key:
            self.pending = action
            self.show_end()
            return
        self._message = ("row", DisplayText(""))
        self.chunks.resumed_row = ""
        self.panes.reading = self.panes.reading and name not in _LIST_MOVES
        if not self.frozen:
            self._note_read()  # of a layout that has settled since the last key
        try:
            if self.session.fetching and needs_passages(action, self.panes.focus):
                raise ActionRefused("the passages are not here yet")
            message = self.acts()[name](*([key] if key else []))
            if isinstance(message, str):
                self.say(message)
        except ActionRefused as refusal:
            self.say(str(refusal), "warn")
        self._last_action = name
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
        is_tiny = self.has_class("-tiny-x") or self.has_class("-tiny-y")
        if is_tiny and key in self._keys and self._keys[key][0].changes:
            return True  # nothing is shown: no label may be given
        if self._is_grade(character):
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

    def _is_grade(self, character: str) -> bool:
        return self.chunks.rating and bool(character) and character in "0123"

    def needs_passages(self, key: str, character: str) -> bool:
        """Whether a key press means an action about passages."""
        if self._is_grade(character):
            return True
        known = self.pending is None and key in self._keys
        return known and needs_passages(self._keys[key][0], self.panes.focus)

    def acts_at_once(self, key: str) -> bool:
        """May a key overtake those that wait: to leave, or to fetch the passages again?"""
        return key in self._keys and self._keys[key][0].id in ("interrupt", "refetch")

    def open_question(self, index: int) -> None:
        """Open the question on row `index` of the question list, and look at its chunks."""
        if self.questions.open(index):
            self.remove_class("-side-on")
            self.panes.show("chunks")

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        if event.list is self.chunks and not self.frozen:
            self.panes.show("chunks")
            self.sync()

    def on_line_list_clicked(self, event: LineList.Clicked) -> None:
        if self.frozen or self.held:  # the keys that wait are for the question that is open
            return
        if event.list is self.questions:
            self.open_question(event.index)
            self.sync()
        elif 1 <= event.x <= 4:
            self.perform("mark")

    def _confirm(self) -> str | None:
        """Confirm the case; in the list of questions, open the one there."""
        if self.panes.focus == "questions":
            self.open_question(self.questions.cursor)
            return None
        return self.cases.confirm()

    def _write(self) -> str:
        self._save()
        return "saving …"

    def _interrupt(self) -> str | None:
        """Leave at the second Ctrl+C in a row."""
        if self._last_action != "interrupt":
            return "Ctrl+c again leaves; q leaves too; y and Y copy"
        self.app.exit()
        return None

    def waits_for(self) -> str:
        if self.held:
            return lines.held_keys(self.held, self.session.problem)
        if self.pending is not None:
            return f"{self.key_name(self.pending)}_ ({_choices(self.pending.then)}, Esc)"
        if self.chunks.rating:
            return "RATE: 0-3 grades, Esc leaves"
        range_open = self.chunks.range_start is not None
        return "RANGE: move, Space marks, Esc leaves" if range_open else ""

    def hint_parts(self) -> Iterable[tuple[str, str]]:
        return hint_parts("main", self.keymap)


def _choices(keys: str) -> str:
    """The keys that may follow, in few characters: `1-9 0 '`."""
    if keys.startswith("1234567890"):
        return " ".join(("1-9", *keys[9:]))
    return f"{keys[0]}-{keys[-1]}" if keys[1:] else keys
