"""The windows that show something: supports, calls of tools, snippets, conflicts, help."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from labeller import edits, marks
from labeller.actions import actions_of, hints_of
from labeller.lines import path_of
from labeller.passages import Span
from labeller.rows import ChunkRow, sentences_of
from labeller.session import Session
from labeller.store import LabelStore
from terminal import frame
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import Action, ActionRefused, Keymap, keys_of, shown_key
from terminal.frame import Look
from terminal.help import HelpScreen, keys_page
from terminal.lists import Bar, Line, LineList
from terminal.safe_text import display, one_line
from terminal.tables import counted
from terminal.text_pane import Mark, TextPane, TextWindow
from terminal.windows import Bindings, Window, shown


class _LabelList(Window[None]):
    """A list of labels of the case, below words about all of them; keys change one."""

    BINDINGS: ClassVar[Bindings] = [
        ("escape,q,enter", "leave"),
        ("down,j", "step(1)"),
        ("up,k", "step(-1)"),
    ]
    KEYS: ClassVar[str]

    def __init__(self, session: Session, after: Callable[[str], None]) -> None:
        super().__init__()
        self._session = session
        self._after = after

    def compose(self) -> ComposeResult:
        self._list = LineList(self._line, id="supports")
        with Vertical(id="picker"):
            yield shown(display(""), id="needs")
            yield self._list
            yield shown(display(self.KEYS), classes="keys")

    def on_mount(self) -> None:
        self._show(*self._read())

    def _line(self, index: int, width: int) -> Line:
        raise NotImplementedError

    def _read(self) -> tuple[str, int]:
        """Read the labels again: the words about all of them, and their number."""
        raise NotImplementedError

    def _show(self, text: str, count: int | None = None) -> None:
        self.query_one("#needs", Static).update(Content(display(text)))
        if count is not None:
            self._list.set_count(count, self._list.cursor)

    def _do(self, action: Callable[[], str]) -> None:
        """Do what a key stands for and read the list again; a refusal is said in its place."""
        try:
            self._after(action())
        except ActionRefused as refusal:
            self._show(one_line(str(refusal)))
        else:
            self._show(*self._read())

    def action_step(self, by: int) -> None:
        self._list.move_to(self._list.cursor + by)

    def on_resize(self, event: events.Resize) -> None:
        self._list.refresh()


class SupportsScreen(_LabelList):
    """The supports of the case as they will be written, in words; one can be taken out."""

    BINDINGS: ClassVar[Bindings] = [("w", "leave"), ("d,delete", "remove"), ("<", "wider")]
    KEYS = "d take out   < wider section   u in the main screen undoes   Esc leave"

    def _read(self) -> tuple[str, int]:
        self._views = self._session.supports()
        return self._session.view.needs_words(), len(self._views)

    def _line(self, index: int, width: int) -> Line:
        view = self._views[index]
        where = f"row {', '.join(view.rows)}" if view.rows else "not on screen"
        grade = "" if view.grade is None else f" grade {view.grade:g}"
        sign = ">" if index == self._list.cursor else " "
        path = path_of(view.rel_path, view.heading_path)
        snippets = counted(len(view.snippets), "snippet")
        noun = self._session.layout.noun
        needs = f"{noun} {', '.join(map(str, view.parts))}" if view.parts else "not required"
        text = f"{sign} {needs}: {path} ({where}{grade}, {snippets})"
        return (("row" if view.rows else "warn", one_line(text)),)

    def action_remove(self) -> None:
        if self._views:
            self._do(lambda: self._session.do(marks.remove_support, self._list.cursor))

    def action_wider(self) -> None:
        if self._views:
            index = self._list.cursor
            heading = self._views[index].heading_path.rpartition(" > ")[0]
            self._do(lambda: self._session.do(marks.set_heading, index, heading))


class ToolsScreen(_LabelList):
    """The calls of tools that the bot made for the case, and those that the case names."""

    BINDINGS: ClassVar[Bindings] = [
        ("T", "leave"),
        ("space", "label('expect')"),
        ("x", "label('forbid')"),
        ("0", "expect_none"),
    ]
    KEYS = "Space expected   x forbidden   0 no call is expected   Esc leave"

    def _read(self) -> tuple[str, int]:
        case = self._session.case
        self._rows = edits.tool_rows(case, self._session.pool.calls.get(self._session.current, ()))
        words = "Calls of tools that the bot made:" if self._rows else "The bot reports no call."
        words += " No call is expected." * (case.get(edits.EXPECTED) == [])
        return words, len(self._rows)

    def _line(self, index: int, width: int) -> Line:
        row = self._rows[index]
        sign = ">" if index == self._list.cursor else " "
        style = {"expected": "marked", "forbidden": "warn", "": "row"}[row.label]
        return ((style, one_line(f"{sign} [{row.label or ' ':<9}] {row.text()}", 1000)),)

    def action_label(self, name: str) -> None:
        if self._rows:
            change = edits.expect if name == "expect" else edits.forbid
            row = self._rows[self._list.cursor]
            self._do(lambda: self._session.revise(change, row))

    def action_expect_none(self) -> None:
        self._do(lambda: self._session.revise(edits.expect_none))


def _value_text(values: dict[str, Any] | None, field: str) -> str:
    if values is None:
        return "(no such question)"
    value = values.get(field, "(not there)")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


class ConflictScreen(TextWindow):
    """Shows the open conflicts of the store one after the other. Esc leaves the rest for later."""

    BINDINGS: ClassVar[Bindings] = [("1", "take('mine')"), ("2", "take('theirs')")]

    def __init__(self, store: LabelStore, say: Callable[[str], None]) -> None:
        super().__init__("1 keep mine   2 keep what the file has   j k scroll   Esc decide later")
        self._store = store
        self._say = say

    def show_text(self) -> None:
        if not self._store.conflicts:
            self.dismiss(None)
            return
        conflict, count = self._store.conflicts[0], len(self._store.conflicts)
        text = f"{conflict.case_id} was changed here and in the file ({count} to settle)\n\n"
        marks: list[Mark] = [(0, len(text) - 2, "warn")]
        base, mine, theirs = conflict.base, conflict.mine, conflict.theirs
        for field in conflict.fields or ("question",):
            for name, side in (("before", base), ("1 mine", mine), ("2 in the file", theirs)):
                head = f"{field}, {name}:"
                marks.append((len(text), len(text) + len(head), "key"))
                text += f"{head}\n{_value_text(side, field)}\n\n"
        self.pane.show(display(text), marks)

    def action_take(self, choice: str) -> None:
        if self._store.conflicts:
            self._say(self._store.resolve(self._store.conflicts[0], choice))
            self.show_text()


class ModeScreen(ActionScreen[str], inherit_bindings=False):
    """A full screen with its own keys; it returns a message for the main screen."""

    DECIDES: ClassVar = False
    """Are cases decided here? Then keys wait until the passages of the case are there."""

    def __init__(self, where: str, look: Look, keymap: Keymap) -> None:
        super().__init__(actions_of(where), hints_of(where), look, keymap, end="mode-end")
        self.where = where
        self.held = 0  # keys that wait for the passages

    def needs_passages(self, key: str, character: str) -> bool:
        """Does a key press choose or settle something?"""
        return False

    def perform(self, name: str) -> None:
        """Do the action `name` of this screen."""
        super().perform(name)
        if self.is_current:
            self.redraw()

    def show_help(self) -> None:
        """The keys of this screen."""
        self.app.push_screen(help_screen(self.where, self.keymap))


LIMIT = 1 << 20

_WORD = re.compile(r"\w+[^\w\s]*|[^\w\s]+")


def _begin_later(text: str, start: int, end: int) -> Span:
    """Without the first word of a selection; a selection of one word moves to the next."""
    starts = [word.start() for word in _WORD.finditer(text, start, end) if word.start() > start]
    after = _WORD.search(text, end)
    return (starts[0], end) if starts else after.span() if after else (start, end)


def _word_more(text: str, start: int, end: int) -> Span:
    word = _WORD.search(text, end)
    return start, word.end() if word else len(text)


def _word_less(text: str, start: int, end: int) -> Span:
    ends = (word.end() for word in _WORD.finditer(text, start, end))
    return start, max((stop for stop in ends if stop < end), default=start + 1)


_STRETCHES: dict[str, Callable[[str, int, int], Span]] = {
    "word-right": _word_more,
    "word-left": _word_less,
    "start-right": _begin_later,
    "right": lambda text, start, end: (start, min(end + 1, len(text))),
    "left": lambda text, start, end: (start, max(end - 1, start + 1)),
}
"""The selection after a move, of a text and the selection before."""


class SnippetScreen(ModeScreen):
    """Each pick is a label at once, as everywhere; Esc takes back those made here."""

    def __init__(self, session: Session, number: int, look: Look, keymap: Keymap) -> None:
        super().__init__("snippet", look, keymap)
        self._session, self._number, self._index, self._steps = session, number, 0, 0
        self._inside: Span | None = None

    @property
    def _row(self) -> ChunkRow:
        return self._session.view.row(self._number)

    def compose(self) -> ComposeResult:
        self.rule_bar, self.text = Bar(id="mode-rule"), TextPane(id="mode-text")
        with Vertical():
            yield from (self.rule_bar, self.text, self.end)

    def show(self) -> None:
        """Draw the sentences: the cursor's stands out, picked ones are marked."""
        row = self._row
        self._sentences = sentences_of(row, self._session.case)
        path = path_of(row.chunk.rel_path, row.chunk.heading_path)
        left = f"snippets of row {row.label} {self.look.rule * 2} {path}"
        right = f"sentence {self._index + 1} of {len(self._sentences)}"
        self.rule_bar.show([frame.rule(self.look, self.size.width, left, right)])
        text, marks = self._listed()
        self.text.show(display(text, LIMIT), marks)
        if marks:
            self.text.reveal(*marks[-1][:2])

    def waits_for(self) -> str:
        return "INSIDE: w b l h, Space picks" if self._inside else ""

    def _listed(self) -> tuple[str, list[Mark]]:
        """The sentences, one a line: `>` the cursor's, `*` picked; the cursor's mark comes last."""
        text = ""
        marks: list[Mark] = []
        here: list[Mark] = []
        for sentence in self._sentences:
            at_cursor = sentence.index == self._index
            text += f"{'>' if at_cursor else ' '}{'*' if sentence.picked else ' '} "
            base, words = len(text) - sentence.start, sentence.text.replace("\n", " ")
            if sentence.picked:
                marks.append((len(text), len(text) + len(words), "marked"))
            if at_cursor:
                begin, end = self._inside or (sentence.start, sentence.end)
                here.append((base + begin, base + end, "cursor"))
            text += f"{words}\n"
        return text, marks + here

    def _here(self) -> Span | None:
        sentences = self._sentences[self._index : self._index + 1]
        return self._inside or next(((each.start, each.end) for each in sentences), None)

    def acts(self) -> Acts:
        return {
            "down": lambda: self._step(1),
            "up": lambda: self._step(-1),
            "pick": self._pick,
            "inside": self._turn_inside,
            **{name: partial(self._stretch, name) for name in _STRETCHES},
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
            message = self._session.on_row(self._number, marks.select, *self._inside)
            self._inside = None
        else:
            message = self._session.on_row(self._number, marks.pick, self._index)
        self._steps += 1
        self.say(message)

    def _turn_inside(self) -> None:
        here = self._here()
        if self._inside is not None or here is None:
            self._inside = None
            return
        start, end = here
        word = _WORD.search(self._row.chunk.text, start, end)
        self._inside = (start, word.end() if word else min(start + 1, end))

    def _stretch(self, name: str) -> None:
        """Move an end of the selection; the first move to the right begins one."""
        if self._inside is not None:
            self._inside = _STRETCHES[name](self._row.chunk.text, *self._inside)
        elif not name.endswith("left"):
            self._turn_inside()

    def _make_fact(self) -> None:
        if here := self._here():
            text = self._row.chunk.text[here[0] : here[1]]
            self.say(self._session.revise(edits.key_fact, text))
            self._steps += 1

    def _keep(self) -> None:
        self.dismiss(f"{counted(self._row.snippets, 'snippet')} in row {self._row.label}")

    def _take_back(self) -> None:
        for _ in range(self._steps):
            self._session.undo()
        self.dismiss("the picks were taken back" if self._steps else "")


FOOT = "Tab keys / guideline   PgDn PgUp, j k scroll   Esc back"

GUIDELINE = """\
How to label, so that everyone labels alike

The common case is two keys: the digit of the passage that holds the answer, then Enter.

Support       A passage is a support when the answer, or a needed part of it, can be read in it. \
That it is about the same subject is not enough.
Read first    . pages down and goes on to the next unread row; a dot before the row's number means \
"not read to its end yet". ; 1 4 Enter shows row 14 without marking it.
All of it     Mark every passage that answers by itself. If retrieval missed one, search for it \
with p or name its path with P.

Needs         What an answer must hold, as people say it: one of these AND one of those. Marks \
join need 1: any of its passages is enough. ' ' starts the next need, ' 1 goes back to need 1, \
& 2 lets a passage meet need 2 as well, ' 0 takes what is related and not required. The line under \
the question always says all of it: (1 try.md or 4 compound.md) AND (2 with.md).
Ways          Where needs overlap so much that they would be hard to read, the line shows ways: \
(1 and 2) or (3 and 4). The same keys work; marks join the open way.
Grades        3 answers by itself   2 supports in part (a plain mark)   1 related: not required   \
0 no support
Snippets      t picks the sentences that carry the answer. Without a pick they are found \
automatically, shown as ~ in the row; a picked one is shown as ".

Unanswerable  x: the documents do not hold the answer. Not the same as "not found": search first.
Cannot tell   c, the reason, Ctrl+t, Enter: you are not able to judge.
Later         s puts the question at the end of the queue; it comes back.

Blind mode    Rank, scores and other people's labels are hidden and the rows are shuffled, since \
seeing them pulls the judgement. B leaves it, and S changes the order; leaving is recorded.

Signs         > cursor   [2] marked, meets need 2   [2+] several needs   [0] not required   3 grade
              " snippet   ~ automatic snippet   · not read to its end   ! support moved
              ? found by similar text   ^ only its heading fits

Nothing is lost: every key is written to a journal at once. u undoes, as far back as you like.
"""


SAID = (
    ("BLIND", "Rank, scores and the labels of others are hidden, so that they cannot sway you."),
    ("shuffled #0", "The passages are in random order; 0 is the seed (--seed) that draws it."),
)
"""Words of the lines above the passages, and their meaning."""


def help_screen(where: str, keymap: Keymap) -> HelpScreen:
    """Page one: the keys that work on the screen `where`. Page two: the guideline."""

    def key_names(action: Action) -> str:
        names = keys_of(action, keymap)
        if action.id == "mark-row" and len(names) == 10:
            return f"{names[0]}-{names[-1]}"
        return " ".join(dict.fromkeys(map(shown_key, names))) or "by : name"

    keys = keys_page(actions_of(where), key_names, SAID if where == "main" else ())
    return HelpScreen([keys, (GUIDELINE, [(0, 43, "rule")])], FOOT)
