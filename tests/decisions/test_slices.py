"""What failing cases have in common: found where it was planted, silent otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tests.rows import each_row

from decisions.slices import SliceMember, Slices, find_rise, find_slices, places_in, sliced
from records.cases import GoldSupport, TestCase
from records.clusters import cluster_number
from records.id_numbers import id_number


def made(count: int, question: Callable[[int], str]) -> list[SliceMember]:
    return [SliceMember(f"c{at}", question(at)) for at in range(count)]


def search(cases: list[SliceMember], fails: Callable[[int], bool]) -> Slices:
    return find_slices(cases, {id_number(case.case_id): fails(at) for at, case in enumerate(cases)})


def test_the_sentence_counts_inside_and_outside() -> None:
    cases = made(100, lambda at: "how many 7 apples" if at < 20 else "how many red apples")
    # 16 of the 20 with a number fail, and 8 of the 80 others
    slices = search(cases, lambda at: at < 16 or 20 <= at < 28)
    start = "Questions with a number fail more often: 16 of 20, against 8 of 80 others (p "
    assert slices.sentences()[0].startswith(start)
    assert len(slices.sentences()) == 1  # "7" and "red" say the same of the same cases


@each_row("fails", [lambda at: True, lambda at: False, lambda at: at < 2])
def test_nothing_is_named_where_all_or_hardly_any_case_fails(fails: Callable[[int], bool]) -> None:
    slices = search(made(40, lambda at: f"question {at % 3}"), fails)
    assert slices.sentences() == []
    assert "No slice could be tried" in slices.every()[0]


def test_words_of_a_script_without_spaces() -> None:
    cases = made(60, lambda at: "返品の期限は何日" if at < 15 else "配送の料金は何円")
    sentence = search(cases, lambda at: at < 13).sentences()[0]
    assert sentence.startswith("Questions with the word '")
    assert "13 of 15, against 0 of 45 others" in sentence


def test_a_document_is_reported_for_these_documents_alone() -> None:
    paths = ["guide/setup/a.md" if at < 12 else "b.md" for at in range(80)]
    cases = [
        SliceMember(f"c{at}", "what is it", places=tuple(places_in(path)))
        for at, path in enumerate(paths)
    ]
    first = search(cases, lambda at: at < 10 or at in (30, 40, 50)).sentences()[0]
    start = "In these documents, questions on guide/setup/a.md fail more often: 10 of 12, "
    assert first.startswith(start)


def test_of_a_slice_that_is_found_the_worse_part_is_named() -> None:
    """In Spanish 26 of 40 fail: 20 of the 20 with code, 6 of the 20 without; of others 6 of 100."""

    def case(at: int) -> SliceMember:
        labels = ("in Spanish",) * (at < 40) + ("with code",) * (at < 20 or 40 <= at < 60)
        return SliceMember(f"c{at}", "why", labels)

    slices = search([case(at) for at in range(140)], lambda at: at < 26 or 60 <= at < 66)
    (spanish,) = (part for part in slices.significant if part.phrase == "in Spanish")
    assert spanish.inside == (26, 40)
    assert spanish.outside == (6, 100)
    assert spanish.within.startswith("among them those with code: 20 of 20 (p < .001)")
    assert spanish.says("fail").endswith(f"; {spanish.within}")
    even = search([case(at) for at in range(140)], lambda at: at % 20 < 13 if at < 40 else at < 46)
    (spanish,) = (part for part in even.significant if part.phrase == "in Spanish")
    assert spanish.within == "", "13 of 20 with code and 13 of 20 without: no part is worse"


def of_five(at: int, kind: str) -> int:
    return cluster_number(f"{kind}: {at // 5}")


def test_one_conversation_is_no_slice() -> None:
    """Its five questions have one label and all fail: that is one piece of luck, not five."""
    labels = [("with tag t",) if at < 5 else () for at in range(50)]
    cases = [
        SliceMember(f"c{at}", "why", labels[at], cluster=of_five(at, "conversation"))
        for at in range(50)
    ]
    assert search(cases, lambda at: at < 5).tried == ()
    alone = [case._replace(cluster=0) for case in cases]
    assert search(alone, lambda at: at < 5).significant != []


def test_a_label_of_two_documents_says_something_about_these_alone() -> None:
    """With three documents it says something about others, too."""
    for documents, start in ((2, "In these documents, questions with"), (3, "Questions with")):
        cases = [
            SliceMember(
                f"c{at}",
                "why",
                ("with tag t",) if at < 5 * documents else (),
                cluster=of_five(at, "document"),
            )
            for at in range(60)
        ]
        marks = {id_number(case.case_id): bool(case.labels) for case in cases} | {
            id_number("c40"): True
        }
        (sentence,) = find_slices(cases, marks).sentences()
        assert sentence.startswith(
            f"{start} tag t fail more often: {5 * documents} of {5 * documents}, "
        )
    # 6 documents of 5 have it, but of those without it there is one alone
    rest = [
        case._replace(labels=("with tag t",) * (at >= 30), cluster=case.cluster if at >= 30 else 1)
        for at, case in enumerate(cases)
    ]
    (sentence,) = search(rest, lambda at: at >= 30 or at == 3).sentences()
    assert sentence.startswith(
        "In these documents, questions with tag t fail more often: 30 of 30, "
    )


def test_foreign_labels_are_shown_as_data() -> None:
    gold = [GoldSupport("d/\x07e.md")]
    (shown, *_) = sliced([TestCase("a", "why?", tags=['x"\x1b[31m\nred'], gold_supports=gold)])
    text = "".join((*shown.labels, *shown.places))
    assert all(ord(sign) >= 32 and sign != '"' for sign in text)


def test_a_rise_names_the_slice_that_rose_and_not_the_one_that_was_always_bad() -> None:
    def case(at: int) -> SliceMember:
        labels = ("in Spanish",) if at % 4 == 0 else ("in French",) if at % 4 == 1 else ()
        return SliceMember(f"t{at}", "why", labels)

    cases = [case(at) for at in range(400)]
    rng = np.random.default_rng(4)
    before = [bool(rng.random() < (0.4 if at % 4 == 1 else 0.05)) for at in range(400)]
    now = [bool(rng.random() < (0.4 if at % 4 < 2 else 0.05)) for at in range(400)]
    slices = find_rise(cases, before, cases, now)
    assert [part.phrase for part in slices.significant] == ["in Spanish"]
    assert slices.sentences()[0].startswith("Questions in Spanish rose more often: ")
    assert " before), against " in slices.sentences()[0]


def test_topics_come_from_vectors_that_are_handed_in() -> None:
    """The questions of the topic have no word in common, the vectors tell it."""
    words = ["tax", "levy", "duty", "toll", "fee"]
    questions = [words[at % 5] if at < 20 else f"plant{at % 7}" for at in range(60)]
    cases = [SliceMember(f"c{at}", text) for at, text in enumerate(questions)]
    marks = {id_number(case.case_id): at < 17 or at % 10 == 9 for at, case in enumerate(cases)}

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.array([[0, 1.0] if "plant" in text else [1.0, 0] for text in texts], np.float32)

    assert "about" in " ".join(part.phrase for part in find_slices(cases, marks, embed).tried)
    assert "about" not in " ".join(part.phrase for part in find_slices(cases, marks).tried)
