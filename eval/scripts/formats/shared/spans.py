"""What GenAI spans say of a question, its answer and the passages, under old and new names.

OpenTelemetry's gen_ai conventions changed: events of single messages (to 1.36), then
``gen_ai.input.messages`` (from 1.37); before both, libraries wrote ``gen_ai.prompt.0.content``.
OpenInference's ``llm.*``, ``retrieval.*``, ``reranker.*`` and ``input.value`` are read, too, and
Traceloop's ``traceloop.entity.*`` and results of vector databases in events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from formats.shared.item import Notes
from formats.shared.other_spans import other_spans
from formats.shared.parquet import SUFFIX as PARQUET
from formats.shared.parquet import parquet_rows
from formats.shared.rows import BOM, jsonl_rows
from records.errors import StorageError
from records.files import read_whole
from records.lines import parse_json

Message = tuple[str, str]
"""Role and text."""

INPUT = ("gen_ai.input.messages", "gen_ai.prompt")

OUTPUT = ("gen_ai.output.messages", "gen_ai.completion")

NUMBERED = {
    "in": re.compile(r"(?:gen_ai\.prompt|llm\.prompts|llm\.input_messages)\.(\d+)\.(.+)"),
    "out": re.compile(r"(?:gen_ai\.completion|llm\.completions|llm\.output_messages)\.(\d+)\.(.+)"),
}

_NUMBERED_BEGIN = {
    "in": ("gen_ai.prompt.", "llm.prompts.", "llm.input_messages."),
    "out": ("gen_ai.completion.", "llm.completions.", "llm.output_messages."),
}

ROLES = {
    "gen_ai.user.message": "user",
    "gen_ai.system.message": "system",
    "gen_ai.assistant.message": "assistant",
}

DOCUMENT = re.compile(
    r"(?:retrieval\.|reranker\.output[._])documents\.(\d+)\.document\.(.+)", re.ASCII | re.DOTALL
)

PART = re.compile(r"contents\.(\d+)\.message_content\.text", re.ASCII)

RESULT_ATTRIBUTES = ("db.query.result", "db.search.result")
"""Events of a vector database's span, one for each document."""

WORDS = {
    "in": ("input.value", "traceloop.entity.input"),
    "out": ("output.value", "traceloop.entity.output"),
}

WRAPPED = {
    "in": (
        "question",
        "query",
        "query_str",
        "input",
        "user_input",
        "prompt",
        "inputs",
        "kwargs",
        "args",
    ),
    "out": ("answer", "result", "output", "response", "output_text", "text", "content", "outputs"),
}
"""Where the words stand when a value is an object in JSON, most telling name first."""

USAGE = {
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
    ),
}

AGENTS = ("AGENT", "CHAIN", "WORKFLOW")

TOOL_NAMES = ("tool.name", "gen_ai.tool.name")

TOOL_WORDS = {
    "in": ("gen_ai.tool.call.arguments", "tool.parameters", *WORDS["in"]),
    "out": ("gen_ai.tool.call.result", *WORDS["out"]),
}
"""What a tool was called with, and what it gave back."""

RERANKED = re.compile(r"reranker\.output[._]documents\.\d+\.document\..+", re.ASCII | re.DOTALL)

MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")

COST = "llm.cost.total"

QUERY = "gen_ai.retrieval.query.text"

CONVERSATION = "gen_ai.conversation.id"

SESSIONS = (
    CONVERSATION,
    "session.id",
    "traceloop.association.properties.session_id",
    "langfuse.session.id",
)
"""Where a span says which session of a user it belongs to."""

KINDS = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")

_READ = {*INPUT, *OUTPUT, *(name for names in WORDS.values() for name in names), *MODELS, *KINDS}
_READ |= {name for names in USAGE.values() for name in names}
_READ |= {COST, QUERY, CONVERSATION, "gen_ai.retrieval.documents", "llm.token_count.total"}
_READ |= {"input.mime_type", "output.mime_type", *TOOL_NAMES}
_READ |= {name for names in TOOL_WORDS.values() for name in names}


def is_read(name: str) -> bool:
    """Whether an attribute of this name has a place on our side, or says nothing beside one."""
    patterns = (DOCUMENT, *NUMBERED.values())
    return name in _READ or any(pattern.fullmatch(name) for pattern in patterns)


