"""One case in full: the one typed object that browser, report and ``--worst`` draw.

``case_of`` puts it together from the records of the files, which ``views/case_files.py`` reads.
Texts are as they are in the files: whoever draws them makes them harmless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import msgspec
import orjson

from decisions.case_changes import rules_in_words, scores_of
from decisions.case_verdict import NOT_MEASURED, UNREADABLE_BIT, Ruling
from ragmetrics.gold import Match, gold_names, gold_of
from ragmetrics.judged import blame_claims
from records.cases import ChatMessage, TestCase
from records.judgements import OTHERS, STALE, Judgement, Opinions, Verdicts
from records.results import (
    UNREADABLE,
    Reference,
    RetrievedChunk,
    TestResult,
    passages_unknown,
    why_unreadable,
)
from records.rubrics import Rubric, of_prompt
from records.scores import (
    EVIDENCE,
    ClaimEvidence,
    GroundednessEvidence,
    PipelineEvidence,
    RetrievalEvidence,
    ScoreLine,
    SearchesEvidence,
    ToolsEvidence,
)
from views.searches import (
    SearchStep,
    ToolStep,
    complete_words,
    missing_calls,
    search_steps,
    tool_labels,
    tool_steps,
)

Verdict = Literal["supported", "unsupported", "contradicted", "unclear", "skipped"]

E = TypeVar("E", bound=msgspec.Struct)

_SECTIONS = {kind: section for section, kind in EVIDENCE.items()}


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of an answer: ``span`` are offsets in the answer, None when it is not known there.

    Of a judge: ``word``: its verdict, ``quote``: what it rests on, ``blame``: whose fault it is.
    """

    text: str
    span: tuple[int, int] | None
    verdict: Verdict
    note: str = ""
    chunk_id: str = ""
    word: str = ""
    quote: str = ""
    blame: str = ""


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """One retrieved chunk. ``path``: of its file, ``document``: its id. ``gold``: whether the chunk
    matched a gold support; None when that was not scored. ``cited``: whether the answer names it.
    """

    rank: int
    chunk_id: str
    path: str
    text: str
    cut: bool = False
    length: int | None = None
    scores: tuple[tuple[str, float], ...] = ()
    gold: bool | None = None
    heading: str = ""
    document: str = ""
    cited: bool = False
    page: str = ""

    @property
    def location(self) -> str:
        """Path (or document), headings and page, else its id."""
        place = " > ".join(filter(None, (self.path or self.document, self.heading)))
        return (f"{place}, page {self.page}" if place and self.page else place) or self.chunk_id


@dataclass(frozen=True, slots=True)
class GoldMatch:
    """A gold support of the case; ``rank``: of the first chunk that matches it, None if none.

    ``kind``: ``chunk``, ``document`` or ``text`` where the support is no place in a file.
    """

    title: str
    snippets: tuple[str, ...] = ()
    grade: float | None = None
    rank: int | None = None
    heading: str = ""
    kind: str = ""

    @property
    def location(self) -> str:
        """``a.md > Heading`` or ``chunk c1``."""
        place = " > ".join(filter(None, (self.title, self.heading)))
        return " ".join(filter(None, (self.kind, place)))


