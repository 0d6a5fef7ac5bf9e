"""The request form of each kind of server, and the meaning of its replies and errors: request out,
reply in.

Nothing else knows the form of a request or a reply. Two forms exist: the chat completions of
OpenAI, which nearly all servers imitate (Azure with another header), and the messages of Anthropic.
The address says which one. Sources: https://platform.openai.com/docs/api-reference/chat (fields as
in openai-python 2.54.0), https://docs.anthropic.com/en/api/messages (anthropic-sdk-python 2.12.0),
https://learn.microsoft.com/azure/ai-foundry/openai/reference,
https://openrouter.ai/docs/api/reference/errors-and-debugging.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
import orjson

from clients.http import RETRIED_STATUS, CallError
from judging.identity import JudgeError, addresses
from judging.types import Usage
from records.verdicts import MODES
from terminal.tables import printable

Messages = Sequence[Mapping[str, str]]

NAME = "verdict"
"""Name of the schema and of the function."""

OURS = frozenset({"model", "messages", "response_format", "tools", "tool_choice", "stream", "n"})
"""Fields that no user may set: the answer could not be read any more."""

RENAMED = {"max_tokens": "max_completion_tokens"}
"""Newer models know the limit by another name."""

REFUSED_TOGETHER = ("max_tokens", "temperature")
"""Parameters that OpenAI's reasoning models refuse. An error names one parameter, and a round of
batches takes hours: whoever refuses one of the two gets neither."""

CHARACTERS_A_TOKEN = 8

_RUN = re.compile(r"(.)\1{3,}", re.DOTALL)

_UNKNOWN = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not (?:permitted|allowed)|"
    r"forbidden|invalid|deprecated|does not accept|only the default|may only be|"
    r"must be (?:strictly )?positive",
    re.IGNORECASE,
)

_SIZE = re.compile(r"too (?:large|long|many)|maximum|at most|exceed|less than", re.IGNORECASE)

_NO_ROOM = "max_tokens or model output limit was reached"
"""What OpenAI answers, with HTTP 400, when a model has thought until its room was used up."""

_FILTERED = re.compile(r"ResponsibleAIPolicyViolation|ContentPolicyViolationError")


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """The user's settings that are sent beside the prompt. None is not sent; ``extra`` is sent
    unchanged.

    Equal to itself alone: 0 and 0.0 are written differently. The seed of repeat n is ``seed + n``.
    Raises ValueError for an extra field that is ours.
    """

    temperature: float | None = 0.0
    seed: int | None = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if taken := sorted(OURS & self.extra.keys()):
            raise ValueError(f"{taken[0]} is set by the toolkit and cannot be an extra parameter")

    def described(self, dropped: Sequence[str]) -> dict[str, Any]:
        """The part that belongs to the judge's description: all that is sent, the room for replies
        apart."""
        asked = {"temperature": self.temperature, "seed": self.seed, **self.extra}
        return {name: asked[name] for name in asked if name not in dropped}


class ServerCapabilities(msgspec.Struct, frozen=True):
    """The observed capabilities of a server: the way that works, and the parameters that it
    refused."""

    mode: str
    dropped: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def sent_parameters(
    sampling: Sampling, capabilities: ServerCapabilities, max_tokens: int, repeat: int = 0
) -> Mapping[str, Any]:
    """The parameters that a request really carries, beside model, messages and schema; calls share
    them: do not change them."""
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


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """An answer of the server. ``calls``: how many function calls it holds.

    ``finish_reason``: in the words of OpenAI, where it has one for it.
    """

    text: str
    finish_reason: str | None
    refusal: str | None
    usage: Usage
    model: str | None
    fingerprint: str | None
    calls: int = 0


@dataclass(frozen=True, slots=True)
class WireForm:
    """How one family of servers is asked and how its replies are read.

    ``path``: below the base of the API. ``key``: the header that carries a key, and its form with
    ``{}`` for the key. ``modes``: ways to ask for JSON, best first. ``dropped``: parameters that it
    does not know. ``body``: of a request, from model, messages, schema, mode and parameters.
    ``read``: the answer in a reply's JSON; raises CallError when it is none. ``prefix``: of a body,
    what comes first for the server and can be in its memory from an earlier prompt.
    """

    path: str
    key: tuple[str, str]
    modes: tuple[str, ...]
    body: Callable[[str, Messages, Mapping[str, Any], str, Mapping[str, Any]], dict[str, Any]]
    read: Callable[[Any], ServerAnswer]
    prefix: Callable[[Mapping[str, Any]], str]
    headers: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()


def request_body(
    model: str,
    messages: Messages,
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
        function = {"name": NAME, "description": HAND_IN, "parameters": schema}
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": NAME}}
    else:
        _put_in_words(body["messages"], schema)
        if mode == "json_object":
            body["response_format"] = {"type": "json_object"}
    return body


HAND_IN = "Hand in the verdict."


def _put_in_words(messages: list[dict[str, Any]], schema: Mapping[str, Any]) -> None:
    text = orjson.dumps(schema).decode()
    words = "Reply with one JSON object that fits this JSON schema, and with nothing else:"
    messages[-1]["content"] = f"{messages[-1]['content']}\n\n{words}\n{text}"


def message_request(
    model: str,
    messages: Messages,
    schema: Mapping[str, Any],
    mode: str,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """The JSON body of one request to Anthropic's messages.

    The system prompt, and the form before it, are marked for the server's memory: all calls with a
    prompt share them. One that is too short for it is not kept, and costs nothing more.
    """
    talk = [dict(message) for message in messages if message["role"] != "system"]
    system = [message["content"] for message in messages if message["role"] == "system"]
    own = dict(parameters)
    effort = own.pop("reasoning_effort", None)
    given = own.pop("output_config", {})
    config = dict(given) if isinstance(given, Mapping) else {}
    config |= {"effort": effort} if effort else {}
    body: dict[str, Any] = {"model": model, **own, "messages": talk}
    if system:
        mark = {"cache_control": {"type": "ephemeral"}}
        body["system"] = [{"type": "text", "text": "\n\n".join(system), **mark}]
    if mode == "tool":
        body["tools"] = [{"name": NAME, "description": HAND_IN, "input_schema": schema}]
        body["tool_choice"] = {"type": "tool", "name": NAME}
    elif mode == "json_schema":
        config["format"] = {"type": "json_schema", "schema": schema}
    else:
        _put_in_words(talk, schema)
    return body | ({"output_config": config} if config else {})


def sent_messages(body: Mapping[str, Any]) -> list[dict[str, str]]:
    """The messages that a body was made of. Raises LookupError, TypeError or ValueError for a body
    that is damaged."""
    sent = msgspec.convert(body["messages"], list[dict[str, str]])
    messages = [{name: message[name] for name in ("role", "content")} for message in sent]
    system = body.get("system")
    if system:
        text = system if isinstance(system, str) else system[0]["text"]
        messages.insert(0, {"role": "system", "content": msgspec.convert(text, str)})
    return messages


def sent_schema(body: Mapping[str, Any], mode: str) -> Mapping[str, Any]:
    """The schema that a body asks for; an empty one where only the prompt has it."""
    schema: Any = {}
    if mode == "json_schema":
        config = body.get("output_config")
        schema = config["format"]["schema"] if config else None
        schema = schema or body["response_format"]["json_schema"]["schema"]
    elif mode == "json_object_schema":
        schema = body["response_format"]["schema"]
    elif mode == "tool":
        tool = body["tools"][0]
        schema = tool.get("input_schema") or tool["function"]["parameters"]
    return dict(schema)


def read_answer(payload: Any) -> ServerAnswer:
    """The content of a chat completion. Raises CallError when it is none."""
    if (error := error_within(payload)) is not None:
        raise error
    choices = payload.get("choices") if isinstance(payload, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise CallError("malformed", "the answer is not a chat completion: it has no message")
    calls = message.get("tool_calls") or []
    calls = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    text = _arguments(calls[0]) if calls else _text(message.get("content"))
    reason = choice.get("finish_reason")
    refusal = message.get("refusal") or None
    if isinstance(reason, str) and reason.startswith("content_filter"):
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


STOPS = {
    "tool_use": "tool_calls",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
}
"""Reasons to end in Anthropic's words, and in OpenAI's; others are a cut."""


def read_message(payload: Any) -> ServerAnswer:
    """The content of a reply of Anthropic's messages. Raises CallError when it is none."""
    if (error := error_within(payload)) is not None:
        raise error
    parts = payload.get("content") if isinstance(payload, dict) else None
    if not isinstance(payload, dict) or not isinstance(parts, list):
        raise CallError("malformed", "the answer is not a message: it has no content")
    blocks = [part for part in parts if isinstance(part, dict)]
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    text = orjson.dumps(calls[0].get("input")).decode() if calls else ""
    reason = str(payload.get("stop_reason"))
    refusal = None
    if reason == "refusal":
        why = payload.get("stop_details")
        why = why if isinstance(why, dict) else {}
        told = [str(why[name]) for name in ("category", "explanation") if why.get(name)]
        refusal = ": ".join(["the model declined", *told])
    return ServerAnswer(
        text=text or _text([block for block in blocks if block.get("type") == "text"]),
        finish_reason=STOPS.get(reason, reason),
        refusal=refusal,
        usage=_message_usage(payload.get("usage")),
        model=_string(payload.get("model")),
        fingerprint=None,
        calls=len(calls),
    )


