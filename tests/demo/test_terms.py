"""What search rests on, by hand: terms, BM25, coverage, the choice of folders."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from demo.index import LexicalIndex, terms
from demo.retriever import _select_folders, coverage, question_terms, relevance


@each_row(
    ("text", "expected"),
    [
        ("The WITH-statement, 3.8!", ["the", "with", "statement", "3", "8"]),
        ("__init__ set_name _", ["init", "set_name", "set", "name"]),
        ("Straße ﬁne ＡＢＣ", ["strasse", "fine", "abc"]),
        ("東京都に行く", ["東京", "京都", "都に", "に行", "行く"]),
        ("Pythonの本", ["python", "の本"]),
        ("京", ["京"]),
        ("भाषा हिन्दी", ["भाषा", "हिन्दी"]),  # vowel signs are marks, no letters
        ("한국어 문서", ["한국어", "문서"]),
        ("Ünïcode naïve", ["ünïcode", "naïve"]),
        ("... -- ==", []),
        ("", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@given(st.text())
def test_terms_of_any_text_are_never_empty_strings(text: str) -> None:
    assert all(term.strip("_ \n\t") for term in terms(text))


def test_bm25_and_rarity_by_hand() -> None:
    # Lengths 2, 4, 3; mean 3. "egg" stands twice in text 1 and once in text 2.
    index = LexicalIndex(["owl night", "hen egg egg coop", "cod egg sea"])
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    assert index.rarity("egg") == pytest.approx(idf)
    assert index.rarity("unknown") == pytest.approx(math.log(1 + 3.5 / 0.5))
    # tf / (tf + k1 (1 - b + b dl / mean)) with k1 1.5, b 0.75
    longer = idf * 2 / (2 + 1.5 * (0.25 + 0.75 * 4 / 3))
    middle = idf * 1 / (1 + 1.5 * (0.25 + 0.75 * 3 / 3))
    assert index.scores("Egg, egg? Which EGG!", {}).tolist() == pytest.approx([0, longer, middle])
    assert index.scores("...", {}).tolist() == [0, 0, 0]


def test_question_terms_keep_what_the_question_is_about() -> None:
    assert question_terms("What does the with statement do?") == {"the", "with", "statement"}
    assert question_terms("what is what") == {"is"}
    assert question_terms("Why?") == {"why"}


def test_coverage_and_relevance_by_hand() -> None:
    weights = {"a": 1.0, "b": 2.0, "c": 5.0}
    assert coverage({"a", "b", "c"}, {"b", "c", "z"}, weights.__getitem__) == pytest.approx(7 / 8)
    assert coverage(set(), {"a"}, weights.__getitem__) == 0
    assert relevance(0.8, 0.0, 0.0) == 0.8
    assert relevance(0.8, 0.4, 0.25) == pytest.approx(0.75 * 0.8 + 0.25 * 0.4)
    assert relevance(0.8, -0.3, 0.5) == pytest.approx(0.4)


def test_folder_choice_by_hand() -> None:
    votes = [("a", 5.0), ("b", 3.0), ("a", 1.0), ("c", 0.7), ("d", 0.3)]  # a 6, b 3, c .7, d .3
    chosen = _select_folders("on", votes, lambda: 0.9)  # 60 % are too few, 90 % are enough
    assert chosen == (["a", "b"], "a, b: 90% of the scores of the top 5 chunks")
    assert _select_folders("off", votes, lambda: 0.9)[0] == []
    assert _select_folders("on_with_fallback", votes, lambda: 0.9) == chosen


def test_folder_choice_falls_back_when_the_best_is_weak() -> None:
    votes = [("a", 5.0), ("b", 3.0)]
    assert _select_folders("on", votes, lambda: 0.29)[0] == ["a", "b"]
    folders, reason = _select_folders("on_with_fallback", votes, lambda: 0.29)
    assert folders == []
    assert "matches the question only with 0.29" in reason
    even = [(name, 1.0) for name in "abcd"]  # 25 % each
    assert _select_folders("on", even, lambda: 0.9)[0] == ["a", "b", "c"]  # at most three
    folders, reason = _select_folders("on_with_fallback", even, lambda: 0.9)
    assert folders == []
    assert "a, has only 25%" in reason
    assert _select_folders("on", [], lambda: 0.9)[0] == []
