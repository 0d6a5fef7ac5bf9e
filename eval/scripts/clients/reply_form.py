"""How an unknown reply is built: its paths with their values, and how its stream is read; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from clients.field_names import NAMES, name_rank, name_words
from clients.http import CallError
from clients.streams import CODED, END_MARK, Stream, read_stream

MAX_DEPTH = 8

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MARKS = re.compile(r"\s*\[\d{1,3}\]")


def guess_stream(body: bytes, content_type: str) -> dict[str, str] | None:
    """The settings by which a streamed body can be read; None when it is no stream."""
    sse = "event-stream" in content_type or body.lstrip().startswith((b"data:", b"event:"))
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    coded = not sse and len(lines) > 1 and all(map(CODED.match, lines))
    objects = len(lines) > 1 and all(x.startswith(b"{") and x.endswith(b"}") for x in lines)
    if not sse and not coded and not objects and "ndjson" not in content_type:
        return None
    settings = {"stream": "sse" if sse else "vercel" if coded else "ndjson"}
    try:
        payload, _ = read_stream(body, Stream(settings["stream"], maps_error=True))
    except CallError:
        return None
    events = payload["events"]
    if delta := _delta(events):
        settings["stream_delta"] = delta
    if last := _last(events) or (END_MARK if END_MARK.encode() in body else None):
        settings["stream_last"] = last
    return settings


def tree(payload: Any, limit: int = 60) -> list[str]:
    """An answer as lines: each path with its type and the beginning of its value."""
    lines = [
        f"{node.path}  list of {len(node.value)}"
        if isinstance(node.value, list)
        else f"{node.path}  {sample(node.value)}"
        for node in walk(payload)
        if not isinstance(node.value, dict)
    ]
    return lines[:limit] + ([f"… {len(lines) - limit} more"] if len(lines) > limit else [])


def sample(value: Any, most: int = 70) -> str:
    """The beginning of a value on one line."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def child(path: str, key: str) -> str:
    name = key if _PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)
    return f"{path}.{name}" if path else name


@dataclass(frozen=True)
class Node:
    path: str
    names: tuple[str, ...]
    value: Any


class Row(dict[str, Any]):
    """One item of parallel lists: its keys are their names, its paths their numbers."""


def parallel_lists(value: Mapping[str, Any]) -> tuple[str, list[Row]] | None:
    """Texts beside a list of as many files, ids or metadata, as zip() makes them one list.

    ``{"documents": [["A."]], "ids": [["1"]]}`` is ``zip(documents[0], ids[0])``. None without any.
    """
    lists: dict[str, tuple[str, list[Any]]] = {}
    for key, items in value.items():
        nested = isinstance(items, list) and len(items) == 1 and isinstance(items[0], list)
        inner = items[0] if nested else items
        if isinstance(inner, list) and inner:
            lists[key] = (child("", str(key)) + "[0]" * nested, inner)

    def rank(key: str) -> float:
        items = lists[key][1]
        if not all(isinstance(item, str) for item in items) or mean_words(items) < 4:
            return 0.0
        return max(name_rank(name, "text") for name in (key, key.removesuffix("s")))

    texts = max(lists, key=rank, default="")
    if not lists or not rank(texts):
        return None
    size = len(lists[texts][1])
    others = (key for key, (_, items) in lists.items() if len(items) == size and key != texts)
    keys = [texts, *(key for key in others if _places(key, lists[key][1]))]
    rows = zip(*(lists[key][1] for key in keys), strict=True)
    path = f"zip({', '.join(lists[key][0] for key in keys)})"
    return (path, [Row(zip(keys, row, strict=True)) for row in rows]) if len(keys) > 1 else None


def _places(name: str, items: Sequence[Any]) -> bool:
    """Whether a list can say where as many texts are from."""
    if all(isinstance(item, dict) for item in items):
        return name_words(name)[:1] in (["meta"], ["metadata"], ["metadatas"])
    tables = ("file", "chunk_id", "score")
    return any(
        name_rank(each, table) for each in (name, name.removesuffix("s")) for table in tables
    ) and not any(isinstance(item, (dict, list)) for item in items)


Sizes = Mapping[str, frozenset[int]]
"""The lengths of the lists at each path, over all answers."""


