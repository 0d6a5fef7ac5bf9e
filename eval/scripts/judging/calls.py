"""The calls that judge one answer: for each kind of call the verdict lines it gives.

Undefined inputs never reach the judge: they are ``not_applicable`` with a reason, or verdicts by
code where the definition fixes them (no contexts: nothing is supported).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson
from msgspec.structs import replace

from judging import kinds, prompt_files
from judging.answers import NO_CLAIMS, NO_REFERENCE, FactStore, JudgedAnswer
from judging.kinds import Item, Material, ids_of, make_task
from judging.opinion import Opinion, ask, sum_of, usage_of
from judging.types import Judge, JudgeVerdict
from ragmetrics.case_scores import LANGUAGE
from ragmetrics.claims import has_threshold
from records.results import SCHEMA
from records.verdicts import KINDS, CallKind, VerdictLine

BLOCK = 20
"""Claims or facts in one call; longer lists lose entries."""


@dataclass(frozen=True)
class Settings:
    """``atomic``: claims by the judge instead of by our own sentence rules.

    ``rehearsed``: the judge only notes what it would be asked, so of a line its ``mode`` is enough.
    ``kinds``: the row of each call.
    """

    judge: Judge
    salt: bytes
    facts: FactStore
    atomic: bool = False
    rehearsed: bool = False
    kinds: Mapping[str, CallKind] = field(default_factory=lambda: KINDS)

    @property
    def cannot(self) -> Mapping[str, str]:
        """Prompts that this judge cannot answer, with the reason."""
        reasons: Mapping[str, str] = getattr(self.judge, "cannot", {})
        return reasons

    def why_not_read(self, answer: JudgedAnswer) -> str | None:
        """Why this judge cannot read an answer: embedded rules know the words of few languages."""
        by_rules = self.judge.identity.strength == "code"
        return LANGUAGE if by_rules and not has_threshold(answer.language) else None


async def _claims(answer: JudgedAnswer, settings: Settings) -> list[dict[str, Any]] | JudgeVerdict:
    """The answer's claims; atomic ones are asked for once, whatever the repeat."""
    if not settings.atomic:
        return answer.sentences
    if answer.atomic is None:
        material = _material(answer, answer=answer.text)
        verdict = await settings.judge.ask(make_task(kinds.CLAIMS, material, salt=settings.salt))
        if verdict.data is None:
            return verdict
        texts = [text for text in verdict.data["claims"] if text.strip()]
        answer.atomic = [
            {"id": str(number), "text": text, "span": None}
            for number, text in enumerate(texts, start=1)
        ]
    return answer.atomic


async def _facts(answer: JudgedAnswer, settings: Settings) -> tuple[list[Item], str] | JudgeVerdict:
    """The reference's facts as ``f1``, ``f2`` … and where they come from."""
    texts: Sequence[str] = [fact for fact in answer.case.expected_key_facts if fact.strip()]
    origin = "expected_key_facts"
    if not texts:
        case, reference = answer.case, answer.reference
        question = case.question_alone or case.question
        material = Material(question=question, reference=reference)

        async def ask_once() -> tuple[list[str], JudgeVerdict]:
            task = make_task(kinds.FACTS, material, salt=settings.salt)
            verdict = await settings.judge.ask(task)
            facts = (verdict.data or {}).get("facts", ())
            return [fact for fact in facts if fact.strip()], verdict

        listed = await settings.facts.get(question, reference, ask_once)
        if isinstance(listed, JudgeVerdict):
            return listed
        texts, origin = listed, "reference_answer"
    return [{"id": f"f{n}", "text": text} for n, text in enumerate(texts, start=1)], origin


def _material(judged: JudgedAnswer, **parts: Any) -> Material:
    """What a judge sees of an answer: its question, what came before it, and these parts."""
    return Material(question=judged.question, earlier=judged.earlier, **parts)


def needs_facts(kind: CallKind) -> bool:
    """Whether a call of this kind asks about the facts of the reference, or compares claims with
    them."""
    return "facts" in (kind.items, *kind.sources)


def _blocks(items: Sequence[Item]) -> list[Sequence[Item]]:
    return [items[start : start + BLOCK] for start in range(0, len(items), BLOCK)]


def mark_of(*texts: object) -> str:
    """The hash of all that an opinion is about, which each of its parts has."""
    return hashlib.sha256(orjson.dumps(texts)).hexdigest()[:16]


async def ask_parts(
    answer: JudgedAnswer,
    settings: Settings,
    metric: str,
    materials: Sequence[Material],
    repeat: int,
    extra: Mapping[str, Any],
    contexts: Sequence[Item] = (),
) -> list[VerdictLine]:
    """Ask about each material. Returns a verdict line for each."""
    kind, salt = settings.kinds[metric], settings.salt
    opinions = [
        await ask(settings.judge, kind, material, salt=salt, repeat=repeat)
        for material in materials
    ]
    if settings.rehearsed:
        return [{"mode": opinion.first.mode} for opinion in opinions]
    return from_opinion(answer, metric, materials, opinions, repeat, extra, contexts)


