"""A claim that differs from its sentence by a *not* is vetoed; other meanings are left alone."""

from __future__ import annotations

from tests.rows import each_row

from ragmetrics.support import judge
from ragmetrics.text.negation import is_opposite
from ragmetrics.windows import prepare


@each_row(
    ("claim", "sentence"),
    [
        ("The plan does not cover dental care.", "The plan covers dental care."),
        ("The plan covers dental care.", "The plan doesn't cover dental care."),
        ("Guests can't use the pool.", "Guests can use the pool."),
        ("No pets are allowed on the roof.", "Pets are allowed on the roof."),
        ("The fee is never waived without a form.", "The fee is waived without a form."),
        ("The pool no longer opens on Sundays.", "The pool opens on Sundays."),
        ("Neither the gym nor the pool opens early.", "Both the gym and the pool open early."),
        ("Rooms come with a balcony.", "Rooms come without a balcony."),
    ],
)
def test_a_not_on_one_side_vetoes(claim: str, sentence: str) -> None:
    assert is_opposite(claim, [sentence])
    found = judge(claim, [prepare(f"This is a note. {sentence}")])
    assert found is not None
    assert (found.supported, found.strength, found.opposite) == (False, 0.0, True)


@each_row(
    ("claim", "sentence"),
    [
        ("The plan does not cover dental care.", "The plan does not cover dental care."),
        ("Entry is not possible after six.", "Entry is only possible after six."),
        ("Statements are not charged.", "Statements are free, they are charged to the bank."),
        ("The pool is not open to guests.", "The pool is not closed, and not open to guests."),
        ("The plan does not cover visits abroad.", "The plan covers dental care."),
        ("The key cannot be changed.", "The door is locked."),
    ],
)
def test_other_differences_do_not(claim: str, sentence: str) -> None:
    assert not is_opposite(claim, [sentence])


def test_the_sentence_with_most_of_the_words_decides() -> None:
    # The second sentence has all four words of the claim, the first three of them and a "not".
    sentences = ["The plan does not cover dental visits.", "The plan covers dental care visits."]
    assert not is_opposite("The plan covers dental care visits.", sentences)
    assert not is_opposite("", sentences)
    assert not is_opposite("The plan covers it.", [])
