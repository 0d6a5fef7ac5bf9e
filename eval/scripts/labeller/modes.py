"""The screens with keys of their own: snippet mode and adjudication."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical

from labeller import lines
from labeller.actions import HINTS, actions_of, hint_parts
from terminal import frame
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused, Keymap
from terminal.frame import Look
from terminal.lists import Bar, Line, LineList, Span
from terminal.safe_text import DisplayText, display, fit, one_line
from terminal.tables import counted
from terminal.text_pane import Mark, TextPane

if TYPE_CHECKING:
    from labeller.adjudication import Disagreement
    from labeller.session import Session


class ModeScreen(ActionScreen[str], inherit_bindings=False):
    """A full screen with its own keys; it returns a message for the main screen."""

    def __init__(self, where: str, look: Look, keymap: Keymap) -> None:
        super().__init__(actions_of(where), HINTS[where].split(), look, keymap, end="mode-end")
        self.where = where
        self.waiting = ""
        """What a started choice waits for, shown at the end of the status line."""

    def hint_parts(self) -> Iterable[tuple[str, str]]:
        return hint_parts(self.where, self.keymap)

    def waits_for(self) -> str:
        return self.waiting

    def perform(self, name: str) -> None:
        """Do the action `name` of this screen."""
        super().perform(name)
        if self.is_current:
            self.redraw()

    def show_help(self) -> None:
        """The keys of this screen."""
        from labeller.windows import help_screen

        self.app.push_screen(help_screen(self.where, self.keymap))


LIMIT = 1 << 20

_WORD = re.compile(r"\w+[^\w\s]*|[^\w\s]+")


class SnippetScreen(ModeScreen):
    """Each pick is a label at once, as everywhere; Esc takes back those made here."""

    def __init__(self, session: Session, number: int, look: Look, keymap: Keymap) -> None:
        super().__init__("snippet", look, keymap)
        self._session = session
        self._number = number
        self._index = 0
        self._inside: tuple[int, int] | None = None
        self._steps = 0

    def compose(self) -> ComposeResult:
        self.rule_bar = Bar(id="mode-rule")
        self.text = TextPane(id="mode-text")
        with Vertical():
            yield self.rule_bar
            yield self.text
            yield self.end

    def show(self) -> None:
        """Draw the sentences: the cursor's stands out, picked ones are marked."""
        row = self._session.row(self._number)
        self._sentences = self._session.sentences(self._number)
        count = len(self._sentences)
        path = lines.path_of(row.chunk.rel_path, row.chunk.heading_path)
        left = f"snippets of row {row.label} {self.look.rule * 2} {path}"
        right = f"sentence {self._index + 1} of {count}"
        self.rule_bar.show([frame.rule(self.look, self.size.width, left, right)])
        text, marks = self._listed()
        self.text.show(display(text, LIMIT), marks)
        if marks:
            self.text.reveal(*marks[-1][:2])
        self.waiting = "INSIDE: w b l h, Space picks" if self._inside else ""

    def _listed(self) -> tuple[str, list[Mark]]:
        """The sentences, one a line: `>` the cursor's, `*` picked; the cursor's mark comes last."""
        text = ""
        marks: list[Mark] = []
        here: list[Mark] = []
        for sentence in self._sentences:
            at_cursor = sentence.index == self._index
            text += f"{'>' if at_cursor else ' '}{'*' if sentence.picked else ' '} "
            start = len(text)
            text += sentence.text.replace("\n", " ")
            if sentence.picked:
                marks.append((start, len(text), "marked"))
            if at_cursor:
                begin, end = self._here() or (0, 0)
                base = start - sentence.start
                here.append((base + begin, base + end, "cursor"))
            text += "\n"
        return text, marks + here

    def _here(self) -> tuple[int, int] | None:
        if self._inside is not None:
            return self._inside
        if self._index < len(self._sentences):
            sentence = self._sentences[self._index]
            return sentence.start, sentence.end
        return None

    def acts(self) -> Acts:
        return {
            "down": lambda: self._step(1),
            "up": lambda: self._step(-1),
            "pick": self._pick,
            "inside": self._turn_inside,
            "word-right": self._word_right,
            "word-left": self._word_left,
            "start-right": self._start_right,
            "right": lambda: self._stretch((self._inside[1] if self._inside else 0) + 1),
            "left": self._left,
            "fact": self._make_fact,
            "keep": self._keep,
            "help": self.show_help,
            "close": self._take_back,
        }

    def _step(self, by: int) -> None:
        self._inside = None
        self._index = max(0, min(self._index + by, len(self._sentences) - 1))

    def _pick(self) -> None:
        if self._inside is not None:
            start, end = self._inside
            message = self._session.select(self._number, start, end)
            self._inside = None
        else:
            message = self._session.pick(self._number, self._index)
        self._steps += 1
        self.say(message)

    def _turn_inside(self) -> None:
        if self._inside is not None:
            self._inside = None
            return
        here = self._here()
        if here is not None:
            start, end = here
            word = _WORD.search(self._text(), start, end)
            self._inside = (start, word.end() if word else min(start + 1, end))

    def _text(self) -> str:
        return self._session.row(self._number).chunk.text

    def _stretch(self, end: int) -> None:
        if self._inside is None:
            self._turn_inside()
            return
        start = self._inside[0]
        self._inside = (start, max(start + 1, min(end, len(self._text()))))

    def _word_right(self) -> None:
        end = self._inside[1] if self._inside else 0
        word = _WORD.search(self._text(), end)
        self._stretch(word.end() if word else len(self._text()))

    def _word_left(self) -> None:
        if self._inside is None:
            return
        start, end = self._inside
        ends = [m.end() for m in _WORD.finditer(self._text(), start, end) if m.end() < end]
        self._stretch(ends[-1] if ends else start + 1)

    def _left(self) -> None:
        if self._inside is not None:
            self._stretch(self._inside[1] - 1)

    def _start_right(self) -> None:
        """Let the selection begin a word later."""
        if self._inside is None:
            self._turn_inside()
            return
        start, end = self._inside
        starts = [m.start() for m in _WORD.finditer(self._text(), start, end) if m.start() > start]
        if starts:
            self._inside = (starts[0], end)
        else:
            word = _WORD.search(self._text(), end)
            if word:
                self._inside = (word.start(), word.end())

    def _make_fact(self) -> None:
        here = self._here()
        if here is not None:
            self.say(self._session.key_fact(self._text()[here[0] : here[1]]))
            self._steps += 1

    def _keep(self) -> None:
        row = self._session.row(self._number)
        self.dismiss(f"{counted(row.snippets, 'snippet')} in row {row.label}")

    def _take_back(self) -> None:
        for _ in range(self._steps):
            self._session.undo()
        self.dismiss("the picks were taken back" if self._steps else "")


