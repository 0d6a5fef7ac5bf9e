"""A text put together from foreign and own pieces, with styled stretches and named parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from terminal.page import (
    Block,
    Heading,
    Labelled,
    PassageBlock,
    Prose,
    Quotation,
    Sides,
    Tag,
    TextMark,
    TimeBar,
    Tone,
    Words,
    plain_words,
)
from terminal.safe_text import SHOWN_LIMIT, DisplayText, display, one_line, wrap
from terminal.text_pane import Mark

_STYLES: dict[Tone | None, str] = {
    "good": "good",
    "bad": "bad",
    "doubt": "warn",
    "quiet": "dim",
    "strong": "term",
    None: "",
}
"""The style of a tone."""

_ASCII = str.maketrans({"✓": "+", "✗": "x", "‼": "!", "·": ".", "→": ">"})

CHANGED = "term"
"""The style of words that differ: bold and underlined, so that it needs no colour."""

LABEL_WIDTH, WIDEST_LABEL = 18, 40

CHUNK_INDENT = 8

ITEM_INDENT = 4

BAR_WIDTH = 16
"""Cells of the bar that shows when a step ran."""

SHORT_CHUNK, SHORT_LINES = 260, 4
"""Characters of a chunk that are shown until the whole is asked for; its lines on a wide page."""

WORD = 40
"""Characters of the longest word that is kept whole where a text is cut."""

HUGE = SHOWN_LIMIT - 16
"""Characters of one chunk that are shown in full."""


class Doc:
    """Grows at its end. ``text`` is harmless to show; ``marks`` are offsets in it.

    ``width``: cells of a line, for texts that are wrapped with an indent; 0: they are not.
    """

    def __init__(self, *, ascii_only: bool = False, width: int = 0) -> None:
        self.ascii = ascii_only
        self.width = width
        self._pieces: list[str] = []
        self._size = 0
        self.marks: list[Mark] = []

    @property
    def text(self) -> DisplayText:
        return DisplayText("".join(self._pieces))

    @property
    def rows(self) -> int:
        """Number of lines of the text so far on a page of its width."""
        lines = self.text.removesuffix("\n").split("\n")
        return sum(len(wrap(DisplayText(line), self.width)) for line in lines)

    def add(self, text: str, style: str = "") -> int:
        """Append a text, made harmless, its beginning if it is huge. Returns where it begins."""
        shown = display(text)
        if len(text) > SHOWN_LIMIT:
            shown = display(f"{shown} … (cut: {len(text)} characters)", 2 * SHOWN_LIMIT)
        start = self._size
        self._pieces.append(shown)
        self._size += len(shown)
        if style and shown:
            self.marks.append((start, self._size, style))
        return start

    def line(self, text: str = "", style: str = "") -> None:
        """Append a text and a newline."""
        self.add(text, style)
        self.add("\n")

    def part(self, title: str, note: str = "") -> None:
        """Begin a part: a blank line, unless it is the first, and its title."""
        if self._size:
            self.add("\n")
        dash = "--" if self.ascii else "──"
        self.add(f"{dash} {one_line(title, 300)} {dash}", "rule")
        self.line(f" {one_line(note, 300)}" if note else "", "dim")

    def pair(self, label: str, text: str, style: str = "", *, width: int = LABEL_WIDTH) -> None:
        """A labelled value: the label in a column of its own, ``width`` cells wide."""
        self.add(f"{one_line(label, 60):<{width}} ", "key")
        self.hang(text, width + 1, style)

    def hang(self, text: str, indent: int, style: str = "") -> None:
        """A text whose further lines begin below its first one, ``indent`` cells from the left."""
        shown = display(text)
        if self.width > 2 * indent:
            breaks = wrap(shown, self.width - indent)
            pieces = [shown[start:end] for start, end in breaks]
        else:
            pieces = shown.split("\n")
        for number, piece in enumerate(pieces):
            self.add(" " * indent if number else "")
            self.line(piece, style)

    def draw(self, blocks: Iterable[Block], *, full: bool = False) -> None:
        """Append blocks of a page. ``full``: passages as a whole, not their beginnings."""
        for labelled, group in groupby(blocks, lambda block: isinstance(block, Labelled)):
            if labelled:
                self._pairs([block for block in group if isinstance(block, Labelled)])
            else:
                for block in group:
                    self._draw(block, full=full)

    def _pairs(self, blocks: Sequence[Labelled]) -> None:
        """Labelled values below each other, in a column that has room for their names."""
        width = min(max(LABEL_WIDTH, *(len(block.label) for block in blocks)), WIDEST_LABEL)
        for block in blocks:
            text, style = self._plain(block.words), _STYLES[block.tone]
            self.pair(self._plain(block.label), text, style, width=width)

    def _draw(self, block: Block, *, full: bool) -> None:
        if isinstance(block, Heading):
            self.part(plain_words(block.words), block.note)
        elif isinstance(block, Prose):
            self._prose(block)
        elif isinstance(block, Quotation):
            self.answer(block.text, block.marks, block.changed)
        elif isinstance(block, PassageBlock):
            self._passage(block, full=full)
        elif isinstance(block, Sides):
            for title, side in zip(("Base", "New"), (0, 1), strict=True):
                self.part(f"{title}: {block.names[side]}")
                self.draw((own for row in block.rows for own in row[side]), full=full)

    def _prose(self, block: Prose) -> None:
        """A line, or an item of a list below the one that it belongs to."""
        indent = ITEM_INDENT * max(0, block.item - 1)
        self.add(" " * indent)
        parts = block.words if isinstance(block.words, tuple) else (block.words,)
        if len(parts) > 1 and isinstance(parts[0], Tag):
            self.add(self._plain(parts[0]), _STYLES[parts[0].tone])
            parts = parts[1:]
        text = "".join(map(self._plain, parts))
        self.hang(text, indent or ITEM_INDENT * block.item, _STYLES[block.tone])

    def _plain(self, words: Words) -> str:
        """Words as text; a bar as cells of two kinds."""
        parts = words if isinstance(words, tuple) else (words,)
        text = "".join(
            self._bar(part) if isinstance(part, TimeBar) else plain_words(part) for part in parts
        )
        return text.translate(_ASCII) if self.ascii else text

    def _bar(self, bar: TimeBar) -> str:
        full, free = ("#", ".") if self.ascii else ("█", "░")
        start = min(BAR_WIDTH - 1, int(bar.start * BAR_WIDTH))
        size = max(1, min(BAR_WIDTH - start, round((bar.start + bar.size) * BAR_WIDTH) - start))
        return free * start + full * size + free * (BAR_WIDTH - start - size)

    def answer(
        self,
        text: str,
        claims: Sequence[TextMark] = (),
        changed: Sequence[tuple[int, int]] = (),
    ) -> None:
        """A text with its claims coloured, each followed by its sign.

        ``changed``: stretches whose words another answer does not have; they are underlined.
        """
        begins: list[tuple[int, int]] = []
        """Offsets in the text, and where the stretch that begins there stands in the document."""
        written = 0
        for claim in claims:
            begins.append((written, self.add(text[written : claim.start])))
            style = _STYLES[claim.tone]
            begins.append((claim.start, self.add(text[claim.start : claim.end], style)))
            self.add(f" {self._plain(claim.sign)}", style)
            written = claim.end
        begins.append((written, self.add(text[written:])))
        self.line()
        ends = [offset for offset, _ in begins[1:]] + [min(len(text), SHOWN_LIMIT)]
        for (offset, begin), stop in zip(begins, ends, strict=True):
            for left, right in changed:
                left, right = max(left, offset), min(right, stop)
                if left < right:
                    mark = (begin + left - offset, begin + right - offset, CHANGED)
                    self.marks.append(mark)

    def _passage(self, passage: PassageBlock, *, full: bool) -> None:
        tags = "".join(f" [{tag.text}]" for tag in passage.tags if tag.tone != "good")
        style = "good" if passage.gold else "key"
        self.add(f"{passage.rank:>2} {'GOLD' if passage.gold else '':<5}", style)
        head = f"{one_line(passage.place, 400)}{tags}  {passage.note}"
        self.hang(head, CHUNK_INDENT, style if passage.gold else "dim")
        limit = None if full else max(SHORT_CHUNK, SHORT_LINES * (self.width - CHUNK_INDENT))
        text = passage.text if full else squeezed(passage.text)
        self.passage(text, passage.snippets, limit)
        if passage.length and full:
            self.line(f"(cut when it was stored; {passage.length} characters long)", "dim")

    def passage(self, text: str, snippets: Sequence[str], limit: int | None) -> None:
        """A chunk's text with gold snippets marked; around the first one when it is cut."""
        stretches = _find_snippets(text[:SHOWN_LIMIT], snippets)
        first, last = 0, len(text)
        if len(text) > (limit or HUGE):
            if limit and stretches and stretches[0][1] > limit:
                first = max(0, stretches[0][0] - limit // 3)
                if first:
                    first = max(first, text.find(" ", first, stretches[0][0]) + 1)
            last = _word_end(text, min(len(text), first + (limit or HUGE)))
        head, tail = "…" if first else "", " …" if last < len(text) else ""
        shown = display(f"{head}{text[first:last]}{tail}")
        shift = len(head) - first
        indent = CHUNK_INDENT if limit is not None and self.width > 2 * CHUNK_INDENT else 0
        breaks = wrap(shown, self.width - indent) if indent else [(0, len(shown))]
        for start, end in breaks:
            self.add(" " * indent)
            begin = self.add(shown[start:end])
            self.line()
            for left, right in stretches:
                left, right = max(left + shift, start), min(right + shift, end)
                if left < right:
                    self.marks.append((begin + left - start, begin + right - start, "marked"))


def level(left: Doc, right: Doc) -> None:
    """Fill the shorter document with empty lines: what is added to both stands side by side."""
    if left.width:
        less = left.rows - right.rows
        (right if less > 0 else left).add("\n" * abs(less))


Blank = Callable[[], Doc]
"""Makes an empty document for the page in view."""


def _find_snippets(text: str, snippets: Sequence[str]) -> list[tuple[int, int]]:
    """Where the snippets stand in a text, whatever its line breaks; in order."""
    spans = []
    for snippet in snippets:
        words = snippet[:2000].split()
        if words:
            pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
            spans += [match.span() for match in pattern.finditer(text)]
    return sorted(spans)


def _word_end(text: str, end: int) -> int:
    """The end of the last whole word before ``end``; ``end`` where no word ends near it."""
    blank = text.rfind(" ", max(0, end - WORD), end + 1)
    return end if blank < 0 or end >= len(text) else blank


def squeezed(text: str) -> str:
    """A text with runs of blanks and newlines as one blank, for its beginning in a few lines."""
    return re.sub(r"\s+", " ", text[:SHOWN_LIMIT]).strip()
