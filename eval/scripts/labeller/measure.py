"""Measuring, cutting and wrapping display text in terminal cells."""

from __future__ import annotations

from rich.cells import cell_len, get_character_cell_size

from labeller.display import DisplayText


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
