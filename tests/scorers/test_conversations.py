"""Turns with what came before them, whole conversations, and what later turns lose, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.rows import each_row

from ragmetrics.catalogue.conversations import ROWS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.pipeline import asks_back
from records.cases import ChatMessage, GoldSupport, TestCase
from records.results import RetrievedChunk, TestResult
from records.scores import ScoreLine
from scorers.conversations import ConversationsScorer
from scorers.pipeline import check_response
from scorers.variation import TOO_FEW, turn_loss

NAMES = [metric.name for metric in ROWS]
SCORER = ConversationsScorer()


def turn(number: int, *paths: str, **fields: Any) -> TestCase:
    supports = [GoldSupport(path, "Part") for path in paths]
    more: dict[str, Any] = {"conversation": "c", "turn": number, "gold_supports": supports} | fields
    return TestCase(f"t{number}", "And that?", **more)


def answer(paths: str, text: str = "Yes [1].", **fields: Any) -> TestResult:
    """An answer that saw the files of these letters."""
    chunks = [
        RetrievedChunk(c, rel_path=f"{c}.md", heading_path="Part", rank=n, text=f"Text of {c}.")
        for n, c in enumerate(paths, 1)
    ]
    return TestResult("t", answer=text, retrieved=[*chunks], **({"asked_with": "live"} | fields))


def score(
    case: TestCase, result: TestResult, *earlier: tuple[TestCase, TestResult]
) -> tuple[dict[str, Any], dict[str, str], Any]:
    row, evidence = SCORER.score_turn(case, result, earlier)
    return dict(zip(NAMES, row.values, strict=True)), dict(row.reasons), evidence


def test_evidence_that_an_earlier_turn_had_brought() -> None:
    """Turn 3 needs a and b and saw b: recall 1/2. Turn 1 saw a, so together they have all.

    The turn cites a source, so its outcome is success, which is expected: it passes.
    """
    case = turn(3, "a.md", "b.md", expected_outcome="success")
    earlier = [(turn(1), answer("a")), (turn(2), answer("x"))]
    scores, _, evidence = score(case, answer("b"), *earlier)
    assert (scores["evidence_in_history"], scores["answered_from_history"]) == (1.0, 1.0)
    assert (evidence["missing"], evidence["found_at"]) == ([0], [1])
    # without turn 1 nobody had brought a; with it, an answer that cites nothing does not pass
    scores, _, evidence = score(case, answer("b"), earlier[1])
    assert (scores["evidence_in_history"], scores["answered_from_history"]) == (0.0, 0.0)
    assert evidence["found_at"] == [None]
    scores, _, _ = score(case, answer("b", "Yes."), *earlier)
    assert (scores["evidence_in_history"], scores["answered_from_history"]) == (1.0, 0.0)


@each_row(
    ("case", "result", "why"),
    [
        (turn(1, "a.md"), answer("b"), "first turn"),
        (turn(2, "a.md"), answer("b", asked_with="replay"), "not asked live"),
        (turn(2), answer("b"), "no gold"),
        (turn(2, "a.md", answerable=False), answer("b"), "unanswerable"),
        (turn(2, "a.md"), answer("a"), "this turn's passages have all the needed evidence"),
    ],
)
def test_where_nothing_can_be_owed_to_earlier_turns(
    case: TestCase, result: TestResult, why: str
) -> None:
    scores, reasons, _ = score(case, result, (turn(1), answer("a")))
    assert scores["evidence_in_history"] is None
    assert (reasons["evidence_in_history"], reasons["answered_from_history"]) == (why, why)


def test_claims_that_an_earlier_turn_supports() -> None:
    """The claim stands in the passage of turn 1 alone: 0 of 1 now, 1 of 1 with both turns."""
    text = "The blue whale weighs more than a hundred tonnes."
    first = answer("a")
    first.retrieved = [RetrievedChunk("a", text=text, text_length=len(text), rank=1)]
    other = "Ships cross the harbour every morning before the market opens."
    now = answer("b", text)
    now.retrieved = [RetrievedChunk("b", text=other, text_length=len(other), rank=1)]
    scores, _, _ = score(turn(2), now, (turn(1), first))
    assert scores["claim_support_conversation"] == 1.0
    scores, _, _ = score(turn(2), now)
    assert scores["claim_support_conversation"] == 0.0


@each_row(
    ("text", "expected"),
    [
        ("Which loan do you mean?", True),
        ("There are many loans, such as VA loans. Can you say which one you mean?", True),
        ('You may ask about two. Do you mean "Plans"?', True),
        ("Meinen Sie den Tarif oder das Gerät?", True),
        ("どのプランですか？", True),
        ("You have 30 days. Would you like to know more?", False),
        ("You have 30 days. Is there anything else?", False),
        ("Would you like the monthly or the yearly price?", True),
        ("Why so? Because it says so in the contract.", False),
        ("", False),
    ],
)
def test_an_answer_that_asks_back(text: str, expected: bool) -> None:
    assert asks_back(text) is expected


def test_asking_back_where_it_should_and_where_not() -> None:
    unclear = turn(2, expected_outcome="clarify")
    clear = turn(2, "a.md", answerable=True)
    back, straight = answer("a", "Which one do you mean?"), answer("a", "It is the first [1].")
    assert score(unclear, back)[0]["asked_back"] == 1.0
    assert score(unclear, straight)[0]["asked_back"] == 0.0
    assert score(clear, back)[0]["over_asking"] == 1.0
    assert score(clear, straight)[0]["over_asking"] == 0.0
    flagged = answer("a", "Hm.", policy_flags=["clarify"])
    assert score(unclear, flagged)[0]["asked_back"] == 1.0
    assert check_response(unclear, back).evidence["outcome"] == "clarify"
    fixed = TestCase("h", "?", answerable=True, history=[ChatMessage("user", "Hi")])
    assert score(fixed, back)[0]["over_asking"] == 1.0


def test_a_question_by_itself_that_ends_an_answer_is_no_asking_back() -> None:
    """Sets without conversations keep the outcomes that they had."""
    single = TestCase("s", "?", answerable=True, expected_outcome="no_citation")
    checks = check_response(single, answer("a", "Which one do you mean?"))
    assert (checks.evidence["outcome"], checks.values["outcome_match"]) == ("no_citation", 1.0)


def line(
    conversation: int, number: int, status: str = "scored", repeat: int = 0, **evidence: Any
) -> ScoreLine:
    scored = ScoreLine(f"c{conversation}-{number}", repeat, status, {}, evidence=evidence or None)
    scored.conversation, scored.turn, scored.cluster_number = conversation, number, conversation
    return scored


def aggregated(lines: Sequence[ScoreLine]) -> dict[str, Any]:
    names = ("definitions", "n", "not_applicable", "failed", "mean", "ci95", "method")
    section: dict[str, Any] = {name: {} for name in (*names, "clusters", "marks")}
    return SCORER.aggregate(section, iter(lines), 0)


def test_conversations_pass_as_a_whole_or_break_at_a_turn() -> None:
    """1 passes; 2 breaks at turn 2 (and at 3); 3 at turn 1, where the call failed; 4 has no check.

    Pass 1 of 3. Conversation 2 took 10 + 20 + 30 ms, conversation 1 took 40 ms: mean 50.
    """
    passed: dict[str, Any] = {"pass": 1.0}
    failed: dict[str, Any] = {"pass": 0.0}
    unchecked: dict[str, Any] = {"pass": None}
    lines = [line(1, 1, **passed, latency_ms=40.0, usage={"tokens": 7}), line(1, 2, **passed)]
    lines += [line(2, 1, **passed, latency_ms=10.0), line(2, 2, **failed, latency_ms=20.0)]
    lines += [line(2, 3, **failed, latency_ms=30.0), line(3, 1, "failed")]
    section = aggregated([*lines, line(3, 2, "failed"), line(4, 1, **unchecked)])
    assert section["mean"]["conversation_pass"] == pytest.approx(1 / 3)
    assert section["n"] == {"conversation_pass": 3}
    assert section["not_applicable"] == {"conversation_pass": 1}
    assert section["ci95"]["conversation_pass"] is None  # three are too few
    whole = section["conversations"]
    assert (whole["n"], whole["broke_at_turn"]) == (4, {"1": 1, "2": 1})
    # conversation 3 broke at its first turn, 2 at its second; the turn after that is not named
    assert [row["turn"] for row in whole["first_broken"]] == [1, 2]
    assert whole["per_conversation"]["latency_ms"]["mean"] == 50.0
    assert whole["per_conversation"]["usage.tokens"] == pytest.approx(
        {"n": 1, "mean": 7, "p50": 7, "p95": 7, "p99": 7, "max": 7}
    )
    assert whole["per_conversation"]["turns"]["max"] == 3.0
    assert aggregated([line(1, 1, **passed)])["n"] == {"conversation_pass": 1}  # of one turn


METRIC = Metric("m", "f", "meaning", "needs", "source")


def scored(conversation: int, number: int, score: float | None, repeat: int = 0) -> ScoreLine:
    one = line(conversation, number, repeat=repeat)
    one.scores = {"m": score}
    return one


def test_what_later_turns_lose() -> None:
    """Conversation 1: turns 2 and 3 have (.5 + 0) / 2 = .25, turn 1 has 1: -.75. In 2, turn 1 has
    repeats 1 and 0: .5, turn 2 has 1: +.5. In 3 turn 1 is not scored, 4 has one turn: left out.

    The mean is (-.75 + .5) / 2 = -.125.
    """
    lines = [
        *(scored(1, 1, 1.0), scored(1, 2, 0.5), scored(1, 3, 0.0)),
        *(scored(2, 1, 1.0), scored(2, 1, 0.0, 1), scored(2, 2, 1.0), scored(2, 2, 1.0, 1)),
        *(scored(3, 1, None), scored(3, 2, 1.0)),
        scored(4, 1, 1.0),
    ]
    few = {"conversations": 2, "clusters": 2, "ci95": None, "mark": TOO_FEW}
    assert turn_loss(lines, [METRIC])["m"] == {"mean": -0.125} | few
    six = [scored(c, t, 1.0 if t == 1 else c % 2 / 2) for c in range(1, 7) for t in (1, 2)]
    low, high = turn_loss(six, [METRIC])["m"]["ci95"]  # losses -.5, -1, -.5, -1, -.5, -1
    assert -1.0 <= low < -0.75 < high < 0.0
    assert turn_loss([line(0, 0)], [METRIC]) == {}
