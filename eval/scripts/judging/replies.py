"""What is sent to a judge's server, and what its answer says, for each way to ask for JSON.

``records.verdicts.MODES`` names the ways. The fields are those of the OpenAI API that other servers
imitate.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import msgspec
import orjson

from clients.http import CallError
from judging.types import JudgeTask, Usage
from records.verdicts import MODES

HELD = MODES[:2]
"""Ways in which the server itself keeps the model to the schema, whatever the prompt says."""

NAME = "verdict"
"""Name of the schema and of the function."""

OURS = frozenset({"model", "messages", "response_format", "tools", "tool_choice", "stream", "n"})
"""Fields that no user may set: the answer could not be read any more."""

RENAMED = {"max_tokens": "max_completion_tokens"}
"""Newer models know the limit by another name."""

CHARACTERS_A_TOKEN = 8

_RUN = re.compile(r"(.)\1{3,}", re.DOTALL)

_UNKNOWN = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not (?:permitted|allowed)|"
    r"forbidden|invalid|deprecated|does not accept|only the default|must be (?:strictly )?positive",
    re.IGNORECASE,
)

_SIZE = re.compile(r"too (?:large|long|many)|maximum|at most|exceed|less than", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """What the user wants sent beside the prompt. None is not sent; ``extra`` as it stands.

    Equal to itself alone: 0 and 0.0 are written differently. The seed of repeat n is ``seed + n``.
    Raises ValueError for an extra field that is ours.
    """

    temperature: float | None = 0.0
    seed: int | None = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if taken := sorted(OURS & self.extra.keys()):
            raise ValueError(f"{taken[0]} is set by the toolkit and cannot be an extra parameter")


class ServerCapabilities(msgspec.Struct, frozen=True):
    """What the server turned out to do: the way that works, and the parameters that it refused."""

    mode: str
    dropped: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def sent_parameters(
    sampling: Sampling, capabilities: ServerCapabilities, max_tokens: int, repeat: int = 0
) -> Mapping[str, Any]:
    """The parameters that a request really carries, beside model, messages and schema; calls share
    them, so nobody may change them."""
    seed = None if sampling.seed is None else sampling.seed + repeat
    parameters = {"temperature": sampling.temperature, "seed": seed, "max_tokens": max_tokens}
    for old, new in RENAMED.items():
        if old in capabilities.dropped:
            parameters[new] = parameters[old]
    parameters |= sampling.extra
    return {
        name: value
        for name, value in parameters.items()
        if value is not None and name not in capabilities.dropped
    }


def request_body(
    model: str,
    messages: Sequence[Mapping[str, str]],
    schema: Mapping[str, Any],
    mode: str,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """The JSON body of one chat completion."""
    body: dict[str, Any] = {"model": model, "messages": [dict(message) for message in messages]}
    body |= parameters
    if mode == "json_schema":
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": NAME, "strict": True, "schema": schema},
        }
    elif mode == "json_object_schema":
        body["response_format"] = {"type": "json_object", "schema": schema}
    elif mode == "tool":
        function = {"name": NAME, "description": "Hand in the verdict.", "parameters": schema}
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": NAME}}
    else:
        last = body["messages"][-1]
        last["content"] = f"{last['content']}\n\n{_in_words(schema)}"
        if mode == "json_object":
            body["response_format"] = {"type": "json_object"}
    return body


def _in_words(schema: Mapping[str, Any]) -> str:
    text = orjson.dumps(schema).decode()
    return f"Reply with one JSON object that fits this JSON schema, and with nothing else:\n{text}"


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """An answer of the server. ``calls``: how many function calls it holds."""

    text: str
    finish_reason: str | None
    refusal: str | None
    usage: Usage
    model: str | None
    fingerprint: str | None
    calls: int = 0


def read_answer(payload: Any) -> ServerAnswer:
    """What a chat completion says. Raises CallError when it is none."""
    if isinstance(payload, dict) and payload.get("error"):
        raise CallError("server_error", f"the server reports an error: {_error_text(payload)}")
    choices = payload.get("choices") if isinstance(payload, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise CallError("malformed", "the answer is no chat completion: it has no message")
    calls = message.get("tool_calls") or []
    calls = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    text = _arguments(calls[0]) if calls else _text(message.get("content"))
    reason = choice.get("finish_reason")
    refusal = message.get("refusal") or None
    if reason == "content_filter":
        refusal = refusal or "stopped by the server's content filter"
    return ServerAnswer(
        text=text,
        finish_reason=reason if isinstance(reason, str) else None,
        refusal=None if refusal is None else str(refusal),
        usage=_read_usage(payload.get("usage")),
        model=_string(payload.get("model")),
        fingerprint=_string(payload.get("system_fingerprint")),
        calls=len(calls),
    )


def _arguments(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()


def _text(content: Any) -> str:
    """A message's text, which some servers cut into parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _error_text(payload: Mapping[str, Any]) -> str:
    error = payload.get("error")
    detail = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(detail).split())[:200]