def _message_usage(raw: Any) -> Usage:
    """Anthropic counts what it read from its memory, and what it put there, apart from the rest."""
    fresh, done = _count(raw, "input_tokens"), _count(raw, "output_tokens")
    cached = _count(raw, "cache_read_input_tokens")
    if fresh is None:
        return Usage(completion_tokens=done, cached_tokens=cached)
    prompt = fresh + (cached or 0) + (_count(raw, "cache_creation_input_tokens") or 0)
    thought = _count(raw.get("output_tokens_details"), "thinking_tokens")
    return Usage(prompt or None, done, None if done is None else prompt + done, cached, thought)


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


def _count(table: Any, name: str) -> int | None:
    value = table.get(name) if isinstance(table, dict) else None
    return value if isinstance(value, int) and value is not True and value >= 0 else None


def _read_usage(raw: Any) -> Usage:
    """The tokens that a server counted; None for what it does not say.

    A prompt of 0 tokens is not possible: some servers write 0 for a prompt that they had in memory.
    """
    if not isinstance(raw, dict):
        return Usage()
    return Usage(
        prompt_tokens=_count(raw, "prompt_tokens") or None,
        completion_tokens=_count(raw, "completion_tokens"),
        total_tokens=_count(raw, "total_tokens") or None,
        cached_tokens=_count(raw.get("prompt_tokens_details"), "cached_tokens"),
        reasoning_tokens=_count(raw.get("completion_tokens_details"), "reasoning_tokens"),
    )


