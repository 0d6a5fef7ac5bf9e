"""Sections of a vault and the question that a heading is."""

from __future__ import annotations

from tests.rows import each_row

from documents.sections import Note
from extras.drafts.cases import NoteSection, heading_question, questions, sections


def section(sentence: str, heading: str = "Plans > Gold plan") -> NoteSection:
    return NoteSection("v", "a.md", "", heading, sentence, (sentence,))


@each_row(
    ("heading", "question"),
    [
        ("Plans > Gold plan", "Gold plan?"),
        ("Plans > Prices", "Plans: Prices?"),  # one word alone says too little
        ("Prices", "Prices?"),  # and has nothing above it
        ("FAQ > How do I *cancel*?", "How do I cancel?"),
        ("2.1 Error *Handling*", "Error Handling?"),
        ("Appendix B: SQL `SELECT` forms", "SQL SELECT forms?"),
        ("The __init__ method", "The __init__ method?"),
        ("The _whole_ plan", "The whole plan?"),
        ("A page on [plans](plans.md) here", "A page on plans here?"),
        ("Как отменить заказ?", "Как отменить заказ?"),
        ("Urlaub > Übertrag", "Urlaub: Übertrag?"),
        ("料金プラン？", "料金プラン？"),
    ],
)
def test_the_heading_is_the_question(heading: str, question: str) -> None:
    draft = heading_question(section("A plan is a set of rights.", heading))
    assert draft is not None
    assert (draft.text, draft.rule, draft.category) == (question, "heading", "general")
    assert draft.snippet == draft.fact == "A plan is a set of rights."


def test_a_heading_without_a_letter_asks_nothing() -> None:
    numbers = section("Some call it so in here.", "42")
    assert list(questions([numbers])) == [(numbers, None)]


def test_a_question_rests_on_the_sentence_that_has_most_words_of_the_heading() -> None:
    # "price" and "invoice" are the telling words of the heading: the three sentences have 1, 0, 2.
    sentences = ("Listing 3 shows an invoice.", "It rises in spring.", "An invoice lists a price.")
    home = NoteSection("v", "a.md", "", "Price of an Invoice", " ".join(sentences), sentences)
    draft = heading_question(home)
    assert draft is not None
    assert draft.snippet == sentences[2]


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
