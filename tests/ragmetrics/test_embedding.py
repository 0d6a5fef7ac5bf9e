"""Metrics of vectors by hand: unit vectors in the plane, whose cosines are plain fractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ragmetrics import embedding
from ragmetrics.stats.means import share_from
from ragmetrics.text.words import words

Vectors = Any
EAST, NORTH = [1.0, 0.0], [0.0, 1.0]
SLANT = [0.6, 0.8]  # cosine 0.6 with EAST, 0.8 with NORTH


def vectors(*rows: list[float]) -> Vectors:
    return np.array(rows, dtype=np.float32)


def test_cosines_are_rounded_and_signed() -> None:
    found = embedding.cosines(vectors(EAST, SLANT), vectors(EAST, NORTH, [-1.0, 0.0]))
    assert found.tolist() == [[1.0, 0.0, -1.0], [0.6, 0.8, -0.6]]
    # East and north pool to the diagonal: cosine with east is 1 / sqrt 2.
    assert embedding.whole_similarity(vectors(EAST, NORTH), vectors(EAST)) == 0.707107
    assert embedding.whole_similarity(vectors(EAST, NORTH), vectors(EAST, NORTH)) == 1.0
    assert embedding.whole_similarity(vectors(EAST, [-1.0, 0.0]), vectors(EAST)) == 0.0


@given(arrays.arrays(np.float32, (4, 7), elements=st.floats(-1, 1, width=32)))
def test_a_vector_is_exactly_one_with_itself(drawn: Vectors) -> None:
    length = np.linalg.norm(drawn, axis=1, keepdims=True)
    unit = (drawn / np.where(length > 0, length, 1)).astype(np.float32)
    found = embedding.cosines(unit, unit)
    assert ((found >= -1) & (found <= 1)).all()
    assert [found[i, i] for i in range(4) if length[i] > 1e-3] == [1.0] * int((length > 1e-3).sum())


def test_the_best_window_counts() -> None:
    """Two texts; the second other text has two windows, of which the nearer one counts."""
    texts = [vectors(EAST), vectors(SLANT)]
    other = [vectors(NORTH), vectors(NORTH, EAST)]
    assert embedding.nearest(texts, other).tolist() == [[0.0, 1.0], [0.8, 0.8]]
    assert embedding.nearest(texts, []).shape == (2, 0)
    assert embedding.nearest([], other).shape == (0, 2)
    # More texts than a block holds: 600 x 2, each row as if it were alone.
    texts = [vectors(EAST, NORTH) if n % 2 else vectors(SLANT) for n in range(600)]
    found = embedding.nearest(texts, [vectors(EAST), vectors(SLANT, NORTH)])
    assert found.shape == (600, 2)
    assert found[::2].tolist() == [[0.6, 1.0]] * 300
    assert found[1::2].tolist() == [[1.0, 1.0]] * 300


def test_context_relevance_by_hand() -> None:
    """0.1, 0.5, 0.3, 0.9: the mean is 1.8 / 4, the best three are 1.7 / 3."""
    found = embedding.context_relevance([0.1, 0.5, 0.3, 0.9])
    assert found == {"mean": 0.45, "max": 0.9, "top3": pytest.approx(1.7 / 3)}
    assert embedding.context_relevance([-0.2]) == {"mean": -0.2, "max": -0.2, "top3": -0.2}
    assert embedding.context_relevance([]) == {"mean": None, "max": None, "top3": None}
    # Best answer sentences: 0.9 and 0.4. More answer sentences never lower it.
    assert embedding.answer_relevance(np.array([[0.9, 0.2], [0.1, 0.4]])) == pytest.approx(0.65)
    assert embedding.answer_relevance(np.zeros((0, 3))) is None
    assert embedding.answer_relevance(np.zeros((2, 0))) is None
    assert share_from([0.5, 0.49, 0.9, 0.1], 0.5) == 0.5
    assert embedding.share_below([0.4, 0.39, 0.9, 0.1], 0.4) == 0.5
    assert share_from([], 0.5) is None
    assert embedding.share_below([], 0.5) is None


def test_windows_of_one_to_three_sentences() -> None:
    """Four sentences give 4 + 3 + 2 windows."""
    found = embedding.sentence_windows(["a", "b", "c", "d"])
    assert list(found) == ["a", "b", "c", "d", "a b", "b c", "c d", "a b c", "b c d"]
    assert list(embedding.sentence_windows(["a", "a"])) == ["a", "a a"]
    assert embedding.sentence_windows([]) == {}
    windows = _with_words("dogs bark", "cats sleep all day", "cats sleep", "birds")
    likely = embedding.likely_windows(["Cats sleep.", "!?"], windows, 2)
    assert likely == {
        "Cats sleep.": ["cats sleep", "cats sleep all day"],
        "!?": ["birds", "dogs bark"],
    }
    assert embedding.flat("  A  Cat\nsleeps. ") == embedding.flat("a cat sleeps")
    assert embedding.flat("a cat sleeps") != embedding.flat("no cat sleeps")


def _with_words(*windows: str) -> dict[str, frozenset[str]]:
    return {window: frozenset(words(window.casefold())) for window in windows}


@given(st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=5), st.integers(1, 9))
def test_likely_windows_are_windows(sentences: list[str], windows: list[str], most: int) -> None:
    found = embedding.likely_windows(sentences, _with_words(*windows), most)
    assert found.keys() == set(sentences)
    for kept in found.values():
        assert len(kept) == min(most, len(set(windows)))
        assert set(kept) <= set(windows)
