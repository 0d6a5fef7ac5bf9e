"""Spans that an answer copies from its contexts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmetrics.case_scores import CaseScores
from ragmetrics.text.quotes import copying
from records.results import RetrievedChunk

Scored = Callable[..., CaseScores]


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
def test_citation_marks_are_no_words_of_a_copied_span(
    scored: Scored, plan_c: RetrievedChunk, answer: str
) -> None:
    # whales swim in the deep cold oceans: 7 words, all copied in one piece, marks or not. The
    # evidence spans the answer as it was written: from the first letter to the last.
    chunk = RetrievedChunk(chunk_id="w", text="Whales swim in the deep [4] cold oceans.")
    found = scored(answer, [chunk, plan_c])
    assert found.values["verbatim_coverage"] == 1.0
    assert found.values["longest_copied_span"] == 7.0
    span = [answer.index("Whales"), answer.index("oceans") + len("oceans")]
    assert found.evidence["longest_copied"] == {"span": span, "chunk_id": "w"}


def test_a_span_is_of_one_context() -> None:
    found = copying("one two three four five six", ["one two three", "four five six"])
    assert found is not None
    assert found.coverage == 0.0


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
