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
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import msgspec
import orjson

from clients.http import CallError
from judging.cache import CacheOnly, VerdictCache, cache_entry, key_parameters
from judging.identity import JudgeError, JudgePin, addresses, decide, file_name, identify
from judging.replies import (
    BadReply,
    Sampling,
    SchemaChecker,
    ServerAnswer,
    ServerCapabilities,
    ask_again,
    check_answer,
    cut_prompt,
    read_answer,
    request_body,
    sent_parameters,
)
from judging.types import FAILURES, JudgeTask, JudgeVerdict, PromptId
from records.errors import StorageError
from records.files import read_json, replace_json
from records.runs import BATCH, BATCH_FAILURES
from records.verdicts import JudgeIdentity, new_judging_run


@dataclass(frozen=True, slots=True)
class _Provider:
    """What a provider takes: its usual address, the way to ask for JSON, and limits of a file."""

    url: str
    mode: str
    requests: int
    size: int
    dropped: tuple[str, ...] = ()
    name: str | None = None


PROVIDERS = {
    "openai": _Provider("https://api.openai.com/v1", "json_schema", 50_000, 200_000_000),
    "vllm": _Provider("http://localhost:8000/v1", "json_schema", 50_000, 200_000_000, name="vllm"),
    "anthropic": _Provider(
        "https://api.anthropic.com/v1", "tool", 100_000, 256_000_000, ("seed",), "anthropic"
    ),
}
"""By format. Limits as the providers state them; vLLM has none, and takes those of OpenAI."""

PRELIMINARY = {"facts": "lists of facts", "claims": "lists of claims"}
"""Calls whose replies decide what is asked next: their verdicts come in the next round."""

ID_BYTES = 8
"""Bytes of a key that tell requests apart in memory: of a million, none is alike by chance."""

_KEY = re.compile(rb'"custom_id":"([0-9a-f]{64})"')


class BatchFile(msgspec.Struct, omit_defaults=True):
    """What a request file holds, and how far it has come at the provider."""

    metric: str
    prompt: PromptId
    repeat: int
    round: int
    attempt: int
    requests: int
    file_id: str | None = None
    batch_id: str | None = None
    status: str | None = None


class BatchFolder(msgspec.Struct):
    """batch.json: who judges, how it is asked, and the request files by name."""

    schema: int
    provider: str
    model: str
    judge: JudgeIdentity
    mode: str
    dropped: tuple[str, ...]
    temperature: float | None
    seed: int | None
    files: dict[str, BatchFile] = {}

    @property
    def capabilities(self) -> ServerCapabilities:
        """How the provider is asked."""
        return ServerCapabilities(self.mode, self.dropped)

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.seed)


def read_folder(folder: Path) -> BatchFolder:
    """The folder's batch.json. Raises StorageError when there is none or it is damaged."""
    path = folder / BATCH
    if not path.is_file():
        raise StorageError(f"{path}: no such file; write it with judge_answers.py --batch-out.")
    try:
        state = msgspec.convert(read_json(path), BatchFolder)
    except msgspec.ValidationError as error:
        raise StorageError(f"{path}: {error}; write the batch anew into an empty folder.") from None
    if state.provider not in PROVIDERS:
        raise StorageError(f"{path}: written by another version; write the batch anew.")
    return state


def write_folder(folder: Path, state: BatchFolder) -> None:
    """Replace the folder's batch.json in one step."""
    replace_json(folder / BATCH, msgspec.to_builtins(state))


def declared(
    provider: str, url: str | None, model: str | None, pin: JudgePin, mode: str | None
) -> tuple[JudgeIdentity, ServerCapabilities]:
    """Who will judge and how it is asked, from options alone: no server is asked.

    Raises JudgeError without a model, and for one whose name may move.
    """
    traits = PROVIDERS[provider]
    if not model:
        raise JudgeError("--batch-out asks no server: name the model with --model.")
    host = urlsplit(addresses(url or traits.url)[1]).hostname or ""
    identity = identify(lambda path, body: None, host, model, pin).identity
    if traits.name is not None:
        identity = replace(identity, provider=traits.name)
    return identity, ServerCapabilities(mode or traits.mode, traits.dropped)


