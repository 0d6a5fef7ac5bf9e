"""From a text to its sentences: Markdown blocks first, then sentences by sentencex within each
line.

Everything is done on copies of the same length, so that every span is a span of the original text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from ragmetrics.text.words import clean

MAX_LINE = 4000

UnitKind = Literal["prose", "item", "heading", "table", "code", "stem"]

# A citation mark: [1], [1, 3], [1-3], 【1】, [^1], [[note]], (doc.md), [doc.md] or [internal-001].
# Not a mark: a[0] and x[1] (an index glued to one small letter), [1] = 2 and f[1](x).
_FILE = r"[\w./ -]{1,200}\.(?:md|txt|pdf|html?|rst|docx?)(?:#[\w -]{1,100})?"

MARK = (
    r"(?:(?<!\b[a-z_])\[\^?\d{1,3}(?:\s*[,;–-]\s*\^?\d{1,3})*\](?!\w|\s*=|\()"
    r"|【[^】\n]{1,40}】|\[\[[^\[\]\n]{1,200}\]\]"
    rf"|\({_FILE}\)|\[{_FILE}\](?!\()"
    r"|\[(?=[^\]\n]{0,80}\d)(?=[^\]\n]{0,80}[a-z])[A-Za-z][\w.]{0,80}(?:[-:/#][\w.]{1,80}){1,9}\](?!\())"
)

_FENCE = re.compile(r"^\s*(```|~~~)")

_RULE = re.compile(r"^[\s|:+=*_–—-]*$")

_HEADING = re.compile(r"^\s{0,3}#{1,6}(?:\s|$)")

_BULLET = re.compile(r"^\s*(?:[-*+•·▪◦–]\s+|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]\s+)(?=\S)")

_QUOTE = re.compile(r"^\s*(?:>\s*)+")

_INLINE_ITEM = re.compile(r"(?:(?<=[.:;!?,]\s)|(?<=[.:;!?,]))\(?\d{1,2}[.)]\s+(?=[\"'“A-Z*])")

_NUMBERED = re.compile(r"\d[.)]\s")
"""Stands in whatever holds an item within its line, and is found much quicker."""

_IMAGE = re.compile(r"!\[[^\]\n]{0,300}\]\([^)\n]{0,2000}\)")

_LINK = re.compile(r"(?<=\])\((?:https?:|/|\.|#|mailto:)[^)\n]{0,2000}\)|<https?://[^>\s]{1,2000}>")

_URL = re.compile(r"\bhttps?://[^\s<>\"')\]]{1,2000}|\bwww\.[^\s<>\"')\]]{1,2000}")

_ABBREVIATION = re.compile(
    r"\b(?:eq|fig|vol|no|nos|sec|ch|art|approx|ca|p|pp|dr|mr|mrs|ms|st|prof|inc|ltd|mass|e\.g|i\.e|cf|vs|al|jan|feb|mar"
    r"|apr|jun|jul|aug|sept?|oct|nov|dec)\.\s*$",
    re.IGNORECASE,
)

_LEADING_MARKS = re.compile(rf"\s*(?:{MARK}\s*)+")

_STOP = re.compile(r"[.!?。！？؟…।]")

_BLANK = re.compile(r"\s")

# Thai has no sentence mark, and a blank after a sentence as after a clause: a piece of the usual
# length of a sentence, up to a blank, stands for one.
_THAI = re.compile(r"[\u0e00-\u0e7f]")
_THAI_PIECE = re.compile(r".{150,400}?\s+|.{400}", re.DOTALL)


class Unit(NamedTuple):
    """One sentence, list item, table row or heading: ``text[start:end]`` of the original."""

    start: int
    end: int
    kind: UnitKind


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _mask_comments(text: str) -> str:
    """By hand: a lazy pattern is quadratic on a text full of comment openers."""
    start = text.find("<!--")
    while start >= 0 and (end := text.find("-->", start)) >= 0:
        hidden = "".join(char if char == "\n" else " " for char in text[start : end + 3])
        text = text[:start] + hidden + text[end + 3 :]
        start = text.find("<!--", end + 3)
    return text


def _is_row(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 1 and bare[0] == bare[-1] == "|"


def _mask_markup(text: str) -> str:
    """The text, same length, with images, link targets, URLs and comments turned into spaces."""
    if "](" in text or "<" in text:
        for pattern in (_IMAGE, _LINK):
            text = pattern.sub(_blank, _mask_comments(text))
    if "http" in text or "www." in text:
        text = _URL.sub(_blank, text)
    return text


def _pieces(line: str) -> list[str]:
    """A line in pieces of at most 4,000 characters, cut after a blank where there is one.

    The splitter's time grows with the square of a line's length.
    """
    pieces: list[str] = []
    start = 0
    while len(line) - start > MAX_LINE:
        blank = line.rfind(" ", start + MAX_LINE // 2, start + MAX_LINE)
        end = blank + 1 if blank >= 0 else start + MAX_LINE
        pieces.append(line[start:end])
        start = end
    return [*pieces, line[start:]]


def _cuts(line: str) -> list[int]:
    """Where the sentences of a line end, the last one at the line's end."""
    import sentencex

    ends: list[int] = []
    end = 0
    for piece in _pieces(line):
        # sentencex panics on a blank of several bytes before a full stop ("plan B\u00a0.Then").
        plain = piece if piece.isascii() else _BLANK.sub(" ", piece)
        lengths = [len(sentence) for sentence in sentencex.segment("en", plain)]
        # Never lose text, whatever the splitter did with odd characters.
        for length in lengths if sum(lengths) == len(piece) else [len(piece)]:
            end += length
            ends.append(end)
    return ends


