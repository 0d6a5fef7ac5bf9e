"""Verdict lines: what verdicts.jsonl holds of every judgement, and how it is read again.

A line for each case, repeat of the answer, metric, opinion of the judge and part (blocks of twenty
items; single chunks). The file is only appended to; the last line of a key wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import orjson

import storage
from clients import judge_prompts
from clients.judge_types import JudgeIdentity, Verdict
from judging.asking import Opinion, sum_of, usage_of
from judging.subject import Subject
from judging.tasks import KINDS, Item, Material, ids_of

FILE = "verdicts.jsonl"
WRONG_SHAPE = (KeyError, TypeError)
T = TypeVar("T")
Line = dict[str, Any]
Key = tuple[str, int, str, int, int]
"""case id, repeat of the answer, metric, opinion, part."""


def _line(subject: Subject, metric: str, status: str, repeat: int = 0, **more: Any) -> Line:
    base: Line = {
        "schema": storage.SCHEMA,
        "case_id": subject.case.id,
        "repeat": subject.result.repeat,
        "metric": metric,
        "judge_repeat": repeat,
        "part": 0,
        "parts": 1,
        "status": status,
        "reason": None,
        "failure": None,
        "prompt": _prompt(metric),
        "key": "",
        "cached": False,
        "subject": subject.fingerprint,
        "input": {},
        "messages": [],
        "raw": "",
        "verdicts": [],
        "extra": {},
        "mode": "",
        "usage": {},
        "cost_usd": None,
        "attempts": 0,
        "asks": 0,
        "seconds": None,
    }
    return base | more


def _prompt(metric: str) -> dict[str, Any]:
    known = judge_prompts.load(KINDS[metric].prompt).id
    return {"name": known.name, "version": known.version, "sha256": known.sha256}


def not_applicable(subject: Subject, metric: str, reason: str) -> Line:
    """The case lacks what the metric needs; nobody was asked."""
    return _line(subject, metric, "not_applicable", reason=reason)


def failed(subject: Subject, metric: str, verdict: Verdict, repeat: int) -> Line:
    """What the judgement needs first (claims, facts) could not be had."""
    return _line(
        subject,
        metric,
        "failed",
        repeat,
        reason=verdict.message,
        failure=verdict.failure or "incomplete",
        key=verdict.key,
        raw=verdict.raw,
        **_spent([verdict]),
    )


def by_code(
    subject: Subject,
    metric: str,
    material: Material,
    verdict: str,
    why: str,
    extra: Mapping[str, Any] | None = None,
    quote: str = "",
) -> Line:
    """Every item gets the verdict that the definition fixes; nobody was asked."""
    entries = [
        {"id": name, "context": None, "quote": quote, "reason": why, "verdict": verdict}
        for name in ids_of(KINDS[metric], material)
    ]
    return _line(
        subject,
        metric,
        "ok",
        input=material.to_dict(),
        verdicts=entries,
        extra={"by_code": why} | dict(extra or {}),
        mode="code",
        cost_usd=0.0,
    )


def from_opinion(
    subject: Subject,
    metric: str,
    materials: Sequence[Material],
    opinions: Iterable[Opinion],
    repeat: int,
    extra: Mapping[str, Any],
    contexts: Sequence[Item] = (),
) -> list[Line]:
    """A line for each material with its opinion; ``contexts``: one for each, under its own id."""
    lines = []
    for part, (material, opinion) in enumerate(zip(materials, opinions, strict=True)):
        line = _judged(subject, metric, material, opinion, repeat, extra)
        line |= {"part": part, "parts": len(materials)}
        if contexts:
            line["input"]["contexts"] = [dict(contexts[part])]
            for entry in line["verdicts"]:
                entry |= {"id": contexts[part]["id"], "context": contexts[part]["id"]}
        lines.append(line)
    return lines


def _judged(
    subject: Subject,
    metric: str,
    material: Material,
    opinion: Opinion,
    repeat: int,
    extra: Mapping[str, Any],
) -> Line:
    told = {
        name: opinion.reply[name]
        for name in ("addresses_question", "noncommittal", "questions", "notes")
        if name in opinion.reply
    }
    more = {"dropped_ids": opinion.dropped, "asked_again": opinion.again}
    more = {name: value for name, value in more.items() if value}
    return _line(
        subject,
        metric,
        "failed" if opinion.failure else "ok",
        repeat,
        reason=opinion.message or None,
        failure=opinion.failure,
        key=opinion.first.key,
        cached=all(call.cached for call in opinion.calls),
        input=material.to_dict(),
        messages=[dict(message) for message in opinion.task.messages],
        raw=opinion.first.raw,
        verdicts=opinion.entries,
        extra=dict(extra) | told | {"manipulation": opinion.manipulation} | more,
        **_spent(opinion.calls),
    )


def _spent(calls: Sequence[Verdict]) -> Line:
    return {
        "mode": calls[0].mode,
        "usage": usage_of(calls),
        "cost_usd": sum_of([call.cost_usd for call in calls]),
        "attempts": sum(call.attempts for call in calls),
        "asks": sum(call.asks for call in calls),
        "seconds": sum_of([call.seconds for call in calls]),
    }


def key_of(line: Mapping[str, Any]) -> Key:
    return (
        line["case_id"],
        line["repeat"],
        line["metric"],
        line["judge_repeat"],
        line.get("part", 0),
    )


class Told(msgspec.Struct):
    """Of a line's ``extra``."""

    mark: str | None = None


