"""Settings that users write into a file, or change for one call by ``--set KEY=VALUE``.

LIMITS["timeout"].fault(0)         # "must be a number above 0, up to 86400"
from_pairs(["rpm=30"], LIMITS)     # {"rpm": 30.0}
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from records.errors import Problem, StorageError
from records.file_access import MAX_SETTINGS, read_whole

VARIABLE_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
"""The name of an environment variable, in capitals: a key that is pasted in its place rarely is."""


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

    def fault(self, value: Any) -> str | None:
        """Why a value is refused, with the remedy, as a clause; None for a good one. No clause
        shows the value: it may be a secret in the wrong place."""
        if self.kind in ("number", "whole"):
            return None if self._within(value) else f"must be {self._numbers()}"
        if self.kind == "yes":
            return None if isinstance(value, bool) else "must be true or false"
        if self.kind == "choice":
            known = value in self.choices if isinstance(value, str) else False
            return None if known else f"must be one of {', '.join(self.choices)}"
        if self.kind == "texts":
            fine = isinstance(value, list) and all(map(_is_text, value))
            return None if fine else "must be a list of texts"
        if self.kind == "table":
            fine = isinstance(value, dict)
            return None if fine else 'must be a table, on the command line such as {"top_k": 5}'
        if not _is_text(value):
            return "must be one line of text"
        if self.kind == "variable" and not VARIABLE_NAME.fullmatch(value):
            return "takes the name of an environment variable, such as OPENAI_API_KEY, not the key"
        return None

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

    def _within(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if self.kind == "whole" and not isinstance(value, int):
            return False
        return self.low <= value <= self.high and not (self.above and value == self.low)

    def _numbers(self) -> str:
        noun = "a whole number" if self.kind == "whole" else "a number"
        low = f"above {self.low:g}, " if self.above else f"from {self.low:g} "
        return f"{noun} {low}up to {self.high:.12g}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def check_table(
    table: Mapping[str, Any],
    settings: Mapping[str, KeyRule],
    source: str,
    prefix: str = "",
    text: str = "",
) -> list[Problem]:
    """Every unknown key and every bad value of a parsed table. ``text``: of the file, for lines."""
    problems = []
    for key, value in table.items():
        fault = settings[key].fault(value) if key in settings else unknown(key, settings)
        if fault is not None:
            line = line_of(text, f"{prefix}{key}")
            problems.append(Problem(source, line, f"{prefix}{key}", fault))
    return problems


def text_of(path: Path) -> str:
    """The text of a TOML file that was read already, for the lines of its problems."""
    return read_whole(path, MAX_SETTINGS).decode("utf-8")


def unknown(key: str, settings: Iterable[str]) -> str:
    """The message for an unknown key."""
    import difflib  # slow to load

    near = difflib.get_close_matches(key, list(settings), 1)
    hint = f"write {near[0]}" if near else f"known here: {', '.join(settings)}"
    return f"is unknown; {hint}"


def from_pairs(
    pairs: Iterable[str], settings: Mapping[str, KeyRule], option: str = "--set"
) -> dict[str, Any]:
    """The values of ``KEY=VALUE`` texts; of two for one key the later counts.

    Raises StorageError with every problem.
    """
    values: dict[str, Any] = {}
    problems = []
    for pair in pairs:
        key, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            problems.append(Problem(option, None, "", "write KEY=VALUE, such as timeout=30"))
        elif key not in settings:
            problems.append(Problem(option, None, key, unknown(key, settings)))
        elif settings[key].kind == "texts":
            values[key] = [*values.get(key, ()), *settings[key].read(text)]
        else:
            values[key] = settings[key].read(text)
    problems += check_table(values, settings, option)
    if problems:
        raise StorageError.from_problems(problems)
    return values


def line_of(text: str, dotted: str) -> int | None:
    """The line of a TOML text that gives the key ``table.key`` its value, or opens that table; None
    if none is found."""
    return key_lines(text).get(tuple(dotted.split(".")))


KeyPath = tuple[str, ...]


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of each table and each ``key = value``, by its path of names.

    Items of an array of tables share the path; the first counts. What a parser of lines cannot see
    (a key inside an inline table) is left out.
    """
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            path = _path(stripped.partition("#")[0] + "\n")
            if path:
                table = path
                lines.setdefault(table, number)
        elif "=" in stripped and not stripped.startswith("#"):
            for position, char in enumerate(stripped):
                path = _path(f"{stripped[:position]} = 0\n") if char == "=" else None
                if path:
                    lines.setdefault(table + path, number)
                    break
    return lines


def _path(text: str) -> KeyPath | None:
    """The only path of names that a piece of TOML makes; None when it is no TOML."""
    try:
        node: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    path: list[str] = []
    while True:
        if isinstance(node, list):
            node = node[0] if node else None
        if not isinstance(node, dict) or not node:
            return tuple(path) or None
        name, node = next(iter(node.items()))
        path.append(name)


def toml_key(name: str) -> str:
    """A key as TOML writes it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_table(name: str, values: Mapping[str, Any]) -> list[str]:
    """The lines of a table below an empty line; none for an empty table."""
    lines = [f"{toml_key(k)} = {toml_value(v)}" for k, v in values.items() if v is not None]
    return ["", f"[{name}]", *lines] if values else []


def toml_value(value: Any) -> str:
    """A value in TOML, on one line; values without a form in TOML (null) are left out."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items() if v is not None)
        return "{ " + ", ".join(pairs) + " }" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(item) for item in value if item is not None) + "]"
    return json.dumps(value)
