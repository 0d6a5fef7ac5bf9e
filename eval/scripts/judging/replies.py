"""Whether a reply of a judge can be used: one whole JSON object that fits what was asked for.

``records.verdicts.MODES`` names the ways to ask for JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson

from judging.protocols import ServerAnswer
from judging.types import JudgeTask
from records.verdicts import MODES

HELD = MODES[:2]
"""Ways in which the server itself keeps the model to the schema, whatever the prompt says."""

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
    """The reply without a leading ``<think>…</think>``, also when the opening mark is missing.

    Bedrock writes the thoughts of OpenAI's open models as ``<reasoning>…</reasoning>``.
    """
    text = text.strip()
    if text.startswith(("{", "```")):
        return text
    for name in ("think", "reasoning"):
        rest = text.partition(f"</{name}>")[2].strip()
        # without the opening mark the closing one may as well stand in a quote
        if text.startswith(f"<{name}>") or rest.startswith(("{", "```")):
            return rest if f"</{name}>" in text else text
    return text


def is_thought(answer: ServerAnswer) -> bool:
    """Whether a reply is empty, or nothing but the beginning of thoughts."""
    text = answer.text.strip()
    return not text or text.startswith(("<think", "<reasoning"))


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
    """Checks objects by a JSON schema; each schema is compiled once."""

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
    """The conversation with the bad reply and its faults: a changed prompt."""
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
