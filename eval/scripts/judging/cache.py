"""The file of verdicts: lines by key, appended under a lock, read by place.

Lines are only appended; of two lines with one key the last one counts. The entries of a run of
judging that was withdrawn (see ``withdrawal``) count as not there, wherever that is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import msgspec
import orjson
from msgspec.structs import replace

from judging.identity import decide
from judging.protocols import Sampling, ServerCapabilities, sent_parameters
from judging.replies import SchemaChecker
from judging.types import Judge, JudgeTask, JudgeVerdict
from records.errors import StorageError
from records.files import RepeatedLock, cut_torn_tail, locked
from records.syncing import DelayedSync, make_folder, sync_folder
from records.verdicts import (
    JudgeIdentity,
    identity_of,
    new_judging_run,
    read_withdrawal,
    withdrawal,
)

FORMAT = 1
"""Of a line; lines of another format are not read."""

PRIVATE, FORMERLY = 0o600, 0o644
"""The file's mode, because it contains questions, answers and replies, and its mode in earlier
versions. Any other mode is a user's own choice."""

BLOCK = 8 * 2**20
"""Bytes that are read at once."""


class _Counted(msgspec.Struct):
    completion_tokens: int | None = None


class _EntryHead(msgspec.Struct):
    """What the index needs of a line."""

    format: int
    key: str
    metric: str
    judge: dict[str, str | None]
    mode: str
    dropped: tuple[str, ...] = ()
    asks: int = 1
    usage: _Counted = msgspec.field(default_factory=_Counted)
    judging_run: str | None = None


_decode_head = msgspec.json.Decoder(_EntryHead).decode