_CHOSEN, _WHERE, _PATH = 9, 5, 18
"""Cells of the choice and of the number of the row, and the fewest that a passage's path gets."""


class AdjudicationScreen(ModeScreen):
    """Shows both sides, one line a difference, with the text of its passage.

    The sides are A and B until everything of the question is chosen: who said it must not pull.
    """

    def __init__(
        self,
        session: Session,
        names: list[str],
        look: Look,
        keymap: Keymap,
        prefetch: Callable[[], None],
    ) -> None:
        super().__init__("adjudicate", look, keymap)
        self._prefetch = prefetch
        self.held = 0  # keys that wait for the passages
        self._session = session
        self._names = names
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
                *lines.question_lines(session, width, 2),
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
        """What the text pane says of an item: its full path, and its chunk as far as it is here."""
        session = self._session
        if item is None:
            return "Nothing differs here. Enter goes to the next question that differs, Esc leaves."
        if item.kind == "state":
            return "Can the question be answered from the documents?"
        if item.row:
            text = item.row.chunk.text
        elif session.has_chunks():
            text = "The passage is not among the rows here."
        else:
            text = session.chunks_problem() or "fetching…"
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
        """Does a key press choose or settle something?"""
        name = self._keys[key][0].id if key in self._keys else ""
        return name.startswith("take-") or name == "next"

    def waits_for(self) -> str:
        if self.held:
            return lines.held_keys(self.held, self._session.chunks_problem())
        return super().waits_for()

    def _step(self, by: int) -> None:
        self.list.move_to(self.list.cursor + by)

    def _take(self, choice: str) -> None:
        if not self._items:
            raise ActionRefused("nothing differs here; Enter goes on")
        name, item = self._items[self.list.cursor]
        self.say(self._session.adjudicate(name, item.index, choice))
        self._step(1)

    def _ask_note(self) -> None:
        from terminal.windows import LinePrompt

        def closed(text: str | None) -> None:
            if text is not None:
                try:
                    self.say(self._session.note(text))
                except ActionRefused as refusal:
                    self.say(str(refusal), "warn")
                self.redraw()

        note = str(self._session.judgement.get("note") or "")
        self.app.push_screen(LinePrompt("Note to this question", note), closed)

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