def _read_usage(raw: Any) -> Usage:
    """The tokens that a server counted; None for what it does not say.

    A prompt of 0 tokens is not possible: some servers write 0 for a prompt that they had in memory.
    """
    if not isinstance(raw, dict):
        return Usage()

    def count(table: Any, name: str) -> int | None:
        value = table.get(name) if isinstance(table, dict) else None
        return value if isinstance(value, int) and value is not True and value >= 0 else None

    return Usage(
        prompt_tokens=count(raw, "prompt_tokens") or None,
        completion_tokens=count(raw, "completion_tokens"),
        total_tokens=count(raw, "total_tokens") or None,
        cached_tokens=count(raw.get("prompt_tokens_details"), "cached_tokens"),
        reasoning_tokens=count(raw.get("completion_tokens_details"), "reasoning_tokens"),
    )


def cut_prompt(usage: Usage, messages: Sequence[Mapping[str, str]]) -> str | None:
    """A sentence when the server counted too few tokens for what was sent; None if all is well.

    No tokeniser makes less of a text than a token for 8 characters, a run of one character aside.
    """
    counted = usage.prompt_tokens
    if counted is None:
        return None
    if (usage.cached_tokens or 0) > counted:
        counted += usage.cached_tokens or 0  # some count what they had in memory apart
    texts = [message["content"] for message in messages]
    if counted * CHARACTERS_A_TOKEN >= sum(map(len, texts)):
        return None
    length = sum(len(_RUN.sub(r"\1", text)) for text in texts)
    if counted * CHARACTERS_A_TOKEN >= length:
        return None
    return (
        f"the server counted {counted:,} tokens for {length:,} characters: it cut the prompt; give "
        "the model a longer context"
    )


def refused_parameter(error: CallError, parameters: Mapping[str, Any]) -> str | None:
    """The parameter that the server does not know, when an HTTP 400 or 422 names one that was sent.

    A value that is only too large is no such case.
    """
    if error.status not in (400, 422):
        return None
    text = error.body.decode("utf-8", "replace")
    try:
        details = orjson.loads(error.body).get("error")
    except (orjson.JSONDecodeError, AttributeError):
        details = None
    if isinstance(details, dict):
        text = f"{details.get('message') or ''} {details.get('code') or ''}"
        if details.get("param") in parameters and not _SIZE.search(text):
            return str(details["param"])
    if not _UNKNOWN.search(text) or _SIZE.search(text):
        return None
    named = [name for name in parameters if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    return named[0] if named else None


MOST_PROBLEMS = 5

FINISHED = {"tool": frozenset({"stop", "tool_calls", "function_call"})}
"""Reasons to end that are no cut, by mode; ``stop`` alone for the others."""

_FENCE = re.compile(r"```[A-Za-z]*[ \t]*\r?\n")

_COMMAS = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[}\]])', re.DOTALL)


