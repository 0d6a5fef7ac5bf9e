"""One case in full: from its lines to what the page says, with hand-made evidence."""

from __future__ import annotations

import json
from typing import Any

from browse_store.detail import build
from browser.case_page import case_docs, raw_doc
from browser.document import Doc, find_snippets
from browser.model import Claim, Detail
from browser.pair_page import Side, pair_docs

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
SCORES: dict[str, dict[str, Any]] = {
    "retrieval": {
        "case_id": "q",
        "scores": {"recall@5": 0.5},
        "evidence": {"match": "anchor", "found": [1, None], "hits": [1]},
    },
    "groundedness": {
        "case_id": "q",
        "status": "scored",
        "scores": {"claim_support_rate": 0.5, "citation_joint": None},
        "reasons": {"citation_joint": "no claim has a citation"},
        "evidence": {
            "claims": [
                {"text": ANSWER[:26], "span": [0, 26], "supported": True, "chunk_id": "c1"},
                {
                    "text": ANSWER[27:53],
                    "span": [27, 53],
                    "supported": False,
                    "score": 0.25,
                    "missing": ["owner"],
                    "vetoed_by": ["9"],
                },
                {"text": ANSWER[54:], "span": [54, 71], "skipped": "general"},
            ]
        },
    },
    "pipeline": {
        "case_id": "q",
        "scores": {"pass": 0.0},
        "evidence": {"outcome": "uncertain", "expected": "success", "why": "flag late"},
    },
}


def line(record: Any) -> bytes:
    return json.dumps(record).encode() + b"\n"


def detail_of(
    result: dict[str, Any] = RESULT,
    case: dict[str, Any] | None = CASE,
    scores: dict[str, Any] = SCORES,
    verdicts: tuple[dict[str, Any], ...] = (),
) -> Detail:
    return build(
        line(result),
        line(case) if case else b"",
        {},
        {name: line(score) for name, score in scores.items()},
        [line(verdict) for verdict in verdicts],
        ("q", 0),
    )


def page(detail: Detail, **more: Any) -> str:
    options = {"failing": False, "full": False, "two": False} | more
    left, right = case_docs(Doc, detail, "state", **options)
    return left.text + (right.text if right else "")


def marked(doc: Doc, style: str) -> list[str]:
    return [doc.text[start:end] for start, end, name in doc.marks if name == style]


def test_claims_keep_their_place_verdict_and_reason() -> None:
    first, second, third = detail_of().claims
    assert first == Claim(ANSWER[:26], (0, 26), "supported", "", "c1")
    assert (second.verdict, second.span) == ("unsupported", (27, 53))
    assert second.note == (
        "0.25 of its words in a passage; number not in any source: 9; missing: owner"
    )
    assert (third.verdict, third.note) == ("skipped", "not judged: general")


def test_the_answer_is_coloured_and_each_claim_has_a_sign() -> None:
    left, _ = case_docs(Doc, detail_of(), "s", failing=False, full=False, two=False)
    assert f"{ANSWER[:26]} ✓ {ANSWER[27:53]} ✗ {ANSWER[54:]} ·" in left.text
    assert ANSWER[:26] in marked(left, "good")
    assert ANSWER[27:53] in marked(left, "warn")
    assert ANSWER[54:] in marked(left, "dim")


def test_claims_that_overlap_or_lie_outside_leave_the_answer_whole() -> None:
    doc = Doc(ascii_only=True)
    doc.answer(
        "abcdef",
        [
            Claim("x", (0, 4), "supported"),
            Claim("x", (2, 5), "contradicted"),
            Claim("x", (4, 99), "supported"),
            Claim("x", (-3, 2), "supported"),
            Claim("x", None, "supported"),
        ],
    )
    assert doc.text == "abcd +ef\n"
    assert marked(doc, "good") == ["abcd", " +"]


def test_gold_is_marked_as_the_evidence_says() -> None:
    detail = detail_of()
    assert [passage.gold for passage in detail.passages] == [True, False, False]
    assert [(gold.place, gold.rank) for gold in detail.gold] == [("a.md > A", 1), ("z.md", None)]
    shown = page(detail)
    assert "3 chunks, gold ones (anchor): 1" in shown
    assert "gold found at 1    a.md > A" in shown
    assert "gold not retrieved z.md" in shown
    left, _ = case_docs(Doc, detail, "s", failing=False, full=True, two=False)
    assert marked(left, "marked") == ["Kept for\n  30 days"]
    assert "(cut when it was stored; 900 characters long)" in left.text


