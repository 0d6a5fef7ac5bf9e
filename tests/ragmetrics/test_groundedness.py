"""Groundedness of a case: every metric and edge case, derived by hand."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragmetrics import answermatch, quality
from ragmetrics.casescores import CaseScores
from ragmetrics.copying import copying
from ragmetrics.groundedness import METRICS, Labels, score_case
from records.results import Reference, RetrievedChunk

PLAN_B = RetrievedChunk(
    chunk_id="c1", doc_id="plans", text="Plan B costs 20 EUR a month. It includes phone support."
)
PLAN_C = RetrievedChunk(chunk_id="c2", doc_id="free", text="Plan C is free of charge for students.")
CHUNKS = [PLAN_B, PLAN_C]
RATE, MEAN, COUNT, NUMBERS = (
    "claim_support_rate",
    "mean_claim_support",
    "unsupported_claims",
    "numeric_fabrications",
)


def scored(answer: str | None, chunks: list[RetrievedChunk] = CHUNKS, **more: Any) -> CaseScores:
    return score_case(answer, chunks, **more)


def test_support_of_claims() -> None:
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


def test_a_made_up_number_vetoes_and_is_counted_once() -> None:
    # plan b cost 25 eur month: 5 of 6 words, but 25 stands nowhere: strength 0, not supported.
    answer = "Plan B costs 25 EUR a month. As said, plan B costs 25 EUR a month."
    found = scored(answer)
    assert found.values[RATE] == 0.0
    assert found.values[MEAN] == 0.0
    assert found.values[NUMBERS] == 1.0
    assert found.evidence["numbers"] == {"fabricated": ["25"]}
    assert found.evidence["claims"][0]["vetoed_by"] == ["25"]


def test_a_perfect_answer_is_exactly_one() -> None:
    found = scored(
        "Plan B costs 20 EUR a month [1].", references=[Reference(index=1, chunk_id="c1")]
    )
    for name in (RATE, MEAN, "citation_validity_form", "citation_validity_content"):
        assert found.values[name] == 1.0
    assert found.values["citation_coverage"] == 1.0
    assert found.values["citation_joint"] == 1.0


@pytest.mark.parametrize(
    ("answer", "abstained", "reason"),
    [
        ("", False, "empty answer"),
        (None, False, "empty answer"),
        ("I don't know.", True, "abstention"),
    ],
)
def test_nothing_to_judge(answer: str | None, abstained: bool, reason: str) -> None:
    found = scored(answer, abstained=abstained)
    for name in METRICS:
        if name not in quality.CHECKS and name != "answer_quality":
            assert found.values[name] is None
            assert found.reasons[name] == reason


def test_an_answer_without_claims() -> None:
    found = scored("What do you mean?")
    assert found.values[RATE] is None
    assert found.reasons[RATE] == "no claims"
    assert found.values[NUMBERS] == 0.0
    assert found.values["citation_coverage"] is None
    assert found.evidence["claims"][0]["skipped"] == "question"


def test_general_claims_are_skipped() -> None:
    found = scored("Plans typically cost money every month.")
    assert found.reasons[RATE] == "no claims"
    assert found.evidence["claims"][0]["skipped"] == "general"


def test_an_answer_of_numbers_only_is_checked_as_numbers() -> None:
    assert scored("20 EUR").values[NUMBERS] == 0.0
    assert scored("20 EUR").reasons[RATE] == "no claims"
    assert scored("25 EUR").values[NUMBERS] == 1.0


def test_no_contexts_under_an_answer_is_a_zero_with_its_reason() -> None:
    found = scored("Plan B costs money every month.", [])
    assert (found.values[RATE], found.reasons[RATE]) == (0.0, "no contexts")
    assert found.values[COUNT] == 1.0
    assert found.reasons["verbatim_coverage"] == "no contexts"


def test_chunks_without_texts_or_with_cut_ones_are_not_applicable() -> None:
    found = scored("Plan B costs money.", [RetrievedChunk(chunk_id="c1")])
    assert found.reasons[RATE] == "no chunk texts"
    cut = RetrievedChunk(chunk_id="c1", text="Plan B co", text_length=400)
    found = scored("Plan B costs money [1].", [cut])
    for name in (RATE, NUMBERS, "citation_validity_content", "citation_joint", "verbatim_coverage"):
        assert found.values[name] is None
        assert found.reasons[name] == "text was truncated"
    assert found.values["citation_validity_form"] == 1.0  # needs no text


def test_another_language_than_the_contexts_is_not_applicable() -> None:
    assert scored("这个计划每个月花费二十欧元。").reasons[RATE] == "language"
    chinese = [RetrievedChunk(chunk_id="c1", text="计划每个月花费二十欧元。")]
    assert scored("计划每个月花费二十欧元。", chinese).values[RATE] == 1.0


def test_citations_of_a_case() -> None:
    # [1] resolves and bears its claim out, [7] does not resolve: form 1/2, content 1/1.
    # Two claims, both cited: coverage 1; joint: the second has no source at all: 1/2.
    found = scored("Plan B costs 20 EUR a month [1]. Plan C is free of charge [7].")
    assert found.values["citation_validity_form"] == 1 / 2
    assert found.values["citation_validity_content"] == 1.0
    assert found.values["citation_coverage"] == 1.0
    assert found.values["citation_joint"] == 1 / 2
    assert found.evidence["citations"] == [
        {"target": 1, "span": [28, 31], "chunk_id": "c1"},
        {"target": 7, "span": [58, 61], "chunk_id": None},
    ]


def test_a_citation_that_does_not_bear_its_claim_out_is_evidence() -> None:
    found = scored("Plan B costs 20 EUR a month [2].")
    assert found.values["citation_validity_content"] == 0.0
    assert found.evidence["citations"][0]["supported"] is False


def test_without_citations() -> None:
    found = scored("Plan B costs 20 EUR a month.")
    assert found.reasons["citation_validity_form"] == "no citations"
    assert found.reasons["citation_validity_content"] == "no citation marks"
    assert found.values["citation_coverage"] == 0.0
    assert found.reasons["citation_joint"] == "no claim has a citation"


def test_references_without_marks_count_for_form_only() -> None:
    listed = [Reference(doc_id="plans"), Reference(doc_id="gone")]
    found = scored("Plan B costs 20 EUR a month.", references=listed)
    assert found.values["citation_validity_form"] == 1 / 2
    assert found.values["citation_validity_content"] is None


def test_labels() -> None:
    answer = "You get 15 days of paid vacation [1]. There is no unlimited vacation."
    labels = Labels(
        expected_claims=["fifteen days paid vacation", "vacation accrues monthly"],
        forbidden_claims=["unlimited vacation", "15 days of paid vacation", "30 days of vacation"],
        expected_citations=["plans", "free"],
    )
    found = scored(answer, labels=labels)
    # Stated: the first; "accrues monthly" is not: 1/2. Unlimited is denied, 30 not said.
    assert found.values["expected_claim_recall"] == 1 / 2
    assert found.evidence["expected_claims_missing"] == ["vacation accrues monthly"]
    assert found.values["forbidden_claims"] == 1.0
    assert found.evidence["forbidden_claims_found"] == ["15 days of paid vacation"]
    assert found.values["expected_citation_recall"] == 1 / 2


def test_a_case_without_labels_has_no_label_metrics() -> None:
    found = scored("Plan B costs money.")
    assert found.reasons["expected_claim_recall"] == "no expected_claims"
    assert found.reasons["forbidden_claims"] == "no forbidden_claims"
    assert found.reasons["expected_citation_recall"] == "no expected_citations"
    assert found.reasons["answer_overlap"] == "no reference_answer"


def test_overlap_with_the_reference() -> None:
    # answer: plan b cost 20 eur (5); reference: plan b cost 25 (4); shared plan b cost (3).
    assert answermatch.overlap("Plan B costs 20 EUR.", "Plan B costs 25.") == (6 / 9, 3 / 4)
    assert answermatch.overlap("Plan B.", "Plan B.") == (1.0, 1.0)
    assert answermatch.overlap("", "Plan B.") == (0.0, 0.0)
    assert answermatch.overlap("Plan B.", "It is.") is None  # nothing to expect
    assert answermatch.overlap("plan plan plan", "plan b") == (2 / 5, 1 / 2)  # repeats count


def test_copied_spans() -> None:
    # 10 words; the first six (plan b costs 20 eur each) stand in the context in one piece.
    context = "Note that plan B costs 20 EUR each month."
    found = copying("Plan B costs 20 EUR each week, or so it", [context])
    assert found is not None
    assert (found.coverage, found.longest) == (6 / 10, 6)
    short = copying("Plan B costs 20 maybe", [context])
    assert short is not None
    assert (short.coverage, short.longest, short.spans) == (0.0, 0, ())  # four words are no span
    assert copying("!!!", [context]) is None


@pytest.mark.parametrize(
    "answer",
    [
        "Whales swim in the deep cold oceans. [1][2]",
        "Whales swim in the [1] deep cold oceans [2].",
        "- Whales swim in the deep cold oceans [1].",
    ],
)
def test_citation_marks_are_no_words_of_a_copied_span(answer: str) -> None:
    # whales swim in the deep cold oceans: 7 words, all copied in one piece, marks or not. The
    # evidence spans the answer as it was written: from the first letter to the last.
    chunk = RetrievedChunk(chunk_id="w", text="Whales swim in the deep [4] cold oceans.")
    found = scored(answer, [chunk, PLAN_C])
    assert found.values["verbatim_coverage"] == 1.0
    assert found.values["longest_copied_span"] == 7.0
    span = [answer.index("Whales"), answer.index("oceans") + len("oceans")]
    assert found.evidence["longest_copied"] == {"span": span, "chunk_id": "w"}


def test_a_span_is_of_one_context() -> None:
    found = copying("one two three four five six", ["one two three", "four five six"])
    assert found is not None
    assert found.coverage == 0.0


def checks(answer: str, **more: Any) -> dict[str, float | None]:
    values = scored(answer, **more).values
    return {name: values[name] for name in (*quality.CHECKS, "answer_quality")}


def test_quality_checks() -> None:
    # Passed: not empty, contexts, citations, no fallback; not applicable: scores, list. 4/4.
    assert checks("Plan B costs money [1].") == {
        "answer_not_empty": 1.0,
        "contexts_exist": 1.0,
        "has_citations": 1.0,
        "no_fallback_phrase": 1.0,
        "retrieval_scores_ok": None,
        "list_question_gets_list": None,
        "answer_quality": 1.0,
    }
    # No citation, best score 0.2 under 0.3, a list question without a list: 3 of 6.
    found = checks("Plan B costs money.", question="List the plans.", best_score=0.2, min_score=0.3)
    assert found["has_citations"] == found["retrieval_scores_ok"] == 0.0
    assert found["list_question_gets_list"] == 0.0
    assert found["answer_quality"] == 3 / 6


def test_quality_of_an_empty_answer_and_of_an_unanswerable_case() -> None:
    empty = checks("")
    assert (empty["answer_not_empty"], empty["contexts_exist"]) == (0.0, 1.0)
    assert empty["has_citations"] is empty["no_fallback_phrase"] is None
    assert empty["answer_quality"] == 1 / 2
    honest = checks("I don't know.", abstained=True, labels=Labels(answerable=False))
    assert honest["no_fallback_phrase"] is None
    assert checks("I don't know.", abstained=True)["no_fallback_phrase"] == 0.0


@pytest.mark.parametrize(
    ("answer", "is_list"),
    [
        ("- plan A\n- plan B", True),
        ("Plan A, plan B, and plan C exist.", True),
        ("Plan A; plan B; plan C.", True),
        ("Red, green or blue.", True),
        ("Plan B costs money, and it renews.", False),
        ("Plan B.", False),
        ("a, b, " * 50_000, False),
    ],
)
def test_lists(answer: str, is_list: bool) -> None:
    assert quality.is_list(answer) is is_list


TEXT = st.text(st.characters(), max_size=80)


@settings(max_examples=150)
@given(TEXT, st.lists(TEXT, max_size=3), st.booleans())
def test_any_case_has_defined_scores(answer: str, texts: list[str], abstained: bool) -> None:
    chunks = [RetrievedChunk(chunk_id=str(n), text=text) for n, text in enumerate(texts)]
    labels = Labels(None, answer, [answer], [answer], ["1"])
    found = score_case(answer, chunks, question=answer, abstained=abstained, labels=labels)
    orjson.dumps(found.evidence)  # storable, whatever the text
    assert set(found.values) == set(METRICS)
    for name, value in found.values.items():
        if value is None:
            assert found.reasons[name]
        else:
            assert value >= 0.0
            if name not in (COUNT, NUMBERS, "forbidden_claims", "longest_copied_span"):
                assert value <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "1" * 1_000_000, " " * 1_000_000, "!" * 1_000_000, "Plan B. " * 20_000,
     "<!--" * 50_000, "退款政策。" * 20_000],
    ids=["letters", "digits", "blanks", "marks", "sentences", "comments", "han"],
)  # fmt: skip
def test_huge_texts_are_scored(text: str) -> None:
    found = scored(text, [PLAN_B, RetrievedChunk(chunk_id="c9", text=text)])
    assert set(found.values) == set(METRICS)
