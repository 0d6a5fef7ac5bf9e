"""Tokens and money: what a run would cost, what it has cost, and when to stop.

Prices come from the user's table alone, in US dollars per million tokens; without one no money is
counted. A TOML file has a table for each model:

    ["gpt-4o-2024-08-06"]
    prompt = 2.50
    completion = 10.00
    cached = 1.25        # optional: prompt tokens that the server had in memory
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from judging.protocols import ServerCapabilities
from judging.types import NO_USAGE, JudgeTask, JudgeVerdict, Usage
from records.errors import StorageError
from records.toml_files import open_file

CHARACTERS_A_TOKEN = 4
"""Of English text, on average; for estimates only."""

TOKENS_A_REPLY = 300
"""Assumed while nothing is known of a metric's replies."""

MILLION = 1_000_000


Dollars = Annotated[float, Meta(ge=0, le=1e9, description="give dollars per million tokens")]


class Prices(msgspec.Struct, frozen=True):
    """US dollars per million tokens; ``cached``: None if such tokens cost the full price."""

    prompt: Dollars
    completion: Dollars
    cached: Dollars | None = None

    def cost(self, usage: Usage) -> float | None:
        """Dollars of a call; None when the server did not say how many tokens it was."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.prompt_tokens)
        cheap = self.prompt if self.cached is None else self.cached
        fresh = usage.prompt_tokens - cached
        paid = fresh * self.prompt + cached * cheap + usage.completion_tokens * self.completion
        return paid / MILLION


@dataclass(slots=True)
class TaskCost:
    """The cost of one task so far. ``costs``: of each reply, None where it is unknown.

    ``found``: how it was asked last. ``cut``: why the last prompt did not arrive whole.
    ``answered_as``: the model that the last reply names.
    """

    attempts: int = 0
    asks: int = 0
    usage: Usage = field(default_factory=Usage)
    costs: list[float | None] = field(default_factory=list)
    seconds: float = 0.0
    capabilities: ServerCapabilities | None = None
    cut: str | None = None
    answered_as: str | None = None

    @property
    def cost(self) -> float | None:
        """Dollars of all replies; None before the first, and when that of one is unknown."""
        amounts = [cost for cost in self.costs if cost is not None]
        return sum(amounts) if amounts and len(amounts) == len(self.costs) else None


def read_prices(path: Path, model: str) -> Prices:
    """The prices of ``model`` in a TOML file. Raises StorageError when there are none."""
    raw, reader = open_file(path, "name the table of prices")
    if not isinstance(table := raw.get(model), dict):
        raise StorageError(f'{path}: no prices for {model}; add a table ["{model}"].')
    prices: Prices = reader.read(table, Prices, (model,))
    reader.end()
    return prices


class CostLimit:
    """Counts the money of every reply, good or bad, and says when the limit is reached.

    Calls that are under way when that happens are still paid. A reply whose tokens the server did
    not count is taken at its estimated price, so that the limit holds.
    """

    def __init__(
        self,
        prices: Prices | None = None,
        limit: float | None = None,
        purse: list[float] | None = None,
    ) -> None:
        """``purse``: dollars so far, where several judges spend from one limit."""
        if limit is not None and prices is None:
            raise ValueError("a limit of cost needs prices")
        self.prices = prices
        self.limit = limit
        self._purse = [0.0] if purse is None else purse

    @property
    def spent(self) -> float:
        """US dollars so far, estimates included."""
        return sum(self._purse)

    @property
    def reached(self) -> bool:
        return self.limit is not None and self.spent >= self.limit

    def pay(self, usage: Usage, sent: int, got: int) -> float | None:
        """Count one reply (``sent`` and ``got``: characters); its dollars, None when unknown."""
        if self.prices is None:
            return None
        cost = self.prices.cost(usage)
        dollars = cost if cost is not None else self.prices.cost(_guessed(usage, sent, got))
        self._purse[0] += dollars or 0.0
        return cost


def _guessed(usage: Usage, sent: int, got: int) -> Usage:
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return Usage(
        prompt_tokens=_tokens(sent) if prompt is None else prompt,
        completion_tokens=_tokens(got) if completion is None else completion,
    )


def _tokens(characters: int) -> int:
    return math.ceil(characters / CHARACTERS_A_TOKEN)


def add_usage(first: Usage, other: Usage) -> Usage:
    """Sum field by field; None only where neither says anything."""

    def total(left: int | None, right: int | None) -> int | None:
        return right if left is None else left + (right or 0)

    return Usage(
        *(total(getattr(first, name), getattr(other, name)) for name in Usage.__struct_fields__)
    )


@dataclass(slots=True)
class JudgingTotals:
    """The counts and cost of many verdicts. ``unknown_usage``: paid verdicts without token counts.

    ``cost_usd``: None without prices. ``failures``: how often each kind.
    """

    verdicts: int = 0
    cached: int = 0
    repaired: int = 0
    calls: int = 0
    replies: int = 0
    unknown_usage: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, verdict: JudgeVerdict) -> None:
        """Count one verdict; hits of the cache apart, at no cost."""
        self.verdicts += 1
        self.repaired += verdict.repaired
        if verdict.failure is not None:
            self.failures[verdict.failure] += 1
        if verdict.cached:
            self.cached += 1
            return
        self.calls += verdict.attempts
        self.replies += verdict.asks
        if verdict.usage is not NO_USAGE:
            self.usage = add_usage(self.usage, verdict.usage)
        if verdict.asks and verdict.usage.total_tokens is None:
            self.unknown_usage += verdict.usage.prompt_tokens is None
        if verdict.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + verdict.cost_usd

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for metrics.json and ``--json``."""
        own = {name: getattr(self, name) for name in self.__slots__}
        tokens = {name: getattr(self.usage, name) for name in Usage.__struct_fields__}
        return own | {"usage": tokens, "failures": dict(sorted(self.failures.items()))}


