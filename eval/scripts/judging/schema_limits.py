"""Schemas of replies, loosened until a judge's server takes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from judging.cost import add_usage
from judging.opinion import sum_of
from judging.protocols import ServerCapabilities
from judging.replies import HELD
from judging.types import Judge, JudgeTask, JudgeVerdict
from records.verdicts import JudgeIdentity

TEXT, LIST, IDS = ("maxLength",), ("minItems", "maxItems"), "ids"

LEFT_OUT: tuple[tuple[str, ...], ...] = ((), TEXT, (*TEXT, *LIST, IDS))
"""The keywords that each step leaves out of a schema. The last is the plain form: fields, types,
verdicts."""

PLAIN = len(LEFT_OUT) - 1

MOST_SCHEMAS = 4096
"""Loosened schemas that are kept."""

FIRST_STEPS = {"openai": 1}
"""The first step to try, by provider; 0 for all others."""

NAMES_IDS = frozenset({"id", "context"})

_REFUSED = re.compile(r"HTTP 4(?:00|22)\b|\bgrammar\b|\bschema\b", re.IGNORECASE)


class StoringJudge(Judge, Protocol):
    """A judge with a cache, which can be looked into without asking."""

    @property
    def capabilities(self) -> ServerCapabilities: ...

    @property
    def empty(self) -> bool:
        """Is nothing stored, and will nothing be?"""

    def stored(self, task: JudgeTask) -> JudgeVerdict | None: ...


class SchemaLimits:
    """A judge whose schemas are loosened until its server takes them.

    Where nothing holds a model to the schema the plain form is asked for, and what a reply lacks
    is asked again.
    """

    def __init__(self, judge: StoringJudge, thinking: int = 0) -> None:
        """``thinking``: tokens that a reply may take beside its form."""
        self._thinking = thinking
        self._judge = judge
        self._learnt = 0
        self._schemas: dict[tuple[int, int], tuple[Any, Mapping[str, Any]]] = {}

    @property
    def identity(self) -> JudgeIdentity:
        return self._judge.identity

    @property
    def left_out(self) -> Sequence[str]:
        """The keywords left out of schemas so far, for config.json."""
        return LEFT_OUT[max(self._first, self._learnt)]

    @property
    def _first(self) -> int:
        if self._judge.capabilities.mode not in HELD:
            return PLAIN
        return FIRST_STEPS.get(self.identity.provider, 0)

    def holds(self, task: JudgeTask) -> bool:
        """Is there a verdict already, in any of the forms?"""
        return self._stored(self._roomy(task)) is not None

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        """The verdict in the narrowest form that is there, else that the server takes."""
        task = self._roomy(task)
        stored = self._stored(task)
        if stored is not None:
            return stored
        step = max(self._first, self._learnt)
        verdict = await self._judge.ask(self._at_step(task, step))
        while _unfit(verdict) and step < PLAIN:
            step += 1
            before, verdict = verdict, await self._judge.ask(self._at_step(task, step))
            verdict = _with_bill(verdict, before)
            if verdict.ok:
                self._learnt = max(self._learnt, step)
        return verdict

    def first_form(self, task: JudgeTask) -> JudgeTask:
        """The task in the form that is asked first."""
        return self._at_step(task, max(self._first, self._learnt))

    def _at_step(self, task: JudgeTask, step: int) -> JudgeTask:
        """The loosened task. Kinds of calls share their schemas: each is loosened once."""
        if step == 0:
            return task
        loose = self._schemas.get((id(task.schema), step))
        if loose is None or loose[0] is not task.schema:
            if len(self._schemas) >= MOST_SCHEMAS:
                self._schemas.clear()
            loose = task.schema, _loosened(task, step).schema
            self._schemas[id(task.schema), step] = loose
        return replace(task, schema=loose[1])

    def _roomy(self, task: JudgeTask) -> JudgeTask:
        if not self._thinking:
            return task
        return replace(task, max_tokens=task.max_tokens + self._thinking)

    def _stored(self, task: JudgeTask) -> JudgeVerdict | None:
        for step in range(self._first, PLAIN + 1) if not self._judge.empty else ():
            verdict = self._judge.stored(self._at_step(task, step))
            if verdict is not None:
                return verdict
        return None


def _unfit(verdict: JudgeVerdict) -> bool:
    """The schema may be at fault."""
    if verdict.failure == "schema":
        return True
    refused = verdict.failure in ("rejected", "transport")
    return refused and _REFUSED.search(verdict.message) is not None


def _with_bill(verdict: JudgeVerdict, before: JudgeVerdict) -> JudgeVerdict:
    """A verdict with what the refused form has taken, too."""
    return replace(
        verdict,
        attempts=verdict.attempts + before.attempts,
        asks=verdict.asks + before.asks,
        usage=add_usage(verdict.usage, before.usage) if before.asks else verdict.usage,
        cost_usd=sum_of([verdict.cost_usd, before.cost_usd]),
        seconds=sum_of([verdict.seconds, before.seconds]),
    )


def _loosened(task: JudgeTask, step: int) -> JudgeTask:
    """The task with what this step leaves out of its schema."""
    if step == 0:
        return task
    return replace(task, schema=_without(task.schema, frozenset(LEFT_OUT[step])))


def _without(schema: Mapping[str, Any], left_out: frozenset[str], name: str = "") -> dict[str, Any]:
    """A schema without some keywords; ``name``: of the property that it describes."""
    drop = left_out | {"enum"} if IDS in left_out and name in NAMES_IDS else left_out
    remaining = {key: value for key, value in schema.items() if key not in drop}
    if "properties" in remaining:
        fields = remaining["properties"].items()
        remaining["properties"] = {key: _without(part, left_out, key) for key, part in fields}
    if "items" in remaining:
        remaining["items"] = _without(remaining["items"], left_out)
    return remaining
