"""Support of the claims of an answer, citations, labels, copied spans, nuggets, form; any text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics import groundedness
from ragmetrics.case_scores import CaseScores
from ragmetrics.claims import AnswerClaim
from ragmetrics.facts import nugget_recall
from ragmetrics.groundedness import METRICS, Labels, score_case, unsupported_claims
from ragmetrics.support import LexicalClaim, judge
from ragmetrics.text.quotes import copying
from ragmetrics.text.words import overlap
from records.cases import GoldFact
from records.results import Reference, RetrievedChunk

PLAN_B = RetrievedChunk(
    chunk_id="c1", doc_id="plans", text="Plan B costs 20 EUR a month. It includes phone support."
)
PLAN_C = RetrievedChunk(chunk_id="c2", doc_id="free", text="Plan C is free of charge for students.")


def scored(
    answer: str | None, chunks: list[RetrievedChunk] | None = None, **more: Any
) -> CaseScores:
    """By plans B and C unless other chunks are given."""
    return score_case(answer, [PLAN_B, PLAN_C] if chunks is None else chunks, **more)


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


def test_without_citations() -> None:
    found = scored("Plan B costs 20 EUR a month.")
    assert found.reasons["citation_validity_form"] == "no citations"
    assert found.reasons["citation_validity_content"] == "no citation marks"
    assert found.values["citation_coverage"] == 0.0
    assert found.reasons["citation_joint"] == "no claim has a citation"
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
    found = scored("Plan B costs money.")
    assert found.reasons["expected_claim_recall"] == "no expected_claims"
    assert found.reasons["forbidden_claims"] == "no forbidden_claims"
    assert found.reasons["expected_citation_recall"] == "no expected_citations"
    assert found.reasons["answer_overlap"] == "no reference_answer"


def test_overlap_with_the_reference() -> None:
    # answer: plan b cost 20 eur (5); reference: plan b cost 25 (4); shared plan b cost (3).
    assert overlap("Plan B costs 20 EUR.", "Plan B costs 25.") == (6 / 9, 3 / 4)
    assert overlap("Plan B.", "Plan B.") == (1.0, 1.0)
    assert overlap("", "Plan B.") == (0.0, 0.0)
    assert overlap("Plan B.", "It is.") is None  # nothing to expect
    assert overlap("plan plan plan", "plan b") == (2 / 5, 1 / 2)  # repeats count


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
    found = copying("one two three four five six", ["one two three", "four five six"])
    assert found is not None
    assert found.coverage == 0.0


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


def by_definition(answer: list[str], contexts: list[list[str]]) -> list[tuple[int, int]]:
    """From the left, at each word the longest span of five words and more of any context: where it
    begins, and its words."""
    spans, start = [], 0
    while start < len(answer):
        longest = max(
            (
                length
                for context in contexts
                for length in range(5, len(answer) - start + 1)
                for at in range(len(context) - length + 1)
                if context[at : at + length] == answer[start : start + length]
            ),
            default=0,
        )
        if longest:
            spans.append((start, longest))
        start += longest or 1
    return spans


FEW_WORDS = st.lists(st.sampled_from(("a", "b", "é", "1,000")), max_size=14)


@given(FEW_WORDS, st.lists(FEW_WORDS, max_size=3))
def test_copied_spans_are_those_of_the_definition(
    answer: list[str], contexts: list[list[str]]
) -> None:
    found = copying(" ".join(answer), [" ".join(context) for context in contexts])
    expected = by_definition(answer, contexts)
    begins = [len(" ".join([*answer[:start], ""])) for start, _ in expected]
    if found is None:
        assert not answer
    else:
        assert [(span.start, span.words) for span in found.spans] == [
            (begin, words) for begin, (_, words) in zip(begins, expected, strict=True)
        ]


FACTS = [
    GoldFact("20 EUR a month", ["twenty euros monthly"]),
    GoldFact("phone support", ["help by phone"]),
    GoldFact("free for students", vital=False),
    GoldFact("renews yearly", vital=False),
]


def recalls(found: CaseScores) -> tuple[float | None, float | None]:
    """vital, all"""
    return found.values["nugget_recall_vital"], found.values["nugget_recall_all"]


def test_vital_and_all() -> None:
    # Held: the first (vital) and the third (okay): vital 1 of 2, all 2 of 4.
    found = scored(
        "Plan B costs 20 EUR [1] a month. Free for students.", labels=Labels(gold_facts=FACTS)
    )
    assert recalls(found) == (1 / 2, 1 / 2)
    assert found.evidence["nuggets_missing"] == ["phone support", "renews yearly"]
    # By an alias both vital ones, and no other: 2 of 2, 2 of 4.
    found = scored("Twenty euros monthly, with help by phone.", labels=Labels(gold_facts=FACTS))
    assert recalls(found) == (1.0, 1 / 2)
    # support, partial, none | okay: support. Vital (1 + .5 + 0) / 3, all (1 + .5 + 0 + 1) / 4.
    recall = nugget_recall([1.0, 0.5, 0.0, 1.0], [True, True, True, False])
    assert recall == {"vital": 0.5, "all": 0.625}
    assert nugget_recall([], []) == {"vital": None, "all": None}


@pytest.mark.parametrize(("answer", "abstained"), [("", False), ("I do not know.", True)])
def test_an_answer_that_says_nothing_holds_no_fact(answer: str, abstained: bool) -> None:
    found = scored(answer, abstained=abstained, labels=Labels(True, gold_facts=FACTS))
    assert recalls(found) == (0.0, 0.0)
    assert found.values["claim_support_rate"] is None


def test_where_it_is_not_applicable() -> None:
    found = scored("Plan B costs 20 EUR.", labels=Labels(False, gold_facts=FACTS))
    assert recalls(found) == (None, None)
    assert found.reasons["nugget_recall_all"] == "unanswerable"
    found = scored("Plan B costs 20 EUR a month.", labels=Labels(gold_facts=FACTS[2:]))
    assert recalls(found) == (None, 0.0)
    assert found.reasons["nugget_recall_vital"] == "no vital gold_facts"
    german = "Der Tarif kostet nicht viel und ist für Studenten, aber nicht für alle anderen, frei."
    english = GoldFact("the plan is free for the students, and it is not for all of the others")
    found = scored(german, labels=Labels(gold_facts=[english]))
    assert found.reasons["nugget_recall_all"] == "language"


def checks(answer: str, **more: Any) -> dict[str, float | None]:
    """Each check of an answer and their mean."""
    values = scored(answer, **more).values
    return {name: values[name] for name in (*groundedness.CHECKS, "answer_quality")}


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


@each_row(
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
    assert groundedness.is_list(answer) is is_list


MAY_PASS_ONE = {
    "unsupported_claims",
    "numeric_fabrications",
    "forbidden_claims",
    "longest_copied_span",
}
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
            if name not in MAY_PASS_ONE:
                assert value <= 1.0


CLAIMS = st.lists(
    st.sampled_from(
        (
            "Plan B costs 20 EUR a month.",
            "Plan B costs 30 EUR.",
            "It includes phone support [1].",
            "I could not find this in the documents.",
            "Der Tarif B kostet 20 EUR im Monat.",
            "Yes",
            "- **Note:** it is free of charge for students",
            "รวมการสนับสนุนทางโทรศัพท์",
        )
    ),
    max_size=5,
).map("\n".join)


@settings(max_examples=150)
@given(CLAIMS | TEXT, st.lists(CLAIMS | TEXT, max_size=3), CLAIMS, st.booleans())
def test_unsupported_claims_alone_are_those_among_all_scores(
    answer: str, texts: list[str], question: str, cut: bool
) -> None:
    chunks = [
        RetrievedChunk(chunk_id=str(n), text=text, text_length=len(text) + cut)
        for n, text in enumerate(texts)
    ]
    among_all = score_case(answer, chunks, question=question).values["unsupported_claims"]
    assert unsupported_claims(answer, chunks, question) == among_all


def test_unsupported_claims_by_hand() -> None:
    chunks = [RetrievedChunk(chunk_id="1", text="Plan B costs 20 EUR a month.")]
    said = "Plan B costs 20 EUR a month. Plan B includes a swimming pool."
    assert unsupported_claims(said, chunks) == 1.0  # the pool
    assert unsupported_claims(" ", chunks) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["a" * 300_000, "1" * 300_000, " " * 300_000, "!" * 300_000, "Plan B. " * 10_000,
     "<!--" * 30_000, "退款政策。" * 10_000],
    ids=["letters", "digits", "blanks", "marks", "sentences", "comments", "han"],
)  # fmt: skip
def test_huge_texts_are_scored(text: str) -> None:
    found = score_case(text, [PLAN_B, RetrievedChunk(chunk_id="c9", text=text)])
    assert set(found.values) == set(METRICS)


RATE, MEAN, COUNT, NUMBERS = (
    "claim_support_rate",
    "mean_claim_support",
    "unsupported_claims",
    "numeric_fabrications",
)


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


def test_a_made_up_number_vetoes_and_is_counted_once() -> None:
    # plan b cost 25 eur month: 5 of 6 words, but 25 stands nowhere: strength 0, not supported.
    answer = "Plan B costs 25 EUR a month. As said, plan B costs 25 EUR a month."
    found = scored(answer)
    assert found.values[RATE] == 0.0
    assert found.values[MEAN] == 0.0
    assert found.values[NUMBERS] == 1.0
    assert found.evidence["numbers"] == {"fabricated": ["25"]}
    assert found.evidence["claims"][0]["vetoed_by"] == ["25"]


def test_an_answer_without_claims() -> None:
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


def test_no_contexts_are_a_zero_and_unknown_names_no_verdict() -> None:
    found = scored("Plan B costs money every month.", [])
    assert (found.values[RATE], found.reasons[RATE]) == (0.0, "no contexts")
    assert found.values[COUNT] == 1.0
    assert found.reasons["verbatim_coverage"] == "no contexts"
    found = scored("Plan B costs 20 EUR a month and has phone support, Mary.")
    assert found.evidence["claims"][0]["unknown_names"] == ["Mary"]
    assert found.values["claim_support_rate"] == 1.0


def test_another_language_than_the_contexts_is_not_applicable() -> None:
    chinese = [RetrievedChunk(chunk_id="c1", text="计划每个月花费二十欧元。")]
    assert scored("这个计划每个月花费二十欧元。").reasons[RATE] == "language"
    english = scored(
        "The plan that is offered to you costs 20 EUR for each of the months.", chinese
    )
    assert english.reasons[RATE] == "language"
    assert english.values["citation_coverage"] == 0.0  # what looks at the answer alone applies
    assert scored("计划每个月花费二十欧元。", chinese).values[RATE] == 1.0


def test_a_negation_is_reported_where_no_window_has_it_and_not_the_other_way() -> None:
    negated = RetrievedChunk(chunk_id="c1", text="Plan B does not include phone support.")
    plain = RetrievedChunk(chunk_id="c1", text="Plan B includes phone support.")
    (claim,) = scored("Plan B does not include phone support.", [plain]).evidence["claims"]
    assert claim["negation_mismatch"]
    (claim,) = scored("Plan B includes phone support.", [negated]).evidence["claims"]
    assert "negation_mismatch" not in claim


def test_unsure_claims_and_what_rests_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_support_models_verdict_counts_unless_a_number_vetoes() -> None:
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


def test_no_claim_of_a_support_model_is_called_unsure() -> None:
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


def test_a_word_share_of_another_language_is_never_unsure() -> None:
    german = RetrievedChunk(chunk_id="c", text="Der Tarif kostet im Monat zwanzig Euro für alle.")
    found = scored("Der Tarif kostet im Monat zwanzig Euro.", [german])
    assert found.values[RATE] == 1.0
    assert found.values["unsure_claim_rate"] is None
    assert found.reasons["answer_supported"] == "language"
