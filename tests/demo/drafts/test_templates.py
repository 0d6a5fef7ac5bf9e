"""Questions by rule: what a sentence is turned into, what is left alone."""

from __future__ import annotations

import pytest

from demo.draft_templates import (
    Casing,
    NoteSection,
    _from_heading,
    _from_text,
    _topic,
    questions,
    sections,
)
from demo.vault import Note

PLAIN = Casing()
"""Of an empty vault: a capital is no name."""


def section(sentence: str, heading: str = "Plans > Gold plan", text: str = "") -> NoteSection:
    return NoteSection("v", "a.md", "", heading, text or sentence, (sentence,))


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
        (
            "The gold plan provides the seats of a team.",
            "What does the gold plan provide?",
            "deed",
            "factual",
        ),
        (
            "A gold plan lets you invite ten people.",
            "What does a gold plan let you do?",
            "permission",
            "factual",
        ),
        (
            "The gold plan allows you to invite people.",
            "What does the gold plan allow you to do?",
            "permission",
            "factual",
        ),
        ("The Gold Plan (2019) was the first plan.", "What was the Gold Plan?", "definition", ""),
        ("To cancel the plan, open the billing page.", "How do I cancel the plan?", "how to", ""),
        (
            "If you want to change your plan, open the billing page.",
            "How do I change my plan?",
            "how to",
            "",
        ),
        ("You can also pause a plan by pressing Hold.", "How can I pause a plan?", "how to", ""),
        (
            "If a plan is not paid, its seats are closed.",
            "What happens if a plan is not paid?",
            "condition",
            "factual",
        ),
        (
            "When your plan has ended, you should export your notes.",
            "What should I do when your plan has ended?",
            "condition",
            "factual",
        ),
        (
            "When you buy a gold plan, you can invite ten people.",
            "What can I do when you buy a gold plan?",
            "condition",
            "factual",
        ),
    ],
)
def test_a_sentence_becomes_the_question_it_answers(
    sentence: str, question: str, rule: str, category: str
) -> None:
    found = _from_text(section(sentence), PLAIN)
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
        "If the plan is silent, the seats are closed.",  # which plan, and when?
        "If a payment fails twice, a mail is sent.",  # nothing of what the headings are about
        "When x exceeds the plan, seats are closed.",
        "The `n` part is the number of plans you have.",
        "The price of the plan is the sum of its seats.",
        "A good plan is the one that you can pay.",
        "The optional plan is the one without seats.",
        "A plan is what Chapter 3 tells about in full.",
        "A plan is the set we looked at before lunch.",
    ],
)
def test_what_has_no_plain_subject_is_left_alone(sentence: str) -> None:
    assert _from_text(section(sentence), PLAIN) is None


def test_a_heading_that_asks_is_the_question() -> None:
    found = _from_text(
        section("You open the billing page first.", "FAQ > How do I *cancel*?"), PLAIN
    )
    assert found is not None
    assert (found.text, found.category) == ("How do I cancel?", "factual")


def test_bare_headings_come_last_and_generic_ones_with_their_parent() -> None:
    plain = section("Seats cost 5 EUR a month here.", "Plans > Billing > Overview")
    telling = section("A plan is a set of rights.")
    silent = section("It goes on like that for long.", "Plans > Rest")
    found = list(questions([plain, silent, telling], PLAIN))
    assert [one for one, _ in found] == [telling, plain, silent]
    assert found[1][1] is not None
    assert found[1][1].text == "What should I know about billing?"
    assert found[1][1].category == "general"
    assert found[2][1] is None  # its sentence points back


