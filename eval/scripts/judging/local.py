"""The embedded judge: our own support rules in the shape of a judge's verdicts, without a model.

Weaker than a model: it compares words and numbers, so it never says "contradicted", sees no
negation, and cannot write questions. Its agreement with people is that of the support scorer, which
docs/validation.md states. Every output names it ``local/support@<version of the rules>``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from judging.kinds import LISTED
from judging.types import JudgeTask, JudgeVerdict
from ragmetrics import abstention
from ragmetrics.claims import CLAIM_RULES, SUPPORT_RULES, extract
from ragmetrics.support import LexicalClaim, judge
from ragmetrics.text.language import language_of
from ragmetrics.text.numbers import index
from ragmetrics.text.words import TEXT_RULES, clean, fold, spelled, words
from ragmetrics.windows import WINDOW, best_window, merged, prepare
from records.verdicts import KINDS, CallKind, JudgeIdentity

LOCAL_RULES = 5
REVISION = f"{SUPPORT_RULES}.{CLAIM_RULES}.{TEXT_RULES}.{LOCAL_RULES}"
"""Support, claim and text rules, and how they are mapped here: any of them can change a verdict."""
FACT_STRENGTH = 0.35
"""Support from which an answer states a fact of the reference, which it words in its own way. On
123 open pairs of answers (RAGChecker) the difference of fact recall correlates with people's
preference 0.59 at this value and 0.47 at the threshold of claims (Pearson); accepting facts of a
MiniLM cosine of 0.6 besides gave 0.57. The value was chosen on these pairs."""
REFERENCE_SHARE, QUESTION_SHARE = 0.3, 0.4
"""Share of the reference's (without one: the question's) content words in one window of a passage
from which it is useful. Against the gold passages of the demo set the first has a balanced accuracy
of 0.71, the second of 0.58: hardly better than chance."""
CANNOT: Mapping[str, str] = {
    "questions": "the local judge cannot write questions",
    "rubric": "the local judge cannot read rubrics",
    "pairs": "the local judge cannot compare two answers",
}
"""Prompts that the local judge cannot answer, and the remark on the metric."""

Reply = dict[str, Any]


class LocalJudge:
    """Answers every task but those in ``cannot``. Thread-safe: it keeps nothing."""

    cannot = CANNOT
    parameters: Mapping[str, Any] = {}

    @property
    def identity(self) -> JudgeIdentity:
        return JudgeIdentity("local", "support", revision=REVISION, strength="code")

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        """The verdict on a task's inputs; its messages are not read."""
        key = _key(task)
        answer = _ANSWERS.get(task.metric)
        if answer is None:
            why = CANNOT.get(task.metric, f"the local judge knows no {task.metric}")
            return JudgeVerdict(key, None, "refused", why, mode="local", asks=1)
        data = {"notes": ""} | answer(task.inputs) | {"manipulation": False}
        raw = orjson.dumps(data).decode()
        return JudgeVerdict(key, data, raw=raw, mode="local", asks=1, cost_usd=0.0)


def _key(task: JudgeTask) -> str:
    """Like the cache's keys, it tells tasks apart; nothing is cached under it."""
    parts = [REVISION, task.prompt.name, dict(task.inputs), task.repeat]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _entry(name: str, verdict: str, quote: str = "", reason: str = "", context: str = "") -> Reply:
    return {"id": name, "context": context, "quote": quote, "reason": reason, "verdict": verdict}


def _support(kind: CallKind, inputs: Mapping[str, Any]) -> Reply:
    """A verdict an item: do the sources hold it? Flags that words cannot tell are true.

    The question's words need no support in claims, which repeat them; facts are looked for whole.
    """
    question = inputs.get("question", "") if kind.items == "claims" else ""
    sources = [text for source in kind.sources for text in _source_texts(source, inputs)]
    positive, negative = kind.positive or "", kind.verdicts[-1]
    least = FACT_STRENGTH if kind.items == "facts" and kind.sources == ("answer",) else None
    entries = _look_for(inputs[kind.items or ""], sources, question, positive, negative, least)
    flags = dict.fromkeys(kind.extra, True)
    return flags | {"verdicts": entries if kind.cites else [_without_context(e) for e in entries]}


