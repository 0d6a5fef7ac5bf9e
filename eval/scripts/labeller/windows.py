"""The windows over the main screen: supports, the form of a case, a note, conflicts, help."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Offset
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from labeller import marks, tools
from labeller.actions import actions_of
from labeller.lines import path_of
from terminal.actions import Action, ActionRefused, Keymap, keys_of, shown_key
from terminal.help import HelpScreen, keys_page
from terminal.lists import Line, LineList
from terminal.safe_text import DisplayText, display, one_line
from terminal.tables import counted
from terminal.text_pane import Mark, TextWindow
from terminal.windows import Ask, Window, shown

if TYPE_CHECKING:
    from labeller.merging import Conflict
    from labeller.session import Session
    from labeller.store import LabelStore


Anchor = tuple[str, str]
"""Path of a file, and a heading path with ` > ` between its headings."""


def _path_and_heading(anchor: Anchor) -> str:
    """`faq.md > Billing`, as people type it."""
    return " > ".join(part for part in anchor if part)


def ranked(typed: str, texts: Iterable[str]) -> list[str]:
    """The texts with every word of `typed`, best first; case does not matter.

    All of them, in their order, when nothing is typed.
    """
    words = typed.casefold().split()
    if not words:
        return list(texts)
    matches = []
    for text in texts:
        folded = text.casefold()
        scores = [_closeness(word, folded) for word in words]
        if all(scores):
            matches.append((-sum(scores), len(text), text))
    return [text for _, _, text in sorted(matches)]


def _closeness(word: str, text: str) -> float:
    """How well `text` holds the letters of `word`: 3 as the start of a word of it, 2 elsewhere in
    one piece, up to 1 scattered (letters over the length of the stretch that they stand in), 0 not.

    The stretch is that of the first place where all letters have come, made as short as it goes
    (as in fzf's first algorithm), so the time grows with the length of the text alone.
    """
    start = text.find(word)
    while start > 0 and text[start - 1].isalnum():
        later = text.find(word, start + 1)
        if later < 0:
            return 2.0
        start = later
    if start >= 0:
        return 3.0
    at = -1
    for letter in word:
        at = text.find(letter, at + 1)
        if at < 0:
            return 0.0
    end, start = at, at + 1
    for letter in reversed(word):
        start = text.rfind(letter, 0, start)
    return len(word) / (end - start + 1)


class PickAnchor(Window[Anchor | None]):
    """A path and heading, picked from the known ones by some of their letters, or typed in full.

    What was typed is the last choice, and the first when it names a section that none is.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False),
        Binding("down", "step(1)", "down", show=False),
        Binding("up", "step(-1)", "up", show=False),
    ]

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        super().__init__()
        self._anchors = {_path_and_heading(anchor): anchor for anchor in sorted(set(anchors))}
        self._matches = list(self._anchors.values())
        self._typed: Anchor | None = None

    def compose(self) -> ComposeResult:
        self._list = LineList(self._line, id="places")
        with Vertical(id="picker"):
            yield shown(display("Support by path: some letters of it, or all of `path > heading`"))
            yield Input(id="place", compact=True)
            yield self._list
            yield shown(display("Up, Down choose   Enter take   Esc leave"), classes="keys")

    def on_mount(self) -> None:
        self._list.set_count(len(self._matches))

    def _line(self, index: int, width: int) -> Line:
        sign = "> " if index == self._list.cursor else "  "
        anchor = self._matches[index]
        more = "   (as typed)" if anchor == self._typed else ""
        return (("row", one_line(sign + path_of(*anchor) + more)),)

    def on_input_changed(self, event: Input.Changed) -> None:
        typed = " ".join(event.value.split())
        self._matches = [self._anchors[text] for text in ranked(typed, self._anchors)]
        path, _, heading = typed.partition(" > ")
        self._typed = None
        if typed and (path, heading) not in self._matches:
            self._typed = (path, heading)
            new = heading and not any(typed.casefold() in text.casefold() for text in self._anchors)
            self._matches.insert(0 if new else len(self._matches), self._typed)
        self._list.set_count(len(self._matches))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(self._matches[self._list.cursor] if self._matches else None)

    def action_step(self, by: int) -> None:
        self._list.move_to(self._list.cursor + by)


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
        words = [session.view.needs_words() or "No support is marked yet."]
        for query, why in session.pool.lost_probes(session.current):
            words.append(f'Not here (F5 tries again): rows of "{one_line(query, 30)}": {why}')
        self._say("\n".join(words))
        self._views = self._session.supports()
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


LIMIT = 1 << 20

LABELS = {
    "question": "Question",
    "id": "Id (made from the question; ids never change later)",
    "expected_key_facts": "Key facts an answer must hold, one a line",
    "reference_answer": "Reference answer",
    "expected_claims": "Expected claims, one a line",
    "forbidden_claims": "Forbidden claims, one a line",
    "tags": "Tags, separated by commas",
    "category": "Category",
    "difficulty": "Difficulty",
}

Field = tuple[str, str, tuple[str, ...]]
"""Name, kind (`text`, `lines` or `choice`), choices."""


def _as_text(value: object, kind: str, name: str) -> str:
    """A field's value as the form shows it."""
    if value is None:
        return ""
    if isinstance(value, list):
        return (", " if name == "tags" else "\n").join(str(part) for part in value)
    return str(value)


def _as_value(text: str, kind: str, name: str) -> object:
    """What the form's text stands for: a list without empty entries, or the stripped text."""
    if kind == "lines":
        parts = text.split(",") if name == "tags" else text.split("\n")
        return [part.strip() for part in parts if part.strip()]
    return text.strip()


