"""Taking known fields out of a row under any of their names; what is left is told, not lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from converting.notes import Notes
from converting.sources import Row, finite, parsed_list


class Fields:
    """The fields of one row. Every reader takes the first name that has a value.

    Wrong types become problems with file, line and field; the reader then gives None.
    """

    def __init__(self, row: Row, notes: Notes) -> None:
        self.row = row
        self._notes = notes
        self._left = {name: value for name, value in row.fields.items() if value is not None}

    def take(self, *names: str) -> Any:
        """The value of the first name there is, removed from the rest; None when there is none."""
        self.name = next((name for name in names if name in self._left), names[0])
        return self._left.pop(self.name, None)

    def text(self, *names: str) -> str | None:
        """A string."""
        value = self.take(*names)
        if value is None or isinstance(value, str):
            return value
        self.wrong("is no text; write a string")
        return None

    def question(self, *names: str) -> str | None:
        """A string that is not blank; its absence is a problem."""
        value = self.text(*names)
        if value is None and self.name not in self.row.fields:
            self.wrong(f"is missing; write the user's question ({', '.join(names)})")
        elif value is not None and not value.strip():
            self.wrong("is empty; write the user's question")
            return None
        return value

    def texts(self, *names: str, delimiter: str | None = None) -> list[str] | None:
        """A list of strings. In a text: a JSON or Python list, else parted at ``delimiter``."""
        value = self.take(*names)
        if isinstance(value, str):
            found = parsed_list(value)
            if found is None:
                found = value.split(delimiter) if delimiter else [value]
            value = found
        if value is None:
            return None
        if not isinstance(value, list):
            self.wrong("is no list of texts; write the passages as strings")
            return None
        wrong = [place for place, item in enumerate(value) if not isinstance(item, str)]
        for place in wrong:
            self.wrong("is no text; write a string", f"[{place}]")
        return None if wrong else value

    def names(self, *names: str) -> list[str] | None:
        """A list of ids: strings or whole numbers, which become strings."""
        value = self.take(*names)
        if isinstance(value, str):
            value = parsed_list(value) or [value]
        if value is None:
            return None
        sound = isinstance(value, list) and all(
            isinstance(item, str | int) and not isinstance(item, bool) for item in value
        )
        if not sound:
            self.wrong("is no list of ids; write strings")
            return None
        if not all(isinstance(item, str) for item in value):
            self._notes.changed[f"{self.name}: numbers, written as texts"] += 1
        return [str(item) for item in value]

    def number(self, *names: str) -> float | None:
        """A finite number; a CSV cell holds it as a text."""
        value = self.take(*names)
        if value is None:
            return None
        if isinstance(value, str):
            value = finite(value)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            self.wrong("is no finite number")
            return None
        return float(value)

    def replace(self, name: str, value: Any) -> None:
        """Another value for a field that nobody took yet."""
        if name in self._left:
            self._left[name] = value

    def rest(self) -> dict[str, Any]:
        """The fields that nobody took, with a value; counted as kept under metadata."""
        kept = {name: value for name, value in self._left.items() if value not in ([], {}, "")}
        self._left = {}
        self._notes.kept.update(str(name) for name in kept)
        return {str(name): value for name, value in kept.items()}

    def left_out(self, *names: str) -> None:
        """Count fields that have a value and no place on our side."""
        for name in names:
            if self._left.pop(name, None) not in (None, [], {}, ""):
                self._notes.left_out[name] += 1

    def wrong(self, message: str, place: str = "") -> None:
        """A problem of the field that was taken last."""
        field = f"{self.row.place}.{self.name}" if self.row.place else self.name
        self._notes.problem(self.row.path, self.row.line, field + place, message)


def case_id(fields: Fields, notes: Notes, names: Sequence[str] = ("id",)) -> str | None:
    """A row's own id, a number as text; None when it has none."""
    value = fields.take(*names)
    if isinstance(value, int) and not isinstance(value, bool):
        notes.changed["id: a number, written as text"] += 1
        return str(value)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or "\x00" in value:
        fields.wrong("is no id; write a text, or leave it out")
        return None
    return value


def with_rest(case: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """The case without empty fields, and what no script reads under ``metadata``."""
    known = {name: value for name, value in case.items() if value not in (None, [], {})}
    own = rest.pop("metadata", None)
    extra = own | rest if isinstance(own, dict) else rest | ({"metadata": own} if own else {})
    return known | ({"metadata": extra} if extra else {})
