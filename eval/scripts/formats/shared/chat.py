"""Questions, answers and documents in the values that LLM tools log: texts, objects, messages."""

from __future__ import annotations

from typing import Any

from formats.shared.spans import structured, words_of

_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant"}

_CLASSES = {"HumanMessage": "user", "AIMessage": "assistant"}


def words_in(value: Any, side: str, field: str | None = None) -> str | None:
    """The user's words (``in``) or the answer (``out``) in a value; None when it tells none.

    ``field``: the name that the user gave for the question. An object with one text alone is that.
    """
    value = structured(value)
    if field and isinstance(value, dict) and isinstance(value.get(field), str):
        text: str = value[field]
        return text
    messages = messages_in(value)
    if messages:
        role = "user" if side == "in" else "assistant"
        return next((m["content"] for m in reversed(messages) if m["role"] == role), None)
    words = words_of(value, side)
    if words is None and isinstance(value, dict):
        texts = [text for text in value.values() if isinstance(text, str) and text.strip()]
        return texts[0] if len(texts) == 1 else None
    return words


def rest_of(value: Any, words: str | None) -> dict[str, Any]:
    """What an object holds beside the words that were taken from it, and beside its messages."""
    value = structured(value)
    fields = value if isinstance(value, dict) else {}
    said = messages_in(value)
    return {
        name: item
        for name, item in fields.items()
        if item != words and not (said and name in ("messages", "role", "content", "type"))
    }


def messages_in(value: Any) -> list[dict[str, str]]:
    """The messages of a value, as role and content: OpenAI's, LangChain's and its serialised."""
    value = structured(value)
    if isinstance(value, dict):
        value = value.get("messages") or [value]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    found = [_message(item) for item in value] if isinstance(value, list) else []
    return [message for message in found if message is not None]


def _message(raw: Any) -> dict[str, str] | None:
    if not isinstance(raw, dict):
        return None
    inner, names = raw.get("kwargs"), raw.get("id")
    if isinstance(inner, dict) and isinstance(names, list) and names:
        role, raw = _CLASSES.get(str(names[-1]), "other"), inner
    elif isinstance(raw.get("data"), dict) and raw.get("type") in _ROLES:
        role, raw = _ROLES[str(raw["type"])], raw["data"]
    elif "role" in raw or raw.get("type") in _ROLES:
        role = _ROLES.get(str(raw.get("role") or raw.get("type")), "other")
    else:
        return None
    content = raw.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(text for text in parts if isinstance(text, str))
    return {"role": role, "content": content} if isinstance(content, str) and content else None
