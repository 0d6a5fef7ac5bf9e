"""The facts of reference answers: decomposed once, kept, and yours to correct.

``<cache_dir>/reference_facts.jsonl`` has a line a reference answer and judge:
``{"schema", "reference_sha256", "question", "reference", "facts", "judge", "prompt",
"judging_run"}``; the last line of a reference wins, so an edited list stays. A denominator that
moves would be drift. Lines of a run of judging that was withdrawn do not count.
"""

from __future__ import annotations

import copy
import hashlib
import threading
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import orjson

import storage
from clients.judge_types import JudgeIdentity, PromptId, Verdict

FILE = "reference_facts.jsonl"
Key = tuple[str, str, str]


class FactStore:
    """The lists of facts that are known. Safe to use from several threads and processes."""

    def __init__(
        self,
        cache_dir: Path,
        identity: JudgeIdentity,
        prompt: PromptId,
        withdrawn: Collection[str] = (),
    ) -> None:
        """``withdrawn``: runs of judging whose lists do not count.

        Raises StorageError naming the line of the file that holds no list of facts.
        """
        self._withdrawn = withdrawn
        self.path = cache_dir / FILE
        self.made = 0
        self._writes = True
        self._judge, self._prompt = str(identity), str(prompt)
        self._known: dict[Key, list[str]] = {}
        self._lock = threading.Lock()
        self._locks: dict[Key, threading.Lock] = defaultdict(threading.Lock)
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        storage.cut_torn_tail(self.path)
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    raw = orjson.loads(line)
                    facts = [str(fact) for fact in raw["facts"] if str(fact).strip()]
                    key = (raw["reference_sha256"], raw["judge"], raw["prompt"])
                except (orjson.JSONDecodeError, KeyError, TypeError):
                    problem = storage.Problem(
                        str(self.path), number, "facts", "not a list of facts; correct or drop it"
                    )
                    raise storage.StorageError.from_problems([problem]) from None
                if facts and str(raw.get("judging_run")) not in self._withdrawn:
                    self._known[key] = facts

    def guessing(self) -> FactStore:
        """A copy that keeps nothing on disk: for estimates."""
        other = copy.copy(self)
        other._known, other._writes = dict(self._known), False
        return other

    def known(self, question: str, reference: str) -> list[str] | None:
        """The list of a reference answer as it stands now; None when there is none."""
        return self._known.get(self._key(question, reference))

    def _key(self, question: str, reference: str) -> Key:
        digest = hashlib.sha256(f"{question}\0{reference}".encode()).hexdigest()
        return digest, self._judge, self._prompt

    def get(
        self, question: str, reference: str, ask: Callable[[], tuple[list[str], Verdict]]
    ) -> list[str] | Verdict:
        """The facts of a reference answer, or the verdict that failed to give them.

        ``ask`` is called once for each reference that is not known, by one thread.
        """
        key = self._key(question, reference)
        with self._lock:
            lock = self._locks[key]
        with lock:
            if key in self._known:
                return self._known[key]
            facts, verdict = ask()
            if not verdict.ok:
                return verdict
            self._keep(key, question, reference, facts, verdict.judging_run)
            return facts

    def _keep(
        self, key: Key, question: str, reference: str, facts: list[str], judging_run: str | None
    ) -> None:
        line: dict[str, Any] = {
            "schema": storage.SCHEMA,
            "reference_sha256": key[0],
            "question": question,
            "reference": reference,
            "facts": facts,
            "judge": key[1],
            "prompt": key[2],
            "judging_run": judging_run,
        }
        with self._lock:
            self._known[key] = facts
            self.made += 1
            if self._writes:
                with storage.locked(self.path), storage.JsonlWriter(self.path) as writer:
                    writer.write(line)
