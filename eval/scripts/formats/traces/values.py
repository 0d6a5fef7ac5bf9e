"""Reads a logged value: the question in an input, the answer in an output, the messages.

Values are texts, JSON texts, objects and lists of them, as frameworks log what a step was given and
gave out. Python objects that were printed as a text are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from records.lines import parse_json

INPUT_NAMES = (
    *("question", "query", "query_str", "input", "user_input", "prompt", "user_msg", "task"),
    *("user_message", "user_query", "user_prompt", "human_input", "message", "inputs"),
    *("kwargs", "args", "data"),
)
OUTPUT_NAMES = (
    *("answer", "final_answer", "result", "output", "response", "generation", "output_text"),
    *("text", "content", "outputs", "replies", "return_values", "completion", "message"),
)
"""The usual names of the question, and of the answer; most telling name first."""

_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system"}
_ROLES |= {"AIMessageChunk": "assistant", "function": "tool", "bot": "assistant"}
_ROLES |= {role: role for role in ("user", "assistant", "system", "tool")}
_CLASSES = {"HumanMessage": "user", "AIMessage": "assistant", "AIMessageChunk": "assistant"}
_CLASSES |= {"SystemMessage": "system", "ToolMessage": "tool", "FunctionMessage": "tool"}
_CALLS = ("tool_call", "tool_use", "function_call", "tool-call", "toolCall")
"""Types of a part of a message that asks for a tool."""
_RESULTS = ("tool_call_response", "tool_result", "function_call_output", "tool-result")
_MOST_DEPTH = 4
_LITERAL = re.compile(r"null|none|true|false|nan|undefined", re.IGNORECASE)
_LABEL = re.compile(r"[a-z\d]*[a-z][a-z\d]*(?:[_.:-][a-z\d]+)*|[A-Z\d]*[A-Z][A-Z\d_]*", re.ASCII)
_WEAK_NAMES = ("result", "output", "outputs", "message")
"""Under these a program says how it went, too: a label there is no answer."""


class Call(NamedTuple):
    """A tool that a model asks for: its id, its name, and what it is to be called with."""

    id: str
    name: str
    arguments: Any


class Message(NamedTuple):
    """One side's message, and the tools that it asks for; ``answers``: the id of the call whose
    result it is."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    answers: str = ""


def structured(value: Any) -> Any:
    """The value of a JSON text; any other value unchanged."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return parse_json(value)
        except orjson.JSONDecodeError:
            return value
    return value


def opened(value: Any) -> Any:
    """The same for JSON with blanks before it, and for a text in quotation marks."""
    if isinstance(value, str) and (text := value.strip())[:1] in ("[", "{", '"'):
        try:
            inner = parse_json(text)
        except orjson.JSONDecodeError:
            return value
        return value if inner is None else inner
    return value


_CLASS = r"[A-Za-z_][\w.]*\((?:\)$|[A-Za-z_]\w*(?:=|: ))"
_PRINTED = re.compile(_CLASS)
_PRINTED_LIST = re.compile(rf"[\[{{]+(?:'|{_CLASS})")
_PRINTED_ADDRESS = re.compile(r"<[A-Za-z_][\w.]*(?:\(|: | object| at 0x)")


def is_printed(text: str) -> bool:
    """Whether a text looks like a printed Python object, whole or cut at its end: a class with its
    arguments, ``<… at 0x…>``, or a list or dict in Python's spelling."""
    text = text.strip()
    if text[-1:] == ">":
        return _PRINTED_ADDRESS.match(text) is not None
    if text[:1] in ("[", "{"):
        is_ended = text[-1:] in ("]", "}") or text[-3:] == "..."
        return is_ended and _PRINTED_LIST.match(text) is not None
    is_ended = text[-1:] == ")" or text[-3:] == "..." or text.count("(") > text.count(")")
    return is_ended and _PRINTED.match(text) is not None


