"""One case in full, put together from its lines in the results, set, scores and verdicts.

``build`` gives the values that the browser draws; the plain data of a report is made by
``views.report.described``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
import orjson

from records.cases import Labels, TestCase, canonical, case_from_dict
from records.errors import StorageError
from records.judgements import OTHERS, STALE, Judgement, Opinions, Verdicts
from records.results import TestResult
from records.runs import SCORES
from records.scores import (
    ClaimEvidence,
    GroundednessEvidence,
    PipelineEvidence,
    RetrievalEvidence,
    ScoreHead,
    ScoreLine,
    line_type,
)
from views.browser.model import (
    Claim,
    Detail,
    GoldMatch,
    JudgedMetric,
    RetrievedPassage,
    SectionScores,
    Verdict,
)
from views.searches import complete_words, location_of, search_steps

NO_CASE = (
    "the judge's verdicts are not shown: without the case in the eval set nothing tells whether "
    "they are on this answer"
)

NOT_FOUND = "the line is not there any more: the file was replaced; it is being read again"


def build(
    result_line: bytes,
    case_line: bytes,
    labels: Labels,
    score_lines: Mapping[str, bytes],
    verdicts: Callable[[], Verdicts],
    key: tuple[str, int],
    heads: Mapping[str, ScoreHead | None] = MappingProxyType({}),
) -> Detail:
    """The detail of one result. What cannot be read is left out and named in ``problems``.

    ``verdicts`` reads what the run's judge said of it; it may raise StorageError. ``heads``: of the
    files that the score lines come from.
    """
    case_id, repeat = key
    problems: list[str] = []
    result = _result(result_line, case_id, problems)
    lines = _scores(score_lines, case_id, problems)
    for section, line in lines.items():
        if head := heads.get(section):
            head.complete(line)
    retrieval = _evidence(lines, "retrieval", RetrievalEvidence)
    rules = _rule_claims(_evidence(lines, "groundedness", GroundednessEvidence))
    case = _case(case_line, labels, case_id, problems)
    judgements = _judged(verdicts, case, result, problems)
    claims, by = _best_claims(rules, judgements)
    searched = _plain(lines, "searches")
    return Detail(
        case_id=case_id,
        repeat=repeat,
        question=result.question or (case.question if case else ""),
        status=result.status,
        error=f"{result.error.kind}: {result.error.message}" if result.error else "",
        answer=result.answer,
        abstained=result.abstained,
        claims=claims,
        claims_by=by,
        passages=_passages(result, retrieval.hits),
        hits=None if retrieval.hits is None else tuple(retrieval.hits),
        match=retrieval.match,
        gold=_gold(case, retrieval.match, retrieval.found),
        labels=_labels(case, lines),
        scores=tuple(_section_scores(name, line) for name, line in lines.items()),
        judged=judgements,
        trace=_trace(result, lines),
        raw=_indented(result_line),
        problems=tuple(problems),
        conversation=(case.conversation if case else None) or "",
        turn=case.turn if case else None,
        history=tuple(case.history or ()) if case else (),
        rewritten=result.rewritten_query or "",
        searches=search_steps(result, searched),
        complete=complete_words(searched),
    )


def _plain(lines: Mapping[str, ScoreLine], section: str) -> Mapping[str, Any]:
    """The evidence of a section that has no type of its own."""
    line = lines.get(section)
    return (line.evidence if line is not None else None) or {}


def _result(line: bytes, case_id: str, problems: list[str]) -> TestResult:
    try:
        result = msgspec.json.decode(line, type=TestResult)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problems.append(f"the result cannot be read ({error})" if line else NOT_FOUND)
        return TestResult(case_id)
    if result.test_case_id != case_id:
        problems.append(NOT_FOUND)
        return TestResult(case_id)
    return result


def _scores(lines: Mapping[str, bytes], case_id: str, problems: list[str]) -> dict[str, ScoreLine]:
    readable: dict[str, ScoreLine] = {}
    for section, line in lines.items():
        try:
            score = msgspec.json.decode(line, type=line_type(section))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            problems.append(f"{SCORES}/{section}.jsonl: the line cannot be read ({error})")
            continue
        if score.case_id == case_id:
            readable[section] = score
    return readable


E = TypeVar("E", bound=msgspec.Struct)


def _evidence(lines: Mapping[str, ScoreLine], section: str, kind: type[E]) -> E:
    """What the scores of a section rest on, empty where it was not scored."""
    line = lines.get(section)
    evidence: E | None = None if line is None else line.evidence
    return kind() if evidence is None else evidence


def _judged(
    verdicts: Callable[[], Verdicts],
    case: TestCase | None,
    result: TestResult,
    problems: list[str],
) -> tuple[JudgedMetric, ...]:
    """What the run's present judge said of the answer as it is now; the rest is named."""
    try:
        verdicts_read = verdicts()
    except StorageError as error:
        problems.append(error.message)
        return ()
    if verdicts_read.others:
        problems.append(OTHERS.format(verdicts_read.others))
    if not verdicts_read.by_answer:
        return ()
    if case is None:
        problems.append(NO_CASE)
        return ()
    opinions, stale = verdicts_read.opinions(case, result)
    if stale:
        problems.append(f"verdicts of the judge are not shown: {STALE}")
    return _judged_metrics(opinions, result)


