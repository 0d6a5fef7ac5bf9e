"""The application: the main screen in this terminal, clean ends, a crash file without any text.

code = run(session)
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.app import STYLE_SHEET, StyleSheets, TerminalApp, check_theme
from terminal.frame import Look, cut, rule, words_pattern
from terminal.lists import Bar, Line, Span
from terminal.palette import ActionCommands
from terminal.safe_text import SHOWN_LIMIT, DisplayText, cells, display, fit, one_line, wrap
from terminal.text_pane import Mark, TextPane
from terminal.windows import LinePrompt, Palette, Window
from validation.claim_session import ClaimItem, ClaimSession, actions, help_text, hinted, words


class ClaimApp(TerminalApp, inherit_bindings=False):
    """Runs the screen. Labels are on disk when a key is done, so it may end at any moment."""

    TITLE = "label verdicts"
    CSS_PATH: ClassVar[StyleSheets] = [STYLE_SHEET, "verdicts.tcss"]
    FAILURE = (
        "The screen failed. Every label is in your label file; start it again to continue.\n"
        "{file} says where it failed (without answers or passages)."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "quit", show=False, priority=True)
    ]

    def __init__(
        self, session: ClaimSession, *, look: Look | None = None, theme: str | None = None
    ):
        super().__init__(theme)
        self.main = _ClaimScreen(session, look or Look())

    def on_mount(self) -> None:
        self.end_with_terminal()
        self.push_screen(self.main)
        self.call_after_refresh(self.main.open_goal)

    def action_interrupt(self) -> None:
        self.exit(return_code=130)


def run(session: ClaimSession, *, ascii_only: bool = False, theme: str | None = None) -> int:
    """Label in this terminal until the user leaves. Returns the exit code.

    Raises ValueError for an unknown theme.
    """
    check_theme(theme)
    app = ClaimApp(session, look=Look(ascii=ascii_only), theme=theme)
    app.run(mouse=True)
    return app.return_code or 0


QUESTION_LINES = 2

CLAIM_LINES = 3
"""Lines of a claim; a longer one takes up to a third of the screen."""

_WIDE = 100
"""Columns from which on the progress is shown in full."""

OTHER_LINES = 13
"""Lines that all but the claim need at least (verdicts.tcss)."""


def _header(session: ClaimSession, width: int) -> Line:
    """Place, how many are done, a bar where there is room, who labels.

    Whether the judge is hidden is always said: what is left out for it is the count of those that
    cannot be told, then the end of the name.
    """
    total, done = len(session.items), session.count()
    size = 20 if width >= 110 else 0
    filled = size * done // total
    place = display(f" {session.kind.noun} {session.index + 1}/{total} ")
    counts = [f" | {done} done, {session.count('cannot_tell')} cannot tell", f" | {done} done"]
    judge = display(f" | judge {'shown' if session.verdict_shown else 'hidden'}")
    name = one_line(session.item.name, 30 if width >= 100 else 20)
    room = width - cells(place) - cells(judge) - 1  # the end of what is cut behind it
    count = next((text for text in counts if cells(name) + len(text) <= room), counts[-1])
    spans: list[Span] = [
        ("term", place),
        ("term", fit(name, min(cells(name), max(0, room - len(count))))),
        ("row", display(count)),
        ("dim", display(f" |{'#' * filled}{'-' * (size - filled)}" if size else "")),
        ("key", judge),
        ("row", display(f" | {one_line(session.annotator, 20)}")),
    ]
    return cut(spans, width)


def _text_lines(text: str, width: int, height: int, style: str, least: int = 0) -> list[Line]:
    """A text on at most ``height`` lines, ``…`` where it is cut; blank ones up to ``least``."""
    shown = one_line(text)
    breaks = wrap(shown, max(1, width - 2))
    lines = [DisplayText(shown[start:end]) for start, end in breaks[:height]]
    if len(breaks) > height and lines:
        lines[-1] = DisplayText(fit(DisplayText(lines[-1] + " " * width), width - 3).rstrip(" …"))
        lines[-1] = DisplayText(lines[-1] + "…")
    spans: list[Line] = [((style, DisplayText(f" {line}")),) for line in lines]
    return spans + [()] * (least - len(spans))


class _ClaimScreen(ActionScreen[None], inherit_bindings=False):
    """Shows one claim and takes the keys of `claim_session.actions`."""

    def __init__(self, session: ClaimSession, look: Look) -> None:
        super().__init__(actions(session.kind), hinted(session.kind), look, end="v-end")
        self.session = session
        self.passage = 0
        self._shown = ""
        self._claim_lines = CLAIM_LINES
        names = ("v-top", "v-answer-rule", "v-claim", "v-passage-rule")
        self.bars = {name: Bar(id=name) for name in names}
        self.answer = TextPane(id="v-answer", reflow=True)
        self.text = TextPane(id="v-text", reflow=True)
        self._told_no = False
        self._key = ""
        self.set_class(session.kind.noun == "pair", "-pair")

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.bars["v-top"]
            yield self.bars["v-answer-rule"]
            yield self.answer
            yield self.bars["v-claim"]
            yield self.bars["v-passage-rule"]
            yield self.text
            yield self.end

    # -- drawing -------------------------------------------------------------------------------

    def show(self) -> None:
        """Draw the claim of the session; a new one begins at its best window."""
        session, item, width = self.session, self.session.item, self.size.width
        new = self._shown != item.key
        if new:
            self._shown = item.key
            self.passage = item.best
        question = _text_lines(item.question, width, QUESTION_LINES, "row", QUESTION_LINES)
        self.bars["v-top"].show([_header(session, width), *question])
        progress = session.progress(short=width < _WIDE)
        self.bars["v-answer-rule"].show([rule(self.look, width, session.kind.upper, progress)])
        self._show_answer(item, new)
        state = words(session.label).upper()
        most = max(1, min(self.size.height // 3, self.size.height - OTHER_LINES))
        claim = _text_lines(item.claim, width, most, "term", min(CLAIM_LINES, most))
        head = rule(self.look, width, *self._claim_head(state, width), focused=True)
        self.bars["v-claim"].show([head, *claim])
        if len(claim) != self._claim_lines:
            self._claim_lines = len(claim)
            self.bars["v-claim"].styles.height = 1 + len(claim)
            self._shown = ""  # the panes have another height now: show the claim anew
            self.call_after_refresh(self.redraw)
            return
        self._show_passage(item, new)

    def _claim_head(self, state: str, width: int) -> tuple[str, str]:
        """The words at both ends of the rule above the claim: its note, its label and flag."""
        noted, noun = self.session.noted, self.session.kind.title or self.session.kind.noun
        state += ", FLAGGED" * noted.flag
        if not noted.note:
            return noun, state
        room = width - len(noun) - len(state) - 18  # dashes, spaces, the word note
        return f"{noun}, note: {fit(one_line(noted.note), max(8, room)).rstrip()}", state

    def _show_answer(self, item: ClaimItem, new: bool) -> None:
        span = item.span
        limit = max(SHOWN_LIMIT, span[1] + 4096) if span else SHOWN_LIMIT
        self.answer.show(display(item.answer, limit), [] if span is None else [(*span, "term")])
        if new:
            self.answer.scroll_by(-self.answer.top)
            if span is not None:
                self.answer.reveal(*span)

    def _show_passage(self, item: ClaimItem, new: bool) -> None:
        width, total, kind = self.size.width, len(item.passages), self.session.kind
        if not total:
            self.bars["v-passage-rule"].show([rule(self.look, width, f"no {kind.lower}")])
            self.text.show(display(kind.none))
            return
        passage = item.passages[self.passage]
        best = "best window" if self.passage == item.best and passage.window else ""
        left = f"{kind.lower} {self.passage + 1} of {total} "
        room = width - len(left) - len(best) - 9  # dashes and spaces around both
        left += fit(one_line(passage.title), room).rstrip()
        self.bars["v-passage-rule"].show([rule(self.look, width, left, best)])
        limit = max(SHOWN_LIMIT, passage.window[1] + 4096) if passage.window else SHOWN_LIMIT
        shown = display(passage.text, limit)
        marks: list[Mark] = [(*passage.window, "marked")] if passage.window else []
        pattern = words_pattern(item.words)
        if pattern is not None:
            marks += [(*match.span(), "term") for match in pattern.finditer(shown)]
        self.text.show(shown, marks)
        if new:
            self._to_window()

    def _to_window(self) -> None:
        """Bring the marked window of the passage to the top, a line before it in view."""
        self.text.scroll_by(-self.text.top)
        if self.text.next_mark("marked", 1):
            self.text.scroll_by(-1)

    def open_goal(self) -> None:
        """Say before the first label what can be reached, in a window of its own."""
        opening = self.session.goal.opening
        if opening and not self.session.count():
            self.app.push_screen(_ReadingWindow(f"{opening}\n\nPress any key to continue."))

    # -- keys ----------------------------------------------------------------------------------

    def acts(self) -> Acts:
        page = max(1, self.text.size.height - 1)
        labels: Acts = {
            f"label-{number}": partial(self._decide, label)
            for number, label in enumerate(self.session.kind.labels, 1)
        }
        return {
            **labels,
            "undo": self.undo,
            "redo": self.redo,
            "next-passage": lambda: self._turn(1),
            "previous-passage": lambda: self._turn(-1),
            "next": lambda: self._move(1),
            "previous": lambda: self._move(-1),
            "open": self.goto_open,
            "best": self.show_best,
            "down": lambda: self.text.scroll_by(1),
            "up": lambda: self.text.scroll_by(-1),
            "page-down": lambda: self.text.scroll_by(page),
            "page-up": lambda: self.text.scroll_by(-page),
            "answer-down": lambda: self.answer.scroll_by(1),
            "answer-up": lambda: self.answer.scroll_by(-1),
            "verdict": self.show_verdict,
            "later": self.put_off,
            "note": self.ask_note,
            "flag": lambda: self.say(self.session.turn_flag()),
            "read-on": self.read_on,
            "first": lambda: self.text.scroll_by(-self.text.line_count),
            "top": lambda: self.text.scroll_by(-self.text.line_count),
            "last": lambda: self.text.scroll_by(self.text.line_count),
            "search": lambda: self.ask_search(self.text),
            "next-hit": lambda: self.next_hit(self.text, 1),
            "previous-hit": lambda: self.next_hit(self.text, -1),
            "zoom": lambda: self.toggle_class("-zoomed"),
            "copy-claim": lambda: self.copy_out(self.session.item.claim, self.session.kind.noun),
            "help": lambda: self.app.push_screen(_ReadingWindow(help_text(self.session.kind))),
            "palette": lambda: self.app.push_screen(Palette(providers=[ActionCommands])),
            "suspend": self.suspend,
            "redraw": self.redraw_all,
            "leave": self.leave,
            "quit": lambda: self.app.exit(),
        }

    def take_key(self, key: str, character: str) -> bool:
        self._key = key
        return super().take_key(key, character)

    def leave(self) -> None:
        """Leave; Esc asks first, for it may be one Esc too many."""
        if self._key != "escape":
            self.app.exit()
        elif self.has_class("-zoomed"):
            self.remove_class("-zoomed")
        else:
            self.ask_to_leave()

    def put_off(self) -> None:
        """Go on to the next one; this one comes after all others."""
        name = self.session.item.name
        self.session.put_off()
        self.session.goto_open()
        self.say(f"later: {name}")

    def read_on(self) -> None:
        """A page of the text down; at its end the next passage."""
        if not self.text.scroll_by(max(1, self.text.size.height - 1)):
            self._turn(1)

    def perform(self, name: str) -> None:
        """Do the action `name`, and draw what came of it."""
        super().perform(name)
        self.redraw()

    def _decide(self, label: str) -> None:
        kind, name = self.session.kind, self.session.item.name
        self.session.decide(label)
        message = f"{words(label)}: {name}"
        if self._key == "n" and not self._told_no:
            self._told_no = True
            message = f"{words(label)} (u undoes): {name}; l is the next {kind.noun}"
        if not self.session.goto_open():
            message += f"; every {kind.noun} is labelled: q leaves, l and h go back over them"
        self.say(message, "good")

    def _move(self, by: int) -> None:
        if not self.session.move(by):
            raise ActionRefused(
                f"that is the {'last' if by > 0 else 'first'} {self.session.kind.noun}"
            )

    def goto_open(self) -> None:
        """Go to the next claim without a label."""
        if not self.session.goto_open():
            noun = self.session.kind.noun
            raise ActionRefused(f"every {noun} is labelled: q leaves, l and h look again")

    def ask_note(self) -> None:
        """Ask for a note on the claim."""

        def answered(text: str | None) -> None:
            if text is None or text.strip() == self.session.noted.note:
                return
            try:
                self.say(self.session.put_note(text))
            except ActionRefused as refusal:
                self.say(str(refusal), "warn")
            self.redraw()

        self.app.push_screen(LinePrompt("note:", self.session.noted.note), answered)

    def undo(self) -> None:
        """Take the last label, note or flag back."""
        self.session.undo()
        self.say(f"undone: {self.session.item.name}")

    def redo(self) -> None:
        """Do again what was undone."""
        self.session.redo()
        self.say(f"done again: {self.session.item.name}")

    def show_verdict(self) -> None:
        """Say what the judge said, of what is labelled."""
        self.session.reveal()
        self.say(f"judge: {self.session.item.verdict}", "key")

    def _turn(self, by: int) -> None:
        total = len(self.session.item.passages)
        if total < 2:
            raise ActionRefused(f"there is no other {self.session.kind.lower}")
        self.passage = (self.passage + by) % total
        self._show_passage(self.session.item, True)

    def show_best(self) -> None:
        """Show the window that holds most of the claim's words."""
        self.passage = self.session.item.best
        self._show_passage(self.session.item, True)


class _ReadingWindow(Window[None]):
    """A text to read; any key that does not scroll closes it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._pane = TextPane(id="help-text")

    def compose(self) -> ComposeResult:
        with Vertical(id="help"):
            yield self._pane

    def on_mount(self) -> None:
        self._pane.show(display(self._text), [(0, self._text.find(" "), "key")])

    def take_key(self, key: str, character: str) -> bool:
        """Scroll, or close."""
        page = max(1, self._pane.size.height - 1)
        by = {"j": 1, "down": 1, "k": -1, "up": -1, "pagedown": page, "space": page}
        by["pageup"] = -page
        if key in by:
            self._pane.scroll_by(by[key])
        elif key != "ctrl+c":
            self.dismiss(None)
        return key != "ctrl+c"
