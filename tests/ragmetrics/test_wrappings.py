"""What wraps an answer is form: no rule of a text may come to another result for it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics import abstention, citations, embedding
from ragmetrics.claims import extract
from ragmetrics.groundedness import Labels, score_case
from ragmetrics.text.plain import plain
from ragmetrics.text.words import clean

# Twenty answers and fifteen wrappings, written before the rules were read. A blank line in an
# answer separates its paragraphs.


@dataclass(frozen=True)
class PlainAnswer:
    """An answer without any markup, what it does, and the passages beside it."""

    text: str
    state: str  # abstained, partial or answered
    claims: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    question: str = ""


ANSWERS = (
    PlainAnswer("I don't know.", "abstained"),
    PlainAnswer(
        "The document does not say. Please call us.", "abstained", claims=("Please call us.",)
    ),
    PlainAnswer("I'm sorry, but the passages don't mention the price of \"Plan B\".", "abstained"),
    PlainAnswer("No information about this is available in the provided context.", "abstained"),
    PlainAnswer("I cannot answer that from the R&D notes.", "abstained"),
    PlainAnswer("Das kann ich anhand der Dokumente nicht beantworten.", "abstained"),
    PlainAnswer("Je ne sais pas.", "abstained"),
    PlainAnswer(
        "Based on the passages, it isn't possible to tell.\n\nTry the help desk.",
        "abstained",
        claims=("Try the help desk.",),
    ),
    PlainAnswer(
        "The pool opens on 1 May.",
        "answered",
        claims=("The pool opens on 1 May.",),
        passages=("The outdoor pool opens on 1 May and closes on 30 September.",),
    ),
    PlainAnswer("Yes.", "answered"),
    PlainAnswer(
        "The museum is closed on Mondays. It opens at 9:30 on all other days.",
        "answered",
        claims=("The museum is closed on Mondays.", "It opens at 9:30 on all other days."),
        passages=("The museum is closed on Mondays. On all other days it opens at 9:30.",),
    ),
    PlainAnswer(
        "The fee is 1,500 euros [1]. It is due within 30 days [2].",
        "answered",
        claims=("The fee is 1,500 euros [1].", "It is due within 30 days [2]."),
        passages=("The fee is 1,500 euros a year.", "The fee is due within 14 days."),
    ),
    PlainAnswer(
        "Use the `--force` flag to overwrite the file.",
        "answered",
        claims=("Use the `--force` flag to overwrite the file.",),
        passages=("With the --force flag the command will overwrite the file.",),
    ),
    PlainAnswer(
        "The R&D team isn't part of the sales department.",
        "answered",
        claims=("The R&D team isn't part of the sales department.",),
        passages=("The R&D team is part of the sales department.",),
    ),
    PlainAnswer(
        "Der Vertrag läuft 24 Monate und kostet 31,40 Euro im Monat.",
        "answered",
        claims=("Der Vertrag läuft 24 Monate und kostet 31,40 Euro im Monat.",),
        passages=("Der Vertrag hat eine Laufzeit von 24 Monaten. Er kostet 29,90 Euro im Monat.",),
    ),
    PlainAnswer("図書館は日曜日に休みです。", "answered", claims=("図書館は日曜日に休みです。",)),
    PlainAnswer(
        "The basic tariff costs 31.4 cents per kWh plus 11.90 euros a month. "
        "The contract partner is not named in the document.",
        "partial",
        claims=("The basic tariff costs 31.4 cents per kWh plus 11.90 euros a month.",),
        passages=("Basic tariff: 31.4 cents per kWh plus 11.90 euros a month.",),
        question="How much is the basic tariff, and who is the contract partner?",
    ),
    PlainAnswer(
        "The warranty lasts two years. I could not find who pays for the shipping.",
        "partial",
        claims=("The warranty lasts two years.",),
        passages=("All our devices have a warranty that lasts two years.",),
        question="How long does the warranty last, and who pays for the shipping?",
    ),
    PlainAnswer(
        "The train takes 45 minutes if the temperature is < 35 degrees.\n\nThe bus takes 2 hours.",
        "answered",
        claims=(
            "The train takes 45 minutes if the temperature is < 35 degrees.",
            "The bus takes 2 hours.",
        ),
        passages=(
            "The train takes 45 minutes. Above 35 degrees it takes an hour. The bus takes 3 hours.",
        ),
    ),
    PlainAnswer(
        "The ferry may be late in the north, and it could be cancelled.",
        "answered",
        claims=("The ferry may be late in the north, and it could be cancelled.",),
        passages=("In a storm the ferry in the north is often late or cancelled.",),
    ),
)


def _each_paragraph(wrap: Callable[[str], str], joiner: str = "\n\n") -> Callable[[str], str]:
    return lambda text: joiner.join(wrap(paragraph) for paragraph in text.split("\n\n"))


def _each_sentence(wrap: Callable[[str], str]) -> Callable[[str], str]:
    return _each_paragraph(lambda line: " ".join(map(wrap, re.split(r"(?<=[.。]) ", line))))


def _numeric_entities(text: str) -> str:
    return re.sub(r"[^\w\s.]", lambda match: f"&#{ord(match[0])};", text)


def _numbered(text: str) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(text.split("\n\n"), start=1))


def _json(text: str) -> str:
    return json.dumps({"answer": text})


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "bold": _each_paragraph("**{}**".format),
    "bold by underscores": _each_paragraph("__{}__".format),
    "each sentence bold": _each_sentence("**{}**".format),
    "italic": _each_paragraph("*{}*".format),
    "bullet list": _each_paragraph("- {}".format, "\n"),
    "numbered list": _numbered,
    "quote": _each_paragraph("> {}".format, "\n>\n"),
    "under a heading": "## Answer\n\n{}".format,
    "HTML paragraphs": _each_paragraph(lambda line: f"<p>{html.escape(line)}</p>", "\n"),
    "HTML bold, numeric entities": _each_paragraph(
        lambda line: f"<div><strong>{_numeric_entities(line)}</strong></div>", ""
    ),
    "JSON": _json,
    "JSON in a fence": lambda text: f"```json\n{_json(text)}\n```",
    "table": lambda text: "| Answer |\n|---|\n" + _each_paragraph("| {} |".format, "\n")(text),
    "fence": "```\n{}\n```".format,
    "thoughts before": (
        "<think>The user asks about 77 things. I don't know yet. Passage [3] may say it.</think>"
        "\n\n{}".format
    ),
}


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