def test_without_scores_nothing_is_called_gold() -> None:
    detail = detail_of(scores={})
    assert [passage.gold for passage in detail.passages] == [None] * 3
    shown = page(detail)
    assert "gold unknown" in shown
    assert "GOLD" not in shown
    assert "none yet: run eval_suite.py" in shown


def test_key_facts_of_the_set_and_gold_facts_of_the_labels_are_both_told() -> None:
    facts = {"expected_key_facts": ["30 days"], "gold_facts": [{"fact": "a month"}]}
    labels = detail_of(case=CASE | facts).labels
    assert ("key fact", "30 days") in labels
    assert ("gold fact", "a month") in labels


def test_chunk_gold_takes_the_chunk_labels() -> None:
    scores = {
        "retrieval": {
            "case_id": "q",
            "scores": {},
            "evidence": {"match": "chunk", "found": [None, 3], "hits": [3]},
        }
    }
    detail = detail_of(case=CASE | {"relevant_chunks": ["c9", "c3"]}, scores=scores)
    assert [(gold.place, gold.rank) for gold in detail.gold] == [
        ("chunk c9", None),
        ("chunk c3", 3),
    ]


def test_the_trace_tells_how_the_answer_came_about() -> None:
    trace = dict(detail_of().trace)
    assert trace["outcome"] == "uncertain, expected success (flag late)"
    assert trace["latency, ms"] == "total 12.5"
    assert trace["tokens and usage"] == 'total_tokens 7, detail {"cached":1}'
    assert trace["folders searched"] == "x (asked)"
    assert trace["guardrail"] == "input_score 0.25"
    assert trace["citations"] == "[1] a.md"
    assert trace["flags"] == "late"
    assert "uncertain, expected success" in page(detail_of(), failing=True).split("── Answer")[0]


def test_an_error_is_shown_in_place_of_the_answer() -> None:
    error = {"kind": "timeout", "message": "no answer in 60 s", "attempts": 3}
    detail = detail_of({"test_case_id": "q", "status": "error", "error": error}, scores={})
    assert "The call failed: timeout: no answer in 60 s" in page(detail)
    assert detail.question == "How long?", "the set has it"


VERDICT: dict[str, Any] = {
    "case_id": "q",
    "metric": "groundedness",
    "status": "ok",
    "judge": {"provider": "local", "model": "rules"},
    "input": {
        "contexts": [{"id": "k1", "chunk_id": "c2", "text": "Nothing"}],
        "claims": [
            {"id": "1", "text": ANSWER[:26], "span": [0, 26]},
            {"id": "2", "text": ANSWER[27:53], "span": [27, 53]},
        ],
    },
    "verdicts": [
        {"id": "1", "verdict": "contradicted", "quote": "Nothing", "context": "k1", "reason": "no"},
        {"id": "2", "verdict": "quote_unverified"},
    ],
}


def test_a_judge_who_placed_his_claims_colours_the_answer() -> None:
    detail = detail_of(verdicts=(VERDICT,))
    assert detail.claims_by == "judge local/rules, groundedness"
    assert [claim.verdict for claim in detail.claims] == ["contradicted", "unclear"]
    shown = page(detail)
    assert "── Judge: groundedness ── local/rules · ok" in shown
    assert 'quote: "Nothing"' in shown
    assert "‼ contradicted   chunk 2 · no" in shown
    assert "? quote unverified" in shown


def test_only_groundedness_colours_the_answer() -> None:
    other = {**VERDICT, "metric": "answer_correctness"}
    assert detail_of(verdicts=(other,)).claims_by == "support rules"


def test_parts_of_one_opinion_are_shown_together() -> None:
    parts = [
        {
            **VERDICT,
            "metric": "context_precision",
            "part": number,
            "parts": 2,
            "input": {
                "contexts": [{"id": f"k{number}", "chunk_id": f"c{number + 1}", "text": "T"}]
            },
            "verdicts": [{"id": f"k{number}", "verdict": word, "context": f"k{number}"}],
        }
        for number, word in enumerate(("useful", "not_useful"))
    ]
    (one,) = detail_of(verdicts=(parts[1], parts[0])).judged
    assert [(claim.text, claim.verdict, claim.word, claim.chunk_id) for claim in one.items] == [
        ("T", "supported", "useful", "c1"),
        ("T", "unsupported", "not useful", "c2"),
    ]
    failed = {**parts[1], "status": "failed", "failure": "malformed", "verdicts": []}
    (one,) = detail_of(verdicts=(parts[0], failed)).judged
    assert (one.status, one.reason, len(one.items)) == ("failed", "malformed", 1)


