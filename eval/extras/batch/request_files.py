"""Judging by files: what the cache lacks is written as batch files of a provider, and read back.

A folder of batches holds request files, one for a kind of call, round and attempt, and
``batch.json``, which says who judges and what each file is. The id of a request is the key of its
verdict in the cache, so a result needs nothing else to find its place. Results are checked as
replies of a server are; what fails becomes no verdict, and the next round asks for it again.

Formats: ``openai`` and ``vllm``, a line a request (https://platform.openai.com/docs/guides/batch,
``vllm run-batch``), ``anthropic``, one JSON object a file
(https://docs.anthropic.com/en/docs/build-with-claude/batch-processing).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import orjson

from judging.cache import NOT_CACHED, CachedJudge, CacheOnly, VerdictCache
from judging.identity import JudgeError, JudgePin, JudgeUnreachable, identify
from judging.protocols import (
    ANTHROPIC,
    OPENAI,
    REFUSED_TOGETHER,
    Sampling,
    ServerCapabilities,
    WireForm,
    endpoint,
    sent_parameters,
)
from judging.replies import ask_again
from judging.types import JudgeTask, JudgeVerdict, PromptId
from records.errors import StorageError
from records.file_access import check_folder
from records.files import locked, read_json, replace_json
from records.verdicts import JudgeIdentity


@dataclass(frozen=True, slots=True)
class _Provider:
    """What a provider takes: its usual address, the way to ask for JSON, and limits of a file."""

    url: str
    mode: str
    requests: int
    size: int
    name: str | None = None
    form: WireForm = OPENAI


PROVIDERS = {
    "openai": _Provider("https://api.openai.com/v1", "json_schema", 50_000, 200_000_000),
    "vllm": _Provider("http://localhost:8000/v1", "json_schema", 50_000, 200_000_000, name="vllm"),
    "anthropic": _Provider(
        "https://api.anthropic.com/v1", "tool", 100_000, 256_000_000, "anthropic", ANTHROPIC
    ),
}
"""By format. Limits as the providers state them; vLLM has none, and takes those of OpenAI."""

PRELIMINARY = {"facts": "lists of facts", "claims": "lists of claims"}
"""Calls whose replies decide the next calls: their verdicts come in the next round."""

BATCH, BATCH_FAILURES = "batch.json", "failures.jsonl"
"""In a folder of batch files: what they hold, and the requests that gave no verdict."""

ID_BYTES = 8
"""Bytes of a key that distinguish requests in memory: of a million, none is alike by chance."""

MOST_FRUITLESS = 3
"""Rounds without any verdict after which no further one is written."""

LEARNT = ("files", "progress", "failing", "refusal")
"""Fields of a folder that its results change; the others say who judges and how."""

BUFFER = 2**20
"""Bytes that are written at once."""

KEY = re.compile(rb'"custom_id":"([0-9a-f]{64})"')

FILE_NAME = re.compile(r"round[a-z0-9_-]+\.jsonl?")


class _BatchFile(msgspec.Struct, omit_defaults=True):
    """What a request file holds, and how far it has come at the provider.

    ``dropped``: parameters that its requests were written without; None: those of the folder.
    """

    metric: str
    prompt: PromptId
    repeat: int
    round: int
    attempt: int
    requests: int
    dropped: tuple[str, ...] | None = None
    file_id: str | None = None
    batch_id: str | None = None
    status: str | None = None


class BatchFolder(msgspec.Struct):
    """batch.json: who judges, how it is asked, and the request files by name.

    ``dropped``: parameters that the provider does not take, also those that its results refused.
    ``progress``: the last round whose results brought a verdict or such a parameter. ``failing``:
    rounds of which a result brought none. ``refusal``: what the provider said last against a
    request, in its words.
    """

    schema: int
    provider: str
    model: str
    judge: JudgeIdentity
    mode: str
    dropped: tuple[str, ...]
    temperature: float | None
    seed: int | None
    extra: dict[str, Any] = {}
    progress: int = 0
    failing: list[int] = []
    refusal: str = ""
    files: dict[str, _BatchFile] = {}

    @property
    def capabilities(self) -> ServerCapabilities:
        """How the provider is asked."""
        return ServerCapabilities(self.mode, self.dropped)

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.seed, self.extra)

    @property
    def fruitless(self) -> int:
        """Rounds since the last progress whose results brought nothing but failures."""
        return sum(number > self.progress for number in self.failing)

    def learn(self, name: str) -> list[str]:
        """Leave out a parameter that the provider refused; return the parameters newly left out."""
        together = REFUSED_TOGETHER if self.provider == "openai" else ()
        names = together if name in together else (name,)
        fresh = [each for each in names if each not in self.dropped]
        self.dropped = (*self.dropped, *fresh)
        return fresh


def read_folder(folder: Path) -> BatchFolder:
    """The folder's batch.json. Raises StorageError when there is none or it is damaged."""
    path = folder / BATCH
    check_folder(folder)
    if not path.is_file():
        raise StorageError(f"{path}: no such file; write it with judge_answers.py --batch-out.")
    try:
        state = msgspec.convert(read_json(path), BatchFolder)
    except msgspec.ValidationError as error:
        raise StorageError(f"{path}: {error}; write the batch anew into an empty folder.") from None
    if state.provider not in PROVIDERS:
        raise StorageError(f"{path}: written by another version; write the batch anew.")
    for name in state.files:
        if FILE_NAME.fullmatch(name) is None:  # what it names is read, and sent to a provider
            raise StorageError(
                f"{path}: files: {name!r} is not a name of a request file; write the batch anew "
                "into "
                "an empty folder."
            )
    return state


