"""Documents and the sections that they consist of; Markdown is cut at its headings. Pure.

Example: ``# A`` over ``x`` and ``## B`` over ``y`` give two sections, ``A`` and ``A > B``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

HEADING_SEPARATOR = " > "

_SOFT_HYPHEN = re.compile("\u00ad[ \t]*\n?")
_LINE_END_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u2010][ \t]*\n[ \t]*(?=[^\W\d_])")
_DIGITS = re.compile(r"\d+|\b[ivxlc]+\b")
MARGIN_LINES = 2
"""Lines at the top and at the foot of a page that may be running headers and footers."""
FEWEST_PAGES = 3
"""Pages on which a line must recur to count as a running header."""


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """A heading with its own text, or a part of a page. ``code``: which of the lines are code.

    ``heading_path`` is "" for text without a heading; ``page`` is the sheet, counted from 1, or
    None in files without pages.
    """

    heading_path: str
    lines: Sequence[str]
    code: Sequence[bool]
    page: int | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet of a PDF. ``headings``: titles of the outline that begin on it, with their level."""

    text: str
    label: str = ""
    headings: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """A document: Markdown with ATX headings, or ``pages``. ``rel_path`` is POSIX style, relative
    to the vault; ``plain`` text has no headings."""

    vault: str
    rel_path: str
    text: str
    pages: Sequence[Sheet] = ()
    plain: bool = False

    def sections(self) -> Iterator[DocumentSection]:
        """The sections in reading order, also those without text."""
        if self.pages:
            yield from _page_sections(self.pages)
        elif self.plain:
            lines = self.text.split("\n")
            yield DocumentSection("", lines, [False] * len(lines))
        else:
            yield from _markdown_sections(self.text)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable("inline")  # only blocks matter here


def _markdown_sections(text: str) -> Iterator[DocumentSection]:
    lines = text.split("\n")
    is_code = [False] * len(lines)
    titles: dict[int, str] = {}  # of the headings above, by level
    body = 0
    tokens = _parser().parse(text)
    for at, token in enumerate(tokens):
        start, end = token.map or (0, 0)
        if token.type in ("fence", "code_block", "html_block"):
            is_code[start:end] = [True] * (end - start)
        elif token.type == "heading_open" and token.level == 0:
            yield DocumentSection(_path(titles), lines[body:start], is_code[body:start])
            body = end
            _enter(titles, int(token.tag[1:]), tokens[at + 1].content)
    yield DocumentSection(_path(titles), lines[body:], is_code[body:])


def _path(titles: Mapping[int, str]) -> str:
    return HEADING_SEPARATOR.join(titles.values())


def _enter(titles: dict[int, str], level: int, title: str) -> None:
    """Begin a section: headings of its level and below end."""
    for below in [each for each in titles if each >= level]:
        del titles[below]
    if title := " ".join(title.split()):
        titles[level] = title


def _page_sections(pages: Sequence[Sheet]) -> Iterator[DocumentSection]:
    """A section for each page, cut where a line of it is a title of the outline.

    A title that is no line of its page begins with the page.
    """
    titles: dict[int, str] = {}
    for number, page in enumerate(pages, 1):
        lines = page.text.split("\n")
        start = 0
        for level, title in page.headings:
            at = _line_of(title, lines, start)
            if at is not None and (at > start or start):
                yield _of_page(titles, lines[start:at], number)
            _enter(titles, level, title)
            start = start if at is None else at + 1
        yield _of_page(titles, lines[start:], number)


def _of_page(titles: Mapping[int, str], lines: Sequence[str], number: int) -> DocumentSection:
    return DocumentSection(_path(titles), lines, [False] * len(lines), number)


def _line_of(title: str, lines: Sequence[str], start: int) -> int | None:
    """The line that is a title, with or without its number; None when there is none."""
    letters = _letters(title)
    for at in range(start, len(lines)):
        if letters and _letters(lines[at]) == letters:
            return at
    return None


def _letters(text: str) -> str:
    return re.sub(r"[\W\d_]+", "", text).casefold()


def clean_pages(texts: Sequence[str]) -> list[str]:
    """Sheet texts in one form: NFKC, hyphens at line ends joined, running headers left out.

    A line within two lines of the top or foot that recurs there on half of the pages, numbers
    apart, is a running header or footer.
    """
    pages = [
        [line.strip() for line in unicodedata.normalize("NFKC", text).splitlines()]
        for text in texts
    ]
    pages = [[line for line in page if line] for page in pages]
    counts = Counter(
        mark for page in pages for mark in {_mark(page[at]) for at in _margins(page)} if mark
    )
    recurring = {
        mark for mark, count in counts.items() if count >= max(FEWEST_PAGES, len(pages) / 2)
    }
    result = []
    for page in pages:
        margins = set(_margins(page))
        kept = [
            line
            for at, line in enumerate(page)
            if at not in margins or _mark(line) not in recurring
        ]
        text = _SOFT_HYPHEN.sub("", "\n".join(kept))
        result.append(_LINE_END_HYPHEN.sub("", text))
    return result


def _margins(page: Sequence[str]) -> list[int]:
    return sorted({*range(len(page))[:MARGIN_LINES], *range(len(page))[-MARGIN_LINES:]})


def _mark(line: str) -> str:
    return _DIGITS.sub("#", line.casefold())
