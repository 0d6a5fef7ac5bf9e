"""Sections of a vault, and the plain question that a heading is; no model.

The heading is the question, in whatever language it is written, and its section is the support. A
draft is plain rather than clever: a person rewords it or drops it, or a judge drafts instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from demo.answerer import sentences
from demo.chunker import HEADING_SEPARATOR, chunk_notes
from demo.vault import Note
from ragmetrics.text.words import content_words, fold

RULES = 4
"""Version of the rule, written into each draft."""

WHOLE = 1 << 31
"""Characters of a section that is never cut, so that a heading names all of its text."""

FEWEST_WORDS, MOST_WORDS = 5, 45

_SPACE = re.compile(r"\s+")

_NUMBERED = re.compile(
    r"^(?:(?:chapter|appendix|part|section)\s+\w{1,3}\s*[:.–—-]\s*|[\d.]+\s+)|\s*#+$",
    re.IGNORECASE,
)

_MARKS = re.compile(r"[*`]+|\[(?=[^\]]*\]\()|\]\([^)]*\)|(?<!\w)_(?=[^\W_])|(?<=[^\W_])_(?!\w)")
"""Marks of stress and code, and all of a link but its text; ``__init__`` is a name."""


@dataclass(frozen=True, slots=True)
class DraftQuestion:
    """A drafted question. ``rule`` says how it came about; ``fact`` is what an answer must say."""

    text: str
    snippet: str
    rule: str
    category: str
    fact: str


@dataclass(frozen=True, slots=True)
class NoteSection:
    """One heading with its own text. ``sentences``: prose that can be quoted, on one line each."""

    vault: str
    rel_path: str
    folder: str
    heading_path: str
    text: str
    sentences: tuple[str, ...]

    @property
    def titles(self) -> list[str]:
        """The headings from the note's first down to the section's own."""
        return self.heading_path.split(HEADING_SEPARATOR)

    @property
    def flat(self) -> str:
        """The text with its white space collapsed, as snippets are compared."""
        return flat(self.text)


def questions(
    every: Iterable[NoteSection],
) -> Iterator[tuple[NoteSection, DraftQuestion | None]]:
    """Each section with the question that its heading is; None for a heading without a letter."""
    return ((section, heading_question(section)) for section in every)


def heading_question(section: NoteSection) -> DraftQuestion | None:
    """The heading as a question; a heading of one word comes with the one above it.

    It rests on the sentence of the section that shares most words with the heading, the first of
    several; the same sentence is what an answer must say.
    """
    titles = [_bare(title) for title in section.titles]
    own = titles[-1]
    if not any(char.isalpha() for char in own):
        return None
    if len(own.split()) == 1 and len(titles) > 1:
        own = f"{titles[-2]}: {own}"
    telling = set(content_words(fold(own)))
    snippet = max(
        section.sentences,
        key=lambda sentence: len(telling & set(content_words(fold(sentence)))),
    )
    text = own if own[-1] in "?？؟;" else f"{own}?"
    return DraftQuestion(text, snippet, "heading", "general", snippet)


def _bare(title: str) -> str:
    """A heading without numbering and without marks of stress, code and links."""
    return _MARKS.sub("", _NUMBERED.sub("", title)).strip().rstrip(".:!")


def flat(text: str) -> str:
    """The text with white space collapsed to single blanks."""
    return _SPACE.sub(" ", text).strip()


def sections(notes: Iterable[Note]) -> list[NoteSection]:
    """Every section with a heading and a quotable sentence, in reading order."""
    result = []
    for chunk in chunk_notes(notes, max_chars=WHOLE):
        if not chunk.heading_path:
            continue
        whole = flat(chunk.text)
        quotable = tuple(
            sentence.text
            for sentence in sentences(chunk.text)
            if _quotable(sentence.text) and sentence.text in whole
        )
        if quotable:
            place = (chunk.vault, chunk.rel_path, chunk.folder, chunk.heading_path)
            result.append(NoteSection(*place, chunk.text, quotable))
    return result


def _quotable(sentence: str) -> bool:
    """A whole sentence of a usual length; no cut-off, no announcement of what follows."""
    return (
        sentence[-1] in ".!。"
        and FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
        and not sentence[0].islower()
        and sentence.count("`") % 2 == 0  # else it was cut within code
        and "<!--" not in sentence
    )


def holders(snippet: str, every: Sequence[NoteSection]) -> list[NoteSection]:
    """All sections that contain the snippet: each of them answers the question."""
    return [section for section in every if snippet in section.flat]
