"""The messages before a question: the turns before it in its conversation, or its own history."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from labeller.case_state import Record
from terminal.actions import ActionRefused
from terminal.safe_text import DisplayText, one_line
from terminal.text_pane import Mark

NO_ANSWER: Final = "(no reference answer)"

AS_FOLLOW_UP: Final = ">"
"""The prefix of a search that is asked after the conversation, and not by itself."""


class AskedQuery(NamedTuple):
    """The query of a search, and the earlier messages that are sent with it."""

    text: str
    history: tuple[PriorMessage, ...] = ()


class PriorMessage(NamedTuple):
    """Something that was said; ``role`` is ``user``, ``assistant`` or ``system``."""

    role: str
    content: str
    turn: int | None = None


def messages_before(
    case: Record, ids: Sequence[str], case_of: Callable[[str], Record]
) -> list[PriorMessage]:
    """The messages before a case, oldest first. ``ids`` are those of the set, in its order.

    The bot's part of an earlier turn is its reference answer.
    """
    history = case.get("history")
    if isinstance(history, list):
        own = (item for item in history if isinstance(item, dict))
        return [PriorMessage(str(m.get("role", "")), str(m.get("content", ""))) for m in own]
    name, turns = case.get("conversation"), list[Record]()
    if name and case.get("turn") != 1:
        before = map(case_of, reversed(ids[: ids.index(str(case["id"]))]))
        turns = [*itertools.takewhile(lambda turn: turn.get("conversation") == name, before)]
    return [
        PriorMessage(role, str(turn.get(field) or ""), turn.get("turn"))
        for turn in reversed(turns)
        for role, field in (("user", "question"), ("assistant", "reference_answer"))
    ]


def asked_query(
    case: Record, query: str, ids: Sequence[str], case_of: Callable[[str], Record]
) -> AskedQuery:
    """A search of a case: its own question and one marked `AS_FOLLOW_UP` come behind what was said
    before it; other words are asked by themselves."""
    own = query == str(case.get("question") or "")
    text = query.removeprefix(AS_FOLLOW_UP).strip()
    follow_up = query.startswith(AS_FOLLOW_UP) and bool(text)
    if not (own or follow_up):
        return AskedQuery(query)
    messages = messages_before(case, ids, case_of)
    return AskedQuery(text if follow_up else query, tuple(m for m in messages if m.content))


def place_behind(case_id: str, ids: Sequence[str], case_of: Callable[[str], Record]) -> int:
    """The position of a new case that follows another one: never amid a conversation."""
    if not case_id:
        return 0
    place = ids.index(case_id) + 1
    name = case_of(case_id).get("conversation")
    while name and place < len(ids) and case_of(ids[place]).get("conversation") == name:
        place += 1
    return place


def place_of_last(case_id: str, ids: Sequence[str], case_of: Callable[[str], Record]) -> int:
    """The place of a case that may be taken out. Refuses a turn that has later ones: they would
    lose their history."""
    place, name = ids.index(case_id), case_of(case_id).get("conversation")
    if place_behind(case_id, ids, case_of) > place + 1:
        raise ActionRefused(f"{case_id} has later turns; delete the last turn of {name} first.")
    return place


def conversation_text(messages: Sequence[PriorMessage]) -> tuple[DisplayText, list[Mark]]:
    """The messages, a line each, and the positions of the speakers' names."""
    text = ""
    marks: list[Mark] = []
    for message in messages:
        start = "\n" if text else ""
        who = {"assistant": "bot"}.get(message.role, message.role)
        number = f"{message.turn} " if message.turn is not None else ""
        head = one_line(f"{number if message.role == 'user' else ' ' * len(number)}{who}: ")
        marks.append((len(text + start), len(text + start) + len(head), "key"))
        text += start + head + one_line(message.content or NO_ANSWER)
    return DisplayText(text), marks