def message_of(raw: Any) -> Message | None:
    """A message in the form of OpenAI, LangChain (also serialised), LlamaIndex, the GenAI
    conventions or a pair of role and text. None for anything else, and for one without text or
    call."""
    if isinstance(raw, list) and len(raw) == 2 and all(isinstance(part, str) for part in raw):
        return Message(_ROLES[raw[0]], raw[1]) if raw[0] in _ROLES else None
    if not isinstance(raw, dict):
        return None
    inner, names = raw.get("kwargs"), raw.get("id")
    if isinstance(inner, dict) and isinstance(names, list) and names:
        return _message(_CLASSES.get(str(names[-1]), "other"), inner)
    if isinstance(raw.get("data"), dict) and str(raw.get("type")) in _ROLES:
        return _message(_ROLES[str(raw["type"])], raw["data"])
    kind = str(raw.get("type") or "")
    if kind in _CALLS:
        return Message("assistant", "", calls_in([raw]))
    if kind in _RESULTS:
        return _result(raw)
    if "role" in raw or kind in _ROLES:
        role = str(raw.get("role") or kind or "")
        return _message(_ROLES.get(role.lower(), role), raw)
    return None


def _message(role: str, raw: Mapping[str, Any]) -> Message | None:
    parts = next((raw[n] for n in ("parts", "content", "blocks", "text") if raw.get(n)), None)
    if isinstance(parts, str) and role != "tool" and raw.keys().isdisjoint(_MAY_ASK):
        return Message(role, parts)
    if isinstance(parts, list):
        parts = [_typed(part) if isinstance(part, dict) else part for part in parts]
    listed = [p for p in parts if isinstance(p, dict)] if isinstance(parts, list) else []
    more = raw.get("additional_kwargs")
    calls: tuple[Call, ...] = ()
    for holder in (raw, more if isinstance(more, dict) else {}):
        calls = (
            calls or calls_in(holder.get("tool_calls")) or calls_in([holder.get("function_call")])
        )
    calls = calls or calls_in([part.get("tool_call") for part in listed])
    calls = calls or calls_in([part for part in listed if part.get("type") in _CALLS])
    for part in listed:
        if part.get("type") in _RESULTS:
            return _result(part)
    text = parts if isinstance(parts, str) else text_in(parts)
    answers = str(raw.get("tool_call_id") or raw.get("id") or "") if role == "tool" else ""
    if not (text or calls or role == "tool"):
        return None
    return Message(role, text or "", calls, answers)


_WRAPPED = {
    **dict.fromkeys(("toolUse", "function_call", "functionCall"), "tool_use"),
    **dict.fromkeys(("toolResult", "function_response", "functionResponse"), "tool_result"),
}
"""Parts that Bedrock's and Gemini's APIs name by a key instead of a type."""


def _typed(part: dict[str, Any]) -> dict[str, Any]:
    for name, kind in _WRAPPED.items():
        if isinstance(inner := part.get(name), dict):
            return {"type": kind, "id": inner.get("toolUseId"), **inner}
    return part


def content_parts(text: Any) -> Any:
    """The parts of a message that were written as a JSON text; any other value unchanged."""
    parts = structured(text)
    known = {"text", *_WRAPPED}
    are_parts = isinstance(parts, list) and all(
        isinstance(part, dict) and part.keys() & known for part in parts
    )
    return parts if are_parts else text


def _result(part: Mapping[str, Any]) -> Message:
    """What a tool gave back, as a part of a message."""
    origin = part.get("origin")
    names = ("id", "call_id", "tool_call_id", "toolCallId")
    holders = (part, origin if isinstance(origin, dict) else {})
    answers = next((h[name] for h in holders for name in names if h.get(name)), "")
    given = next((part[n] for n in ("result", "response", "output", "content") if n in part), None)
    text = given if isinstance(given, str) else text_in(given) or result_text(given)
    return Message("tool", text or "", (), str(answers))


def result_text(value: Any, shown: str | None = None) -> str | None:
    """A tool's result as a text, out of a message or an object around it; None for nothing.

    ``shown``: what the model was shown of it, which tells an object without a text better.
    """
    if isinstance(value, str):
        return value
    found = shown if value is None else _inner_text(value) or shown
    if found is not None or value is None:
        return found
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


