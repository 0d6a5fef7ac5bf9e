"""The tables of config.toml for several scripts: how screens look, how traces are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from options.commands import config_file
from records.settings import KeyRule, check_keys, from_pairs
from records.toml_files import TomlReader
from records.tool_passages import tool_forms

SCREEN = {
    "ascii": KeyRule("yes", "Draw rules and marks in ASCII."),
    "mouse": KeyRule("yes", "false leaves the mouse to the terminal."),
    "theme": KeyRule("text", "dark, light, or a theme of Textual."),
    "keymap": KeyRule("text", "A TOML file of action = key lines."),
}
"""Settings of full screens: keys of ``[screen]`` in config.toml, and of ``--set``."""


TRACES = {
    "keep_ids": KeyRule("yes", "false: ids of users and sessions become keyed hashes."),
    "documents": KeyRule("text", "Folder of the documents, to know their names in tools' results."),
    "tools": KeyRule("table", "How the passages in a tool's results are read, by its name."),
}
"""How traces are read: keys of ``[traces]`` in config.toml."""


def _own_table(name: str, rules: Mapping[str, KeyRule]) -> tuple[dict[str, Any], TomlReader]:
    """The good values of a table of config.toml, and the reader that notes what is wrong."""
    path, raw = config_file()
    reader = TomlReader(str(path), path)
    table = reader.read(raw.get(name, {}), dict[str, Any], (name,))
    return check_keys(reader, table or {}, rules, (name,)), reader


def trace_settings(compiled: Callable[[str], Any]) -> dict[str, Any]:
    """The values of ``TRACES`` that config.toml gives: ``tools`` as forms, ``documents`` as names.

    ``compiled`` makes a function of an expression. Raises StorageError with every problem.
    """
    own, reader = _own_table("traces", TRACES)
    folder, tools = own.get("documents"), own.get("tools", {})
    if folder and not Path(folder).is_dir():
        reader.wrong(("traces", "documents"), "is no folder; write the one with the documents")
    forms = tool_forms(tools, compiled, reader, ("traces", "tools"))
    reader.end()
    files = Path(folder).rglob("*") if folder else ()
    names = frozenset(f.relative_to(str(folder)).as_posix() for f in files if f.is_file())
    return {"keep_ids": False} | own | {"tools": forms, "documents": names}


def screen_settings(
    pairs: Iterable[str], others: Mapping[str, KeyRule] | None = None
) -> dict[str, Any]:
    """The values of ``SCREEN`` that config.toml or ``pairs``, which count more, give.

    ``others``: keys that a message about an unknown one names, too. Raises StorageError with every
    problem.
    """
    own, reader = _own_table("screen", SCREEN)
    reader.end()
    chosen = own | from_pairs(pairs, {**SCREEN, **(others or {})})
    return chosen | ({"keymap": Path(chosen["keymap"])} if "keymap" in chosen else {})


def is_of_screen(pair: str) -> bool:
    """Is a pair of ``--set`` a setting of the screen?"""
    return pair.partition("=")[0].strip() in SCREEN
