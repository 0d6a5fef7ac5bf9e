"""Imports results of batch files into the cache of verdicts; a failure becomes no verdict."""

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
from extras.batch.request_files import (
    BATCH_FAILURES,
    KEY,
    PROVIDERS,
    BatchFolder,
    RequestFailure,
    locked_folder,
    short_key,
    write_folder,
)
from judging.cache import VerdictCache, cache_entry, key_parameters
from judging.identity import decide, file_name
from judging.protocols import (
    ServerAnswer,
    ServerCapabilities,
    cut_prompt,
    error_text,
    failure_of,
    refused_parameter,
    sent_messages,
    sent_parameters,
    sent_schema,
)
from judging.replies import BadReply, SchemaChecker, check_answer
from judging.types import FAILURES, JudgeTask, JudgeVerdict
from records.errors import StorageError
from records.files import cut_torn_tail
from records.lines import parse_json
from records.verdicts import new_judging_run
from terminal.tables import counted


@dataclass
class ImportCounts:
    """Counts of the imported results. ``failures``: by kind; each failed request can be asked
    again.

    ``words``: what the provider said against requests, and of how many. ``learnt``: parameters that
    are left out from now on. ``notes``: what a reader of the verdicts should know.
    """

    verdicts: int = 0
    there: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    learnt: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


DAMAGE = {
    "damaged": "lines that are not results",
    "request": "results whose request is damaged in its file",
    "unknown": "results without a request in the folder",
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
    """Import results into the cache; an unusable one is counted and noted, and becomes no verdict.

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
            write_folder(own, state)
    for words, number in counts.words.most_common(MOST_WORDS):
        counts.notes.append(f"The provider's message about {counted(number, 'request')}: {words}")
    if counts.learnt:
        names = " and ".join(counts.learnt)
        counts.notes.append(f"The next round leaves out {names}, which the provider refuses.")
    return counts


MOST_WORDS = 5
"""Different sentences of a provider that are shown."""


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
        failure = self._answered(key, request, result)
        if failure is None:
            self._seen.add(short_key(key))
            self._state.progress = max(self._state.progress, request.round)
        elif request.round not in self._state.failing:
            self._state.failing.append(request.round)
        return failure

    def _answered(self, key: str, request: _Asked, result: Any) -> RequestFailure | None:
        """Store the verdict of a request's result; else why there is none."""
        try:
            payload = _payload(result, self._state.provider)
            answer = PROVIDERS[self._state.provider].form.read(payload)
            verdict = self._verdict(key, request, answer)
        except _NoResult as none:
            return RequestFailure(key, none.kind, request.attempt)
        except CallError as error:
            self._hear(error, request)
            kind = failure_of(error)
            kind = kind if kind in ("refused", "truncated") else "error"
            return RequestFailure(key, kind, request.attempt)
        except BadReply as bad:
            if bad.kind not in ("malformed", "schema"):
                return RequestFailure(key, bad.kind, request.attempt)
            problems = bad.message.splitlines()
            return RequestFailure(key, bad.kind, request.attempt, answer.text, problems)
        dropped, now = request.asked.dropped, datetime.now(UTC)
        self._cache.put(cache_entry(request.task, verdict, self._state.judge, dropped, now))
        self._counts.verdicts += 1
        return None

    def _hear(self, error: CallError, request: _Asked) -> None:
        """Note what a provider says against a request, and leave out the parameter it refuses."""
        words = error_text(orjson.loads(error.body)) if error.body else error.message
        self._state.refusal = words
        self._counts.words[words] += 1
        task = request.task
        sent = sent_parameters(self._state.sampling, request.asked, task.max_tokens, task.repeat)
        name = refused_parameter(error, sent)
        if name is not None:
            self._counts.learnt += self._state.learn(name)
            self._state.progress = max(self._state.progress, request.round)

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
            sent=key_parameters(self._state.sampling, request.asked, request.task),
            answered_as=answered,
            judging_run=self._run,
        )


@dataclass(frozen=True)
class _Asked:
    """A request as it was written: enough of its task to check a reply. ``asked``: in which way."""

    task: JudgeTask
    messages: Sequence[Mapping[str, str]]
    attempt: int
    round: int
    asked: ServerCapabilities


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
            messages = sent_messages(body)
            schema = sent_schema(body, self._state.mode)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise _DamagedRequest(own.attempt) from None
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
        dropped = self._state.dropped if own.dropped is None else own.dropped
        asked = ServerCapabilities(self._state.mode, dropped)
        return _Asked(task, messages, own.attempt, own.round, asked)


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
    """The reply of a result line.

    Raises _NoResult for a request without an answer, CallError for one that the provider refused.
    """
    if provider == "anthropic":
        own = result.get("result")
        own = own if isinstance(own, dict) else {}
        if own.get("type") in ("expired", "canceled"):
            raise _NoResult("expired")
        if own.get("type") != "succeeded":
            raise _refusal(400, own.get("error"))
        return own.get("message")
    error = result.get("error")
    if error:
        code = str(error.get("code") if isinstance(error, dict) else error)
        if re.search("expired|cancel", code):
            raise _NoResult("expired")
        raise _refusal(500, {"error": error})
    response = result.get("response")
    if not isinstance(response, dict):
        raise _NoResult("error")
    if (status := response.get("status_code", 200)) != 200:
        raise _refusal(status, response.get("body"))
    return response.get("body")


def _refusal(status: Any, body: Any) -> CallError:
    """The error that a request got, as it would have come online."""
    client = isinstance(status, int) and 400 <= status < 500
    return CallError(
        "client_error" if client else "server_error",
        f"HTTP {status}",
        status=status if isinstance(status, int) else None,
        body=orjson.dumps(body) if body else b"",
    )
