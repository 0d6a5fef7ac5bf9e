"""An answer as its reader sees it: what wraps it is form, and no rule of a text may depend on it.

Wrappings are thoughts before the answer, JSON, one fence around all of it, HTML, a table of one
column, and marks of emphasis. A fence around a part of an answer, and code, stay as they are.
"""

from __future__ import annotations

import html.entities
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ragmetrics.text.words import clean

_MOST_LAYERS = 4
"""Wrappings inside each other that are taken off, such as JSON in a fence."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text without its wrappings; ``starts`` and ``ends`` are the places of each character.

    Both are None when nothing was taken off.
    """

    text: str
    starts: Sequence[int] | None = None
    ends: Sequence[int] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A span of ``text`` as a span of the original, without wrappings at its ends."""
        if self.starts is None or self.ends is None or start >= end:
            return start, end
        return self.starts[start], self.ends[end - 1]


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def plain(text: str) -> PlainText:
    """The cleaned text without its wrappings, and the way back; the last 64 usual ones are kept."""
    text = clean(text)
    if not any(sign in text for sign in _SIGNS) and not text.lstrip().startswith(_FIRST_SIGNS):
        return PlainText(text)
    return (_known_plain if len(text) <= _USUAL_LENGTH else _plain)(text)


_USUAL_LENGTH = 20_000

_SIGNS, _FIRST_SIGNS = "*_#&<", ("{", '"', "|", "`", "~")
"""Every wrapping has one of the former, or begins with one of the latter."""


def _plain(text: str) -> PlainText:
    read = PlainText(text)
    for _ in range(_MOST_LAYERS):
        before = read
        for find in _WRAPPINGS:
            edits = list(find(read.text))
            if edits:
                read = _edited(read, edits)
        if read is before:
            break
    return read


_known_plain = lru_cache(maxsize=64)(_plain)


def _edited(read: PlainText, edits: Sequence[_Edit]) -> PlainText:
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    old_starts = read.starts or range(len(read.text))
    old_ends = read.ends or range(1, len(read.text) + 1)
    at = 0
    for edit in (*edits, _Edit(len(read.text), len(read.text), "")):
        pieces += [read.text[at : edit.start], edit.text]
        starts.extend(old_starts[at : edit.start])
        ends.extend(old_ends[at : edit.start])
        if edit.text:
            starts += [old_starts[edit.start]] * len(edit.text)
            ends += [old_ends[edit.end - 1]] * len(edit.text)
        at = edit.end
    return PlainText("".join(pieces), starts, ends)


# Thoughts: what a reasoning model writes before its answer.

_THOUGHTS = ("think", "thinking", "reasoning")


def _thoughts(text: str) -> Iterator[_Edit]:
    """Also without the opening mark, which templates put into the prompt."""
    for name in _THOUGHTS:
        closing = f"</{name}>"
        end = text.find(closing)
        if end >= 0:
            opening = text.find(f"<{name}>", 0, end)
            if opening < 0 or not text[:opening].strip():
                yield _Edit(0, end + len(closing), "")
                return


# JSON: an object with one text that is the answer.

_ANSWER_KEYS = (
    *("answer", "final_answer", "response", "reply", "text", "content", "message", "output"),
    *("output_text", "result", "completion"),
)

_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u....|\\.")

_BLANKS = re.compile(r"\s*")

_DECODER = json.JSONDecoder()


def _json(text: str) -> Iterator[_Edit]:
    """The text under the first key that names an answer; of an object with one key, its text."""
    bare = text.strip()
    if not (bare[:1] + bare[-1:] in ("{}", '""') and _is_json(bare)):
        return
    start = len(text) - len(text.lstrip())
    for _ in range(_MOST_LAYERS):
        if text[start] == "{":
            start = _answer_in(text, start)
    if start < 0 or text[start] != '"':
        return
    _, end = _DECODER.raw_decode(text, start)
    yield _Edit(0, start + 1, "")
    for escape in _ESCAPE.finditer(text, start + 1, end - 1):
        yield _Edit(*escape.span(), clean(json.loads(f'"{escape[0]}"')))
    yield _Edit(end - 1, len(text), "")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _answer_in(text: str, start: int) -> int:
    """Where the value that is the answer begins in an object of valid JSON; -1 for none."""
    values: dict[str, int] = {}
    at = _after_blanks(text, start + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, _after_blanks(text, at))
        begin = _after_blanks(text, _after_blanks(text, at) + 1)
        values[str(key).casefold()] = begin
        _, at = _DECODER.raw_decode(text, begin)
        at = _after_blanks(text, at)
        at += text[at] == ","
    answers = [values[key] for key in _ANSWER_KEYS if key in values]
    return answers[0] if answers else next(iter(values.values())) if len(values) == 1 else -1


def _after_blanks(text: str, at: int) -> int:
    return _BLANKS.match(text, at).end()  # type: ignore[union-attr]


# A fence: a wrapping only when it is around the whole answer, and what is in it is no code.

_FENCE = re.compile(r"(?m)^[ \t]*(?:`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*(?:\r?\n|\Z)")

_SENTENCE_END = re.compile(r"[.!?…。！？।][\"'”’»*_)]*\s*$")

_PROSE = frozenset(("", "text", "txt", "plain", "plaintext", "markdown", "md", "json"))
"""What the opening mark of a fence may name that is no programming language."""

_CODE_LINE = re.compile(
    r"[;{}\[(,]\s*$|^\s*[\]})]|^\s*(?:[$#>]\s|//|@\w|(?:def|class|import|from|return|for|while"
    r"|const|let|var|function|select|public|private|static)\s\S)|[\w\])]\s*[-+*/:]?=+\s*\S|->|=>"
    r"|::|\w\([^)]*\)\s*:?$|^\s*[\w-]+:\s*[\w\"'./-]+$|^\s*<[/\w]",
    re.IGNORECASE,
)


_SPAN = re.compile(r"\s*(`)([^`\n]+)(`)\s*")


def _fence(text: str) -> Iterator[_Edit]:
    """A fence, or a code span with a sentence, when the whole answer is in it."""
    if (span := _SPAN.fullmatch(text)) and _SENTENCE_END.search(span[2]):
        yield _Edit(0, span.end(1), "")
        yield _Edit(span.start(3), len(text), "")
        return
    marks = list(_FENCE.finditer(text))
    if len(marks) != 2 or text[: marks[0].start()].strip() or text[marks[1].end() :].strip():
        return
    name = marks[0][1].lower()
    inside = text[marks[0].end() : marks[1].start()]
    if name not in _PROSE or marks[1][1] or (not any(_json(inside)) and _is_code(inside)):
        return
    yield _Edit(0, marks[0].end(), "")
    yield _Edit(marks[1].start(), len(text), "")


def _is_code(text: str) -> bool:
    """Whether half of the lines look like code."""
    lines = [line for line in text.splitlines() if line.strip()]
    code = [line for line in lines if _CODE_LINE.search(line) and not _SENTENCE_END.search(line)]
    return bool(lines) and 2 * len(code) >= len(lines)


# HTML, outside of code.

_CODE = re.compile(r"(?ms)^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)|`[^`\n]{1,500}`")

_BLOCKS = "p|div|section|article|br|blockquote|ul|ol|table|tbody|thead|answer|response"

_INLINE = "a|b|strong|i|em|u|s|span|font|small|mark|sup|sub|html|body|center"

_OPENINGS = {
    **dict.fromkeys(_BLOCKS.split("|"), "\n"),
    **{f"h{level}": f"\n{'#' * level} " for level in range(1, 7)},
    **{"li": "\n- ", "tr": "\n|", "td": " ", "th": " ", "pre": "\n```\n", "code": "`"},
}
_CLOSINGS = {
    **dict.fromkeys(_OPENINGS, "\n"),
    **{"li": "", "td": " |", "th": " |", "pre": "\n```\n", "code": "`"},
}
"""What stands for a tag in plain text; nothing for an inline one."""

_TAG = re.compile(
    rf"<(/?)({'|'.join(_OPENINGS)}|{_INLINE})(?:\s[^<>=]{{1,100}}=[^<>]{{1,500}})?\s?/?>",
    re.IGNORECASE,
)

_ENTITY = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,31}));")


def _outside_code(text: str) -> Callable[[int], bool]:
    """Says of a place whether it is outside of code."""
    if "`" not in text and "~~~" not in text:
        return lambda at: True
    spans = [match.span() for match in _CODE.finditer(text)]
    ends = [end for _, end in spans]

    def outside(at: int) -> bool:
        index = bisect_left(ends, at + 1)
        return index == len(spans) or at < spans[index][0]

    return outside


def _markup(text: str) -> Iterator[_Edit]:
    has_tags, has_entities = "<" in text, "&" in text
    if not has_tags and not has_entities:
        return
    outside = _outside_code(text)
    edits = [
        _Edit(*match.span(), new)
        for match in (_ENTITY.finditer(text) if has_entities else ())
        if (new := _character(match)) is not None
    ]
    edits += [
        _Edit(*match.span(), (_CLOSINGS if match[1] else _OPENINGS).get(match[2].lower(), ""))
        for match in (_TAG.finditer(text) if has_tags else ())
    ]
    yield from (edit for edit in sorted(edits) if outside(edit.start))


def _character(match: re.Match[str]) -> str | None:
    if match[3]:
        return html.entities.html5.get(f"{match[3]};")
    code = int(match[1]) if match[1] else int(match[2], 16)
    return clean(chr(code)) if 31 < code < 0x110000 else " "


# A table of one column, or of one row that holds sentences.

_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_RULE = re.compile(r"^[\s|:-]*-[\s|:-]*$")


def _table(text: str) -> Iterator[_Edit]:
    if "|" not in text:
        return
    places: list[tuple[int, int]] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            places.append((at, at + len(line.rstrip("\r\n"))))
        at += len(line)
    rows = [_ROW.match(text[start:end]) for start, end in places]
    if len(rows) < 2 or not all(rows):
        return
    ruled = len(rows) > 1 and _RULE.match(text[slice(*places[1])]) is not None
    body = places[2 * ruled :]
    cells = [text[start:end].strip().strip("|").split("|") for start, end in body]
    says = [cell for row in cells for cell in row if _SENTENCE_END.search(cell)]
    if max(map(len, cells), default=2) > 1 and not (len(cells) == 1 and says):
        return
    if ruled:
        yield _Edit(places[0][0], body[0][0] if body else len(text), "")
    for start, end in body:
        bars = [start + match.start() for match in re.finditer(r"\|", text[start:end])]
        yield from (_Edit(at, at + 1, "" if at in (bars[0], bars[-1]) else "\n") for at in bars)


# Marks of emphasis, and headings that are sentences. A line that is bold throughout is a heading,
# unless it is a sentence or the whole answer.

_STATING = re.compile(r"(?m)^[^\S\n]{0,3}(#{1,6}[^\S\n]+)(?=\S[^\n]{0,500}[.。।][*_]*[^\S\n]*$)")


def _headings(text: str) -> Iterator[_Edit]:
    if "#" in text:
        outside = _outside_code(text)
        yield from (
            _Edit(*match.span(1), "") for match in _STATING.finditer(text) if outside(match.start())
        )


_EMPHASIS = re.compile(r"\*{1,3}|_{1,3}|\n[^\S\n]*\n")
_BOLD_LINE = re.compile(r"(?m)^[^\S\n]*(\*\*|__)(?=\S)([^*\n]{1,80})(?<=\S)\1:?[^\S\n]*$")
_SAYS = re.compile(r"[.!…。！।][\"'”’»)]*$")


def _emphasis(text: str) -> Iterator[_Edit]:
    if "*" not in text and "_" not in text:
        return
    outside = _outside_code(text)
    alone = sum(bool(line.strip()) for line in text.splitlines()) == 1
    titles = {
        match.start(1)
        for match in _BOLD_LINE.finditer(text)
        if not alone and not _SAYS.search(match[2])
    }
    opened: dict[str, int] = {}
    edits: list[_Edit] = []
    for match in _EMPHASIS.finditer(text):
        mark, start, end = match[0], match.start(), match.end()
        if mark[0] == "\n":
            opened.clear()  # emphasis ends with its paragraph
            continue
        if not outside(start):
            continue
        before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
        inside_word = before.isalnum() and after.isalnum()
        if mark in opened and not before.isspace() and not (mark[0] == "_" and after.isalnum()):
            begin = opened.pop(mark)
            title = "# " if begin in titles else ""
            edits += [_Edit(begin, begin + len(mark), title), _Edit(start, end, "")]
        elif not after.isspace() and not (inside_word and (mark[0] == "_" or len(mark) == 1)):
            opened[mark] = start
    yield from sorted(edits)


_WRAPPINGS = (_thoughts, _json, _fence, _markup, _table, _headings, _emphasis)
