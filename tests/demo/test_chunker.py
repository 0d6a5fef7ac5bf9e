"""Chunks: one section a heading, nothing lost, stable ids."""

from __future__ import annotations

import re
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from demo.chunker import NoteChunk, _chunk_id, chunk_notes
from demo.vault import python_reference
from documents.sections import Note


def chunk(text: str, max_chars: int = 1200) -> list[NoteChunk]:
    return chunk_notes([Note("v", "dir/note.md", text)], max_chars)


def paths_and_texts(text: str, max_chars: int = 1200) -> list[tuple[str, str]]:
    return [(c.heading_path, c.text) for c in chunk(text, max_chars)]


def test_a_chunk_says_where_it_comes_from() -> None:
    (only,) = chunk("# A\n\nx\n")
    # The parts of the id are led by their lengths in bytes: 1:v 11:dir/note.md 1:A 1:x
    digest = sha256(b"1:v11:dir/note.md1:A1:x").hexdigest()[:16]
    assert only == NoteChunk("v", "dir/note.md", "A", "x", digest, "dir")


def test_ids_do_not_depend_on_where_the_parts_are_joined() -> None:
    assert _chunk_id("a", "b", "c", "d") != _chunk_id("ab", "", "c", "d")
    assert _chunk_id("v", "p", "A", "> B") != _chunk_id("v", "p", "A >", " B")


def test_headings_in_code_quotes_and_lists_are_no_sections() -> None:
    text = "# A\n\n```\n# x\ny\n===\n```\n\n    # z\n\n> # q\n\n- # l\n\n~~~~\n~~~\n# w\n~~~~\n"
    assert {path for path, _ in paths_and_texts(text)} == {"A"}


@each_row("text", ["", "\n \n", "# A", "# A\n\n## B\n\n \n", "#\n"])
def test_a_section_without_text_gives_no_chunk(text: str) -> None:
    assert chunk(text) == []


CUTS: dict[str, tuple[str, int, list[str]]] = {
    "a chunk is a section with the path of its headings": (
        "before\n\n# A\n\nx\n\n## B  c ##\n\ny1\ny2\n\n#### D\n\nz\n\n## E\n\nw\n\n# F\n\nv\n",
        1200,
        [": before", "A: x", "A > B c: y1\ny2", "A > B c > D: z", "A > E: w", "F: v"]),
    "an underlined heading of a Markdown folder counts": (
        "A\n=\n\nx\n\nB\n-\n\ny", 1200, ["A: x", "A > B: y"]),
    "a long section is cut between paragraphs: 10 + 2 + 10 = 22 fit into 25": (
        "# A\n\naaaaaaaaaa\n\nbbbbbbbbbb\n\ncccccccccc\n", 25,
        ["A: aaaaaaaaaa\n\nbbbbbbbbbb", "A: cccccccccc"]),
    "code is kept whole with its blank lines": (
        "# A\n\nsome words here\n\n```\none\n\ntwo\n```\n\nend\n", 20,
        ["A: some words here", "A: ```\none\n\ntwo\n```", "A: end"]),
    "code longer than a chunk is cut at line ends and fenced again": (
        "```py\naaaa\nbbbb\ncccc\n```\n", 9, [": ```py\naaaa\nbbbb\n```", ": ```py\ncccc\n```"]),
    "backticks after the opening ones make it no fence": (
        "```a``` b\nccc", 9, [": ```a``` b", ": ccc"]),
    "an opening line longer than a chunk cannot be repeated around each piece": (
        "```aa bb cc\nd\n```", 8, [": ```aa bb", ": cc\nd\n```"]),
    "a giant paragraph is cut at sentence ends": (
        "One two. Three four. Five.", 12, [": One two.", ": Three four.", ": Five."]),
    "then at words": ("one two three", 7, [": one two", ": three"]),
    "the pieces of a paragraph stand on lines of their own": (
        "One. Two three four. Five.", 20, [": One.\nTwo three four.", ": Five."]),
    "then hard": ("abcdefgh", 3, [": abc", ": def", ": gh"]),
    "the same text twice under the same path is kept once": (
        "# A\n\nx\n\n# B\n\nx\n\n# A\n\nx\n", 1200, ["A: x", "B: x"]),
}  # fmt: skip
"""Text, longest chunk, and chunks with their paths."""


@each_row("rule", CUTS)
def test_where_a_text_is_cut(rule: str) -> None:
    text, longest, expected = CUTS[rule]
    assert [f"{path}: {part}" for path, part in paths_and_texts(text, longest)] == expected


HEADINGS = ["# A", "## B", "### C #"]
OTHER_LINES = ["", "", "```", "~~~", "    code", "- item", "> quote", "alpha beta.", "gamma! delta"]
OTHER_LINES += ["one two three four five six seven", "<b>", "&amp; x", "| a |", "    # D"]
ATX_NOTES = st.lists(st.sampled_from(HEADINGS + OTHER_LINES), max_size=30).map("\n".join)
NOTES = st.lists(st.sampled_from([*HEADINGS, *OTHER_LINES, "===", "---"]), max_size=30).map(
    "\n".join
)


@given(ATX_NOTES, st.integers(20, 200))
def test_no_word_of_a_note_is_lost(text: str, max_chars: int) -> None:
    """Every word that is no heading stands in a text; words are shorter than max_chars here."""
    held = set(re.findall(r"\w+", " ".join(c.text for c in chunk(text, max_chars))))
    assert set(re.findall(r"\w+", text)) - {"A", "B", "C"} <= held


@given(NOTES, st.integers(1, 200))
def test_chunks_are_the_same_each_time_unique_and_never_empty(text: str, max_chars: int) -> None:
    chunks = chunk(text, max_chars)
    assert chunks == chunk(text, max_chars)
    assert len({c.chunk_id for c in chunks}) == len(chunks)
    assert all(c.text.strip() for c in chunks)
    longest_fences = 2 * (len("```") + 1)
    assert all(len(c.text) <= max_chars + longest_fences for c in chunks)


@given(st.text(max_size=300), st.integers(1, 50))
def test_any_text_can_be_chunked(text: str, max_chars: int) -> None:
    assert chunk(text, max_chars) == chunk(text, max_chars)


def test_the_reference_gives_hundreds_of_chunks_and_keeps_every_word() -> None:
    notes = python_reference()
    chunks = chunk_notes(notes, 1200)
    assert len(chunks) > 300
    assert len({c.chunk_id for c in chunks}) == len(chunks)
    for note in notes:
        own = [c for c in chunks if c.rel_path == note.rel_path]
        held = set(re.findall(r"\w+", " ".join(f"{c.heading_path} {c.text}" for c in own)))
        assert set(re.findall(r"\w+", note.text)) <= held
