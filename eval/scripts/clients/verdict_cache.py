"""Verdicts are paid once: a judge in front of which the cache stands.

The key of a verdict covers everything that it depends on (see ``verdict_key``); only verdicts that
can be used are kept, never a failure. Each entry says which model its reply names and which run of
judging asked, so that what a run has stored can be taken back.

    judge = CachedJudge(HttpJudge(...), VerdictCache(CACHE_DIR / FILE_NAME))
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import orjson

from clients.judge_bodies import Found, Sampling, sent_parameters
from clients.judge_names import decide
from clients.judge_replies import SchemaChecker
from clients.judge_store import FORMAT, VerdictCache
from clients.judge_types import Judge, JudgeIdentity, JudgeTask, Usage, Verdict
from clients.withdrawal import new_judging_run

__all__ = ["FILE_NAME", "CachedJudge", "KeyedJudge", "OfflineJudge", "VerdictCache", "verdict_key"]

FILE_NAME = "judge_cache.jsonl"


class KeyedJudge(Judge, Protocol):
    """A judge that can say beforehand what it would send."""

    @property
    def found(self) -> Found: ...

    def parameters(self, task: JudgeTask) -> Mapping[str, Any]: ...


def verdict_key(task: JudgeTask, identity: JudgeIdentity, parameters: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of all that a verdict depends on, as canonical JSON.

    That is: format, metric, prompt (name and hash), messages with placeholders for random marks,
    schema (with the order of its fields: models write them in this order), parameters really sent
    (with the mode), the judge's identity, the repeat. Not in it: the server's address, keys, the
    time, the run.
    """
    parts = {
        "format": FORMAT,
        "metric": task.metric,
        "prompt": {"name": task.prompt.name, "sha256": task.prompt.sha256},
        "messages": [dict(message) for message in task.key_messages],
        "schema": orjson.dumps(task.schema).decode(),
        "parameters": parameters,
        "judge": identity.to_dict(),
        "repeat": task.repeat,
    }
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


class CachedJudge:
    """A judge that asks ``judge`` only for what is not in ``cache``.

    Two threads that want the same verdict ask once; two processes that want it in the same moment
    may both pay for it. A stored verdict is asked anew when it does not pass the task's checks
    (older code or a strange hand wrote it), and when its reply names another model than the judge.

    ``judging_run``: the id that new entries get.
    """

    def __init__(
        self, judge: KeyedJudge, cache: VerdictCache, judging_run: str | None = None
    ) -> None:
        self._judge = judge
        self._cache = cache
        self._judging_run = judging_run or new_judging_run()
        self._schemas = SchemaChecker()
        self._asking: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    @property
    def identity(self) -> JudgeIdentity:
        return self._judge.identity

    def holds(self, task: JudgeTask) -> bool:
        """Is there a verdict already?"""
        return self._stored(self._key(task), task) is not None

    def ask(self, task: JudgeTask) -> Verdict:
        """The stored verdict, else a new one, which is stored if it can be used."""
        key = self._key(task)
        stored = self._stored(key, task)
        while stored is None:
            mine = threading.Event()
            with self._lock:
                other = self._asking.setdefault(key, mine)
            if other is mine:
                return self._ask_alone(key, task, mine)
            other.wait()
            stored = self._stored(key, task)
        return stored

    def _ask_alone(self, key: str, task: JudgeTask, mine: threading.Event) -> Verdict:
        """Ask, unless another thread has just come back with it; then let those go on who wait."""
        try:
            return self._stored(key, task) or self._ask_and_keep(task)
        finally:
            with self._lock:
                del self._asking[key]
            mine.set()

    def _stored(self, key: str, task: JudgeTask) -> Verdict | None:
        entry = self._cache.get(key)
        data = entry.get("data") if entry else None
        if entry is None or not isinstance(data, dict):
            return None
        answered = entry.get("answered_as")
        if isinstance(answered, str) and decide(self._judge.identity, answered).fault is not None:
            return None
        if self._schemas.problems(data, task.schema) or task.check(data):
            return None
        return _from_entry(entry)

    def _ask_and_keep(self, task: JudgeTask) -> Verdict:
        verdict = replace(self._judge.ask(task), judging_run=self._judging_run)
        if verdict.ok:
            self._cache.put(self._entry(task, verdict))
        return verdict

    def _key(self, task: JudgeTask) -> str:
        return verdict_key(task, self._judge.identity, self._judge.parameters(task))

    def _entry(self, task: JudgeTask, verdict: Verdict) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "key": verdict.key,
            "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "metric": task.metric,
            "prompt": asdict(task.prompt),
            "judge": self._judge.identity.to_dict(),
            "parameters": verdict.sent,
            "mode": verdict.mode,
            "dropped": self._judge.found.dropped,
            "repeat": task.repeat,
            "data": verdict.data,
            "raw": verdict.raw,
            "repaired": verdict.repaired,
            "asks": verdict.asks,
            "usage": {name: getattr(verdict.usage, name) for name in Usage.__slots__},
            "cost_usd": verdict.cost_usd,
            "seconds": verdict.seconds,
            "answered_as": verdict.answered_as,
            "judging_run": verdict.judging_run,
        }


def _from_entry(entry: Mapping[str, Any]) -> Verdict:
    """The stored verdict as one that cost nothing now: no calls, no tokens, no time."""
    return Verdict(
        key=entry["key"],
        data=entry["data"],
        raw=entry.get("raw", ""),
        mode=entry.get("mode", ""),
        cached=True,
        repaired=entry.get("repaired", False),
        asks=entry.get("asks", 1),
        cost_usd=0.0,
        sent=entry.get("parameters", {}),
        answered_as=entry.get("answered_as"),
        judging_run=entry.get("judging_run"),
    )


class OfflineJudge:
    """Stands in for a judge that must not be asked: whatever is not in the cache is a failure."""

    def __init__(self, identity: JudgeIdentity, found: Found, sampling: Sampling) -> None:
        self.identity = identity
        self.found = found
        self._sampling = sampling

    def parameters(self, task: JudgeTask) -> dict[str, Any]:
        """What the judge would send, in the way that is known of it."""
        return key_parameters(self._sampling, self.found, task)

    def ask(self, task: JudgeTask) -> Verdict:
        """Always the failure ``not_cached``."""
        key = verdict_key(task, self.identity, self.parameters(task))
        return Verdict(key, None, "not_cached", "the cache has no such verdict", mode="")


def key_parameters(sampling: Sampling, found: Found, task: JudgeTask) -> dict[str, Any]:
    """The parameters that a verdict depends on: those really sent, and the mode."""
    sent = sent_parameters(sampling, found, task.max_tokens, task.repeat)
    return {"mode": found.mode} | sent