def test_of_two_lines_for_one_question_the_last_counts() -> None:
    failed = {**VERDICT, "status": "failed", "failure": "transport", "verdicts": []}
    detail = detail_of(verdicts=(failed, VERDICT))
    assert [one.status for one in detail.judged] == ["ok"]
    again = detail_of(verdicts=(VERDICT, failed, {**VERDICT, "judge_repeat": 1}))
    assert [(one.metric, one.status) for one in again.judged] == [
        ("groundedness", "failed"),
        ("groundedness (opinion 2)", "ok"),
    ]
    assert "failed · transport" in page(again)


def test_lines_of_another_form_are_named_and_left_out() -> None:
    scores = SCORES | {"groundedness": {"case_id": "q", "evidence": {"claims": "none"}}}
    detail = detail_of(case=CASE | {"id": "other"}, scores=scores, verdicts=({"case_id": "q"},))
    assert detail.claims == ()
    said = "\n".join(detail.problems)
    assert "scores/groundedness.jsonl: the line cannot be read" in said
    assert "verdicts.jsonl: a line cannot be read" in said
    assert "the case in the eval set was changed" in said
    gone = build(b"", b"", {}, {}, [], ("q", 0))
    assert gone.problems == (
        "the line is not there any more: the file was replaced; it is being read again",
    )
    assert build(line({"test_case_id": "z"}), b"", {}, {}, [], ("q", 0)).problems == gone.problems


def test_the_raw_result_is_what_the_file_holds() -> None:
    assert json.loads(detail_of().raw) == RESULT
    assert build(b"\xffnot JSON", b"", {}, {}, [], ("q", 0)).raw == "\ufffdnot JSON"


def test_snippets_are_found_whatever_the_line_breaks() -> None:
    assert find_snippets("a  B\nc. a b c", ["a b c", ""]) == [(0, 6), (8, 13)]


def test_a_pair_says_what_changed() -> None:
    new_scores = SCORES | {
        "retrieval": {
            "case_id": "q",
            "scores": {"recall@5": 0.0},
            "evidence": {"match": "anchor", "found": [None, None], "hits": []},
        }
    }
    base, new = detail_of(), detail_of(RESULT | {"answer": "Forever."}, scores=new_scores)
    left, right = pair_docs(
        Doc,
        Side("k10", base, ""),
        Side("k5", new, "no gold support was retrieved"),
        ("BROKE", "bad"),
        two=False,
    )
    assert right is None
    assert "BROKE  base k10 succeeds; new k5 fails: no gold support was retrieved" in left.text
    assert left.text.index("Base: k10") < left.text.index("New: k5")
    assert "1 → none  a.md > A" in left.text
    assert "gold chunks at: base 1; new none" in left.text
    assert "recall@5           0.50 → 0" in left.text
    assert "1 changed, 3 equal" in left.text
    left, right = pair_docs(Doc, Side("k10", base, ""), Side("k5", new, "x"), ("ok", ""), two=True)
    assert right is not None
    assert ("Base: k10" in left.text, "New: k5" in right.text) == (True, True)


def test_a_snippet_that_is_wrapped_is_marked_on_each_of_its_lines() -> None:
    """20 cells less an indent of 8: `alpha beta`, `gamma delta`, `epsilon`."""
    doc = Doc(width=20)
    doc.passage("alpha beta gamma delta epsilon", ["beta gamma"], 100)
    assert doc.text == "        alpha beta\n        gamma delta\n        epsilon\n"
    assert marked(doc, "marked") == ["beta", "gamma"]
    doc = Doc(width=20)
    doc.passage("zero " * 60 + "the snippet" + " more" * 60, ["the snippet"], 30)
    assert "".join(marked(doc, "marked")) == "the snippet"
    assert doc.text.lstrip().startswith("…")
    assert doc.text.endswith("…\n")


def test_a_huge_text_says_that_it_is_cut_and_a_long_result_is_not() -> None:
    doc = Doc()
    doc.line("x" * 70_000)
    assert doc.text.endswith("x … (cut: 70000 characters)\n")
    doc = Doc()
    doc.passage("y" * 70_000, [], None)
    assert doc.text.endswith("y …\n")
    raw = raw_doc(Doc, detail_of(RESULT | {"policy_flags": ["flag"] * 20_000}))
    assert raw.text.count('"flag"') == 20_000