def test_names_keep_their_capital_and_marks_go() -> None:
    vault = [
        section("A tool is Cargo. We like Cargo here.", "`Cargo` basics"),
        section("The handling of an error takes time.", "Texts"),
    ]
    casing = Casing(vault)
    assert _topic(section("Texts.", "Cargo Handling"), casing) == "Cargo handling"
    assert _topic(section("Texts.", "2.1 Error *Handling*"), casing) == "error *handling*"
    assert _topic(section("Texts.", "Appendix B: SQL Handling"), casing) == "SQL handling"
    assert _topic(section("Texts.", "Plans > Cargo"), casing) == "plans (Cargo)"
    assert casing.all("Handling `Handling`") == "handling `Handling`"
    assert casing.first("_Handling_ Cargo") == "_handling_ Cargo"
    found = _from_heading(section("Some call it so in here.", "42"), casing)
    assert found is None  # no word in the heading


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("Storing Plans with Names", "How do I store plans with names?"),
        ("Running a `Plan`", "How do I run a Plan?"),
        ("Calling Plans", "How do I call plans?"),
        ("How to Call Plans", "How do I call plans?"),
        ("Storing and Calling Plans", "What should I know about storing and calling plans?"),
        ("Zapping Plans", "What should I know about zapping plans?"),  # the vault knows no "zap"
        ("Storing", "What should I know about storing?"),
        ("The __init__ method", "What should I know about the __init__ method?"),
    ],
)
def test_a_heading_in_ing_asks_how(heading: str, question: str) -> None:
    home = section("Plans cost 5 EUR a month. To store, run or call them costs nothing.", heading)
    found = _from_heading(home, Casing([home]))
    assert found is not None
    assert (found.text, found.category, found.rule) == (question, "general", "heading")


def test_a_heading_rests_on_the_sentence_that_tells_most_of_it() -> None:
    told = ("Listing 3 shows an invoice.", "Prices rise in spring.", "An invoice lists a price.")
    home = NoteSection("v", "a.md", "", "Price of an Invoice", " ".join(told), told)
    found = _from_heading(home, PLAIN)
    assert found is not None
    assert found.snippet == told[2]


def test_sections_have_quotable_sentences_only() -> None:
    text = (
        "Above the first heading there is a sentence.\n\n# Plans\n\nToo short.\n\n"
        "A plan is a set\nof rights that people buy. Write this down:\n\n```\nx = 1\n```\n\n"
        "A call of `plan.pay!\n` costs 5 EUR. A note <!-- of mine --> is a line here.\n\n"
        "| a | b |\n|---|---|\n| no sentence in a table. | at all |\n\n## Empty\n\n```\ncode\n```\n"
    )
    (found,) = sections([Note("v", "n.md", text)])
    assert found.heading_path == "Plans"
    assert found.sentences == ("A plan is a set of rights that people buy.",)


@pytest.mark.parametrize(
    ("heading", "sentence", "question"),
    [
        (
            "Tarifs > Résiliation",
            "Vous pouvez résilier le contrat avec un courrier pour la fin du mois.",
            "Que faut-il savoir sur « Résiliation » ?",
        ),
        (
            "Urlaub > Übertrag",
            "Die Tage werden nur auf Antrag in das nächste Jahr übertragen.",
            "Was sollte ich über „Übertrag“ wissen?",
        ),
        ("Как отменить заказ?", "Заказ можно отменить в личном кабинете.", "Как отменить заказ?"),
        (
            "Regulamin",
            "Umowa jest zawierana na rok i nie może być zmieniona przez klienta.",
            "Regulamin?",
        ),
    ],
)
def test_a_heading_in_another_language_is_asked_about_in_it(
    heading: str, sentence: str, question: str
) -> None:
    drafted = dict(questions([part := section(sentence, heading)], PLAIN))[part]
    assert drafted is not None
    assert (drafted.text, drafted.snippet, drafted.rule) == (question, sentence, "heading")


def test_a_section_that_does_not_tell_its_language_has_that_of_the_vault() -> None:
    long = section("Vous pouvez résilier le contrat avec un courrier pour la fin du mois.", "Fin")
    short = section("Tarif réduit: 20 EUR.", "Tarifs")
    drafted = {part.titles[-1]: question for part, question in questions([long, short], PLAIN)}
    assert drafted["Tarifs"] is not None
    assert drafted["Tarifs"].text == "Que faut-il savoir sur « Tarifs » ?"