@contextmanager
def locked_folder(folder: Path) -> Iterator[BatchFolder]:
    """The folder's batch.json, while no other process changes the folder: two that send the same
    files would pay twice. Raises StorageError as ``read_folder``, and when it stays in use."""
    read_folder(folder)  # a folder without batch.json gets no lock either
    with locked(folder / BATCH):
        yield read_folder(folder)


def write_folder(folder: Path, state: BatchFolder) -> None:
    """Replace the folder's batch.json in one step."""
    replace_json(folder / BATCH, msgspec.to_builtins(state))


def declared(
    provider: str, url: str, model: str | None, pin: JudgePin, mode: str | None
) -> tuple[JudgeIdentity, ServerCapabilities]:
    """Who will judge and how it is asked, from options alone: no server is asked.

    Raises JudgeError without a model, and for one whose name may move.
    """
    traits = PROVIDERS[provider]
    if not model:
        raise JudgeError("--batch-out asks no server: name the model with --model.")
    end = endpoint(url or traits.url)
    identity = identify(lambda path, body: None, end.host, model, pin, end.provider).identity
    if traits.name is not None:
        identity = msgspec.structs.replace(identity, provider=traits.name)
    return identity, ServerCapabilities(mode or traits.mode, traits.form.dropped)


class RequestCollector(CacheOnly):
    """Replaces a judge that is asked by files: it notes each task that ``cache`` lacks and answers
    nothing."""

    def __init__(
        self,
        identity: JudgeIdentity,
        capabilities: ServerCapabilities,
        sampling: Sampling,
        cache: VerdictCache,
    ) -> None:
        super().__init__(identity, capabilities, sampling)
        self.tasks: list[tuple[str, JudgeTask]] = []
        self._cache = cache
        self._cached = CachedJudge(self, cache)
        self._verdict = JudgeVerdict("", None, "not_cached", NOT_CACHED, mode=capabilities.mode)

    @property
    def empty(self) -> bool:
        """An empty cache is not looked into for each task; nothing is asked that would fill it."""
        return not len(self._cache)

    def stored(self, task: JudgeTask) -> JudgeVerdict | None:
        """The verdict that is there already."""
        return self._cached.stored(task)

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        """Always the failure ``not_cached``; the task is kept in ``tasks`` with its key."""
        self.tasks.append((self.key(task), task))
        return self._verdict

    def taken(self) -> Iterator[tuple[str, JudgeTask]]:
        """The tasks since the last call."""
        tasks, self.tasks = self.tasks, []
        return iter(tasks)


