"""Line breaks of a text: prose is set anew for the width, code and tables keep their lines.

Texts of passages are often broken at 72 columns where they were written. On a narrow pane such
lines would break a second time, and on a wide one two thirds would stay empty.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from terminal.safe_text import DisplayText, cells, wrap

PROSE_WIDTH: Final = 100
"""Cells of a line of prose at most: longer lines are hard to follow to the next one."""

_BROKEN_FROM: Final = 48
"""A paragraph whose longest line is shorter than this was not broken by a width."""

_ITEM: Final = re.compile(r" {0,12}(?:[-*+•]|\d{1,3}[.)]|\[\d+\]) +")
"""The sign of a list item."""

_VERBATIM: Final = re.compile(
    r"\s*(?:[|+>#=~^:`]|\.\. |-{3,}|\${1,2} |\w+://)"  # table, quote, heading, directive
    r"|\s*[\w.]+(?:\[.*\])?(?:\(| [-+*/|&%]?= )"  # a call, an assignment
    r"|\s*(?:def|class|if|elif|else|for|while|with|try|except|async|match|case)\b.*:$"
    r"|.*(?:\S {3,}\S|[{};\\│║┃]$|\t)"  # columns, the ends of lines of code
)
"""A line that stands by itself."""

_FENCE: Final = re.compile(r" {0,3}(```|~~~)")

_RUN: Final = re.compile(r"\n *")


class TextLine(NamedTuple):
    """A shown line: `text[start:end]` after `indent` blanks; line ends inside it are blanks."""

    start: int
    end: int
    indent: int = 0


def as_is(text: DisplayText, width: int, hang: int = 0) -> list[TextLine]:
    """The lines of `text`, each broken at `width` cells; continuations are indented by `hang`."""
    hang = hang if width >= 2 * hang else 2 if hang else 0
    lines = []
    start = 0
    for line in text.split("\n"):
        lines += _hanging(DisplayText(line), start, width, hang)
        start += len(line) + 1
    return lines


def reflowed(text: DisplayText, width: int) -> list[TextLine]:
    """The lines of `text` on `width` cells, paragraphs of prose set anew up to `PROSE_WIDTH`."""
    prose = min(width, PROSE_WIDTH)
    lines: list[TextLine] = []
    for start, end, is_prose in _blocks(text):
        block = DisplayText(text[start:end])
        if is_prose:
            lines += _paragraph(block, start, prose)
        else:
            lines += _hanging(block, start, width, 0)
    return lines


def drawn(text: str) -> DisplayText:
    """A stretch of a shown line as drawn: a line end and the indent behind it are a blank."""
    return DisplayText(_RUN.sub(" ", text)) if "\n" in text else DisplayText(text)


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Stretches of `text`: a line that keeps its end, or a paragraph of prose, and which it is."""
    lines = text.split("\n")
    longest = _paragraph_widths(lines)
    start = position = 0
    fenced = ""
    open_block = False
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        stands_alone = bool(fenced or fence) or not line.strip() or _is_verbatim(lines, number)
        if fence and not fenced:
            fenced = fence[1]
        elif fence and fence[1] == fenced:
            fenced = ""
        goes_on = open_block and not stands_alone and _continues(lines, number, longest[number])
        if not goes_on:
            if open_block:
                yield start, position - 1, True
            start, open_block = position, not stands_alone
            if stands_alone:
                yield position, position + len(line), False
        position += len(line) + 1
    if open_block:
        yield start, len(text), True


def _paragraph_widths(lines: list[str]) -> list[int]:
    """For each line the length of the longest one between the blank lines around it."""
    widths = [0] * len(lines)
    start = 0
    for number in range(len(lines) + 1):
        if number == len(lines) or not lines[number].strip():
            longest = max(map(len, lines[start:number]), default=0)
            widths[start:number] = [longest] * (number - start)
            start = number + 1
    return widths


def _is_verbatim(lines: list[str], number: int) -> bool:
    line = lines[number]
    if _VERBATIM.match(line):
        return True
    below = lines[number + 1].strip() if number + 1 < len(lines) else ""
    # A title, underlined by a row of signs.
    return len(below) > 2 and len(set(below)) == 1 and not below[0].isalnum()


def _continues(lines: list[str], number: int, longest: int) -> bool:
    """Was the end of the line before this one put there by a width, and not by the writer?"""
    before, line = lines[number - 1], lines[number]
    if _ITEM.match(line):
        return False
    item = _ITEM.match(before)
    indent = len(line) - len(line.lstrip())
    expected = len(before) - len(before.lstrip())
    if indent != expected and not (item and indent <= item.end()):
        return False
    if not _BROKEN_FROM <= longest <= 130:
        return False
    first_word = line.split(None, 1)[0]
    return len(before.rstrip()) + 1 + len(first_word) > longest


def _paragraph(block: DisplayText, base: int, width: int) -> list[TextLine]:
    """A paragraph set anew; the lines of a list item hang below its first word."""
    item = _ITEM.match(block)
    hang = item.end() if item else len(block) - len(block.lstrip(" "))
    hang = min(hang, width // 3)
    if "\n" not in block:
        return _hanging(block, base, width, hang)
    # Breaks are found where each line end with its indent is one blank, and moved back.
    flat, positions, offsets, at = "", [0], [0], 0
    for run in _RUN.finditer(block):
        flat += block[at : run.start()] + " "
        at = run.end()
        positions.append(len(flat))
        offsets.append(at)
    flat += block[at:]

    def moved(place: int) -> int:
        index = bisect_right(positions, place) - 1
        return base + offsets[index] + place - positions[index]

    lines = []
    for line in _hanging(DisplayText(flat), 0, width, hang):
        start, end = moved(line.start), base
        if line.end > line.start:
            end = moved(line.end - 1) + 1
        lines.append(TextLine(start, max(start, end), line.indent))
    return lines


def _hanging(line: DisplayText, base: int, width: int, hang: int) -> list[TextLine]:
    """One line broken at `width` cells; all pieces but the first stand `hang` cells in."""
    if cells(line) <= width:
        return [TextLine(base, base + len(line))]
    if not hang:
        return [TextLine(base + start, base + end) for start, end in wrap(line, width)]
    end = wrap(line, width)[0][1]
    pieces = [TextLine(base, base + end)]
    rest = end + (line[end : end + 1] == " ")
    for start, stop in wrap(DisplayText(line[rest:]), max(1, width - hang)):
        pieces.append(TextLine(base + rest + start, base + rest + stop, hang))
    return pieces
