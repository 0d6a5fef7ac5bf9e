"""What judges said of one case, on its page."""

from __future__ import annotations

from typing import Any

from tests.views.browser.case_lines import ANSWER, detail_of, page, verdicts_on

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
