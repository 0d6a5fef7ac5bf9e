"""--until-sure: until the interval is narrow enough, or the budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fake_bot import Exchange

from extras.sweep.repeating import chance_width
from extras.sweep.tests.conftest import CASES, Command, MissingBot


def test_the_width_by_hand() -> None:
    """Two cases of two answers: s² = (.5 + 0)/2 = .25 with 2 degrees of freedom; the variance of
    the mean is .25 (1/2 + 1/2) / 4 = .0625, its root .25, and t is 4.3027."""
    assert chance_width([[0.0, 1.0], [1.0, 1.0]]) == pytest.approx(2 * 4.302653 * 0.25, rel=1e-6)
    assert chance_width([[1.0, 1.0], [0.0, 0.0]]) == 0
    assert chance_width([[1.0], [0.0]]) is None
    assert chance_width([]) is None


def test_a_bot_that_answers_alike_is_asked_twice(
    ask: Command, bot: MissingBot, config: Callable[[str], dict[str, Any]]
) -> None:
    done = ask("steady", "--until-sure", "0.02")
    assert done.exit_code == 0, done.output
    assert bot.asked.total() == 2 * CASES
    assert config("steady")["run"]["repeat"] == 2
    assert config("steady")["run"]["repeated"]["width"] == 0
    assert "asked 2 times" in done.stderr


def test_the_budget_ends_what_the_width_does_not(
    tmp_path: Path, ask: Command, bot: MissingBot, config: Callable[[str], dict[str, Any]]
) -> None:
    """Every case hits once in two: 3 rounds are 300 calls, and a fourth is more than 350."""
    bot.misses = lambda number: bot.asked[f"question {number}"] % 2 == 0
    words = ("--until-sure", "0.001", "--max-calls", "350")
    done = ask("moody", *words)
    assert done.exit_code == 0, done.output
    run = config("moody")["run"]
    assert bot.asked.total() == 300
    assert (run["repeat"], run["selected"]) == (3, CASES)
    assert "more than 350 calls" in run["repeated"]["reason"]
    # killed in the last round, and resumed
    folder = tmp_path / "results/moody"
    text = (folder / "results.jsonl").read_text().splitlines(keepends=True)
    (folder / "results.jsonl").unlink()
    (folder / "results.partial.jsonl").write_text("".join(text[:250]))
    bot.asked.clear()
    assert ask("moody", "--resume", *words).exit_code == 0
    assert bot.asked.total() == 50
    assert config("moody")["run"]["repeat"] == 3


def test_a_budget_in_money_ends_it_too(
    ask: Command, bot: MissingBot, config: Callable[[str], dict[str, Any]]
) -> None:
    """A call costs a cent, a round of 100 a dollar: after two a third would be more than 2.5."""

    def reply(exchange: Exchange) -> None:
        answer = bot.answer(bot.question(exchange), cost_usd=0.01)
        if bot.asked[bot.question(exchange)] % 2:
            answer["retrieved"][0]["chunk_id"] = "c-another"
        exchange.reply(answer)

    bot.default = reply
    done = ask("paid", "--until-sure", "0.001", "--max-cost", "2.5")
    assert done.exit_code == 0, done.output
    assert bot.asked.total() == 200
    assert config("paid")["run"]["repeated"]["reason"].endswith("more than 2.5 USD")
    assert ask("none", "--max-cost", "1").exit_code == 2
