"""Support of the claims of an answer, derived by hand; what has nothing to judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ragmetrics.case_scores import CaseScores
from ragmetrics.claims import AnswerClaim
from ragmetrics.support import LexicalClaim, judge
from records.results import RetrievedChunk

Scored = Callable[..., CaseScores]
RATE, MEAN, COUNT, NUMBERS = (
    "claim_support_rate",
    "mean_claim_support",
    "unsupported_claims",
    "numeric_fabrications",
)


def test_support_of_claims(scored: Scored) -> None:
    # Claim 1: plan b cost 20 eur month: 6 of 6. Claim 2: plan c free tourist: 3 of 4 = 0.75.
    # Claim 3: moon made green cheese: 0 of 4.
    answer = (
        "Plan B costs 20 EUR a month. Plan C is free for tourists."
        " The moon is made of green cheese."
    )
    found = scored(answer)
    assert found.values[RATE] == 2 / 3
    assert found.values[MEAN] == pytest.approx((1 + 0.75 + 0) / 3)
    assert found.values[COUNT] == 1.0
    assert found.values[NUMBERS] == 0.0
    claims = found.evidence["claims"]
    # The model's probability; only that it is above its threshold is said here.
    assert claims[0].pop("strength") > 0.5
    assert claims[0] == {
        "text": "Plan B costs 20 EUR a month.",
        "span": [0, 28],
        "type": "assertion",
        "supported": True,
        "score": 1.0,
        "chunk_id": "c1",
        "window": [0, 55],
    }
    assert claims[1]["missing"] == ["tourists"]
    assert claims[2]["missing"] == ["moon", "made", "green", "cheese"]


def test_a_made_up_number_vetoes_and_is_counted_once(scored: Scored) -> None:
    # plan b cost 25 eur month: 5 of 6 words, but 25 stands nowhere: strength 0, not supported.
    answer = "Plan B costs 25 EUR a month. As said, plan B costs 25 EUR a month."
    found = scored(answer)
    assert found.values[RATE] == 0.0
    assert found.values[MEAN] == 0.0
    assert found.values[NUMBERS] == 1.0
    assert found.evidence["numbers"] == {"fabricated": ["25"]}
    assert found.evidence["claims"][0]["vetoed_by"] == ["25"]


def test_an_answer_without_claims(scored: Scored) -> None:
    found = scored("What do you mean?")
    assert found.values[RATE] is None
    assert found.reasons[RATE] == "no claims"
    assert found.values[NUMBERS] == 0.0
    assert found.values["citation_coverage"] is None
    assert found.evidence["claims"][0]["skipped"] == "question"
    found = scored("Plans typically cost money every month.")
    assert found.reasons[RATE] == "no claims"
    assert found.evidence["claims"][0]["skipped"] == "general"
    assert scored("20 EUR").values[NUMBERS] == 0.0
    assert scored("20 EUR").reasons[RATE] == "no claims"
    assert scored("25 EUR").values[NUMBERS] == 1.0


def test_no_contexts_are_a_zero_and_unknown_names_no_verdict(scored: Scored) -> None:
    found = scored("Plan B costs money every month.", [])
    assert (found.values[RATE], found.reasons[RATE]) == (0.0, "no contexts")
    assert found.values[COUNT] == 1.0
    assert found.reasons["verbatim_coverage"] == "no contexts"
    found = scored("Plan B costs 20 EUR a month and has phone support, Mary.")
    assert found.evidence["claims"][0]["unknown_names"] == ["Mary"]
    assert found.values["claim_support_rate"] == 1.0


def test_another_language_than_the_contexts_is_not_applicable(scored: Scored) -> None:
    chinese = [RetrievedChunk(chunk_id="c1", text="计划每个月花费二十欧元。")]
    assert scored("这个计划每个月花费二十欧元。").reasons[RATE] == "language"
    english = scored(
        "The plan that is offered to you costs 20 EUR for each of the months.", chinese
    )
    assert english.reasons[RATE] == "language"
    assert english.values["citation_coverage"] == 0.0  # what looks at the answer alone applies
    assert scored("计划每个月花费二十欧元。", chinese).values[RATE] == 1.0


def test_a_negation_is_reported_where_no_window_has_it_and_not_the_other_way(
    scored: Scored,
) -> None:
    negated = RetrievedChunk(chunk_id="c1", text="Plan B does not include phone support.")
    plain = RetrievedChunk(chunk_id="c1", text="Plan B includes phone support.")
    (claim,) = scored("Plan B does not include phone support.", [plain]).evidence["claims"]
    assert claim["negation_mismatch"]
    (claim,) = scored("Plan B includes phone support.", [negated]).evidence["claims"]
    assert "negation_mismatch" not in claim


def test_unsure_claims_and_what_rests_on_them(
    scored: Scored, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Strengths that are given: .9 holds, .5 is unsure (from .40, below .55) and supported,
    # .4 is unsure and not, .39 surely lacks support.
    chances = iter([0.9, 0.5, 0.4, 0.39])

    def judged(*args: Any, **more: Any) -> LexicalClaim | None:
        chance, support = next(chances), judge(*args, **more)
        return support and replace(support, supported=chance >= 0.5, strength=chance)

    answer = "Plan B costs money. Plan B has support. Plan C is free. Plan C is for students."
    with monkeypatch.context() as patch:
        patch.setattr("ragmetrics.claim_metrics.judge", judged)
        found = scored(answer).values
    assert found[RATE] == 2 / 4
    assert found["unsure_claim_rate"] == 2 / 4
    assert (found["claim_support_low"], found["claim_support_high"]) == (1 / 4, 3 / 4)
    assert found["answer_supported"] == 0.0
    sure = scored("Plan B costs 20 EUR a month.").values
    assert (sure["unsure_claim_rate"], sure["answer_supported"]) == (0.0, 1.0)
    assert sure["claim_support_low"] == sure["claim_support_high"] == 1.0


class GivenChances:
    """A support model that says what it is given, and what it was asked."""

    identity = "given"
    window_words = 4

    def __init__(self, *chances: float) -> None:
        self.chances = list(chances)
        self.asked: list[tuple[list[str], list[str], str, str]] = []

    def __call__(
        self, claims: Sequence[AnswerClaim], passages: Sequence[str], question: str, answer: str
    ) -> list[float]:
        self.asked.append(([claim.text for claim in claims], [*passages], question, answer))
        return self.chances


def test_a_support_models_verdict_counts_unless_a_number_vetoes(scored: Scored) -> None:
    # The word features deny all four: two say the opposite of a passage, one states a 99 that no
    # source has, one shares no word with any. The model accepts all but the last (.49).
    model = GivenChances(0.9, 0.5, 0.9, 0.49)
    sentences = (
        "Plan C is not free of charge for students.",
        "It does not include phone support.",
        "Plan B costs 99 EUR a month.",
        "The moon has green cheese.",
    )
    answer = " ".join(sentences)
    assert scored(answer).values[RATE] == 0.0
    found = scored(answer, support_model=model, question="Which plan?")
    passages = ["Plan B costs 20 EUR a month.", "It includes phone support."]
    passages += ["Plan C is free of charge for students."]  # cut as the model reads: 4 words
    assert model.asked == [([*sentences], passages, "Which plan?", answer)]
    rows = found.evidence["claims"]
    assert [row["supported"] for row in rows] == [True, True, False, False]
    assert [row["strength"] for row in rows] == [0.9, 0.5, 0.0, 0.49]
    assert not any("opposite" in row for row in rows)
    assert (found.values[RATE], found.values[COUNT]) == (2 / 4, 2.0)


def test_no_claim_of_a_support_model_is_called_unsure(scored: Scored) -> None:
    # .40 to .55 is of the word features: .5 of another model says nothing about its doubts.
    found = scored("Plan B costs 20 EUR a month.", support_model=GivenChances(0.5))
    assert found.values[RATE] == 1.0
    for name in (
        "unsure_claim_rate",
        "claim_support_low",
        "claim_support_high",
        "answer_supported",
    ):
        assert found.values[name] is None
        assert found.reasons[name] == "support model"


def test_a_word_share_of_another_language_is_never_unsure(scored: Scored) -> None:
    german = RetrievedChunk(chunk_id="c", text="Der Tarif kostet im Monat zwanzig Euro für alle.")
    found = scored("Der Tarif kostet im Monat zwanzig Euro.", [german])
    assert found.values[RATE] == 1.0
    assert found.values["unsure_claim_rate"] is None
    assert found.reasons["answer_supported"] == "language"
