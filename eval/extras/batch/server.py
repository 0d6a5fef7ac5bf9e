"""Batch files at a server with OpenAI's ``/v1/files`` and ``/v1/batches``: sent, watched, fetched.

What has been done stands in batch.json after each step, so a kill loses nothing: a file that was
uploaded is not uploaded again, and a batch that the server began is found by its input file.
Source of the calls: https://platform.openai.com/docs/api-reference/batch
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from clients.http import CallFailed, Reply, RetryPolicy, call_with_retries, finish
from clients.secrets import without_login
from clients.single import SingleTransport
from extras.batch.request_files import PROVIDERS, BatchFolder, locked_folder, write_folder
from judging.identity import JudgeError, JudgeUnreachable, addresses
from judging.server import key_headers
from records.files import replace_bytes

MAX_BYTES = 2**30
"""Of a file of results."""

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
"""Statuses of a batch that change no more."""

LISTED = 100
"""Batches on a page of the server's list; no server gives more."""


class BatchServer:
    """The calls of one server. Raises JudgeUnreachable when it fails, JudgeError when it refuses.

    The key's value is kept out of all messages.
    """

    def __init__(self, url: str, api_key: str | None, policy: RetryPolicy) -> None:
        headers = key_headers(api_key, os.environ)
        bare, login, redactor = without_login(url, headers.secrets)
        self._base = addresses(bare)[1]
        self._headers = {"User-Agent": "rag-eval-toolkit", **login, **headers.values}
        self._policy = policy
        self._transport = SingleTransport(
            self._base, max_bytes=MAX_BYTES, timeout=policy.timeout, redactor=redactor
        )

    def upload(self, path: Path) -> str:
        """Send a request file; the id that the server gives it."""
        mark = secrets.token_hex(16)
        fields = f'--{mark}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        head = (
            f'{fields}--{mark}\r\nContent-Disposition: form-data; name="file"; '
            f'filename="{path.name}"\r\nContent-Type: application/jsonl\r\n\r\n'
        )
        body = head.encode() + path.read_bytes() + f"\r\n--{mark}--\r\n".encode()
        kind = f"multipart/form-data; boundary={mark}"
        return str(self._json("POST", "/files", body, kind)["id"])

    def begun(self, file_id: str) -> dict[str, Any] | None:
        """The newest batch of an uploaded file, None when none was begun. Reads the whole list."""
        after, seen = "", set[str]()
        while after not in seen:  # a server that knows no pages gives the same one again
            seen.add(after)
            page = self._json("GET", f"/batches?limit={LISTED}{after}")
            listed = page.get("data")
            if not isinstance(listed, list):  # to begin another batch then could pay twice
                raise JudgeUnreachable("the server's answer to GET /batches lists no batches.")
            rows = [row for row in listed if isinstance(row, dict)]
            for row in rows:
                if row.get("input_file_id") == file_id:
                    return row
            if rows and page.get("has_more", len(rows) >= LISTED):
                after = f"&after={quote(str(rows[-1].get('id')))}"
        return None

    def begin(self, file_id: str) -> dict[str, Any]:
        """Begin the batch of an uploaded file. Tried once: a second try could pay twice."""
        task = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
        }
        return self._json("POST", "/batches", orjson.dumps(task), "application/json", retries=0)

    def batch(self, batch_id: str) -> dict[str, Any]:
        """How far a batch has come."""
        return self._json("GET", f"/batches/{batch_id}")

    def content(self, file_id: str) -> bytes:
        """A file of results."""
        return self._call("GET", f"/files/{file_id}/content", None, None, None)

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def _json(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str | None = None,
        retries: int | None = None,
    ) -> dict[str, Any]:
        answer = self._call(method, path, body, kind, retries)
        try:
            value = orjson.loads(answer)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict) or (method == "POST" and "id" not in value):
            raise JudgeUnreachable(f"the server's answer to {method} {path} has no batch or file.")
        return value

    def _call(
        self, method: str, path: str, body: bytes | None, kind: str | None, retries: int | None
    ) -> bytes:
        headers = self._headers | ({"Content-Type": kind} if kind else {})
        policy = self._policy
        if retries is not None:
            policy = RetryPolicy(policy.timeout, retries)
        url = self._base + path

        def attempt(allowed: float) -> Coroutine[Any, Any, Reply]:
            return self._transport.send(method, url, headers, body, allowed)

        try:
            return finish(call_with_retries(attempt, policy, threading.Event()))[0].body
        except CallFailed as failed:
            error = failed.error
            if error.status in (401, 403):
                raise JudgeError(
                    f"the server refuses the key ({error.message}); name its variable with --set "
                    "api_key=VARIABLE."
                ) from None
            if error.kind == "client_error":
                raise JudgeError(f"the server refuses {method} {path}: {error.message}.") from None
            raise JudgeUnreachable(f"the server cannot be used: {error.message}.") from None