def walk(
    value: Any, path: str = "", names: tuple[str, ...] = (), sizes: Sizes = MappingProxyType({})
) -> Iterator[Node]:
    """Every node below ``value``; of a list its first item, unless its length varies (``sizes``).

    The lists in the items of a list are one: ``citations[].sources[]``. Another answer may have
    several items where all of these have one; only of alternatives the first is meant.
    """
    if path:
        yield Node(path, names, value)
    if len(names) > MAX_DEPTH:
        return
    if isinstance(value, Row):
        for place, (key, item) in enumerate(value.items()):
            yield from walk(item, f"[{place}]", (*names, key.removesuffix("s")), sizes)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, child(path, str(key)), (*names, str(key)), sizes)
        yield from _zipped([value], path, names)
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        objects = [item for item in value if isinstance(item, dict)]
        yield from _zipped(objects, f"{path}[]", names, "[]")
        lengths = sizes.get(path, frozenset({len(value)}))
        is_sole = max(lengths) == 1 and (not names or names[-1] in NAMES["replies"])
        if not is_sole:
            yield from _joined_lists(value, path, names)
            if _are_messages(value) and isinstance(value[-1], dict):
                for key, item in value[-1].items():
                    if isinstance(item, list) and key not in {"tool_calls", *NAMES["parts"]}:
                        yield Node(f"{path}[-1].{child('', key)}", (*names, key), item)
        if len(lengths) == 1:
            for node in walk(value[0], f"{path}[0]", names, sizes):
                if is_sole or not isinstance(node.value, list):
                    yield node
    elif isinstance(value, list) and value and names and names[-1] in NAMES["replies"]:
        yield Node(f"{path}[0]", names, value[0])


def _joined_lists(value: list[Any], path: str, names: tuple[str, ...]) -> Iterator[Node]:
    """The lists within the items of a list, those of one name as one, each item once; and the texts
    of items that are parts of one text."""
    lists: dict[str, tuple[tuple[str, ...], list[Any]]] = {}
    for item in () if _are_messages(value) else value:
        for inner in _lists(item, every=True) if isinstance(item, dict) else ():
            lists.setdefault(inner.path, (inner.names, []))[1].extend(inner.value)
    for inner_path, (inner_names, items) in lists.items():
        once = [item for number, item in enumerate(items) if item not in items[:number]]
        yield Node(f"unique({path}[].{inner_path}[])", (*names, *inner_names), once)
    parts = [item for item in value if isinstance(item, dict) and item.get("type") == "text"]
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    if texts:
        where = f"join('', {path}[?type == 'text'].text)"
        yield Node(where, (*names, "text"), "".join(texts))


def _are_messages(items: Sequence[Any]) -> bool:
    """Whether a list is a conversation, of which each message says its own."""
    return any(
        isinstance(item, dict) and ("role" in item or "tool_calls" in item) for item in items
    )


def _lists(
    value: Any, path: str = "", names: tuple[str, ...] = (), *, every: bool
) -> Iterator[Node]:
    """The lists in a value that are not empty, at any depth. Of the items of a list the first is
    searched; with ``every`` all objects, as one."""
    if len(names) > MAX_DEPTH:
        return
    for key, item in value.items() if isinstance(value, dict) else ():
        yield from _lists(item, child(path, str(key)), (*names, str(key)), every=every)
    if isinstance(value, list) and value:
        yield Node(path, names, value)
        inner = [each for each in value if isinstance(each, dict)] if every else value[:1]
        for item in inner:
            yield from _lists(item, path + ("[]" if every else "[0]"), names, every=every)


def _zipped(
    objects: Sequence[Any], path: str, names: tuple[str, ...], end: str = ""
) -> Iterator[Node]:
    """Parallel lists in every object, as one list."""
    parts = [zipped for each in objects if (zipped := parallel_lists(each))]
    if parts and len(parts) == len(objects) and len({inner for inner, _ in parts}) == 1:
        where = f"{path}.{parts[0][0]}{end}" if path else parts[0][0]
        yield Node(where, (*names, "passages"), [row for _, rows in parts for row in rows])


def _delta(events: Sequence[Any]) -> str | None:
    """The path at which most events have a piece of the answer."""
    pieces: dict[tuple[str, str], list[str]] = {}
    for node in (node for event in events for node in walk(event)):
        name = node.names[-1]
        if isinstance(node.value, str) and name not in ("event", "type", "kind", "id"):
            pieces.setdefault((node.path, name), []).append(node.value)
    ranked = [
        (texts, name_rank(name, "answer") or name_rank(name, "delta"), path)
        for (path, name), texts in pieces.items()
        if len(set(texts)) > 1 or len(events) <= 3
    ]
    able = [each for each in ranked if each[1]]
    if not able and len(events) > 3:
        most = [each for each in ranked if len(each[0]) > len(events) / 2]
        able = most if len(most) == 1 else []
    if not able:
        return None
    texts, _, path = max(able, key=lambda each: (len(each[0]), each[1]))
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


