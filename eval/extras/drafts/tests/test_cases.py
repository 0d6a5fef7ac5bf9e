"""Drafts as cases: anchored in the vault, new, in turn, and never written over anything."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.rows import each_row

from demo.vault import python_reference
from documents.sections import Note
from extras.drafts.cases import (
    DraftQuestion,
    NoteSection,
    _append,
    _drafts,
    _new_id,
    _write_new,
    flat,
    heading_question,
    holders,
    in_turn,
    make_case,
    questions,
    sections,
)
from records.cases import CATEGORIES, case_from_dict
from storage import StorageError

NOTES = [
    Note(
        "v",
        f"n{number}.md",
        f"# Thing {word}\n\nA {word} is a kind of machine that people rent.\n\n## Care of it\n\n"
        f"To clean a {word}, use the brush that came with it.\n",
    )
    for number, word in enumerate(("crane", "mixer", "digger", "drill"))
]


def test_every_note_gets_its_turn_and_the_seed_decides() -> None:
    every = sections(NOTES)
    order = [section.rel_path for section in in_turn(every, 1)]
    assert sorted(order[:4]) == ["n0.md", "n1.md", "n2.md", "n3.md"]
    assert sorted(order) == sorted(section.rel_path for section in every)
    assert order == [section.rel_path for section in in_turn(every, 1)]
    orders = {tuple(section.rel_path for section in in_turn(every, seed)) for seed in range(20)}
    assert len(orders) > 5


def test_a_case_is_a_draft_with_every_place_of_its_snippet() -> None:
    twin = Note("v", "twin.md", "# Copy\n\nA crane is a kind of machine that people rent.\n")
    every = sections([*NOTES, twin])
    home = every[0]
    question = DraftQuestion(
        "What is a crane?", home.sentences[0], "definition", "factual", "A fact."
    )
    taken: set[str] = set()
    case = make_case(question, home, every, taken, "template@1: definition")
    assert case["tags"] == ["draft"]
    assert [one["rel_path"] for one in case["gold_supports"]] == ["n0.md", "twin.md"]
    assert case["required_support_groups"] == [[0], [1]]  # either will do
    assert (case["id"], taken) == ("draft-crane", {"draft-crane"})
    made_up = DraftQuestion("What?", "Cranes fly at night.", "r", "factual", "f")
    with pytest.raises(ValueError, match="does not stand"):
        make_case(made_up, home, every, set(), "x")


def test_a_question_holds_no_command_to_a_terminal() -> None:
    bad = "A \x1b[31mcrane\x1b[0m is a kind of machine\u202e that people rent."
    (home,) = sections([Note("v", "n.md", f"# Crane\n\n{bad}\n")])
    question = DraftQuestion("What is a \x1b[31mcrane\x1b[0m\u202e?", bad, "r", "factual", bad)
    case = make_case(question, home, [home], set(), "x")
    assert (case["question"], case["id"]) == ("What is a crane?", "draft-crane")
    assert case["gold_supports"][0]["snippets"] == [bad]  # a quotation is kept as it stands


def test_ids_never_clash() -> None:
    taken = {"draft-crane"}
    new = [_new_id("What is a crane?", taken) for _ in range(2)]
    assert new == ["draft-crane-2", "draft-crane-3"]
    assert _new_id("What is 日本?", taken) == "draft-question"
    assert len(_new_id("word " * 1 + "x" * 500, taken)) <= 62


def test_drafts_of_the_demo_are_sound_and_stand_in_the_vault() -> None:
    notes = python_reference()
    every = sections(notes)
    found = _drafts(
        every, questions(in_turn(every, 3)), 100, asked_questions=[], ids=["draft-class"]
    )
    assert len(found.cases) == 100
    text_of = {note.rel_path: flat(note.text) for note in notes}
    for case in found.cases:
        assert case_from_dict(case)[1] == []
        assert "draft" in case["tags"]
        assert case["category"] in CATEGORIES
        for support in case["gold_supports"]:
            assert all(one in text_of[support["rel_path"]] for one in support["snippets"])
            held = [
                (one.rel_path, one.heading_path) for one in holders(support["snippets"][0], every)
            ]
            assert held.count((support["rel_path"], support["heading_path"])) == 1
    ids = Counter(case["id"] for case in found.cases)
    assert max(ids.values()) == 1
    assert "draft-class" not in ids
    words = Counter(case["question"].casefold() for case in found.cases)
    assert max(words.values()) == 1


def test_nothing_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "new" / "drafts.jsonl"
    _write_new(path, [{"id": "a"}])
    with pytest.raises(StorageError, match="not overwritten"):
        _write_new(path, [{"id": "b"}])
    known = path.read_bytes()
    _append(path, [{"id": "b"}], known)
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["a", "b"]
    with pytest.raises(StorageError, match="changed in the meantime"):
        _append(path, [{"id": "c"}], known)
    path.write_bytes(b'{"id": "a"}')  # no newline at its end
    _append(path, [{"id": "b"}], path.read_bytes())
    assert path.read_bytes() == b'{"id": "a"}\n{"id":"b"}\n'


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
        "Above the first heading there is a sentence.\n\n# Plans\n\n"
        "Four words fall short. Five words are long enough.\n\n"
        "A plan is a set\nof rights that people buy. Write this down:\n\n```\nx = 1\n```\n\n"
        "A call of `plan.pay!\n` costs 5 EUR. A note <!-- of mine --> is a line here.\n\n"
        "| a | b |\n|---|---|\n| no sentence in a table. | at all |\n\n## Empty\n\n```\ncode\n```\n"
    )
    (found,) = sections([Note("v", "n.md", text)])
    assert found.heading_path == "Plans"
    rights = "A plan is a set of rights that people buy."
    assert found.sentences == ("Five words are long enough.", rights)
