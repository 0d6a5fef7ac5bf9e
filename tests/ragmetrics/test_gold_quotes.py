"""Whether a passage holds a gold quote: each answer by hand, from the ways that count."""

from __future__ import annotations

from tests.rows import each_row

from ragmetrics.text.gold_quotes import fold_quote, holds_quote, holds_run

QUOTE = "Goods that were bought on sale are taken back within 30 days of the invoice."
"""76 characters: half of it is 38, and 7 of them may differ."""


@each_row(
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


@each_row(
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


@each_row(
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


RUN = "The lock file names the tree of packages that was made, so that later runs make it again."
"""18 words: half of them is 9."""
_RUN_WORDS = RUN.split()


def some(start: int, end: int) -> str:
    """Some of the 18 words, counted from 0."""
    return " ".join(_RUN_WORDS[start:end])


@each_row(
    ("passage", "holds"),
    [
        (f"Purpose. {RUN} Commit it.", True),
        (f"Purpose. {some(0, 9)}", True),  # it ends within the quote and has half of it
        (f"Purpose. {some(0, 8)}", False),  # less than half
        (f"{some(9, 18)} Commit it.", True),  # it begins within the quote
        (some(4, 14), True),  # it lies within the quote
        (some(4, 12), False),  # 8 of 18
        (f"Purpose. {some(0, 16)} do so.", False),  # it goes on otherwise: another sentence
        (f"Purpose. {some(2, 18)}", False),  # it came otherwise
        (f"Purpose. {some(0, 9)} wa", True),  # a chunk that ends within "was"
        (f"hat {some(9, 18)}", True),  # and one that begins within "that"
        (f"hot {some(9, 18)}", False),
        (f"Lock files {some(9, 18)}", True),  # behind its own heading
        (f"Locks {some(9, 18)}", False),  # "Locks" is neither heading nor a part of "that"
        ("", False),
        ("Something else entirely, about cranes.", False),
    ],
)
def test_a_passage_holds_words_of_a_quote_in_a_row(passage: str, holds: bool) -> None:
    assert holds_run(passage, RUN, ["Files", "Lock"]) is holds


@each_row(
    ("passage", "quote", "holds"),
    [
        # Marks, tags, links and the cells of a table are no words.
        ("The **exact** [tree](a.md) of `packages`.", "the exact tree of packages", True),
        ("<p>The exact <em>tree</em></p>", "the exact tree", True),
        ("Name Depth tree 3", "| Name | Depth |\n|---|---:|\n| tree | 3 |", True),
        # Fewer than 8 words must be there whole, as words.
        ("It takes 15 days.", "5 days", False),
        ("Seven words in a row are few", "Seven words in a row are few indeed", False),
        ("Returns `true` for a [`Set`][].", "Returns `true` for a [`Map`][].", False),
        # A quote without a word must be there as it is.
        ("a → b", "→", True),
        ("a - b", "→", False),
        ("anything", "**", False),
        # Two signs of a script without spaces are a word: 16 pairs of them are 17 signs.
        ("鍵は毎月担当者が交換し、古い鍵は金庫に保管されます", "鍵は毎月担当者が交換", True),
        ("窓を交換することができます", "鍵を毎月一度交換することができます", False),
        (
            "毎月一度、担当者が鍵を新しいもの",
            "毎月一度、担当者が鍵を新しいものに交換してください",
            False,
        ),
        (
            "次の規則です。毎月の終わりに担当者が鍵を新しいものに",
            "毎月の終わりに担当者が鍵を新しいものに交換してください",
            True,  # 19 of 27 signs are 18 of 26 pairs
        ),
    ],
)
def test_words_in_a_row_are_free_of_marks(passage: str, quote: str, holds: bool) -> None:
    assert holds_run(passage, quote) is holds
