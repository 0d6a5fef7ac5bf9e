"""From the text of a reply to one checked JSON object. Nothing is guessed.

Taken off: what a model thinks aloud before the object, one code fence around it, and commas before
a closing bracket. Line breaks and other control characters may stand in strings as they are. Not
mended: a cut reply, two objects, NaN, a key that comes twice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from clients.judge_bodies import Said
from clients.judge_types import JudgeTask

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


def without_thoughts(text: str) -> str:
    """The reply without a leading ``<think>…</think>``, also when the opening mark is missing."""
    text = text.strip()
    if text.startswith(("{", "```")):
        return text
    rest = text.partition("</think>")[2].strip()
    # without the opening mark the closing one may as well stand in a quote
    ended = "</think>" in text and (text.startswith("<think>") or rest.startswith(("{", "```")))
    return rest if ended else text


def parse_object(text: str, extract: bool = False) -> tuple[dict[str, Any], bool]:
    """The one JSON object of a reply, and whether something in or around it had to be mended.

    ``extract``: prose around the object is allowed. Raises BadReply of kind ``malformed``.
    """
    text = without_thoughts(text)
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
        cut = _COMMAS.sub(lambda found: found.group(1) or "", text)
        return _parsed(cut, strict=False), True


def _parsed(text: str, strict: bool = True) -> Any:
    """``strict``: no control characters in strings. Raises ValueError for what is no JSON."""
    value = json.loads(
        text,
        strict=strict,
        parse_constant=_no_number,
        parse_float=_finite,
        object_pairs_hook=_no_duplicates,
    )
    try:
        orjson.dumps(value)
    except TypeError:  # half a surrogate pair, a number of more than 64 bits
        raise ValueError("the JSON holds a character or number that no file can hold") from None
    return value


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large a number")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:60]!r} comes twice in one object")
    return found


def _syntax(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "the reply holds more than one JSON value; one object is wanted and nothing else"
    return f"the reply is no valid JSON: {error.msg}, line {error.lineno} column {error.colno}"


class SchemaChecker:
    """What a JSON schema says against objects; each schema is compiled once."""

    def __init__(self) -> None:
        self._compiled: dict[bytes, Any] = {}

    def problems(self, value: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
        """At most five sentences that name the place and the fault; none for a fitting object."""
        if surely_fits(value, schema):
            return []
        from jsonschema import Draft202012Validator

        key = orjson.dumps(schema)
        validator = self._compiled.get(key)
        if validator is None:
            validator = self._compiled[key] = Draft202012Validator(schema)
        found = []
        for error in validator.iter_errors(value):
            place = error.json_path.removeprefix("$").lstrip(".")
            found.append(f"{place or 'the object'}: {error.message[:200]}")
            if len(found) == MOST_PROBLEMS:
                break
        return found


KNOWN = {
    "object": frozenset({"type", "properties", "required", "additionalProperties"}),
    "array": frozenset({"type", "items", "minItems", "maxItems"}),
    "string": frozenset({"type", "enum", "maxLength"}),
    "boolean": frozenset({"type"}),
}
"""Schema words that ``surely_fits`` understands, by type."""
NO_WORDS: frozenset[str] = frozenset()


def surely_fits(value: Any, schema: Any) -> bool:
    """True only if ``value`` is valid, in a tenth of the time that the full validator takes.

    False says nothing: the value may be wrong, or the schema have words beyond the usual ones.
    """
    if type(schema) is not dict:
        return False
    kind = schema.get("type")
    if not isinstance(kind, str) or not schema.keys() <= KNOWN.get(kind, NO_WORDS):
        return False
    if kind == "string":
        most, among = schema.get("maxLength"), schema.get("enum")
        return (
            isinstance(value, str)
            and (most is None or len(value) <= most)
            and (among is None or value in among)
        )
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "array":
        item, least = schema.get("items", {}), schema.get("minItems", 0)
        if not isinstance(value, list) or not least <= len(value) <= schema.get(
            "maxItems", math.inf
        ):
            return False
        return all(surely_fits(one, item) for one in value)
    fields = schema.get("properties", {})
    if not isinstance(value, dict) or not value.keys() <= fields.keys():
        return False
    for name, one in value.items():
        if not surely_fits(one, fields[name]):
            return False
    return value.keys() >= set(schema.get("required", ()))


@dataclass(frozen=True, slots=True)
class Checked:
    """A reply that can be used, and its text as it came."""

    data: Mapping[str, Any]
    raw: str
    repaired: bool


def check_answer(said: Said, task: JudgeTask, mode: str, schemas: SchemaChecker) -> Checked:
    """The checked object of an answer to ``task``. Raises BadReply.

    Why the model stopped is looked at first: nothing is read from a reply that was cut.
    """
    if said.refusal is not None:
        raise BadReply("refused", said.refusal[:500])
    if said.finish_reason not in FINISHED.get(mode, {"stop"}):
        reason = said.finish_reason or "not told"
        raise BadReply("truncated", f"the reply is not complete (finish_reason: {reason})")
    if said.calls > 1:
        raise BadReply("malformed", "the reply holds more than one function call; one is wanted")
    data, repaired = parse_object(said.text, extract=mode == "plain")
    if problems := schemas.problems(data, task.schema):
        raise BadReply("schema", "\n".join(problems))
    if problems := list(task.check(data)):
        raise BadReply("incomplete", "\n".join(problems))
    return Checked(data, said.text, repaired)


def ask_again(
    messages: Sequence[Mapping[str, str]], reply: str, problems: Sequence[str]
) -> list[Mapping[str, str]]:
    """The conversation with the bad reply and what is wrong with it: a changed prompt."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    text = (
        f"Your reply cannot be used:\n{listed}\n"
        "Reply again to the same request, with one complete and corrected JSON object only."
    )
    shown = without_thoughts(reply) or "(an empty reply)"
    return [
        *messages,
        {"role": "assistant", "content": shown},
        {"role": "user", "content": text},
    ]
