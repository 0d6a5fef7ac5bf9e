"""The windows that show something: supports, calls of tools, conflicts, help."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from labeller import marks, tools
from labeller.actions import actions_of
from labeller.lines import path_of
from terminal.actions import Action, ActionRefused, Keymap, keys_of, shown_key
from terminal.help import HelpScreen, keys_page
from terminal.lists import Line, LineList
from terminal.safe_text import display, one_line
from terminal.tables import counted
from terminal.text_pane import Mark, TextWindow
from terminal.windows import Window, shown

if TYPE_CHECKING:
    from labeller.merging import Conflict
    from labeller.session import Session
    from labeller.store import LabelStore


class _LabelList(Window[None]):
    """A list of labels of the case, below words about all of them; keys change one.

    Subclasses draw a row with ``_line`` and read the list again with ``_read``.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "leave", "leave", show=False),
        Binding("down,j", "step(1)", "down", show=False),
        Binding("up,k", "step(-1)", "up", show=False),
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
        self._read()

    def _line(self, index: int, width: int) -> Line:
        raise NotImplementedError

    def _read(self) -> None:
        raise NotImplementedError

    def _say(self, text: str) -> None:
        self.query_one("#needs", Static).update(Content(display(text)))

    def _do(self, action: Callable[[], str]) -> None:
        """Do what a key stands for and read the list again; a refusal is said in its place."""
        try:
            self._after(action())
        except ActionRefused as refusal:
            self._say(one_line(str(refusal)))
            return
        self._read()

    def action_step(self, by: int) -> None:
        self._list.move_to(self._list.cursor + by)

    def on_resize(self, event: events.Resize) -> None:
        self._list.refresh()


class SupportsScreen(_LabelList):
    """The supports of the case as they will be written, in words; one can be taken out."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "leave", "leave", show=False),
        Binding("d,delete", "remove", "remove", show=False),
        Binding("less_than_sign", "heading(-1)", "wider", show=False),
    ]
    KEYS = "d take out   < wider section   u in the main screen undoes   Esc leave"

    def _read(self) -> None:
        session = self._session
        self._say(session.view.needs_words())
        self._views = session.supports()
        self._list.set_count(len(self._views), self._list.cursor)

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
        self._change(lambda index: self._session.do(marks.remove_support, index))

    def action_heading(self, by: int) -> None:
        def wider(index: int) -> str:
            heading = self._views[index].heading_path.rpartition(" > ")[0]
            return self._session.do(marks.set_heading, index, heading)

        self._change(wider)

    def _change(self, action: Callable[[int], str]) -> None:
        if self._views:
            self._do(lambda: action(self._list.cursor))


class ToolsScreen(_LabelList):
    """The calls of tools that the bot made for the case, and those that the case names."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("T", "leave", "leave", show=False),
        Binding("space", "label('expect')", "expected", show=False),
        Binding("x", "label('forbid')", "forbidden", show=False),
        Binding("0", "expect_none", "none", show=False),
    ]
    KEYS = "Space expected   x forbidden   0 no call is expected   Esc leave"

    def _read(self) -> None:
        case = self._session.case
        self._rows = tools.tool_rows(case, self._session.pool.calls.get(self._session.current, ()))
        words = "Calls of tools that the bot made:" if self._rows else "The bot reports no call."
        self._say(words + " No call is expected." * (case.get(tools.EXPECTED) == []))
        self._list.set_count(len(self._rows), self._list.cursor)

    def _line(self, index: int, width: int) -> Line:
        row = self._rows[index]
        sign = ">" if index == self._list.cursor else " "
        style = {"expected": "marked", "forbidden": "warn", "": "row"}[row.label]
        return ((style, one_line(f"{sign} [{row.label or ' ':<9}] {row.text()}", 1000)),)

    def action_label(self, name: str) -> None:
        if self._rows:
            change = tools.expect if name == "expect" else tools.forbid
            row = self._rows[self._list.cursor]
            self._do(lambda: self._session.revise(change, row))

    def action_expect_none(self) -> None:
        self._do(lambda: self._session.revise(tools.expect_none))


def _value_text(values: dict[str, Any] | None, field: str) -> str:
    if values is None:
        return "(no such question)"
    if field not in values:
        return "(not there)"
    value = values[field]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _conflict_text(conflict: Conflict) -> tuple[str, list[Mark]]:
    """The fields of a conflict, each as it was before, here and in the file."""
    text = ""
    marks: list[Mark] = []
    sides = (
        ("before", conflict.base),
        ("1 mine", conflict.mine),
        ("2 in the file", conflict.theirs),
    )
    for field in conflict.fields or ("question",):
        for name, values in sides:
            head = f"{field}, {name}:"
            marks.append((len(text), len(text) + len(head), "key"))
            text += f"{head}\n{_value_text(values, field)}\n\n"
    return text, marks


class ConflictScreen(TextWindow):
    """Shows the open conflicts of the store one after the other. Esc leaves the rest for later."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "take('mine')", "mine", show=False),
        Binding("2", "take('theirs')", "theirs", show=False),
    ]

    def __init__(self, store: LabelStore, say: Callable[[str], None]) -> None:
        super().__init__("1 keep mine   2 keep what the file has   j k scroll   Esc decide later")
        self._store = store
        self._say = say

    def show_text(self) -> None:
        if not self._store.conflicts:
            self.dismiss(None)
            return
        conflict = self._store.conflicts[0]
        count = len(self._store.conflicts)
        head = f"{conflict.case_id} was changed here and in the file ({count} to settle)\n\n"
        text, marks = _conflict_text(conflict)
        moved = [(start + len(head), end + len(head), name) for start, end, name in marks]
        self.pane.show(display(head + text), [(0, len(head) - 2, "warn"), *moved])

    def action_take(self, choice: str) -> None:
        if self._store.conflicts:
            self._say(self._store.resolve(self._store.conflicts[0], choice))
            self.show_text()


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


def _key_names(action: Action, keymap: Keymap) -> str:
    """The keys of an action, as the help page shows them."""
    names = keys_of(action, keymap)
    if action.id == "mark-row" and len(names) == 10:
        return f"{names[0]}-{names[-1]}"
    return " ".join(dict.fromkeys(map(shown_key, names))) or "by : name"


def help_screen(where: str, keymap: Keymap) -> HelpScreen:
    """Page one: the keys that work on the screen `where`. Page two: the guideline."""
    said = SAID if where == "main" else ()
    keys = keys_page(actions_of(where), lambda action: _key_names(action, keymap), said)
    return HelpScreen([keys, (GUIDELINE, [(0, 43, "rule")])], FOOT)
