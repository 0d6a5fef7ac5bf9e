"""One case in full, from its lines and verdicts to what the page says, with hand-made evidence."""

from __future__ import annotations

import json
from typing import Any

from tests.views.browser.case_lines import (
    ANSWER,
    CASE,
    RESULT,
    SCORES,
    detail_of,
    line,
    marked,
    page,
    verdicts_on,
)

from records.run import Run
from records.scores import PipelineEvidence
from views.browser.case_page import case_docs, raw_doc
from views.browser.document import Doc
from views.case import Case, Claim
from views.case_blocks import ShownWith, case_blocks
from views.case_files import read_case


def test_claims_keep_their_place_verdict_and_reason() -> None:
    first, second, third = detail_of().claims
    assert first == Claim(ANSWER[:26], (0, 26), "supported", "", "c1")
    assert (second.verdict, second.span) == ("unsupported", (27, 53))
    assert second.note == (
        "0.25 of its words in a passage; number not in any source: 9; missing: owner"
    )
    assert (third.verdict, third.note) == ("skipped", "not judged: general")


def test_the_answer_is_coloured_and_each_claim_has_a_sign() -> None:
    left, _ = case_docs(Doc, detail_of(), ShownWith(), full=False, two=False)
    assert f"{ANSWER[:26]} ✓ {ANSWER[27:53]} ✗ {ANSWER[54:]} ·" in left.text
    assert ANSWER[:26] in marked(left, "good")
    assert ANSWER[27:53] in marked(left, "warn")
    assert ANSWER[54:] in marked(left, "dim")


def test_claims_that_overlap_or_lie_outside_leave_the_answer_whole() -> None:
    claims = (
        Claim("x", (0, 4), "supported"),
        Claim("x", (2, 5), "contradicted"),
        Claim("x", (4, 99), "supported"),
        Claim("x", (-3, 2), "supported"),
        Claim("x", None, "supported"),
    )
    doc = Doc(ascii_only=True)
    case = Case("q", 0, "?", "ok", answer="abcdef", claims=claims, claims_by="rules")
    doc.draw(case_blocks(case, ("answer",)))
    assert doc.text == "-- Answer -- claims by rules\nabcd +ef\n"
    assert marked(doc, "good") == ["abcd", " +"]


def test_gold_is_marked_as_the_evidence_says() -> None:
    detail = detail_of()
    assert [passage.gold for passage in detail.passages] == [True, False, False]
    assert [(gold.location, gold.rank) for gold in detail.gold] == [("a.md > A", 1), ("z.md", None)]
    shown = page(detail)
    assert "3 passages, gold ones (anchor): 1" in shown
    assert "gold found at 1    a.md > A" in shown
    assert "gold not retrieved z.md" in shown
    left, _ = case_docs(Doc, detail, ShownWith(), full=True, two=False)
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
    gold = [{"fact": "a month"}, {"fact": "by post", "vital": False}]
    facts = {"expected_key_facts": ["30 days"], "gold_facts": gold}
    groundedness = {"case_id": "q", "scores": {}, "evidence": {"nuggets_missing": ["by post"]}}
    labels = detail_of(case=CASE | facts, scores={"groundedness": groundedness}).labels
    assert ("key fact", "30 days") in labels
    assert ("gold fact", "a month") in labels
    assert ("gold fact (okay)", "by post") in labels
    assert ("gold fact not in the answer", "by post") in labels


def test_chunk_gold_takes_the_chunk_labels_or_the_grades_that_say_so() -> None:
    evidence = {"match": "chunk", "found": [None, 3], "hits": [3]}
    scores = {"retrieval": {"case_id": "q", "scores": {}, "evidence": evidence}}
    grades = {"c9": 2, "c8": 0, "c3": 1}
    for labels in ({"relevant_chunks": ["c9", "c3"]}, {"chunk_relevance_grades": grades}):
        gold = detail_of(case=CASE | labels, scores=scores).gold
        assert [(one.location, one.rank) for one in gold] == [("chunk c9", None), ("chunk c3", 3)]


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


def test_scores_stand_by_section_and_why_there_is_none() -> None:
    unscored = {"case_id": "q", "scores": {}, "status": "failed", "reasons": {"*": "no answer"}}
    text = page(detail_of(scores=SCORES | {"pipeline": unscored}))
    scores = text.partition("── Scores ──\n")[2].partition("\n\n")[0]
    assert [line.split(maxsplit=1) for line in scores.splitlines()] == [
        ["retrieval", "recall@5 0.50"],
        ["groundedness", "claim_support_rate 0.50"],
        ["-", "citation_joint: no claim has a citation"],
        ["pipeline", "failed"],
        ["-", "nothing scored: no answer"],
    ]


def test_an_error_is_shown_in_place_of_the_answer() -> None:
    error = {"kind": "timeout", "message": "no answer in 60 s", "attempts": 3}
    detail = detail_of({"test_case_id": "q", "status": "error", "error": error}, scores={})
    assert "The call failed: timeout: no answer in 60 s" in page(detail)
    assert detail.question == "How long?", "the set has it"