class VerdictCache:
    """One cache file, which several processes may use at the same time.

    Only the places of the lines are kept in memory. ``unreadable`` counts lines that are damaged
    or of another format; they are skipped. Raises StorageError when the file cannot be used.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.unreadable = 0
        self._read_only = read_only
        self._positions: dict[str, tuple[int, int]] = {}
        self._judges: dict[str, tuple[dict[str, str | None], ServerCapabilities]] = {}
        self._replies: dict[str, tuple[int, int]] = {}
        self._runs: set[str] = set()
        self._withdrawn: dict[str, str] = {}
        self._taken: set[str] = set()
        self._outdated = False
        self._end = 0
        self._file: int | None = None
        self._sync: DelayedSync | None = None
        self._lock = RepeatedLock(path)
        if not read_only:
            with self._writable():
                make_folder(path.parent)
                with locked(path):
                    cut_torn_tail(path)
                    _close_to_others(path)
        self._read_on()

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, key: str) -> bool:
        return self._find(key) is not None

    def get(self, key: str) -> dict[str, Any] | None:
        """The entry of ``key``, also one that another process has just written."""
        position = self._find(key)
        if position is None or self._file is None:
            return None
        line = os.pread(self._file, position[1], position[0])
        try:
            entry: dict[str, Any] = orjson.loads(line)
        except orjson.JSONDecodeError:  # damaged where the index does not look
            del self._positions[key]
            self.unreadable += 1
            return None
        if isinstance(judging_run := entry.get("judging_run"), str):
            self._taken.add(judging_run)
        return entry

    @property
    def withdrawn(self) -> Mapping[str, str]:
        """The runs of judging that do not count, each with the reason, as the file is now."""
        self._read_on()
        return dict(self._withdrawn)

    @property
    def taken_back(self) -> Mapping[str, str]:
        """Those of ``withdrawn`` whose entries were given out by this object before."""
        return {run: why for run, why in self.withdrawn.items() if run in self._taken}

    def withdraw(self, judging_run: str, reason: str) -> None:
        """Let the entries of a run of judging count as not there; no line without any of them."""
        self._read_on()
        if judging_run in self._runs:
            self.put(withdrawal(judging_run, reason))
            self._read_on()

    def put(self, entry: Mapping[str, Any]) -> None:
        """Append an entry; it is in the file when this returns, and soon on the disk."""
        line = orjson.dumps(entry) + b"\n"
        with self._writable(), self._lock.held():
            # behind what others wrote; a torn line that one left is cut off
            self._read_on()
            if self._file is None:
                self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, PRIVATE)
                sync_folder(self.path.parent)
            self._sync = self._sync or DelayedSync(self._file)
            if os.fstat(self._file).st_size > self._end:
                os.ftruncate(self._file, self._end)
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            self._sync.written()
            self._take_in(line)
            self._end += len(line)

    def found_for(self, identity: JudgeIdentity) -> ServerCapabilities | None:
        """How this judge was last asked; None if it never was."""
        last_use = self._judges.get(_name(identity.to_dict()))
        return last_use[1] if last_use else None

    def judges(self, model: str | None = None) -> list[tuple[JudgeIdentity, ServerCapabilities]]:
        """The judges that have verdicts here, the one asked last at the end.

        ``model``: only those of this name, or of this ``provider/name``.
        """
        pairs = [
            (identity_of(judge), capabilities) for judge, capabilities in self._judges.values()
        ]
        return [
            (identity, capabilities)
            for identity, capabilities in pairs
            if model in (None, identity.model, f"{identity.provider}/{identity.model}")
        ]

    def tokens_a_reply(self, metric: str) -> float | None:
        """Mean completion tokens of the metric's replies so far; None when nothing is known."""
        tokens, replies = self._replies.get(metric, (0, 0))
        return tokens / replies if replies else None

    def close(self) -> None:
        """Force the written lines onto the disk and close the file; the next use opens it again."""
        with self._writable():
            sync = self._sync
            self._forget()
            self._lock.close()
            if sync is not None:
                sync.now()

    @contextlib.contextmanager
    def _writable(self) -> Iterator[None]:
        """Turns what the system says against writing into one sentence."""
        try:
            yield
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be written ({error.strerror}).") from error

    def _find(self, key: str) -> tuple[int, int] | None:
        if self._outdated or key not in self._positions:
            self._read_on()
        return self._positions.get(key)

    def _read_on(self) -> None:
        """Take in the lines that have come since; all anew when the file was replaced."""
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            self._forget()
            return
        if self._file is not None:
            mine = os.fstat(self._file)
            if (mine.st_ino, mine.st_dev) != (now.st_ino, now.st_dev) or now.st_size < self._end:
                self._forget()
        try:
            if self._file is None:
                mode = os.O_RDONLY if self._read_only else os.O_RDWR | os.O_APPEND
                self._file = os.open(self.path, mode)
            self._read_lines(self._file, now.st_size)
            if self._outdated:
                self._start_again()
                self._read_lines(self._file, now.st_size)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be read ({error.strerror}).") from error

    def _read_lines(self, file: int, size: int) -> None:
        """Take in all whole lines from ``_end`` on; a torn one at the end stays unread."""
        block = BLOCK
        while self._end < size:
            fresh = os.pread(file, block, self._end)
            whole = fresh[: fresh.rfind(b"\n") + 1]
            if not whole:
                if len(fresh) < block:
                    return
                block *= 2
            for line in whole.splitlines(keepends=True):
                self._take_in(line)
                self._end += len(line)

    def _take_in(self, line: bytes) -> None:
        try:
            head = _decode_head(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if (record := read_withdrawal(line)) is None:
                self.unreadable += bool(line.strip())
            elif record.withdrawn not in self._withdrawn:
                self._withdrawn[record.withdrawn] = record.reason
                self._outdated |= record.withdrawn in self._runs
            return
        if head.format != FORMAT:
            self.unreadable += 1
            return
        if head.judging_run is not None:
            self._runs.add(head.judging_run)
            if head.judging_run in self._withdrawn:
                return
        self._positions[head.key] = (self._end, len(line))
        name = _name(head.judge)
        self._judges.pop(name, None)
        self._judges[name] = (head.judge, ServerCapabilities(head.mode, head.dropped))
        if head.usage.completion_tokens is not None:
            tokens, replies = self._replies.get(head.metric, (0, 0))
            counted = head.usage.completion_tokens
            self._replies[head.metric] = (tokens + counted, replies + max(1, head.asks))

    def _forget(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = self._sync = None
        self._withdrawn.clear()
        self._start_again()

    def _start_again(self) -> None:
        """Take in all lines anew with what is withdrawn: an older line of a key may count again."""
        self._end, self.unreadable, self._outdated = 0, 0, False
        self._runs.clear()
        self._positions.clear()
        self._judges.clear()
        self._replies.clear()


def _close_to_others(path: Path) -> None:
    """Take from others what an earlier version let them read; left alone where that is refused."""
    with contextlib.suppress(OSError):
        if stat.S_IMODE(path.stat().st_mode) == FORMERLY:
            path.chmod(PRIVATE)


def _name(judge: Mapping[str, Any]) -> str:
    return orjson.dumps(judge, option=orjson.OPT_SORT_KEYS).decode()


class _KeyedJudge(Judge, Protocol):
    """A judge that can say beforehand what it would send."""

    @property
    def capabilities(self) -> ServerCapabilities: ...

    def parameters(self, task: JudgeTask) -> Mapping[str, Any]: ...


_UNDER_WAY: dict[int, tuple[JudgeTask, JudgeIdentity, Mapping[str, Any], str]] = {}
"""Keys of the tasks that a judge is being asked for, which makes them for its verdicts, too."""


def verdict_key(task: JudgeTask, identity: JudgeIdentity, parameters: Mapping[str, Any]) -> str:
    """The key of a task's verdict, see ``_new_key``."""
    known = _UNDER_WAY.get(id(task))
    if known and known[0] is task and known[1] is identity and known[2] == parameters:
        return known[3]
    return _new_key(task, identity, parameters)


def _new_key(task: JudgeTask, identity: JudgeIdentity, parameters: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of all that a verdict depends on, as canonical JSON.

    That is: format, metric, prompt (name and hash), messages with placeholders for random marks,
    schema (with the order of its fields: models write them in this order), parameters really sent
    (with the mode), the judge's identity, the repeat. Not in it: the server's address, keys, the
    time, the run.
    """
    own = orjson.dumps(task.key_messages[-1:], option=orjson.OPT_SORT_KEYS)
    parts = {
        "metric": task.metric,
        "prompt": {"name": task.prompt.name, "sha256": task.prompt.sha256},
        "schema": _schema_text(task.schema),
        "parameters": parameters,
        "repeat": task.repeat,
    }
    others = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    shared = tuple([tuple(message.items()) for message in task.key_messages[:-1]])
    digest = _begun_key(identity, shared).copy()
    digest.update(b"%b,%b" % (own[1:], others[1:]))
    return digest.hexdigest()


@lru_cache(maxsize=64)
def _begun_key(identity: JudgeIdentity, messages: tuple[Any, ...]) -> hashlib._Hash:
    """The hash of the parts that come first and that all tasks of a prompt share: format, judge and
    the messages before the last one."""
    parts = {"format": FORMAT, "judge": identity.to_dict(), "messages": list(map(dict, messages))}
    begin = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS).removesuffix(b"]}")
    return hashlib.sha256(begin + b"," if messages else begin)


_SCHEMA_TEXTS: dict[int, tuple[Mapping[str, Any], orjson.Fragment]] = {}
"""By the identity of the schema, which stands beside its text so that no other takes its id."""

_MOST_SCHEMA_TEXTS = 1024


def _schema_text(schema: Mapping[str, Any]) -> orjson.Fragment:
    """A schema's JSON as a JSON string. Kinds of calls share schemas, so they never change."""
    cached = _SCHEMA_TEXTS.get(id(schema))
    if cached is None or cached[0] is not schema:
        if len(_SCHEMA_TEXTS) >= _MOST_SCHEMA_TEXTS:
            _SCHEMA_TEXTS.clear()
        cached = schema, orjson.Fragment(orjson.dumps(orjson.dumps(schema).decode()))
        _SCHEMA_TEXTS[id(schema)] = cached
    return cached[1]


class CachedJudge:
    """A judge that asks ``judge`` only for entries missing in ``cache``.

    Two calls that want the same verdict ask once; two processes that want it in the same moment
    may both pay for it. A stored verdict is asked anew when it does not pass the task's checks
    (older code or a strange hand wrote it), and when its reply names another model than the judge.

    ``judging_run``: the id that new entries get.
    """

    def __init__(
        self, judge: _KeyedJudge, cache: VerdictCache, judging_run: str | None = None
    ) -> None:
        self._judge = judge
        self._cache = cache
        self._judging_run = judging_run or new_judging_run()
        self._schemas = SchemaChecker()
        self._asking: dict[str, asyncio.Event] = {}

    @property
    def identity(self) -> JudgeIdentity:
        return self._judge.identity

    @property
    def capabilities(self) -> ServerCapabilities:
        return self._judge.capabilities

    @property
    def empty(self) -> bool:
        """Never: what is asked is stored."""
        return False

    def stored(self, task: JudgeTask) -> JudgeVerdict | None:
        """The verdict that is there already; no judge is asked."""
        return self._stored(self._key(task), task)

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        """The stored verdict, else a new one, which is stored if it can be used."""
        parameters = self._judge.parameters(task)
        key = verdict_key(task, self._judge.identity, parameters)
        while (stored := self._stored(key, task)) is None:
            other = self._asking.get(key)
            if other is None:
                return await self._ask_alone(key, task, parameters)
            await other.wait()
        return stored

    async def _ask_alone(
        self, key: str, task: JudgeTask, parameters: Mapping[str, Any]
    ) -> JudgeVerdict:
        """Ask, and then let those go on who wait for the same."""
        mine = self._asking[key] = asyncio.Event()
        _UNDER_WAY[id(task)] = task, self._judge.identity, parameters, key
        try:
            return await self._ask_and_keep(task)
        finally:
            del self._asking[key]
            _UNDER_WAY.pop(id(task), None)
            mine.set()

    def _stored(self, key: str, task: JudgeTask) -> JudgeVerdict | None:
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

    async def _ask_and_keep(self, task: JudgeTask) -> JudgeVerdict:
        verdict = replace(await self._judge.ask(task), judging_run=self._judging_run)
        if verdict.ok:
            dropped = self._judge.capabilities.dropped
            identity, now = self._judge.identity, datetime.now(UTC)
            self._cache.put(cache_entry(task, verdict, identity, dropped, now))
        return verdict

    def _key(self, task: JudgeTask) -> str:
        return verdict_key(task, self._judge.identity, self._judge.parameters(task))


def cache_entry(
    task: JudgeTask,
    verdict: JudgeVerdict,
    identity: JudgeIdentity,
    dropped: tuple[str, ...],
    moment: datetime,
) -> dict[str, Any]:
    """A verdict as the cache keeps it. ``dropped``: parameters that the server does not take."""
    return {
        "format": FORMAT,
        "key": verdict.key,
        "at": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "metric": task.metric,
        "prompt": msgspec.structs.asdict(task.prompt),
        "judge": identity.to_dict(),
        "parameters": verdict.sent,
        "mode": verdict.mode,
        "dropped": dropped,
        "repeat": task.repeat,
        "data": verdict.data,
        "raw": verdict.raw,
        "repaired": verdict.repaired,
        "asks": verdict.asks,
        "usage": msgspec.structs.asdict(verdict.usage),
        "cost_usd": verdict.cost_usd,
        "seconds": verdict.seconds,
        "answered_as": verdict.answered_as,
        "judging_run": verdict.judging_run,
    }


def _from_entry(entry: Mapping[str, Any]) -> JudgeVerdict:
    """The stored verdict as one that cost nothing now: no calls, no tokens, no time."""
    return JudgeVerdict(
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


NOT_CACHED = "the cache has no such verdict"


class CacheOnly:
    """Replaces a judge that must not be asked: whatever is not in the cache is a failure."""

    def __init__(
        self, identity: JudgeIdentity, capabilities: ServerCapabilities, sampling: Sampling
    ) -> None:
        self.identity = identity
        self.capabilities = capabilities
        self._sampling = sampling

    def parameters(self, task: JudgeTask) -> Mapping[str, Any]:
        """The parameters that the judge would send, as far as they are known."""
        return key_parameters(self._sampling, self.capabilities, task)

    def key(self, task: JudgeTask) -> str:
        """Of the task's verdict in the cache."""
        return verdict_key(task, self.identity, self.parameters(task))

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        """Always the failure ``not_cached``."""
        return JudgeVerdict(self.key(task), None, "not_cached", NOT_CACHED)


def key_parameters(
    sampling: Sampling, capabilities: ServerCapabilities, task: JudgeTask
) -> Mapping[str, Any]:
    """The parameters that a verdict depends on: those really sent, and the mode."""
    sent = sent_parameters(sampling, capabilities, task.max_tokens, task.repeat)
    return {"mode": capabilities.mode, **sent}
