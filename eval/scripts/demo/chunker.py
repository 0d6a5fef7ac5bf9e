"""Cuts notes into chunks: one section a heading, long sections at paragraph boundaries.

In: notes of demo.vault. Out: chunks in reading order. Example: a note with the heading ``# A``
over the text ``x`` and ``## B`` over ``y`` gives two chunks, ``A`` and ``A > B``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from demo.vault import Note

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

HEADING_SEPARATOR = " > "
MAX_CHARS = 1200
CHUNK_ID_DIGITS = 16

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class NoteChunk:
    """A piece of one section. ``heading_path`` is "" for text above the first heading."""

    chunk_id: str
    vault: str
    doc_id: str
    rel_path: str
    folder: str
    heading_path: str
    text: str


def _chunk_id(vault: str, rel_path: str, heading_path: str, text: str) -> str:
    """The first 16 hex digits of a SHA-256 over the four parts, each led by its length."""
    digest = hashlib.sha256()
    for part in (vault, rel_path, heading_path, text):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:CHUNK_ID_DIGITS]


def chunk_notes(notes: Iterable[Note], max_chars: int = MAX_CHARS) -> list[NoteChunk]:
    """All chunks of the notes, in reading order; the same notes give the same chunks.

    A chunk's text is the body of its section without the heading line; a section that has no
    body of its own gives no chunk. No text is longer than ``max_chars``, except that a fenced
    block cut in pieces has its fence lines put around each piece. Where the same text stands
    twice under the same heading path of one note, it is kept once, so ids are unique as long as
    the notes' paths are. Raises ValueError for max_chars below 1.
    """
    if max_chars < 1:
        raise ValueError(f"max_chars is {max_chars}; it must be at least 1")
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").disable("inline")  # only blocks matter here
    chunks: dict[tuple[str, str, str], NoteChunk] = {}
    for note in notes:
        for heading_path, lines, code_lines in _sections(note.text, parser):
            for text in _pieces(lines, code_lines, max_chars):
                identity = _chunk_id(note.vault, note.rel_path, heading_path, text)
                chunk = NoteChunk(
                    chunk_id=identity,
                    vault=note.vault,
                    doc_id=note.rel_path,
                    rel_path=note.rel_path,
                    folder=note.folder,
                    heading_path=heading_path,
                    text=text,
                )
                chunks.setdefault((note.vault, note.rel_path, identity), chunk)
    return list(chunks.values())


def _sections(text: str, parser: MarkdownIt) -> Iterator[tuple[str, list[str], list[bool]]]:
    """(heading path, body lines, which of them are code) for each section, in reading order."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    is_code = [False] * len(lines)
    # (heading's first line, line after it, level, title); the first stands for the text above all
    heads: list[tuple[int, int, int, str]] = [(0, 0, 0, "")]
    tokens = parser.parse("\n".join(lines))
    for at, token in enumerate(tokens):
        if token.map is None:
            continue
        start, end = token.map
        if token.type in ("fence", "code_block", "html_block"):
            is_code[start:end] = [True] * (end - start)
        elif token.type == "heading_open" and token.level == 0:
            title = _SPACE.sub(" ", tokens[at + 1].content).strip()
            heads.append((start, end, int(token.tag[1:]), title))
    heads.append((len(lines), len(lines), 0, ""))
    above: list[tuple[int, str]] = []
    for (_, body, level, title), (body_end, _, _, _) in pairwise(heads):
        above = [item for item in above if item[0] < level]
        if title:
            above.append((level, title))
        path = HEADING_SEPARATOR.join(name for _, name in above)
        yield path, lines[body:body_end], is_code[body:body_end]


def _pieces(lines: list[str], code_lines: list[bool], max_chars: int) -> Iterator[str]:
    """The section's text, packed greedily from whole paragraphs and code blocks."""
    parts: list[str] = []
    for block, is_code in _blocks(lines, code_lines):
        fence = FENCE.match(block) if is_code else None
        if len(block) <= max_chars:
            parts.append(block)
        elif fence and 0 < block.find("\n") <= max_chars:
            parts += _split_fence(block, fence[1], max_chars)
        else:
            parts += _split_prose(block, max_chars)
    yield from _pack(parts, "\n\n", max_chars)


def _blocks(lines: list[str], code_lines: list[bool]) -> Iterator[tuple[str, bool]]:
    """Paragraphs (cut at blank lines) and whole code blocks, and whether each is code."""
    block: list[str] = []
    was_code = False
    for line, code in zip(lines, code_lines, strict=True):
        ends = (not code and not line.strip()) or code != was_code
        if ends and block:
            yield "\n".join(block), was_code
            block = []
        was_code = code
        if code or line.strip():
            block.append(line if code else line.rstrip())
    if block:
        yield "\n".join(block), was_code


def _split_fence(block: str, fence: str, max_chars: int) -> Iterator[str]:
    """Pieces of a long fenced block, cut at line ends, each with fences like the whole has."""
    first, *body = block.split("\n")
    if body and body[-1].strip().startswith(fence):
        body.pop()
    fitting = [part for line in body for part in _split_words(line, max_chars)]
    for piece in _pack(fitting, "\n", max_chars):
        yield f"{first}\n{piece}\n{fence}"


def _split_prose(block: str, max_chars: int) -> Iterator[str]:
    """Pieces of a long paragraph, cut at line ends, else at sentence ends, else between words."""
    parts: list[str] = []
    for line in block.split("\n"):
        for sentence in _SENTENCE_END.split(line) if len(line) > max_chars else [line]:
            parts += _split_words(sentence, max_chars)
    yield from _pack(parts, "\n", max_chars)


def _split_words(line: str, max_chars: int) -> list[str]:
    """The line if it fits; else cut between words; a word that is too long is cut hard."""
    if len(line) <= max_chars:
        return [line]
    words = [
        word[at : at + max_chars] for word in line.split() for at in range(0, len(word), max_chars)
    ]
    return list(_pack(words, " ", max_chars))


def _pack(parts: Iterable[str], glue: str, max_chars: int) -> Iterator[str]:
    """Join neighbours as long as the result fits; yields nothing that is only white space."""
    packed = ""
    for part in parts:
        if packed and len(packed) + len(glue) + len(part) > max_chars:
            if packed.strip():
                yield packed
            packed = part
        else:
            packed = packed + glue + part if packed else part
    if packed.strip():
        yield packed