def cut_prompt(usage: Usage, messages: Messages) -> str | None:
    """A warning when the server counted too few tokens for the prompt; else None.

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


def error_within(payload: Any) -> CallError | None:
    """The error in a reply whose status says success; None when there is none.

    OpenRouter answers so when a model's host fails after the status was sent. One with a status of
    its own is what that status is, and tried again like it.
    """
    if not isinstance(payload, dict):
        return None
    error = payload.get("error")
    choices = payload.get("choices")
    if not error and isinstance(choices, list) and choices and isinstance(choices[0], dict):
        error = choices[0].get("error")
        if not error and choices[0].get("finish_reason") == "error":
            error = {"code": 502, "message": "the model's host broke off the reply"}
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    kind = "client_error" if status is not None and status < 500 else "server_error"
    return CallError(
        "rate_limited" if status == 429 else kind,
        f"the server reports an error: {error_text(error)}",
        retryable=status in RETRIED_STATUS or status == 408,
        status=status,
        body=orjson.dumps({"error": error}),
    )


def error_text(error: Any) -> str:
    """A server's error message, in one line of at most 300 characters that cannot steer the
    terminal. ``error``: the value of ``error`` in its reply, or the whole reply."""
    while isinstance(error, list) and error:
        error = error[0]
    while isinstance(error, dict) and isinstance(error.get("error"), dict):
        error = error["error"]
    detail = error
    if isinstance(error, dict):
        detail = error.get("message") or error.get("detail") or error.get("error") or error
        raw = error.get("metadata")
        raw = raw.get("raw") if isinstance(raw, dict) else None
        if isinstance(raw, str) and raw:  # "Provider returned error" alone helps no one
            detail = f"{detail}: {raw}"
    return printable(" ".join(str(detail).split()))[:300]


def plain_words(error: CallError) -> str:
    """An error's message, with the server's own words in place of its JSON."""
    try:
        return f"HTTP {error.status}: {error_text(orjson.loads(error.body))}"
    except orjson.JSONDecodeError:
        return error.message


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
        named = details.get("param")
        if isinstance(named, str) and named in parameters and not _SIZE.search(text):
            return named
    if not _UNKNOWN.search(text) or _SIZE.search(text):
        return None
    for name in parameters:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            return name
    return None


def failure_of(error: CallError) -> str:
    """The kind of failure (``judging.types.FAILURES``) that an error of a server is for a verdict.

    A content filter that refuses the prompt is a refusal; a model whose thoughts used up the room
    is a cut reply, although both come with HTTP 400.
    """
    text = error.body.decode("utf-8", "replace")
    try:
        details = orjson.loads(error.body).get("error")
    except (orjson.JSONDecodeError, AttributeError):
        details = None
    table = details if isinstance(details, dict) else {}
    reasons = table.get("metadata")
    flagged = isinstance(reasons, dict) and "flagged_input" in reasons
    if error.kind == "client_error" and (
        table.get("code") == "content_filter" or flagged or _FILTERED.search(text)
    ):
        return "refused"
    if error.status == 400 and _NO_ROOM in text:
        return "truncated"
    return "rejected" if error.kind == "client_error" and not error.retryable else "transport"


def _completion_prefix(body: Mapping[str, Any]) -> str:
    form = body.get("tools") or body.get("response_format") or ""
    return "".join([str(form), *(message["content"] for message in body["messages"])])


def _message_prefix(body: Mapping[str, Any]) -> str:
    return str(body.get("tools", "")) + "".join(part["text"] for part in body.get("system", ()))


OPENAI = WireForm(
    "/chat/completions",
    ("Authorization", "Bearer {}"),
    MODES,
    request_body,
    read_answer,
    _completion_prefix,
)

AZURE = replace(OPENAI, key=("api-key", "{}"))
"""Azure's address of one deployment: the key has a header of its own."""