@dataclass(frozen=True, slots=True)
class JudgedMetric:
    """A judge's verdict on one answer for one metric: ``items`` are its claims or facts."""

    metric: str
    judge: str
    status: str
    reason: str = ""
    items: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """The verdict on an answer in words: a sentence for each rule that fails it or warns."""

    word: str = ""
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One answer of one run, with all that the files say of it.

    ``hits``: ranks of all chunks that match a gold support; None: retrieval was not scored.
    ``labels``: what the set says besides gold, as ``label: text`` pairs. ``trace``: likewise, how
    the answer came about. ``raw``: the result line. ``problems``: what could not be read, in words.
    ``history``: what the case says was said before it, where it is no turn of a ``conversation``.
    ``complete``: at which of the ``searches`` the evidence was whole, in words. ``tools`` None: the
    bot does not report them; ``missing_calls``: expected calls that were not made. ``stale``:
    verdicts of the judge on another answer were left out. ``asked``: the case of the set,
    ``lines``: the score lines by section.
    """

    case_id: str
    repeat: int
    question: str
    status: str
    error: str = ""
    """Why there is no answer, ``kind: message``."""
    answer: str | None = None
    abstained: bool | None = None
    claims: tuple[Claim, ...] = ()
    claims_by: str = ""
    passages: tuple[RetrievedPassage, ...] = ()
    passages_unknown: str = ""
    """Why no one knows which passages there were; "" where that is known."""
    hits: tuple[int, ...] | None = None
    match: str = ""
    gold: tuple[GoldMatch, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    judged: tuple[JudgedMetric, ...] = ()
    trace: tuple[tuple[str, str], ...] = ()
    raw: bytes = b""
    problems: tuple[str, ...] = ()
    conversation: str = ""
    turn: int | None = None
    history: tuple[ChatMessage, ...] = ()
    rewritten: str = ""
    searches: tuple[SearchStep, ...] = ()
    complete: str = ""
    tools: tuple[ToolStep, ...] | None = None
    missing_calls: tuple[str, ...] = ()
    abstain_reason: str | None = None
    confidence: float | None = None
    stale: bool = False
    asked: TestCase | None = None
    lines: Mapping[str, ScoreLine] = field(default_factory=dict)

    @property
    def no_answer(self) -> str:
        """A sentence in place of an answer that failed or could not be read; else ""."""
        if self.status == UNREADABLE:
            return f"The answer could not be read: {self.error.partition(': ')[2]}"
        return f"The call failed: {self.error}" if self.status == "error" else ""

    def values(self) -> dict[str, float | None]:
        """All scores by metric; of metrics with one name, the first."""
        values: dict[str, float | None] = {}
        for line in self.lines.values():
            for name, value in line.scores.items():
                values.setdefault(name, value)
        return values

    @property
    def ranks(self) -> tuple[int | None, ...] | None:
        """The rank of each gold support, None where it was not found; None without a score."""
        found = self.evidence(RetrievalEvidence).found
        return None if found is None else tuple(found)

    def evidence(self, kind: type[E]) -> E:
        """The evidence for the scores of a section, empty where it was not scored."""
        return _evidence(self.lines, kind)

    def say(self, ruling: Ruling, broken: int, before: Case | None = None) -> Said:
        """The verdict on the answer; ``broken``: the rules that it breaks, ``before``: the answer
        of the run that this one is compared with."""
        old = None if before is None else scores_of(before.lines)
        reasons, warnings = (
            rules_in_words(ruling, ruling.rules_of(bits), self.lines, old)
            for bits in ruling.settle(broken)
        )
        fine = NOT_MEASURED if broken & UNREADABLE_BIT else "ok"
        return Said("fails" if reasons else fine, reasons, warnings)


def _evidence(lines: Mapping[str, ScoreLine], kind: type[E]) -> E:
    line = lines.get(_SECTIONS[kind])
    evidence: E | None = None if line is None else line.evidence
    return kind() if evidence is None else evidence


# -- from records -------------------------------------------------------------------------------


def case_of(
    result: TestResult,
    asked: TestCase | None = None,
    lines: Mapping[str, ScoreLine] = MappingProxyType({}),
    verdicts: Verdicts | None = None,
    *,
    raw: bytes = b"",
    problems: Sequence[str] = (),
) -> Case:
    """A case from its result, its line in the set, its score lines and the verdicts of the judge.

    ``problems``: what could not be read of it.
    """
    faults = list(problems)
    opinions, stale = _opinions(verdicts, asked, result, faults)
    retrieval = _evidence(lines, RetrievalEvidence)
    judged = _judged_metrics(opinions, result)
    claims, by = _best_claims(_rule_claims(_evidence(lines, GroundednessEvidence)), judged)
    searched = _evidence(lines, SearchesEvidence)
    called = _evidence(lines, ToolsEvidence)
    return Case(
        case_id=result.test_case_id,
        repeat=result.repeat,
        question=result.question or (asked.question if asked else ""),
        status=result.status,
        error=_without_answer(result),
        answer=result.answer,
        abstained=result.abstained,
        claims=claims,
        claims_by=by,
        passages=_passages(result, retrieval.hits),
        passages_unknown="" if result.status != "ok" else passages_unknown(result),
        hits=None if retrieval.hits is None else tuple(retrieval.hits),
        match=retrieval.match,
        gold=_gold(asked, retrieval.match, retrieval.found),
        labels=_labels(asked, lines),
        judged=judged,
        trace=_trace(result, lines),
        raw=raw,
        problems=tuple(faults),
        conversation=(asked.conversation if asked else None) or "",
        turn=asked.turn if asked else None,
        history=tuple(asked.history or ()) if asked else (),
        rewritten=result.rewritten_query or "",
        searches=search_steps(result, searched),
        complete=complete_words(searched),
        tools=tool_steps(result, called),
        missing_calls=missing_calls(asked, called),
        abstain_reason=result.abstain_reason,
        confidence=result.confidence,
        stale=stale,
        asked=asked,
        lines=lines,
    )


def _without_answer(result: TestResult) -> str:
    """Why there is no answer to show; "" where the call gave one."""
    if result.status == UNREADABLE:
        return f"{UNREADABLE}: {why_unreadable(result)}"
    return f"{result.error.kind}: {result.error.message}" if result.error else ""


NO_CASE = (
    "the judge's verdicts are not shown: without the case in the eval set nothing tells whether "
    "they are on this answer"
)


def _opinions(
    verdicts: Verdicts | None, asked: TestCase | None, result: TestResult, problems: list[str]
) -> tuple[Opinions, bool]:
    """The verdicts of the run's present judge on the present answer; the rest is named."""
    if verdicts is None:
        return {}, False
    if verdicts.others:
        problems.append(OTHERS.format(verdicts.others))
    if not verdicts.by_answer:
        return {}, False
    if asked is None:
        problems.append(NO_CASE)
        return {}, False
    opinions, stale = verdicts.opinions(asked, result)
    if stale:
        problems.append(f"verdicts of the judge are not shown: {STALE}")
    return opinions, stale


