"""What --help says besides the options: examples and exit codes, from the script's docstring."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

START = re.compile(r".*\bpython eval/scripts/\w+\.py\b")
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
