"""What is judged of one answer: for each kind of call the verdict lines it gives.

Undefined inputs never reach the judge: they are ``not_applicable`` with a reason, or verdicts by
code where the definition fixes them (no contexts: nothing is supported).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from judging import kinds, prompt_files
from judging.answers import NO_CLAIMS, FactStore, JudgedAnswer
from judging.kinds import Item, Material, ids_of, make_task
from judging.opinion import Opinion, ask, sum_of, usage_of
from judging.types import Judge, Verdict
from ragmetrics.case_scores import LANGUAGE
from ragmetrics.text.language import is_covered
from ragmetrics.text.refusals import is_refusal
from records import verdicts
from records.results import SCHEMA
from records.verdicts import KINDS, CallKind, VerdictLine

BLOCK = 20
"""Claims or facts in one call; longer lists lose entries."""

Line = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """``atomic``: claims by the judge instead of by our own sentence rules."""

    judge: Judge
    salt: bytes
    facts: FactStore
    atomic: bool = False

    @property
    def cannot(self) -> Mapping[str, str]:
        """Prompts that this judge cannot answer, with the reason."""
        found: Mapping[str, str] = getattr(self.judge, "cannot", {})
        return found

    def why_not_read(self, subject: JudgedAnswer) -> str | None:
        """Why this judge cannot read an answer: embedded rules know the words of few languages."""
        by_rules = self.judge.identity.strength == "code"
        return LANGUAGE if by_rules and not is_covered(subject.language) else None


def _claims(subject: JudgedAnswer, settings: Settings) -> list[dict[str, Any]] | Verdict:
    """The answer's claims; atomic ones are asked for once, whatever the repeat."""
    if not settings.atomic:
        return subject.sentences
    if subject.atomic is None:
        material = Material(question=subject.case.question, answer=subject.answer)
        verdict = settings.judge.ask(make_task(kinds.CLAIMS, material, salt=settings.salt))
        if verdict.data is None:
            return verdict
        texts = [text for text in verdict.data["claims"] if text.strip()]
        subject.atomic = [
            {"id": str(number), "text": text, "span": None}
            for number, text in enumerate(texts, start=1)
        ]
    return subject.atomic


def _facts(subject: JudgedAnswer, settings: Settings) -> tuple[list[Item], str] | Verdict:
    """The reference's facts as ``f1``, ``f2`` … and where they come from."""
    given: Sequence[str] = [fact for fact in subject.case.expected_key_facts if fact.strip()]
    origin = "expected_key_facts"
    if not given:
        question, reference = subject.case.question, subject.reference
        material = Material(question=question, reference=reference)

        def ask_once() -> tuple[list[str], Verdict]:
            task = make_task(kinds.FACTS, material, salt=settings.salt)
            verdict = settings.judge.ask(task)
            return [one for one in (verdict.data or {}).get("facts", ()) if one.strip()], verdict

        found = settings.facts.get(question, reference, ask_once)
        if isinstance(found, Verdict):
            return found
        given, origin = found, "reference_answer"
    return [{"id": f"f{n}", "text": text} for n, text in enumerate(given, start=1)], origin


def _blocks(items: Sequence[Item]) -> list[Sequence[Item]]:
    return [items[place : place + BLOCK] for place in range(0, len(items), BLOCK)]


def _mark(*texts: object) -> str:
    """Tells the parts of one opinion from those of an older one."""
    return hashlib.sha256(orjson.dumps(texts)).hexdigest()[:16]


def _opinions(
    kind: CallKind, materials: Sequence[Material], settings: Settings, repeat: int
) -> Iterator[Opinion]:
    for material in materials:
        yield ask(settings.judge, kind, material, salt=settings.salt, repeat=repeat)


