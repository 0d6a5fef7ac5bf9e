"""judge_cache.py: what the cache holds, taking entries out, handing them on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.processes import call_script

from judging import cache_upkeep
from judging.cache import VerdictCache
from judging.cache_upkeep import EntryChoice
from judging.prompt_files import load
from records.runs import JUDGE_CACHE

OLLAMA = {"provider": "ollama", "model": "llama3.1:8b", "digest": "sha256:" + "4" * 64}
OPENAI = {"provider": "openai", "model": "gpt-4o-2024-08-06"}


def line(key: str, **fields: Any) -> str:
    judge: dict[str, Any] = fields.pop("judge", OLLAMA)
    whole = {"digest": None, "build": None, "revision": None, "strength": "name only"} | judge
    entry = {
        "format": 1,
        "key": key,
        "at": "2026-03-01T00:00:00Z",
        "metric": "groundedness",
        "prompt": {"name": "groundedness", "version": 1, "sha256": "0" * 64},
        "judge": whole,
        "mode": "plain",
        "data": {"key": key},
        "cost_usd": 0.5,
    }
    return json.dumps(entry | fields) + "\n"


LINES = [
    line("old", at="2025-01-01T00:00:00Z"),
    line("twice", data={"n": 1}),
    line("other judge", judge=OPENAI, cost_usd=None),
    "damaged\n",
    line("twice"),
    line("current", prompt={"name": "facts", "version": 1, "sha256": load("facts").id.sha256}),
    line("recall", metric="fact_recall"),
    '{"format": 1, "torn',
]
KEYS = ["old", "other judge", "twice", "current", "recall"]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    path = tmp_path / JUDGE_CACHE
    path.write_text("".join(LINES))
    return path


@pytest.fixture
def run(cache: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def start(*words: str) -> subprocess.CompletedProcess[str]:
        return call_script("judge_cache", *words, "--cache-dir", str(cache), COLUMNS="200")

    return start


def keys(path: Path) -> list[str]:
    return [json.loads(one)["key"] for one in path.read_text().splitlines()]


def test_statistics(run: Any, cache: Path) -> None:
    found = json.loads(run("stats", "--json").stdout)
    assert (found["entries"], found["superseded"], found["unreadable"]) == (5, 1, 2)
    assert found["file_bytes"] == cache.stat().st_size
    rows = {(row["judge"], row["metric"], row["prompt"]): row for row in found["groups"]}
    assert len(rows) == 4
    old_and_twice = rows["ollama/llama3.1:8b@sha256:444444444444", "groundedness", "groundedness@1"]
    assert old_and_twice["entries"] == 2
    assert old_and_twice["bytes"] == len(LINES[0]) + len(LINES[4])
    assert (old_and_twice["oldest"][:4], old_and_twice["newest"][:4]) == ("2025", "2026")
    assert old_and_twice["cost_usd"] == 1.0
    assert found["groups"][-1]["cost_usd"] is None
    shown = run("stats").stdout
    assert "5 entries" in shown
    assert "1 replaced and 2 damaged" in shown


@pytest.mark.parametrize(
    ("choice", "gone"),
    [
        ([], []),
        (["--older", "2025-06-01"], ["old"]),
        (["--older", "2025-01-01"], []),
        (["--older", "99999d"], []),
        (["--judge", "gpt-4o*"], ["other judge"]),
        (["--judge", "ollama/*"], ["old", "twice", "current", "recall"]),
        (["--metric", "fact_*"], ["recall"]),
        (["--prompt", "facts@1"], ["current"]),
        (["--stale-prompts"], ["old", "other judge", "twice", "recall"]),
        (["--stale-prompts", "--metric", "groundedness", "--older", "2025-06-01"], ["old"]),
    ],
)
def test_pruning(run: Any, cache: Path, choice: list[str], gone: list[str]) -> None:
    before = cache.read_bytes()
    planned = json.loads(run("prune", *choice, "--dry-run", "--json").stdout)
    assert cache.read_bytes() == before
    done = json.loads(run("prune", *choice, "--json").stdout)
    assert planned | {"dry_run": False} == done
    assert keys(cache) == [key for key in KEYS if key not in gone]
    assert (done["chosen"], done["superseded"], done["unreadable"]) == (len(gone), 1, 2)
    assert done["bytes_after"] == cache.stat().st_size
    assert VerdictCache(cache).unreadable == 0


def test_a_judge_at_work_goes_on_with_the_new_file(run: Any, cache: Path) -> None:
    working = VerdictCache(cache)
    assert "old" in working
    run("prune", "--older", "2025-06-01")
    working.put(json.loads(line("new")))
    assert (working.get("twice") or {})["data"] == {"key": "twice"}
    assert keys(cache) == ["other judge", "twice", "current", "recall", "new"]


def test_export(run: Any, cache: Path, tmp_path: Path) -> None:
    assert run("export").stdout == "".join(LINES[place] for place in (0, 2, 4, 5, 6))
    target = tmp_path / "out.jsonl"
    assert run("export", "--metric", "fact_recall", "--output", str(target)).returncode == 0
    assert keys(target) == ["recall"]
    again = run("export", "--output", str(target))
    assert (again.returncode, again.stdout) == (2, "")
    assert "is there already" in again.stderr
    assert keys(target) == ["recall"]


@pytest.mark.parametrize("age", ["soon", "12", "12y", "2026-13-01", "999999d"])
def test_an_age_that_is_none(run: Any, cache: Path, age: str) -> None:
    before = cache.read_bytes()
    done = run("prune", "--older", age)
    assert done.returncode == 2
    assert "write an age (90d, 12h, 6w) or a day" in " ".join(done.stderr.split())
    assert cache.read_bytes() == before


def test_a_file_that_is_replaced_meanwhile_is_handed_on_whole(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = cache_upkeep._last_places

    def and_then_all_goes(file: Any) -> dict[str, int]:
        found = look(file)
        monkeypatch.undo()
        assert cache_upkeep.prune(cache, EntryChoice(metric="*")).kept == 0
        return found

    monkeypatch.setattr(cache_upkeep, "_last_places", and_then_all_goes)
    handed = [entry.key for _, entry in cache_upkeep.entries(cache, EntryChoice())]
    assert handed == ["old", "other judge", "twice", "current", "recall"]
    assert cache.read_bytes() == b""


def test_pruning_keeps_what_a_later_version_paid_for(tmp_path: Path) -> None:
    path = tmp_path / JUDGE_CACHE
    newer = line("paid", format=2)
    path.write_text(line("twice") + newer + line("twice") + "damaged\n")
    plan = cache_upkeep.prune(path, EntryChoice())
    # The first "twice" is replaced by the second, and one line is damaged.
    assert (plan.kept, plan.superseded, plan.unreadable) == (2, 1, 1)
    assert path.read_text() == newer + line("twice")
