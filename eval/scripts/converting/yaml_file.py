"""YAML read as plain values, by the rules of YAML 1.2, with a bound on what aliases expand to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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


def read_yaml(path: Path) -> Any:
    """A YAML document of plain values. Raises StorageError for what is none, or grows without end.

    Only strings, numbers, true, false and null, lists and maps: no tag builds an object.
    """
    import yaml  # type: ignore[import-untyped]

    loader: Any = type("Loader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": {}})
    for name, (pattern, first) in _YAML_TYPES.items():
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(pattern), list(first))
    try:
        value = yaml.load(path.read_bytes(), loader)
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
