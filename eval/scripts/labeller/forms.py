"""The windows that ask for something: a passage's path, the fields of a case, a note."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Offset
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static, TextArea

from labeller.edits import Field
from labeller.lines import path_of
from labeller.windows import LIMIT
from terminal.actions import ActionRefused
from terminal.lists import Line, LineList
from terminal.safe_text import DisplayText, display, one_line
from terminal.windows import Ask, Bindings, Window, shown

Anchor = tuple[str, str]
"""Path of a file, and a heading path with ` > ` between its headings."""


def ranked(typed: str, texts: Iterable[str]) -> list[str]:
    """The texts with every word of `typed` in any case, best first; all if nothing is typed."""
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

    BINDINGS: ClassVar[Bindings] = [("escape", "leave"), ("down", "step(1)"), ("up", "step(-1)")]

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        super().__init__()
        self._anchors = {" > ".join(filter(None, pair)): pair for pair in sorted(set(anchors))}
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


def _as_text(value: object, name: str) -> str:
    """A field's value as the form shows it."""
    if isinstance(value, list):
        return (", " if name == "tags" else "\n").join(map(str, value))
    return "" if value is None else str(value)


class _TextField(TextArea):
    """A field of several lines, whose cursor may stand below a text that undo made shorter.

    Undoing a line break can take the scroll bar away: TextArea then looks for one that is gone."""

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        if self.cursor_location[0] >= self.document.line_count:
            return Offset(0, 0)  # undo and redo move the cursor next, which comes here again
        return super().scroll_cursor_visible(center, animate)


class CaseForm(Window[str | None]):
    """Edits the fields of one case. `submit` gets the changed ones and returns a message; if it
    raises ActionRefused the form says why and stays open: nothing typed is lost."""

    BINDINGS: ClassVar[Bindings] = [("ctrl+s", "keep"), ("escape", "leave")]

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
        self._title, self._fields, self._submit = one_line(title), fields, submit
        self._name_of = name
        self._values = values
        self._texts = {k: display(_as_text(values.get(k), k), LIMIT) for k, _, _ in fields}

    def compose(self) -> ComposeResult:
        with Vertical(id="form"):
            yield shown(self._title, classes="form-title")
            with VerticalScroll(id="form-fields", can_focus=False):
                for name, kind, choices in self._fields:
                    label = LABELS.get(name, name)
                    if kind != "lines" and self._texts[name] != str(self._values.get(name) or ""):
                        label += " (with hidden characters, which an edit makes visible signs)"
                    if choices:
                        label += f" ({', '.join(choices)}; Right takes the suggestion)"
                    yield shown(display(label), classes="form-label")
                    text, field = self._texts[name], f"field-{name}"
                    if choices or name in ("tags", "id"):
                        suggester = SuggestFromList(choices, case_sensitive=False)
                        yield Input(text, id=field, suggester=suggester, compact=True)
                    else:
                        yield _TextField(text, id=field, compact=True, tab_behavior="focus")
            yield shown(display(""), id="form-message")
            keys = "Ctrl+s keep   Tab next field   Shift+Tab field before   Esc leave"
            yield shown(display(keys), classes="keys")

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
            field, question = self.query_one("#field-id", Input), event.text_area.text.strip()
            if field.value == self._texts["id"]:
                name = self._name_of(question) if question else ""
                field.value = self._texts["id"] = one_line(name)

    def changed(self) -> dict[str, Any]:
        """The fields whose text was changed; an untouched line of a list keeps its characters."""
        changes: dict[str, Any] = {}
        for name, kind, _ in self._fields:
            text = self._text_of(name)
            if text != self._texts[name]:
                parts = map(str.strip, text.split("," if name == "tags" else "\n"))
                items = self._values.get(name) or ()
                own = {display(str(item), LIMIT).strip(): item for item in items}
                value = [own.get(part, part) for part in parts if part]
                changes[name] = value if kind == "lines" else text.strip()
        return changes

    def action_keep(self) -> None:
        """Hand the changes over; stay open when they are refused."""
        changes = self.changed()
        try:
            self.dismiss(self._submit(changes) if changes else "nothing was changed")
        except ActionRefused as refusal:
            self.query_one("#form-message", Static).update(Content(one_line(str(refusal))))

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

        answers = {"k": "keep the changes", "d": "drop them"}
        self.app.push_screen(Ask("The form was changed.", answers), answered)


class NoteForm(Window[tuple[str, bool] | None]):
    """A note, with a flag that marks it as the reason of an open case. Returns both, or None."""

    BINDINGS: ClassVar[Bindings] = [("escape", "leave"), ("ctrl+t", "turn")]

    def __init__(self, note: str, cannot_tell: bool) -> None:
        super().__init__()
        self._note, self._cannot_tell = one_line(note), cannot_tell

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
