"""Texts and tables on narrow terminals, and outside one."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from terminal.tables import folded, print_columns

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)


def printed(width: int, terminal: bool = True, *, first: str = "a-name-of-20-letters") -> list[str]:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=width, color_system=None)
    heads = ("name", "cases asked", "seconds")
    print_columns(console, heads, [(first, "12", "3.5"), ("b", "1", "")])
    return [line.rstrip() for line in text.getvalue().splitlines() if "─" not in line]


def test_a_long_line_is_broken_at_blanks_below_its_last_column() -> None:
    assert folded("one two three", 13) == "one two three"
    assert folded("one two three", 9) == "one two\nthree"
    # the last column begins at 8, which is 2/5 of 20: what is broken off begins there
    assert folded("wanted  a path with words", 20) == "wanted  a path with\n        words"
    # at 16 of 20 there is no room: 4 from the first word
    assert folded("  a wide name   b c d e", 20) == "  a wide name   b c\n      d e"
    assert folded("x a-name-of-20-letters y", 10) == "x\na-name-of-20-letters\ny"


@given(st.lists(WORDS, min_size=1, max_size=30), st.integers(4, 60))
def test_no_word_is_cut_and_no_line_too_wide(words: list[str], width: int) -> None:
    lines = folded(" ".join(words), width).split("\n")
    assert " ".join(line.strip() for line in lines).split() == words
    for line in lines:
        assert cell_len(line) <= width or len(line.split()) == 1


def test_a_table_gives_way_step_by_step() -> None:
    """Whole: 20 + 2 + 11 + 2 + 7 = 42 columns. With its heads on two lines: 20 + 2 + 5 + 2 + 7 =
    36. The name above the numbers: 20, below it 2 + 5 + 2 + 7 = 16. Narrower, all are named."""
    whole = "name                  cases asked  seconds"
    assert printed(42)[0] == whole
    assert printed(41)[:2] == [f"{'':22}cases", "name                  asked  seconds"]
    assert printed(35) == [
        *("name", "  cases", "  asked  seconds"),
        *("a-name-of-20-letters", "     12      3.5"),
        *("b", "      1"),
    ]
    expected = [*("name a: cases", "asked 12,", "seconds 3.5"), *("name b: cases", "asked 1")]
    assert printed(15, first="a") == expected
    assert printed(15, terminal=False)[0] == whole
