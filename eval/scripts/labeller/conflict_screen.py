"""Conflicts: what was changed here and, differently, in the file; a choice for each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from terminal.safe_text import display
from terminal.text_pane import Mark, TextWindow

if TYPE_CHECKING:
    from labeller.ports import Conflict, Store


def _value_text(values: dict[str, Any] | None, field: str) -> str:
    if values is None:
        return "(no such question)"
    if field not in values:
        return "(not there)"
    value = values[field]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def conflict_text(conflict: Conflict) -> tuple[str, list[Mark]]:
    """The fields of a conflict, each as it was, as it is here and as it is in the file."""
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

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
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
        text, marks = conflict_text(conflict)
        moved = [(start + len(head), end + len(head), name) for start, end, name in marks]
        self.pane.show(display(head + text), [(0, len(head) - 2, "warn"), *moved])

    def action_take(self, choice: str) -> None:
        if self._store.conflicts:
            self._say(self._store.resolve(self._store.conflicts[0], choice))
            self.show_text()