def merged(totals: Iterable[JudgingTotals]) -> JudgingTotals:
    """The totals of several judges as one; dollars are None where none of them has prices."""
    together = JudgingTotals()
    for one in totals:
        for name in ("verdicts", "cached", "repaired", "calls", "replies", "unknown_usage"):
            setattr(together, name, getattr(together, name) + getattr(one, name))
        together.usage = add_usage(together.usage, one.usage)
        if one.cost_usd is not None:
            together.cost_usd = (together.cost_usd or 0.0) + one.cost_usd
        together.failures.update(one.failures)
    return together


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The expected cost of asking; repeated calls after bad replies are not included.

    Prompt tokens are characters / 4. ``remembered_tokens``: those of them that the provider reads
    from its memory. ``completion_tokens`` is what such replies took so far,
    ``most_completion_tokens`` what they may take. Money is None without prices.
    """

    tasks: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    most_completion_tokens: int
    cost_usd: float | None
    most_cost_usd: float | None
    remembered_tokens: int = 0

    @property
    def calls(self) -> int:
        return self.tasks - self.cached


def summed(estimates: Sequence[CostEstimate]) -> CostEstimate:
    """Expected cost of asking several judges; dollars are None unless all of them have prices."""
    sums: dict[str, Any] = {}
    for name in CostEstimate.__slots__:
        values = [getattr(one, name) for one in estimates]
        sums[name] = None if None in values else sum(values)
    return CostEstimate(**sums)


def estimate(
    tasks: Iterable[JudgeTask],
    holds: Callable[[JudgeTask], bool],
    tokens_a_reply: Callable[[str], float | None],
    prices: Prices | None = None,
    *,
    prefix: Callable[[JudgeTask], str] = lambda task: "",
    thinking: int = 0,
) -> CostEstimate:
    """Calls, tokens and money of ``tasks`` without asking anything.

    ``holds``: is it in the cache? ``tokens_a_reply``: mean of a metric's replies so far, or None.
    ``prefix``: what of a task's prompt the provider may have in its memory, from its first
    character on. ``thinking``: tokens that each reply may take beside its form.
    """
    count = cached = prompt = most = remembered = 0
    expected = 0.0
    memory = _PrefixMemory()
    discount = prices is not None and prices.cached is not None
    for task in tasks:
        count += 1
        if holds(task):
            cached += 1
            continue
        prompt += _tokens(_characters(task))
        if discount:
            remembered += min(memory.take(prefix(task)), _tokens(_characters(task)))
        most += task.max_tokens + thinking
        mean = tokens_a_reply(task.metric)
        expected += min(task.max_tokens + thinking, TOKENS_A_REPLY if mean is None else mean)
    likely = round(expected)

    def money(completion: int) -> float | None:
        usage = Usage(prompt, completion, cached_tokens=remembered)
        return prices.cost(usage) if prices else None

    costs = money(likely), money(most)
    return CostEstimate(count, cached, prompt, likely, most, *costs, remembered)


LEAST_PREFIX, PREFIX_STEP = 1024, 128
"""Tokens: providers keep no shorter beginning of a prompt, and count it in steps; some models of
Anthropic keep none below 2,048 or 4,096. Sources:
https://platform.openai.com/docs/guides/prompt-caching,
https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching"""

MOST_PREFIXES = 2**16
"""Steps that are remembered; the oldest go first, as they do at a provider after minutes."""


class _PrefixMemory:
    """How much of each prompt a provider has read before, as it would count it."""

    def __init__(self) -> None:
        self._known: dict[int, None] = {}

    def take(self, text: str) -> int:
        """Tokens of the text's longest known beginning, 0 below the least; the text is known now.

        Known is what began an earlier text up to the end of a step.
        """
        size = PREFIX_STEP * CHARACTERS_A_TOKEN
        steps, chain, fresh = 0, 0, False
        for end in range(size, len(text) + 1, size):
            chain = hash((chain, text[end - size : end]))
            fresh = fresh or chain not in self._known
            steps += not fresh
            self._known.pop(chain, None)
            self._known[chain] = None
        while len(self._known) > MOST_PREFIXES:
            del self._known[next(iter(self._known))]
        tokens = steps * PREFIX_STEP
        return tokens if tokens >= LEAST_PREFIX else 0


def _characters(task: JudgeTask) -> int:
    """Length of the prompt as the caller wrote it."""
    return sum(len(message["content"]) for message in task.messages)