_RESULT_NAMES = (
    *("output", "tool_output", "result", "content", "kwargs", "data", "outputs", "text", "value"),
)


def _inner_text(value: Any) -> str | None:
    if not isinstance(value, dict):
        return text_in(value) if isinstance(value, list) else None
    if isinstance(value.get("blocks"), list):
        return text_in(value["blocks"])
    for name in _RESULT_NAMES:
        inner = value.get(name)
        if isinstance(inner, str) and inner.strip():
            return inner
        if isinstance(inner, dict) and (text := _inner_text(inner)):
            return text
        if isinstance(inner, list) and (text := text_in(inner)):
            return text
    return None


_MAY_ASK = frozenset({"tool_calls", "function_call", "additional_kwargs"})


def calls_in(raw: Any) -> tuple[Call, ...]:
    """The calls of tools in a list, as OpenAI, LangChain, Anthropic, the GenAI conventions and the
    Vercel AI SDK write them."""
    value = structured(raw)
    calls = []
    for item in value if isinstance(value, list) else ():
        if not isinstance(item, dict):
            continue
        inner = item.get("function")
        called = inner if isinstance(inner, dict) else item
        name = called.get("name") or called.get("toolName") or called.get("tool_name")
        names = ("arguments", "args", "input")
        given = next((called[n] for n in names if called.get(n) is not None), None)
        identity = item.get("id") or item.get("call_id") or item.get("toolCallId") or ""
        if isinstance(name, str) and name:
            calls.append(Call(str(identity), name, structured(given)))
    return tuple(calls)


_TEXT_TYPES = (None, "text", "output_text", "input_text")


def text_in(parts: Any) -> str | None:
    """The text of a message's parts, of the type text alone; None when there is none."""
    if isinstance(parts, str):
        return parts or None
    if isinstance(parts, dict):
        parts = [parts]
    texts = []
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and (
            part.get("type", part.get("kind")) in _TEXT_TYPES or part.get("block_type") == "text"
        ):
            inner = part.get("content", part.get("text"))
            texts += [inner] if isinstance(inner, str) else []
    return "\n".join(texts) or None


_MESSAGE_LISTS = (
    *("messages", "generations", "choices", "replies", "output", "prompts", "input", "contents"),
)


def messages_in(value: Any) -> list[Message]:
    """The messages of a value: a list, or an object that holds them under a usual name."""
    value = opened(value)
    if isinstance(value, dict):
        if isinstance(inner_message := value.get("content"), dict) and "parts" in inner_message:
            value = inner_message
        for name in _MESSAGE_LISTS:
            held = value.get(name)
            if isinstance(held, list) and held and (inner := messages_in(held)):
                return inner
        value = [value]
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        if value[0] and message_of(value[0]) is not None:
            break
        value = value[0]
    found: list[Message] = []
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and isinstance(item.get("message"), dict):
            item = item["message"]  # of a choice, of a generation
        message = message_of(item)
        if message is not None:
            found.append(message)
    return found


def last_answer(messages: Sequence[Message]) -> str | None:
    """The text of the last message when the assistant said it and asks for nothing more."""
    for message in reversed(messages):
        if message.role in ("user", "tool") or message.calls:
            return None
        if message.role in ("assistant", "") and message.text.strip():
            text: str = message.text
            return text
    return None


def last_question(messages: Sequence[Message]) -> str | None:
    """The last message of the user with a text."""
    asked: list[str] = [m.text for m in messages if m.role == "user" and m.text.strip()]
    return asked[-1] if asked else None


def is_literal(text: str) -> bool:
    """Whether a text is a value of a program that says nothing: null, None, true."""
    return _LITERAL.fullmatch(text.strip()) is not None


def is_label(text: str) -> bool:
    """Whether a text is one word as programs write it, or a JSON object of such words and numbers.
    A route or a verdict is one; ``yes`` may be one, ``Yes`` is not."""
    fields = structured(text.strip())
    if isinstance(fields, dict):
        return all(not isinstance(item, str) or is_label(item) for item in fields.values())
    return bool(_LABEL.fullmatch(text.strip())) or is_literal(text)


