"""The screen on which differences between two annotators are settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical

from extras.annotators.settling import Settling
from labeller import edits, lines
from labeller.fetching import prefetch
from labeller.windows import ModeScreen
from terminal import frame
from terminal.action_screen import Acts
from terminal.actions import ActionRefused, Keymap
from terminal.frame import Look
from terminal.lists import Bar, Line, LineList, Span
from terminal.safe_text import DisplayText, display, fit, one_line, wrap
from terminal.text_pane import TextPane

if TYPE_CHECKING:
    from extras.annotators.adjudication import Disagreement
    from labeller.screen import MainScreen
    from labeller.session import Session


def open_screen(screen: MainScreen) -> None:
    """Settle where two annotators differ, from the main screen. Refuses without a second one."""
    session, settling = screen.session, Settling(screen.session, screen.store)
    if not settling.others:
        raise ActionRefused("no second annotator: label with --annotator NAME first")

    def closed(message: str | None) -> None:
        screen.questions.load()
        screen.say(message or "")
        screen.sync()

    def fetch() -> None:
        prefetch(session, screen.source)

    screen.app.push_screen(
        AdjudicationScreen(session, settling, screen.look, screen.keymap, fetch), closed
    )


_CHOSEN, _WHERE, _PATH = 9, 5, 18
"""Cells of the choice and of the number of the row, and the fewest that a passage's path gets."""