def is_read_event(name: str) -> bool:
    """The same for an event of a span."""
    return name in (*ROLES, "gen_ai.choice", *RESULT_ATTRIBUTES) or name.startswith(
        ("gen_ai.client.inference.operation.details", "gen_ai.content")
    )


def kind_of(span: Span) -> str:
    """``agent``, ``chat``, ``retrieval``, ``reranker`` or ``tool``; "" for any other span."""
    attributes = span.attributes
    operation = str(attributes.get("gen_ai.operation.name") or "")
    inference = str(
        attributes.get("openinference.span.kind") or attributes.get("traceloop.span.kind") or ""
    ).upper()
    if inference == "RERANKER" or (
        "reranker" in span.names and any(RERANKED.fullmatch(name) for name in attributes)
    ):
        return "reranker" if documents_of(span) else ""
    if operation == "retrieval" or inference == "RETRIEVER" or document_rows(span):
        return "retrieval"
    if operation == "execute_tool" or inference == "TOOL":
        return "tool"
    if operation in ("invoke_agent", "invoke_workflow") or inference in AGENTS:
        return "agent"
    if operation in ("chat", "generate_content", "text_completion") or inference == "LLM":
        return "chat"
    if operation or inference:
        return ""
    return "chat" if any(True for _ in messages_of(span, "out")) else ""


def messages_of(span: Span, side: str) -> Iterator[Message]:
    """The messages that went ``in`` or came ``out``, from attributes, else from events."""
    names, attributes = (INPUT if side == "in" else OUTPUT), span.attributes
    messages = [*_listed(attributes, names), *_numbered(span, side)]
    for name, event in span.events:
        if messages:
            break
        if name == "gen_ai.client.inference.operation.details" or name.startswith("gen_ai.content"):
            messages = _listed(event, names)
    if not messages:
        messages = list(_from_events(span, side))
    if not messages:
        values = (words_of(_unquoted(name, attributes.get(name)), side) for name in WORDS[side])
        text = next((text for text in values if text), None)
        messages = [("user" if side == "in" else "assistant", text)] if text else []
    yield from messages


def _unquoted(name: str, value: Any) -> Any:
    """Traceloop writes every value as JSON, a text in quotation marks, too."""
    if name.startswith("traceloop.") and isinstance(value, str) and value[:1] == '"':
        return structured(f"[{value}]")[0] if value[-1:] == '"' else value
    return value


def words_of(value: Any, side: str, depth: int = 0) -> str | None:
    """The question or answer in a value: a text, or what an object in JSON holds under its name."""
    value = structured(value)
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, list):
        return words_of(value[0], side, depth + 1) if len(value) == 1 and depth else None
    if not isinstance(value, dict) or depth > 3:
        return None
    inner = (words_of(value.get(name), side, depth + 1) for name in WRAPPED[side])
    return next((text for text in inner if text), None)


def _listed(attributes: dict[str, Any], names: tuple[str, ...]) -> list[Message]:
    for name in names:
        value = structured(attributes.get(name))
        if isinstance(value, str) and value.strip():
            return [("user" if name in INPUT else "assistant", value)]
        if isinstance(value, list):
            return [pair for entry in value if (pair := _message(entry)) is not None]
    return []


def _message(raw: Any) -> Message | None:
    """Role and text of a message: its parts of the type text, or its content."""
    if not isinstance(raw, dict):
        return None
    role = str(raw.get("role") or "")
    parts = raw.get("parts", raw.get("content"))
    if isinstance(parts, str):
        return role, parts
    text = _joined(parts)
    return (role, text) if text else None


def _joined(parts: Any) -> str | None:
    """The texts among a message's parts; None when it has none."""
    texts = [
        part.get("content", part.get("text"))
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict) and part.get("type", "text") == "text"
    ]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _numbered(span: Span, side: str) -> list[Message]:
    """``gen_ai.prompt.0.role`` and the like, in the order of their numbers."""
    rows: dict[int, dict[str, Any]] = {}
    if not any(begin in span.names for begin in _NUMBERED_BEGIN[side]):
        return []
    for name, value in span.attributes.items():
        if match := NUMBERED[side].fullmatch(name):
            rows.setdefault(int(match[1]), {})[match[2].removeprefix("message.")] = value
    default = "user" if side == "in" else "assistant"
    pairs = [(str(row.get("role") or default), _content(row)) for _, row in sorted(rows.items())]
    return [(role, text) for role, text in pairs if text]


