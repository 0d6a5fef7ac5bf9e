"""A text put together from foreign and own pieces, with styled stretches and named parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from terminal.safe_text import SHOWN_LIMIT, DisplayText, display, one_line, wrap
from terminal.text_pane import Mark
from views.case import Claim, Verdict

STYLES: dict[Verdict, str] = {
    "supported": "good",
    "unsupported": "warn",
    "contradicted": "bad",
    "unclear": "key",
    "skipped": "dim",
}

SAYS: dict[Verdict, str] = {
    "supported": "supported",
    "unsupported": "not supported",
    "contradicted": "contradicted",
    "unclear": "unclear",
    "skipped": "not judged",
}

SIGNS: dict[Verdict, tuple[str, str]] = {
    "supported": ("✓", "+"),
    "unsupported": ("✗", "x"),
    "contradicted": ("‼", "!"),
    "unclear": ("?", "?"),
    "skipped": ("·", "."),
}
"""A sign for each colour, so that colour alone carries no meaning; the second one in ASCII."""

CHANGED = "term"
"""The style of words that differ: bold and underlined, so that it needs no colour."""

LABEL_WIDTH = 18

CLAIM_INDENT = 17

CHUNK_INDENT = 8

CLAIM_LIMIT = 160

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

    def sign(self, verdict: Verdict) -> str:
        """The sign of a verdict."""
        return SIGNS[verdict][self.ascii]

    def answer(
        self, text: str, claims: Sequence[Claim], changed: Sequence[tuple[int, int]] = ()
    ) -> None:
        """An answer with its claims coloured, each followed by its sign.

        ``changed``: stretches whose words another answer does not have; they are underlined.
        """
        begins: list[tuple[int, int]] = []
        """Offsets in the answer, and where the stretch that begins there stands in the document."""
        written = 0
        for claim in sorted(claims, key=lambda claim: claim.span or (0, 0)):
            if claim.span is None:
                continue
            start, end = claim.span
            if not written <= start < end <= len(text):
                continue  # overlaps the one before, or belongs to another answer
            begins.append((written, self.add(text[written:start])))
            begins.append((start, self.add(text[start:end], STYLES[claim.verdict])))
            self.add(f" {self.sign(claim.verdict)}", STYLES[claim.verdict])
            written = end
        begins.append((written, self.add(text[written:])))
        self.line()
        ends = [offset for offset, _ in begins[1:]] + [min(len(text), SHOWN_LIMIT)]
        for (offset, begin), stop in zip(begins, ends, strict=True):
            for left, right in changed:
                left, right = max(left, offset), min(right, stop)
                if left < right:
                    mark = (begin + left - offset, begin + right - offset, CHANGED)
                    self.marks.append(mark)

    def claim(self, claim: Claim, where: str = "", quote: str = "") -> None:
        """A claim with its verdict in words."""
        style = STYLES[claim.verdict]
        word = one_line(claim.word.replace("_", " ") or SAYS[claim.verdict], 40)
        verdict = f"{self.sign(claim.verdict)} {word}"
        self.add(f"{verdict:<{CLAIM_INDENT - 1}} ", style)
        notes = " · ".join(part for part in (where, one_line(claim.note, 400)) if part)
        self.hang(notes, CLAIM_INDENT, "dim")
        said_of = f'quote: "{_shortened(quote, 600)}"' if quote else ""
        for text, text_style in ((_shortened(claim.text), ""), (said_of, "dim")):
            if text:
                self.add(" " * CLAIM_INDENT)
                self.hang(text, CLAIM_INDENT, text_style)

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


def _shortened(text: str, limit: int = CLAIM_LIMIT) -> str:
    """The beginning of a text on one line: it stands in full elsewhere."""
    shown = squeezed(text)
    return f"{shown[: _word_end(shown, limit)].rstrip()} …" if len(shown) > limit else shown


def _word_end(text: str, end: int) -> int:
    """The end of the last whole word before ``end``; ``end`` where no word ends near it."""
    blank = text.rfind(" ", max(0, end - WORD), end + 1)
    return end if blank < 0 or end >= len(text) else blank


def squeezed(text: str) -> str:
    """A text with runs of blanks and newlines as one blank, for its beginning in a few lines."""
    return re.sub(r"\s+", " ", text[:SHOWN_LIMIT]).strip()