async def groundedness(answer: JudgedAnswer, settings: Settings, repeat: int) -> list[VerdictLine]:
    """Claims against all that the answer saw. It saw nothing: no claim is supported, and no one is
    asked."""
    name = "groundedness"
    reason = answer.why_no_claims() or answer.why_no_texts(seen=True)
    reason = reason or settings.why_not_read(answer)
    if reason is not None:
        return [not_applicable(answer, name, reason)]
    claims = await _claims(answer, settings)
    if isinstance(claims, JudgeVerdict):
        return [_failed(answer, name, claims, repeat)]
    if not claims:
        return [not_applicable(answer, name, NO_CLAIMS)]
    base = _material(answer, answer=answer.text, claims=claims)
    contexts = answer.seen_contexts
    if not contexts:
        return [_by_code(answer, name, base, "not_found", "no contexts")]
    mark = mark_of(claims, contexts)
    parts = [replace(base, claims=block, contexts=contexts) for block in _blocks(claims)]
    return await ask_parts(answer, settings, name, parts, repeat, {"mark": mark})


async def _correctness(answer: JudgedAnswer, settings: Settings, repeat: int) -> list[VerdictLine]:
    """Facts of the reference in the answer. An empty answer has none of them."""
    name = "correctness"
    why = answer.why_no_answer()
    reason = answer.why_no_reference() or (why if answer.result.answer is None else None)
    if reason is not None:
        return [not_applicable(answer, name, reason)]
    listed = await _facts(answer, settings)
    if isinstance(listed, JudgeVerdict):
        return [_failed(answer, name, listed, repeat)]
    facts, origin = listed
    base = _material(answer, answer=answer.text, facts=facts)
    extra: dict[str, Any] = {"facts_from": origin}
    if why is not None:
        extra |= {"addresses_question": False}
        return [_by_code(answer, name, base, "missing", why, extra)]
    parts = [replace(base, facts=block) for block in _blocks(facts)]
    return await ask_parts(answer, settings, name, parts, repeat, extra | {"mark": mark_of(facts)})


async def _nuggets(answer: JudgedAnswer, settings: Settings, repeat: int) -> list[VerdictLine]:
    """Gold facts in the answer, whole or in part. An empty answer has none of them."""
    name = "nuggets"
    why = answer.why_no_answer()
    reason = answer.why_no_nuggets() or (why if answer.result.answer is None else None)
    if reason is not None:
        return [not_applicable(answer, name, reason)]
    nuggets = answer.nuggets
    base = _material(answer, answer=answer.text, nuggets=nuggets)
    if why is not None:
        return [_by_code(answer, name, base, "none", why)]
    parts = [replace(base, nuggets=block) for block in _blocks(nuggets)]
    return await ask_parts(answer, settings, name, parts, repeat, {"mark": mark_of(nuggets)})


async def _answer_correctness(
    answer: JudgedAnswer, settings: Settings, repeat: int
) -> list[VerdictLine]:
    """Claims of the answer against the reference."""
    name = "answer_correctness"
    why = answer.why_no_answer()
    reason = answer.why_no_reference() or (why if answer.result.answer is None else None)
    if reason is not None:
        return [not_applicable(answer, name, reason)]
    listed, claims = await _facts(answer, settings), await _claims(answer, settings)
    if isinstance(listed, JudgeVerdict):
        return [_failed(answer, name, listed, repeat)]
    if isinstance(claims, JudgeVerdict):
        return [_failed(answer, name, claims, repeat)]
    facts, origin = listed
    claims = [] if answer.abstained else claims or answer.whole_answer()
    base = _material(
        answer,
        answer=answer.text,
        reference=answer.reference,
        facts=facts,
        claims=claims,
    )
    extra = {"facts_from": origin, "mark": mark_of(claims, facts, answer.reference)}
    if not claims:
        return [_by_code(answer, name, base, "not_found", "no claims", extra)]
    parts = [replace(base, claims=block) for block in _blocks(claims)]
    return await ask_parts(answer, settings, name, parts, repeat, extra)


async def _context_precision(
    answer: JudgedAnswer, settings: Settings, repeat: int
) -> list[VerdictLine]:
    """Each chunk alone: the same chunk under the same question is asked about once for all runs."""
    name = "context_precision"
    reason = answer.why_no_texts()
    if answer.case.answerable is False:
        reason = "unanswerable"
    if reason is None and not answer.contexts:
        reason = "no contexts"
    if reason is not None:
        return [not_applicable(answer, name, reason)]
    reference = answer.case.reference_answer or ""
    parts = [
        _material(
            answer,
            reference=reference,
            contexts=[{"id": "c1", "text": context["text"]}],
        )
        for context in answer.contexts
    ]
    mark = mark_of(answer.contexts, reference)
    return await ask_parts(answer, settings, name, parts, repeat, {"mark": mark}, answer.contexts)


