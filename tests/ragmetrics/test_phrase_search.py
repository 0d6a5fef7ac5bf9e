"""A search that tries few of many patterns finds what trying all of them finds."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ragmetrics.text.phrase_search import PhraseSearch
from ragmetrics.text.refusal_phrases import phrases
from ragmetrics.text.refusals import _phrases_of
from ragmetrics.text.words import fold

PATTERNS = (
    r"\bcan(?:not|'t)\b", r"(?:no|not any) (?:data|information)", r"ab+c{2,}", r"x?y*z",
    r"(?i:ABC)d",
    r"(?=look)(?!ahead)\w+ing", r"[ab]{3}", r"(?:long|literal|words)+ here", r"(?>cat|dog)s",
)  # fmt: skip


COMPILED = tuple(map(re.compile, PATTERNS))


def by_all(patterns: Sequence[re.Pattern[str]], text: str) -> int | None:
    return next((n for n, pattern in enumerate(patterns) if pattern.search(text)), None)


def every_pattern(search: PhraseSearch) -> list[re.Pattern[str]]:
    """Compiled once: ``re`` keeps fewer than there are, and would compile each for each text."""
    return [re.compile(pattern) for pattern in search._patterns]


@given(st.text("abcdinotlrwksgxyzuefm' h", max_size=60))
def test_it_finds_the_first_pattern_that_matches(text: str) -> None:
    assert PhraseSearch(PATTERNS).first_in(text) == by_all(COMPILED, text)


def test_each_pattern_is_found_by_its_letters() -> None:
    texts = ("I cannot.", "not any information", "abbccc", "z", "ABCd", "looking", "bab",
             "so many words here", "two dogs", "nothing at al")  # fmt: skip
    search = PhraseSearch(PATTERNS)
    assert [search.first_in(text) for text in texts] == [0, 1, 2, 3, 4, 5, 6, 7, 8, None]


def test_refusals_of_all_languages_are_found_as_by_trying_all() -> None:
    path = Path(__file__).parents[2] / "bench/research/refusals_by_language.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    texts = [fold(value) for row in rows for value in row.values() if isinstance(value, str)]
    assert len(texts) > 300
    for search in (_phrases_of("en").search, _phrases_of(*phrases()).search):
        patterns = every_pattern(search)
        for text in texts:
            assert search.first_in(text) == by_all(patterns, text), text


def test_words_that_stand_in_long_texts_and_scripts_without_blanks() -> None:
    search = PhraseSearch(PATTERNS)
    for text in ("catalogue " * 200 + "two dogs", "犬" * 2000 + "abbccc", "n" * 5000 + "ABCd"):
        assert len(text) > 1000
        assert search.first_in(text) == by_all(COMPILED, text)
