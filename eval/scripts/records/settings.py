"""Settings that users write into a file, or change for one call by ``--set KEY=VALUE``.

from_pairs(["rpm=30"], LIMITS)     # {"rpm": 30.0}
from_pairs(["timeout=0"], LIMITS)  # --set: timeout: must be a number above 0, up to 86400
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from records.toml_files import KeyPath, Line, Parsed, TomlReader, unknown

VARIABLE_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
"""The name of an environment variable, in capitals: a key that is pasted in its place rarely is."""


def _variable(value: Any) -> Any:
    if isinstance(value, str) and VARIABLE_NAME.fullmatch(value):
        return value
    raise ValueError(
        "takes the name of an environment variable, such as OPENAI_API_KEY, not the key"
    )


_FORMS: Mapping[str, Any] = {
    "text": Line,
    "yes": bool,
    "texts": list[Line],
    "variable": Annotated[str, Parsed(_variable)],
    "table": Annotated[
        dict[str, Any], Meta(description='on the command line such as {"top_k": 5}')
    ],
}


class KeyRule(msgspec.Struct, frozen=True):
    """The values that one key takes.

    ``kind``: text, number, whole, yes (true or false), choice, variable, texts (a list), or table
    (keys of any name; on the command line as JSON).
    ``low`` and ``high``: bounds of a number; ``above``: ``low`` itself is outside.
    """

    kind: str
    about: str
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    choices: tuple[str, ...] = ()

    @property
    def form(self) -> Any:
        """The type of the values."""
        if self.kind == "choice":
            return Literal[self.choices]
        if self.kind not in ("number", "whole"):
            return _FORMS[self.kind]
        low, high = (None if math.isinf(end) else end for end in (self.low, self.high))
        bounds = Meta(gt=low, le=high) if self.above else Meta(ge=low, le=high)
        return Annotated[int, bounds] if self.kind == "whole" else Annotated[float, bounds]

    def read(self, text: str) -> Any:
        """The value that a text on the command line means; the text itself if it means none."""
        if self.kind == "yes":
            return {"true": True, "false": False}.get(text.lower(), text)
        if self.kind == "texts":
            return [part.strip() for part in text.split(",") if part.strip()]
        readers: dict[str, Callable[[str], Any]]
        readers = {"whole": int, "number": float, "table": json.loads}
        try:
            return readers.get(self.kind, str)(text)
        except ValueError:
            return text


def check_keys(
    reader: TomlReader, table: Mapping[str, Any], rules: Mapping[str, KeyRule], key: KeyPath = ()
) -> dict[str, Any]:
    """Checks a table of settings and returns its good values, unchanged.

    Unknown keys and bad values are noted in the reader.
    """
    good = {}
    for name, value in table.items():
        faults = len(reader.problems)
        if name in rules:
            reader.read(value, rules[name].form, (*key, name))
        else:
            reader.wrong((*key, name), unknown(name, rules))
        if len(reader.problems) == faults:
            good[name] = value
    return good


def from_pairs(
    pairs: Iterable[str], settings: Mapping[str, KeyRule], option: str = "--set"
) -> dict[str, Any]:
    """The values of ``KEY=VALUE`` texts; of two for one key the later counts.

    Raises StorageError with every problem.
    """
    values: dict[str, Any] = {}
    reader = TomlReader(option)
    for pair in pairs:
        key, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            reader.wrong((), "write KEY=VALUE, such as timeout=30")
        elif key not in settings:
            reader.wrong((key,), unknown(key, settings))
        elif settings[key].kind == "texts":
            values[key] = [*values.get(key, ()), *settings[key].read(text)]
        else:
            values[key] = settings[key].read(text)
    check_keys(reader, values, settings)
    reader.end()
    return values
