"""Conversations of a report, turn by turn: put together from the answers that it shows in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from views.case import Case
from views.report.text import cut
from views.searches import SearchStep, longest_ms
from views.tools import ToolStep, tools_note

QUERY = 600
"""Characters of a query that are shown."""

MOST_SEARCHES = MOST_TOOLS = 20

BAR = 100
"""Units of the bar that shows when a search ran."""


def turn_part(case: Case) -> dict[str, Any]:
    """What a described answer has besides when it is a turn, or tells its searches or tools."""
    part: dict[str, Any] = {}
    if case.conversation:
        part |= {"conversation": case.conversation, "turn": case.turn}
    if case.history:
        part["history"] = [
            {"role": message.role, "text": cut(message.content, QUERY)} for message in case.history
        ]
    if steps := case.searches:
        longest = longest_ms(steps)
        part["searches"] = {
            "rewritten": cut(case.rewritten or None, QUERY),
            "complete": case.complete,
            "steps": [_step(step, longest) for step in steps[:MOST_SEARCHES]],
            "more": max(0, len(steps) - MOST_SEARCHES),
        }
    if (calls := case.tools) is not None:
        part["tools"] = {
            "says": tools_note(calls, case.missing_calls),
            "calls": [_call(call) for call in calls[:MOST_TOOLS]],
            "more": max(0, len(calls) - MOST_TOOLS),
            "missing": [cut(call, QUERY) for call in case.missing_calls[:MOST_TOOLS]],
        }
    return part


def _call(step: ToolStep) -> dict[str, Any]:
    return {
        "call": cut(step.call, QUERY),
        "result": cut(step.result or None, QUERY),
        "error": cut(step.error or None, QUERY),
        "says": step.says(),
        "bad": step.bad,
    }


def _step(step: SearchStep, longest: float) -> dict[str, Any]:
    shown = step.shown_new()
    return {
        "query": cut(step.query or "(no query told)", QUERY),
        "tool": step.tool,
        "start_ms": step.start_ms,
        "latency_ms": step.latency_ms,
        "bar": step.bar(longest, BAR),
        "failed": bool(step.error),
        "says": step.says(),
        "new": [
            {"rank": passage.rank, "place": passage.location, "gold": passage.gold}
            for passage in shown
        ],
        "new_more": len(step.new) - len(shown),
    }


def conversations(answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The conversations among the answers in full, those that fail first, the earliest turn first.

    ``turns`` are places in ``answers``, ``first_failing`` is the number of the first turn that
    fails; ``absent`` are turns that are not among the answers.
    """
    places: dict[tuple[str, int], list[int]] = {}
    for place, answer in enumerate(answers):
        if "conversation" in answer:
            places.setdefault((answer["conversation"], answer["repeat"]), []).append(place)
    found = []
    for (name, repeat), turns in places.items():
        turns.sort(key=lambda place: answers[place]["turn"])
        numbers = [answers[place]["turn"] for place in turns]
        failing = [
            answers[place]["turn"] for place in turns if answers[place]["verdict"] == "fails"
        ]
        found.append(
            {
                "name": name,
                "repeat": repeat,
                "turns": turns,
                "first_failing": failing[0] if failing else None,
                "failing": failing,
                "absent": sorted(set(range(1, max(numbers) + 1)).difference(numbers)),
            }
        )
    return sorted(
        found,
        key=lambda talk: (talk["first_failing"] is None, talk["first_failing"] or 0, talk["name"]),
    )
