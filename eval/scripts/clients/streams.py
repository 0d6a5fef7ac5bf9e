"""A streamed answer as one value: server-sent events, or lines of JSON, bare or coded; pure.

    {"text": the pieces of the answer put together, "events": […], "last": the last event}

The paths of a profile look into this value as they look into any other answer. An event that has a
name carries it as ``event``; anything but a JSON object is under ``data``. The lines of ``vercel``
(``0:"a piece"``, the data stream of the Vercel AI SDK, version 4) have their code as ``event``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from clients.expressions import Getter
from clients.http import CallError, message_of

FORMS = ("sse", "ndjson", "vercel")

END_MARK = "[DONE]"
"""The mark that OpenAI's servers send behind their last event; never an event itself."""

ACCEPTED = {"sse": "text/event-stream", "ndjson": "application/x-ndjson", "vercel": "text/plain"}

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
CODED = re.compile(rb"([0-9a-z]):(?=[\[{\"])")
"""How a line of a ``vercel`` stream begins."""


@dataclass(frozen=True)
class Stream:
    """How a profile reads a stream. ``last``: true for the event that must come last."""

    form: str
    delta: Getter | None = None
    last: Getter | None = None
    needs_mark: bool = False
    """True when the stream is complete only with its ``[DONE]``."""
    maps_error: bool = False
    """True when the profile says itself where an error is; else an ``error`` of any event is."""


@dataclass(frozen=True)
class _Event:
    value: Any
    end: int
    """How many bytes of the body had come when the event was complete."""


def read_stream(body: bytes, stream: Stream) -> tuple[dict[str, Any], int | None]:
    """The stream as one value, and the bytes up to its first piece of text (None: there is none).

    Raises CallError of kind ``malformed`` for what is no such stream, and for one that broke off or
    goes on after its end mark; ``bot_error`` for one with an event that has an ``error``.
    """
    events: list[Any] = []
    pieces: list[str] = []
    first: int | None = None
    last: Any = None
    complete = stream.last is None and not stream.needs_mark
    ended = False
    coded = stream.form == "vercel"
    for event in _sse(body) if stream.form == "sse" else _ndjson(body, coded=coded):
        if event.value == END_MARK:
            complete, ended = complete or stream.needs_mark, True
            continue
        if not stream.maps_error and (error := _error_of(event.value)):
            raise CallError("bot_error", f"event {len(events) + 1} of the stream: {error}")
        events.append(event.value)
        text = stream.delta(event.value) if stream.delta is not None else None
        if ended and (stream.needs_mark or (text and isinstance(text, str))):
            raise CallError("malformed", f"the stream continues after its end mark {END_MARK}")
        if isinstance(text, str):
            pieces.append(text)
            first = event.end if first is None and text else first
        if stream.last is None:
            last = event.value
        elif stream.last(event.value):
            last, complete = event.value, True
    if not events:
        raise CallError("malformed", f"the body is not an {stream.form} stream: it has no event")
    if not complete:
        raise CallError("malformed", f"the stream broke off after {len(events)} events")
    return {"text": "".join(pieces), "events": events, "last": last}, first


def _error_of(event: Any) -> str:
    """The message of an event that is an error, as vLLM and LiteLLM send one; "" for others."""
    error = event.get("error") if isinstance(event, dict) else None
    return message_of(error) if error and isinstance(error, (dict, str)) else ""


def _lines(body: bytes) -> Iterator[tuple[bytes, int]]:
    for match in _LINE.finditer(body):
        if match.start() < len(body):
            yield match[0].rstrip(b"\r\n"), match.end()


def _sse(body: bytes) -> Iterator[_Event]:
    """The events of a stream. Source: WHATWG HTML, 9.2.6, "Interpreting an event stream"."""
    name, data, end = "", list[str](), 0
    for line, end in _lines(body.removeprefix(b"\xef\xbb\xbf")):
        field, colon, raw = line.partition(b":")
        try:
            value = raw.removeprefix(b" ").decode("utf-8")
        except UnicodeDecodeError:
            raise CallError("malformed", "the stream contains bytes that are not UTF-8") from None
        if not line:
            if data:
                yield _Event(_named(name, "\n".join(data)), end)
            name, data = "", []
        elif colon and not field:
            continue  # a comment, which keeps a connection open
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    if data:  # some servers leave out the last empty line
        yield _Event(_named(name, "\n".join(data)), end)


def _named(name: str, text: str) -> Any:
    if text.strip() == END_MARK:
        return END_MARK
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if text.startswith('{"'):
            reason = f"the data of an event is not JSON: {error}"
            raise CallError("malformed", reason) from None
        value = text
    if isinstance(value, dict):
        return {"event": name, **value} if name else value
    data = value if isinstance(value, str) else text  # a word of the answer may look like a number
    return {"event": name, "data": data} if name else {"data": data}


def _ndjson(body: bytes, *, coded: bool = False) -> Iterator[_Event]:
    for number, (line, end) in enumerate(_lines(body.removeprefix(b"\xef\xbb\xbf")), start=1):
        if not line.strip():
            continue
        code = CODED.match(line) if coded else None
        try:
            value = orjson.loads(line[code.end() :] if code else line)
        except orjson.JSONDecodeError as error:
            reason = f"line {number} of the stream is not JSON: {error}"
            raise CallError("malformed", reason) from None
        if code:
            value = {"event": code[1].decode(), "data": value}
        yield _Event(value if isinstance(value, dict) else {"data": value}, end)