class _TextField(TextArea):
    """A field of several lines, whose cursor may stand below a text that undo made shorter.

    Undoing a line break can take the scroll bar away. TextArea then wants the cursor in view before
    it has moved it to where it was, and fails on the line that is gone.
    """

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        if self.cursor_location[0] >= self.document.line_count:
            return Offset(0, 0)  # undo and redo move the cursor next, which comes here again
        return super().scroll_cursor_visible(center, animate)


class CaseForm(Window[str | None]):
    """Edits the fields of one case. `submit` gets the changed ones; its message is returned.

    A ActionRefused from `submit` is shown in the form, which stays open: nothing typed is lost.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "keep", "keep", show=False),
        Binding("escape", "leave", "leave", show=False),
    ]

    def __init__(
        self,
        title: str,
        fields: tuple[Field, ...],
        values: Mapping[str, Any],
        submit: Callable[[dict[str, Any]], str],
        name: Callable[[str], str] | None = None,
    ) -> None:
        """`name` makes the id of a new case from its question, until one is typed."""
        super().__init__()
        self._name_of = name
        self._title = one_line(title)
        self._fields = fields
        self._submit = submit
        self._texts = {
            name: display(_as_text(values.get(name), kind, name), LIMIT) for name, kind, _ in fields
        }

    def compose(self) -> ComposeResult:
        with Vertical(id="form"):
            yield shown(self._title, classes="form-title")
            with VerticalScroll(id="form-fields", can_focus=False):
                for name, kind, choices in self._fields:
                    label = LABELS.get(name, name)
                    if choices:
                        label += f" ({', '.join(choices)}; Right takes the suggestion)"
                    yield shown(display(label), classes="form-label")
                    yield self._editor(name, kind, choices)
            yield shown(display(""), id="form-message")
            yield shown(
                display("Ctrl+s keep   Tab next field   Shift+Tab field before   Esc leave"),
                classes="keys",
            )

    def _editor(self, name: str, kind: str, choices: tuple[str, ...]) -> Widget:
        text = self._texts[name]
        if choices or name in ("tags", "id"):
            suggester = SuggestFromList(choices, case_sensitive=False) if choices else None
            return Input(text, id=f"field-{name}", suggester=suggester, compact=True)
        return _TextField(text, id=f"field-{name}", compact=True, tab_behavior="focus")

    def on_mount(self) -> None:
        self.query_one(f"#field-{self._fields[0][0]}").focus(scroll_visible=False)
        fields = self.query_one("#form-fields")
        self.call_after_refresh(fields.scroll_home, animate=False)

    def take_key(self, key: str, character: str) -> bool:
        """Tab moves on at once: the letter after it may be waiting already."""
        if key == "tab":
            self.focus_next()
        elif key == "shift+tab":
            self.focus_previous()
        else:
            return False
        return True

    def _text_of(self, name: str) -> str:
        widget = self.query_one(f"#field-{name}")
        return widget.text if isinstance(widget, TextArea) else getattr(widget, "value", "")

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """The id of a new case follows its question until one is typed."""
        if self._name_of is not None and event.text_area.id == "field-question":
            field = self.query_one("#field-id", Input)
            if field.value == self._texts["id"]:
                question = event.text_area.text.strip()
                field.value = self._texts["id"] = one_line(
                    self._name_of(question) if question else ""
                )

    def changed(self) -> dict[str, Any]:
        """The fields whose text differs from the text at opening."""
        return {
            name: _as_value(self._text_of(name), kind, name)
            for name, kind, _ in self._fields
            if self._text_of(name) != self._texts[name]
        }

    def action_keep(self) -> None:
        """Hand the changes over; stay open when they are refused."""
        changes = self.changed()
        if not changes:
            self.dismiss("nothing was changed")
            return
        try:
            message = self._submit(changes)
        except ActionRefused as refusal:
            self.query_one("#form-message", Static).update(Content(one_line(str(refusal))))
            return
        self.dismiss(message)

    def action_leave(self) -> None:
        """Leave; asks first when something was typed."""
        if not self.changed():
            self.dismiss(None)
            return

        def answered(key: str | None) -> None:
            if key == "k":
                self.action_keep()
            elif key == "d":
                self.dismiss(None)

        self.app.push_screen(
            Ask("The form was changed.", {"k": "keep the changes", "d": "drop them"}), answered
        )


class NoteForm(Window[tuple[str, bool] | None]):
    """A note, with a flag that marks it as the reason of an open case. Returns both, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False),
        Binding("ctrl+t", "turn", "cannot tell", show=False),
    ]

    def __init__(self, note: str, cannot_tell: bool) -> None:
        super().__init__()
        self._note = one_line(note)
        self._cannot_tell = cannot_tell

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield shown(display("Note to this question"))
            yield Input(self._note, id="note", compact=True)
            yield shown(self._box(), id="cannot-tell")
            yield shown(display("\nEnter keep   Ctrl+t cannot tell   Esc leave"), classes="keys")

    def _box(self) -> DisplayText:
        sign = "[x]" if self._cannot_tell else "[ ]"
        return display(f"{sign} I cannot tell whether it is answerable; the note says why")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss((event.value, self._cannot_tell))

    def action_turn(self) -> None:
        self._cannot_tell = not self._cannot_tell
        self.query_one("#cannot-tell", Static).update(Content(self._box()))


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
