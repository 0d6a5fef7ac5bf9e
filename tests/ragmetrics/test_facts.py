"""Where a fact's wording is found among the words of a passage."""

from __future__ import annotations

from itertools import product

from ragmetrics.facts import _occurrences


def test_every_place_is_found_also_where_wordings_overlap() -> None:
    """Independent: compares the slice at each place. All phrases of up to six words that begin with
    a, among all texts of ten; of two words, since more only make borders rarer."""
    texts = list(product("ab", repeat=10))
    for length in range(1, 7):
        for phrase in product("a", *["ab"] * (length - 1)):
            for held in texts:
                places = [at for at in range(10) if held[at : at + length] == phrase]
                assert _occurrences(phrase, held) == places, (phrase, held)
