"""What GenAI spans say of a question, its answer and the passages, under old and new names.

OpenTelemetry's gen_ai conventions changed: events of single messages (to 1.36), then
``gen_ai.input.messages`` (from 1.37); before both, libraries wrote ``gen_ai.prompt.0.content``.
OpenInference's ``llm.*``, ``retrieval.*``, ``reranker.*`` and ``input.value`` are read, too, and
Traceloop's ``traceloop.entity.*`` and results of vector databases in events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from converting.otlp import Span, structured

Message = tuple[str, str]
"""Role and text."""
INPUT = ("gen_ai.input.messages", "gen_ai.prompt")
OUTPUT = ("gen_ai.output.messages", "gen_ai.completion")
NUMBERED = {
    "in": re.compile(r"(?:gen_ai\.prompt|llm\.prompts|llm\.input_messages)\.(\d+)\.(.+)"),
    "out": re.compile(r"(?:gen_ai\.completion|llm\.completions|llm\.output_messages)\.(\d+)\.(.+)"),
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
FOUND = ("db.query.result", "db.search.result")
"""Events of a vector database's span, one for each document."""
WORDS = {
    "in": ("input.value", "traceloop.entity.input"),
    "out": ("output.value", "traceloop.entity.output"),
}
WRAPPED = {
    "in": ("question", "query", "input", "user_input", "prompt", "inputs", "kwargs", "args"),
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
MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")


def kind_of(span: Span) -> str:
    """``agent``, ``chat``, ``retrieval``, or "" for a span that tells nothing of a question."""
    attributes = span.attributes
    operation = str(attributes.get("gen_ai.operation.name") or "")
    inference = str(
        attributes.get("openinference.span.kind") or attributes.get("traceloop.span.kind") or ""
    ).upper()
    if operation == "retrieval" or inference == "RETRIEVER" or documents_of(span):
        return "retrieval"
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
    found = [*_listed(attributes, names), *_numbered(attributes, side)]
    for name, event in span.events:
        if found:
            break
        if name == "gen_ai.client.inference.operation.details" or name.startswith("gen_ai.content"):
            found = _listed(event, names)
    if not found:
        found = list(_from_events(span, side))
    if not found:
        values = (_words(_unquoted(name, attributes.get(name)), side) for name in WORDS[side])
        text = next((one for one in values if one), None)
        found = [("user" if side == "in" else "assistant", text)] if text else []
    yield from found


def _unquoted(name: str, value: Any) -> Any:
    """Traceloop writes every value as JSON, a text in quotation marks, too."""
    if name.startswith("traceloop.") and isinstance(value, str) and value[:1] == '"':
        return structured(f"[{value}]")[0] if value[-1:] == '"' else value
    return value


def _words(value: Any, side: str, depth: int = 0) -> str | None:
    """The question or answer in a value: a text, or what an object in JSON holds under its name."""
    value = structured(value)
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, list):
        return _words(value[0], side, depth + 1) if len(value) == 1 and depth else None
    if not isinstance(value, dict) or depth > 3:
        return None
    inner = (_words(value.get(name), side, depth + 1) for name in WRAPPED[side])
    return next((text for text in inner if text), None)


def _listed(attributes: dict[str, Any], names: tuple[str, ...]) -> list[Message]:
    for name in names:
        value = structured(attributes.get(name))
        if isinstance(value, str) and value.strip():
            return [("user" if name in INPUT else "assistant", value)]
        if isinstance(value, list):
            return [pair for one in value if (pair := _message(one)) is not None]
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
    return "\n".join(one for one in texts if isinstance(one, str)) or None


def _numbered(attributes: dict[str, Any], side: str) -> list[Message]:
    """``gen_ai.prompt.0.role`` and the like, in the order of their numbers."""
    rows: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        match = NUMBERED[side].fullmatch(name)
        if match:
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
    value = structured(span.attributes.get("gen_ai.retrieval.documents"))
    rows = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    numbered: dict[int, dict[str, Any]] = {}
    for name, found in span.attributes.items():
        match = DOCUMENT.fullmatch(name)
        if match:
            numbered.setdefault(int(match[1]), {})[match[2]] = found
    rows += [row for _, row in sorted(numbered.items())]
    rows += [
        {key.removeprefix(f"{name}."): value for key, value in event.items()}
        for name, event in span.events
        if name in FOUND
    ]
    return [row | {"metadata": structured(row.get("metadata"))} for row in rows]
