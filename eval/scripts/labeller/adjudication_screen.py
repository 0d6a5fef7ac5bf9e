"""Adjudication: where the set (A) and a second annotator (B) differ, and the final choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical

from labeller import chunk_lines, lines
from labeller.mode_screen import ModeScreen
from terminal import frame
from terminal.action_screen import Acts
from terminal.actions import ActionRefused, Keymap
from terminal.lists import Bar, Line, LineList, Span
from terminal.safe_text import DisplayText, display, fit, one_line
from terminal.text_pane import TextPane

if TYPE_CHECKING:
    from labeller.adjudication import Disagreement
    from labeller.session import Session


class AdjudicationScreen(ModeScreen):
    """Shows both sides without names, one line a difference, with the text of its chunk."""

    def __init__(
        self,
        session: Session,
        names: list[str],
        look: frame.Look,
        keymap: Keymap,
        prefetch: Callable[[], None],
    ) -> None:
        super().__init__("adjudicate", look, keymap)
        self._prefetch = prefetch
        self._session = session
        self._names = names
        self._items: list[tuple[str, Disagreement]] = []
        self._case: str | None = None

    def compose(self) -> ComposeResult:
        self.top = Bar(id="mode-top")
        self.list = LineList(self._line, id="mode-list")
        self.text = TextPane(id="mode-text")
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
        super().on_mount()

    def _differences(self) -> list[tuple[str, Disagreement]]:
        """The differences of the current question, with everyone who labelled it."""
        items: list[tuple[str, Disagreement]] = []
        for name in self._names:
            try:
                items += [(name, item) for item in self._session.disagreements(name)]
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
        columns = f"   {'A':<14}{'B':<14}{'final':<9}row  what"
        self.top.show(
            [
                frame.rule(self.look, width, left, right),
                *lines.question_lines(session, width, 2),
                (("dim", display(columns)),),
            ]
        )
        self.text.show(display(self._text_of(self._item())))

    def _text_of(self, item: Disagreement | None) -> str:
        """What the text pane says of an item: its full path, and its chunk as far as it is here."""
        session = self._session
        if item is None:
            return "Nothing differs here. Enter goes to the next question that differs, Esc leaves."
        if item.kind == "state":
            return "Can the question be answered from the documents?"
        if item.row:
            text = item.row.chunk.text
        elif session.has_chunks():
            text = "The chunk is not among the rows here."
        else:
            text = session.chunks_problem() or "fetching…"
        return f"{chunk_lines.path_of(item.rel_path, item.heading_path)}\n\n{text}"

    def _item(self) -> Disagreement | None:
        cursor = self.list.cursor
        return self._items[cursor][1] if cursor < len(self._items) else None

    def _line(self, index: int, width: int) -> Line:
        _, item = self._items[index]
        sign = ">" if index == self.list.cursor else " "
        label = item.row.label if item.row else "-"
        where = chunk_lines.path_of(item.rel_path, item.heading_path) or one_line(item.text)
        cells = [
            fit(one_line(text), size)
            for text, size in ((item.a, 14), (item.b, 14), (item.choice or "?", 9), (label, 5))
        ]
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

    def _step(self, by: int) -> None:
        self.list.move_to(self.list.cursor + by)

    def _take(self, choice: str) -> None:
        if not self._items:
            raise ActionRefused("nothing differs here; Enter goes on")
        name, item = self._items[self.list.cursor]
        self.say(self._session.adjudicate(name, item.index, choice))
        self._step(1)

    def _ask_note(self) -> None:
        from terminal.windows import Prompt

        def closed(text: str | None) -> None:
            if text is not None:
                try:
                    self.say(self._session.note(text))
                except ActionRefused as refusal:
                    self.say(str(refusal), "warn")
                self.redraw()

        note = str(self._session.judgement.get("note") or "")
        self.app.push_screen(Prompt("Note to this question", note), closed)

    def _settle(self) -> None:
        """Confirm this question as settled, and open the next one that differs."""
        for name in dict.fromkeys(name for name, _ in self._items):
            self.say(self._session.adjudicated(name))
        if not self._advance():
            self.say("no other question differs")

    def _advance(self) -> bool:
        """Open the next question with something to settle; stay when there is none."""
        session = self._session
        here = session.current
        ids = list(session.visible)
        start = ids.index(here) + 1 if here in ids else 0
        for case_id in (*ids[start:], *ids[:start]):
            if case_id == here or not any(case_id in session.others[n] for n in self._names):
                continue
            session.goto(case_id)
            if any(not item.choice for _, item in self._differences()):
                self._prefetch()
                return True
        if here:
            session.goto(here)
        return False
