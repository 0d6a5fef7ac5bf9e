"""The embedded judge: our own support rules in the shape of a judge's verdicts, without a model.

Weaker than a model: it compares words and numbers, so it never says "contradicted", sees no
negation, and cannot write questions. Its agreement with people is that of the support scorer, which
EVAL.md states. Every output names it ``local/support@<version of the rules>``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from clients.judge_types import JudgeIdentity, JudgeTask, Verdict
from ragmetrics import abstention
from ragmetrics.claimfilter import CLAIM_RULES, extract
from ragmetrics.claims import (
    SUPPORT_RULES,
    WINDOW,
    Support,
    best_window,
    merged,
    prepare,
    score_claim,
)
from ragmetrics.numbercheck import index
from ragmetrics.text import TEXT_RULES, clean, fold, spelled, words

LOCAL_RULES = 2
REVISION = f"{SUPPORT_RULES}.{CLAIM_RULES}.{TEXT_RULES}.{LOCAL_RULES}"
"""Support, claim and text rules, and how they are mapped here: any of them can change a verdict."""
REFERENCE_SHARE, QUESTION_SHARE = 0.3, 0.4
"""Share of the reference's (without one: the question's) content words in one window of a passage
from which it is useful. Against the gold passages of the demo set the first has a balanced accuracy
of 0.71, the second of 0.58: hardly better than chance."""
CANNOT: Mapping[str, str] = {"questions": "the local judge cannot write questions"}
"""Prompts that the local judge cannot answer, and what is then said of the metric."""

Reply = dict[str, Any]


class LocalJudge:
    """Answers every task but those in ``cannot``. Thread-safe: it keeps nothing."""

    cannot = CANNOT
    parameters: Mapping[str, Any] = {}

    @property
    def identity(self) -> JudgeIdentity:
        return JudgeIdentity("local", "support", revision=REVISION, strength="code")

    def ask(self, task: JudgeTask) -> Verdict:
        """The verdict on a task's inputs; its messages are not read."""
        key = _key(task)
        answer = _ANSWERS.get(task.prompt.name)
        if answer is None:
            why = CANNOT.get(task.prompt.name, f"the local judge knows no {task.prompt.name}")
            return Verdict(key, None, "refused", why, mode="local", asks=1)
        data = {"notes": ""} | answer(task.inputs) | {"manipulation": False}
        raw = orjson.dumps(data).decode()
        return Verdict(key, data, raw=raw, mode="local", asks=1, cost_usd=0.0)


def _key(task: JudgeTask) -> str:
    """Like the cache's keys, it tells tasks apart; nothing is cached under it."""
    parts = [REVISION, task.prompt.name, dict(task.inputs), task.repeat]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _entry(name: str, verdict: str, quote: str = "", reason: str = "", context: str = "") -> Reply:
    found = {"id": name, "context": context, "quote": quote, "reason": reason, "verdict": verdict}
    return found


def _support(
    items: Sequence[Mapping[str, str]],
    sources: Sequence[Mapping[str, str]],
    question: str,
    yes: str,
    no: str,
) -> list[Reply]:
    """A verdict an item: do the sources hold it? The quote is the best window of sentences."""
    chunks = [prepare(source["text"]) for source in sources]
    known, asked = merged(chunks), index(question) if question else None
    replies = []
    for item in items:
        text, lead = item["text"], item.get("lead", "")
        found = score_claim(text, chunks, question=asked, known=known, lead=lead)
        if found is None:
            place = _verbatim(text, sources)
            hit = place is not None
            quote = clean(text).strip() if hit else ""
            reason = "letter by letter" if hit else "no content word to look for"
        else:
            place, hit = found.chunk, found.supported
            window = found.window
            quote = "" if place is None or window is None else chunks[place].text[slice(*window)]
            reason = _reason(found)
        context = "" if place is None else sources[place]["id"]
        replies.append(_entry(item["id"], yes if hit else no, quote, reason, context))
    return replies


