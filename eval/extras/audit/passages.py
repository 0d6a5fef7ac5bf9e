"""The vault as the audit reads it: sections, their paragraphs, and the sentences of these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from documents.sections import HEADING_SEPARATOR, Note
from ragmetrics.text.sentences import units
from ragmetrics.text.words import content_words, fold, words

LEAST_WORDS = 20
"""Words of a paragraph from which it is compared."""

_MARKS = re.compile(r"[*`]+|(?<!\w)_(?=\S)|(?<=\S)_(?!\w)|<!--.*?-->|\[\^[^\]]*\]")
_LINK_TARGET = re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]+\S.*$", re.MULTILINE)
_TAG = re.compile(r"</?(?:span|i|b|em|strong|a|div|p|img|br|sup|sub|kbd)\b[^<>]*>", re.IGNORECASE)
_LISTED = re.compile(r"^\s*(?:[-*+|]|\d+[.)])\s", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_QUOTE_MARKS = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_PLAINER = (
    (_QUOTE_MARKS, ""),
    (_LINK_TARGET, ""),
    (_LINK, r"\1"),
    (_TAG, ""),
    (_MARKS, ""),
)
_CAPTION = re.compile(
    r"^(?:listing|figure|fig\.|table|example|exercise|step)\s+[\dA-Z][\d.\-–A-Z]*[:.]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a text stands: file, heading and, in files with pages, sheet."""

    rel_path: str
    heading_path: str = ""
    page: int | None = None

    def __str__(self) -> str:
        parts = [self.rel_path]
        parts += [f"page {self.page}"] if self.page is not None else []
        parts += [self.heading_path] if self.heading_path else []
        return " > ".join(parts)

    @property
    def title(self) -> str:
        """The section's own heading."""
        return self.heading_path.rpartition(HEADING_SEPARATOR)[2]

    @property
    def above(self) -> str:
        """The headings above it."""
        return self.heading_path.rpartition(HEADING_SEPARATOR)[0]


@dataclass(frozen=True)
class AuditSection:
    """A section of the vault. ``paragraphs``: its prose, lists and tables, without code."""

    number: int
    place: Place
    paragraphs: tuple[str, ...]

    @cached_property
    def text(self) -> str:
        return "\n\n".join(self.paragraphs)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """Sentences and list items, each on one line; no headings, tables, code or captions."""
        return tuple(sentence for text in self.paragraphs for sentence in sentences(text))

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(content_words(fold(self.text)))


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of enough words, ``text`` on one line."""

    section: int
    text: str


def sections_of(notes: Iterable[Note]) -> list[AuditSection]:
    """All sections with text, in reading order."""
    result: list[AuditSection] = []
    for note in notes:
        for part in note.sections():
            lines = zip(part.lines, part.code, strict=True)
            paragraphs = tuple(
                plain(text)
                for kind, group in groupby(lines, key=lambda line: (line[1], not line[0].strip()))
                if kind == (False, False)
                for text in ["\n".join(line for line, _ in group)]
            )
            if any(paragraphs):
                place = Place(note.rel_path, part.heading_path, part.page)
                result.append(AuditSection(len(result), place, paragraphs))
    return result


def plain(text: str) -> str:
    """A paragraph without marks of stress, code, quotations and links."""
    for pattern, plainer in _PLAINER:
        text = pattern.sub(plainer, text)
    return text.strip()


def paragraphs_of(sections: Sequence[AuditSection]) -> list[Paragraph]:
    """The paragraphs that are compared."""
    return [
        Paragraph(section.number, " ".join(text.split()))
        for section in sections
        for text in section.paragraphs
        if len(words(fold(text))) >= LEAST_WORDS
    ]


def sentences(text: str) -> Iterator[str]:
    """The sentences and list items of a paragraph, captions left out."""
    flat = " ".join(text.split()) if not _LISTED.search(text) else text
    for unit in units(flat):
        if unit.kind in ("prose", "item", "stem"):
            sentence = " ".join(flat[unit.start : unit.end].split())
            if not _CAPTION.match(sentence):
                yield sentence
