"""From a case's score lines and the verdicts on it to what the screen shows of them.

The files may be of another version or made by hand: what does not have the expected form is left
out and named, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from browser.model import Claim, Judged, SectionScores, Verdict
from judging.casescores import Judgement
from judging.scorer import Opinions

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


def judged(opinions: Opinions) -> tuple[Judged, ...]:
    """What the judge said of an answer: metric by metric, of each one opinion after the other."""
    calls = [
        (metric, number, judgement)
        for number, of_opinion in opinions.items()
        for metric, judgement in of_opinion.items()
    ]
    return tuple(_judged(*call) for call in sorted(calls, key=lambda call: call[:2]))


def _judged(metric: str, number: int, judgement: Judgement) -> Judged:
    items: list[Claim] = []
    for line in judgement.lines:
        inputs = line["input"]
        chunks = {chunk["id"]: chunk for chunk in inputs.get("contexts", ())}
        both = (*inputs.get("facts", ()), *inputs.get("claims", ()))
        asked = chunks | {item["id"]: item for item in both}
        items += [_item(entry, asked, chunks) for entry in line["verdicts"]]
    judge = judgement.lines[0]["judge"]
    opinion = f" (opinion {number + 1})" if number else ""
    return Judged(
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
