"""Tasks for a judge, and clients of the scripted one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from clients.http import RetryPolicy
from judging.cache import CachedJudge, VerdictCache
from judging.server import HttpJudge
from judging.types import JudgeTask, PromptId
from records.runs import JUDGE_CACHE

QUICK = RetryPolicy(timeout=60, retries=2, backoff=0.001)
VERDICTS = {"type": "string", "enum": ["supported", "not_found"]}
ENTRY = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "verdict": VERDICTS},
    "required": ["id", "verdict"],
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "properties": {"verdicts": {"type": "array", "items": ENTRY}},
    "required": ["verdicts"],
    "additionalProperties": False,
}
GOOD = {"verdicts": [{"id": "1", "verdict": "supported"}, {"id": "2", "verdict": "not_found"}]}
MakeTask = Callable[..., JudgeTask]
MakeJudge = Callable[..., HttpJudge]


def each_id_once(reply: Mapping[str, Any]) -> Sequence[str]:
    found = [one["id"] for one in reply["verdicts"]]
    return [] if sorted(found) == ["1", "2"] else [f"give ids 1 and 2 once each, not {found}"]


@pytest.fixture
def good() -> dict[str, Any]:
    """A reply that fits the tasks."""
    return GOOD


@pytest.fixture
def task() -> MakeTask:
    """Makes a task about ``subject``; more arguments replace its fields."""

    def make(subject: str = "ships", **fields: Any) -> JudgeTask:
        messages = (
            {"role": "system", "content": "You judge claims."},
            {"role": "user", "content": f"Claims about {subject}: 1. They float. 2. They sing."},
        )
        prompt = PromptId("groundedness", 1, "ab" * 32)
        made = JudgeTask(
            "groundedness", prompt, messages, messages, SCHEMA, each_id_once, {}, max_tokens=500
        )
        return replace(made, **fields)

    return make


@pytest.fixture
def judge(fake_judge: Any) -> Iterator[MakeJudge]:
    """Makes a client of the scripted server, ready to be asked."""
    made: list[HttpJudge] = []
    fake_judge.answer = lambda body: GOOD

    def make(*, ready: bool = True, url: str = "", **more: Any) -> HttpJudge:
        settings: dict[str, Any] = {"policy": QUICK} | more
        model = settings.pop("model", fake_judge.model)
        client = HttpJudge(url or fake_judge.url, model, **settings)
        made.append(client)
        if ready:
            client.identify()
            client.probe()
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def cached(tmp_path: Path) -> Iterator[Callable[[Any], CachedJudge]]:
    """Puts the cache of this test in front of a judge."""
    opened: list[VerdictCache] = []

    def make(client: Any) -> CachedJudge:
        opened.append(VerdictCache(tmp_path / JUDGE_CACHE))
        return CachedJudge(client, opened[-1])

    yield make
    for cache in opened:
        cache.close()
