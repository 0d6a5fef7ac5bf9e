"""Foreign text made safe to draw: the only way from a chunk, a question or an error to the screen.

What goes in: any string. What comes out: `DisplayText`, a string of the SAME LENGTH in which no
character can reach the terminal as a command or reorder the line. Because every character is
replaced by exactly one other, an offset in the shown text is an offset in the original; snippets
and anchors are cut from the original with it.

Widgets of this folder take `DisplayText` only, and build `Content` or `Segment` from it, never
markup. `display` is idempotent, so composed lines may be passed through it again.
"""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, get_character_cell_size

from terminal.hidden import REPLACED, mark_hidden

SHOWN_LIMIT: Final = 64 * 1024
"""Characters of one text that are shown before the reader asks for all of it."""


class DisplayText(str):
    """Text that has passed `display`; the type says so to the reader and to mypy."""

    __slots__ = ()


def _mark(char: str) -> str:
    """C0 and DEL become control pictures, everything else U+FFFD."""
    return chr(0x2400 + ord(char)) if char < " " else "\u2421" if char == "\x7f" else REPLACED


def display(text: str, limit: int = SHOWN_LIMIT) -> DisplayText:
    """The shown form of the first `limit` characters: as long as they, newline kept, harmless."""
    text = text[:limit]
    if text.isascii() and text.isprintable():
        return DisplayText(text)
    lines = text.replace("\r\n", " \n").replace("\u2028", "\n").replace("\u2029", "\n")
    return DisplayText(mark_hidden(lines.replace("\t", " "), _mark))


def one_line(text: str, limit: int = 4096) -> DisplayText:
    """`text` on one line, newlines as spaces, at most `limit` characters of it."""
    return DisplayText(display(text[:limit]).replace("\n", " "))


def cells(text: DisplayText) -> int:
    """Width of `text` in terminal cells."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: DisplayText, width: int, *, right: bool = False) -> DisplayText:
    """`text` cut or padded to exactly `width` cells (never negative); `…` marks a cut."""
    if width <= 0:
        return DisplayText("")
    size = cells(text)
    if size > width:
        text = DisplayText(text[: fitting(text, width - 1)] + "…")
        size = cells(text)
    pad = " " * max(0, width - size)
    return DisplayText(pad + text if right else text + pad)


def fit_middle(text: DisplayText, width: int) -> DisplayText:
    """`text` cut in its middle or padded to exactly `width` cells: ids differ at their ends."""
    if cells(text) <= width or width < 5:
        return fit(text, width)
    start = len(text) - width // 2
    while cells(DisplayText(text[start:])) > width // 2:
        start += 1
    while start < len(text) - 1 and not cells(DisplayText(text[start])):
        start += 1  # a mark that belongs to the character before it
    tail = text[start:]
    head = text[: fitting(text, width - 1 - cells(DisplayText(tail)))]
    return fit(DisplayText(f"{head}…{tail}"), width)


def fitting(text: str, width: int, start: int = 0) -> int:
    """The largest end offset for which `text[start:end]` takes at most `width` cells.

    Zero-width characters stay with the character they follow; a run of them is cut at four times
    the width, so that no line grows without bound.
    """
    limit = min(len(text), start + 4 * max(width, 1))
    if text.isascii():
        return min(len(text), start + width)
    used = 0
    for index in range(start, limit):
        char = text[index]
        # Variation selector 16 can make the character before it one cell wider.
        used += 1 if char == "\ufe0f" else get_character_cell_size(char)
        if used > width:
            return index
    return limit


def wrap(text: DisplayText, width: int) -> list[tuple[int, int]]:
    """Line breaks of `text` at `width` cells: `(start, end)` offsets, one pair a shown line.

    Breaks at the last space that fits, else inside the word. The newline or space that was broken
    at belongs to no line. An empty text has one empty line.
    """
    width = max(1, width)
    lines: list[tuple[int, int]] = []
    start = 0
    for paragraph in text.split("\n"):
        _wrap_paragraph(paragraph, start, width, lines)
        start += len(paragraph) + 1
    return lines


def _wrap_paragraph(text: str, base: int, width: int, lines: list[tuple[int, int]]) -> None:
    length = len(text)
    plain = text.isascii()
    start = 0
    while True:
        if plain:
            end = min(length, start + width)
        else:
            end = max(fitting(text, width, start), min(length, start + 1))
        if end >= length:
            lines.append((base + start, base + length))
            return
        if text[end] == " ":
            lines.append((base + start, base + end))
            start = end + 1
            continue
        space = text.rfind(" ", start + 1, end)
        if space > 0:
            lines.append((base + start, base + space))
            start = space + 1
        else:
            lines.append((base + start, base + end))
            start = end
