"""What wraps an answer is form: no rule of a text may come to another result for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.ragmetrics.wrapped_answers import ANSWERS, WRAPPINGS, PlainAnswer
from tests.rows import each_row

from ragmetrics import abstention, citations, embedding
from ragmetrics.claims import extract
from ragmetrics.groundedness import Labels, score_case
from ragmetrics.text.plain import plain
from ragmetrics.text.words import clean


@dataclass(frozen=True)
class Passage:
    text: str
    chunk_id: str = "p"
    doc_id: str | None = None
    rel_path: str | None = None
    truncated: bool = False


def verdicts(text: str, answer: PlainAnswer) -> dict[str, Any]:
    """What every rule of a text says of an answer."""
    passages = [Passage(passage, f"p{n}") for n, passage in enumerate(answer.passages)]
    detection = abstention.detect(text, question=answer.question)
    found = extract(text)
    scores = score_case(
        text,
        passages,
        question=answer.question or "Please list the rules.",
        abstained=detection.abstained,
        labels=Labels(
            reference_answer=answer.text,
            expected_claims=answer.claims,
            forbidden_claims=("The pool opens on 1 May.", "The fee is 1,500 euros."),
        ),
    )
    rows = scores.evidence.get("claims", [])
    return {
        "state": detection.state,
        "state with passages": abstention.detect_with_passages(
            text, passages, answer.question
        ).state,
        "claims": [(claim.text, claim.type, claim.lead) for claim in found.claims],
        "skipped": [(item.text, item.reason) for item in found.skipped if item.reason != "heading"],
        "citations": [mark.targets for mark in citations.marks(text)],
        "sentences": embedding.claiming_sentences(text),
        "scores": scores.values,
        "verdicts": [
            {key: value for key, value in row.items() if key != "span"}
            for row in rows
            if row.get("skipped") != "heading"
        ],
    }


@each_row("answer", ANSWERS)
def test_the_answers_without_wrappings(answer: PlainAnswer) -> None:
    found = verdicts(answer.text, answer)
    assert found["state"] == found["state with passages"] == answer.state
    assert tuple(text for text, _, _ in found["claims"]) == answer.claims


@each_row("answer", ANSWERS)
@each_row("name", WRAPPINGS)
def test_a_wrapped_answer_has_the_verdicts_of_the_answer(name: str, answer: PlainAnswer) -> None:
    bare = verdicts(answer.text, answer)
    wrapped = verdicts(WRAPPINGS[name](answer.text), answer)
    if name == "under a heading":  # its heading has a word of its own, which no passage has
        for metric in ("verbatim_coverage", "answer_overlap"):
            del bare["scores"][metric], wrapped["scores"][metric]
    if "list" in name:  # a list of two is a list, and two paragraphs are none
        for metric in ("list_question_gets_list", "answer_quality"):
            del bare["scores"][metric], wrapped["scores"][metric]
    assert wrapped == bare


@each_row("name", WRAPPINGS)
def test_spans_are_those_of_the_answer_as_it_was_written(name: str) -> None:
    answer = WRAPPINGS[name]("The notes do not say. The pool isn't open on 1 May [1].")
    detection = abstention.detect(answer)
    assert detection.span is not None
    assert plain(answer[slice(*detection.span)]).text == "The notes do not say."
    (claim,) = extract(answer).claims
    assert plain(answer[claim.start : claim.end]).text == claim.text
    scores = score_case(answer, [Passage("The pool is open on 1 May.")])
    (cited,) = scores.evidence["citations"]
    assert plain(answer[slice(*cited["span"])]).text == "[1]"
    (row,) = [row for row in scores.evidence["claims"] if "supported" in row]
    assert row["span"] == [claim.start, claim.end]


@each_row(
    ("text", "expected"),
    [
        ("The text does **not** name it, _sorry_.", "The text does not name it, sorry."),
        ("un**believ**able snake_case_name 2*3*4", "unbelievable snake_case_name 2*3*4"),
        ("f(*args, **kwargs) in `a*b*`", "f(*args, **kwargs) in `a*b*`"),
        ("* one\n* two", "* one\n* two"),
        ("**Fees**\n\n20 EUR.", "# Fees\n\n20 EUR."),  # a title
        ("**Fees**", "Fees"),  # the whole answer
        ("# It is open.\n\nYes.", "It is open.\n\nYes."),  # a sentence
        ("**Is it open?**\n\nNo.", "# Is it open?\n\nNo."),
        ("a &lt; b &amp;amp; c &unknown;", "a < b & c &unknown;"),
        ("`&lt;b&gt;` is <b>bold</b>", "`&lt;b&gt;` is bold"),
        ("List<String> a <b and c> d", "List<String> a <b and c> d"),
        ("<h2>Fees</h2><ul><li>20.</li></ul>", "\n## Fees\n\n\n- 20.\n"),
        ('{"sources": ["a"], "answer": "\\u00c4 \\"b\\"\\n"}', 'Ä "b"\n'),
        ('{"result": {"text": "It is."}}', "It is."),
        ('{"price": 20, "currency": "EUR"}', '{"price": 20, "currency": "EUR"}'),  # data
        ('{"answer": 20}', '{"answer": 20}'),
        ('{"answer": "20"', '{"answer": "20"'),  # no JSON
        ("```\nfee = plan.cost * 2\n```", "```\nfee = plan.cost * 2\n```"),  # code
        ("```\nFees in euros\nand in pounds\n```", "Fees in euros\nand in pounds\n"),  # words
        ("```python\nIt is.\n```", "```python\nIt is.\n```"),
        ("See:\n```\nIt is [1].\n```", "See:\n```\nIt is [1].\n```"),  # a part of the answer
        ("```\nIt is.\n```\n```\nIt was.\n```", "```\nIt is.\n```\n```\nIt was.\n```"),
        ("```\nIt is", "```\nIt is"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("| Topic | Says |\n|---|---|\n| Fee | It is 20. |", " Fee \n It is 20. "),
        ("The end of it.</think>\nIt is.", "\nIt is."),
        ("It starts with <think>, then </think>.", "It starts with <think>, then </think>."),
        ("<think>It is", "<think>It is"),  # cut off: nobody knows whether it is the answer
    ],
)
def test_plain_texts(text: str, expected: str) -> None:
    assert plain(text).text == expected
    assert plain(expected).text in (expected, plain(text).text)


@given(st.text(st.sampled_from(list('ab 1.\n*_&<>{}"|`#;/pl-')), max_size=40))
def test_any_text_has_a_plain_one_with_a_way_back(text: str) -> None:
    read = plain(text)
    for at in range(len(read.text)):
        start, end = read.span(at, at + 1)
        assert 0 <= start < end <= len(text)
    assert read.starts is None or list(read.starts) == sorted(read.starts)


@given(st.text(st.characters(), max_size=60))
def test_a_text_without_wrappings_is_plain(text: str) -> None:
    bare = "".join(char for char in text if char not in '*_&<>{"|`~')
    assert plain(bare).text == clean(bare)
    assert plain(bare).span(0, len(bare)) == (0, len(bare))
