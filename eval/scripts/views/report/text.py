"""Foreign text for a report: cut to a length, and what hides or reorders text made visible."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from terminal.hidden import mark_hidden
from views.report.model import CutText, ReportPart
from views.word_changes import Spans, word_changes


def visible(text: str) -> str:
    """The text with control, direction and invisible characters shown by number.

    Line feeds and tabs stay; a carriage return before a line feed goes. Nothing that is left can
    move the cursor, turn the direction of reading, or hide.
    """
    return mark_hidden(text.replace("\r\n", "\n"), lambda char: f"⟨U+{ord(char):04X}⟩")


def one_line(text: str, limit: int = 200) -> str:
    """The same on one line, cut at ``limit`` characters with an ellipsis."""
    shown = " ".join(visible(text[: limit + 1]).split())
    return shown if len(text) <= limit else f"{shown[:limit]}…"


def cut(text: str | None, limit: int) -> CutText | None:
    """The beginning of a long text; None for none."""
    return None if text is None else shortened(text, limit)


def shortened(text: str, limit: int) -> CutText:
    """A text, at most ``limit`` characters of it; a cut goes between two words where it can."""
    shown = text[:limit]
    if len(text) > limit and not text[limit].isspace():
        from_here = max(0, limit - _LONG_WORD)
        between = max(shown.rfind(blank, from_here) for blank in " \n")
        shown = shown[:between] if between > 0 else shown
    return CutText(shown, len(text) - len(shown))


_LONG_WORD = 40
"""Characters before a cut in which a blank is looked for."""


def page_bytes(value: Any) -> int:
    """Bytes that all strings of a part of a report take on a page, escaped; for a budget."""
    if isinstance(value, str):
        return len(html.escape(visible(value)).encode())
    if isinstance(value, ReportPart):
        return sum(page_bytes(item) for item in value.to_dict().values())
    if isinstance(value, list):
        return sum(page_bytes(item) for item in value)
    return 8


Piece = tuple[str, bool]
"""A shown stretch of a text, and whether the other text has other words there."""


def word_diff(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Two foreign texts in pieces, every second of them different; joined, each is whole.

    The texts are made visible before they are split: a cut could hide what joins two letters.
    """
    texts = visible(before), visible(after)
    both = (_pieces(text, spans) for text, spans in zip(texts, word_changes(*texts), strict=True))
    left, right = both
    return left, right


def _pieces(text: str, spans: Spans) -> list[Piece]:
    pieces = []
    last = 0
    for start, end in spans:
        pieces += [(text[last:start], False), (text[start:end], True)]
        last = end
    pieces.append((text[last:], False))
    return [piece for piece in pieces if piece[0]]


_SPECIAL = re.compile(
    r"[\\`*\[\]|<&~$]"  # anywhere
    r"|(?<!\w)[_@]|_(?!\w)"  # emphasis and mentions; not the signs within recall_all@5
    r"|^[>#+=-]"  # at the beginning of a line
    r"|:(?=//)|(?<=www)\."  # addresses, which readers make links of
)

_TICKS = re.compile("`+")


def markdown_escape(text: str) -> str:
    """A line with every sign that Markdown could read escaped."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def markdown_line(text: str, limit: int = 400) -> str:
    """Foreign text on one line, with every sign that Markdown could read escaped."""
    return markdown_escape(one_line(text, limit))


def markdown_fence(text: str) -> Iterator[str]:
    """A text in a code block whose fence is longer than any run of backticks in it."""
    shown = visible(text)
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(shown)), default=0))
    yield from ("", f"{fence}text", *shown.split("\n"), fence, "")


_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def anchor(case_id: str, repeat: int = 0) -> str:
    """The link target of an answer on the page: ``case-`` and its id, so that a link can be
    written.

    An id with other characters, or a long one, is cut to its plain ones and a hash of the whole.
    """
    name = case_id
    if not _PLAIN_ID.fullmatch(case_id):
        plain = re.sub(r"[^A-Za-z0-9]+", "-", case_id)[:20].strip("-")
        name = f"{plain}:{sha256(case_id.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return f"case-{name}" + (f":r{repeat}" if repeat else "")
