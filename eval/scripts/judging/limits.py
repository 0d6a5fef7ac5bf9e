"""Schemas as narrow as a server takes them: the limits are taken out where it refuses them.

Servers differ in the keywords that they take: OpenAI's strict mode knows no ``maxLength``, others
no lengths of lists. A refused request (HTTP 400 or 422) is sent again with less; so is one whose
replies do not fit, which shows that nothing holds the model to the schema. What it took is kept in
mind. The key of a verdict covers the schema that was really sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from clients.judge_bodies import HELD, Found
from clients.judge_cost import add_usage
from clients.judge_types import Judge, JudgeIdentity, JudgeTask, Verdict
from judging.asking import sum_of

TEXT, LIST, IDS = ("maxLength",), ("minItems", "maxItems"), "ids"
LEFT_OUT: tuple[tuple[str, ...], ...] = ((), TEXT, (*TEXT, *LIST, IDS))
"""What each step leaves out of a schema. The last is the plain form: fields, types, verdicts."""
PLAIN = len(LEFT_OUT) - 1
KNOWN = {"openai": 1}
"""The first step to try, by provider; 0 for all others."""
NAMES_IDS = frozenset({"id", "context"})
_REFUSED = re.compile(r"HTTP 4(?:00|22)\b|\bgrammar\b|\bschema\b", re.IGNORECASE)


class Ways(Protocol):
    """What knows how JSON is asked for."""

    @property
    def found(self) -> Found: ...


class Fitted:
    """A judge whose schemas are loosened until its server takes them. Thread-safe.

    Where nothing holds a model to the schema the plain form is asked for, and what a reply lacks
    is asked again.
    """

    def __init__(self, stored: Judge, judge: Judge, ways: Ways, thinking: int = 0) -> None:
        """``stored`` gives what is in the cache and asks nobody; ``judge`` asks.

        ``thinking``: tokens that a reply may take beside its form.
        """
        self._thinking = thinking
        self._stored = stored
        self._judge = judge
        self._ways = ways
        self._learnt = 0

    @property
    def identity(self) -> JudgeIdentity:
        return self._judge.identity

    @property
    def left_out(self) -> Sequence[str]:
        """What is left out of schemas by now, for config.json."""
        return LEFT_OUT[max(self._first, self._learnt)]

    @property
    def _first(self) -> int:
        if self._ways.found.mode not in HELD:
            return PLAIN
        return KNOWN.get(self.identity.provider, 0)

    def holds(self, task: JudgeTask) -> bool:
        """Is there a verdict already, in any of the forms?"""
        return self._held(self._roomy(task)) is not None

    def ask(self, task: JudgeTask) -> Verdict:
        """The verdict in the narrowest form that is there, else that the server takes."""
        task = self._roomy(task)
        held = self._held(task)
        if held is not None:
            return held
        step = max(self._first, self._learnt)
        verdict = self._judge.ask(loosened(task, step))
        while _unfit(verdict) and step < PLAIN:
            step += 1
            before, verdict = verdict, self._judge.ask(loosened(task, step))
            verdict = _with_bill(verdict, before)
            if verdict.ok:
                self._learnt = max(self._learnt, step)
        return verdict

    def _roomy(self, task: JudgeTask) -> JudgeTask:
        if not self._thinking:
            return task
        return replace(task, max_tokens=task.max_tokens + self._thinking)

    def _held(self, task: JudgeTask) -> Verdict | None:
        for step in range(self._first, PLAIN + 1):
            verdict = self._stored.ask(loosened(task, step))
            if verdict.ok:
                return verdict
        return None


def _unfit(verdict: Verdict) -> bool:
    """The schema may be at fault."""
    if verdict.failure == "schema":
        return True
    refused = verdict.failure in ("rejected", "transport")
    return refused and _REFUSED.search(verdict.message) is not None


def _with_bill(verdict: Verdict, before: Verdict) -> Verdict:
    """A verdict with what the refused form has taken, too."""
    return replace(
        verdict,
        attempts=verdict.attempts + before.attempts,
        asks=verdict.asks + before.asks,
        usage=add_usage(verdict.usage, before.usage) if before.asks else verdict.usage,
        cost_usd=sum_of([verdict.cost_usd, before.cost_usd]),
        seconds=sum_of([verdict.seconds, before.seconds]),
    )


def loosened(task: JudgeTask, step: int) -> JudgeTask:
    """The task with what this step leaves out of its schema."""
    if step == 0:
        return task
    return replace(task, schema=_without(task.schema, frozenset(LEFT_OUT[step])))


def _without(schema: Mapping[str, Any], left_out: frozenset[str], name: str = "") -> dict[str, Any]:
    """A schema without some keywords; ``name``: of the property that it describes."""
    drop = left_out | {"enum"} if IDS in left_out and name in NAMES_IDS else left_out
    found = {key: value for key, value in schema.items() if key not in drop}
    if "properties" in found:
        fields = found["properties"].items()
        found["properties"] = {key: _without(one, left_out, key) for key, one in fields}
    if "items" in found:
        found["items"] = _without(found["items"], left_out)
    return found
