"""Judges that stand before another judge and change when, or whether, it is asked."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from clients.judge import HttpJudge
from clients.judge_bodies import Found
from clients.judge_types import JudgeIdentity, JudgeTask, Verdict
from clients.verdict_cache import KeyedJudge


class Wrapper:
    """Who judges, and what would be sent, are those of the judge behind it."""

    def __init__(self, judge: KeyedJudge) -> None:
        self._judge = judge

    @property
    def identity(self) -> JudgeIdentity:
        return self._judge.identity

    @property
    def found(self) -> Found:
        return self._judge.found

    def parameters(self, task: JudgeTask) -> Mapping[str, Any]:
        return self._judge.parameters(task)


class NotAsked(Wrapper):
    """Stands behind a cache that is only looked into."""

    def ask(self, task: JudgeTask) -> Verdict:
        """Always the failure ``not_cached``."""
        return Verdict("", None, "not_cached", "the cache has no such verdict")


class ProbedFirst(Wrapper):
    """A judge whose way to ask for JSON is tried again before it is asked for the first time.

    Thread-safe. ``ask`` raises JudgeUnreachable or JudgeError when no way works any more.
    """

    def __init__(self, judge: HttpJudge) -> None:
        super().__init__(judge)
        self._server = judge
        self._lock = threading.Lock()
        self._probed = False

    def ask(self, task: JudgeTask) -> Verdict:
        with self._lock:
            if not self._probed:
                self._server.probe(self._server.found)
                self._probed = True
        return self._server.ask(task)