def _passages(result: TestResult, hits: Sequence[int] | None) -> tuple[RetrievedPassage, ...]:
    matched = None if hits is None else set(hits)
    return tuple(
        RetrievedPassage(
            rank=rank,
            chunk_id=chunk.chunk_id,
            path=chunk.rel_path or "",
            text=chunk.text or "",
            cut=chunk.truncated,
            length=chunk.text_length,
            scores=tuple(
                (name, value)
                for name, value in (
                    ("vector", chunk.score_vector),
                    ("lexical", chunk.score_lexical),
                    ("final", chunk.score_final),
                )
                if value is not None
            ),
            gold=None if matched is None else rank in matched,
            heading=chunk.heading_path or "",
            document=chunk.doc_id or "",
            page=chunk.page_label,
            cited=any(_names(reference, chunk, rank) for reference in result.references or ()),
        )
        for rank, chunk in enumerate(result.chunks(), start=1)
    )


def _names(reference: Reference, chunk: RetrievedChunk, rank: int) -> bool:
    """True when a reference of the answer names this passage."""
    if reference.chunk_id and chunk.chunk_id:
        return reference.chunk_id == chunk.chunk_id
    return reference.index == rank


def _gold(
    asked: TestCase | None, match: str, ranks: Sequence[int | None] | None
) -> tuple[GoldMatch, ...]:
    """The gold of the way of matching that was scored (all of it if none was), with its ranks."""
    if asked is None:
        return ()
    supports = [
        GoldMatch(
            support.rel_path,
            tuple(support.snippets),
            support.grade,
            heading=support.heading_path or "",
        )
        for support in asked.gold_supports
    ]
    by_way = {
        "anchor": supports,
        "chunk": _gold_by_id(asked, "chunk", "chunk"),
        "doc": _gold_by_id(asked, "doc", "document"),
        "page": [GoldMatch(name) for name in gold_names(asked, "page")],
        "text": supports or [GoldMatch("", (text,), kind="text") for text in asked.gold_contexts],
    }
    chosen = by_way.get(match) or next(filter(None, by_way.values()), [])
    if ranks is None or len(ranks) != len(chosen):
        return tuple(chosen)
    return tuple(replace(gold, rank=rank) for gold, rank in zip(chosen, ranks, strict=True))


def _gold_by_id(asked: TestCase, match: Match, kind: str) -> list[GoldMatch]:
    gold = gold_of(asked, match)
    return [] if gold is None else [GoldMatch(name, kind=kind) for name in gold.keys]


