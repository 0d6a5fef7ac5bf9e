"""Prose is set anew for the width of the pane; code, tables and lists keep their lines."""

from __future__ import annotations

import itertools
import random

from tests.rows import each_row

from terminal.reflow import as_is, drawn, reflowed
from terminal.safe_text import cells, display

PROSE = """\
An assignment expression (sometimes also called a "named expression" or
"walrus") assigns an expression to an identifier, while also returning the
value of the expression.

One common use case is when handling matched regular expressions."""


def lines(text: str, width: int) -> list[str]:
    safe = display(text)
    return [
        " " * line.indent + drawn(safe[line.start : line.end]) for line in reflowed(safe, width)
    ]


def test_prose_broken_at_72_columns_is_set_anew_for_a_narrow_pane() -> None:
    """Broken at 30 by hand: each line takes the words that fit, none stands alone."""
    assert lines(PROSE, 30)[:4] == [
        "An assignment expression",
        "(sometimes also called a",
        '"named expression" or',
        '"walrus") assigns an',
    ]


def test_a_wide_pane_gets_lines_of_a_hundred_columns_at_most() -> None:
    result = lines(PROSE, 180)
    first = 'An assignment expression (sometimes also called a "named expression" or "walrus") '
    assert result == [
        first + "assigns an",
        "expression to an identifier, while also returning the value of the expression.",
        "",
        "One common use case is when handling matched regular expressions.",
    ]


VERBATIM = {
    "code": "def f(x):\n    y = x + 1\n    return y",
    "long code": (
        "result = some_function_name(first_argument, second_argument, third_argument)\n"
        "other = another_function(result)\n"
        "print(other)"
    ),
    "fence": "```\nThis line stands in a fence and is longer than most are\nand this too\n```",
    "table": "| name | what it is and does, in a sentence of some length |\n| a | b |",
    "columns": "name         what it is and does, in a sentence of some length\nother        b",
    "list": "- first item of a list that is as long as a line of prose can get to be\n- second",
    "title": "A title that is as long as a line of prose can ever get to be, and more\n" + "=" * 71,
    "verse": "Roses are red,\nviolets are blue",
}


@each_row("name", VERBATIM)
def test_what_is_no_prose_keeps_its_lines(name: str) -> None:
    assert lines(VERBATIM[name], 120) == VERBATIM[name].split("\n")


def test_a_list_item_hangs_below_its_first_word() -> None:
    text = (
        "* The target list is evaluated from left to right, and each object that it\n"
        "  names is bound in turn."
    )
    assert lines(text, 40) == [
        "* The target list is evaluated from left",
        "  to right, and each object that it",
        "  names is bound in turn.",
    ]
    indented = (
        "   Nested prose of a directive stands three columns in, and is long\n   enough to break."
    )
    assert lines(indented, 120) == [
        "   Nested prose of a directive stands three columns in, and is long enough to break."
    ]


def test_rows_of_a_help_page_hang_in_the_second_column() -> None:
    text = display("key    a sentence of many words")
    expected = [("key    a sentence of", 0), ("many words", 7)]
    assert [(text[a:b], i) for a, b, i in as_is(text, 20, 7)] == expected


def test_no_character_but_blanks_is_lost_and_no_line_is_too_wide() -> None:
    """Random texts of lines, indents, wide letters and list signs at random widths."""
    chance = random.Random(7)
    words = ["a", "in", "word", "another", "日本語", "- x", "1. y", "|", "`c`", "x" * 90]
    for _ in range(300):
        parts = []
        for _ in range(chance.randrange(1, 12)):
            count = chance.randrange(0, 14)
            parts.append(
                " " * chance.choice((0, 0, 0, 3, 4)) + " ".join(chance.choices(words, k=count))
            )
        text = display("\n".join(parts))
        width = chance.randrange(8, 130)
        pieces = reflowed(text, width)
        joined = "".join(drawn(text[a:b]) for a, b, _ in pieces)
        assert "".join(joined.split()) == "".join(text.split())
        assert all(cells(drawn(text[a:b])) + i <= width for a, b, i in pieces)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(pieces))