ANTHROPIC = WireForm(
    "/messages",
    ("x-api-key", "{}"),
    ("tool", "json_schema", "plain"),
    message_request,
    read_message,
    _message_prefix,
    {"anthropic-version": "2023-06-01"},
    ("seed",),
)
"""In the first version of its API, which every gateway knows; the next one, of 2026-10-21, takes no
temperature from any model."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a judge is asked. ``url``: of a request. ``root`` and ``base``: of the server and of
    its API. ``provider``: whose it is, where the address alone says so; ``model``: that it names.
    """

    form: WireForm
    url: str
    root: str
    base: str
    host: str
    provider: str | None = None
    model: str | None = None


def endpoint(url: str) -> Endpoint:
    """The parts of an address. Of its query only ``api-version`` is kept.

    Raises JudgeError when it is no HTTP address, and for a deployment of Azure without a version.
    """
    root, base = addresses(url)
    split = urlsplit(url)
    host = urlsplit(base).hostname or ""
    version = parse_qs(split.query).get("api-version", [""])[-1]
    query = f"?api-version={quote(version)}" if version else ""
    deployment = re.search(r"/deployments/([^/]+)$", base)
    if split.path.rstrip("/").endswith(ANTHROPIC.path):
        form, provider, model = ANTHROPIC, "anthropic", None
    elif deployment:
        form, provider, model = AZURE, "azure", deployment[1]
        if not version:
            raise JudgeError(
                "the judge's address names a deployment of Azure, which needs its version: add "
                "?api-version=2024-10-21, or take the address that ends in /openai/v1."
            )
    else:
        return Endpoint(OPENAI, f"{base}{OPENAI.path}{query}", root, base, host)
    return Endpoint(form, f"{base}{form.path}{query}", root, base, host, provider, model)
