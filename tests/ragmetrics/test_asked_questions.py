"""Questions that are nearly asked already."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragmetrics.text.asked_questions import AskedQuestions


def test_nearly_the_same_question_is_not_new() -> None:
    asked = AskedQuestions(["How do I clean a crane?"])
    assert not asked.add("How do I clean the crane?")
    assert not asked.add("how DO i clean cranes?")
    assert asked.add("How do I rent a crane?")
    assert asked.add("What is a mixer?")
    assert not asked.add("What should I know about mixers?")
    assert not asked.add("?!")


@given(st.lists(st.text("abc xyz?", min_size=1, max_size=12), max_size=15))
def test_a_question_is_never_new_twice(texts: list[str]) -> None:
    asked = AskedQuestions()
    for text in texts:
        asked.add(text)
        assert not asked.add(text)
