"""What a run of judging has stored can be taken back: nothing is deleted, and nobody reads it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from judging.cache import VerdictCache
from records.runs import JUDGE_CACHE
from records.verdicts import JudgeIdentity

IDENTITY = JudgeIdentity("openai", "judge-2024-08-06")


def entry(key: str, judging_run: str | None, **fields: Any) -> dict[str, Any]:
    whole = {
        "format": 1,
        "key": key,
        "metric": "m",
        "prompt": {"name": "p", "version": 1, "sha256": "0" * 64},
        "judge": IDENTITY.to_dict(),
        "mode": "plain",
        "data": {"by": judging_run},
        "usage": {"completion_tokens": 10},
    }
    return whole | ({"judging_run": judging_run} if judging_run else {}) | fields


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / JUDGE_CACHE


def who(cache: VerdictCache, *keys: str) -> list[Any]:
    return [found["data"]["by"] if (found := cache.get(key)) else None for key in keys]


def test_entries_of_a_withdrawn_run_are_not_there_and_older_ones_count_again(path: Path) -> None:
    cache, other = VerdictCache(path), VerdictCache(path)
    cache.put(entry("a", None))
    cache.put(entry("b", "r1"))
    cache.put(entry("b", "r2"))
    cache.put(entry("c", "r2", usage={"completion_tokens": 50}))
    assert who(other, "a", "b", "c") == [None, "r2", "r2"]  # of a: an entry without an id
    assert "a" in other
    before = path.read_bytes()
    cache.withdraw("r2", "the judge changed")
    assert path.read_bytes().startswith(before), "nothing is deleted"
    line = json.loads(path.read_bytes()[len(before) :])
    assert line == {"withdrawn": "r2", "reason": "the judge changed"}
    for reader in (cache, VerdictCache(path), VerdictCache(path, read_only=True)):
        assert who(reader, "b", "c") == ["r1", None]
        assert ("a" in reader, "c" in reader, len(reader)) == (True, False, 2)
        assert reader.tokens_a_reply("m") == 10.0
        assert reader.withdrawn == {"r2": "the judge changed"}
        assert reader.unreadable == 0
    assert other.taken_back == {"r2": "the judge changed"}, "it gave out r2's verdicts before"
    assert who(other, "b", "c") == ["r1", None]
    cache.put(entry("c", "r2"))  # a thread of that run that was still under way
    cache.put(entry("d", "r3"))
    assert who(cache, "c", "d") == who(VerdictCache(path), "c", "d") == [None, "r3"]


def test_a_run_without_entries_leaves_no_line(path: Path) -> None:
    cache = VerdictCache(path)
    cache.put(entry("a", "r1"))
    before = path.read_bytes()
    cache.withdraw("r9", "nothing")
    assert path.read_bytes() == before


def test_a_withdrawal_is_read_once_and_not_at_every_look(path: Path, monkeypatch: Any) -> None:
    cache = VerdictCache(path)
    cache.put(entry("a", "r1"))
    cache.put(entry("b", "r2"))
    cache.withdraw("r1", "why")
    taken: list[bytes] = []
    take_in = VerdictCache._take_in

    def noted(self: VerdictCache, line: bytes) -> None:
        taken.append(line)
        take_in(self, line)

    monkeypatch.setattr(VerdictCache, "_take_in", noted)
    assert [cache.get("a") is None for _ in range(3)] == [True] * 3
    assert taken == []


def test_a_judge_whose_every_verdict_was_withdrawn_is_unknown(path: Path) -> None:
    cache = VerdictCache(path)
    cache.put(entry("a", "r1"))
    cache.withdraw("r1", "why")
    assert cache.judges() == []
    assert cache.found_for(IDENTITY) is None


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o640, 0o640), (0o600, 0o600)])
def test_only_you_can_read_the_cache_unless_you_chose_otherwise(
    path: Path, before: int, after: int
) -> None:
    cache = VerdictCache(path)
    cache.put(entry("a", "r1"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(before)
    VerdictCache(path)
    assert stat.S_IMODE(path.stat().st_mode) == after
