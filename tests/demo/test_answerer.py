"""Sentences of Markdown, and answers that quote them with their sources."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from demo.answerer import ABSTENTION, ChunkSentence, DemoAnswer, extract_answer, sentences
from demo.chunker import NoteChunk
from demo.retriever import Hit


def hit(text: str, rank: int = 1, heading: str = "", cosine: float | None = None) -> Hit:
    chunk = NoteChunk("v", "a.md", heading, text, f"id{rank}", "")
    return Hit(chunk, cosine, 1.0, 1.0, rank)


def answer_to(question: str, hits: list[Hit], vector_weight: float = 0.0) -> DemoAnswer:
    """Every term weighs the same; below a confidence of 0.35 there is no answer."""
    return extract_answer(question, hits, {}, lambda term: 1.0, vector_weight)


SENTENCES = {
    "wrapped lines are one sentence": (
        "One sentence\nover two lines. Another, e.g. this one.\n\nA third",
        ["One sentence over two lines.", "Another, e.g. this one.", "A third"],
    ),
    "signs inside a line start no item": (
        "Use a * b and - x or 2) too",
        ["Use a * b and - x or 2) too"],
    ),
    "list items and quotes are apart": (
        "Items:\n- one item\n  goes on\n- two\n1. three\n> quoted text\n> goes on",
        ["Items:", "one item goes on", "two", "three", "quoted text goes on"],
    ),
    "a fence inside a longer fence is code": (
        "````\n```\nno prose.\n```\n````\nProse.",
        ["Prose."],
    ),
    "bold sentences lose their marks": (
        "**Bold one. Bold two.** Plain **bold** end. Use x**2 and **kw.",
        ["Bold one.", "Bold two.", "Plain **bold** end.", "Use x**2 and **kw."],
    ),
    "other scripts": ("東京は首都です。人口が多い。", ["東京は首都です。", "人口が多い。"]),
    "CommonMark: only a list that starts with 1 interrupts a paragraph": (
        "Compare range(0, 3,\n2) and range(0, 4, 2).",
        ["Compare range(0, 3, 2) and range(0, 4, 2)."],
    ),
}


@each_row("rule", SENTENCES)
def test_sentences_of_markdown(rule: str) -> None:
    markdown, expected = SENTENCES[rule]
    assert [sentence.text for sentence in sentences(markdown)] == expected


@each_row(
    "markdown",
    [
        "| a | b |\n| --- | --- |\n| c | d |",
        "```python\ndef f(): return 1\n```",
        "~~~\nsome code.\n~~~",
        "```\nnever closed. Code.",
        "## Heading only",
        "<!-- a comment -->",
        "---",
        "[link]: target",
        "* * *\n\n123. 45",
        "",
    ],
)
def test_what_is_no_prose_gives_no_sentence(markdown: str) -> None:
    assert sentences(markdown) == []


def test_announced_code_stays_with_its_sentence() -> None:
    block = "```\nx = 1\n\ny = 2\n```"
    assert sentences(f"Write this:\n\n{block}\n\nDone.") == [
        ChunkSentence("Write this:", block),
        ChunkSentence("Done."),
    ]
    assert sentences(f"No announcement.\n\n{block}") == [ChunkSentence("No announcement.")]
    long_block = "```\n" + "x\n" * 40 + "```"
    assert sentences(f"Write this:\n\n{long_block}") == [ChunkSentence("Write this:")]


@given(st.text())
def test_any_markdown_gives_one_line_sentences(markdown: str) -> None:
    for sentence in sentences(markdown):
        assert sentence.text == sentence.text.strip()
        assert sentence.text
        assert "\n" not in sentence.text


def test_best_sentence_with_its_source() -> None:
    answer = answer_to(
        "Which owls hunt at night?", [hit("Hens sleep. Owls hunt at night. Cods swim.")]
    )
    assert answer.text == "Owls hunt at night. [1]"
    assert [chunk.chunk_id for chunk in answer.references] == ["id1"]
    assert answer.abstain_reason is None
    assert answer.confidence == 1.0  # owls, hunt, at, night: all there


def test_sentences_complete_each_other_and_share_numbers() -> None:
    # The question's terms: owls, night, hens, eggs. id3 has the first two, id1 the other two.
    hits = [hit("Some hens. Hens lay eggs."), hit("Nothing here.", 2), hit("Owls at night.", 3)]
    answer = answer_to("owls night hens eggs", hits)
    assert answer.text == "Hens lay eggs. [1] Owls at night. [2]"
    assert [chunk.chunk_id for chunk in answer.references] == ["id1", "id3"]
    same = answer_to("owls hens", [hit("Only owls. Only hens.")])
    assert same.text == "Only owls. [1] Only hens. [1]"
    assert len(same.references) == 1


def test_code_is_quoted_below_its_sentence() -> None:
    block = "```\nx = 1\n```"
    answer = answer_to("assign value twice", [hit(f"To assign a value:\n\n{block}\n\nTwice.")])
    assert answer.text == f"To assign a value: [1]\n\n{block}\nTwice. [1]"


def test_confidence_by_hand() -> None:
    # 2 of 4 terms covered: .5; with a cosine of .9 at weight .25: .75 × .5 + .25 × .9 = .6
    question = "alpha beta gamma delta"
    plain = answer_to(question, [hit("Alpha and beta.")])
    assert plain.confidence == 0.5
    fused = answer_to(question, [hit("Alpha and beta.", cosine=0.9)], 0.25)
    assert fused.confidence == pytest.approx(0.6)
    heading = answer_to(question, [hit("Beta.", heading="About alpha")])
    assert heading.confidence == 0.5


def test_abstains_below_the_threshold() -> None:
    hits = [hit("Alpha and beta.")]
    # 2 of 5 terms are .4, 2 of 6 are .3333
    assert answer_to("alpha beta gamma delta epsilon", hits).references
    refused = answer_to("alpha beta gamma delta epsilon zeta", hits)
    assert refused == DemoAnswer(ABSTENTION, (), 0.3333, "no_relevant_context")


def test_abstains_without_anything_to_quote() -> None:
    assert answer_to("alpha", []) == DemoAnswer(ABSTENTION, (), 0.0, "no_results")
    only_code = answer_to("alpha", [hit("```\nalpha\n```")])
    assert only_code == DemoAnswer(ABSTENTION, (), 0.0, "no_relevant_context")


def test_only_the_first_chunks_are_read() -> None:
    hits = [hit("Nothing.", rank) for rank in range(1, 6)] + [hit("Alpha beta.", 6)]
    assert answer_to("alpha beta", hits).abstain_reason == "no_relevant_context"


WORDS = st.lists(st.sampled_from(["owl", "hen", "egg", "cod", "sea", "the", "of"]), max_size=8)
TEXTS = st.lists(WORDS.map(lambda words: " ".join(words).capitalize() + "."), max_size=4)


@given(question=WORDS, chunk_texts=st.lists(TEXTS, max_size=6))
def test_every_quote_stands_in_the_source_it_names(
    question: list[str], chunk_texts: list[list[str]]
) -> None:
    hits = [hit(" ".join(parts), rank) for rank, parts in enumerate(chunk_texts, start=1)]
    answer = answer_to(" ".join(question), hits)
    assert answer == answer_to(" ".join(question), hits)
    assert 0 <= answer.confidence <= 1
    quotes = re.findall(r"(\S.*?) \[(\d+)\]", answer.text)
    if answer.abstain_reason:
        assert (quotes, answer.references) == ([], ())
        return
    assert {int(number) for _, number in quotes} == set(range(1, len(answer.references) + 1))
    for quote, number in quotes:
        assert quote in answer.references[int(number) - 1].text
