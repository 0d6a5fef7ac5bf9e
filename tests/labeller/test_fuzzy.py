"""Finding by some of the letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from labeller.forms import _closeness, ranked

PLACES = ["guide/retention.md > Plans > Free", "guide/roles.md > Owners", "faq.md > Billing"]


@each_row(
    ("word", "text", "score"),
    [
        ("free", "plans > free", 3.0),  # a word of the text begins with it
        ("an", "plans > ant", 3.0),  # not the first place, but a later one begins a word
        ("lan", "plans", 2.0),
        ("gdr", "guide/retention", 3 / 7),  # g-uide/r: 3 letters on a stretch of 7
        ("aab", "a.aab", 3.0),
        ("ac", "a..abc", 2 / 3),  # made short from the end: a-b-c, not the whole six
        ("ca", "abc", 0.0),  # in order only
        ("x", "", 0.0),
    ],
)
def test_closeness(word: str, text: str, score: float) -> None:
    assert _closeness(word, text) == pytest.approx(score)


@each_row(("typed", "best"), [("retfree", 0), ("gdro", 1), ("FAQ bill", 2), ("owners guide", 1)])
def test_the_best_comes_first(typed: str, best: int) -> None:
    assert ranked(typed, PLACES)[0] == PLACES[best]


def test_every_word_must_be_there() -> None:
    assert ranked("faq owners", PLACES) == []
    assert ranked("  ", PLACES) == PLACES


@given(st.text(max_size=8), st.lists(st.text(max_size=20), max_size=8))
def test_what_is_found_holds_the_letters_in_order(typed: str, texts: list[str]) -> None:
    found = ranked(typed, texts)
    for text in found:
        for word in typed.casefold().split():
            letters = iter(text.casefold())
            assert all(letter in letters for letter in word)
    assert sorted(found) == sorted(text for text in texts if text in found)
