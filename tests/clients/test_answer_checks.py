"""What all answers of a bot show together: the order of its passages, and answers that lag."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from clients.answer_checks import HeardAnswer, lags, order_of, score_lists
from records.results import RetrievedChunk, TestResult

FIVE = [0.9, 0.7, 0.5, 0.3, 0.1]


def test_scores_that_fall_are_said_and_scores_that_rise_are_asked() -> None:
    falls = order_of("score", [FIVE, FIVE])
    assert falls is not None
    assert (falls.mark, falls.asks) == ("✓", False)
    rises = order_of("score", [FIVE[::-1], FIVE[::-1]])
    assert rises is not None
    assert rises.mark == "?"
    said = rises.sentence((1.5, 3.0), (0.0, 0.5))
    assert "order=reversed" in said
    assert "shares 1.5 words with its question, the last 3.0" in said
    assert "P@1 is 0.00 in this order, 0.50 reversed" in said


def test_a_distance_that_rises_is_right_and_one_that_falls_is_asked() -> None:
    for field in ("distance", "cosineDistance", "dist"):
        assert order_of(field, [FIVE[::-1]] * 2).mark == "✓"  # type: ignore[union-attr]
        assert order_of(field, [FIVE] * 2).mark == "?"  # type: ignore[union-attr]


def test_scores_of_a_reranker_or_a_fusion_are_a_note() -> None:
    mixed = order_of("score", [FIVE, [0.5, 0.9, 0.1]])
    assert mixed is not None
    assert (mixed.mark, mixed.asks) == ("–", False)
    assert order_of("score", [[1.0, 1.0], [0.5]]) is None


@pytest.mark.parametrize(
    ("length", "fewest"), [(2, 10), (3, 4), (5, 2)]
)  # k!^n >= 1000: 2^10 = 1024, 6^4 = 1296, 120^2 = 14400
def test_rising_scores_are_asked_only_when_chance_is_excluded(length: int, fewest: int) -> None:
    rising = [float(n) for n in range(length)]
    enough, short = order_of("score", [rising] * fewest), order_of("score", [rising] * (fewest - 1))
    assert enough is not None
    assert short is not None
    assert (enough.asks, short.kind) == (True, "open")


def test_the_score_is_that_of_the_profile_or_a_distance_by_its_name() -> None:
    payload = {"hits": [{"text": "a", "sim": 0.2, "distance": 0.8}, {"text": "b", "sim": 0.9}]}
    tables = {"response": {"retrieved": "hits"}, "chunk": {"score_final": "sim"}}
    assert score_lists(tables, [payload], is_reversed=False) == ("sim", [[0.2, 0.9]])
    assert score_lists(tables, [payload], is_reversed=True) == ("sim", [[0.9, 0.2]])
    bare = {"response": {"retrieved": "hits"}, "chunk": {"text": "text"}}
    payload = {"hits": [{"distance": 0.1}, {"distance": 0.4}]}
    assert score_lists(bare, [payload], is_reversed=False) == ("distance", [[0.1, 0.4]])
    searches = {"response": {"searches": "s"}, "chunk": {"score_final": "sim"}}
    payload = {"s": [{"retrieved": [{"sim": 1}, {"sim": 2}]}, {"retrieved": []}]}
    assert score_lists(searches, [payload], is_reversed=False) == ("sim", [[1, 2]])


PAGES = {"roses": "Roses are pruned in March.", "lawn": "The lawn is mown weekly.",
         "oil": "Engine oil is changed in autumn."}  # fmt: skip
ASKED = {"roses": "When are roses pruned?", "lawn": "How often is the lawn mown?",
         "oil": "When is engine oil changed?"}  # fmt: skip


def heard(asked: str, told: str, *, with_gold: bool = True) -> HeardAnswer:
    chunk = RetrievedChunk("1", rel_path=f"{told}.md", text=PAGES[told], rank=1)
    result = TestResult(asked, ASKED[asked], answer=PAGES[told], retrieved=[chunk])
    return HeardAnswer(ASKED[asked], result, frozenset([f"{asked}.md"] if with_gold else []))


def test_a_bot_that_answers_the_question_before_is_named() -> None:
    order = ["roses", "lawn", "oil", "roses"]
    for with_gold in (True, False):
        late = [heard(a, b, with_gold=with_gold) for b, a in pairwise(order)]
        first = heard("roses", "oil", with_gold=with_gold)
        assert lags([first, *late]).startswith("3 of 3 answers fit the question")
    assert lags([heard(name, name) for name in order]) == ""
    same = [heard(name, "oil") for name in order]  # always the same page: no lag
    assert lags(same) == ""
    assert lags([heard("roses", "roses")]) == ""


def test_before_a_turn_is_the_turn_of_its_own_conversation() -> None:
    """Turns of several conversations are asked at the same time, and come back mixed."""
    told = (("roses", "roses"), ("lawn", "roses"), ("oil", "lawn"))
    mixed = [
        replace(heard(asked, answer), conversation=name) for asked, answer in told for name in "ab"
    ]
    assert lags(mixed).startswith("4 of 4 answers fit the question")
    right = [replace(heard(asked, asked), conversation=name) for asked, _ in told for name in "ab"]
    assert lags(right) == ""
