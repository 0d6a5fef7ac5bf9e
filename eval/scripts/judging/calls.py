"""What is judged of one answer: for each kind of call the verdict lines it gives.

Undefined inputs never reach the judge: they are ``not_applicable`` with a reason, or verdicts by
code where the definition fixes them (no contexts: nothing is supported).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from clients.judge_types import Judge, Verdict
from judging import tasks
from judging.asking import Opinion, ask
from judging.facts import FactStore
from judging.making import by_code, failed, from_opinion, not_applicable
from judging.subject import NO_CLAIMS, Subject
from judging.tasks import Item, Kind, Material, make_task
from ragmetrics.abstention import is_refusal
from ragmetrics.casescores import LANGUAGE
from ragmetrics.language import is_covered
from scorers.abstention import detect, language_in

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

    def why_not_read(self, subject: Subject) -> str | None:
        """Why this judge cannot read an answer: embedded rules know the words of few languages."""
        by_rules = self.judge.identity.strength == "code"
        return LANGUAGE if by_rules and not is_covered(language_in(subject.result)) else None


def _claims(subject: Subject, settings: Settings) -> list[dict[str, Any]] | Verdict:
    """The answer's claims; atomic ones are asked for once, whatever the repeat."""
    if not settings.atomic:
        return subject.sentences
    if subject.atomic is None:
        material = Material(question=subject.case.question, answer=subject.answer)
        verdict = settings.judge.ask(make_task(tasks.CLAIMS, material, salt=settings.salt))
        if verdict.data is None:
            return verdict
        texts = [text for text in verdict.data["claims"] if text.strip()]
        subject.atomic = [
            {"id": str(number), "text": text, "span": None}
            for number, text in enumerate(texts, start=1)
        ]
    return subject.atomic


def _facts(subject: Subject, settings: Settings) -> tuple[list[Item], str] | Verdict:
    """The reference's facts as ``f1``, ``f2`` … and where they come from."""
    given: Sequence[str] = [fact for fact in subject.case.expected_key_facts if fact.strip()]
    origin = "expected_key_facts"
    if not given:
        question, reference = subject.case.question, subject.reference
        material = Material(question=question, reference=reference)

        def ask_once() -> tuple[list[str], Verdict]:
            task = make_task(tasks.FACTS, material, salt=settings.salt)
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
    kind: Kind, materials: Sequence[Material], settings: Settings, repeat: int
) -> Iterator[Opinion]:
    for material in materials:
        yield ask(settings.judge, kind, material, salt=settings.salt, repeat=repeat)


def groundedness(subject: Subject, settings: Settings, repeat: int) -> list[Line]:
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
    found = _opinions(tasks.GROUNDEDNESS, parts, settings, repeat)
    return from_opinion(subject, name, parts, found, repeat, {"mark": mark})


def correctness(subject: Subject, settings: Settings, repeat: int) -> list[Line]:
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
    found = _opinions(tasks.CORRECTNESS, parts, settings, repeat)
    return from_opinion(subject, name, parts, found, repeat, extra | {"mark": _mark(facts)})


def answer_correctness(subject: Subject, settings: Settings, repeat: int) -> list[Line]:
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
    found = _opinions(tasks.ENTAILMENT, parts, settings, repeat)
    return from_opinion(subject, name, parts, found, repeat, extra)


def context_precision(subject: Subject, settings: Settings, repeat: int) -> list[Line]:
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
    found = _opinions(tasks.RELEVANCE, parts, settings, repeat)
    mark = _mark(subject.contexts, reference)
    return from_opinion(subject, name, parts, found, repeat, {"mark": mark}, subject.contexts)


def context_recall(subject: Subject, settings: Settings, repeat: int) -> list[Line]:
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
    found = _opinions(tasks.ATTRIBUTION, parts, settings, repeat)
    return from_opinion(subject, name, parts, found, repeat, extra)


def answer_relevancy(subject: Subject, settings: Settings, repeat: int) -> list[Line]:
    """Three questions that the answer answers, and whether it commits to anything."""
    name = "answer_relevancy"
    reason = subject.why_no_answer() or settings.cannot.get("questions")
    if subject.case.answerable is False and subject.abstained:
        reason = "abstention on an unanswerable question"
    if reason is not None:
        return [not_applicable(subject, name, reason)]
    parts = [Material(answer=subject.answer)]
    found = _opinions(tasks.QUESTIONS_KIND, parts, settings, repeat)
    return from_opinion(subject, name, parts, found, repeat, {})


def abstained_judged(subject: Subject, settings: Settings, repeat: int) -> list[Line]:
    """What kind of reply it is. A plain refusal in the first sentence needs no judge."""
    name = "abstained_judged"
    reason = subject.why_no_answer()
    if reason is not None:
        return [not_applicable(subject, name, reason)]
    material = Material(question=subject.case.question, answer=subject.answer)
    found = detect(subject.result)
    if found.abstained and found.rule == "refusal" and found.span is not None:
        quote = subject.answer[slice(*found.span)]
        if is_refusal(quote):
            return [by_code(subject, name, material, "abstained", "phrases", quote=quote)]
    if not found.abstained and (reason := settings.why_not_read(subject)) is not None:
        return [not_applicable(subject, name, reason)]
    opinions = _opinions(tasks.ABSTENTION, [material], settings, repeat)
    return from_opinion(subject, name, [material], opinions, repeat, {})


Call = Callable[[Subject, Settings, int], list[Line]]
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
