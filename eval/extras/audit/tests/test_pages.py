"""What a bot means by a page is read from its passages."""

from __future__ import annotations

from tests.rows import each_row

from documents.sections import Note, Sheet
from extras.audit.pages import REMEDY, page_note

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()  # noqa: SIM905
TEXTS = [" ".join(f"{word}{number}" for word in WORDS) for number in range(1, 7)]
LABELS = ("i", "ii", "1", "2", "3", "4")
NOTE = Note("v", "a.pdf", "", [Sheet(t, label) for t, label in zip(TEXTS, LABELS, strict=True)])


@each_row(
    ("pages", "reading"),
    [
        ((1, 2, 3, 4, 5, 6), 1),
        ((0, 1, 2, 3, 4, 5), 0),
        (tuple("012345"), 0),  # some servers send numbers as text
        (LABELS, "label"),
        ((7, 8, 9, 9, 9, 9), None),
        ((1, 2, 3, 4, 5, 5), None),  # 5 of 6 agree: less than .9
    ],
)
def test_one_reading_holds_for_the_whole_bot(pages: tuple[int | str, ...], reading: object) -> None:
    passages = [("a.pdf", page, text) for page, text in zip(pages, TEXTS, strict=True)]
    assert page_note(passages, [NOTE]) == REMEDY[reading]


def test_two_passages_or_texts_that_are_nowhere_say_nothing() -> None:
    assert page_note([("a.pdf", 9, TEXTS[0]), ("a.pdf", 9, TEXTS[1])], [NOTE]) == ""
    other = " ".join(f"{word}x" for word in WORDS)
    assert page_note([("a.pdf", n, other) for n in range(9)], [NOTE]) == ""
    assert page_note([("b.pdf", n, TEXTS[0]) for n in range(9)], [NOTE]) == ""
