"""Attacks on judges that stand firm, obey, obey in part, get confused, or fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.rows import each_row

from judging.types import JudgeTask, JudgeVerdict
from records.verdicts import JudgeIdentity
from validation.claims import JudgedClaim, JudgedContext
from validation.human import LabelledClaim
from validation.jobs import ATTACKS, MOST_ANSWERS, attacked
from validation.judge import drawn, judged_rows

Decide = Callable[[Mapping[str, Any], bool], "dict[str, str] | None"]
TEXT = "The ferry sails twice a day in winter."


class Scripted:
    """A judge that decides by a function of the inputs and of whether they hold an attack."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.asked = 0
        self.identity = JudgeIdentity("test", "scripted", digest="1", strength="digest")

    async def ask(self, task: JudgeTask) -> JudgeVerdict:
        self.asked += 1
        under_attack = any(attack in task.inputs.get("answer", "") for attack in ATTACKS)
        said = self._decide(task.inputs, under_attack)
        if said is None:
            return JudgeVerdict("k", None, "malformed", "no JSON")
        entries = [
            {"id": name, "context": "c1", "quote": TEXT, "reason": "", "verdict": verdict}
            for name, verdict in said.items()
        ]
        return JudgeVerdict("k", {"notes": "", "verdicts": entries, "manipulation": False})


def answers(count: int) -> tuple[list[JudgedClaim], dict[Any, int]]:
    """Answers with one supported claim (1) and one unsupported (2)."""
    claims = [
        JudgedClaim(
            f"q{n}",
            0,
            name,
            f"Claim {name}.",
            "supported" if name == "1" else "not_found",
            answer="Claim 1. Claim 2.",
            contexts=(JudgedContext("c1", "a.md", TEXT),),
        )
        for n in range(count)
        for name in ("1", "2")
    ]
    return claims, {claim.key: int(claim.claim_id == "1") for claim in claims}


def run(decide: Decide, count: int = 4) -> dict[str, Any]:
    claims, human = answers(count)
    return attacked(claims, human, Scripted(decide), b"salt", 0, 3)


def firm(inputs: Mapping[str, Any], under_attack: bool) -> dict[str, str]:
    return {"1": "supported", "2": "not_found"}


def obeys(inputs: Mapping[str, Any], under_attack: bool) -> dict[str, str]:
    return {"1": "supported", "2": "supported" if under_attack else "not_found"}


def obeys_one(inputs: Mapping[str, Any], under_attack: bool) -> dict[str, str]:
    return obeys(inputs, inputs["answer"].endswith(ATTACKS[0]))


def confused(inputs: Mapping[str, Any], under_attack: bool) -> dict[str, str]:
    return {"1": "not_found" if under_attack else "supported", "2": "not_found"}


@each_row(
    ("decide", "unsupported", "supported", "passed"),
    [
        (firm, 0, 0, True),
        (obeys, 5, 0, False),  # from 0 to 5 by every attack
        (obeys_one, 1, 0, False),  # 5 points of one attack in five are too much
        (confused, 0, 5, False),  # the other limit
    ],
)
def test_both_limits_of_a_judge_under_attack(
    decide: Decide, unsupported: float, supported: float, passed: bool
) -> None:
    found = run(decide)
    assert (found["answers"], found["opinions"], found["failed"]) == (4, 24, 0)
    shifts = found["shift_unsupported"], found["shift_supported"]
    assert shifts == pytest.approx((unsupported, supported))
    assert found["passed"] is passed


def test_failed_opinions_are_no_scores() -> None:
    def fails(inputs: Mapping[str, Any], under_attack: bool) -> dict[str, str] | None:
        return None if under_attack else firm(inputs, under_attack)

    found = run(fails)
    assert (found["failed"], found["opinions"]) == (20, 24)
    assert (found["shift_unsupported"], found["passed"]) == (None, None)


def test_answers_with_an_unsupported_claim_come_first_and_not_all_are_asked() -> None:
    claims, human = answers(50)
    for claim in claims[:60]:  # the first thirty answers: all supported
        human[claim.key] = 1
    judge = Scripted(firm)
    found = attacked(claims, human, judge, b"salt", 0, 3)
    assert found["answers"] == MOST_ANSWERS
    assert judge.asked == 6 * MOST_ANSWERS
    assert found["shift_unsupported"] == 0  # all twenty have one


def test_without_labels_of_unsupported_claims_nothing_is_measured() -> None:
    claims, human = answers(2)
    found = attacked(claims, dict.fromkeys(human, 1), Scripted(firm), b"salt", 0, 3)
    assert found["passed"] is None
    assert attacked([], {}, Scripted(firm), b"salt", 0, 3)["answers"] == 0


def test_rows_are_judged_one_by_one_and_failures_left_out() -> None:
    rows = [LabelledClaim(f"Claim {n} is so.", (TEXT,), n % 2, f"g{n}", "Why?") for n in range(5)]

    def decide(inputs: Mapping[str, Any], under_attack: bool) -> dict[str, str] | None:
        assert len(inputs["claims"]) == 1
        text = inputs["claims"][0]["text"]
        return None if "3" in text else {"1": "not_found" if "2" in text else "supported"}

    judged, human = judged_rows(rows, Scripted(decide), b"salt", 3)
    assert [claim.case_id for claim in judged.claims] == ["row 1", "row 2", "row 3", "row 5"]
    assert [claim.verdict for claim in judged.claims][2] == "not_found"
    assert judged.failed == 1
    assert list(human.values()) == [0, 1, 0, 0]
    assert [claim.source for claim in judged.claims] == ["g0", "g1", "g2", "g4"]
    assert len(drawn(rows, 3, 0)) == 3
    assert drawn(rows, None, 0) == drawn(rows, 9, 0) == rows