def _labels(asked: TestCase | None, lines: Mapping[str, ScoreLine]) -> tuple[tuple[str, str], ...]:
    if asked is None:
        return ()
    answerable = {True: "yes", False: "no", None: ""}[asked.answerable]
    evidence = _evidence(lines, GroundednessEvidence)
    key_facts = dict.fromkeys(asked.expected_key_facts)
    gold_facts = {
        gold.fact: "gold fact" if gold.vital else "gold fact (okay)"
        for gold in asked.gold_facts
        if gold.fact not in key_facts
    }
    pairs = [
        ("answerable", answerable),
        ("category", asked.category or ""),
        ("difficulty", asked.difficulty or ""),
        ("tags", ", ".join(asked.tags)),
        ("reference answer", asked.reference_answer or ""),
        *(("key fact", fact) for fact in key_facts),
        *((label, fact) for fact, label in gold_facts.items()),
        *(("forbidden claim", claim) for claim in asked.forbidden_claims),
        ("expected outcome", asked.expected_outcome or ""),
        *(("forbidden, and said", claim) for claim in evidence.forbidden_claims_found),
        *(("gold fact not in the answer", fact) for fact in evidence.nuggets_missing),
        *tool_labels(asked),
    ]
    return tuple((label, text) for label, text in pairs if text)


def _trace(result: TestResult, lines: Mapping[str, ScoreLine]) -> tuple[tuple[str, str], ...]:
    outcome = _evidence(lines, PipelineEvidence)
    folders = result.folder_selection
    searched = ", ".join(folders.chosen) or "all" if folders is not None else ""
    if folders is not None and folders.reason:
        searched += f" ({folders.reason})"
    expected = f", expected {outcome.expected}" if outcome.expected else ""
    pairs = [
        ("outcome", f"{outcome.outcome}{expected}{outcome.reason}" if outcome.outcome else ""),
        ("abstained", _abstained(result)),
        ("confidence", "" if result.confidence is None else f"{result.confidence:.3g}"),
        ("flags", ", ".join(result.policy_flags)),
        ("folders searched", searched),
        ("latency, ms", _numbers(result.latency_ms)),
        ("tokens and usage", _numbers(result.usage)),
        ("cost, $", "" if result.cost_usd is None else f"{result.cost_usd:.6g}"),
        ("guardrail", _numbers(result.guardrail)),
        ("citations", ", ".join(_citation(reference) for reference in result.references or ())),
        ("repeat", str(result.repeat) if result.repeat else ""),
    ]
    return tuple((label, text) for label, text in pairs if text)


def _abstained(result: TestResult) -> str:
    if result.abstained is None:
        return ""
    why = f" ({result.abstain_reason})" if result.abstain_reason else ""
    return ("yes" if result.abstained else "no") + why


def _citation(reference: Any) -> str:
    mark = "" if reference.index is None else f"[{reference.index}] "
    return mark + (reference.rel_path or reference.doc_id or reference.chunk_id or "?")


def _numbers(values: Mapping[str, Any]) -> str:
    """``total 12.0, retrieve 3.5``; what is no number as JSON."""
    parts = []
    for name, value in values.items():
        if isinstance(value, float):
            parts.append(f"{name} {value:.4g}")
        elif value not in (None, "", [], {}):
            shown = value if isinstance(value, str | int) else orjson.dumps(value).decode()
            parts.append(f"{name} {shown}")
    return ", ".join(parts)


VERDICTS: dict[str, Verdict] = {
    "supported": "supported",
    "contradicted": "contradicted",
    "not_found": "unsupported",
    "present": "supported",
    "missing": "unsupported",
    "attributed": "supported",
    "not_attributed": "unsupported",
    "useful": "supported",
    "not_useful": "unsupported",
    "support": "supported",
    "none": "unsupported",
}
"""The colour of a claim by the judge's word; others are unclear."""

GROUNDED = "groundedness"
"""The metric whose claims are compared with the retrieved chunks: they colour the answer."""


def _rule_claims(evidence: GroundednessEvidence) -> tuple[Claim, ...]:
    """Claims as the support rules of score_groundedness see them."""
    return tuple(
        Claim(claim.text, claim.span, _verdict(claim), _note(claim), claim.chunk_id or "")
        for claim in evidence.claims
    )


