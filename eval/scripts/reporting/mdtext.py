"""Text, fences and tables of a Markdown file; foreign text stays text in all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from reporting.text import one_line, visible

SPECIAL = re.compile(
    r"[\\`*\[\]|<&~$]"  # anywhere
    r"|(?<!\w)[_@]|_(?!\w)"  # emphasis and mentions; not the signs within recall_all@5
    r"|^[>#+=-]"  # at the beginning of a line
    r"|:(?=//)|(?<=www)\."  # addresses, which readers make links of
)
_TICKS = re.compile("`+")
Rows = Iterable[Sequence[str]]


def safe(text: str, limit: int = 400) -> str:
    """Foreign text on one line, with every sign that Markdown could read escaped."""
    return SPECIAL.sub(r"\\\g<0>", one_line(text, limit))


def fenced(text: str) -> Iterator[str]:
    """A text in a code block whose fence is longer than any run of backticks in it."""
    shown = visible(text)
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(shown)), default=0))
    yield from ("", f"{fence}text", *shown.split("\n"), fence, "")


def table(head: Sequence[str], rows: Rows, text: int = 1) -> Iterator[str]:
    """A table whose first ``text`` columns are left-aligned; cells are escaped."""
    yield ""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * text + "---:|" * (len(head) - text)
    for row in rows:
        yield "| " + " | ".join(safe(cell) for cell in row) + " |"
    yield ""
