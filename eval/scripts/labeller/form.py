"""The form of a case: every field that people write, one under the other.

A field that was not touched is not returned, so a value with characters that cannot be shown stays
as it was in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from terminal.actions import ActionRefused
from terminal.safe_text import DisplayText, display, one_line
from terminal.windows import Ask, Window, shown

LIMIT = 1 << 20

LABELS = {
    "question": "Question",
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


def as_text(value: object, kind: str, name: str) -> str:
    """A field's value as the form shows it."""
    if value is None:
        return ""
    if isinstance(value, list):
        return (", " if name == "tags" else "\n").join(str(part) for part in value)
    return str(value)


def as_value(text: str, kind: str, name: str) -> object:
    """What the form's text stands for: a list without empty entries, or the stripped text."""
    if kind == "lines":
        parts = text.split(",") if name == "tags" else text.split("\n")
        return [part.strip() for part in parts if part.strip()]
    return text.strip()


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
    ) -> None:
        super().__init__()
        self._title = one_line(title)
        self._fields = fields
        self._submit = submit
        self._texts = {
            name: display(as_text(values.get(name), kind, name), LIMIT) for name, kind, _ in fields
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
        if choices or name == "tags":
            suggester = SuggestFromList(choices, case_sensitive=False) if choices else None
            return Input(text, id=f"field-{name}", suggester=suggester, compact=True)
        return TextArea(text, id=f"field-{name}", compact=True, tab_behavior="focus")

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

    def changed(self) -> dict[str, Any]:
        """The fields whose text differs from what the form opened with."""
        return {
            name: as_value(self._text_of(name), kind, name)
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
    """A note, and whether it is the reason for "cannot tell". Returns both, or None."""

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

    def action_leave(self) -> None:
        self.dismiss(None)
