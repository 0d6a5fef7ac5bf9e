"""Whatever the texts: every score is defined or has its reason, however long they are."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragmetrics.groundedness import METRICS, Labels, score_case, unsupported_claims
from records.results import RetrievedChunk

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
def test_huge_texts_are_scored(plan_b: RetrievedChunk, text: str) -> None:
    found = score_case(text, [plan_b, RetrievedChunk(chunk_id="c9", text=text)])
    assert set(found.values) == set(METRICS)
