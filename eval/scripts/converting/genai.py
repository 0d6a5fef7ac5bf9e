"""What GenAI spans say of a question, its answer and the passages, under old and new names.

OpenTelemetry's gen_ai conventions changed: events of single messages (to 1.36), then
``gen_ai.input.messages`` (from 1.37); before both, libraries wrote ``gen_ai.prompt.0.content``.
OpenInference's ``llm.*``, ``retrieval.*`` and ``input.value`` are read, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from converting.otlp import Span, structured
from storage import RetrievedChunk

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
DOCUMENT = re.compile(r"(?:retrieval|reranker\.output)\.documents\.(\d+)\.document\.(\w+)")
TEXTS = ("content", "text", "page_content", "document")
NAMES = ("id", "doc_id", "document_id", "source")
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
MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")


def kind_of(span: Span) -> str:
    """``agent``, ``chat``, ``retrieval``, or "" for a span that tells nothing of a question."""
    attributes = span.attributes
    operation = str(attributes.get("gen_ai.operation.name") or "")
    inference = str(attributes.get("openinference.span.kind") or "").upper()
    if operation == "retrieval" or inference == "RETRIEVER" or documents_of(span):
        return "retrieval"
    if operation in ("invoke_agent", "invoke_workflow") or inference in ("AGENT", "CHAIN"):
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
        value = attributes.get("input.value" if side == "in" else "output.value")
        if isinstance(value, str) and not isinstance(structured(value), dict | list):
            found = [("user" if side == "in" else "assistant", value)]
    yield from found


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
    if not isinstance(parts, list):
        return None
    texts = [
        part.get("content", part.get("text"))
        for part in parts
        if isinstance(part, dict) and part.get("type", "text") == "text"
    ]
    text = "\n".join(one for one in texts if isinstance(one, str))
    return (role, text) if text else None


def _numbered(attributes: dict[str, Any], side: str) -> list[Message]:
    """``gen_ai.prompt.0.role`` and the like, in the order of their numbers."""
    rows: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        match = NUMBERED[side].fullmatch(name)
        if match:
            rows.setdefault(int(match[1]), {})[match[2].removeprefix("message.")] = value
    default = "user" if side == "in" else "assistant"
    return [
        (str(row.get("role") or default), str(row["content"]))
        for _, row in sorted(rows.items())
        if isinstance(row.get("content"), str)
    ]


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


def documents_of(span: Span) -> list[RetrievedChunk]:
    """The retrieved documents of a span, in their order."""
    value = structured(span.attributes.get("gen_ai.retrieval.documents"))
    rows = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    numbered: dict[int, dict[str, Any]] = {}
    for name, found in span.attributes.items():
        match = DOCUMENT.fullmatch(name)
        if match:
            numbered.setdefault(int(match[1]), {})[match[2]] = found
    rows += [row for _, row in sorted(numbered.items())]
    return [_chunk(row, rank) for rank, row in enumerate(rows, 1)]


def _chunk(row: dict[str, Any], rank: int) -> RetrievedChunk:
    text = next((row[name] for name in TEXTS if isinstance(row.get(name), str)), None)
    found = next((row[name] for name in NAMES if isinstance(row.get(name), str | int)), None)
    name = str(rank) if found is None else str(found)
    score = row.get("score")
    metadata = structured(row.get("metadata"))
    metadata = metadata if isinstance(metadata, dict) else {}
    path = metadata.get("rel_path", metadata.get("source", row.get("source")))
    return RetrievedChunk(
        chunk_id=name,
        doc_id=path if isinstance(path, str) else name,
        score_final=float(score) if isinstance(score, int | float) else None,
        text=text,
        text_length=None if text is None else len(text),
        rank=rank,
    )
