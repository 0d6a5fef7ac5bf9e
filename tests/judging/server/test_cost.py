"""Tokens and money, counted and foreseen; the limit is kept."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from clients.http import ask_all, finish
from judging.cost import (
    CostEstimate,
    CostLimit,
    JudgingTotals,
    Prices,
    add_usage,
    estimate,
    read_prices,
)
from judging.types import JudgeVerdict, Usage
from records.errors import StorageError

PRICES = Prices(prompt=2.0, completion=10.0, cached=1.0)


@each_row(
    ("usage", "dollars"),
    [
        (Usage(1_000_000, 0), 2.0),
        (Usage(0, 1_000_000), 10.0),
        # 600 fresh at 2, 400 cached at 1, 50 written at 10, each a million: 1200 + 400 + 500
        (Usage(1000, 50, cached_tokens=400), 0.0021),
        (Usage(1000, 50, cached_tokens=5000), 0.0015),
        (Usage(None, 50), None),
        (Usage(50, None), None),
        (Usage(), None),
    ],
)
def test_cost_of_a_call(usage: Usage, dollars: float | None) -> None:
    assert PRICES.cost(usage) == (None if dollars is None else pytest.approx(dollars))


def test_cached_tokens_cost_the_full_price_unless_told() -> None:
    assert Prices(2.0, 10.0).cost(Usage(1000, 0, cached_tokens=400)) == pytest.approx(0.002)


def test_a_price_table(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('["gpt-4o-2024-08-06"]\nprompt = 2.5\ncompletion = 10\ncached = 1.25\n')
    assert read_prices(path, "gpt-4o-2024-08-06") == Prices(2.5, 10.0, 1.25)
    with pytest.raises(StorageError, match=r'no prices for other; add a table \["other"\]'):
        read_prices(path, "other")


BAD_NUMBERS = ("-1", '"2"', "true", "inf", "nan")
BAD_PROMPT = r"prices.toml:2: m\.prompt: must be a number from 0 up to 1000000000; give dollars"


@each_row(
    ("text", "said"),
    [
        ("[m]\nprompt = 1", r"prices.toml:1: m\.completion: is missing; give dollars"),
        ("m = 5", "no prices for m"),
        ("[m", "prices.toml: cannot be used"),
        *((f"[m]\nprompt = {value}\ncompletion = 1", BAD_PROMPT) for value in BAD_NUMBERS),
    ],
)
def test_a_faulty_price_table(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(StorageError, match=said):
        read_prices(path, "m")


def test_a_missing_price_table(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"absent\.toml: no such file"):
        read_prices(tmp_path / "absent.toml", "m")


def test_a_limit_needs_prices() -> None:
    with pytest.raises(ValueError, match="needs prices"):
        CostLimit(limit=1.0)


counts = st.none() | st.integers(0, 10**9)
usages = st.builds(Usage, counts, counts, counts, counts, counts)


@given(usages, usages)
def test_adding_usages(one: Usage, other: Usage) -> None:
    total = add_usage(one, other)
    assert total == add_usage(other, one)
    for name in Usage.__struct_fields__:
        known = [value for value in (getattr(one, name), getattr(other, name)) if value is not None]
        assert getattr(total, name) == (sum(known) if known else None)


def usage_of(dollars: float) -> dict[str, int]:
    """A usage that costs this much: 10 dollars a million written tokens, none read for free."""
    return {"prompt_tokens": 1_000_000, "completion_tokens": int((dollars - 2) * 100_000)}


def test_asking_ends_at_the_limit(
    fake_judge: Any, judge: Any, cached: Any, task: Any, good: Any
) -> None:
    """Each reply costs 3 dollars: after the third, 9, the limit of 7 is reached."""
    fake_judge.script("Claims", fake_judge.says(good, usage=usage_of(3.0)))
    budget = CostLimit(PRICES, limit=7.0)
    client = cached(judge(budget=budget))
    spent_on_probe = budget.spent
    assert 0 < spent_on_probe < 0.01
    totals = JudgingTotals()
    tasks = [task(f"item {number}") for number in range(6)]
    for verdict in ask_all(tasks, client.ask, 1, threading.Event()):
        totals.add(verdict)
    assert len(fake_judge.chats()) == 3
    assert totals.failures == {"budget": 3}
    assert totals.cost_usd == pytest.approx(9.0)
    assert budget.spent == pytest.approx(9.0 + spent_on_probe)
    again = finish(client.ask(tasks[0]))
    assert (again.ok, again.cached, again.cost_usd) == (True, True, 0.0)


def test_bad_replies_are_paid_and_not_repeated_beyond_the_limit(
    fake_judge: Any, judge: Any, task: Any
) -> None:
    fake_judge.script("Claims", fake_judge.says("no JSON", usage=usage_of(3.0)))
    verdict = finish(judge(budget=CostLimit(PRICES, limit=5.0)).ask(task()))
    assert (verdict.failure, verdict.asks) == ("malformed", 2)
    assert verdict.cost_usd == pytest.approx(6.0)


def test_the_cost_is_unknown_if_that_of_one_reply_is(
    fake_judge: Any, judge: Any, task: Any, good: Any
) -> None:
    says = fake_judge.says
    fake_judge.script("Claims", says("no", usage=None), says(good, usage=usage_of(3.0)))
    verdict = finish(judge(budget=CostLimit(PRICES)).ask(task()))
    assert (verdict.ok, verdict.asks, verdict.cost_usd) == (True, 2, None)


def test_a_limit_holds_without_token_counts(
    fake_judge: Any, judge: Any, task: Any, good: Any
) -> None:
    """Estimated at 4 characters a token: a prompt of 4 million characters costs 2 dollars."""
    fake_judge.script("Claims", fake_judge.says(good, usage=None))
    long = task("x" * 4_000_000)
    client = judge(budget=CostLimit(PRICES, limit=1.0))
    verdict = finish(client.ask(long))
    assert (verdict.ok, verdict.cost_usd) == (True, None)
    assert client.budget.spent == pytest.approx(2.0, rel=0.01)
    assert finish(client.ask(task())).failure == "budget"


def test_totals() -> None:
    totals = JudgingTotals()
    totals.add(JudgeVerdict("a", {}, attempts=2, asks=1, usage=Usage(10, 5, 15), cost_usd=0.25))
    totals.add(JudgeVerdict("b", {}, attempts=1, asks=1, repaired=True, cost_usd=0.5))
    totals.add(JudgeVerdict("c", {}, cached=True, asks=3, cost_usd=0.0))
    totals.add(JudgeVerdict("d", None, "transport", attempts=4))
    found = totals.to_dict()
    assert found["failures"] == {"transport": 1}
    assert (found["verdicts"], found["cached"], found["repaired"]) == (4, 1, 1)
    assert (found["calls"], found["replies"], found["unknown_usage"]) == (7, 2, 1)
    assert found["cost_usd"] == 0.75
    assert found["usage"]["prompt_tokens"] == 10
    assert JudgingTotals().to_dict()["cost_usd"] is None


def test_an_estimate_asks_nothing(
    fake_judge: Any, judge: Any, cached: Any, task: Any, good: Any
) -> None:
    """Two of three are not in the cache; the one reply so far took 23 tokens."""
    client = judge()
    front = cached(client)
    finish(front.ask(task("a")))
    known = front._cache.tokens_a_reply("groundedness")
    # the scripted server counts a quarter of the characters, and one
    assert (len(json.dumps(good)), known) == (88, 23)
    asked = len(fake_judge.chats())
    tasks = [task("a"), task("b"), task("c")]

    def holds(one: Any) -> bool:
        return front.stored(one) is not None

    found = estimate(tasks, holds, front._cache.tokens_a_reply, PRICES)
    assert len(fake_judge.chats()) == asked
    # 17 + 44 characters each, a token for 4 of them, rounded up: 16 tokens
    assert [len(one["content"]) for one in tasks[1].messages] == [17, 44]
    tokens = {"prompt_tokens": 2 * 16, "completion_tokens": 46, "most_completion_tokens": 1000}
    cost, most = (32 * 2 + 46 * 10) / 1e6, (32 * 2 + 1000 * 10) / 1e6
    assert found == CostEstimate(tasks=3, cached=1, cost_usd=cost, most_cost_usd=most, **tokens)
    assert found.calls == 2


def test_what_a_provider_has_in_memory_is_cheaper(task: Any) -> None:
    """Two prompts of 6,000 characters share the first 5,000, a third shares 3,000 with them.

    A step is 128 tokens, 512 characters: 5,000 // 512 = 9 steps, 1,152 tokens, at least 1,024. Of
    3,000 there are 5 steps, 640 tokens: too few to be kept. The third is asked again: 6,000 // 512
    = 11 steps, 1,408 tokens.
    """
    texts = ["a" * 5000 + "b" * 1000, "a" * 5000 + "c" * 1000, "a" * 3000 + "d" * 3000]
    texts.append(texts[-1])
    tasks = [task(messages=({"role": "user", "content": text},)) for text in texts]

    def prefix(one: Any) -> str:
        return str(one.messages[0]["content"])

    def ask(prices: Prices | None) -> CostEstimate:
        return estimate(tasks, lambda one: False, lambda metric: 0.0, prices, prefix=prefix)

    remembered = 1152 + 1408
    found = ask(Prices(2.0, 10.0, 0.5))
    assert (found.prompt_tokens, found.remembered_tokens) == (4 * 1500, remembered)
    assert found.cost_usd == ((6000 - remembered) * 2 + remembered * 0.5) / 1e6
    full = ask(Prices(2.0, 10.0))
    assert (full.remembered_tokens, full.cost_usd) == (0, 6000 * 2 / 1e6)
    assert ask(None).remembered_tokens == 0


def test_an_estimate_without_experience_or_prices(task: Any) -> None:
    found = estimate([task()], lambda one: False, lambda metric: None)
    assert (found.completion_tokens, found.cost_usd, found.most_cost_usd) == (300, None, None)
    short = estimate([task(max_tokens=100)], lambda one: False, lambda metric: None)
    assert short.completion_tokens == 100
    thinks = estimate([task()], lambda one: False, lambda metric: 700.0, thinking=8000)
    assert (thinks.completion_tokens, thinks.most_completion_tokens) == (700, 8500)
