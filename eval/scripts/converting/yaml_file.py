"""YAML read as plain values, by the rules of YAML 1.2, with a bound on what aliases expand to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

from storage import StorageError

MOST_NODES = 1_000_000
"""Values in one YAML document after its aliases are followed; more is an attack or no test file."""
_YAML_TYPES = {
    "bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    "int": (r"^[-+]?[0-9]+$", "-+0123456789"),
    "float": (r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+0123456789."),
    "null": (r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    "merge": (r"^(?:<<)$", "<"),
}
"""The types of plain words in YAML 1.2: ``yes``, ``12:30`` and dates stay texts."""
_BLANK = "\0 \t\r\n\x85\u2028\u2029"
"""What PyYAML takes as the end of a word: blanks, line ends, and the end of the text."""


def read_yaml(path: Path) -> Any:
    """A YAML document of plain values. Raises StorageError for what is none, or grows without end.

    Only strings, numbers, true, false and null, lists and maps: no tag builds an object.
    """
    import yaml  # type: ignore[import-untyped]

    try:
        value = yaml.load(path.read_bytes(), _loader())
        _check_nodes(value)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "not YAML"
        raise StorageError(f"{path}{line}: {what}.") from None
    except (RecursionError, ValueError) as error:
        what = str(error) if isinstance(error, ValueError) else "is nested too deeply"
        raise StorageError(f"{path}: {what}.") from None
    return value


def _loader() -> Any:
    """PyYAML's safe loader with YAML 1.2's types, and its question mark in ``[…]`` and ``{…}``.

    PyYAML ends a plain text there at any ``?``, as YAML 1.1 had it; since 1.2 it is a mark of a key
    only before a space, and otherwise a letter like others: ``[Who wrote A?, Who wrote B?]``.
    """
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

        def check_key(self) -> bool:
            return self.peek(1) in _BLANK

        def check_plain(self) -> bool:
            begins = self.flow_level and self.peek() == "?"
            return self.peek(1) not in _BLANK + ",[]{}" if begins else super().check_plain()

        def scan_plain(self) -> Any:
            if not self.flow_level:
                return super().scan_plain()
            peek = self.peek
            # The scanner looks ahead with peek, and takes the text itself with prefix.
            self.__dict__["peek"] = lambda index=0: peek(index).replace("?", "x")
            try:
                return super().scan_plain()
            finally:
                del self.__dict__["peek"]

    for name, (pattern, first) in _YAML_TYPES.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(pattern), list(first))
    return Loader


def _check_nodes(value: Any) -> None:
    """Raise ValueError for values that JSON cannot hold, and for too many after aliases."""
    waiting, seen = [value], 0
    while waiting:
        node = waiting.pop()
        seen += 1
        if seen + len(waiting) > MOST_NODES:
            raise ValueError(f"its aliases expand to more than {MOST_NODES} values")
        if isinstance(node, dict):
            waiting.extend(node)
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, int | float):
            if not -(2.0**63) <= node < 2.0**63:
                raise ValueError(f"holds the number {str(node)[:20]}, which JSON does not carry")
        elif not isinstance(node, str | None):
            raise ValueError(f"holds a {type(node).__name__}; write plain values only")