async def _context_recall(
    answer: JudgedAnswer, settings: Settings, repeat: int
) -> list[VerdictLine]:
    """Facts of the reference in the contexts. No contexts: no fact is there."""
    name = "context_recall"
    reason = answer.why_no_reference() or answer.why_no_texts()
    if reason is not None:
        return [not_applicable(answer, name, reason)]
    listed = await _facts(answer, settings)
    if isinstance(listed, JudgeVerdict):
        return [_failed(answer, name, listed, repeat)]
    facts, origin = listed
    base = _material(answer, contexts=answer.contexts, facts=facts)
    extra = {"facts_from": origin, "mark": mark_of(facts, answer.contexts)}
    if not answer.contexts:
        return [_by_code(answer, name, base, "not_attributed", "no contexts", extra)]
    parts = [replace(base, facts=block) for block in _blocks(facts)]
    return await ask_parts(answer, settings, name, parts, repeat, extra)


async def _answer_relevancy(
    answer: JudgedAnswer, settings: Settings, repeat: int
) -> list[VerdictLine]:
    """Three questions that the answer answers, and whether it commits to anything."""
    name = "answer_relevancy"
    reason = answer.why_no_answer() or settings.cannot.get("questions")
    if answer.case.answerable is False and answer.abstained:
        reason = "abstention on an unanswerable question"
    if reason is not None:
        return [not_applicable(answer, name, reason)]
    parts = [Material(answer=answer.text)]
    return await ask_parts(answer, settings, name, parts, repeat, {})


async def _abstained_judged(
    answer: JudgedAnswer, settings: Settings, repeat: int
) -> list[VerdictLine]:
    """What kind of reply it is. A plain refusal in the first sentence needs no judge, nor does a
    denial that the passages make themselves."""
    name = "abstained_judged"
    reason = answer.why_no_answer()
    if reason is not None:
        return [not_applicable(answer, name, reason)]
    material = _material(answer, answer=answer.text)
    detection = answer.detection
    plain = detection.abstained and detection.rule == "refusal"
    if detection.span is not None and (plain or detection.denial):
        verdict, why = ("abstained", "phrases") if plain else ("answered", detection.rule)
        quote = answer.text[slice(*detection.span)]
        return [_by_code(answer, name, material, verdict, why, quote=quote)]
    if not detection.abstained and (reason := settings.why_not_read(answer)) is not None:
        return [not_applicable(answer, name, reason)]
    return await ask_parts(answer, settings, name, [material], repeat, {})


async def _rubric(
    name: str, answer: JudgedAnswer, settings: Settings, repeat: int
) -> list[VerdictLine]:
    """A rubric of the user's: one verdict on the answer, from no more than the rubric reads."""
    kind = settings.kinds[name]
    rubric = kind.rubric
    assert rubric is not None
    reads = rubric.reads
    reason = answer.why_no_answer() or settings.cannot.get("rubric")
    if reason is None and "passages" in reads:
        reason = answer.why_no_texts()
    if reason is None and "reference" in reads and not answer.reference.strip():
        reason = NO_REFERENCE
    if reason is None and "tools" in reads and not isinstance(answer.result.tools, list):
        reason = "no tool calls are reported"
    if reason is not None:
        lines = [not_applicable(answer, name, reason)]
    else:
        material = Material(
            question=answer.question if "question" in reads else "",
            earlier=answer.earlier if "history" in reads else "",
            answer=answer.text,
            contexts=answer.contexts if "passages" in reads else (),
            reference=answer.reference if "reference" in reads else "",
            tools=answer.tool_calls if "tools" in reads else "",
        )
        lines = await ask_parts(answer, settings, name, [material], repeat, {})
    prompt = prompt_of(kind, answer) | {"rubric": rubric.to_dict()}
    return [line | {"prompt": prompt} for line in lines]


Call = Callable[[JudgedAnswer, Settings, int], Coroutine[Any, Any, list[VerdictLine]]]

CALLS: Mapping[str, Call] = {
    "groundedness": groundedness,
    "correctness": _correctness,
    "nuggets": _nuggets,
    "answer_correctness": _answer_correctness,
    "context_precision": _context_precision,
    "context_recall": _context_recall,
    "answer_relevancy": _answer_relevancy,
    "abstained_judged": _abstained_judged,
}
"""The calls by ``metric`` of a verdict line; rubrics have no names of ours."""


