"""The sanitiser: nothing dangerous comes through, offsets stay, widths are exact."""

from __future__ import annotations

import itertools
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from terminal.safe_text import DisplayText, cells, display, fit, fit_middle, one_line, wrap

ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cs", "Cc", "Cf"]),
        st.sampled_from("\x1b\x9b\x00\r\n\t\u202e\u2028 ab日👩\u200d\ufe0f"),
    ),
    max_size=200,
)


def is_dangerous(char: str) -> bool:
    """Written from the Unicode categories, not from the sanitiser's own table."""
    if char == "\n":
        return False
    category = unicodedata.category(char)
    return category in ("Cc", "Cs", "Zl", "Zp") or (
        unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI")
        or unicodedata.bidirectional(char) in ("FSI", "PDI")
        or char in "\u200b\u200e\u200f\u061c\u2060\ufeff\xad"
    )


def test_markup_is_kept_letter_by_letter(markup: tuple[str, ...]) -> None:
    for text in markup:
        assert display(text) == text


def test_controls_become_visible() -> None:
    assert display("\x1b[2J\x00\x7f\x07") == "␛[2J␀␡␇"
    assert display("a\tb\r\nc\rd") == "a b \nc␍d"
    assert display("\x9b\u202e\ud800\U000e0041") == "\ufffd" * 4
    assert display("a\u2028b\u2029c") == "a\nb\nc"


@given(ANY_TEXT)
def test_offsets_are_kept_and_nothing_dangerous_remains(text: str) -> None:
    shown = display(text)
    assert len(shown) == len(text)
    assert not any(is_dangerous(char) for char in shown)
    assert display(str(shown)) == shown
    assert "\n" not in one_line(text)


@given(ANY_TEXT, st.integers(min_value=0, max_value=60), st.booleans())
def test_fit_is_exact(text: str, width: int, right: bool) -> None:
    assert cells(fit(one_line(text), width, right=right)) == width


@given(ANY_TEXT, st.integers(min_value=1, max_value=40))
def test_wrap_loses_nothing_but_the_break(text: str, width: int) -> None:
    shown = display(text)
    lines = wrap(shown, width)
    assert lines[0][0] == 0
    assert lines[-1][1] == len(shown)
    for (_, end), (start, _) in itertools.pairwise(lines):
        assert shown[end:start] in ("", " ", "\n")
    for start, end in lines:
        line = DisplayText(shown[start:end])
        assert "\n" not in line
        # One wide character may be wider than the whole line; else every line fits.
        assert cells(line) <= max(width, 2)


def test_wrap_by_hand() -> None:
    # Width 7: "one two" fits exactly; "three" is broken off before "four" (5 + 1 + 4 = 10 > 7).
    text = display("one two three four\n\nabcdefghij")
    parts = [text[start:end] for start, end in wrap(text, 7)]
    assert parts == ["one two", "three", "four", "", "abcdefg", "hij"]
    # Two cells a sign: three signs fill 6 of 7 cells.
    wide = display("日本語テスト")
    assert [wide[start:end] for start, end in wrap(wide, 7)] == ["日本語", "テスト"]


@given(ANY_TEXT, st.integers(0, 40))
def test_a_text_cut_in_its_middle_has_the_width(text: str, width: int) -> None:
    assert cells(fit_middle(one_line(text), width)) == width


def test_ids_keep_what_tells_them_apart() -> None:
    shown = [fit_middle(one_line(f"pdb-breakpoints-turn-{turn}"), 16) for turn in (1, 2)]
    assert shown == ["pdb-bre…s-turn-1", "pdb-bre…s-turn-2"]
    # Two cells a sign, one for what is left out: two signs of each end are 9 of 10 cells.
    assert fit_middle(one_line("日本語テスト"), 10) == "日本…スト "