def is_sentence(text: str) -> bool:
    """Whether a text reads as more than a name of a kind or of a step."""
    return len(text.split()) > 3 or len(text) > 40 or text.rstrip()[-1:] in ".!?。！？…।؟"


def question_in(value: Any, depth: int = 0) -> str | None:
    """The user's words in a step's input; None without any."""
    return _words(value, INPUT_NAMES, {}, depth)


def answer_in(value: Any, given: Any = None) -> str | None:
    """The answer in a step's output; None without any.

    ``given``: what went in; what an object of it holds as well is no answer.
    """
    inputs = opened(given)
    return _words(value, OUTPUT_NAMES, inputs if isinstance(inputs, dict) else {}, 0)


def _words(value: Any, names: Sequence[str], given: Mapping[str, Any], depth: int) -> str | None:
    value = opened(value)
    if isinstance(value, str):
        is_none = is_printed(value) or (names is OUTPUT_NAMES and is_literal(value))
        return value if value.strip() and not is_none else None
    if depth > _MOST_DEPTH:
        return None
    is_output = names is OUTPUT_NAMES
    if messages := messages_in(value):
        return last_answer(messages) if is_output else last_question(messages)
    if isinstance(value, list):
        if len(value) == 1:
            return _words(value[0], names, given, depth + 1)
        return text_in(value) if is_output and value and _are_parts(value) else None
    if not isinstance(value, dict):
        return None
    value = {name: item for name, item in value.items() if given.get(name) != item or item is None}
    for name in names:
        held = value.get(name)
        inner = given.get(name) if isinstance(given.get(name), dict) else {}
        if is_output and name in _WEAK_NAMES and isinstance(held, str) and is_label(held):
            continue
        if held and (text := _words(held, names, inner or {}, depth + 1)):
            return text
    if value.get("blocks") and (text := text_in(value["blocks"])):
        return text
    within = [item for item in value.values() if isinstance(item, dict)]
    texts = {text for item in within if (text := _words(item, names, {}, depth + 1))}
    return texts.pop() if len(texts) == 1 else None


def reply_text(fields: Any) -> str | None:
    """The answer in the fields of a structured reply: the usual name, else the only sentence."""
    fields = structured(fields)
    if not isinstance(fields, dict):
        return None
    texts = [text for text in fields.values() if isinstance(text, str) and is_sentence(text)]
    named = (fields[name] for name in OUTPUT_NAMES if isinstance(fields.get(name), str))
    return next(named, None) or (texts[0] if len(texts) == 1 else None)


def _are_parts(items: Sequence[Any]) -> bool:
    return all(isinstance(item, dict) and item.get("type") in _TEXT_TYPES[1:] for item in items)


def only_text(value: Any, given: Any = None) -> str | None:
    """The only text of an object beside its input; None when there is none or more."""
    value, inputs = opened(value), opened(given)
    if not isinstance(value, dict):
        return None
    known = inputs if isinstance(inputs, dict) else {}
    for wrapper in ("inputs", "outputs"):  # beside what callbacks say of the step
        if isinstance(value.get(wrapper), dict):
            return only_text(value[wrapper], known.get("inputs"))
    texts = [
        text
        for name, text in value.items()
        if isinstance(text, str) and text.strip() and known.get(name) != text
    ]
    return texts[0] if len(texts) == 1 and not is_printed(texts[0]) else None


def words_in(value: Any, side: str, field: str | None = None) -> str | None:
    """The question (``in``) or the answer (``out``) in a value of a row; None when it says none.

    ``field``: the name that the user gave for it. An object with one text alone is that.
    """
    value = structured(value)
    if field and isinstance(value, dict) and isinstance(value.get(field), str):
        text: str = value[field]
        return text
    words = question_in(value) if side == "in" else answer_in(value)
    return words if words is not None or messages_in(value) else only_text(value)