@dataclass
class BatchCounts:
    """Counts of the written requests. ``under_way``: asked in an earlier round, and no result read
    yet."""

    round: int
    files: list[Path] = field(default_factory=list)
    requests: int = 0
    again: int = 0
    under_way: int = 0
    preliminary: Counter[str] = field(default_factory=Counter)
    size: int = 0


def write_requests(
    folder: Path,
    state: BatchFolder,
    tasks: Iterable[tuple[str, JudgeTask]],
    stored: Callable[[str], Mapping[str, Any] | None] = lambda key: None,
) -> BatchCounts:
    """Write the collected requests as files of a new round, and batch.json last.

    ``tasks``: pairs of key and task; a key is written once. ``stored``: the cache's entry of a key,
    whose reply was found wanting by now. A request whose result has not been read is not written
    again. Raises StorageError for a folder of another judge, and for one that stays in use.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / BATCH):
        return _write_requests(folder, state, tasks, stored)


def _write_requests(
    folder: Path,
    state: BatchFolder,
    tasks: Iterable[tuple[str, JudgeTask]],
    stored: Callable[[str], Mapping[str, Any] | None],
) -> BatchCounts:
    if (folder / BATCH).exists():
        before = read_folder(folder)
        learnt = {name: getattr(before, name) for name in LEARNT}
        state = msgspec.structs.replace(state, **learnt)
        if before != state:
            raise StorageError(
                f"{folder}: has batches of another judge or of other settings ({before.judge}); "
                "name another folder."
            )
    counts = BatchCounts(1 + max((file.round for file in state.files.values()), default=0))
    asked, failures = _asked(folder, state), _read_failures(folder)
    written: set[int] = set()
    with ExitStack() as stack:
        files = _RequestFiles(folder, state, counts, stack)
        for key, task in tasks:
            short = short_key(key)
            if short in written:
                continue
            written.add(short)
            attempt = asked.get(short, 0) + 1
            failure = _incomplete(task, stored(key)) if attempt > 1 else None
            failure = failure or failures.get(key)
            if attempt > 1 and (failure is None or failure.attempt < attempt - 1):
                counts.under_way += 1
                continue
            if state.fruitless >= MOST_FRUITLESS:
                raise JudgeUnreachable(
                    f"{folder}: the last {state.fruitless} rounds brought no verdict"
                    + (f"; the provider said: {state.refusal}" if state.refusal else "")
                    + ". Nothing was written; correct the judge's settings and name a new folder."
                )
            counts.again += attempt > 1
            if task.metric in PRELIMINARY:
                counts.preliminary[task.metric] += 1
            files.write(key, task, attempt, failure)
        files.close()
    write_folder(folder, state)
    return counts


def _incomplete(task: JudgeTask, entry: Mapping[str, Any] | None) -> RequestFailure | None:
    """What is wrong with a stored reply that was checked without its task."""
    data = entry.get("data") if entry else None
    if entry is None or not isinstance(data, dict) or not (problems := list(task.check(data))):
        return None
    return RequestFailure(entry["key"], "incomplete", entry["asks"], entry.get("raw", ""), problems)


class _RequestFiles:
    """Open request files of one round: a series for each kind, repeat and attempt."""

    def __init__(
        self, folder: Path, state: BatchFolder, counts: BatchCounts, stack: ExitStack
    ) -> None:
        self._folder, self._state, self._counts, self._stack = folder, state, counts, stack
        self._traits = PROVIDERS[state.provider]
        self._sampling, self._capabilities = state.sampling, state.capabilities
        self._open: dict[tuple[str, int, int], tuple[str, BinaryIO, int]] = {}
        self._parts: Counter[tuple[str, int, int]] = Counter()

    def write(
        self, key: str, task: JudgeTask, attempt: int, failure: RequestFailure | None
    ) -> None:
        """Append one request; a full file is followed by the next one of its series."""
        sent = sent_parameters(self._sampling, self._capabilities, task.max_tokens, task.repeat)
        line = orjson.dumps(_request(self._state, key, task, failure, sent))
        series = (task.metric, task.repeat, attempt)
        opened = self._open.get(series)
        if opened is None or not self._has_room(opened, len(line)):
            if opened is not None:
                self._end(series)
            opened = self._begin(series, task)
        name, file, size = opened
        own = self._state.files[name]
        if self._state.provider == "anthropic":
            line = (b",\n" if own.requests else b"") + line
        else:
            line += b"\n"
        file.write(line)
        own.requests += 1
        self._counts.requests += 1
        self._counts.size += len(line)
        self._open[series] = (name, file, size + len(line))

    def _has_room(self, opened: tuple[str, BinaryIO, int], size: int) -> bool:
        name, _, used = opened
        few = self._state.files[name].requests < self._traits.requests
        return few and used + size + 16 <= self._traits.size

    def _begin(self, series: tuple[str, int, int], task: JudgeTask) -> tuple[str, BinaryIO, int]:
        self._parts[series] += 1
        metric, repeat, attempt = series
        ending = "json" if self._state.provider == "anthropic" else "jsonl"
        opinion = f"-opinion{repeat + 1}" if repeat else ""
        name = (
            f"round{self._counts.round}-{metric.replace('.', '-')}{opinion}-attempt{attempt}"
            f"-{self._parts[series]:03d}.{ending}"
        )
        path = self._folder / name
        file = self._stack.enter_context(path.open("wb", BUFFER))
        head = b'{"requests":[\n' if self._state.provider == "anthropic" else b""
        file.write(head)
        self._state.files[name] = _BatchFile(
            metric, task.prompt, repeat, self._counts.round, attempt, 0, self._state.dropped
        )
        self._counts.files.append(path)
        return name, file, len(head)

    def _end(self, series: tuple[str, int, int]) -> None:
        _, file, _ = self._open.pop(series)
        if self._state.provider == "anthropic":
            file.write(b"\n]}\n")
        file.close()

    def close(self) -> None:
        for series in list(self._open):
            self._end(series)


def _request(
    state: BatchFolder,
    key: str,
    task: JudgeTask,
    failure: RequestFailure | None,
    sent: Mapping[str, Any],
) -> dict[str, Any]:
    """One request as the provider takes it; after a bad reply, with what was wrong with it."""
    messages: Sequence[Mapping[str, str]] = task.messages
    if failure is not None and failure.problems:
        messages = ask_again(messages, failure.raw, failure.problems)
    form = PROVIDERS[state.provider].form
    body = form.body(state.model, messages, task.schema, state.mode, sent)
    if form is ANTHROPIC:
        return {"custom_id": key, "params": body}
    return {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body}


class RequestFailure(msgspec.Struct):
    """A request that gave no verdict: why, and the reply with its faults when there was one."""

    key: str
    kind: str
    attempt: int = 0
    raw: str = ""
    problems: list[str] = []


def _read_failures(folder: Path) -> dict[str, RequestFailure]:
    """The last failure of each request that has been asked, by key."""
    path = folder / BATCH_FAILURES
    failures: dict[str, RequestFailure] = {}
    if path.exists():
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    failure = msgspec.json.decode(line, type=RequestFailure)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    if line.endswith(b"\n"):
                        raise StorageError(f"{path}:{number}: damaged; delete the line.") from None
                    break  # torn by a kill: the import is run again
                failures[failure.key] = failure
    return failures


def _asked(folder: Path, state: BatchFolder) -> dict[int, int]:
    """How often each request was written in earlier rounds, by the shortened key."""
    times: dict[int, int] = {}
    for name in state.files:
        path = folder / name
        if not path.is_file():
            continue
        with open(path, "rb") as file:
            for line in file:
                if match := KEY.search(line, 0, 160):
                    short = short_key(match[1].decode())
                    times[short] = times.get(short, 0) + 1
    return times


def short_key(key: str) -> int:
    return int(key[: 2 * ID_BYTES], 16)