def _content(row: dict[str, Any]) -> str | None:
    """The text of a numbered message; its parts stand as JSON or as numbered ``contents``."""
    content = row.get("content")
    if isinstance(content, str):
        return _joined(structured(content)) or content
    parts = sorted(
        (int(match[1]), text) for name, text in row.items() if (match := PART.fullmatch(name))
    )
    return "\n".join(text for _, text in parts if isinstance(text, str)) or None


def _from_events(span: Span, side: str) -> Iterator[Message]:
    for name, event in span.events:
        body = structured(event.get("gen_ai.event.content")) or event
        if not isinstance(body, dict):
            continue
        if side == "in" and name in ROLES:
            if isinstance(body.get("content"), str):
                yield ROLES[name], body["content"]
        elif side == "out" and name == "gen_ai.choice":
            message = structured(body.get("message"))
            if isinstance(message, str):
                yield "assistant", message
            elif (pair := _message(message if isinstance(message, dict) else body)) is not None:
                yield pair


def documents_of(span: Span) -> list[dict[str, Any]]:
    """The retrieved documents of a span, in their order, by the names that they have there.

    Metadata stand in an object of their own or, as ``metadata.NAME``, beside the rest.
    """
    return [row | {"metadata": structured(row.get("metadata"))} for row in document_rows(span)]


