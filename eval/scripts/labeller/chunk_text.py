"""What the text pane shows for a row: the stretches to mark, or why there is no chunk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from terminal.frame import words_pattern
from terminal.safe_text import DisplayText
from terminal.text_pane import Mark

if TYPE_CHECKING:
    from labeller.rows import ChunkRow
    from labeller.session import Session


def marks_in(
    session: Session, row: ChunkRow, text: DisplayText, terms: re.Pattern[str] | None, words: str
) -> list[Mark]:
    """The question's terms, the words looked for, and the picked snippets, as offsets."""
    marks: list[Mark] = []
    if terms is not None:
        marks = [(m.start(), m.end(), "term") for m in terms.finditer(text)]
    pattern = words_pattern(words.split())
    if pattern is not None:
        marks += [(m.start(), m.end(), "marked") for m in pattern.finditer(text)]
    if row.snippets and not row.auto:
        picked = [s for s in session.sentences(row.number) if s.picked]
        marks += [(s.start, s.end, "marked") for s in picked]
    return marks


def why_no_chunks(session: Session, words: str, source: str) -> str:
    """What a person can do when there is no row to show."""
    if not session.current:
        return "No question to show: Esc drops the filter, o adds a question."
    if words:
        return "No chunk holds these words. Esc drops the filter."
    problem = session.chunks_problem()
    if problem:
        return f"{problem}\nF5 tries again; P adds a support by path; e edits the question."
    if session.has_chunks():
        return "Nothing was found for this question. p searches with other words."
    return f"Fetching chunks from {source} …"


def holds(row: ChunkRow, words: list[str]) -> bool:
    """Does a row's path, heading or text hold all of these casefolded words?"""
    chunk = row.chunk
    text = f"{chunk.rel_path} {chunk.heading_path} {chunk.text}".casefold()
    return all(word in text for word in words)