def _source_texts(source: str, inputs: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """The texts that an item may be in; listed facts are one text together."""
    part = inputs.get(source, "")
    if source == LISTED:
        part = "\n".join(fact["text"] for fact in part)
    if isinstance(part, str):
        return [{"id": source, "text": part}] if part else []
    return list(part)


def _look_for(
    items: Sequence[Mapping[str, str]],
    sources: Sequence[Mapping[str, str]],
    question: str,
    positive: str,
    negative: str,
    least: float | None = None,
) -> list[Reply]:
    """A verdict an item; the quote is the best window of sentences.

    ``least``: the strength that is enough in English, where it is a probability.
    """
    texts = " ".join(item["text"] for item in items)
    language = language_of(texts, question, (source["text"] for source in sources))
    chunks = [prepare(source["text"], language) for source in sources]
    pooled, asked = merged(chunks), index(question, language) if question else None
    entries = []
    for item in items:
        text, lead = item["text"], item.get("lead", "")
        support = judge(text, chunks, question=asked, context_numbers=pooled, lead=lead)
        if support is None:
            number = _verbatim(text, sources)
            held = number is not None
            quote = clean(text).strip() if held else ""
            reason = "letter by letter" if held else "no content word to look for"
        else:
            number, held = support.words.chunk, support.supported
            if least is not None and language in (None, "en"):
                held = held or support.strength >= least
            window = support.words.window
            quote = "" if number is None or window is None else chunks[number].text[slice(*window)]
            reason = _reason(support)
        context = "" if number is None else sources[number]["id"]
        entries.append(_entry(item["id"], positive if held else negative, quote, reason, context))
    return entries


def _verbatim(text: str, sources: Sequence[Mapping[str, str]]) -> int | None:
    """Where a text without content words ("42") stands letter by letter."""
    flat = " ".join(words(fold(text)))
    for number, source in enumerate(sources):
        if flat and f" {flat} " in f" {' '.join(words(fold(source['text'])))} ":
            return number
    return None


def _reason(judged: LexicalClaim) -> str:
    support = judged.words
    if support.vetoing:
        return f"number in no passage: {', '.join(support.vetoing[:3])}"
    missing = f"; missing: {', '.join(support.missing[:5])}" if support.missing else ""
    return f"{support.score:.0%} of its words are close together in a passage{missing}"


def _relevance(inputs: Mapping[str, Any]) -> Reply:
    """Useful: one window of the passage holds enough of the reference's or question's words."""
    name = "reference" if inputs.get("reference", "").strip() else "question"
    least = REFERENCE_SHARE if name == "reference" else QUESTION_SHARE
    terms = tuple(spelled(fold(inputs.get(name, ""))))
    replies = []
    for passage in inputs["contexts"]:
        chunk = prepare(passage["text"])
        count, first = best_window(terms, chunk)
        useful = bool(terms) and count >= least * len(terms)
        quote = ""
        if count:
            last = min(first + WINDOW, len(chunk.spans)) - 1
            quote = chunk.text[chunk.spans[first][0] : chunk.spans[last][1]]
        reason = f"{count} of {len(terms)} words of the {name} in one window"
        verdict = "useful" if useful else "not_useful"
        replies.append(_without_context(_entry(passage["id"], verdict, quote, reason)))
    return {"verdicts": replies}


def _abstention(inputs: Mapping[str, Any]) -> Reply:
    answer = inputs.get("answer", "")
    detection = abstention.detect(answer, question=inputs.get("question", ""))
    verdict = "answered" if detection.state == "empty" else detection.state
    quote = "" if detection.span is None else clean(answer)[slice(*detection.span)]
    reason = f"phrase rule: {detection.rule or 'no phrase'}"
    return {"verdicts": [_without_context(_entry("1", verdict, quote, reason))]}


def _claims(inputs: Mapping[str, Any]) -> Reply:
    claims = extract(inputs.get("answer", ""), clauses=True).claims
    return {"claims": [f"{claim.lead} {claim.text}".strip() for claim in claims]}


def _facts(inputs: Mapping[str, Any]) -> Reply:
    """The sentences and clauses of the reference; a short one is one fact as it stands."""
    reference = inputs.get("reference", "")
    facts = [claim.text.strip() for claim in extract(reference, clauses=True).claims]
    return {"facts": facts or [reference.strip()]}


def _without_context(entry: Reply) -> Reply:
    return {name: value for name, value in entry.items() if name != "context"}


_ANSWERS: Mapping[str, Callable[[Mapping[str, Any]], Reply]] = {
    kind.prompt: partial(_support, kind) for kind in KINDS.values() if kind.positive
} | {
    "relevance": _relevance,
    "abstention": _abstention,
    "claims": _claims,
    "facts": _facts,
}
"""By the name of the prompt. Every call that wants quotes is a search for support."""