def rest_of(value: Any, words: str | None) -> dict[str, Any]:
    """The rest of an object beside the words that were taken from it, and beside its messages."""
    value = structured(value)
    fields = value if isinstance(value, dict) else {}
    said = bool(messages_in(value))
    return {
        name: item
        for name, item in fields.items()
        if item != words and not (said and name in ("messages", "role", "content", "type"))
    }


_DOCUMENT_TEXTS = ("page_content", "content", "text")
_DOCUMENT_SIGNS = ("metadata", "meta", "score", "id", "id_", "source", "page_content")


def documents_in(value: Any) -> list[dict[str, Any]]:
    """The passages in a step's output: a list of objects with a text and what documents have beside
    it, or an object that holds such a list; [] for anything else."""
    value = opened(value)
    if isinstance(value, dict):
        named = (value.get(name) for name in ("documents", "output", "outputs", "nodes", "result"))
        value = next((held for held in named if isinstance(held, list | dict) and held), None)
        if isinstance(value, dict):
            return documents_in(value)
    rows = [document_of(item) for item in value] if isinstance(value, list) else []
    return [row for row in rows if row is not None] if rows and all(rows) else []


def document_of(item: Any) -> dict[str, Any] | None:
    """A document of LangChain (also serialised), LlamaIndex, Haystack or MLflow by its fields, or
    any object with a text and a sign of a document. None for anything else."""
    item = opened(item)
    if not isinstance(item, dict):
        return None
    inner = item.get("node", item.get("kwargs"))
    if isinstance(inner, dict):
        item = {**inner, **({"score": item["score"]} if "score" in item else {})}
    if not any(isinstance(item.get(name), str) for name in _DOCUMENT_TEXTS):
        return None
    if "role" in item or str(item.get("type")) in _ROLES:
        return None  # a message
    if not any(name in item for name in _DOCUMENT_SIGNS):
        return None
    names = {"meta": "metadata", "id_": "id"}
    if "class_name" in item or inner is not None:
        kept = (*_DOCUMENT_TEXTS, *_DOCUMENT_SIGNS)
        item = {name: field for name, field in item.items() if name in kept}
    return {names.get(name, name): field for name, field in item.items()}


_USAGE_HOLDERS = (
    *("usage", "token_usage", "usage_metadata", "llm_output", "raw", "message", "kwargs"),
    *("generations", "response_metadata", "data", "messages", "replies", "meta"),
)
_TOKENS = {
    "input_tokens": ("input_tokens", "prompt_tokens", "promptTokens", "inputTokens"),
    "output_tokens": ("output_tokens", "completion_tokens", "completionTokens", "outputTokens"),
}


def tokens_in(value: Any, depth: int = 0) -> dict[str, int]:
    """How many tokens the reply of a model says that it took and gave; {} where it does not."""
    if isinstance(value, list) and len(value) == 1:
        return tokens_in(value[0], depth)
    if not isinstance(value, dict) or depth > 6:
        return {}
    counts: dict[str, int] = {}
    for name, keys in _TOKENS.items():
        told = [value[key] for key in keys if type(value.get(key)) is int and value[key] >= 0]
        counts |= {name: told[0]} if told else {}
    inner = (tokens_in(value.get(name), depth + 1) for name in _USAGE_HOLDERS if name in value)
    return counts or next((found for found in inner if found), {})


def texts_within(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text in a value, at any depth, JSON opened."""
    value = opened(value)
    if isinstance(value, str):
        yield value
    elif depth < 12:
        inner = value.values() if isinstance(value, dict) else value
        for item in inner if isinstance(value, dict | list) else ():
            yield from texts_within(item, depth + 1)


def nanoseconds(value: Any) -> int:
    """A time such as 2024-01-01T00:00:02.5Z in nanoseconds since 1970; 0 for anything else.

    A whole number is taken as nanoseconds already.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 1e17:
        return value
    if not isinstance(value, str):
        return 0
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return 0
    passed = time.replace(tzinfo=time.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1000