class Head(msgspec.Struct):
    """What tells a verdict line from others, without its texts."""

    case_id: str
    repeat: int
    metric: str
    judge_repeat: int
    status: str
    schema: Any = None
    part: int = 0
    parts: int = 1
    reason: str | None = None
    key: str = ""
    made_of: str | None = None
    mode: str = ""
    judge: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    prompt: dict[str, Any] = {}
    extra: Told = msgspec.field(default_factory=Told)


def heads(path: Path) -> Iterator[Head]:
    """The heads of all lines in order, as ``read`` gives the lines."""
    decode = msgspec.json.Decoder(Head).decode
    for number, head in _decoded(path, decode):
        storage.check_schema(path, head.schema, line=number)
        yield head


def read(path: Path, keep: Callable[[Line], bool] = lambda line: True) -> Iterator[Line]:
    """All lines in order, without messages and raw replies; [] when there is no file.

    A torn last line is passed over. Raises StorageError naming any other line that cannot be read.
    """

    def decode(raw: bytes) -> Line:
        line: Line = orjson.loads(raw)
        key_of(line)
        return line

    for number, line in _decoded(path, decode):
        storage.check_schema(path, line.get("schema"), line=number)
        line.pop("messages", None)
        line.pop("raw", None)
        if keep(line):
            yield line


def _decoded(path: Path, decode: Callable[[bytes], T]) -> Iterator[tuple[int, T]]:
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the with below
    except FileNotFoundError:
        return
    with file:
        for number, raw in enumerate(file, start=1):
            try:
                found = decode(raw)
            except (orjson.JSONDecodeError, msgspec.MsgspecError, UnicodeError, *WRONG_SHAPE):
                if not raw.endswith(b"\n"):
                    return
                problem = storage.Problem(
                    str(path), number, "", "no verdict line; delete it and judge again"
                )
                raise storage.StorageError.from_problems([problem]) from None
            yield number, found


def of_judge(judge: Mapping[str, Any]) -> Callable[[Line], bool]:
    """Tells the lines of the judge in a run's config.json from those of others it had before.

    Another identity, another text of a prompt or other parameters make another judge.
    """
    identity, prompts = judge.get("identity"), judge.get("prompts", {})
    parameters = judge.get("parameters", {})

    def belongs(line: Line) -> bool:
        name = line["prompt"]["name"]
        known = prompts.get(name)
        return bool(
            line.get("judge") == identity
            and (known is None or known["sha256"] == line["prompt"]["sha256"])
            and all(line.get("parameters", {}).get(k) == v for k, v in parameters.items())
        )

    return belongs


def identity_of(raw: Mapping[str, Any]) -> JudgeIdentity:
    """A judge's identity from config.json or a verdict line."""
    return JudgeIdentity(**{name: raw[name] for name in JudgeIdentity.__slots__ if name in raw})
