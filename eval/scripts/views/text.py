"""Texts of a document: foreign ones made visible, scores in words, and the words that differ."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
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


def score(value: float | None) -> str:
    """A score on at most 6 characters; a dash for none."""
    if value is None or math.isnan(value):
        return "-"
    if value == int(value) and abs(value) < 10_000:
        return str(int(value))
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.4g}"


def score_pair(before: float | None, after: float | None, most: int = 6) -> tuple[str, str]:
    """Two scores with as many decimals as show that they differ; the same text when `most` do not.

    Scores are written with six decimals: what differs by less is the same.
    """
    pair = score(before), score(after)
    if before is None or after is None or "-" in pair:
        return pair
    for digits in range(3, most + 1):
        if float(pair[0]) != float(pair[1]):
            return pair
        pair = f"{before:.{digits}f}", f"{after:.{digits}f}"
    return pair if float(pair[0]) != float(pair[1]) else (score(after), score(after))


Spans = list[tuple[int, int]]
"""Start and end offsets in a text, in order."""

_WORD = re.compile(r"\w+|[^\w\s]")

_LEAST_COMMON = 0.3
"""Share of the shorter text's words that must be common for the others to be marked."""

_MOST_PAIRS = 4_000_000
"""Pairs of words that are compared exactly; beyond, frequent words do not count as matches."""


def word_changes(before: str, after: str) -> tuple[Spans, Spans]:
    """The stretches of each text whose words the other one does not have at that place.

    Words and signs are compared as they are written, blanks and line breaks are not. Neighbouring
    words that differ are one stretch. None where less than 30 % of the shorter one is common.
    """
    left, right = (list(_WORD.finditer(text)) for text in (before, after))
    words, others = ([match.group() for match in side] for side in (left, right))
    exact = len(left) * len(right) <= _MOST_PAIRS
    matcher = difflib.SequenceMatcher(None, words, others, autojunk=not exact)
    spans: tuple[Spans, Spans] = ([], [])
    common = sum(block.size for block in matcher.get_matching_blocks())
    if common < _LEAST_COMMON * min(len(words), len(others)):
        return spans
    for tag, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        if tag != "equal":
            _add(spans[0], left, left_start, left_end)
            _add(spans[1], right, right_start, right_end)
    return spans


def same_words(before: str, after: str) -> bool:
    """Whether two texts differ in blanks and line breaks at most."""
    return _WORD.findall(before) == _WORD.findall(after)


def _add(spans: Spans, words: Sequence[re.Match[str]], start: int, end: int) -> None:
    if start < end:
        spans.append((words[start].start(), words[end - 1].end()))