def call_of(name: str) -> Call:
    """The function that judges one answer by the kind of call of that name."""
    return CALLS.get(name) or partial(_rubric, name)


def line_of(
    answer: JudgedAnswer, metric: str, status: str, repeat: int = 0, **more: Any
) -> VerdictLine:
    base: VerdictLine = {
        "schema": SCHEMA,
        "case_id": answer.case.id,
        "repeat": answer.result.repeat,
        "metric": metric,
        "judge_repeat": repeat,
        "part": 0,
        "parts": 1,
        "status": status,
        "reason": None,
        "failure": None,
        "prompt": prompt_of(KINDS[metric], answer) if metric in KINDS else {},
        "key": "",
        "cached": False,
        "subject": answer.answer_sha256(metric),
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


def prompt_of(kind: CallKind, answer: JudgedAnswer) -> dict[str, Any]:
    """The prompt that asks about an answer: with the earlier turns where it shows the question, and
    where a rubric reads them."""
    if kind.rubric is not None:
        shows = "history" in kind.rubric.reads
    else:
        shows = "question" in prompt_files.load_for(kind, earlier=False).slots
    prompt = prompt_files.load_for(kind, earlier=bool(answer.earlier) and shows).id
    return {"name": prompt.name, "version": prompt.version, "sha256": prompt.sha256}


def not_applicable(answer: JudgedAnswer, metric: str, reason: str) -> VerdictLine:
    """The verdict line of a case that lacks something; no judge was asked."""
    return line_of(answer, metric, "not_applicable", reason=reason)


def _failed(answer: JudgedAnswer, metric: str, verdict: JudgeVerdict, repeat: int) -> VerdictLine:
    """What the judgement needs first (claims, facts) could not be had."""
    return line_of(
        answer,
        metric,
        "failed",
        repeat,
        reason=verdict.message,
        failure=verdict.failure or "incomplete",
        key=verdict.key,
        raw=verdict.raw,
        **_spent([verdict]),
    )


def _by_code(
    answer: JudgedAnswer,
    metric: str,
    material: Material,
    verdict: str,
    why: str,
    extra: Mapping[str, Any] | None = None,
    quote: str = "",
) -> VerdictLine:
    """Every item gets the verdict that the definition fixes; no judge was asked."""
    entries = [
        {"id": name, "context": None, "quote": quote, "reason": why, "verdict": verdict}
        for name in ids_of(KINDS[metric], material)
    ]
    return line_of(
        answer,
        metric,
        "ok",
        input=material.to_dict(),
        verdicts=entries,
        extra={"by_code": why} | dict(extra or {}),
        mode="code",
        cost_usd=0.0,
    )


def from_opinion(
    answer: JudgedAnswer,
    metric: str,
    materials: Sequence[Material],
    opinions: Iterable[Opinion],
    repeat: int,
    extra: Mapping[str, Any],
    contexts: Sequence[Item] = (),
) -> list[VerdictLine]:
    """A line for each material with its opinion; ``contexts``: one for each, under its own id."""
    lines = []
    for part, (material, opinion) in enumerate(zip(materials, opinions, strict=True)):
        line = _judged(answer, metric, material, opinion, repeat, extra)
        line |= {"part": part, "parts": len(materials)}
        if contexts:
            line["input"]["contexts"] = [dict(contexts[part])]
            for entry in line["verdicts"]:
                entry |= {"id": contexts[part]["id"], "context": contexts[part]["id"]}
        lines.append(line)
    return lines


def _judged(
    answer: JudgedAnswer,
    metric: str,
    material: Material,
    opinion: Opinion,
    repeat: int,
    extra: Mapping[str, Any],
) -> VerdictLine:
    shown = {
        name: opinion.reply[name]
        for name in ("addresses_question", "noncommittal", "questions", "notes")
        if name in opinion.reply
    }
    more = {"dropped_ids": opinion.dropped, "asked_again": opinion.more_calls}
    more |= {"votes": opinion.votes, "missing_votes": opinion.missing_votes}
    more = {name: value for name, value in more.items() if value}
    return line_of(
        answer,
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
        extra=dict(extra) | shown | {"manipulation": opinion.manipulation} | more,
        **_spent(opinion.calls),
    )


def _spent(calls: Sequence[JudgeVerdict]) -> VerdictLine:
    return {
        "mode": next((call.mode for call in calls if call.mode), ""),
        "usage": usage_of(calls),
        "cost_usd": sum_of([call.cost_usd for call in calls]),
        "attempts": sum(call.attempts for call in calls),
        "asks": sum(call.asks for call in calls),
        "seconds": sum_of([call.seconds for call in calls]),
        "answered_as": sorted({call.answered_as for call in calls if call.answered_as}),
        "judging_runs": sorted({call.judging_run for call in calls if call.judging_run}),
    }
