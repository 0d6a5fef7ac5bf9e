"""On which line of a TOML file a key stands: the standard parser does not tell."""

from __future__ import annotations

import tomllib
from typing import Any

Place = tuple[str, ...]


def key_lines(text: str) -> dict[Place, int]:
    """The line of each table and each ``key = value``, by its path of names.

    Items of an array of tables share the path; the first counts. What a parser of lines cannot see
    (a key inside an inline table) is left out.
    """
    found: dict[Place, int] = {}
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            path = _path(stripped.partition("#")[0] + "\n")
            if path:
                table = path
                found.setdefault(table, number)
        elif "=" in stripped and not stripped.startswith("#"):
            for place, char in enumerate(stripped):
                path = _path(f"{stripped[:place]} = 0\n") if char == "=" else None
                if path:
                    found.setdefault(table + path, number)
                    break
    return found


def _path(text: str) -> Place | None:
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
