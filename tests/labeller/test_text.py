"""Sentences, answer sentences and anchors, on ordinary and on hostile text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.labeller.conftest import snapshot
from tests.rows import each_row

from labeller import marks
from labeller.passages import (
    Chunk,
    _folded,
    _nearly_holds,
    answer_spans,
    content_words,
    find_span,
    holds,
    joined,
    locate,
    sentence_spans,
    under,
    without,
)
from labeller.rows import sentences_of
from labeller.session import Session
from records.judged import heading, norm_path, segments
from terminal.actions import ActionRefused


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@each_row(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Use e.g. this, i.e. that. Next.", ["Use e.g. this, i.e. that.", "Next."]),
        ("Version 1.2 is out. See v1.3.", ["Version 1.2 is out.", "See v1.3."]),
        ('He said "stop." Then left.', ['He said "stop."', "Then left."]),
        ("- one\n- two\n\nLast", ["- one", "- two", "Last"]),
        ("Title\n\nText here.", ["Title", "Text here."]),
        ("1. first\n2. second", ["1. first", "2. second"]),
        ("漢字。次の文。", ["漢字。", "次の文。"]),
        (">>> f()\n...     pass\n...", [">>> f()\n...     pass\n..."]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(max_size=300))
def test_spans_are_in_order_apart_and_trimmed(text: str) -> None:
    end = 0
    for start, stop in sentence_spans(text):
        assert end <= start < stop <= len(text)
        assert text[start:stop] == text[start:stop].strip()
        end = stop
    covered = "".join(sentences(text))
    assert [c for c in covered if not c.isspace()] == [c for c in text if not c.isspace()]


def test_the_sentence_with_the_fact_is_taken() -> None:
    text = "Logs are written daily. They are kept for 30 days. Owners may ask for more."
    case = {"question": "How long?", "expected_key_facts": ["kept 30 days"]}
    ((start, end),) = answer_spans(text, case)
    assert text[start:end] == "They are kept for 30 days."


def test_each_fact_has_its_sentence_and_neighbours_are_joined() -> None:
    text = "Alpha comes first. Beta follows it. Nothing here. Gamma ends."
    case = {"expected_key_facts": ["beta follows", "alpha first", "gamma ends"]}
    expected = ["Alpha comes first. Beta follows it.", "Gamma ends."]
    assert [text[a:b] for a, b in answer_spans(text, case)] == expected


def test_the_reference_answer_stands_in_for_facts_and_the_question_for_both() -> None:
    text = "Tokens rotate weekly. A rotation of signing keys needs an owner."
    by_reference = answer_spans(text, {"reference_answer": "Tokens rotate weekly."})
    assert [text[a:b] for a, b in by_reference] == ["Tokens rotate weekly."]
    by_question = answer_spans(text, {"question": "Who may start a rotation of signing keys?"})
    assert [text[a:b] for a, b in by_question] == ["A rotation of signing keys needs an owner."]
    assert answer_spans(text, {"question": "What about invoices?"}) == []
    # Facts that are not here are no reason to fall back on the question's words.
    facts = {"question": "signing keys rotation?", "expected_key_facts": ["costs ten euros"]}
    assert answer_spans(text, facts) == []


def test_content_words() -> None:
    assert content_words("How long are the Logs kept?") == {"long", "log", "kept"}
    assert content_words("is it in the or") == frozenset()


def test_spans_are_cut_and_joined() -> None:
    assert without([(0, 10)], (3, 5)) == [(0, 3), (5, 10)]
    assert without([(0, 3), (4, 6)], (0, 5)) == [(5, 6)]
    assert joined("ab  cd ef", [(4, 6), (0, 2)]) == [(0, 6)]
    assert joined("ab x cd", [(5, 7), (0, 2)]) == [(0, 2), (5, 7)]


def test_a_snippet_is_found_apart_from_space_and_case() -> None:
    assert find_span("Kept for\n30  DAYS.", "kept for 30 days") == (0, 17)
    assert find_span("abc", "x") is None
    assert find_span("abc", "") is None
    assert find_span("a (b) c*", "(B) C*") == (2, 8)


def test_paths_and_headings() -> None:
    assert norm_path(".\\a\\b.md") == "a/b.md"
    assert norm_path("././e\u0301.md") == "\u00e9.md"
    assert segments("# Plans >  ## Free   plan ") == ("Plans", "Free plan")
    assert segments(["Plans", "Free"]) == ("Plans", "Free")
    assert heading(None) == ""
    assert under("Intro > Why", "Intro")
    assert not under("Introduction", "Intro")
    assert not under("Intro", "intro"), "case is kept"
    assert under("anything", "")


def test_texts_are_compared_folded() -> None:
    assert holds("The\nSTRASSE ends", "straße")
    assert not holds("text", "  ")
    assert _folded(" A\t b ") == "a b"


def test_fuzzy_is_as_similar_as_scores_ask_for() -> None:
    quote = "one two three four five six seven eight nine ten"  # 48 characters; 0.8 is asked for
    assert _nearly_holds(f"before {quote.replace('five', 'FIFE')} after", quote)
    assert _nearly_holds("#" * 9 + quote[9:], quote), "39 / 48 = 0.81"
    assert not _nearly_holds("#" * 10 + quote[10:], quote), "38 / 48 = 0.79"


def test_a_support_is_located_by_its_quote_first() -> None:
    chunks = [
        Chunk("a.md", "H", "First part."),
        Chunk("a.md", "H", "Second part."),
        Chunk("b.md", "H", "First part."),
    ]
    support = {"rel_path": "a.md", "heading_path": "H"}
    assert locate(support, chunks) == ([0, 1], "heading")
    assert locate({**support, "snippets": ["second PART."]}, chunks) == ([1], "shown")
    assert locate({**support, "heading_path": "X", "snippets": ["First"]}, chunks) == ([0], "moved")
    assert locate({**support, "snippets": ["Third part is not here."]}, chunks) == ([], "absent")
    assert locate({"rel_path": "c.md"}, chunks) == ([], "absent")
    cut = [Chunk("a.md", "H", "First", cut=True)]
    assert locate({**support, "snippets": ["First part."]}, cut) == ([0], "heading")


HOSTILE = {
    "abbreviations": "e.g. " * 200_000,
    "newlines": "\n" * 1_000_000,
    "spaces": "\n" + " " * 1_000_000 + "x",
    "same word": "kept " * 200_000,
    "dots": "." * 1_000_000,
    "one line": "x" * 1_000_000,
    "nul and escapes": "\x00\x1b[2J\x1b]0;t\x07 kept. " * 1_000,
    "bidi and emoji": "\u202e\u2066👩‍👩‍👧‍👦 kept 30 days.\u2029" * 1_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_hostile_text_can_be_marked(session: Session, name: str) -> None:
    text = HOSTILE[name]
    session.pool.put("q-0001", [Chunk("a.md", "H", text), Chunk("a.md", "G", text[:50])])
    start = snapshot(session)
    with_row = session.rows()[0].number
    try:
        session.on_row(with_row, marks.toggle)
        sentences_of(session.view.row(with_row), session.case)
        session.pool.put("q-0001", [Chunk("a.md", "H", text + "kept kept kept kept kept")])
        session.rows()
        json.dumps(session.case)
        snippets = session.case["gold_supports"][0].get("snippets", [])
        assert all(len(snippet) <= 2_000 for snippet in snippets)
        session.undo()
    except ActionRefused:
        pytest.fail("a row with text could not be marked")
    assert snapshot(session) == start
