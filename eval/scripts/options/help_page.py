"""The pages of --help: headings of long lists of options, examples that fit, exit codes."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

MOST_UNGROUPED = 14
"""Options of a command that stand in one list; more are put under headings."""

OPTION_COLUMN = 30

_COMMON = "Common options"
HEADINGS = {
    _COMMON: (
        "--run --api-url --profile --header --judge --model --metrics --sections"
        " --k --labels --run-id --resume --label --baseline --suite --by --worst --worst-by --gates"
        " --flips --fail-on --name --case --from-run --plain"
    ),
    "Data": (
        "--eval-set --labels-dir --results-dir --filter --limit --targets --plugin --repeat"
        " --from-jsonl --shards --vault --index --annotator"
    ),
    "Statistics": (
        "--cluster --power --margin --seed --max-drop"
        " --varied --ignore-invariants --flips-by --confidence-by --allow-missing"
        " --match --gain --min-similarity"
    ),
    "Server and cost": (
        "--set --save-judge --max-error-rate --retry-errors --max-cost --offline --cache-dir --jobs"
        " --embedding-model --scheduler"
    ),
    "Other options": "",
    "Output": (
        "--json --markdown --junit --html --format --output --save-trace --store-full-text"
        " -v --verbose -q --quiet -h --help"
    ),
}
"""Headings of a long command's help, and the options of each; what none names is another one."""


def heading_of(names: Sequence[str]) -> str:
    """The heading under which an option of these names stands."""
    return next(
        (
            heading
            for heading, options in HEADINGS.items()
            if not set(names).isdisjoint(options.split())
        ),
        "Other options",
    )


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
    lines: list[str] = []
    depth = -1
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if depth >= 0 and indent > depth and line.strip():
            lines[-1] = f"{lines[-1].removesuffix(chr(92)).rstrip()} {line.strip()}"
        elif START.match(line) and indent:
            lines.append(line.strip())
            depth = indent
        else:
            depth = -1
    return lines


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
    return ([f"{indent}# {comment}"] if mark else []) + [part.rstrip() for part in lines]


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