def _verbatim(text: str, sources: Sequence[Mapping[str, str]]) -> int | None:
    """Where a text without content words ("42") stands letter by letter."""
    flat = " ".join(words(fold(text)))
    for place, source in enumerate(sources):
        if flat and f" {flat} " in f" {' '.join(words(fold(source['text'])))} ":
            return place
    return None


def _reason(found: Support) -> str:
    if found.vetoing:
        return f"number found nowhere: {', '.join(found.vetoing[:3])}"
    missing = f"; not there: {', '.join(found.missing[:5])}" if found.missing else ""
    return f"{found.score:.0%} of its words in one window{missing}"


def _groundedness(given: Mapping[str, Any]) -> Reply:
    sources, question = given.get("contexts", ()), given.get("question", "")
    return {"verdicts": _support(given["claims"], sources, question, "supported", "not_found")}


def _entailment(given: Mapping[str, Any]) -> Reply:
    sources = [{"id": "reference", "text": given["reference"]}] if "reference" in given else []
    facts = given.get("facts", ())
    if facts:
        sources.append({"id": "facts", "text": "\n".join(one["text"] for one in facts)})
    question = given.get("question", "")
    return {"verdicts": _support(given["claims"], sources, question, "supported", "not_found")}


def _correctness(given: Mapping[str, Any]) -> Reply:
    """Facts in the answer. Whether it addresses the question cannot be told by words: true."""
    sources = [{"id": "answer", "text": given.get("answer", "")}]
    found = _support(given["facts"], sources, "", "present", "missing")
    return {"addresses_question": True, "verdicts": [_without_context(one) for one in found]}


def _attribution(given: Mapping[str, Any]) -> Reply:
    sources = given.get("contexts", ())
    return {"verdicts": _support(given["facts"], sources, "", "attributed", "not_attributed")}


def _relevance(given: Mapping[str, Any]) -> Reply:
    """Useful: one window of the passage holds enough of the reference's or question's words."""
    name = "reference" if given.get("reference", "").strip() else "question"
    least = REFERENCE_SHARE if name == "reference" else QUESTION_SHARE
    wanted = tuple(spelled(fold(given.get(name, ""))))
    replies = []
    for passage in given["contexts"]:
        chunk = prepare(passage["text"])
        count, first = best_window(wanted, chunk)
        useful = bool(wanted) and count >= least * len(wanted)
        quote = ""
        if count:
            last = min(first + WINDOW, len(chunk.spans)) - 1
            quote = chunk.text[chunk.spans[first][0] : chunk.spans[last][1]]
        reason = f"{count} of {len(wanted)} words of the {name} in one window"
        verdict = "useful" if useful else "not_useful"
        replies.append(_without_context(_entry(passage["id"], verdict, quote, reason)))
    return {"verdicts": replies}


def _abstention(given: Mapping[str, Any]) -> Reply:
    answer = given.get("answer", "")
    found = abstention.detect(answer)
    verdict = "answered" if found.state == "empty" else found.state
    quote = "" if found.span is None else clean(answer)[slice(*found.span)]
    reason = f"phrase rule: {found.rule or 'no phrase'}"
    return {"verdicts": [_without_context(_entry("1", verdict, quote, reason))]}


def _claims(given: Mapping[str, Any]) -> Reply:
    found = extract(given.get("answer", ""), clauses=True).claims
    return {"claims": [f"{claim.lead} {claim.text}".strip() for claim in found]}


def _facts(given: Mapping[str, Any]) -> Reply:
    """The sentences and clauses of the reference; a short one is one fact as it stands."""
    reference = given.get("reference", "")
    found = [claim.text.strip() for claim in extract(reference, clauses=True).claims]
    return {"facts": found or [reference.strip()]}


def _without_context(entry: Reply) -> Reply:
    return {name: value for name, value in entry.items() if name != "context"}


_ANSWERS: Mapping[str, Callable[[Mapping[str, Any]], Reply]] = {
    "groundedness": _groundedness,
    "entailment": _entailment,
    "correctness": _correctness,
    "attribution": _attribution,
    "relevance": _relevance,
    "abstention": _abstention,
    "claims": _claims,
    "facts": _facts,
}