class RequestCollector(CacheOnly):
    """Stands in for a judge that is asked by files: it notes each task and answers nothing."""

    def __init__(
        self, identity: JudgeIdentity, capabilities: ServerCapabilities, sampling: Sampling
    ) -> None:
        super().__init__(identity, capabilities, sampling)
        self.tasks: list[tuple[str, JudgeTask]] = []

    def ask(self, task: JudgeTask) -> JudgeVerdict:
        """Always the failure ``not_cached``; the task is kept in ``tasks`` with its key."""
        verdict = replace(super().ask(task), mode=self.capabilities.mode)
        self.tasks.append((verdict.key, task))
        return verdict

    def taken(self) -> Iterator[tuple[str, JudgeTask]]:
        """The tasks since the last call."""
        tasks, self.tasks = self.tasks, []
        return iter(tasks)


@dataclass
class BatchCounts:
    """What was written. ``under_way``: asked in an earlier round, and no result read yet."""

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
    """Write what is asked for as request files of a new round, and batch.json last.

    ``tasks``: pairs of key and task; a key is written once. ``stored``: the cache's entry of a key,
    whose reply was found wanting by now. A request whose result has not been read is not written
    again. Raises StorageError for a folder of another judge.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / BATCH).exists():
        before = read_folder(folder)
        if msgspec.structs.replace(before, files={}) != msgspec.structs.replace(state, files={}):
            raise StorageError(
                f"{folder}: holds batches of another judge or other settings ({before.judge}); "
                "name another folder."
            )
        state.files.update(before.files)
    counts = BatchCounts(1 + max((file.round for file in state.files.values()), default=0))
    asked, failures = _asked(folder, state), _read_failures(folder)
    written: set[int] = set()
    with ExitStack() as stack:
        files = _RequestFiles(folder, state, counts, stack)
        for key, task in tasks:
            short = _short(key)
            if short in written:
                continue
            written.add(short)
            attempt = asked.get(short, 0) + 1
            failure = _incomplete(task, stored(key)) if attempt > 1 else None
            failure = failure or failures.get(key)
            if attempt > 1 and (failure is None or failure.attempt < attempt - 1):
                counts.under_way += 1
                continue
            counts.again += attempt > 1
            if task.metric in PRELIMINARY:
                counts.preliminary[task.metric] += 1
            files.write(key, task, attempt, failure)
        files.close()
    write_folder(folder, state)
    return counts


def _incomplete(task: JudgeTask, entry: Mapping[str, Any] | None) -> _Failure | None:
    """What is wrong with a stored reply that was checked without its task."""
    data = entry.get("data") if entry else None
    if entry is None or not isinstance(data, dict) or not (problems := list(task.check(data))):
        return None
    return _Failure(entry["key"], "incomplete", entry["asks"], entry.get("raw", ""), problems)


class _RequestFiles:
    """Open request files of one round: a series for each kind, repeat and attempt."""

    def __init__(
        self, folder: Path, state: BatchFolder, counts: BatchCounts, stack: ExitStack
    ) -> None:
        self._folder, self._state, self._counts, self._stack = folder, state, counts, stack
        self._traits = PROVIDERS[state.provider]
        self._open: dict[tuple[str, int, int], tuple[str, BinaryIO, int]] = {}
        self._parts: Counter[tuple[str, int, int]] = Counter()
        self._prompts: dict[tuple[str, int, int], PromptId] = {}

    def write(self, key: str, task: JudgeTask, attempt: int, failure: _Failure | None) -> None:
        line = orjson.dumps(_request(self._state, key, task, failure))
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
            f"round{self._counts.round}-{metric}{opinion}-attempt{attempt}"
            f"-{self._parts[series]:03d}.{ending}"
        )
        path = self._folder / name
        file = self._stack.enter_context(path.open("wb"))
        head = b'{"requests":[\n' if self._state.provider == "anthropic" else b""
        file.write(head)
        self._state.files[name] = BatchFile(
            metric, task.prompt, repeat, self._counts.round, attempt, 0
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
    state: BatchFolder, key: str, task: JudgeTask, failure: _Failure | None
) -> dict[str, Any]:
    """One request as the provider takes it; after a bad reply, with what was wrong with it."""
    messages: Sequence[Mapping[str, str]] = task.messages
    if failure is not None and failure.problems:
        messages = ask_again(messages, failure.raw, failure.problems)
    sent = sent_parameters(state.sampling, state.capabilities, task.max_tokens, task.repeat)
    body = request_body(state.model, messages, task.schema, state.mode, sent)
    if state.provider != "anthropic":
        return {
            "custom_id": key,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": body,
        }
    system = [message["content"] for message in body["messages"] if message["role"] == "system"]
    talk = [message for message in body["messages"] if message["role"] != "system"]
    scalars = ("model", "max_tokens", "temperature")
    params: dict[str, Any] = {name: body[name] for name in scalars if name in body}
    params |= {"system": "\n\n".join(system), "messages": talk}
    if "tools" in body:
        function = body["tools"][0]["function"]
        described = {"name": function["name"], "description": function["description"]}
        params["tools"] = [described | {"input_schema": function["parameters"]}]
        params["tool_choice"] = {"type": "tool", "name": function["name"]}
    return {"custom_id": key, "params": params}


class _Failure(msgspec.Struct):
    """A request that gave no verdict: why, and the reply with its faults when there was one."""

    key: str
    kind: str
    attempt: int = 0
    raw: str = ""
    problems: list[str] = []


def _read_failures(folder: Path) -> dict[str, _Failure]:
    """The last failure of each request that has been asked, by key."""
    path = folder / BATCH_FAILURES
    failures: dict[str, _Failure] = {}
    if path.exists():
        with open(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    failure = msgspec.json.decode(line, type=_Failure)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    if line.endswith(b"\n"):
                        raise StorageError(f"{path}:{number}: damaged; drop the line.") from None
                    break  # torn by a kill: the import is run again
                failures[failure.key] = failure
    return failures


def _asked(folder: Path, state: BatchFolder) -> dict[int, int]:
    """How often each request was written in earlier rounds, by the shortened key."""
    times: dict[int, int] = {}
    for name in state.files:
        path = folder / name
        if not path.exists():
            continue
        with open(path, "rb") as file:
            for line in file:
                if match := _KEY.search(line, 0, 160):
                    short = _short(match[1].decode())
                    times[short] = times.get(short, 0) + 1
    return times


def _short(key: str) -> int:
    return int(key[: 2 * ID_BYTES], 16)


@dataclass
class ImportCounts:
    """What results held. ``failures``: by kind; each failed request can be asked again."""

    verdicts: int = 0
    there: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


DAMAGE = {
    "damaged": "lines that are no result",
    "unknown": "results of requests that the folder has not",
    "doubled": "further results of one request",
    "expired": "requests that expired or were cancelled",
    "error": "requests that the provider answered with an error",
}
"""Kinds of import failures besides those of ``judging.types.FAILURES``."""


def failure_words(counts: ImportCounts) -> list[str]:
    """A clause for each kind of failure: how many, and what it means."""
    words = {**FAILURES, **DAMAGE}
    return [f"{number:,} {kind}: {words[kind]}" for kind, number in sorted(counts.failures.items())]


def import_results(
    paths: Sequence[Path], cache: VerdictCache, folder: Path | None = None
) -> ImportCounts:
    """Take results into the cache; what cannot be used is counted, noted, and becomes no verdict.

    ``folder``: where batch.json and the request files lie; None: beside the results. A verdict that
    the cache has already stays. Raises StorageError for a file that cannot be read and for a
    folder without batch.json.
    """
    counts = ImportCounts()
    for path in paths:
        own = folder or path.parent
        _Import(own, read_folder(own), cache, counts).read(path)
    return counts


class _Import:
    """Results of one folder on their way into the cache."""

    def __init__(
        self, folder: Path, state: BatchFolder, cache: VerdictCache, counts: ImportCounts
    ) -> None:
        self._folder, self._state, self._cache, self._counts = folder, state, cache, counts
        self._run = new_judging_run()
        self._schemas = SchemaChecker()
        self._requests = _RequestIndex(folder, state)
        self._seen: set[int] = set()

    def read(self, path: Path) -> None:
        """One file of results, a line each."""
        try:
            with open(path, "rb") as file, open(self._folder / BATCH_FAILURES, "ab") as failures:
                for line in file:
                    failure = self._take(line) if line.strip() else None
                    if failure is not None:
                        self._counts.failures[failure.kind] += 1
                        if failure.key:
                            failures.write(msgspec.json.encode(failure) + b"\n")
        except OSError as error:
            raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None

    def _take(self, line: bytes) -> _Failure | None:
        """Store the verdict of one line; else why there is none."""
        try:
            result = orjson.loads(line)
        except orjson.JSONDecodeError:
            return _Failure("", "damaged")
        key = result.get("custom_id") if isinstance(result, dict) else None
        if not isinstance(key, str) or re.fullmatch(r"[0-9a-f]{64}", key) is None:
            return _Failure("", "damaged")
        request = self._requests.find(key)
        if request is None:
            return _Failure("", "unknown")
        if _short(key) in self._seen:
            return _Failure("", "doubled")
        if key in self._cache:
            self._seen.add(_short(key))
            self._counts.there += 1
            return None
        try:
            payload = _payload(result, self._state.provider)
            answer = read_answer(payload)
            verdict = self._verdict(key, request, answer)
        except _NoResult as none:
            return _Failure(key, none.kind, request.attempt)
        except CallError:
            return _Failure(key, "error", request.attempt)
        except BadReply as bad:
            if bad.kind not in ("malformed", "schema"):
                return _Failure(key, bad.kind, request.attempt)
            problems = bad.message.splitlines()
            return _Failure(key, bad.kind, request.attempt, answer.text, problems)
        self._seen.add(_short(key))
        entry = cache_entry(
            request.task, verdict, self._state.judge, self._state.dropped, datetime.now(UTC)
        )
        self._cache.put(entry)
        self._counts.verdicts += 1
        return None

    def _verdict(self, key: str, request: _Asked, answer: ServerAnswer) -> JudgeVerdict:
        answered = file_name(answer.model) if answer.model else None
        naming = decide(self._state.judge, answered)
        if naming.fault is not None:
            raise BadReply("other_model", naming.fault)
        if naming.note and naming.note not in self._counts.notes:
            self._counts.notes.append(naming.note)
        if (cut := cut_prompt(answer.usage, request.messages)) is not None:
            raise BadReply("prompt_truncated", cut)
        reply = check_answer(answer, request.task, self._state.mode, self._schemas)
        return JudgeVerdict(
            key,
            reply.data,
            raw=reply.raw,
            mode=self._state.mode,
            repaired=reply.repaired,
            attempts=1,
            asks=request.attempt,
            usage=answer.usage,
            sent=key_parameters(self._state.sampling, self._state.capabilities, request.task),
            answered_as=answered,
            judging_run=self._run,
        )


@dataclass(frozen=True)
class _Asked:
    """A request as it was written: enough of its task to check a reply."""

    task: JudgeTask
    messages: Sequence[Mapping[str, str]]
    attempt: int


class _RequestIndex:
    """Where each request of a folder stands, by key; the last attempt counts."""

    def __init__(self, folder: Path, state: BatchFolder) -> None:
        self._state = state
        self._files = [(folder / name, file) for name, file in state.files.items()]
        self._places: dict[int, tuple[int, int]] = {}
        for number, (path, _) in enumerate(self._files):
            if not path.exists():
                continue
            offset = 0
            with open(path, "rb") as lines:
                for line in lines:
                    if match := _KEY.search(line, 0, 160):
                        self._places[_short(match[1].decode())] = (number, offset)
                    offset += len(line)

    def find(self, key: str) -> _Asked | None:
        """The request of this key, None when no file of the folder holds it."""
        place = self._places.get(_short(key))
        if place is None:
            return None
        number, offset = place
        path, own = self._files[number]
        with open(path, "rb") as file:
            file.seek(offset)
            request = orjson.loads(file.readline().rstrip(b",\n"))
        if request["custom_id"] != key:
            return None
        body = request.get("body") or request["params"]
        messages = list(body["messages"])
        if body.get("system"):
            messages.insert(0, {"role": "system", "content": body["system"]})
        task = JudgeTask(
            own.metric,
            own.prompt,
            tuple(messages),
            (),
            _schema_of(body, self._state.mode),
            lambda reply: (),
            {},
            own.repeat,
            body.get("max_tokens") or body.get("max_completion_tokens") or 0,
        )
        return _Asked(task, messages, own.attempt)


def _schema_of(body: Mapping[str, Any], mode: str) -> Mapping[str, Any]:
    """The schema that a request asks for; an empty one where it stands only in the prompt."""
    schema: Any = {}
    if mode == "json_schema":
        schema = body["response_format"]["json_schema"]["schema"]
    elif mode == "json_object_schema":
        schema = body["response_format"]["schema"]
    elif mode == "tool":
        tool = body["tools"][0]
        schema = tool.get("input_schema") or tool["function"]["parameters"]
    return dict(schema)


class _NoResult(Exception):
    """A request that the provider did not answer; ``kind`` as in ``DAMAGE``."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def _payload(result: Mapping[str, Any], provider: str) -> Any:
    """The chat completion of a result line. Raises _NoResult for a request without an answer."""
    if provider == "anthropic":
        return _completion_of(result.get("result"))
    error = result.get("error")
    if error:
        code = str(error.get("code") if isinstance(error, dict) else error)
        raise _NoResult("expired" if re.search("expired|cancel", code) else "error")
    response = result.get("response")
    if not isinstance(response, dict) or response.get("status_code", 200) != 200:
        raise _NoResult("error")
    return response.get("body")


