"""How an unknown reply is built: its paths with their values, and how its stream is read; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from clients import field_names
from clients.http import CallError
from clients.streams import CODED, END_MARK, Stream, read_stream

MAX_DEPTH = 8

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def guess_stream(body: bytes, content_type: str) -> dict[str, str] | None:
    """The settings by which a streamed body can be read; None when it is no stream."""
    head = body.lstrip()[:6]
    sse = "event-stream" in content_type or head.startswith((b"data:", b"event:"))
    coded = not sse and _is_lines(body, lambda line: CODED.match(line) is not None)
    if not sse and not coded and not ("ndjson" in content_type or _is_ndjson(body)):
        return None
    form = "sse" if sse else "vercel" if coded else "ndjson"
    try:
        payload, _ = read_stream(body, Stream(form, maps_error=True))
    except CallError:
        return None
    events = payload["events"]
    settings = {"stream": form}
    delta = _delta(events)
    if delta:
        settings["stream_delta"] = delta
    if last := _last(events):
        settings["stream_last"] = last
    elif END_MARK.encode() in body:
        settings["stream_last"] = END_MARK
    return settings


def tree(payload: Any, limit: int = 60) -> list[str]:
    """An answer as lines: each path with its type and the beginning of its value."""
    lines = []
    for node in walk(payload):
        if isinstance(node.value, dict):
            continue
        if isinstance(node.value, list):
            lines.append(f"{node.path}  list of {len(node.value)}")
        else:
            lines.append(f"{node.path}  {sample(node.value)}")
    return lines[:limit] + ([f"… {len(lines) - limit} more"] if len(lines) > limit else [])


def sample(value: Any, most: int = 70) -> str:
    """The beginning of a value on one line."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def name_words(name: str) -> list[str]:
    return [word.lower() for word in _CAMEL.findall(name)]


def name_rank(name: str, table: Mapping[str, float]) -> float:
    """How well a name fits: the whole of it, else its last word for a part of that."""
    words = name_words(name)
    if (whole := "_".join(words)) in table:
        return table[whole]
    return 0.6 * table.get(words[-1], 0.0) if words else 0.0


def child(path: str, key: str) -> str:
    name = key if _PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)
    return f"{path}.{name}" if path else name


@dataclass(frozen=True)
class Node:
    path: str
    names: tuple[str, ...]
    value: Any


def walk(value: Any, path: str = "", names: tuple[str, ...] = ()) -> Iterator[Node]:
    """Every node below ``value``; of a list only its first item."""
    if path:
        yield Node(path, names, value)
    if len(names) > MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, child(path, str(key)), (*names, str(key)))
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        yield from walk(value[0], f"{path}[0]", names)


def _is_ndjson(body: bytes) -> bool:
    return _is_lines(body, lambda line: line.startswith(b"{") and line.endswith(b"}"))


def _is_lines(body: bytes, fits: Callable[[bytes], bool]) -> bool:
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    return len(lines) > 1 and all(map(fits, lines))


def _delta(events: Sequence[Any]) -> str | None:
    """The path at which most events have a piece of the answer."""
    pieces: dict[str, list[str]] = {}
    for event in events:
        for node in walk(event):
            if isinstance(node.value, str) and node.names[-1] not in (
                "event",
                "type",
                "kind",
                "id",
            ):
                pieces.setdefault(node.path, []).append(node.value)
    table = field_names.DELTA
    weights = {
        path: (name_rank(re.split(r"[.\[]", path.replace("[0]", ""))[-1], table), len(texts))
        for path, texts in pieces.items()
        if len(set(texts)) > 1 or len(events) <= 3
    }
    named = {path: weight for path, weight in weights.items() if weight[0]}
    if not named:
        return None
    path = max(named, key=lambda key: (named[key][1], named[key][0]))
    texts = pieces[path]
    grows = len(texts) > 2 and all(b.startswith(a) for a, b in pairwise(texts))
    return None if grows else path


def _last(events: Sequence[Any]) -> str | None:
    """An expression that only the last event makes true."""
    last, others = events[-1], events[:-1]
    for key in ("event", "type", "kind"):
        value = last.get(key)
        unique = all(other.get(key) != value for other in others)
        if isinstance(value, str) and "'" not in value and unique:
            return f"{key} == '{value}'"
    for key in ("done", "finished", "is_final", "final", "end"):
        if last.get(key) is True and not any(other.get(key) for other in others):
            return key
    return None
