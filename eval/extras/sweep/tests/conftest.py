"""A set of 100 cases, a scripted bot that misses some of them, and runs inside this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.fake_bot import Exchange, FakeBot

import run_eval
import score_retrieval

CASES = 100


@pytest.fixture
def eval_set(tmp_path: Path) -> Path:
    """q0 to q99; each is answered by one chunk, c-<question>, each by itself."""
    path = tmp_path / "set.jsonl"
    cases: list[dict[str, Any]] = [
        {"id": f"q{n}", "question": f"question {n}", "relevant_chunks": [f"c-question {n}"]}
        | {"category": ("factual", "reasoning")[n % 2]}
        for n in range(CASES)
    ]
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


class MissingBot(FakeBot):
    """Finds the chunk of a question, but not of those whose number ``misses`` picks."""

    def __init__(self) -> None:
        super().__init__()
        self.misses: Callable[[int], bool] = lambda number: False
        self.default = self._reply

    def _reply(self, exchange: Exchange) -> None:
        question = self.question(exchange)
        payload = self.answer(question)
        if self.misses(int(question.split()[-1])):
            payload["retrieved"][0]["chunk_id"] = "c-another"
        exchange.reply(payload)


@pytest.fixture
def bot() -> Iterator[MissingBot]:
    scripted = MissingBot()
    yield scripted
    scripted.close()


Command = Callable[..., Result]


@pytest.fixture
def environment() -> dict[str, str | None]:
    names = (name for name in os.environ if name.startswith("RAG_EVAL_"))
    return {**dict.fromkeys(names), "RAG_EVAL_CONFIG": os.devnull, "NO_COLOR": "1"}


@pytest.fixture
def ask(
    tmp_path: Path, eval_set: Path, bot: MissingBot, environment: dict[str, str | None]
) -> Command:
    """run_eval.py into ``tmp_path/results``."""

    def call(run_id: str, *words: str) -> Result:
        folders = ["--eval-set", str(eval_set), "--results-dir", str(tmp_path / "results")]
        line = [*folders, "--api-url", bot.url, "--run-id", run_id, "--set", "backoff=0.001"]
        line += words
        return CliRunner().invoke(run_eval.main, line, env=environment)

    return call


@pytest.fixture
def score(tmp_path: Path, eval_set: Path, environment: dict[str, str | None]) -> Command:
    def call(run_id: str) -> Result:
        folders = ["--eval-set", str(eval_set), "--results-dir", str(tmp_path / "results")]
        return CliRunner().invoke(
            score_retrieval.main, [*folders, "--run", run_id], env=environment
        )

    return call


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    def read(run_id: str) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((tmp_path / f"results/{run_id}/config.json").read_text())
        return data

    return read
