"""The messages before a question: the messages of a case, and of a turn with its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from records.cases import ChatMessage, TestCase
from records.conversations import conversations_of
from records.results import TestResult

REPLAYED = "replay"

ALONE = "alone"


def earlier_by_id(cases: Iterable[TestCase]) -> dict[str, Sequence[TestCase]]:
    """The turns before each later turn of a conversation, by its id."""
    return {
        turn.id: turns[:place]
        for turns in conversations_of(cases)
        for place, turn in enumerate(turns)
        if place
    }


def messages_before(
    case: TestCase, earlier: Sequence[TestCase], answer_of: Callable[[TestCase], str]
) -> list[ChatMessage]:
    """The messages before a question: its own history, else each earlier turn and its answer.

    A turn without an answer stands there with its question alone.
    """
    if case.history is not None:
        return case.history
    messages = []
    for turn in earlier:
        messages.append(ChatMessage("user", turn.question))
        if answer := answer_of(turn):
            messages.append(ChatMessage("assistant", answer))
    return messages


def messages_of_result(
    case: TestCase,
    result: TestResult,
    earlier: Sequence[TestCase],
    answers: Mapping[tuple[str, int], str],
) -> list[ChatMessage]:
    """The messages before a question, from its result alone: nothing before a question that was
    asked alone, the answers of the set where they were replayed, else those of the same repeat of
    the run.

    ``answers``: by case id and repeat.
    """
    if result.asked_with == ALONE:
        return []
    if result.asked_with == REPLAYED:
        return messages_before(case, earlier, lambda turn: turn.reference_answer or "")
    return messages_before(case, earlier, lambda turn: answers.get((turn.id, result.repeat), ""))