class BadReply(ValueError):
    """Why a reply cannot be used, in words that can be sent back; ``kind`` as in FAILURES."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def _without_thoughts(text: str) -> str:
    """The reply without a leading ``<think>…</think>``, also when the opening mark is missing."""
    text = text.strip()
    if text.startswith(("{", "```")):
        return text
    rest = text.partition("</think>")[2].strip()
    # without the opening mark the closing one may as well stand in a quote
    ended = "</think>" in text and (text.startswith("<think>") or rest.startswith(("{", "```")))
    return rest if ended else text


def _parse_object(text: str, extract: bool = False) -> tuple[dict[str, Any], bool]:
    """The one JSON object of a reply, and whether something in or around it had to be mended.

    ``extract``: prose around the object is allowed. Raises BadReply of kind ``malformed``.
    """
    text = _without_thoughts(text)
    if not text:
        raise BadReply("malformed", "the reply is empty")
    opening = _FENCE.match(text)
    fenced = opening is not None and text.endswith("```") and len(text) >= opening.end() + 3
    if opening is not None and fenced:
        text = text[opening.end() : -3].strip()
    elif extract:
        text = text[max(text.find("{"), 0) : text.rfind("}") + 1] or text
    try:
        value, mended = _loads(text)
    except json.JSONDecodeError as error:
        raise BadReply("malformed", _syntax(error)) from None
    except ValueError as error:
        raise BadReply("malformed", str(error)) from None
    except RecursionError:
        raise BadReply("malformed", "the JSON is nested too deeply") from None
    if not isinstance(value, dict):
        raise BadReply("malformed", "the reply is JSON, but no object")
    return value, mended or fenced


def _loads(text: str) -> tuple[Any, bool]:
    try:
        return _parsed(text), False
    except json.JSONDecodeError:
        cut = _COMMAS.sub(lambda match: match.group(1) or "", text)
        return _parsed(cut, strict=False), True


def _parsed(text: str, strict: bool = True) -> Any:
    """``strict``: no control characters in strings. Raises ValueError for what is no JSON."""
    value = _decoder(strict).decode(text)
    try:
        orjson.dumps(value)
    except TypeError:  # half a surrogate pair, a number of more than 64 bits
        raise ValueError("the JSON holds a character or number that no file can hold") from None
    return value


@cache
def _decoder(strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        strict=strict,
        parse_constant=_no_number,
        parse_float=_finite,
        object_pairs_hook=_no_duplicates,
    )


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:60]!r} comes twice in one object")
    return table


def _syntax(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "the reply holds more than one JSON value; one object is wanted and nothing else"
    return f"the reply is no valid JSON: {error.msg}, line {error.lineno} column {error.colno}"


class SchemaChecker:
    """What a JSON schema says against objects; each schema is compiled once."""

    def __init__(self) -> None:
        self._compiled: dict[bytes, Any] = {}
        self._quick: dict[int, tuple[Mapping[str, Any], _Fits]] = {}
        """By the identity of the schema, which is kept so that no other takes its id."""

    def problems(self, value: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
        """At most five sentences that name the place and the fault; none for a fitting object."""
        quick = self._quick.get(id(schema))
        if quick is None:
            if len(self._quick) >= MOST_SCHEMAS:
                self._quick.clear()
            quick = self._quick[id(schema)] = schema, _surely_fits(schema)
        if quick[1](value):
            return []
        from jsonschema import Draft202012Validator

        key = orjson.dumps(schema)
        validator = self._compiled.get(key)
        if validator is None:
            validator = self._compiled[key] = Draft202012Validator(schema)
        problems = []
        for error in validator.iter_errors(value):
            path = error.json_path.removeprefix("$").lstrip(".")
            problems.append(f"{path or 'the object'}: {error.message[:200]}")
            if len(problems) == MOST_PROBLEMS:
                break
        return problems


MOST_SCHEMAS = 1024

UNDERSTOOD = {
    "object": frozenset({"type", "properties", "required", "additionalProperties"}),
    "array": frozenset({"type", "items", "minItems", "maxItems"}),
    "string": frozenset({"type", "enum", "maxLength"}),
    "boolean": frozenset({"type"}),
}
"""Schema words that ``_surely_fits`` understands, by type."""

NO_WORDS: frozenset[str] = frozenset()


_Fits = Callable[[Any], bool]


def _surely_fits(schema: Any) -> _Fits:
    """A function that is true only of values that are valid, in a fraction of the full validator's
    time. False says nothing: a value may be wrong, or the schema have words beyond the usual ones.
    """
    kind = schema.get("type") if type(schema) is dict else None
    if not isinstance(kind, str) or not schema.keys() <= UNDERSTOOD.get(kind, NO_WORDS):
        return lambda value: False
    if kind == "boolean":
        return lambda value: isinstance(value, bool)
    if kind == "string":
        longest, among = schema.get("maxLength", math.inf), schema.get("enum")
        return lambda value: (
            isinstance(value, str) and len(value) <= longest and (among is None or value in among)
        )
    if kind == "array":
        fits_item = _surely_fits(schema.get("items", {}))
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        return lambda value: (
            isinstance(value, list) and least <= len(value) <= most and all(map(fits_item, value))
        )
    fields = {name: _surely_fits(part) for name, part in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))

    def fits(value: Any) -> bool:
        if not isinstance(value, dict) or not required <= value.keys() <= fields.keys():
            return False
        return all(fields[name](member) for name, member in value.items())

    return fits


@dataclass(frozen=True, slots=True)
class CheckedReply:
    """A reply that can be used, and its text as it came."""

    data: Mapping[str, Any]
    raw: str
    repaired: bool


def check_answer(
    answer: ServerAnswer, task: JudgeTask, mode: str, schemas: SchemaChecker
) -> CheckedReply:
    """The checked object of an answer to ``task``. Raises BadReply.

    Why the model stopped is looked at first: nothing is read from a reply that was cut.
    """
    if answer.refusal is not None:
        raise BadReply("refused", answer.refusal[:500])
    if answer.finish_reason not in FINISHED.get(mode, {"stop"}):
        reason = answer.finish_reason or "not told"
        raise BadReply("truncated", f"the reply is not complete (finish_reason: {reason})")
    if answer.calls > 1:
        raise BadReply("malformed", "the reply holds more than one function call; one is wanted")
    data, repaired = _parse_object(answer.text, extract=mode == "plain")
    if problems := schemas.problems(data, task.schema):
        raise BadReply("schema", "\n".join(problems))
    if problems := list(task.check(data)):
        raise BadReply("incomplete", "\n".join(problems))
    return CheckedReply(data, answer.text, repaired)


def ask_again(
    messages: Sequence[Mapping[str, str]], reply: str, problems: Sequence[str]
) -> list[Mapping[str, str]]:
    """The conversation with the bad reply and what is wrong with it: a changed prompt."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    text = (
        f"Your reply cannot be used:\n{listed}\n"
        "Reply again to the same request, with one complete and corrected JSON object only."
    )
    shown = _without_thoughts(reply) or "(an empty reply)"
    return [
        *messages,
        {"role": "assistant", "content": shown},
        {"role": "user", "content": text},
    ]