def _ends(line: str) -> tuple[int, ...]:
    if len(line) < 40 and not _STOP.search(line.rstrip()[:-1]):
        return (len(line),)
    if _THAI.search(line):
        ends = [match.end() for match in _THAI_PIECE.finditer(line)]
        return tuple(ends if ends and ends[-1] == len(line) else [*ends, len(line)])
    repaired: list[int] = []
    start = 0
    for end in _cuts(line):
        piece = line[start:end]
        first = piece.lstrip()[:1]
        wordless = not first or first.islower() or not any(map(str.isalnum, piece))
        if repaired and (
            wordless or (first.isdigit() and _ABBREVIATION.search(line[max(0, start - 12) : start]))
        ):
            repaired[-1] = end
        elif repaired and (marks := _LEADING_MARKS.match(piece)):
            repaired[-1] = start + marks.end()
            if marks.end() < len(piece):
                repaired.append(end)
        else:
            repaired.append(end)
        start = end
    return tuple(repaired) or (len(line),)


_known_ends = lru_cache(maxsize=4096)(_ends)


def _sentence_ends(line: str) -> tuple[int, ...]:
    """Where the sentences of one line end, after repair.

    Repairs what the splitter gets wrong: a sentence never starts in lower case or with a citation
    mark (a mark belongs to the sentence before), and no abbreviation before a number ("Eq. 2") ends
    one.
    """
    return _known_ends(line) if len(line) <= MAX_LINE else _ends(line)


def _trimmed(text: str, start: int, end: int, kind: UnitKind) -> Unit | None:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    right = len(piece.rstrip())
    return Unit(start + left, start + right, kind) if left < right else None


def _sentences(masked: str, start: int, end: int, kind: UnitKind) -> list[Unit]:
    line = masked[start:end]
    units: list[Unit] = []
    unit_start = start
    for cut in _sentence_ends(line):
        unit = _trimmed(masked, unit_start, start + cut, kind)
        if unit is not None:
            units.append(unit)
        unit_start = start + cut
    return units


def units(text: str) -> list[Unit]:
    """All units of a text in reading order; empty for a text without a visible character.

    Kinds: ``prose`` and ``item`` (list) hold sentences; ``table`` is one row; ``heading``, ``code``
    (one line) and ``stem`` (a line that ends with a colon) are no claims but do hold words. List
    markers, rule lines and fences belong to no unit.
    """
    return list(_units(text))


@lru_cache(maxsize=16)
def _units(text: str) -> tuple[Unit, ...]:
    """Kept for a few texts: whoever looks for claims has looked for an abstention just before."""
    masked = _mask_markup(clean(text))
    result: list[Unit] = []
    in_code = False
    next_start = 0
    for line in masked.splitlines(keepends=True):
        start, end = next_start, next_start + len(line)
        next_start = end
        if _FENCE.match(line):
            in_code = not in_code
        elif in_code:
            unit = _trimmed(masked, start, end, "code")
            result.extend([unit] if unit else [])
        elif not _RULE.match(line):
            result.extend(_line_units(masked, start, end))
        elif _is_row(line) and result and result[-1].kind == "table":
            header = result.pop()  # the row above the rule line names the columns
            result.append(Unit(header.start, header.end, "heading"))
    return tuple(result)


def _line_units(masked: str, start: int, end: int) -> list[Unit]:
    line = masked[start:end]
    kind: UnitKind = "prose"
    if _HEADING.match(line):
        kind = "heading"
    elif _is_row(line):
        kind = "table"
    else:
        for pattern in (_QUOTE, _BULLET):
            marker = pattern.match(masked[start:end])
            if marker:
                start += marker.end()
                kind = "item" if pattern is _BULLET else kind
    if kind in ("heading", "table"):
        unit = _trimmed(masked, start, end, kind)
        return [unit] if unit else []
    body = masked[start:end]
    if _NUMBERED.search(body) and _INLINE_ITEM.search(body):
        # "steps: 1. Open it. 2. Close it.": each number starts an item, as if on a line of its own.
        items: list[Unit] = []
        item_start = 0
        for marker in _INLINE_ITEM.finditer(body):
            items.extend(_with_stem(masked, start + item_start, start + marker.start(), kind))
            item_start, kind = marker.end(), "item"
        return items + _with_stem(masked, start + item_start, end, kind)
    return _with_stem(masked, start, end, kind)


def _with_stem(masked: str, start: int, end: int, kind: UnitKind) -> list[Unit]:
    """Sentences of a line; a last one that ends with a colon announces and claims nothing."""
    sentences = _sentences(masked, start, end, kind)
    if sentences and masked[sentences[-1].start : sentences[-1].end].rstrip("*_ ").endswith(
        (":", "：")
    ):
        sentences[-1] = Unit(sentences[-1].start, sentences[-1].end, "stem")
    return sentences