def _case(line: bytes, labels: Labels, case_id: str, problems: list[str]) -> TestCase | None:
    if not line:
        return None
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError:
        raw = None
    raw = canonical(raw) if isinstance(raw, dict) else {}
    if raw.get("id") != case_id:
        problems.append("the case in the eval set was changed since it was read")
        return None
    case, findings = case_from_dict(raw | labels.get(case_id, {}))
    problems += [f"eval set: {field}: {fault}" for field, fault in findings]
    return case


def _passages(result: TestResult, hits: Sequence[int] | None) -> tuple[RetrievedPassage, ...]:
    matched = None if hits is None else set(hits)
    return tuple(
        RetrievedPassage(
            rank=rank,
            chunk_id=chunk.chunk_id,
            location=location_of(chunk),
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
        )
        for rank, chunk in enumerate(result.chunks(), start=1)
    )


def _location(path: str, heading: str | None) -> str:
    return f"{path} > {heading}" if heading else path


def _gold(
    case: TestCase | None, match: str, ranks: Sequence[int | None] | None
) -> tuple[GoldMatch, ...]:
    """The gold of the way of matching that was scored (all of it if none was), with its ranks."""
    if case is None:
        return ()
    supports = [
        GoldMatch(
            _location(support.rel_path, support.heading_path),
            tuple(support.snippets),
            support.grade,
        )
        for support in case.gold_supports
    ]
    by_way = {
        "anchor": supports,
        "chunk": [GoldMatch(f"chunk {chunk_id}") for chunk_id in case.relevant_chunks],
        "doc": [GoldMatch(f"document {doc_id}") for doc_id in case.relevant_docs],
        "text": supports or [GoldMatch("text", (text,)) for text in case.gold_contexts],
    }
    chosen = by_way.get(match) or next(filter(None, by_way.values()), [])
    if ranks is None or len(ranks) != len(chosen):
        return tuple(chosen)
    return tuple(replace(gold, rank=rank) for gold, rank in zip(chosen, ranks, strict=True))


