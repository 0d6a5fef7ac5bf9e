"""Conversations: which cases are turns of one, in which order, and what came before a turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar


class _Turn(Protocol):
    """What of a case says where it stands in a conversation."""

    @property
    def id(self) -> str: ...
    @property
    def conversation(self) -> str | None: ...
    @property
    def turn(self) -> int | None: ...


TurnT = TypeVar("TurnT", bound=_Turn)


class TurnOrder:
    """Finds turns that are out of order. Memory: a hash a conversation.

    ``problems`` are those of the cases added since it was last emptied, as field and message.
    """

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []
        self._ended: set[str] = set()
        self._open: str | None = None
        self._turn: int | None = None
        self._group: Any = None

    def add(self, conversation: Any, turn: Any, group: Any) -> None:
        """Take the next case of the set; values of a wrong type are reported elsewhere."""
        if not isinstance(conversation, str):
            self.leave()
            return
        number = turn if isinstance(turn, int) and not isinstance(turn, bool) else None
        if conversation == self._open:
            if number is not None and self._turn is not None and number != self._turn + 1:
                self._add("turn", _out_of_order(conversation, number, self._turn))
            if group != self._group:
                self._add(
                    "group",
                    f"cuts conversation {conversation!r}: the turn before has "
                    f"{_shown(self._group)}, this one {_shown(group)}; give all its turns the "
                    "same, or none",
                )
        else:
            self.leave()
            if conversation in self._ended:
                self._add(
                    "conversation",
                    f"{conversation!r} has other cases between its turns; put its turns one after "
                    "the other",
                )
            elif number is not None and number != 1:
                self._add(
                    "turn",
                    f"conversation {conversation!r} begins with turn {number}, not 1; add the "
                    "missing turns or renumber",
                )
        self._open, self._turn, self._group = conversation, number, group

    def leave(self) -> None:
        """A case that is no turn: it ends the conversation that stands before it."""
        if self._open is not None:
            self._ended.add(self._open)
            self._open = None

    def _add(self, field: str, message: str) -> None:
        self.problems.append((field, message))


def _shown(group: Any) -> str:
    return "none" if group is None else repr(group)


def _out_of_order(conversation: str, turn: int, before: int) -> str:
    if turn == before:
        return f"conversation {conversation!r} has turn {turn} twice; number its turns 1, 2, …"
    if turn < before:
        return f"turn {turn} of conversation {conversation!r} comes after turn {before}; swap"
    missing = f"turn {before + 1}" if turn == before + 2 else f"turns {before + 1} to {turn - 1}"
    return f"conversation {conversation!r} lacks {missing}; add the missing turns or renumber"


def conversations_of(cases: Iterable[TurnT]) -> Iterator[list[TurnT]]:
    """The cases in their order: the turns of each conversation together, other cases alone."""
    turns: list[TurnT] = []
    for case in cases:
        if turns and (case.conversation is None or case.conversation != turns[0].conversation):
            yield turns
            turns = []
        turns.append(case)
    if turns:
        yield turns


def has_conversations(cases: Iterable[_Turn]) -> bool:
    """True when a case is a turn of a conversation."""
    return any(case.conversation is not None for case in cases)
