"""Results of batch files, taken into the cache of verdicts; what fails becomes no verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import orjson

from clients.http import CallError
from judging.batch import KEY, BatchFolder, RequestFailure, locked_folder, short_key
from judging.cache import VerdictCache, cache_entry, key_parameters
from judging.identity import decide, file_name
from judging.replies import (
    BadReply,
    SchemaChecker,
    ServerAnswer,
    check_answer,
    cut_prompt,
    read_answer,
)
from judging.types import FAILURES, JudgeTask, JudgeVerdict
from records.errors import StorageError
from records.files import cut_torn_tail
from records.lines import parse_json
from records.runs import BATCH_FAILURES
from records.verdicts import new_judging_run


@dataclass
class ImportCounts:
    """What results held. ``failures``: by kind; each failed request can be asked again."""

    verdicts: int = 0
    there: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


DAMAGE = {
    "damaged": "lines that are no result",
    "request": "results whose request is damaged in its file",
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
    the cache has already stays. Raises StorageError for a file that cannot be read, for a folder
    without batch.json, and for one that another process uses.
    """
    counts = ImportCounts()
    for path in paths:
        own = folder or path.parent
        with locked_folder(own) as state:
            cut_torn_tail(own / BATCH_FAILURES)
            _Import(own, state, cache, counts).read(path)
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

    def _take(self, line: bytes) -> RequestFailure | None:
        """Store the verdict of one line; else why there is none."""
        try:
            result = parse_json(line)
        except orjson.JSONDecodeError:
            return RequestFailure("", "damaged")
        key = result.get("custom_id") if isinstance(result, dict) else None
        if not isinstance(key, str) or re.fullmatch(r"[0-9a-f]{64}", key) is None:
            return RequestFailure("", "damaged")
        try:
            request = self._requests.find(key)
        except _DamagedRequest as damaged:
            return RequestFailure(key, "request", damaged.attempt)
        if request is None:
            return RequestFailure("", "unknown")
        if short_key(key) in self._seen:
            return RequestFailure("", "doubled")
        if key in self._cache:
            self._seen.add(short_key(key))
            self._counts.there += 1
            return None
        try:
            payload = _payload(result, self._state.provider)
            answer = read_answer(payload)
            verdict = self._verdict(key, request, answer)
        except _NoResult as none:
            return RequestFailure(key, none.kind, request.attempt)
        except CallError:
            return RequestFailure(key, "error", request.attempt)
        except BadReply as bad:
            if bad.kind not in ("malformed", "schema"):
                return RequestFailure(key, bad.kind, request.attempt)
            problems = bad.message.splitlines()
            return RequestFailure(key, bad.kind, request.attempt, answer.text, problems)
        self._seen.add(short_key(key))
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
        self._spots: dict[int, tuple[int, int]] = {}
        for number, (path, _) in enumerate(self._files):
            if not path.is_file():
                continue
            offset = 0
            with open(path, "rb") as lines:
                for line in lines:
                    if match := KEY.search(line, 0, 160):
                        self._spots[short_key(match[1].decode())] = (number, offset)
                    offset += len(line)

    def find(self, key: str) -> _Asked | None:
        """The request of this key, None when no file of the folder holds it.

        Raises _DamagedRequest for one that is not as it was written.
        """
        spot = self._spots.get(short_key(key))
        if spot is None:
            return None
        number, offset = spot
        path, own = self._files[number]
        with open(path, "rb") as file:
            file.seek(offset)
            line = file.readline()
        try:
            request = orjson.loads(line.rstrip(b",\n"))
            if request["custom_id"] != key:
                return None
            body = request.get("body") or request["params"]
            sent = msgspec.convert(body["messages"], list[dict[str, str]])
            messages = [{name: message[name] for name in ("role", "content")} for message in sent]
            schema = _schema_of(body, self._state.mode)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise _DamagedRequest(own.attempt) from None
        if body.get("system"):
            messages.insert(0, {"role": "system", "content": body["system"]})
        task = JudgeTask(
            own.metric,
            own.prompt,
            tuple(messages),
            (),
            schema,
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


class _DamagedRequest(Exception):
    """A request that cannot be read. ``attempt``: which one of its key it was."""

    def __init__(self, attempt: int) -> None:
        super().__init__()
        self.attempt = attempt


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