def groundedness(subject: JudgedAnswer, settings: Settings, repeat: int) -> list[Line]:
    """Claims against contexts. No contexts: nothing is supported, and nobody is asked."""
    name = "groundedness"
    reason = subject.why_no_claims() or subject.why_no_texts() or settings.why_not_read(subject)
    if reason is not None:
        return [not_applicable(subject, name, reason)]
    claims = _claims(subject, settings)
    if isinstance(claims, Verdict):
        return [failed(subject, name, claims, repeat)]
    if not claims:
        return [not_applicable(subject, name, NO_CLAIMS)]
    base = Material(question=subject.case.question, answer=subject.answer, claims=claims)
    if not subject.contexts:
        return [by_code(subject, name, base, "not_found", "no contexts")]
    mark = _mark(claims, subject.contexts)
    parts = [replace(base, claims=block, contexts=subject.contexts) for block in _blocks(claims)]
    found = _opinions(verdicts.GROUNDEDNESS, parts, settings, repeat)
    return from_opinion(subject, name, parts, found, repeat, {"mark": mark})


def correctness(subject: JudgedAnswer, settings: Settings, repeat: int) -> list[Line]:
    """Facts of the reference in the answer. An empty answer has none of them."""
    name = "correctness"
    why = subject.why_no_answer()
    reason = subject.why_no_reference() or (why if subject.result.answer is None else None)
    if reason is not None:
        return [not_applicable(subject, name, reason)]
    known = _facts(subject, settings)
    if isinstance(known, Verdict):
        return [failed(subject, name, known, repeat)]
    facts, origin = known
    base = Material(question=subject.case.question, answer=subject.answer, facts=facts)
    extra: Line = {"facts_from": origin}
    if why is not None:
        extra |= {"addresses_question": False}
        return [by_code(subject, name, base, "missing", why, extra)]
    parts = [replace(base, facts=block) for block in _blocks(facts)]
    found = _opinions(verdicts.CORRECTNESS, parts, settings, repeat)
    return from_opinion(subject, name, parts, found, repeat, extra | {"mark": _mark(facts)})


def answer_correctness(subject: JudgedAnswer, settings: Settings, repeat: int) -> list[Line]:
    """Claims of the answer against the reference."""
    name = "answer_correctness"
    why = subject.why_no_answer()
    reason = subject.why_no_reference() or (why if subject.result.answer is None else None)
    if reason is not None:
        return [not_applicable(subject, name, reason)]
    known, claims = _facts(subject, settings), _claims(subject, settings)
    for one in (known, claims):
        if isinstance(one, Verdict):
            return [failed(subject, name, one, repeat)]
    assert not isinstance(known, Verdict)
    assert not isinstance(claims, Verdict)
    facts, origin = known
    claims = [] if subject.abstained else claims or subject.whole_answer()
    base = Material(
        question=subject.case.question,
        answer=subject.answer,
        reference=subject.reference,
        facts=facts,
        claims=claims,
    )
    extra = {"facts_from": origin, "mark": _mark(claims, facts, subject.reference)}
    if not claims:
        return [by_code(subject, name, base, "not_found", "no claims", extra)]
    parts = [replace(base, claims=block) for block in _blocks(claims)]
    found = _opinions(verdicts.ENTAILMENT, parts, settings, repeat)
    return from_opinion(subject, name, parts, found, repeat, extra)


def context_precision(subject: JudgedAnswer, settings: Settings, repeat: int) -> list[Line]:
    """Each chunk alone: the same chunk under the same question is asked about once for all runs."""
    name = "context_precision"
    reason = subject.why_no_texts()
    if subject.case.answerable is False:
        reason = "unanswerable"
    if reason is None and not subject.contexts:
        reason = "no contexts"
    if reason is not None:
        return [not_applicable(subject, name, reason)]
    reference = subject.case.reference_answer or ""
    parts = [
        Material(
            question=subject.case.question,
            reference=reference,
            contexts=[{"id": "c1", "text": context["text"]}],
        )
        for context in subject.contexts
    ]
    found = _opinions(verdicts.RELEVANCE, parts, settings, repeat)
    mark = _mark(subject.contexts, reference)
    return from_opinion(subject, name, parts, found, repeat, {"mark": mark}, subject.contexts)


