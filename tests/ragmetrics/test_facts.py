"""Where a fact's wording is found among the words of a passage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragmetrics.facts import _occurrences

FEW_WORDS = st.lists(st.sampled_from(("a", "b")), max_size=12)


@given(FEW_WORDS.filter(bool), FEW_WORDS)
def test_every_place_is_found_also_where_wordings_overlap(
    phrase: list[str], held: list[str]
) -> None:
    """Independent: compares the slice at each place."""
    places = [at for at in range(len(held)) if held[at : at + len(phrase)] == phrase]
    assert _occurrences(phrase, held) == places
