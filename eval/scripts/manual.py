"""What --help says besides the options: examples and exit codes, from the script's docstring.

Examples are folded at the width of the page, so that a narrow terminal breaks none of them.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

START = re.compile(r".*\bpython eval/scripts/\w+\.py\b")
WORD = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+|['\"]")
USUAL_EXITS = "Exit codes: 0 done, 2 bad input or usage, 130 interrupted."
"""What holds for every script; one that ends otherwise says so itself."""


def docstring(callback: Callable[..., Any] | None) -> str:
    """The docstring of the module that a command's function stands in."""
    module = sys.modules.get(getattr(callback, "__module__", ""))
    return inspect.cleandoc((getattr(module, "__doc__", None) or "").replace("\b\n", ""))


def examples(text: str) -> list[str]:
    """The command lines of a docstring; a line that goes on is joined to the next."""
    found: list[str] = []
    depth = -1
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if depth >= 0 and indent > depth and line.strip():
            found[-1] = f"{found[-1].removesuffix(chr(92)).rstrip()} {line.strip()}"
        elif START.match(line) and indent:
            found.append(line.strip())
            depth = indent
        else:
            depth = -1
    return found


def exit_codes(text: str) -> str | None:
    """The sentence of a docstring that begins with ``Exit codes:``, on one line."""
    match = re.search(r"^Exit codes:.*?(?=\n\s*\n|\Z)", text, re.DOTALL | re.MULTILINE)
    return " ".join(match[0].split()) if match else None


def folded(page: str, width: int) -> str:
    """The page with every longer call of a script on several lines, as a shell takes them.

    A comment behind the call goes onto a line of its own above it.
    """
    return "\n".join(
        part
        for line in page.splitlines()
        for part in (_folded(line, width) if len(line) > width and START.match(line) else [line])
    )


def _folded(line: str, width: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    call, mark, comment = line.strip().partition(" # ")
    lines = [indent]
    for unit in _units(call):
        if len(lines[-1]) + len(unit) + len(" \\") > width and lines[-1].strip():
            lines[-1] = lines[-1].rstrip() + " \\"
            lines.append(f"{indent}    ")
        lines[-1] += f"{unit} "
    return ([f"{indent}# {comment}"] if mark else []) + [one.rstrip() for one in lines]


def _units(call: str) -> list[str]:
    """The words of a call; an option stays with its value, python with its script."""
    units: list[str] = []
    for word in WORD.findall(call):
        before = units[-1] if units else ""
        takes = before == "python" or (before.startswith("--") and " " not in before)
        if takes and not word.startswith(("-", "&", "|", "<", ">", "\\")):
            units[-1] = f"{before} {word}"
        else:
            units.append(word)
    return units
