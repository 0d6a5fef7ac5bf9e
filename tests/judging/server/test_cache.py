"""The cache gives back what was judged under the very same conditions, unless it was withdrawn."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock, Timeout
from tests.rows import each_row

from clients.http import ask_all, finish
from judging.cache import CachedJudge, CacheOnly, VerdictCache
from judging.cost import JudgingTotals
from judging.protocols import Sampling
from judging.types import PromptId, Usage
from records.errors import StorageError
from records.files import RepeatedLock, locked, replace_bytes
from records.runs import JUDGE_CACHE
from records.verdicts import JudgeIdentity

IDENTITY = JudgeIdentity("openai", "judge-2024-08-06")
SENT = {"mode": "json_schema", "temperature": 0.0, "seed": 0, "max_tokens": 500}


def test_the_second_time_is_free(
    fake_judge: Any, judge: Any, cached: Any, task: Any, good: Any
) -> None:
    client = judge()
    first, second = finish(cached(client).ask(task())), finish(cached(client).ask(task()))
    assert len(fake_judge.chats()) == 1
    assert second.data == first.data == good
    assert (second.key, second.raw, second.mode) == (first.key, first.raw, first.mode)
    assert (first.cached, second.cached) == (False, True)
    assert (second.attempts, second.cost_usd, second.seconds) == (0, 0.0, None)
    assert second.sent == first.sent == SENT
    assert second.usage == Usage()


def test_a_changed_model_prompt_temperature_or_repeat_is_asked_again(
    fake_judge: Any, judge: Any, cached: Any, task: Any
) -> None:
    changes: Any = ({}, {"model": "judge-2025-01-01"}, {"sampling": Sampling(temperature=0.5)})
    clients = [judge(**change) for change in (*changes, {"sampling": Sampling(seed=5)})]
    tasks = [task(), task(repeat=1), task(prompt=PromptId("groundedness", 2, "cd" * 32))]
    for asked in (12, 12):  # the second round is answered by the cache alone
        for client in clients:
            for one in tasks:
                assert finish(cached(client).ask(one)).ok
        assert len(fake_judge.chats()) == asked


def test_another_address_hits(fake_judge: Any, judge: Any, cached: Any, task: Any) -> None:
    finish(cached(judge()).ask(task()))
    elsewhere = judge(url=fake_judge.url.replace("127.0.0.1", "localhost"))
    assert finish(cached(elsewhere).ask(task())).cached


def test_failures_are_not_kept(fake_judge: Any, judge: Any, cached: Any, task: Any) -> None:
    fake_judge.script("ships", fake_judge.fails(500), fake_judge.fails(400))
    client = judge()
    for _ in range(3):
        assert finish(cached(client).ask(task())).failure in ("transport", "rejected")
    assert len(cached(client)._cache) == 0


BAD_DATA: list[Any] = [
    None,
    [],
    {},
    {"verdicts": [{"id": "1", "verdict": "maybe"}]},
    {"verdicts": []},
]


@pytest.mark.parametrize("data", BAD_DATA)
def test_a_stored_verdict_that_does_not_fit_is_asked_anew(
    fake_judge: Any, judge: Any, cached: Any, task: Any, good: Any, tmp_path: Path, data: Any
) -> None:
    client = judge()
    finish(cached(client).ask(task()))
    path = tmp_path / JUDGE_CACHE
    line = json.loads(path.read_text())
    path.write_text(json.dumps(line | {"data": data}) + "\n")
    assert cached(client).stored(task()) is None
    again = finish(cached(client).ask(task()))
    assert (again.data, again.cached) == (good, False)
    assert finish(cached(client).ask(task())).cached


def test_offline_a_miss_is_a_failure(
    fake_judge: Any, judge: Any, cached: Any, task: Any, tmp_path: Path, good: Any
) -> None:
    client = judge()
    finish(cached(client).ask(task()))
    fake_judge.close()
    cache = VerdictCache(tmp_path / JUDGE_CACHE, read_only=True)
    ((identity, found),) = cache.judges(fake_judge.model)
    assert (identity, found) == (client.identity, client.capabilities)
    offline = CachedJudge(CacheOnly(identity, found, Sampling()), cache)
    assert finish(offline.ask(task())).data == good
    missed = finish(offline.ask(task("trees")))
    assert (missed.failure, missed.attempts, missed.data) == ("not_cached", 0, None)
    warmer = CachedJudge(CacheOnly(identity, found, Sampling(temperature=0.5)), cache)
    assert finish(warmer.ask(task())).failure == "not_cached"


def test_the_judge_asked_last_comes_last(judge: Any, cached: Any, task: Any) -> None:
    older, newer = judge(), judge(model="judge-2025-01-01")
    for client in (older, newer, older):
        finish(cached(client).ask(task(f"round {client.identity.model} {id(client)}")))
    finish(cached(older).ask(task("last")))
    cache = cached(older)._cache
    models = [identity.model for identity, _ in cache.judges()]
    assert models == ["judge-2025-01-01", "judge-2024-08-06"]
    assert cache.judges("nobody") == []


def test_two_calls_that_want_the_same_ask_once(
    fake_judge: Any, judge: Any, cached: Any, task: Any
) -> None:
    fake_judge.bot.delay = 0.05
    totals = JudgingTotals()
    same = [task() for _ in range(16)]
    for verdict in ask_all(same, cached(judge()).ask, 8, threading.Event()):
        assert verdict.ok
        totals.add(verdict)
    assert len(fake_judge.chats()) == 1
    assert (totals.verdicts, totals.cached, totals.calls) == (16, 15, 1)


def entry(key: str, judging_run: str | None = None, **fields: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {"format": 1, "key": key, "metric": "m", "judge": IDENTITY.to_dict()}
    whole |= {"mode": "plain", "data": {"n": 1, "by": judging_run}}
    whole |= {"usage": {"completion_tokens": 10}, "judging_run": judging_run}
    return {name: value for name, value in (whole | fields).items() if value is not None}


def test_the_last_line_of_a_key_counts(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / JUDGE_CACHE)
    cache.put(entry("a"))
    cache.put(entry("a", data={"n": 2}))
    assert (cache.get("a") or {})["data"] == {"n": 2}
    assert len(cache) == len(VerdictCache(tmp_path / JUDGE_CACHE)) == 1


def test_a_torn_line_is_cut_and_strange_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / JUDGE_CACHE
    lines = [json.dumps(entry("a")), "no JSON", json.dumps(entry("b", format=99))]
    lines += [json.dumps({"key": "c"}), json.dumps(entry("d"))]
    path.write_text("\n".join(lines) + '\n{"format": 1, "key": "to')
    looking = VerdictCache(path, read_only=True)
    assert (len(looking), looking.unreadable, "to" in looking) == (2, 3, False)
    cache = VerdictCache(path)
    assert path.read_bytes().endswith(b"}\n")
    cache.put(entry("e"))
    assert [key in looking for key in "abcde"] == [True, False, False, True, True]


def test_a_replaced_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / JUDGE_CACHE
    cache = VerdictCache(path)
    cache.put(entry("a"))
    cache.put(entry("b"))
    other = tmp_path / "other"
    other.write_text(json.dumps(entry("b", data={"n": 3})) + "\n" + json.dumps(entry("c")) + "\n")
    os.replace(other, path)
    assert "c" in cache
    assert "a" not in cache
    assert (cache.get("b") or {})["data"] == {"n": 3}
    cache.put(entry("d"))
    assert len(VerdictCache(path)) == 3


def test_long_files_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judging.cache.BLOCK", 1000)
    path = tmp_path / JUDGE_CACHE
    rows = [entry(f"k{n}", raw="x" * (n * 37 % 5000)) for n in range(200)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    cache = VerdictCache(path)
    assert [cache.get(row["key"]) for row in rows] == rows


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        VerdictCache(tmp_path / "file" / JUDGE_CACHE)
    (tmp_path / "folder" / JUDGE_CACHE).mkdir(parents=True)
    with pytest.raises(StorageError, match="cannot be written"):
        VerdictCache(tmp_path / "folder" / JUDGE_CACHE)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / JUDGE_CACHE
    cache = VerdictCache(path)
    path.symlink_to("/dev/full")
    with pytest.raises(StorageError, match=r"cannot be written \(No space left on device\)"):
        cache.put(entry("a"))


@each_row("damage", [b"\0", b"\xff"])
def test_an_entry_that_a_power_cut_damaged_is_not_there(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / JUDGE_CACHE
    VerdictCache(path).put(entry("a", raw="12345678"))
    path.write_bytes(path.read_bytes().replace(b"5678", damage * 4))
    cache = VerdictCache(path)
    assert cache.get("a") is None
    assert "a" not in cache
    assert cache.unreadable == 1
    cache.put(entry("a"))
    assert (cache.get("a") or {})["data"] == {"n": 1, "by": None}


def test_entries_are_on_the_disk_when_the_cache_is_closed(tmp_path: Path, monkeypatch: Any) -> None:
    path, synced, fsync = tmp_path / JUDGE_CACHE, [], os.fsync

    def watched(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    cache = VerdictCache(path)
    cache.put(entry("a"))
    assert synced == [str(tmp_path)]  # the new name; the entry's turn comes within five seconds
    cache.close()
    assert synced == [str(tmp_path), str(path)]


def test_a_writer_waits_for_whoever_holds_the_lock_of_the_file(tmp_path: Path) -> None:
    """Pruning replaces the file while it holds the lock: what is put comes behind that."""
    path = tmp_path / JUDGE_CACHE
    cache = VerdictCache(path)
    cache.put(entry("a"))
    held, put = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(path):
            held.set()
            assert not put.wait(0.3), "the other one has not waited"
            replace_bytes(path, b"")

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    cache.put(entry("b"))
    put.set()
    holder.join(60)
    cache.close()
    assert ["a" in VerdictCache(path), "b" in VerdictCache(path)] == [False, True]


def test_a_lock_whose_name_was_removed_is_taken_anew(tmp_path: Path) -> None:
    path = tmp_path / JUDGE_CACHE
    lock = RepeatedLock(path)
    with lock.held():
        pass
    path.with_name(path.name + ".lock").unlink()
    with lock.held(), pytest.raises(Timeout):
        FileLock(path.with_name(path.name + ".lock")).acquire(timeout=0)
    with locked(path):
        pass
    lock.close()


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
