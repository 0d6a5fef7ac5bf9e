"""One span of a trace, and its content under the names of all conventions.

OpenTelemetry's gen_ai conventions changed: events of single messages (to 1.36), then
``gen_ai.input.messages`` (from 1.37); before both, libraries wrote ``gen_ai.prompt.0.content``.
Beside them: OpenInference (``llm.*``, ``retrieval.*``, ``input.value``), Traceloop, MLflow,
Langfuse, LangSmith, Logfire with pydantic-ai, Haystack's own tracer and the Vercel AI SDK.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from formats.traces.values import (
    Message,
    answer_in,
    calls_in,
    content_parts,
    document_of,
    documents_in,
    is_printed,
    last_answer,
    message_of,
    messages_in,
    only_text,
    opened,
    question_in,
    structured,
    text_in,
)

AGENT, CHAT, RETRIEVAL, RERANKER, TOOL, GUARD = (
    *("agent", "chat", "retrieval", "reranker", "tool", "guard"),
)
"""Kinds of spans; ``guard``: guardrails and evaluators. "" is any other."""

MESSAGES = {
    "in": (
        *("gen_ai.input.messages", "gen_ai.prompt", "ai.prompt.messages"),
        "gcp.vertex.agent.llm_request",
    ),
    "out": ("gen_ai.output.messages", "gen_ai.completion", "gcp.vertex.agent.llm_response"),
}
"""Messages as a list, or one text."""

ALL_MESSAGES = ("pydantic_ai.all_messages", "all_messages_events")
"""An agent's input and output in one list."""

VALUES = {
    "in": (
        *("input.value", "traceloop.entity.input", "mlflow.spanInputs", "ai.prompt"),
        *("langfuse.observation.input", "langfuse.trace.input", "haystack.pipeline.input_data"),
        *("haystack.component.input", "haystack.agent.step.llm.input", "tool_arguments"),
        *("haystack.agent.step.tool.input", "ai.toolCall.args"),
    ),
    "out": (
        *("output.value", "traceloop.entity.output", "mlflow.spanOutputs", "final_result"),
        *("ai.response.text", "ai.response.object", "ai.result.text", "ai.result.object"),
        *("langfuse.observation.output", "langfuse.trace.output", "haystack.pipeline.output_data"),
        *("haystack.component.output", "haystack.agent.step.llm.output", "tool_response"),
        *("haystack.agent.step.tool.output", "ai.toolCall.result"),
    ),
}
"""A span's input and output, as a text, JSON or an object."""

_JSON_TEXTS = ("traceloop.", "mlflow.")
"""Names whose values are JSON, a text in quotation marks too."""

