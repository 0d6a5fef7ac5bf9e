"""Questions by rule: what a sentence is turned into, what is left alone."""

from __future__ import annotations

import pytest

from demo.vault import Note
from drafting.sections import Section, sections
from drafting.templates import from_heading, from_text, questions, topic


def section(sentence: str, heading: str = "Plans > Gold plan", text: str = "") -> Section:
    return Section("v", "a.md", "", heading, text or sentence, (sentence,))


@pytest.mark.parametrize(
    ("sentence", "question", "rule", "category"),
    [
        ("A plan is a set of rights.", "What is a plan?", "definition", "factual"),
        (
            "The gold plan is the largest plan we sell.",
            "What is the gold plan?",
            "definition",
            "factual",
        ),
        ("Plans are the units we bill.", "What are plans?", "definition", "factual"),
        ("An *audit log* denotes a list of events.", "What does an audit log mean?", "meaning", ""),
        ("The gold plan is used for teams.", "What is the gold plan used for?", "use", "factual"),
        ("The gold plan allows ten seats.", "What does the gold plan do?", "deed", "factual"),
        (
            "To cancel the plan, open the billing page.",
            "How do I cancel the plan?",
            "how to",
            "factual",
        ),
        (
            "If a payment fails twice, the plan is paused.",
            "Gold plan: what happens if a payment fails twice?",
            "condition",
            "reasoning",
        ),
    ],
)
def test_a_sentence_becomes_the_question_it_answers(
    sentence: str, question: str, rule: str, category: str
) -> None:
    found = from_text(section(sentence))
    assert found is not None
    assert (found.text, found.rule, found.snippet) == (question, rule, sentence)
    assert found.category == category or not category


@pytest.mark.parametrize(
    "sentence",
    [
        "It is a set of rights that you buy.",  # what is "it"?
        "This plan is a set of rights that you buy.",
        "The implementation adds ten seats to it.",  # no word of the headings
        "The gold plan which we sell contains ten seats.",
        "Common uses for plans are the billing of teams.",
        "Table 3 shows the plan and its price today.",
        "Buying the plan gives ten seats to you.",
        "If defined, the plan is paused for a week.",
    ],
)
def test_what_has_no_plain_subject_is_left_alone(sentence: str) -> None:
    assert from_text(section(sentence)) is None


def test_a_heading_that_asks_is_the_question() -> None:
    found = from_text(section("You open the billing page first.", "FAQ > How do I *cancel*?"))
    assert found is not None
    assert (found.text, found.category) == ("How do I cancel?", "factual")


def test_bare_headings_come_last_and_generic_ones_with_their_parent() -> None:
    plain = section("Seats cost 5 EUR a month here.", "Plans > Billing > Overview")
    telling = section("A plan is a set of rights.")
    silent = section("It goes on like that for long.", "Plans > Rest")
    found = list(questions([plain, silent, telling]))
    assert [one for one, _ in found] == [telling, plain, silent]
    assert found[1][1] is not None
    assert found[1][1].text == "What should I know about billing (overview)?"
    assert found[1][1].category == "general"
    assert found[2][1] is None  # its sentence points back


def test_names_keep_their_capital_and_marks_go() -> None:
    named = section("Cargo is a tool. We like Cargo here.", "`Cargo` basics")
    assert topic(named) == "Cargo basics"
    assert topic(section("Texts.", "2.1 Error *handling*")) == "error handling"
    assert topic(section("Texts.", "The __init__ method")) == "the __init__ method"
    found = from_heading(section("Some call it so in here.", "42"))
    assert found is None  # no word in the heading


def test_sections_have_quotable_sentences_only() -> None:
    text = (
        "Above the first heading there is a sentence.\n\n# Plans\n\nToo short.\n\n"
        "A plan is a set\nof rights that people buy. Write this down:\n\n```\nx = 1\n```\n\n"
        "| a | b |\n|---|---|\n| no sentence in a table. | at all |\n\n## Empty\n\n```\ncode\n```\n"
    )
    (found,) = sections([Note("v", "n.md", text)])
    assert found.heading_path == "Plans"
    assert found.sentences == ("A plan is a set of rights that people buy.",)
