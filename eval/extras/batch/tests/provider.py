"""A provider of batches as OpenAI has them, which reads what it gets as strictly as a real one.

It parses forms with the standard library's reader of MIME, refuses calls without its key, lists
batches by pages, and counts each request of a batch that was begun: that is what would be paid.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from email import policy
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.scripts.judging.conftest import Handler, Server, reply_to

KEY = "sk-batches"
MOST_LISTED = 100


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """A line of results, with the reply that the server would have given online."""
    completion = Server.completion(reply_to(request["body"]))
    response = {"status_code": 200, "request_id": "r", "body": completion}
    return {"id": "b", "custom_id": request["custom_id"], "response": response, "error": None}


class Refusal(Exception):
    """A call that a real provider would refuse. ``status``: of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Provider(Server):
    """Files and batches. ``refused``: calls that were refused; ``paid``: begun requests by id.

    ``looks``: how often a batch is looked at before it has ended. ``seen``: calls so far.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.paid: Counter[str] = Counter()
        self.refused: list[str] = []
        self.looks, self.seen = 1, 0
        self.lock = threading.Lock()
        super().__init__()
        self.RequestHandlerClass = ProviderHandler

    def take_file(self, kind: str, body: bytes) -> dict[str, Any]:
        """Keep an uploaded file of requests, when the form is one."""
        form = BytesParser(policy=policy.HTTP).parsebytes(
            b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body
        )
        if form.get_content_type() != "multipart/form-data" or form.defects:
            raise Refusal(400, f"no form: {form.defects}")
        parts = {
            part.get_param("name", header="content-disposition"): part for part in form.iter_parts()
        }
        if set(parts) != {"purpose", "file"}:
            raise Refusal(400, f"fields: {sorted(map(str, parts))}")
        if parts["purpose"].get_payload(decode=True) != b"batch":
            raise Refusal(400, "purpose")
        if not str(parts["file"].get_filename()).endswith(".jsonl"):
            raise Refusal(400, "the file's name")
        content = parts["file"].get_payload(decode=True)
        assert isinstance(content, bytes)
        ids = [json.loads(line)["custom_id"] for line in content.splitlines()]
        if not content.endswith(b"\n") or len(set(ids)) < len(ids):
            raise Refusal(400, "cut, or an id twice")
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return {"id": name, "object": "file", "bytes": len(content)}

    def begin(self, task: dict[str, Any]) -> dict[str, Any]:
        """Begin a batch: from now on its requests are paid."""
        if task["endpoint"] != "/v1/chat/completions" or task["input_file_id"] not in self.files:
            raise Refusal(400, "no such endpoint or file")
        name = f"batch-{len(self.batches)}"
        lines = self.files[task["input_file_id"]].splitlines()
        self.paid.update(json.loads(line)["custom_id"] for line in lines)
        batch = {"id": name, "status": "in_progress", "input_file_id": task["input_file_id"]}
        self.batches[name] = batch | {"looked": 0}
        return self.batches[name]

    def look(self, name: str) -> dict[str, Any]:
        """How far a batch has come; each look brings it on."""
        own = self.batches[name]
        own["looked"] += 1
        if own["status"] == "in_progress" and own["looked"] > self.looks:
            requests = map(json.loads, self.files[own["input_file_id"]].splitlines())
            lines = [json.dumps(answer(request)) for request in requests]
            self.files[f"{name}-out"] = ("\n".join(lines) + "\n").encode()
            own |= {"status": "completed", "output_file_id": f"{name}-out"}
        return own

    def page(self, limit: int, after: str | None) -> dict[str, Any]:
        """Some of the batches, newest first; the next page begins behind ``after``."""
        rows = list(reversed(self.batches.values()))
        if after is not None:
            rows = rows[[row["id"] for row in rows].index(after) + 1 :]
        shown = rows[: min(limit, MOST_LISTED)]
        ends = {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {}
        return {"object": "list", "data": shown, "has_more": len(shown) < len(rows)} | ends


class ProviderHandler(Handler):
    server: Provider

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        self._answer(b"")

    def _answer(self, body: bytes) -> None:
        own = self.server
        own.seen += 1
        time.sleep(own.delay)
        try:
            if self.headers["Authorization"] != f"Bearer {KEY}":
                raise Refusal(401, "the key")
            with own.lock:
                value = self._value(own, body)
        except (Refusal, LookupError, ValueError) as refusal:
            own.refused.append(f"{self.command} {self.path}: {refusal}")
            value = {"error": {"message": str(refusal)}}
            return self._send(getattr(refusal, "status", 400), value)
        time.sleep(own.delay)  # done, and the client does not know it yet
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        with contextlib.suppress(ConnectionError):  # the client was killed
            self._write(200, data)

    def _value(self, own: Provider, body: bytes) -> dict[str, Any] | bytes:
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        match self.command, *address.path.strip("/").split("/"):
            case "POST", "v1", "files":
                return own.take_file(self.headers["Content-Type"], body)
            case "POST", "v1", "batches":
                if self.headers["Content-Type"] != "application/json":
                    raise Refusal(400, "no JSON")
                return own.begin(json.loads(body))
            case "GET", "v1", "batches":
                return own.page(int(query.get("limit", 20)), query.get("after"))
            case "GET", "v1", "batches", name:
                return own.look(name)
            case "GET", "v1", "files", name, "content":
                return own.files[name]
        raise Refusal(404, "no such path")