@dataclass(frozen=True)
class ReplyColumn:
    """One path with its values in all answers (None where it is missing)."""

    path: str
    names: tuple[str, ...]
    values: tuple[Any, ...]

    @cached_property
    def present(self) -> list[Any]:
        return [value for value in self.values if value is not None]

    @cached_property
    def texts(self) -> list[str]:
        return strings_of(self.values)

    @cached_property
    def words(self) -> float:
        """The mean number of words of the texts."""
        return mean_words(self.texts)

    @property
    def varies(self) -> bool:
        return len(set(self.texts)) > 1

    @cached_property
    def items(self) -> list[Any]:
        """The items of the lists."""
        return [item for value in self.values if isinstance(value, list) for item in value]

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else ""


def _nodes(payload: Any, sizes: Sizes, *, streamed: bool) -> Iterator[Node]:
    if not streamed or not isinstance(payload, dict):
        yield from walk(payload, sizes=sizes)
        return
    events = [event for event in payload.get("events", ()) if isinstance(event, dict)]
    yield from walk({"text": payload.get("text") or None, "last": payload.get("last")})
    deep: dict[str, list[Node]] = {}
    for event in events:
        selector = _selector(event, events)
        sole = f"{selector} | [0]"
        for node in walk(event, sole if selector else ""):
            if selector is None:
                if "[" in node.path and isinstance(node.value, list):
                    deep.setdefault(node.path, []).append(node)
            elif event != payload.get("last"):
                if isinstance(node.value, list) and node.path.startswith(f"{sole}."):
                    # another answer may have several such events
                    node = replace(node, path=f"{selector}{node.path.removeprefix(sole)}[]")
                yield node
    for path, (node, *others) in deep.items():
        if not others:  # as the passages in the first delta
            yield Node(f"events[].{path} | [0]", node.names, node.value)


def _selector(event: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> str | None:
    """An expression that finds this one event among all: by its kind, else by a key of its own."""
    for key in ("event", "type", "kind"):
        value = event.get(key)
        same = sum(other.get(key) == value for other in events)
        if isinstance(value, str) and same == 1 and "'" not in value:
            return f"events[?{key} == '{value}']"
    for key, value in event.items():
        if isinstance(value, (list, dict)) and sum(key in other for other in events) == 1:
            return f"events[?{child('', key)}]"
    return None


def columns_of_items(items: Sequence[Any]) -> list[ReplyColumn]:
    """The paths inside the objects of a list, without those into one of several items again."""
    items = [item for item in items if isinstance(item, dict)]
    several = [path for path, lengths in _list_sizes(items).items() if max(lengths) > 1]
    return [
        column
        for column in columns_of(items, streamed=False)
        if not column.path.startswith(tuple(f"{path}[0]" for path in several))
    ]


def columns_of(payloads: Sequence[Any], *, streamed: bool) -> list[ReplyColumn]:
    """All paths of all answers, in order of first appearance."""
    names: dict[str, tuple[str, ...]] = {}
    values: dict[str, list[Any]] = {}
    sizes = _list_sizes(payloads)
    for number, payload in enumerate(payloads):
        for node in _nodes(payload, sizes, streamed=streamed):
            names.setdefault(node.path, node.names)
            values.setdefault(node.path, [None] * len(payloads))[number] = node.value
    return [ReplyColumn(path, names[path], tuple(values[path])) for path in names]


def _list_sizes(payloads: Sequence[Any]) -> Sizes:
    """The lengths of each list, empty and missing ones left out."""
    sizes: dict[str, set[int]] = {}
    for node in (node for payload in payloads for node in _lists(payload, every=False)):
        sizes.setdefault(node.path, set()).add(len(node.value))
    return {path: frozenset(lengths) for path, lengths in sizes.items()}


def varying_lists(payloads: Sequence[Any]) -> list[tuple[str, int, int]]:
    """The lists of objects whose length differs between answers, with the least and the most."""
    columns = {column.path: column for column in columns_of(payloads, streamed=False)}
    return [
        (path, min(lengths), max(lengths))
        for path, lengths in _list_sizes(payloads).items()
        if len(lengths) > 1
        and path in columns
        and all(isinstance(item, dict) for value in columns[path].present for item in value)
    ]


def strings_of(values: Iterable[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value.strip()]


def mean_words(texts: Sequence[str]) -> float:
    return sum(len(text.split()) for text in texts) / len(texts) if texts else 0.0


def bare(text: str) -> str:
    """A text without [n] marks and without blanks around it."""
    return _MARKS.sub("", text).strip()


def texts_within(value: Any) -> set[str]:
    """All strings of a value, at any depth, ``bare``."""
    if isinstance(value, str):
        return {bare(value)}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text for item in items for text in texts_within(item)}