_NUMBERED = {
    "in": re.compile(r"(?:gen_ai\.prompt|llm\.prompts|llm\.input_messages)\.(\d{1,9})(?:\.(.+))?"),
    "out": re.compile(
        r"(?:gen_ai\.completion|llm\.completions|llm\.output_messages)\.(\d{1,9})"
        r"(?:\.(.+))?"
    ),
}
_ROLES = {
    "gen_ai.user.message": "user",
    "gen_ai.system.message": "system",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"
_DETAILS = ("gen_ai.client.inference.operation.details", "gen_ai.content")
DOCUMENTS = "gen_ai.retrieval.documents"
_DOCUMENT = re.compile(
    r"(retrieval\.|reranker\.output[._])documents\.(\d{1,9})\.document\.(.+)", re.ASCII | re.DOTALL
)
_CALL = re.compile(
    r"(?:tool_calls\.(\d{1,9})\.|function_call[._])(?:tool_call\.)?(?:function[._])?"
    r"(id|name|arguments)",
    re.ASCII,
)
_PART = re.compile(r"contents\.(\d{1,9})\.message_content\.text", re.ASCII)
EVALUATION = "gen_ai.evaluation.result"
"""The event of a rating."""
_RESULT_EVENTS = ("db.query.result", "db.search.result")
"""Events of a vector database's span, one for each document."""

USAGE = {
    "input_tokens": (
        *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
        *("ai.usage.inputTokens", "ai.usage.promptTokens"),
    ),
    "output_tokens": (
        *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        *("llm.token_count.completion", "ai.usage.outputTokens", "ai.usage.completionTokens"),
    ),
}
MLFLOW_USAGE, MLFLOW_COST = "mlflow.chat.tokenUsage", "mlflow.llm.cost"
TOOL_NAMES = (
    *("tool.name", "gen_ai.tool.name", "ai.toolCall.name", "tool_name", "haystack.tool.name"),
)
TOOL_VALUES = {
    "in": (
        *("gen_ai.tool.call.arguments", "tool.arguments", *VALUES["in"], "tool.parameters"),
        "gcp.vertex.agent.tool_call_args",
    ),
    "out": ("gen_ai.tool.call.result", *VALUES["out"], "gcp.vertex.agent.tool_response"),
}
"""A tool's arguments and its result."""
MODELS = (
    *("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "mlflow.llm.model"),
    *("ai.response.model", "ai.model.id"),
)
COST = "llm.cost.total"
QUERY = "gen_ai.retrieval.query.text"
SESSIONS = (
    *("gen_ai.conversation.id", "session.id", "langfuse.session.id", "mlflow.trace.session"),
    *("traceloop.association.properties.session_id", "langsmith.trace.session_id"),
    *("traceloop.association.properties.thread_id", "langsmith.metadata.thread_id"),
    *("ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.chatId"),
    *("ai.telemetry.metadata.threadId", "thread_id", "threadId", "sessionId", "session_id"),
    *("group_id", "chat_id", "chatId", "conversation_id"),
)
"""Where a span says which session, thread or chat of a user it belongs to."""
SESSION_KEYS = ("thread_id", "session_id", "conversation_id", "chat_id", "sessionId", "threadId")
USERS = (
    *("user.id", "enduser.id", "langfuse.user.id", "mlflow.trace.user", "userId", "user_id"),
    *("ai.telemetry.metadata.userId", "traceloop.association.properties.user_id"),
)
REFERENCES = ("gen_ai.input.messages_ref", "gen_ai.output.messages_ref")
"""Contents that are in a bucket, not in the trace."""

KINDS = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
_OTHER_KINDS = ("mlflow.spanType", "langfuse.observation.type", "langsmith.span.kind")
_OF_NAME = {
    "RETRIEVER": RETRIEVAL,
    "RETRIEVAL": RETRIEVAL,
    "RERANKER": RERANKER,
    "TOOL": TOOL,
    "EXECUTE_TOOL": TOOL,
    "GUARDRAIL": GUARD,
    "EVALUATOR": GUARD,
    **dict.fromkeys(("AGENT", "CHAIN", "WORKFLOW", "INVOKE_AGENT", "INVOKE_WORKFLOW"), AGENT),
    **dict.fromkeys(("CHAT", "GENERATE_CONTENT", "TEXT_COMPLETION", "LLM"), CHAT),
    **dict.fromkeys(("CHAT_MODEL", "GENERATION", "RESPONSES"), CHAT),
}
_PLAIN: dict[Any, str] = {"AGENT": AGENT, "CHAIN": AGENT, "LLM": CHAT}
_OF_AI_SDK = ((".doGenerate", CHAT), (".doStream", CHAT), ("ai.toolCall", TOOL))
_HAYSTACK = (("Retriever", RETRIEVAL), ("Ranker", RERANKER), ("Generator", CHAT), ("Agent", AGENT))
_HAYSTACK_TYPE = "haystack.component.type"
_TOOL_NAMED = ("gen_ai.tool.name", "gen_ai.tool.call.id", "tool.name", "haystack.tool.name")
_TOOL_EVENTS = {"in": ("gen_ai.tool.message", "content"), "out": (_CHOICE, "message")}
"""Events of a tool's span with its arguments and its result, and their fields."""
_TOOL_CALLS = ("ai.response.toolCalls", "ai.result.toolCalls")

_READ = {*KINDS, *_OTHER_KINDS, *ALL_MESSAGES, *TOOL_NAMES, *MODELS, *SESSIONS, *REFERENCES}
_READ |= {name for names in (*MESSAGES.values(), *TOOL_VALUES.values()) for name in names}
_READ |= {name for names in USAGE.values() for name in names} | {MLFLOW_USAGE, MLFLOW_COST}
_READ |= {COST, QUERY, DOCUMENTS, "llm.token_count.total", "input.mime_type", "output.mime_type"}


_CONTENTS = {name for names in (*MESSAGES.values(), *TOOL_VALUES.values()) for name in names}
_CONTENTS |= {*ALL_MESSAGES}


def is_read(name: str) -> bool:
    """Whether an attribute of this name has a place on our side, or says nothing beside one."""
    patterns = (_DOCUMENT, *_NUMBERED.values())
    return name in _READ or any(pattern.fullmatch(name) for pattern in patterns)


def is_read_event(name: str) -> bool:
    """The same for an event of a span."""
    return name in (*_ROLES, _CHOICE, EVALUATION, *_RESULT_EVENTS) or name.startswith(_DETAILS)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the names of a span's attributes say, whatever the values: the same for every span of an
    instrumentation, so it is found once. ``documents``: name, number and field."""

    numbered: dict[str, list[tuple[str, int, str]]]
    documents: list[tuple[str, int, str]]
    is_reranked: bool
    sessions: list[str]
    tells: bool
    """Whether any of them is one under which contents are captured."""


@lru_cache(maxsize=4096)
def _shape(names: tuple[str, ...]) -> _Shape:
    numbered: dict[str, list[tuple[str, int, str]]] = {"in": [], "out": []}
    documents = []
    is_reranked = False
    for name in names:
        for side, pattern in _NUMBERED.items():
            if match := pattern.fullmatch(name):
                row = (name, int(match[1]), (match[2] or "content").removeprefix("message."))
                numbered[side].append(row)
        if match := _DOCUMENT.fullmatch(name):
            documents.append((name, int(match[2]), match[3]))
            is_reranked = is_reranked or match[1].startswith("reranker")
    tells = not _CONTENTS.isdisjoint(names) or any(numbered.values())
    sessions = [name for name in SESSIONS if name in names]
    return _Shape(numbered, documents, is_reranked, sessions, tells)


LAST_TIME = 2**63
"""Nanoseconds since 1970 that no clock has: a later time is none."""


@dataclass(slots=True, eq=False)
class Span:
    """One span. Times in nanoseconds since 1970, 0 when unknown.

    ``is_root``: nothing of its trace is around it here; its parent may be in another service.
    ``weight``: how many traces it stands for, where a head sampler says so. ``is_log``: no span,
    but log records of the span of this id, as events.
    """

    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    failed: str | None
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    is_remote: bool = False
    weight: float = 1.0
    is_log: bool = False
    is_open: bool = False
    known_shape: _Shape | None = None
    known_messages: dict[str, list[Message]] = field(default_factory=dict)

    @property
    def is_root(self) -> bool:
        return not self.is_log and (not self.parent or self.is_remote)

    @property
    def shape(self) -> _Shape:
        """The kind that the names of the attributes imply; of the names at the first look."""
        if self.known_shape is None:
            self.known_shape = _shape(tuple(self.attributes))
        return self.known_shape

    def says_as(self, other: Span) -> bool:
        """Whether another span of this id has the same in all its fields."""
        names = ("parent", "end", "failed", "attributes", "events")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    @property
    def milliseconds(self) -> float | None:
        """How long it took; None when the times are absent, run backwards or are no dates."""
        return (self.end - self.start) / 1e6 if 0 < self.start <= self.end < LAST_TIME else None


def kind_of(span: Span) -> str:
    """``agent``, ``chat``, ``retrieval``, ``reranker``, ``tool`` or ``guard``; "" for another."""
    attributes = span.attributes
    kind = _PLAIN.get(str(attributes.get("openinference.span.kind")))
    if kind and "gen_ai.operation.name" not in attributes and not span.events:
        shape = span.shape
        if not (shape.documents or DOCUMENTS in attributes):
            return kind
    operation = str(attributes.get("gen_ai.operation.name") or "")
    named = str(
        attributes.get("openinference.span.kind")
        or attributes.get("traceloop.span.kind")
        or next((attributes[name] for name in _OTHER_KINDS if name in attributes), "")
    )
    named = named.strip('"').upper()
    if named == "RERANKER" or span.shape.is_reranked:
        return RERANKER if count_documents(span) else ""
    kind = _OF_NAME.get(operation.upper())
    is_tool = TOOL in (kind, _OF_NAME.get(named)) or "haystack.tool.name" in attributes
    if is_tool and not (span.shape.documents or DOCUMENTS in attributes):
        return TOOL  # what it gave back may be passages
    if kind == RETRIEVAL or named == "RETRIEVER" or count_documents(span):
        return RETRIEVAL
    kind = kind or _OF_NAME.get(named) or _by_framework(span)
    if "traceloop.span.kind" in attributes and kind in (AGENT, None) and not operation:
        kind = CHAT if completion_of(span) else kind  # it names no calls of a model
    if kind is not None:
        return kind
    if any(name in attributes for name in _TOOL_NAMED):
        return TOOL
    if operation or named:
        return ""
    return CHAT if messages_of(span, "out") else ""


def _by_framework(span: Span) -> str | None:
    """The kind by the names that one framework alone writes; None when it writes none."""
    attributes = span.attributes
    if any(name in attributes for name in ALL_MESSAGES):
        return AGENT
    operation = attributes.get("ai.operationId")
    if isinstance(operation, str):
        inner = next((kind for end, kind in _OF_AI_SDK if operation.endswith(end)), None)
        return inner or (AGENT if re.match(r"ai\.(?:generate|stream)", operation) else "")
    if "haystack.agent.step.llm.output" in attributes:
        return CHAT
    if "haystack.pipeline.input_data" in attributes:
        return AGENT
    component = attributes.get(_HAYSTACK_TYPE)
    if isinstance(component, str):
        return next((kind for end, kind in _HAYSTACK if component.endswith(end)), "")
    return None


def messages_of(span: Span, side: str) -> list[Message]:
    """The messages that went ``in`` or came ``out``, from attributes, else from events.

    A value that is not a list of messages is one of them, where it tells a text."""
    if side not in span.known_messages:
        span.known_messages[side] = _messages_of(span, side)
    return span.known_messages[side]


def _messages_of(span: Span, side: str) -> list[Message]:
    attributes, names = span.attributes, MESSAGES[side]
    messages = _listed(attributes, names, side)
    numbered = span.shape.numbered[side]
    if numbered:
        messages += _numbered(span, numbered, side)
    if messages or not (span.events or any(name in attributes for name in ALL_MESSAGES)):
        return _with_calls(span, messages) if side == "out" else messages
    for name, event in span.events:
        if name.startswith(_DETAILS) and (messages := _listed(event, names, side)):
            return messages
    if span.events and (messages := list(_from_events(span.events, side))):
        return messages
    for name in ALL_MESSAGES:
        value = structured(attributes.get(name))
        if isinstance(value, list) and value:
            return _of_all(value, side)
    return []


def _of_all(items: Sequence[Any], side: str) -> list[Message]:
    """Of all messages of an agent those up to the last question, or those after it."""
    messages = [message for item in items if (message := _event_message(item)) is not None]
    asked = max((n for n, message in enumerate(messages) if message.role == "user"), default=-1)
    return messages[: asked + 1] if side == "in" else messages[asked + 1 :]


def _event_message(item: Any) -> Message | None:
    """A message, or an event of one that was written as an object with its name."""
    if isinstance(item, dict) and (name := str(item.get("event.name") or "")):
        inner = item.get("message") if name == _CHOICE else item
        return message_of({"role": _ROLES.get(name, "assistant"), **inner}) if inner else None
    return message_of(item)


def _with_calls(span: Span, messages: list[Message]) -> list[Message]:
    """The messages that came out, the last marked when attributes beside them ask for a tool."""
    attributes = span.attributes
    calls = next((c for name in _TOOL_CALLS if (c := calls_in(attributes.get(name)))), ())
    if not calls:
        return messages
    if not messages:
        return [Message("assistant", "", calls)]
    messages[-1] = messages[-1]._replace(calls=calls)
    return messages


def _listed(attributes: dict[str, Any], names: Sequence[str], side: str) -> list[Message]:
    for name in names:
        if name not in attributes:
            continue
        value = structured(attributes[name])
        if isinstance(value, str) and value.strip():
            return [Message("user" if side == "in" else "assistant", value)]
        if isinstance(value, list | dict):
            if found := messages_in(value):
                return found
            # The conventions leave the role out of what came out of a completion.
            entries = value if isinstance(value, list) else ()
            texts = [
                text_in(e.get("parts", e.get("content"))) for e in entries if isinstance(e, dict)
            ]
            return [Message("", text) for text in texts if text]
    return []


def _numbered(span: Span, names: Sequence[tuple[str, int, str]], side: str) -> list[Message]:
    """``gen_ai.prompt.0.role`` and the like, in the order of their numbers."""
    rows: dict[int, dict[str, Any]] = {}
    for name, number, key in names:
        rows.setdefault(number, {})[key] = span.attributes[name]
    default = "user" if side == "in" else "assistant"
    messages = []
    for _, row in sorted(rows.items()):
        called: dict[str, dict[str, Any]] = {}
        for key, value in row.items():
            if match := _CALL.fullmatch(key):
                called.setdefault(match[1] or "0", {})[match[2]] = value
        calls = calls_in([call for _, call in sorted(called.items())])
        text = _content(row)
        if text or calls:
            messages.append(Message(_role(row, default), text or "", calls))
    return messages


def _role(row: dict[str, Any], default: str) -> str:
    message = message_of({"role": str(row.get("role") or default), "content": "-"})
    return message.role if message else default


def _content(row: dict[str, Any]) -> str | None:
    """The text of a numbered message; its parts stand as JSON or as numbered ``contents``."""
    content = row.get("content", row.get("prompt.text"))
    if isinstance(content, str):
        inner = structured(content)
        return (text_in(inner) if isinstance(inner, list) else None) or content
    parts = sorted(
        (int(match[1]), text) for name, text in row.items() if (match := _PART.fullmatch(name))
    )
    return "\n".join(text for _, text in parts if isinstance(text, str)) or None


def _from_events(events: Sequence[tuple[str, dict[str, Any]]], side: str) -> Iterator[Message]:
    """The messages of events of single messages, as they were written up to 1.36."""
    for name, event in events:
        body = structured(event.get("gen_ai.event.content")) or event
        if not isinstance(body, dict):
            continue
        body = {key: content_parts(value) for key, value in body.items()}
        if side == "in" and name in _ROLES:
            if (message := message_of({**body, "role": _ROLES[name]})) is not None:
                yield message
        elif side == "out" and name == _CHOICE:
            inner = structured(body.get("message"))
            if isinstance(inner, str):
                yield Message("assistant", inner.strip())
                continue
            inner = {"content": inner} if isinstance(inner, list) else inner
            raw = {"role": "assistant", **(inner if isinstance(inner, dict) else body)}
            calls = raw.get("tool_calls") or body.get("tool_calls")
            if (message := message_of({**raw, "tool_calls": structured(calls)})) is not None:
                yield message


def value_of(span: Span, side: str) -> Any:
    """A span's input (``in``) or output, opened; None when it is missing."""
    name, value = _raw_value(span, side)
    return None if name is None else opened(value)


def _raw_value(span: Span, side: str) -> tuple[str | None, Any]:
    """The first name under which a value stands, and the value as it was written."""
    attributes = span.attributes
    for name in TOOL_VALUES[side] if span.shape.tells else ():
        value = attributes.get(name)
        if value is None:
            continue
        if isinstance(value, str) and name.startswith(_JSON_TEXTS) and value[:1] == '"':
            inner = structured(f"[{value}]")
            value = inner[0] if isinstance(inner, list) and len(inner) == 1 else value
        if not isinstance(value, str) or (value and not value.isspace()):
            return name, value
    if span.events and any(name in attributes for name in _TOOL_NAMED):
        wanted, field = _TOOL_EVENTS[side]
        for name, event in span.events:
            if name == wanted and event.get(field) is not None:
                return name, event[field]
    return None, None


def completion_of(span: Span) -> dict[str, Any]:
    """The reply of a model's API, whole, where a span gave it out; {} where it did not."""
    value = value_of(span, "out")
    for holder in (value, value.get("raw") if isinstance(value, dict) else None):
        if isinstance(holder, dict) and isinstance(holder.get("choices"), list):
            return holder
    return {}


def has_content(span: Span) -> bool:
    """Whether a span has any input or output."""
    return (span.shape.tells or bool(span.events)) and any(
        _raw_value(span, side)[0] is not None or messages_of(span, side) for side in ("in", "out")
    )


def given_out(span: Span) -> str | None:
    """The answer in a span's output: its last message, or the field of its value that is one; None
    when it tells none for certain."""
    if messages := messages_of(span, "out"):
        return last_answer(messages)
    value = value_of(span, "out")
    if isinstance(value, str):  # most are
        return answer_in(value)
    return None if value is None else answer_in(value, value_of(span, "in"))


def session_of(span: Span) -> str | None:
    """The id of the session, thread or chat that a span names."""
    attributes = span.attributes
    for name in span.shape.sessions:
        if attributes[name]:
            return str(attributes[name])
    held = attributes.get("metadata")
    if held is not None and isinstance(metadata := structured(held), dict):
        return next((str(metadata[name]) for name in SESSION_KEYS if metadata.get(name)), None)
    return None


def documents_of(span: Span) -> list[dict[str, Any]]:
    """The retrieved documents of a span, in their order, by the names that they have there.

    Metadata stand in an object of their own or, as ``metadata.NAME``, beside the rest.
    """
    rows = []
    for row in document_rows(span):
        inner = structured(row.get("metadata"))
        rows.append(row | {"metadata": inner} if "metadata" in row else row)
    return rows


def document_rows(span: Span) -> list[dict[str, Any]]:
    """The same with metadata unchanged, which may be a JSON text."""
    value = structured(span.attributes.get(DOCUMENTS))
    rows = (
        [document_of(entry) or entry for entry in value if isinstance(entry, dict)]
        if isinstance(value, list)
        else []
    )
    if documents := span.shape.documents:
        numbered: dict[int, dict[str, Any]] = {}
        for name, number, key in documents:
            numbered.setdefault(number, {})[key] = span.attributes[name]
        rows += [row for _, row in sorted(numbered.items())]
    rows += [
        {key.removeprefix(f"{name}."): value for key, value in event.items()}
        for name, event in span.events
        if name in _RESULT_EVENTS
    ]
    return rows or _given_as_value(span)


def has_documents(span: Span) -> bool:
    """Whether attributes or events say that something was retrieved, not a value alone."""
    named = span.shape.documents or DOCUMENTS in span.attributes
    return bool(named) or any(name in _RESULT_EVENTS for name, _ in span.events)


def count_documents(span: Span) -> int:
    """The number of a span's documents, by their names alone where these suffice."""
    if documents := span.shape.documents:
        return len({number for _, number, _ in documents})
    return len(document_rows(span)) if span.events or _may_hold(span.attributes) else 0


def _may_hold(attributes: dict[str, Any]) -> bool:
    """Whether documents may stand in a value: not in one of OpenInference's agents and models."""
    kind = attributes.get("openinference.span.kind")
    return DOCUMENTS in attributes or kind not in ("AGENT", "CHAIN", "LLM")


def _given_as_value(span: Span) -> list[dict[str, Any]]:
    """The documents that a retriever gave out as a value: one that says that it is a retriever, a
    tool, or a step of no other kind that was given a query alone."""
    attributes = span.attributes
    names = [str(attributes[name]) for name in (*KINDS, *_OTHER_KINDS) if attributes.get(name)]
    kinds = {_OF_NAME.get(name.strip('"').upper()) for name in names}
    component = attributes.get(_HAYSTACK_TYPE)
    if isinstance(component, str):
        kinds = {next((kind for end, kind in _HAYSTACK if component.endswith(end)), None)}
    is_tool = any(name in attributes for name in _TOOL_NAMED)
    if kinds & {AGENT, CHAT, GUARD} or not (names or component or is_tool):
        return []
    value = value_of(span, "out")
    if not isinstance(value, list | dict):
        return []
    rows = documents_in(value)
    if not rows and kinds & {RETRIEVAL, RERANKER} and isinstance(value, dict | list):
        listed = value.get("documents", value.get("output")) if isinstance(value, dict) else value
        items = listed if isinstance(listed, list) else ()
        rows = [{"text": item} for item in items if isinstance(item, str) and not is_printed(item)]
        rows = rows or [item for item in items if isinstance(item, dict)]
    if rows and not (is_tool or kinds & {RETRIEVAL, RERANKER, TOOL}):
        given = value_of(span, "in")
        return [] if documents_in(given) or not (question_in(given) or only_text(given)) else rows
    return rows
