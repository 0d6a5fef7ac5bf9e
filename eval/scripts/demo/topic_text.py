"""Turns one topic of ``pydoc_data.topics`` (Sphinx's plain-text output) into Markdown.

Three things change: underlined titles become ATX headings, indented code and grammar become
fenced blocks, grid tables become pipe tables. All other lines stay as they are.
Example: ``"Title\\n*****\\n\\nText."`` becomes ``"# Title\\n\\nText."``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

FENCE = "```"
DOCTEST = ">>>"
CODE_INDENT = 3  # Sphinx indents a literal block by three columns from the text around it

_UNDERLINE = re.compile(r"""([*=\-~^"+`#'.:_<>])\1*""")
_LIST_ITEM = re.compile(r"(?:[*+-]|\d+[.)]|#\.) +")
_GRID_BORDER = re.compile(r"[+|](?:[-=]+[+|])+")
_ADMONITION = re.compile(r"[A-Z]\w*(?: \w+)?:")
_COMMENT = re.compile(r"(?:^|\s)# ")
_SENTENCE_START = re.compile(r"""[A-Z"*(“]""")
_SENTENCE_END = re.compile(r"""[.:!?][)"*]*(?: \[\d+\])?$""")
_PLAIN_WORDS = re.compile(r"[A-Z][a-z]* (?:[a-z]+|\*\w+\*) ")


def topic_to_markdown(text: str) -> str:
    """The topic as Markdown. Nesting follows the order in which underline characters appear."""
    lines = [line.rstrip() for line in text.expandtabs().splitlines()]
    levels: list[str] = []
    out: list[str] = []
    at = 0
    while at < len(lines):
        after_blank = at == 0 or not lines[at - 1]
        if _is_title(lines, at):
            mark = lines[at + 1][0]
            if mark not in levels:
                levels.append(mark)
            out.append(f"{'#' * min(levels.index(mark) + 1, 6)} {lines[at]}")
            at += 2
        elif _GRID_BORDER.fullmatch(lines[at].strip()):
            end = _end_of(lines, at, lambda line: line.lstrip().startswith(("+", "|")))
            out += _pipe_table(lines[at:end])
            at = end
        elif after_blank and _is_code(lines, at):
            end = _end_of_code(lines, at)
            code = [line[_indent(lines[at]) :] for line in lines[at:end]]
            out += [FENCE, *code, FENCE]
            at = end
        else:
            # A rule of "=" or "-" between paragraphs: as Markdown, it must not underline anything.
            is_rule = _UNDERLINE.fullmatch(lines[at]) and len(lines[at]) > 3 and after_blank
            out.append("---" if is_rule else lines[at])
            at += 1
    return "\n".join(out).strip("\n") + "\n"


def _is_title(lines: list[str], at: int) -> bool:
    """A text line at column 0 after a blank line, underlined by one repeated character."""
    title = lines[at]
    return (
        at + 1 < len(lines)
        and bool(title)
        and title[0] != " "
        and (at == 0 or not lines[at - 1])
        and len(lines[at + 1]) == len(title)
        and _UNDERLINE.fullmatch(lines[at + 1]) is not None
        and _UNDERLINE.fullmatch(title) is None
    )


def _is_code(lines: list[str], at: int) -> bool:
    """Does a doctest or a literal block start here?

    Sphinx's text form indents a literal block below the text that introduces it, but it indents
    the body of a definition just so: only the words can tell the two apart.
    """
    depth = _indent(lines[at])
    if lines[at].lstrip().startswith(DOCTEST):
        return True
    if not lines[at] or _indent_before(lines, at) >= depth:
        return False
    parent = next((line for line in reversed(lines[:at]) if line and _indent(line) < depth), "")
    item = _LIST_ITEM.match(parent.lstrip())
    around = _indent(parent) + (item.end() if item else 0)
    return depth == around + CODE_INDENT and not _is_prose(lines, at)


def _end_of_code(lines: list[str], at: int) -> int:
    """A literal block ends where the indent does; a doctest on the level of the text at a gap."""
    depth = _indent(lines[at])
    end = _end_of(lines, at, bool)
    if _indent_before(lines, at) < depth:
        end = _end_of(lines, at, lambda line: not line or _indent(line) >= depth)
    else:
        while lines[end : end + 1] == [""] and "".join(lines[end + 1 : end + 2]).startswith(
            " " * depth + DOCTEST
        ):
            end = _end_of(lines, end + 1, bool)
    while not lines[end - 1]:
        end -= 1
    return end


def _indent_before(lines: list[str], at: int) -> int:
    return next((_indent(line) for line in reversed(lines[:at]) if line), 0)


def _is_prose(lines: list[str], at: int) -> bool:
    """Prose starts as a sentence does and ends as one; a term is prose if its definition is."""
    end = _end_of(lines, at, bool)
    first = lines[at].strip()
    if any(_COMMENT.search(line) for line in lines[at:end]):
        return False
    if _LIST_ITEM.match(first) or _GRID_BORDER.fullmatch(first) or _ADMONITION.fullmatch(first):
        return True
    sentence_end = _SENTENCE_END.search(lines[end - 1]) is not None
    if _SENTENCE_START.match(first) and (sentence_end or _PLAIN_WORDS.match(first)):
        return True
    body = _end_of(lines, end, lambda line: not line)
    defines = body < len(lines) and _indent(lines[body]) == _indent(lines[at]) + CODE_INDENT
    return defines and _is_prose(lines, body)


def _pipe_table(grid: list[str]) -> list[str]:
    """A grid table, each row on one line; cells keep their words, ``|`` in a cell is escaped."""
    edges = [place for place, sign in enumerate(grid[0]) if sign == "+"]
    rows: list[list[str]] = [[]]
    for line in grid:
        if _GRID_BORDER.fullmatch(line.strip()):
            rows.append([])
            continue
        cells = [line[a + 1 : b].strip() for a, b in pairwise(edges)]
        before = rows[-1] or [""] * len(cells)
        rows[-1] = [f"{a} {b}".strip() for a, b in zip(before, cells, strict=True)]
    body = ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows if row]
    return [*body[:1], "|" + " --- |" * (len(edges) - 1), *body[1:]]


def _end_of(lines: list[str], at: int, belongs: Callable[[str], object]) -> int:
    """The index after the run of lines from ``at`` on that belong together."""
    while at < len(lines) and belongs(lines[at]):
        at += 1
    return at


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