def context_recall(subject: JudgedAnswer, settings: Settings, repeat: int) -> list[Line]:
    """Facts of the reference in the contexts. No contexts: no fact is there."""
    name = "context_recall"
    reason = subject.why_no_reference() or subject.why_no_texts()
    if reason is not None:
        return [not_applicable(subject, name, reason)]
    known = _facts(subject, settings)
    if isinstance(known, Verdict):
        return [failed(subject, name, known, repeat)]
    facts, origin = known
    base = Material(question=subject.case.question, contexts=subject.contexts, facts=facts)
    extra = {"facts_from": origin, "mark": _mark(facts, subject.contexts)}
    if not subject.contexts:
        return [by_code(subject, name, base, "not_attributed", "no contexts", extra)]
    parts = [replace(base, facts=block) for block in _blocks(facts)]
    found = _opinions(verdicts.ATTRIBUTION, parts, settings, repeat)
    return from_opinion(subject, name, parts, found, repeat, extra)


def answer_relevancy(subject: JudgedAnswer, settings: Settings, repeat: int) -> list[Line]:
    """Three questions that the answer answers, and whether it commits to anything."""
    name = "answer_relevancy"
    reason = subject.why_no_answer() or settings.cannot.get("questions")
    if subject.case.answerable is False and subject.abstained:
        reason = "abstention on an unanswerable question"
    if reason is not None:
        return [not_applicable(subject, name, reason)]
    parts = [Material(answer=subject.answer)]
    found = _opinions(verdicts.QUESTIONS_KIND, parts, settings, repeat)
    return from_opinion(subject, name, parts, found, repeat, {})


def abstained_judged(subject: JudgedAnswer, settings: Settings, repeat: int) -> list[Line]:
    """What kind of reply it is. A plain refusal in the first sentence needs no judge."""
    name = "abstained_judged"
    reason = subject.why_no_answer()
    if reason is not None:
        return [not_applicable(subject, name, reason)]
    material = Material(question=subject.case.question, answer=subject.answer)
    detection = subject.detection
    if detection.abstained and detection.rule == "refusal" and detection.span is not None:
        quote = subject.answer[slice(*detection.span)]
        if is_refusal(quote):
            return [by_code(subject, name, material, "abstained", "phrases", quote=quote)]
    if not detection.abstained and (reason := settings.why_not_read(subject)) is not None:
        return [not_applicable(subject, name, reason)]
    opinions = _opinions(verdicts.ABSTENTION, [material], settings, repeat)
    return from_opinion(subject, name, [material], opinions, repeat, {})


Call = Callable[[JudgedAnswer, Settings, int], list[Line]]

CALLS: Mapping[str, Call] = {
    "groundedness": groundedness,
    "correctness": correctness,
    "answer_correctness": answer_correctness,
    "context_precision": context_precision,
    "context_recall": context_recall,
    "answer_relevancy": answer_relevancy,
    "abstained_judged": abstained_judged,
}
"""By the name that stands as ``metric`` in a verdict line."""


def _line(
    subject: JudgedAnswer, metric: str, status: str, repeat: int = 0, **more: Any
) -> VerdictLine:
    base: VerdictLine = {
        "schema": SCHEMA,
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
    known = prompt_files.load(KINDS[metric].prompt).id
    return {"name": known.name, "version": known.version, "sha256": known.sha256}


def not_applicable(subject: JudgedAnswer, metric: str, reason: str) -> VerdictLine:
    """The case lacks what the metric needs; nobody was asked."""
    return _line(subject, metric, "not_applicable", reason=reason)


def failed(subject: JudgedAnswer, metric: str, verdict: Verdict, repeat: int) -> VerdictLine:
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
    subject: JudgedAnswer,
    metric: str,
    material: Material,
    verdict: str,
    why: str,
    extra: Mapping[str, Any] | None = None,
    quote: str = "",
) -> VerdictLine:
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
    subject: JudgedAnswer,
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
        line = _judged(subject, metric, material, opinion, repeat, extra)
        line |= {"part": part, "parts": len(materials)}
        if contexts:
            line["input"]["contexts"] = [dict(contexts[part])]
            for entry in line["verdicts"]:
                entry |= {"id": contexts[part]["id"], "context": contexts[part]["id"]}
        lines.append(line)
    return lines


def _judged(
    subject: JudgedAnswer,
    metric: str,
    material: Material,
    opinion: Opinion,
    repeat: int,
    extra: Mapping[str, Any],
) -> VerdictLine:
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


def _spent(calls: Sequence[Verdict]) -> VerdictLine:
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