def test_a_case_whose_files_were_replaced_is_named_and_left_out(runs: Any) -> None:
    runs.cases(CASE)
    folder = runs.run("r", [], retrieval=[SCORES["retrieval"]])
    results = folder / "results.jsonl"
    results.write_bytes(line(RESULT))
    run = Run(folder, runs.eval_set, tolerant=True)
    detail = read_case(run, 0, ("q", 0))
    assert (detail.answer, detail.problems, detail.values()) == (ANSWER, (), {"recall@5": 0.5})
    assert json.loads(detail.raw) == RESULT
    scores = folder / "scores" / "retrieval.jsonl"
    scores.write_bytes(scores.read_bytes().replace(b"0.5", b"bad"))
    (problem,) = read_case(run, 0, ("q", 0)).problems
    assert "retrieval.jsonl:1: is not a score line" in problem
    scores.unlink()
    gone = "the line is not there any more: the file was replaced; it is being read again"
    for text in (line({"test_case_id": "z"}), b"", None):
        results.write_bytes(text) if text is not None else results.unlink()
        assert read_case(run, 0, ("q", 0)).problems == (gone,)
    results.write_bytes(b"\xffnot JSON")
    broken = read_case(run, 0, ("q", 0))
    assert broken.problems[0].startswith("the result cannot be read")
    assert raw_doc(Doc, broken).text.endswith("\ufffdnot JSON\n")


def test_an_outcome_is_not_explained_by_its_own_name() -> None:
    assert PipelineEvidence(outcome="no_citation", why="no citation").reason == ""
    assert PipelineEvidence(outcome="no_results", why="flag no_context").reason == (
        " (flag no_context)"
    )
    assert PipelineEvidence(why="no answer").reason == " (no answer)"


PASSAGE = {"id": "k1", "chunk_id": "c2", "text": "Nothing"}
NAMED = [
    {"id": "1", "text": ANSWER[:26], "span": [0, 26]},
    {"id": "2", "text": ANSWER[27:53], "span": [27, 53]},
]
VERDICT: dict[str, Any] = {
    **{"case_id": "q", "metric": "groundedness", "status": "ok"},
    "judge": {"provider": "local", "model": "rules"},
    "input": {"contexts": [PASSAGE], "claims": NAMED},
    "verdicts": [
        {"id": "1", "verdict": "contradicted", "quote": "Nothing", "context": "k1", "reason": "no"},
        {"id": "2", "verdict": "quote_unverified"},
    ],
}


def test_a_judge_who_placed_his_claims_colours_the_answer() -> None:
    detail = detail_of(verdicts=verdicts_on(VERDICT))
    assert detail.claims_by == "judge local/rules, groundedness"
    assert [claim.verdict for claim in detail.claims] == ["contradicted", "unclear"]
    shown = page(detail)
    assert "── Judge: groundedness ── local/rules · ok" in shown
    assert 'quote: "Nothing"' in shown
    assert "                   passage 2 · no" in shown
    assert "? quote unverified" in shown


def test_only_groundedness_colours_the_answer() -> None:
    other = {**VERDICT, "metric": "answer_correctness"}
    assert detail_of(verdicts=verdicts_on(other)).claims_by == "support rules"


def test_nuggets_have_their_text_and_their_colour() -> None:
    words = ("support", "partial", "none")
    nuggets = {
        "metric": "nuggets",
        "judge": VERDICT["judge"],
        "input": {"nuggets": [{"id": f"n{n}", "text": f"fact {n}"} for n in range(3)]},
        "verdicts": [{"id": f"n{n}", "verdict": word} for n, word in enumerate(words)],
    }
    (judged,) = detail_of(verdicts=verdicts_on(nuggets)).judged
    assert [(item.text, item.verdict, item.word) for item in judged.items] == [
        ("fact 0", "supported", "support"),
        ("fact 1", "unclear", "partial"),
        ("fact 2", "unsupported", "none"),
    ]


def test_parts_of_one_opinion_are_shown_together() -> None:
    """The texts are those of the result: a verdict names its passage by id."""
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
    (one,) = detail_of(verdicts=verdicts_on(parts[1], parts[0])).judged
    assert [(claim.text, claim.verdict, claim.word, claim.chunk_id) for claim in one.items] == [
        ("Kept for\n  30 days.", "supported", "useful", "c1"),
        ("Nothing", "unsupported", "not_useful", "c2"),
    ]
    failed = {**parts[1], "status": "failed", "failure": "malformed", "verdicts": []}
    (one,) = detail_of(verdicts=verdicts_on(parts[0], failed)).judged
    assert (one.status, one.reason, len(one.items)) == ("failed", "malformed", 1)


def test_opinions_stand_one_after_the_other() -> None:
    failed = {**VERDICT, "status": "failed", "failure": "transport", "verdicts": []}
    again = detail_of(verdicts=verdicts_on({**VERDICT, "judge_repeat": 1}, failed))
    expected = [("groundedness", "failed"), ("groundedness (opinion 2)", "ok")]
    assert [(one.metric, one.status) for one in again.judged] == expected
    assert "failed · transport" in page(again)


def test_an_opinion_of_which_a_part_is_missing_is_none() -> None:
    half = {**VERDICT, "part": 0, "parts": 2}
    assert detail_of(verdicts=verdicts_on(half)).judged == ()