def _labels(case: TestCase | None, lines: Mapping[str, ScoreLine]) -> tuple[tuple[str, str], ...]:
    if case is None:
        return ()
    answerable = {True: "yes", False: "no", None: ""}[case.answerable]
    evidence = _evidence(lines, "groundedness", GroundednessEvidence)
    key_facts = dict.fromkeys(case.expected_key_facts)
    gold_facts = {
        gold.fact: "gold fact" if gold.vital else "gold fact (okay)"
        for gold in case.gold_facts
        if gold.fact not in key_facts
    }
    pairs = [
        ("answerable", answerable),
        ("category", case.category or ""),
        ("difficulty", case.difficulty or ""),
        ("tags", ", ".join(case.tags)),
        ("reference answer", case.reference_answer or ""),
        *(("key fact", fact) for fact in key_facts),
        *((label, fact) for fact, label in gold_facts.items()),
        *(("forbidden claim", claim) for claim in case.forbidden_claims),
        ("expected outcome", case.expected_outcome or ""),
        *(("forbidden, and said", claim) for claim in evidence.forbidden_claims_found),
        *(("gold fact not in the answer", fact) for fact in evidence.nuggets_missing),
    ]
    return tuple((label, text) for label, text in pairs if text)


def _trace(result: TestResult, lines: Mapping[str, ScoreLine]) -> tuple[tuple[str, str], ...]:
    outcome = _evidence(lines, "pipeline", PipelineEvidence)
    folders = result.folder_selection
    searched = ", ".join(folders.chosen) or "all" if folders is not None else ""
    if folders is not None and folders.reason:
        searched += f" ({folders.reason})"
    expected = f", expected {outcome.expected}" if outcome.expected else ""
    why = f" ({outcome.why})" if outcome.why else ""
    pairs = [
        ("outcome", f"{outcome.outcome}{expected}{why}" if outcome.outcome else ""),
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
"""What a judge's words mean for the colour of a claim; others are unclear."""

GROUNDED = "groundedness"
"""The metric whose claims are held against the retrieved chunks: they colour the answer."""


def _section_scores(section: str, line: ScoreLine) -> SectionScores:
    return SectionScores(section, line.status, line.scores, line.reasons)


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
    if claim.negation_mismatch:
        parts.append("the claim is negated, the passage is not")
    if claim.unknown_names:
        parts.append(f"names in no passage: {', '.join(claim.unknown_names)}")
    return "; ".join(parts)


def _judged_metrics(opinions: Opinions, result: TestResult) -> tuple[JudgedMetric, ...]:
    """What the judge said of an answer: metric by metric, of each one opinion after the other."""
    texts = {chunk.chunk_id: chunk.text or "" for chunk in result.chunks()}
    calls = [
        (metric, number, judgement)
        for number, of_opinion in opinions.items()
        for metric, judgement in of_opinion.items()
    ]
    ordered = sorted(calls, key=lambda call: call[:2])
    return tuple(_evidence_judged(*call, texts) for call in ordered)


def _evidence_judged(
    metric: str, number: int, judgement: Judgement, texts: Mapping[str, str]
) -> JudgedMetric:
    """``texts``: of the answer's passages, by chunk id."""
    items: list[Claim] = []
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
        items += [_item(entry, asked, chunks) for entry in line["verdicts"]]
    judge = judgement.lines[0]["judge"]
    opinion = f" (opinion {number + 1})" if number else ""
    return JudgedMetric(
        metric + opinion,
        "/".join(str(judge[name]) for name in ("provider", "model") if judge.get(name)),
        judgement.status,
        judgement.reason,
        tuple(items),
        tuple(entry.get("quote") or "" for entry in judgement.entries),
    )


def _item(entry: Mapping[str, Any], asked: Mapping[str, Any], chunks: Mapping[str, Any]) -> Claim:
    item, word = asked.get(entry["id"], {}), entry["verdict"]
    return Claim(
        item.get("text", ""),
        item.get("span"),
        VERDICTS.get(word.casefold(), "unclear"),
        entry.get("reason") or "",
        chunks.get(entry.get("context") or "", {}).get("chunk_id", ""),
        word.replace("_", " "),
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


def _indented(line: bytes) -> str:
    """A JSON line over several lines, as it is where it is no JSON."""
    try:
        value: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line.decode("utf-8", "replace")
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