class AdjudicationScreen(ModeScreen):
    """Shows both sides, one line a difference, with the text of its passage.

    The sides are A and B until everything of the question is chosen: who said it must not pull.
    """

    DECIDES = True
    CSS = "#mode-top { height: 4; } #mode-list { height: 1fr; max-height: 12; }"

    def __init__(
        self,
        session: Session,
        settling: Settling,
        look: Look,
        keymap: Keymap,
        fetch: Callable[[], None],
    ) -> None:
        super().__init__("adjudicate", look, keymap)
        self._fetch = fetch
        self._session = session
        self._settling = settling
        self._items: list[tuple[str, Disagreement]] = []
        self._case: str | None = None
        self._sides = ("A", "B")

    def compose(self) -> ComposeResult:
        self.top = Bar(id="mode-top")
        self.list = LineList(self._line, id="mode-list")
        self.text = TextPane(id="mode-text", reflow=True)
        with Vertical():
            yield self.top
            yield self.list
            yield self.text
            yield self.end

    def on_mount(self) -> None:
        if not self._differences():
            here = self._session.current
            self._advance()
            if self._session.current != here:
                self.say("the next question that differs")

    def _differences(self) -> list[tuple[str, Disagreement]]:
        """The differences of the current question, with everyone who labelled it."""
        items: list[tuple[str, Disagreement]] = []
        for name in self._settling.others:
            try:
                items += [(name, item) for item in self._settling.disagreements(name)]
            except ActionRefused:
                continue
        return items

    def show(self) -> None:
        session = self._session
        new = session.current != self._case
        self._case = session.current
        self._items = self._differences()
        cursor = 0 if new else self.list.cursor
        self.list.set_count(len(self._items), cursor)
        width = self.size.width
        left = f"adjudicate {one_line(session.current, 40)}"
        open_ = sum(not item.choice for _, item in self._items)
        right = f"{len(self._items)} differences, {open_} to settle"
        side = self._side(width)
        named = self._item() if self._items and not open_ else None
        names = (session.annotator, self._items[self.list.cursor][0]) if named else ("A", "B")
        self._sides = names
        heads = [fit(one_line(text), side - 1) + " " for text in names]
        columns = f"   {''.join(heads)}{'chosen':<{_CHOSEN}}{'row':<{_WHERE}}passage"
        needed = max(1, min(len(self._items), self.size.height // 3))
        self.list.styles.height = needed
        self.top.show(
            [
                frame.rule(self.look, width, left, right),
                *_question_lines(session, width, 2),
                (("dim", display(columns)),),
            ]
        )
        self.text.show(display(self._text_of(self._item())))

    def _side(self, width: int) -> int:
        """Cells for what a side says, need and grade whole: the passage's path has the rest."""
        longest = max(
            (len(text) for _, item in self._items for text in (item.a, item.b)), default=0
        )
        return max(12, min(longest + 1, (width - 3 - _CHOSEN - _WHERE - _PATH) // 2))

    def _text_of(self, item: Disagreement | None) -> str:
        """The text pane's lines about an item: its full path, and the known part of its chunk."""
        session = self._session
        if item is None:
            return "Nothing differs here. Enter goes to the next question that differs, Esc leaves."
        if item.kind == "state":
            return "Can the question be answered from the documents?"
        if item.row:
            text = item.row.chunk.text
        elif session.current in session.pool:
            text = "The passage is not among the rows here."
        else:
            text = session.problem or "fetching…"
        return f"{lines.path_of(item.rel_path, item.heading_path)}\n\n{text}"

    def _item(self) -> Disagreement | None:
        cursor = self.list.cursor
        return self._items[cursor][1] if cursor < len(self._items) else None

    def _line(self, index: int, width: int) -> Line:
        _, item = self._items[index]
        sign = ">" if index == self.list.cursor else " "
        label = item.row.label if item.row else "-"
        side = self._side(width)
        room = width - 3 - 2 * side - _CHOSEN - _WHERE
        where = lines.short_path(item.rel_path, item.heading_path, room) or one_line(item.text)
        a, b = self._sides
        names = {"a": a, "b": b, "union": "both", "neither": "neither", "": "?"}
        texts = ((item.a, side), (item.b, side), (names[item.choice], _CHOSEN), (label, _WHERE))
        cells = [fit(DisplayText(one_line(text)), size - 1) + " " for text, size in texts]
        style = "good" if item.choice else "row"
        spans: list[Span] = [(style, display(f" {sign} ")), (style, DisplayText("".join(cells)))]
        return (*spans, (style, where))

    def acts(self) -> Acts:
        return {
            "down": lambda: self._step(1),
            "up": lambda: self._step(-1),
            "take-a": lambda: self._take("a"),
            "take-b": lambda: self._take("b"),
            "take-both": lambda: self._take("union"),
            "take-none": lambda: self._take("neither"),
            "note": self._ask_note,
            "next": self._settle,
            "undo": lambda: self.say(self._session.undo()),
            "help": self.show_help,
            "close": lambda: self.dismiss(""),
        }

    def needs_passages(self, key: str, character: str) -> bool:
        name = self._keys[key][0].id if key in self._keys else ""
        return name.startswith("take-") or name == "next"

    def waits_for(self) -> str:
        if self.held:
            return lines.held_keys(self.held, self._session.problem)
        return super().waits_for()

    def _step(self, by: int) -> None:
        self.list.move_to(self.list.cursor + by)

    def _take(self, choice: str) -> None:
        if not self._items:
            raise ActionRefused("nothing differs here; Enter goes on")
        name, item = self._items[self.list.cursor]
        self.say(self._settling.adjudicate(name, item.index, choice))
        self._step(1)

    def _ask_note(self) -> None:
        from terminal.windows import LinePrompt

        def closed(text: str | None) -> None:
            if text is not None:
                try:
                    self.say(self._session.do(edits.note, text))
                except ActionRefused as refusal:
                    self.say(str(refusal), "warn")
                self.redraw()

        note = str(self._session.judgement.get("note") or "")
        self.app.push_screen(LinePrompt("Note to this question", note), closed)

    def _settle(self) -> None:
        """Confirm this question as settled, and open the next one that differs."""
        for name in dict.fromkeys(name for name, _ in self._items):
            self.say(self._settling.adjudicated(name))
        if not self._advance():
            self.say("no other question differs")

    def _advance(self) -> bool:
        """Open the next question with something to settle; stay when there is none."""
        session = self._session
        here = session.current
        ids = list(session.queue.visible)
        start = ids.index(here) + 1 if here in ids else 0
        for case_id in (*ids[start:], *ids[:start]):
            labelled = any(case_id in cases for cases in self._settling.others.values())
            if case_id == here or not labelled:
                continue
            session.queue.goto(case_id)
            if any(not item.choice for _, item in self._differences()):
                self._fetch()
                return True
        if here:
            session.queue.goto(here)
        return False


def _question_lines(session: Session, width: int, height: int) -> list[Line]:
    """The question on at most `height` lines; `…` where it is cut."""
    text = one_line(str(session.case.get("question", "")))
    breaks = wrap(text, max(1, width - 2))
    shown = [DisplayText(text[start:end]) for start, end in breaks[:height]]
    if len(breaks) > height and shown:
        shown[-1] = fit(DisplayText(shown[-1] + "…" + " " * width), width - 2)
        shown[-1] = DisplayText(shown[-1].rstrip().removesuffix("…") + "…")
    return [(("term", DisplayText(f" {line}")),) for line in shown] + [()] * (height - len(shown))
