"""The sections of a vault that a question can be drafted from, with their quotable sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from demo.chunker import HEADING_SEPARATOR, chunk_notes
from demo.sentences import sentences
from demo.vault import Note

WHOLE = 1 << 31
"""No section is cut: an anchor names all of it."""
FEWEST_WORDS, MOST_WORDS = 5, 45
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Section:
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


def flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def sections(notes: Iterable[Note]) -> list[Section]:
    """Every section with a heading and a quotable sentence, in reading order."""
    found = []
    for chunk in chunk_notes(notes, max_chars=WHOLE):
        if not chunk.heading_path:
            continue
        whole = flat(chunk.text)
        quotable = tuple(
            one.text for one in sentences(chunk.text) if _quotable(one.text) and one.text in whole
        )
        if quotable:
            found.append(
                Section(
                    chunk.vault,
                    chunk.rel_path,
                    chunk.folder,
                    chunk.heading_path,
                    chunk.text,
                    quotable,
                )
            )
    return found


def _quotable(sentence: str) -> bool:
    """A whole sentence of a usual length; no cut-off, no announcement of what follows."""
    return (
        sentence[-1] in ".!。"
        and FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
        and not sentence[0].islower()
        and sentence.count("`") % 2 == 0  # else it was cut within code
        and "<!--" not in sentence
    )


def holders(snippet: str, every: Sequence[Section]) -> list[Section]:
    """All sections that hold the snippet: each of them answers the question."""
    return [section for section in every if snippet in section.flat]
