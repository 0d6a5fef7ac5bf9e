"""Questions that are nearly asked already."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from ragmetrics.text.asked_questions import AskedQuestions
from records.runs import EVAL_SET


def test_nearly_the_same_question_is_not_new() -> None:
    asked = AskedQuestions(["How do I clean a crane?"])
    assert not asked.add("How do I clean the crane?")
    assert not asked.add("how DO i clean cranes?")
    assert asked.add("How do I rent a crane?")
    assert asked.add("What is a mixer?")
    assert not asked.add("What should I know about mixers?")
    assert not asked.add("?!")


def test_three_of_four_words_in_common_are_enough_and_two_of_three_are_not() -> None:
    asked = AskedQuestions(["crane wheel rope"])
    assert asked.closeness("crane wheel rope bucket") == 3 / 4
    assert not asked.add("crane wheel rope bucket")
    assert asked.closeness("crane wheel") == 2 / 3
    assert asked.add("crane wheel")


@given(st.lists(st.text("abc xyz?", min_size=1, max_size=12), max_size=15))
def test_a_question_is_never_new_twice(texts: list[str]) -> None:
    asked = AskedQuestions()
    for text in texts:
        asked.add(text)
        assert not asked.add(text)


def variants(question: str, rng: random.Random) -> Iterator[str]:
    """The same question as users write it: courtesies, slips, case, order, another form."""
    words = question.rstrip("?").split()
    yield question.upper()
    yield f"Hi, could you please tell me: {question[0].lower()}{question[1:]} Thanks!"
    yield " ".join(words) + " ???"
    longest = max(words, key=len)
    at = rng.randrange(1, len(longest) - 2)
    slip = longest[:at] + longest[at + 1] + longest[at] + longest[at + 2 :]
    yield question.replace(longest, slip)
    yield question.replace(longest, longest[:at] + longest[at + 1 :])
    yield "I would like to know, " + question


def test_near_duplicates_of_the_set_are_found() -> None:
    """On the questions of the shipped demo set; distinct questions of it stay apart."""
    questions = [json.loads(line)["question"] for line in EVAL_SET.read_text("utf-8").splitlines()]
    asked, rng = AskedQuestions(questions), random.Random(3)
    pairs = [(q, v) for q in questions for v in variants(q, rng)]
    found = sum(not asked.add(variant) for _, variant in pairs)
    assert found / len(pairs) >= 0.95, f"{found} of {len(pairs)}"
    alone = AskedQuestions()
    assert sum(alone.add(question) for question in questions) >= 0.95 * len(questions)
