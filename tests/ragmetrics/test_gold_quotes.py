"""Whether a passage holds a gold quote: each answer by hand, from the ways that count."""

from __future__ import annotations

import pytest

from ragmetrics.text.gold_quotes import fold_quote, holds_quote

QUOTE = "Goods that were bought on sale are taken back within 30 days of the invoice."
"""76 characters: half of it is 38, and 7 of them may differ."""


@pytest.mark.parametrize(
    ("passage", "holds"),
    [
        (f"Returns. {QUOTE} Bring it along.", True),  # (a)
        (QUOTE.replace("30 days", "90 days"), False),  # one character of 76, and another passage
        (QUOTE.replace("are taken", "are not taken"), False),  # 4 of 80, and the opposite
        (QUOTE.replace("invoice", "invoiec").replace("Goods", "Good's"), True),  # (c): 3 of 76
        (QUOTE.replace("bought on sale", "purchased cheaply"), False),  # more than 7 differ
        (QUOTE[30:] + " Bring it along.", True),  # (b): its last 46 stand at the start
        ("Returns. " + QUOTE[:40], True),  # (b): its first 40 stand at the end
        ("Returns. " + QUOTE[:34], False),  # less than half
        ("Bring it along. " + QUOTE[30:] + " More.", False),  # half of it, and not cut off
        (QUOTE[12:50], True),  # (b): the passage lies within it
        (QUOTE[12:30], False),  # 18 characters say nothing
        ("", False),
        ("Something else entirely, about cranes.", False),
    ],
)
def test_a_passage_holds_a_quote(passage: str, holds: bool) -> None:
    assert holds_quote(passage, QUOTE) is holds


@pytest.mark.parametrize(
    ("passage", "quote", "holds"),
    [
        ("It takes 5 days.", "5 days", True),
        ("It takes 15 days.", "5 days", False),  # within another number
        ("It takes 5 dayz.", "5 days", False),  # short quotes stand word for word
        ("A cat sat.", "cat", True),
        ("Concatenate them.", "cat", False),
        # Longer ones may begin within a word, but not within a number.
        ("It takes 15 days until it is back.", "5 days until it is back", False),
        ("all well-kept and dry cellars", "kept and dry cellars", True),
    ],
)
def test_short_quotes_and_ends(passage: str, quote: str, holds: bool) -> None:
    assert holds_quote(passage, quote) is holds


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("# A *plain* `text` with **[a link](http://x.y/(z))**", "a plain text with a link"),
        ("- “Curly” — quotes’\n  end", '"curly" - quotes\' end'),
        ("hyphen-\nated and soft\u00adly", "hyphenated and softly"),
        ("![alt](a.png) snake_case 2*3 <!-- ignore -->", "alt snake_case 2*3"),
        ("\ufb01ne ½", "fine 1⁄2"),  # NFKC
        ("see [the book][book] and \\*this\\*", "see the book and this"),
    ],
)
def test_how_texts_are_folded(written: str, folded: str) -> None:
    assert fold_quote(written) == folded


def test_a_near_wording_far_into_a_long_passage_is_found() -> None:
    """Windows are looked at only where a piece of the quote stands; none that fits is lost."""
    import random

    from rapidfuzz.distance import Levenshtein

    rng = random.Random(5)
    letters = "abcdefgh "
    quote = "".join(rng.choices(letters, k=60)).replace("  ", "xy").strip().ljust(60, "z")
    for _ in range(200):
        changed = list(quote)
        for _ in range(rng.randint(1, 9)):
            place = rng.randrange(len(changed))
            match rng.choice(("swap", "drop", "add")):
                case "swap":
                    changed[place] = rng.choice(letters)
                case "drop":
                    del changed[place]
                case _:
                    changed.insert(place, rng.choice(letters))
        before, after = ("".join(rng.choices(letters, k=150)) for _ in range(2))
        text = fold_quote(f"{before} {''.join(changed)} {after}")
        windows = (text[at : at + 60] for at in range(len(text) - 59))
        best = max(Levenshtein.normalized_similarity(quote, window) for window in windows)
        assert holds_quote(text, quote) is (best >= 0.9)