def document_rows(span: Span) -> list[dict[str, Any]]:
    """The same with metadata as they stand there, which may be a JSON text."""
    value = structured(span.attributes.get("gen_ai.retrieval.documents"))
    rows = [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
    numbered: dict[int, dict[str, Any]] = {}
    for name, value in span.attributes.items() if ".document." in span.names else ():
        if ".document." in name and (match := DOCUMENT.fullmatch(name)):
            numbered.setdefault(int(match[1]), {})[match[2]] = value
    rows += [row for _, row in sorted(numbered.items())]
    rows += [
        {key.removeprefix(f"{name}."): value for key, value in event.items()}
        for name, event in span.events
        if name in RESULT_ATTRIBUTES
    ]
    return rows


MOST_DEPTH = 64


@dataclass
class Span:
    """One span. Times in nanoseconds since 1970, 0 when unknown."""

    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    failed: str | None
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @cached_property
    def names(self) -> str:
        """All names of attributes in one text: most are looked for in vain, in every span."""
        return "\n".join(self.attributes)

    @property
    def milliseconds(self) -> float | None:
        """How long it took; None when the times are absent or run backwards."""
        return (self.end - self.start) / 1e6 if 0 < self.start <= self.end else None


def spans_of(path: Path, notes: Notes) -> Iterator[Span]:
    """Every span of a file. Raises StorageError when it holds none at all."""
    any_span = False
    for line, document in _documents(path, notes):
        for item in document if isinstance(document, list) else [document]:
            notes.left_out["attributes of resources, such as service.name"] += _of_resources(item)
            for where, read in spans_in(item):
                any_span = True
                if isinstance(read, Span):
                    yield read
                else:
                    notes.problem(path, line, where + read, "is missing or of another type")
    if not any_span:
        notes.check()
        raise StorageError(
            f"{path}: holds no spans; write OTLP JSON with resourceSpans, or Phoenix' table."
        )


def spans_in(document: Any) -> Iterator[tuple[str, Span | str]]:
    """The spans of one JSON value with their places in it; of a faulty span the field's name."""
    for where, raw in _raw_spans(document):
        yield where, _span(raw)


def _of_resources(item: Any) -> int:
    """How many attributes the resources of a document have; spans stand below them."""
    holders = [item, *_items(item, "resourceSpans", "resource_spans")]
    resources = [holder.get("resource") for holder in holders if isinstance(holder, dict)]
    found = (_attributes_of(one.get("attributes")) for one in resources if isinstance(one, dict))
    return sum(len(attributes) for attributes in found)


def _documents(path: Path, notes: Notes) -> Iterator[tuple[int | None, Any]]:
    """The JSON values of a file with their lines: one, one a line, or one behind the other.

    Of a Parquet table the rows.
    """
    if path.suffix.lower() == PARQUET:
        yield None, list(parquet_rows(path))
        return
    data = read_whole(path).removeprefix(BOM)
    try:
        yield None, parse_json(data)
        return
    except orjson.JSONDecodeError:
        pass
    first = data.lstrip().partition(b"\n")[0].strip()
    if first not in (b"{", b"["):
        yield from ((row.line, row.fields) for row in jsonl_rows(path, notes))
        return
    text, position, decoder = data.decode("utf-8", "replace"), 0, json.JSONDecoder()
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", position)) + 1
            notes.problem(
                path, line, "", f"not JSON ({getattr(error, 'msg', 'nested too deeply')})"
            )
            return
        yield text.count("\n", 0, position) + 1, value
        position = end


def _raw_spans(document: Any) -> Iterator[tuple[str, Any]]:
    for i, resource in enumerate(_items(document, "resourceSpans", "resource_spans")):
        scopes = list(_items(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"))
        for j, scope in enumerate(scopes):
            for k, span in enumerate(_items(scope, "spans")):
                yield f"resourceSpans[{i}].scopeSpans[{j}].spans[{k}]", span
    yield from other_spans(document)


def _items(value: Any, *names: str) -> list[Any]:
    for name in names:
        items = value.get(name) if isinstance(value, dict) else None
        if isinstance(items, list):
            return items
    return []


def _span(raw: Any) -> Span | str:
    """The span, or the name of the field that is wrong."""
    if not isinstance(raw, dict):
        return ""
    trace, identity = _first(raw, "traceId", "trace_id"), _first(raw, "spanId", "span_id")
    if not isinstance(trace, str) or not trace.strip():
        return ".traceId"
    if not isinstance(identity, str):
        return ".spanId"
    start = _whole(_first(raw, "startTimeUnixNano", "start_time_unix_nano"))
    end = _whole(_first(raw, "endTimeUnixNano", "end_time_unix_nano"))
    if start is None or end is None:
        return ".startTimeUnixNano"
    status = raw.get("status")
    status = status if isinstance(status, dict) else {}
    failed = status.get("code") in (2, "2", "STATUS_CODE_ERROR")
    return Span(
        trace,
        identity,
        str(_first(raw, "parentSpanId", "parent_span_id") or ""),
        str(raw.get("name") or ""),
        start,
        end,
        str(status.get("message") or "") if failed else None,
        _attributes_of(raw.get("attributes")),
        [
            (str(event.get("name") or ""), _attributes_of(event.get("attributes")))
            for event in _items(raw, "events")
            if isinstance(event, dict)
        ],
    )


def _first(raw: dict[str, Any], name: str, other: str) -> Any:
    value = raw.get(name)
    return raw.get(other) if value is None else value


def _whole(value: Any) -> int | None:
    """Nanoseconds, which OTLP writes as a text; 0 when absent, None for what is no number."""
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return None


def _attributes_of(raw: Any) -> dict[str, Any]:
    """Attributes by name: OTLP's list of key and typed value, or a plain object."""
    if isinstance(raw, dict):
        return dict(raw)
    attributes: dict[str, Any] = {}
    for pair in raw if isinstance(raw, list) else ():
        if isinstance(pair, dict) and isinstance(name := pair.get("key"), str):
            value = pair.get("value")
            text = value.get("stringValue") if isinstance(value, dict) else None
            attributes[name] = _plain(value) if text is None else text
    return attributes


def _plain(value: Any, depth: int = 0) -> Any:
    """An OTLP value such as ``{"stringValue": "a"}`` without its type; None past a sane depth."""
    if not isinstance(value, dict) or depth > MOST_DEPTH:
        return None
    for name, inner in value.items():
        if name == "intValue":
            return _whole(inner)
        if name == "arrayValue":
            return [_plain(item, depth + 1) for item in _items(inner, "values")]
        if name == "kvlistValue":
            return {
                str(pair.get("key")): _plain(pair.get("value"), depth + 1)
                for pair in _items(inner, "values")
                if isinstance(pair, dict)
            }
        if name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return inner
    return None


def structured(value: Any) -> Any:
    """What a JSON text holds; any other value as it is."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return parse_json(value)
        except orjson.JSONDecodeError:
            return value
    return value
