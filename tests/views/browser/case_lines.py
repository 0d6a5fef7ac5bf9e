"""The lines of one case in the files of a run, hand-made, and the page that they give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from tests.verdict_files import add_verdicts

from records.judgements import Verdicts, answer_sha256
from records.scores import line_type
from storage import TestResult, case_from_dict, iter_results, read_cases
from views.browser.case_page import case_docs
from views.browser.document import Doc
from views.case import Case, case_of
from views.case_blocks import ShownWith

NONE = Verdicts({})
ANSWER = "Logs are kept for 30 days. The owner can extend this. It costs nothing."
#         0                         27                         54
CHUNKS = [
    {"chunk_id": "c1", "rel_path": "a.md", "heading_path": "A", "text": "Kept for\n  30 days."},
    {"chunk_id": "c2", "rel_path": "b.md", "text": "Nothing", "text_length": 900},
    "c3",
]
RESULT: dict[str, Any] = {
    "test_case_id": "q",
    "question": "How long?",
    "answer": ANSWER,
    "retrieved": CHUNKS,
    "latency_ms": {"total": 12.5},
    "usage": {"total_tokens": 7, "detail": {"cached": 1}},
    "guardrail": {"input_score": 0.25},
    "folder_selection": {"chosen": ["x"], "reason": "asked"},
    "references": [{"index": 1, "rel_path": "a.md"}],
    "policy_flags": ["late"],
    "confidence": 0.5,
}
CASE: dict[str, Any] = {
    "id": "q",
    "question": "How long?",
    "answerable": True,
    "gold_supports": [
        {"rel_path": "a.md", "heading_path": "A", "snippets": ["kept for 30 days"]},
        {"rel_path": "z.md", "heading_path": ""},
    ],
    "forbidden_claims": ["forever"],
}
SECOND = {"text": ANSWER[27:53], "span": [27, 53], "supported": False, "score": 0.25}
CLAIMS = [
    {"text": ANSWER[:26], "span": [0, 26], "supported": True, "chunk_id": "c1"},
    SECOND | {"missing": ["owner"], "vetoed_by": ["9"]},
    {"text": ANSWER[54:], "span": [54, 71], "skipped": "general"},
]
ANCHORS = {"match": "anchor", "found": [1, None], "hits": [1]}
OUTCOME = {"outcome": "uncertain", "expected": "success", "why": "flag late"}
SCORES: dict[str, dict[str, Any]] = {
    "retrieval": {"case_id": "q", "scores": {"recall@5": 0.5}, "evidence": ANCHORS},
    "groundedness": {
        "case_id": "q",
        "status": "scored",
        "scores": {"claim_support_rate": 0.5, "citation_joint": None},
        "reasons": {"citation_joint": "no claim has a citation"},
        "evidence": {"claims": CLAIMS},
    },
    "pipeline": {"case_id": "q", "scores": {"pass": 0.0}, "evidence": OUTCOME},
}


def line(record: Any) -> bytes:
    return json.dumps(record).encode() + b"\n"


def detail_of(
    result: dict[str, Any] = RESULT,
    case: dict[str, Any] | None = CASE,
    scores: dict[str, Any] = SCORES,
    verdicts: Verdicts = NONE,
) -> Case:
    lines = {
        name: msgspec.convert({"repeat": 0, "status": "scored"} | own, line_type(name))
        for name, own in scores.items()
    }
    asked = None if case is None else case_from_dict(case)[0]
    answer = msgspec.convert(result, TestResult)
    return case_of(answer, asked, lines, verdicts, raw=line(result))


def verdicts_on(*records: dict[str, Any]) -> Verdicts:
    """Verdict lines on the answer above; what a line leaves out is as in most."""
    found = Verdicts({})
    case, _ = case_from_dict(CASE)
    assert case is not None
    result = msgspec.convert(RESULT, TestResult)
    for record in records:
        mark = answer_sha256(case, result, None, record["metric"])
        usual: dict[str, Any] = {
            "status": "ok",
            "parts": 1,
            "reason": None,
            "failure": None,
            "extra": {},
        }
        whole = usual | {"subject": mark} | record
        opinions = found.by_answer.setdefault(("q", 0), {})
        parts = opinions.setdefault((whole["metric"], whole.get("judge_repeat", 0)), {})
        parts[whole.get("part", 0)] = whole
    return found


WHO = {"provider": "local", "model": "support"}
JUDGE: dict[str, Any] = {"judge": {"identity": WHO, "prompts": {}, "parameters": {}}}
"""A config.json that names the judge of ``add_verdict``."""


def add_verdict(eval_set: Path, run: Path, **more: Any) -> None:
    """Add a judgement without claims, on the first answer of a run, by the judge above."""
    case = next(iter(read_cases(eval_set, None)))
    result = next(iter(iter_results(run / "results.jsonl")))
    judgement: dict[str, Any] = {
        "case_id": case.id,
        "metric": "groundedness",
        "status": "not_applicable",
        "reason": "no answer",
        "prompt": {"name": "groundedness", "sha256": "1"},
        "judge": WHO,
        "subject": answer_sha256(case, result, None),
    }
    add_verdicts(run / "verdicts.jsonl", [judgement | more])


def page(detail: Case, *, failing: bool = False, full: bool = False, two: bool = False) -> str:
    view = ShownWith("state", failing=failing)
    left, right = case_docs(Doc, detail, view, full=full, two=two)
    return left.text + (right.text if right else "")


def marked(doc: Doc, style: str) -> list[str]:
    return [doc.text[start:end] for start, end, name in doc.marks if name == style]
