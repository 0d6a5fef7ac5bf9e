"""The notes that the embedded bot answers from without a folder: the Python reference.

In: ``pydoc_data.topics`` (inside every interpreter). Out: a list of Note, in a fixed order.
Example: ``python_reference()[0].rel_path`` is ``"data-model/attribute-access.md"``.
"""

from __future__ import annotations

import re
from itertools import pairwise
from textwrap import dedent

from documents.sections import Note

AREAS = {
    "data-model": "attribute-access callable-types context-managers customization numeric-types "
    "objects sequence-types specialnames types",
    "debugging": "debugger",
    "execution": "dynamic-features exceptions execmodel naming",
    "expressions": "atom-identifiers atom-literals attribute-references await binary bitwise "
    "booleans calls comparisons conversions dict exprlists in lambda lists operator-summary power "
    "shifting slicings subscriptions unary",
    "lexical": "floating id-classes identifiers imaginary integers numbers strings",
    "statements": "assert assignment async augassign break class compound continue del else for "
    "function global if import nonlocal pass raise return try while with yield",
    "stdtypes": "bltin-code-objects bltin-ellipsis-object bltin-null-object bltin-type-objects "
    "specialattrs truth typesfunctions typesmapping typesmethods typesmodules typesseq "
    "typesseq-mutable",
    "text": "formatstrings string-methods",
}
"""The topics of each folder; one that is missing here is in the folder ``other``."""


def python_reference() -> list[Note]:
    """The language reference of the running interpreter, one note a topic, by rel_path.

    The texts differ a little between Python versions.
    """
    from pydoc_data.topics import topics

    folders = {topic: area for area, names in AREAS.items() for topic in names.split()}
    notes = [
        Note("python", f"{folders.get(name, 'other')}/{name}.md", _topic_to_markdown(text))
        for name, text in topics.items()
    ]
    return sorted(notes, key=lambda note: note.rel_path)


CODE_INDENT = 3  # columns by which Sphinx indents literal blocks, and the bodies of definitions

_TITLE = re.compile(r"""(\S.*)\n([*=\-~^"+`#'.:_<>])\2*""")
_GRID_BORDER = re.compile(r" *[+|](?:[-=]+[+|])+$", re.MULTILINE)
_LIST_ITEM = re.compile(r"(?:[*-]|\d+\.) +")
_SENTENCE = re.compile(r"""[A-Z"*(“].*[.:]\)?""", re.DOTALL)
_PLAIN_WORDS = re.compile(r"[A-Z][a-z]* (?:[a-z]+|\*\w+\*) ")
_COMMENT = re.compile(r"\s# ")


def _topic_to_markdown(text: str) -> str:
    """The topic as Markdown. Titles nest in the order in which underline characters appear."""
    lines = [line.rstrip() for line in text.expandtabs().splitlines()]
    blocks = re.split(r"\n\n+", "\n".join(lines).strip("\n"))
    levels: list[str] = []
    parts: list[str] = []
    at = 0
    while at < len(blocks):
        block, end = blocks[at], at + 1
        above = blocks[at - 1].rpartition("\n")[2] if at else ""
        title = _TITLE.fullmatch(block)
        if title and 2 * len(title[1]) + 1 == len(block):
            levels += [] if title[2] in levels else [title[2]]
            block = f"{'#' * min(levels.index(title[2]) + 1, 6)} {title[1]}"
        elif _GRID_BORDER.match(block):
            block = _pipe_table(block.split("\n"))
        elif _is_code(block, above):
            depth = _indent(block)
            start = " " * depth + ("" if _indent(above) < depth else ">>>")
            while end < len(blocks) and blocks[end].startswith(start):
                end += 1
            code = dedent("\n\n".join(blocks[at:end]))
            block = f"```\n{code}\n```"
        elif re.fullmatch("=+|-+", block):  # a rule: it must not underline anything
            block = "---"
        parts.append(block)
        at = end
    return "\n\n".join(parts) + "\n"


def _is_code(block: str, above: str) -> bool:
    """Does a doctest or a literal block start here? ``above`` is the last line before it.

    A literal block is indented like the body of a definition: only its words show that it is no
    prose, which starts as a sentence does and ends as one.
    """
    text = block.lstrip(" ")
    if text.startswith(">>>"):
        return True
    item = _LIST_ITEM.match(above.lstrip(" "))
    around = _indent(above) + (item.end() if item else 0)
    is_prose = _LIST_ITEM.match(text) or _SENTENCE.fullmatch(text) or _PLAIN_WORDS.match(text)
    is_code = not is_prose or _COMMENT.search(block) is not None
    return is_code and _indent(block) == around + CODE_INDENT


def _pipe_table(grid: list[str]) -> str:
    """A grid table, each row on one line; cells keep their words, ``|`` in a cell is escaped."""
    edges = [column for column, sign in enumerate(grid[0]) if sign == "+"]
    rows: list[list[str]] = []
    for line in grid:
        if _GRID_BORDER.match(line):
            rows.append([""] * (len(edges) - 1))
        else:
            cells = [line[a + 1 : b].strip() for a, b in pairwise(edges)]
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
    body = ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows[:-1]]
    return "\n".join([*body[:1], "|" + " --- |" * (len(edges) - 1), *body[1:]])


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))
