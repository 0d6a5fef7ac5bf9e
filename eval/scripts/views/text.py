"""Foreign text for a document: cut to a length, and what hides or reorders text made visible."""

from __future__ import annotations

import re
from hashlib import sha256

from terminal.hidden import mark_hidden


def visible(text: str) -> str:
    """The text with control, direction and invisible characters shown by number.

    Line feeds and tabs stay; a carriage return before a line feed goes. Nothing that is left can
    move the cursor, turn the direction of reading, or hide.
    """
    return mark_hidden(text.replace("\r\n", "\n"), lambda char: f"⟨U+{ord(char):04X}⟩")


def visible_part(text: str, start: int, end: int | None = None) -> str:
    """A stretch of ``visible(text)``: what joins letters is looked at in the whole text."""
    if not (start or end):
        return visible(text)
    marked = mark_hidden(text.replace("\r\n", " \n"))[start:end]
    return "".join(
        char if char == own else f"⟨U+{ord(own):04X}⟩" if own != "\r" or char != " " else ""
        for char, own in zip(marked, text[start:end], strict=True)
    )


def one_line(text: str, limit: int = 200) -> str:
    """The same on one line, cut at ``limit`` characters with an ellipsis."""
    shown = " ".join(visible(text[: limit + 1]).split())
    return shown if len(text) <= limit else f"{shown[:limit]}…"


def shortened(text: str, limit: int) -> tuple[str, int]:
    """A text, at most ``limit`` characters of it, and how many are left out; a cut goes between two
    words where it can."""
    shown = text[:limit]
    if len(text) > limit and not text[limit].isspace():
        from_here = max(0, limit - _LONG_WORD)
        between = max(shown.rfind(blank, from_here) for blank in " \n")
        shown = shown[:between] if between > 0 else shown
    return shown, len(text) - len(shown)


_LONG_WORD = 40
"""Characters before a cut in which a blank is looked for."""


def left_out_words(left_out: int) -> str:
    """How much of a text is not shown; "" for nothing."""
    return f"… {left_out:,} more characters" if left_out else ""


_SPECIAL = re.compile(
    r"[\\`*\[\]|<&~$]"  # anywhere
    r"|(?<!\w)[_@]|_(?!\w)"  # emphasis and mentions; not the signs within recall_all@5
    r"|^[>#+=-]"  # at the beginning of a line
    r"|:(?=//)|(?<=www)\."  # addresses, which readers make links of
)


def markdown_escape(text: str) -> str:
    """A line with every sign that Markdown could read escaped."""
    return _SPECIAL.sub(r"\\\g<0>", text)


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