STOPS = {"tool_use": "tool_calls", "end_turn": "stop", "stop_sequence": "stop"}
"""Reasons to end in Anthropic's words, and in OpenAI's; others are a cut."""


def _completion_of(result: Any) -> dict[str, Any]:
    """A result of Anthropic's in the form of a chat completion."""
    if not isinstance(result, dict):
        raise _NoResult("error")
    if result.get("type") in ("expired", "canceled"):
        raise _NoResult("expired")
    message = result.get("message")
    if result.get("type") != "succeeded" or not isinstance(message, dict):
        raise _NoResult("error")
    parts = message.get("content")
    blocks = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    calls = [
        {"function": {"name": block.get("name"), "arguments": block.get("input")}}
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    reason = str(message.get("stop_reason"))
    usage = message.get("usage")
    counted = usage if isinstance(usage, dict) else {}
    cached = _number(counted.get("cache_read_input_tokens"))
    prompt = _number(counted.get("input_tokens"))
    completion = _number(counted.get("output_tokens"))
    total = None if prompt is None or completion is None else prompt + (cached or 0) + completion
    return {
        "model": message.get("model"),
        "choices": [
            {
                "finish_reason": STOPS.get(reason, reason),
                "message": {
                    "content": [block for block in blocks if block.get("type") == "text"],
                    "tool_calls": calls,
                    "refusal": "the model declined" if reason == "refusal" else None,
                },
            }
        ],
        "usage": {
            "prompt_tokens": None if prompt is None else prompt + (cached or 0),
            "completion_tokens": completion,
            "total_tokens": total,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
