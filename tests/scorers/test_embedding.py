"""Embedding scores of single results by hand, with vectors that count words.

The model of these tests knows six words, each a direction of its own; a text's vector is the sum of
its words' directions at norm 1. Texts without such words share a seventh direction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics import embedding
from ragmetrics.catalogue.embedding import ROWS
from records.tool_calls import ToolCall
from scorers.embedding import EmbeddingScorer
from storage import RetrievedChunk, TestCase, TestResult

NAMES = [metric.name for metric in ROWS]
WORDS = ("cats", "dogs", "sleep", "bark", "day", "night")


class WordModel:
    """Counts what it is asked to embed; reads at most ``limit`` words at once."""

    def __init__(self, limit: int = 1000) -> None:
        self.limit = limit
        self.calls = 0
        self.texts: Counter[str] = Counter()
        self._kept: dict[str, Any] = {}

    def encode(self, texts: Sequence[str]) -> Any:
        missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
        self.calls += bool(missing)
        self.texts.update(missing)
        self._kept |= {text: self._vector(text) for text in missing}
        return np.stack([self._kept[text] for text in texts])

    def windows(self, text: str) -> list[str]:
        words = text.split(" ")
        parts = [words[i : i + self.limit] for i in range(0, len(words), self.limit)]
        return [" ".join(part) for part in parts]

    def _vector(self, text: str) -> Any:
        lower = text.lower()
        counts = np.array([lower.count(word) for word in WORDS] + [0], dtype=np.float64)
        counts[-1] = not counts.any()
        return (counts / np.linalg.norm(counts)).astype(np.float32)


def result(answer: str | None, *contexts: str, **fields: Any) -> TestResult:
    chunks: list[RetrievedChunk | str] = [
        RetrievedChunk(f"c{rank}", text=text, text_length=len(text), rank=rank)
        for rank, text in enumerate(contexts, 1)
    ]
    return TestResult("q", answer=answer, retrieved=chunks, **fields)


def case(question: str = "cats?", reference: str | None = None) -> TestCase:
    return TestCase("q", question, reference_answer=reference)


def scores(one: TestCase, other: TestResult, **options: Any) -> dict[str, Any]:
    row, _ = EmbeddingScorer(WordModel(), **options).score(one, other)
    return dict(zip(NAMES, row.values, strict=True))


def row_and_evidence(one: TestCase, other: TestResult, limit: int = 1000) -> Any:
    return EmbeddingScorer(WordModel(limit)).score(one, other)


def reasons(one: TestCase, other: TestResult) -> dict[str, str]:
    return dict(EmbeddingScorer(WordModel()).score(one, other)[0].reasons)


def test_contexts_by_hand() -> None:
    """Question: cats. Cosines with "cats" 1, "cats sleep" 1 / sqrt 2, "dogs" 0."""
    found = scores(case(), result("cats", "cats", "cats sleep", "dogs"))
    assert found["context_relevance"] == pytest.approx((1 + 0.707107) / 3)
    assert found["context_relevance_max"] == 1.0
    assert found["context_relevance_top3"] == found["context_relevance"]
    assert found["context_sufficiency"] == pytest.approx(2 / 3)
    assert scores(case(), result("cats", "cats"), sufficiency=1.0)["context_sufficiency"] == 1.0


def test_answer_against_reference_by_hand() -> None:
    """Reference sentences: cats sleep; dogs bark. The answer has the first one: 1 and 0.

    As wholes: (cats + sleep) and (cats + sleep + dogs + bark): 2 / (sqrt 2 x 2).
    """
    reference = "All of the cats sleep. All of the dogs bark."
    found = scores(case("q", reference), result("Cats sleep.", "night"))
    assert found["answer_relevance"] == 0.5
    assert found["answer_correctness"] == 0.707107
    assert scores(case("q", "cats"), result("cats"))["answer_correctness"] == 1.0


OF_ANSWER: tuple[str, ...] = (
    "answer_relevance",
    "answer_correctness",
    "question_answer_similarity",
)
OF_ANSWER += ("answer_hallucination", "answer_hallucination@2")


@each_row(
    ("answer", "abstained", "why"),
    [
        ("I do not know.", None, "abstained"),
        ("Das weiß ich leider nicht.", True, "abstained"),
        ("", None, "empty answer"),
        ("[1]", None, "empty answer"),
    ],
)
def test_all_metrics_of_an_answer_treat_silence_alike(
    answer: str, abstained: bool | None, why: str
) -> None:
    """A refusal is near to nothing: as an answer it would lower every mean but one."""
    other = result(answer, "cats", abstained=abstained)
    assert reasons(case("cats?", "Cats sleep."), other) == dict.fromkeys(OF_ANSWER, why)


def test_distinct_contexts_count_and_citation_marks_do_not() -> None:
    """Cosines of the question with "cats" 1 and with "dogs" 0: mean 1/2, though "cats" comes twice.

    With its mark as a word the answer would be (cats, 1): cosine 1 / sqrt 2 with the question.
    """
    found = scores(case("cats?", "cats"), result("cats [1].", "cats", "cats", "dogs"))
    assert found["context_relevance"] == found["context_sufficiency"] == 0.5
    assert found["question_answer_similarity"] == found["answer_correctness"] == 1.0


def test_hallucination_by_hand_in_both_definitions() -> None:
    """A context of three sentences; of the answer's three, one has cosine 0 with all of it.

    The context as a whole is 2 cats, 2 sleep, 1 dogs, 1 bark, 1 day. "Dogs bark." has
    2 / (sqrt 2 x sqrt 11) = 0.43 with it, above 0.4, and is itself one of its windows.
    """
    context = "Cats sleep. Dogs bark. Cats sleep by day."
    answer = "Dogs bark. Night falls upon us. Cats sleep."
    row, evidence = row_and_evidence(case(), result(answer, context))
    found = dict(zip(NAMES, row.values, strict=True))
    assert found["answer_hallucination"] == pytest.approx(1 / 3)
    assert found["answer_hallucination@2"] == pytest.approx(1 / 3)
    told = {one["text"]: one for one in evidence["sentences"]}
    assert told["Dogs bark."]["window"] == 1.0
    assert told["Dogs bark."]["nearest"] == "Dogs bark."
    assert told["Dogs bark."]["context"] == pytest.approx(2 / (2 * 11) ** 0.5, abs=1e-4)
    assert told["Night falls upon us."]["window"] == 0.0


def test_the_definitions_differ_where_a_context_is_long() -> None:
    """The context says much else: 1 dogs, 1 bark, 3 cats, 3 sleep, 6 day, 6 night.

    2 / (sqrt 2 x sqrt 92) = 0.15 is below 0.4, and the window "Dogs bark." has cosine 1.
    """
    context = "Dogs bark. " + "Cats sleep by day and by night and day and night. " * 3
    found = scores(case(), result("Dogs bark now.", context))
    assert (found["answer_hallucination"], found["answer_hallucination@2"]) == (1.0, 0.0)


def test_thresholds_are_options() -> None:
    one, other = case(), result("Cats bark.", "Cats sleep.")  # cosine 1/2
    assert scores(one, other)["answer_hallucination"] == 0.0
    assert scores(one, other, hallucination=0.51)["answer_hallucination"] == 1.0
    assert scores(one, other)["answer_hallucination@2"] == 1.0
    assert scores(one, other, window_hallucination=0.5)["answer_hallucination@2"] == 0.0


ALL_CONTEXT = [name for name in NAMES if name.startswith(("context", "answer_hallucination"))]
CUT = RetrievedChunk(text="ca", text_length=9)


@each_row(
    ("other", "reason"),
    [
        (result("cats"), "no contexts"),
        (TestResult("q", answer="cats", retrieved=["c1"]), "no chunk texts"),
        (TestResult("q", answer="cats", retrieved=[CUT]), "text was truncated"),
    ],
)
def test_without_whole_contexts_they_do_not_apply(other: TestResult, reason: str) -> None:
    found = scores(case("q", "cats"), other)
    assert [found[name] for name in ALL_CONTEXT] == [None] * 6
    assert {reasons(case(), other)[name] for name in ALL_CONTEXT} == {reason}
    assert found["answer_correctness"] == 1.0, "what needs no context is scored"


def test_an_abstention_is_known_by_its_words_unless_the_bot_says_otherwise() -> None:
    """The bot of a plain data set sends no ``abstained``; where one is sent, it decides."""
    refusal = "I could not find any information about cats in the documents."
    told = reasons(case(), result(refusal, "dogs"))
    assert told["answer_hallucination"] == told["answer_hallucination@2"] == "abstained"
    # The bot says that it answered: one sentence (cats), cosine 0 with dogs: 1 of 1 unsupported.
    said = scores(case(), result(refusal, "dogs", abstained=False))
    assert said["answer_hallucination"] == said["answer_hallucination@2"] == 1.0
    # An answer that says nothing of the kind is scored as before.
    assert scores(case(), result("Cats sleep.", "dogs"))["answer_hallucination"] == 1.0


def test_no_reference() -> None:
    none = dict.fromkeys(("answer_relevance", "answer_correctness"), "no reference_answer")
    assert reasons(case(), result("cats", "cats")) == none


def test_sentences_carry_no_marks_headings_or_code() -> None:
    text = "# Cats\n\nCats sleep [1]. Dogs bark [2][3].\n\n```\ncode\n```\n- A day. [4]\n"
    assert embedding.claiming_sentences(text) == ["Cats sleep.", "Dogs bark.", "A day."]
    assert embedding.claiming_sentences("... !!! \n---\n") == []


def test_long_texts_are_read_in_windows_to_their_end() -> None:
    """The answer to the question stands in the last window of the context."""
    model = WordModel(limit=4)
    other = result("cats", "dogs bark all night dogs bark all night we have cats")
    row, evidence = EmbeddingScorer(model).score(case(), other)
    assert row.values[NAMES.index("context_relevance")] == 1.0
    assert evidence["contexts_in_windows"] == 1
    assert all(len(text.split(" ")) <= 4 for text in model.texts)


RUN: list[tuple[TestCase, TestResult]] = [
    (case("cats?", "Cats sleep by day."), result("Cats sleep.", "Cats sleep. Dogs bark.", "day")),
    (case("dogs?", "Dogs bark."), result("Dogs bark at night.", "Cats sleep. Dogs bark.", "dogs")),
    (case("cats?"), result("Something else. Cats sleep.", "Cats sleep. Dogs bark.")),
]


def test_each_text_is_embedded_once_and_many_together() -> None:
    model = WordModel()
    scorer = EmbeddingScorer(model)
    assert scorer.warm(RUN) == 3
    assert set(model.texts.values()) == {1}
    assert model.calls <= 3, "one call a step, not a case"
    calls = model.calls
    for one, other in RUN:
        scorer.score(one, other)
    assert model.calls == calls, "scoring after warming embeds nothing"


def test_warming_changes_no_score() -> None:
    warm = EmbeddingScorer(WordModel())
    warm.warm(RUN)
    cold = EmbeddingScorer(WordModel())
    assert [warm.score(*pair) for pair in RUN] == [cold.score(*pair) for pair in RUN]


SENTENCES = st.lists(
    st.sampled_from([f"The {a} {b} in this town." for a in WORDS for b in WORDS]), max_size=5
)


@settings(max_examples=60)
@given(SENTENCES, st.lists(SENTENCES.map(" ".join), max_size=4), st.floats(0.05, 1.0))
def test_looking_at_likely_windows_first_gives_the_verdict_of_all(
    said: list[str], contexts: list[str], threshold: float
) -> None:
    """By brute force: the best cosine over every window of every context."""
    model = WordModel()
    scorer = EmbeddingScorer(model, window_hallucination=threshold)
    other = result(" ".join(said), *contexts)
    row, _ = scorer.score(case(), other)
    found = row.values[NAMES.index("answer_hallucination@2")]
    sentences = embedding.claiming_sentences(" ".join(said))
    texts = embedding.distinct_texts(other.chunks())[0]
    windows = [w for text in texts for w in embedding.sentence_windows(sentences_all(text))]
    if not sentences or not windows:
        assert found is None or not windows
        return
    best = embedding.cosines(model.encode(sentences), model.encode(windows)).max(axis=1)
    assert found == pytest.approx(float((best < threshold).mean()))


def sentences_all(text: str) -> list[str]:
    """Generated contexts are plain sentences, each ending with a full stop."""
    return [f"{part.strip()}." for part in text.split(".") if part.strip()]


FOREIGN = [
    "中文句子。另一个。",
    "العربية جملة.",
    "🙂🙂",
    "| a | b |\n|---|---|",
    "\ud800 x",
    "\x00",
]
ODD = st.one_of(st.text(max_size=60), st.sampled_from(FOREIGN))


@settings(max_examples=60)
@given(ODD, ODD, st.lists(ODD, max_size=3))
def test_any_text_gives_numbers_in_range_or_a_reason(
    answer: str, reference: str, contexts: list[str]
) -> None:
    row, _ = EmbeddingScorer(WordModel()).score(case("cats?", reference), result(answer, *contexts))
    told = dict(row.reasons)
    for metric, value in zip(ROWS, row.values, strict=True):
        if value is None:
            assert told[metric.name]
        else:
            assert isinstance(value, float)
            assert metric.low is not None
            assert metric.low <= value <= 1.0


def test_long_texts_give_numbers_or_a_reason() -> None:
    """10,500 sentences in answer and context: what would be 10^8 comparisons is declined."""
    text = " ".join(f"The cats of street {n} sleep all day." for n in range(10_500))
    row, _ = EmbeddingScorer(WordModel(limit=200)).score(case("cats?", "Cats."), result(text, text))
    assert dict(row.reasons) == {"answer_hallucination@2": "answer and contexts are too long"}
    assert row.values[NAMES.index("answer_hallucination")] == 0.0


def test_a_turn_is_compared_by_its_question_made_whole_or_not_at_all() -> None:
    scorer = EmbeddingScorer(WordModel())
    answered = result("cats sleep", "cats")
    follow_up = TestCase("q", "and they?", conversation="c", turn=2, standalone=False)
    row, _ = scorer.score(follow_up, answered)
    values, reasons = dict(zip(NAMES, row.values, strict=True)), dict(row.reasons)
    asked = ("context_relevance", "context_sufficiency", "question_answer_similarity")
    assert [values[name] for name in asked] == [None] * 3
    assert all("question_alone" in reasons[name] for name in asked)
    assert values["answer_hallucination"] is not None
    follow_up.question_alone = "cats"
    row, _ = scorer.score(follow_up, answered)
    assert dict(zip(NAMES, row.values, strict=True))["context_relevance"] == 1.0


def test_results_of_tools_support_an_answer_and_are_no_context() -> None:
    """The answer is the tool's words and far from the passage (cosine 0): nothing is hallucinated,
    and the relevance of the contexts is that of the passage alone, 0 to a question on cats."""
    tools = [ToolCall("ask", result="Cats sleep by day.")]
    of_tool = result("Cats sleep by day.", "dogs bark", tools=tools)
    values = scores(case("cats?"), of_tool)
    assert values["answer_hallucination"] == values["answer_hallucination@2"] == 0.0
    assert values["context_relevance"] == values["context_relevance_max"] == 0.0
    without = scores(case("cats?"), result("Cats sleep by day.", "dogs bark"))
    assert without["answer_hallucination"] == pytest.approx(1.0)
