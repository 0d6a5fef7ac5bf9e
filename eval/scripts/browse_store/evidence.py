"""From a case's lines in scores/ and verdicts.jsonl to what the screen shows of them.

The files may be of another version or made by hand: what does not have the expected form is left
out and named, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from browser.model import Claim, Judged, SectionScores, Verdict

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
}
"""What a judge's words mean for the colour of a claim; others are unclear."""
GROUNDED = "groundedness"
"""The metric whose claims are held against the retrieved chunks: they colour the answer."""


class _Claim(msgspec.Struct):
    text: str = ""
    span: tuple[int, int] | None = None
    supported: bool | None = None
    score: float | None = None
    chunk_id: str | None = None
    skipped: str | None = None
    missing: list[str] = []
    vetoed_by: list[str] = []
    negation_mismatch: bool = False


class Evidence(msgspec.Struct):
    """Of a score line's evidence, what the screen uses."""

    claims: list[_Claim] = []
    match: str = ""
    found: list[int | None] | None = None
    hits: list[int] | None = None
    expected_claims_missing: list[str] = []
    forbidden_claims_found: list[str] = []
    outcome: str | None = None
    expected: str | None = None
    why: str | None = None


class ScoreLine(msgspec.Struct):
    """A line of scores/<section>.jsonl."""

    case_id: str
    repeat: int = 0
    status: str = ""
    scores: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    evidence: Evidence = msgspec.field(default_factory=Evidence)


def section_scores(section: str, line: ScoreLine) -> SectionScores:
    return SectionScores(section, line.status, line.scores, line.reasons)


def rule_claims(evidence: Evidence) -> tuple[Claim, ...]:
    """Claims as the support rules of score_groundedness see them."""
    return tuple(
        Claim(claim.text, claim.span, _verdict(claim), _note(claim), claim.chunk_id or "")
        for claim in evidence.claims
    )


def _verdict(claim: _Claim) -> Verdict:
    if claim.skipped is not None or claim.supported is None:
        return "skipped"
    return "supported" if claim.supported else "unsupported"


def _note(claim: _Claim) -> str:
    if claim.skipped is not None:
        return f"not judged: {claim.skipped}"
    parts = [] if claim.score is None else [f"{claim.score:.2f} of its words in a passage"]
    if claim.vetoed_by:
        parts.append(f"number not in any source: {', '.join(claim.vetoed_by)}")
    if claim.missing:
        parts.append(f"missing: {', '.join(claim.missing)}")
    if claim.negation_mismatch:
        parts.append("a negation differs")
    return "; ".join(parts)


class _Item(msgspec.Struct):
    id: str | int = ""
    verdict: str | bool | float | None = None
    quote: str | None = None
    context: str | None = None
    reason: str | None = None


class _Text(msgspec.Struct):
    id: str | int = ""
    text: str = ""
    span: tuple[int, int] | None = None
    chunk_id: str | None = None


class _Input(msgspec.Struct):
    answer: str | None = None
    contexts: list[_Text] = []
    claims: list[_Text] = []
    facts: list[_Text] = []


class _Who(msgspec.Struct):
    provider: str = ""
    model: str = ""


class _VerdictLine(msgspec.Struct):
    case_id: str
    metric: str
    repeat: int = 0
    judge_repeat: int = 0
    part: int = 0
    status: str = ""
    reason: str | None = None
    failure: str | None = None
    judge: _Who | None = None
    input: _Input | None = None
    verdicts: list[_Item] = []


def judged(lines: list[bytes], case_id: str, problems: list[str]) -> tuple[Judged, ...]:
    """The verdicts on one answer, the parts of one opinion together.

    Of several lines for one part the last counts.
    """
    found: dict[tuple[str, int], dict[int, _VerdictLine]] = {}
    for line in lines:
        try:
            verdict = msgspec.json.decode(line, type=_VerdictLine)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            problems.append(f"verdicts.jsonl: a line cannot be read ({error})")
            continue
        if verdict.case_id == case_id:
            parts = found.setdefault((verdict.metric, verdict.judge_repeat), {})
            parts[verdict.part] = verdict
    opinions = [parts for _, parts in sorted(found.items())]
    return tuple(_judged([parts[number] for number in sorted(parts)]) for parts in opinions)


def _judged(parts: list[_VerdictLine]) -> Judged:
    """One opinion; its status is that of the worst part."""
    items: list[Claim] = []
    quotes: list[str] = []
    for line in parts:
        given = line.input or _Input()
        chunks = {str(item.id): item for item in given.contexts}
        asked = chunks | {str(item.id): item for item in (*given.facts, *given.claims)}
        for item in line.verdicts:
            items.append(_item(item, asked, chunks))
            quotes.append(item.quote or "")
    worst = next((line for line in parts if line.status != "ok"), parts[0])
    who = worst.judge or _Who()
    opinion = f" (opinion {worst.judge_repeat + 1})" if worst.judge_repeat else ""
    return Judged(
        worst.metric + opinion,
        f"{who.provider}/{who.model}".strip("/"),
        worst.status,
        worst.reason or worst.failure or "",
        tuple(items),
        tuple(quotes),
    )


def _item(item: _Item, asked: Mapping[str, _Text], chunks: Mapping[str, _Text]) -> Claim:
    known = asked.get(str(item.id), _Text())
    word = str(item.verdict)
    chunk = chunks.get(item.context or "", _Text())
    return Claim(
        known.text,
        known.span,
        VERDICTS.get(word.casefold(), "unclear"),
        item.reason or "",
        chunk.chunk_id or "",
        word.replace("_", " "),
    )


def best_claims(
    rules: tuple[Claim, ...], said: tuple[Judged, ...]
) -> tuple[tuple[Claim, ...], str]:
    """The claims that colour the answer, and whose they are: a judge's where it placed them."""
    for one in said:
        placed = tuple(claim for claim in one.items if claim.span is not None)
        if one.metric == GROUNDED and one.status == "ok" and placed:
            return placed, f"judge {one.judge}, {one.metric}"
    return rules, "support rules" if rules else ""


def indented(line: bytes) -> str:
    """A JSON line over several lines, as it is where it is no JSON."""
    try:
        value: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line.decode("utf-8", "replace")
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
