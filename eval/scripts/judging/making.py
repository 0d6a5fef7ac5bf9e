"""Verdict lines as they are made: one of each judgement, with all that explains it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import storage
from clients import judge_prompts
from clients.judge_types import Verdict
from judging.asking import Opinion, sum_of, usage_of
from judging.lines import Line
from judging.subject import Subject
from judging.tasks import KINDS, Item, Material, ids_of


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
        "answered_as": [],
        "judging_runs": [],
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
        "answered_as": sorted({call.answered_as for call in calls if call.answered_as}),
        "judging_runs": sorted({call.judging_run for call in calls if call.judging_run}),
    }
