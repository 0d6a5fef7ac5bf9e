"""The notes: the reference of this very interpreter, made-up topics, folders of Markdown."""

from __future__ import annotations

import re
from itertools import pairwise
from pydoc_data.topics import topics

import pytest
from markdown_it import MarkdownIt
from tests.rows import each_row

from demo.vault import AREAS, _topic_to_markdown, python_reference
from documents.sections import Note

SPHINX_LEVELS = '*=-~"+`'  # the order in which Sphinx's text writer underlines nested sections


def headings(markdown: str) -> list[tuple[int, str]]:
    tokens = MarkdownIt("commonmark").parse(markdown)
    return [
        (int(token.tag[1:]), tokens[at + 1].content)
        for at, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


def titles_of_topic(text: str) -> list[tuple[int, str]]:
    """Counted another way than in the code: any line of one character under an equally long one."""
    lines = text.splitlines()
    return [
        (SPHINX_LEVELS.index(mark[0]) + 1, title)
        for title, mark in pairwise(lines)
        if title and len(title) == len(mark) and len(set(mark)) == 1 and mark[0] in SPHINX_LEVELS
    ]


@each_row("name", sorted(topics))
def test_no_heading_of_a_topic_is_lost_or_invented(name: str) -> None:
    markdown = _topic_to_markdown(topics[name])
    assert headings(markdown) == titles_of_topic(topics[name])
    assert headings(markdown)[0][0] == 1


@each_row("name", sorted(topics))
def test_no_word_of_a_topic_is_lost(name: str) -> None:
    def words(text: str) -> list[str]:
        return sorted(re.findall(r"\w+", text))

    assert words(_topic_to_markdown(topics[name])) == words(topics[name])


def test_the_reference_is_one_note_a_topic_in_folders_by_area() -> None:
    notes = python_reference()
    assert len(notes) == len(topics)
    assert [note.rel_path for note in notes] == sorted(note.rel_path for note in notes)
    assert {note.vault for note in notes} == {"python"}
    by_path = {note.rel_path: note.text for note in notes}
    assert by_path["statements/try.md"].startswith('# The "try" statement\n')
    assert '## "except" clause\n' in by_path["statements/try.md"]
    assert {path.split("/")[0] for path in by_path} <= {*AREAS, "other"}


def test_an_unknown_topic_goes_to_the_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = {"brand-new": "New thing\n*********\n\nText.\n"}
    monkeypatch.setattr("pydoc_data.topics.topics", made_up)
    (note,) = python_reference()
    assert note == Note("python", "other/brand-new.md", "# New thing\n\nText.\n")


def test_underlines_nest_by_the_order_in_which_they_appear() -> None:
    text = "A\n*\n\nB1\n^^\n\nC12\n---\n\nB2\n^^\n\nend"
    assert headings(_topic_to_markdown(text)) == [(1, "A"), (2, "B1"), (3, "C12"), (2, "B2")]


@each_row(
    "body",
    [
        "A rule:\n\n==========\n\nafter it",  # a rule stands alone, after a blank line
        "Text\n----",  # not as long as the line above, and not preceded by a blank line: below
        "Run:\n\n   >>> x = 1\n   >>> print('=====')\n   =====\n   # not a heading",
        "Code:\n\n   # a comment\n   abc\n   ===",
        "Grammar:\n\n   a ::= b\n   -------",
        "+------+------+\n| a    | b    |\n|======|======|\n| c    | d    |\n+------+------+",
    ],
)
def test_lines_that_only_look_like_underlines_make_no_heading(body: str) -> None:
    markdown = _topic_to_markdown(f"Title\n*****\n\nFirst line.\nsecond\n\n{body}\n")
    expected = [(1, "Title")] + ([(2, "Text")] if body.endswith("Text\n----") else [])
    assert headings(markdown) == expected


def test_code_is_fenced_and_the_body_of_a_definition_is_not() -> None:
    text = (
        "T\n*\n\nobject.f(x)\n\n   Called to do it.  For example:\n\n"
        "      if x:\n          f(x)\n\n   More.\n"
    )
    assert _topic_to_markdown(text) == (
        "# T\n\nobject.f(x)\n\n   Called to do it.  For example:\n\n"
        "```\nif x:\n    f(x)\n```\n\n   More.\n"
    )


def test_a_doctest_on_the_level_of_the_text_ends_at_a_gap() -> None:
    text = (
        "T\n*\n\nf()\n\n   It counts:\n\n   >>> f()\n   1\n\n   >>> f()\n   2\n\n   New.\n\n>>> x\n"
    )
    assert _topic_to_markdown(text) == (
        "# T\n\nf()\n\n   It counts:\n\n```\n>>> f()\n1\n\n>>> f()\n2\n```\n\n   New.\n\n"
        "```\n>>> x\n```\n"
    )


def test_a_grid_table_becomes_one_line_a_row() -> None:
    text = (
        "T\n*\n\n"
        "+------+---------+\n| Op   | Meaning |\n|======|=========|\n"
        "| a|b  | bitwise |\n|      | OR      |\n+------+---------+\n"
        "| ~a   | not     |\n+------+---------+\n"
    )
    assert _topic_to_markdown(text) == (
        "# T\n\n| Op | Meaning |\n| --- | --- |\n| a\\|b | bitwise OR |\n| ~a | not |\n"
    )
