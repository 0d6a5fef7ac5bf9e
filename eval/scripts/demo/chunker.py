"""Cuts notes into chunks: one section a heading, long sections at paragraph boundaries.

In: notes of a vault. Out: chunks in reading order. Example: a note with the heading ``# A``
over the text ``x`` and ``## B`` over ``y`` gives two chunks, ``A`` and ``A > B``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from documents.sections import DocumentSection, Note

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class NoteChunk:
    """A piece of one section. ``heading_path`` is "" for text above the first heading, ``folder``
    "" for a note at the root of the vault; ``page``: the sheet, of files that have some."""

    vault: str
    rel_path: str
    heading_path: str
    text: str
    chunk_id: str
    folder: str
    page: int | None = None


def chunk_notes(notes: Iterable[Note], max_chars: int) -> list[NoteChunk]:
    """All chunks of the notes, in reading order; the same notes give the same chunks.

    A chunk's text is the body of its section without the heading line. No text is longer than
    ``max_chars``, > 0, except that each piece of a fenced block gets the block's fences. A text
    that a note repeats under the same heading path is kept once, so the ids of a vault are unique.
    """
    chunks: dict[str, NoteChunk] = {}
    for note in notes:
        folder = note.rel_path.rpartition("/")[0]
        for section in note.sections():
            for text in _pieces(section, max_chars):
                parts = (note.vault, note.rel_path, section.heading_path, text)
                sheet = () if section.page is None else (str(section.page),)
                chunk_id = _chunk_id(*parts, *sheet)
                chunks.setdefault(chunk_id, NoteChunk(*parts, chunk_id, folder, page=section.page))
    return list(chunks.values())


def _chunk_id(*parts: str) -> str:
    """The first 16 hex digits of a SHA-256 over the parts, each led by its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:16]


def _pieces(section: DocumentSection, max_chars: int) -> Iterator[str]:
    """The section's text, packed greedily from paragraphs and code blocks, long ones in pieces."""
    parts: list[str] = []
    for kind, group in groupby(zip(section.lines, section.code, strict=True), key=_kind):
        block = [line if is_code else line.rstrip() for line, is_code in group]
        text = "\n".join(block)
        fence = FENCE.match(text) if kind == "code" and len(text) > max_chars else None
        if fence and len(block[0]) <= max_chars:
            body = block[1:-1] if block[-1].strip().startswith(fence[1]) else block[1:]
            pieces = _cut("\n".join(body), max_chars)
            parts += [f"{block[0]}\n{piece}\n{fence[1]}" for piece in pieces]
        elif kind != "blank":
            parts += _cut(text, max_chars)
    return _pack(parts, "\n\n", max_chars)


def _kind(line_and_code: tuple[str, bool]) -> str:
    line, is_code = line_and_code
    return "code" if is_code else "prose" if line.strip() else "blank"


def _cut(text: str, max_chars: int) -> list[str]:
    """The text if it fits; else cut at line ends, sentence ends, between words, long words hard."""
    if len(text) <= max_chars:
        return [text]
    parts: list[str] = []
    for line in text.split("\n"):
        for part in _SENTENCE_END.split(line) if len(line) > max_chars else [line]:
            words = [
                w[at : at + max_chars] for w in part.split() for at in range(0, len(w), max_chars)
            ]
            parts += [part] if len(part) <= max_chars else _pack(words, " ", max_chars)
    return list(_pack(parts, "\n", max_chars))


def _pack(parts: Iterable[str], glue: str, max_chars: int) -> Iterator[str]:
    """Join neighbours as long as the result fits; yields nothing that is only white space."""
    packed = ""
    for part in parts:
        joined = f"{packed}{glue}{part}" if packed else part
        if len(joined) > max_chars and packed.strip():
            yield packed
        packed = part if len(joined) > max_chars else joined
    if packed.strip():
        yield packed