def _verdict(claim: ClaimEvidence) -> Verdict:
    if claim.skipped is not None or claim.supported is None:
        return "skipped"
    return "supported" if claim.supported else "unsupported"


def _note(claim: ClaimEvidence) -> str:
    if claim.skipped is not None:
        return f"not judged: {claim.skipped}"
    parts = [] if claim.score is None else [f"{claim.score:.2f} of its words in a passage"]
    if claim.vetoed_by:
        parts.append(f"number not in any source: {', '.join(map(str, claim.vetoed_by))}")
    if claim.missing:
        parts.append(f"missing: {', '.join(claim.missing)}")
    if claim.opposite:
        parts.append("a sentence of the passage says the opposite")
    elif claim.negation_mismatch:
        parts.append("the claim is negated, the passage is not")
    if claim.unknown_names:
        parts.append(f"names in no passage: {', '.join(claim.unknown_names)}")
    return "; ".join(parts)


def _judged_metrics(opinions: Opinions, result: TestResult) -> tuple[JudgedMetric, ...]:
    """What the judge said of an answer: metric by metric, of each one opinion after the other."""
    texts = {chunk.chunk_id: chunk.text or "" for chunk in result.seen_chunks()}
    blames = blame_claims(opinions.get(0, {}))
    calls = [
        (metric, number, judgement)
        for number, of_opinion in opinions.items()
        for metric, judgement in of_opinion.items()
    ]
    return tuple(
        _judged_metric(metric, number, judgement, texts, {} if number else blames)
        for metric, number, judgement in sorted(calls, key=lambda call: call[:2])
    )


def _judged_metric(
    metric: str,
    number: int,
    judgement: Judgement,
    texts: Mapping[str, str],
    blames: Mapping[str, str],
) -> JudgedMetric:
    """``texts``: of the answer's passages, by chunk id; ``blames``: by claim id."""
    items: list[Claim] = []
    rubric = of_prompt(judgement.lines[0].get("prompt", {}))
    for line in judgement.lines:
        inputs = line["input"]
        chunks = {
            chunk["id"]: chunk | {"text": texts.get(chunk.get("chunk_id", ""), "")}
            for chunk in inputs.get("contexts", ())
        }
        numbered = (
            item for name in ("facts", "claims", "nuggets") for item in inputs.get(name, ())
        )
        asked = chunks | {item["id"]: item for item in numbered}
        if rubric is not None:
            asked = {"1": {"text": " ".join(rubric.ask.split())}}
        items += [_item(entry, asked, chunks, blames, rubric) for entry in line["verdicts"]]
    judge = judgement.lines[0]["judge"]
    opinion = f" (opinion {number + 1})" if number else ""
    return JudgedMetric(
        metric + opinion,
        "/".join(str(judge[name]) for name in ("provider", "model") if judge.get(name)),
        judgement.status,
        judgement.reason,
        tuple(items),
    )


def _item(
    entry: Mapping[str, Any],
    asked: Mapping[str, Any],
    chunks: Mapping[str, Any],
    blames: Mapping[str, str],
    rubric: Rubric | None = None,
) -> Claim:
    item, word = asked.get(entry["id"], {}), entry["verdict"]
    verdict = VERDICTS.get(word.casefold(), "unclear")
    if rubric is not None:
        verdict = "supported" if rubric.reaches(word) else "unsupported"
    return Claim(
        item.get("text", ""),
        item.get("span"),
        verdict,
        entry.get("reason") or "",
        chunks.get(entry.get("context") or "", {}).get("chunk_id", ""),
        word,
        entry.get("quote") or "",
        blames.get(entry["id"], ""),
    )


def _best_claims(
    rules: tuple[Claim, ...], judgements: tuple[JudgedMetric, ...]
) -> tuple[tuple[Claim, ...], str]:
    """The claims that colour the answer, and whose they are: a judge's where it placed them."""
    for metric in judgements:
        placed = tuple(claim for claim in metric.items if claim.span is not None)
        if metric.metric == GROUNDED and metric.status == "ok" and placed:
            return placed, f"judge {metric.judge}, {metric.metric}"
    return rules, "support rules" if rules else ""