def submit(folder: Path, server: BatchServer, say: Callable[[str], None]) -> int:
    """Upload and begin every request file that is not begun yet; how many are under way now.

    Goes on where it was stopped. Raises StorageError for a folder without batch.json, and for one
    that another process uses.
    """
    with locked_folder(folder) as state:
        _check_format(state)
        under_way = 0
        for name, file in sorted(state.files.items()):
            if file.batch_id is None:
                if file.file_id is None:
                    file.file_id = server.upload(folder / name)
                    write_folder(folder, state)
                    batch = None
                else:
                    batch = server.begun(file.file_id)
                batch = batch or server.begin(file.file_id)
                file.batch_id, file.status = str(batch["id"]), str(batch.get("status"))
                write_folder(folder, state)
                say(f"{name}: {file.requests:,} requests, batch {file.batch_id}")
            under_way += file.status not in ENDED
        return under_way


@dataclass
class FetchCounts:
    """The result of a look at the batches.

    ``results``: new files. ``running``: batches that have not ended. ``without_results``: batches
    that ended without any result, whose request files are free to be submitted again.
    """

    results: list[Path] = field(default_factory=list)
    running: int = 0
    without_results: int = 0


def fetch(folder: Path, server: BatchServer, say: Callable[[str], None]) -> FetchCounts:
    """Fetch the results of batches that have ended. Raises as ``submit``."""
    with locked_folder(folder) as state:
        _check_format(state)
        counts = FetchCounts()
        for name, file in sorted(state.files.items()):
            if file.batch_id is None:
                say(f"{name}: not started; run --batch-submit")
                continue
            targets = _targets(folder, name)
            if file.status in ENDED and _present(targets):
                continue
            batch = server.batch(file.batch_id)
            file.status = str(batch.get("status"))
            if file.status not in ENDED:
                counts.running += 1
                say(f"{name}: {file.status}{_progress(batch)}")
            elif _save(server, batch, targets):
                counts.results += _present(targets)
                say(f"{name}: {file.status}{_progress(batch)}")
            else:
                counts.without_results += 1
                say(f"{name}: batch {file.batch_id}: {file.status}, no results{_reasons(batch)}")
                # found by its id, a begun file must get another one by the next upload
                file.file_id = file.batch_id = file.status = None
            write_folder(folder, state)
        return counts


def _check_format(state: BatchFolder) -> None:
    if state.provider == "anthropic":
        raise JudgeError(
            "--batch-submit and --batch-fetch speak OpenAI's /v1/files and /v1/batches; send "
            f"Anthropic's files to {PROVIDERS['anthropic'].url}/messages/batches yourself."
        )


def _targets(folder: Path, name: str) -> tuple[Path, Path]:
    """Where the results of a request file go, and its errors."""
    stem = name.removesuffix(".jsonl")
    return folder / f"{stem}.results.jsonl", folder / f"{stem}.errors.jsonl"


def _present(targets: tuple[Path, Path]) -> list[Path]:
    return [path for path in targets if path.exists() and path.stat().st_size]


def _save(server: BatchServer, batch: dict[str, Any], targets: tuple[Path, Path]) -> bool:
    """Write errors and results. Errors are written first, so results on disk mean both are.
    False, and nothing is written, if the server has neither."""
    contents = []
    for field_name in ("error_file_id", "output_file_id"):
        file_id = batch.get(field_name)
        contents.append(server.content(file_id) if isinstance(file_id, str) else b"")
    if not any(contents):
        return False
    for path, content in zip(reversed(targets), contents, strict=True):
        replace_bytes(path, content)
    return True


MOST_REASONS = 5
"""Errors of one batch that are printed."""


def _reasons(batch: dict[str, Any]) -> str:
    """What the provider says of a batch that failed, in its words."""
    errors = batch.get("errors")
    listed = errors.get("data") if isinstance(errors, dict) else None
    told = [error for error in listed or () if isinstance(error, dict)]
    lines = []
    for error in told[:MOST_REASONS]:
        line = f" (line {error['line']})" if isinstance(error.get("line"), int) else ""
        words = ": ".join(str(error[name]) for name in ("code", "message") if error.get(name))
        lines.append(f"\n  {words}{line}")
    if len(told) > MOST_REASONS:
        lines.append(f"\n  and {len(told) - MOST_REASONS:,} more")
    return "".join(lines)


def _progress(batch: dict[str, Any]) -> str:
    counts = batch.get("request_counts")
    if not isinstance(counts, dict):
        return ""
    return f", {counts.get('completed', 0)} of {counts.get('total', 0)} done"
