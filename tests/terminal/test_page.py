"""Numbers as words, and blocks on a terminal and in a file."""

from __future__ import annotations

import io
from dataclasses import dataclass

from rich.console import Console

from terminal.page import (
    Block,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Quotation,
    Quoted,
    TrendColumn,
    Whisker,
    WhiskerColumn,
    apart,
    between,
    fine_percent,
    from_to,
    p_value,
    p_words,
    percent,
    signed,
    signed_between,
    times,
)
from terminal.print_page import print_page


@dataclass(frozen=True)
class Score:
    name: str
    mean: float
    ends: tuple[float, float] | None = None


SCORES = [Score("recall", 0.5, (0.4, 0.6)), Score("mrr", 0.25, (0.2, 0.3))]


def printed(*blocks: Block, width: int = 80, terminal: bool = True, every: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=terminal, color_system=None)
    print_page(console, Page("title", blocks), every=every)
    return file.getvalue()


def test_a_difference_has_its_sign_and_the_digits_that_show_it() -> None:
    """Three decimals would hide −0.0004; of 0.0000001 six decimals show nothing."""
    values = (None, 0.0, 0.25, -0.25, -0.0004, 0.0000001, -1234.5)
    expected = ["–", "0.000", "+0.250", "−0.250", "−0.0004", "+0.000", "−1,234"]
    assert [signed(value) for value in values] == expected


def test_two_numbers_have_the_digits_that_show_their_difference() -> None:
    assert apart(0.5, 0.25) == ("0.500", "0.250")
    assert apart(0.9951, 0.9947) == ("0.9951", "0.9947")
    assert from_to(0.12345, 0.12349) == "0.12345 → 0.12349"
    assert from_to(None, 0.5) == "– → 0.500"
    assert apart(0.5, 0.5) == ("0.500", "0.500")


def test_p_values_shares_and_intervals() -> None:
    assert [p_value(p) for p in (None, 0.0004, 0.001, 0.034, 1.0)] == [
        "–", "< .001", ".001", ".034", "1.000",
    ]  # fmt: skip
    assert (p_words(0.0004), p_words(0.034)) == ("p < .001", "p = .034")
    assert [percent(share) for share in (None, 0, 0.004, 0.5, 0.996, 1)] == [
        "–", "0 %", "< 1 %", "50 %", "> 99 %", "100 %",
    ]  # fmt: skip
    assert [fine_percent(share) for share in (0, 0.0034, 0.1234)] == ["0.0 %", "0.34 %", "12.3 %"]
    assert (between((0.25, 0.5)), between(None)) == ("0.250 – 0.500", "–")
    assert signed_between((-0.25, 0.5)) == "−0.250 to +0.500"
    assert [times(ratio) for ratio in (None, 1.5, 0.0123)] == ["–", "1.50", "0.0123"]


def test_the_verdict_is_last_on_a_terminal() -> None:
    verdict = Conclusion("WORSE.", "bad", (Prose("▼ recall"),))
    lines = printed(verdict, Prose("first"), Heading("Cases")).splitlines()
    assert lines == ["first", "", "Cases", "", "WORSE.", "▼ recall"]


def test_a_folded_table_is_named_and_printed_when_all_is_asked_for() -> None:
    columns = [DataColumn[Score]("metric", lambda row: row.name)]
    table = DataTable(columns, SCORES, folded="2 more", hint="2 more: -v shows them.")
    assert printed(table) == "2 more: -v shows them.\n"
    assert "recall" in printed(table, every=True)
    assert printed(DataTable(columns, [], "No rows, no title")) == ""


def test_columns_go_in_their_order_and_pictures_below_100_columns() -> None:
    """metric 6, mean 5, interval 13, and 2 between them: 28, without the mean 21."""
    columns = (
        DataColumn[Score]("metric", lambda row: row.name),
        DataColumn[Score]("mean", lambda row: f"{row.mean:.3f}", drop=1),
        DataColumn[Score]("95 % interval", lambda row: between(row.ends), drop=3),
        WhiskerColumn[Score](lambda row: Whisker(row.ends, row.mean), drop=1),
    )
    table = DataTable(columns, SCORES)
    wide = printed(table, width=100)
    assert "●" in wide
    assert "95 % interval" in wide
    narrow = " ".join(printed(table, width=22).split())
    assert "Left out on this narrow terminal: mean." in narrow
    assert "●" not in narrow, "below 100 columns there is no room for pictures"


def test_groups_stand_above_their_rows_and_trends_take_what_is_left() -> None:
    columns = (
        DataColumn[Score]("metric", lambda row: row.name),
        TrendColumn[Score]("trend", lambda row: ([0.0, 1.0] * 50, ())),
    )
    table = DataTable(columns, SCORES, group=lambda row: "retrieval")
    lines = printed(table, width=40).splitlines()
    assert [line.strip() for line in lines[2:3]] == ["retrieval"]
    assert [line.split()[0] for line in lines[3:]] == ["recall", "mrr"]
    assert max(map(len, lines)) <= 40


def test_foreign_text_moves_no_cursor() -> None:
    bad = "x\x1b[2Jy\u202ez\nnext"
    text = printed(
        Prose(("id ", Quoted(bad))),
        Quotation("Q", bad),
        DataTable([DataColumn[str]("name", str)], [bad]),
    )
    assert "\x1b[2J" not in text
    assert "\u202e" not in text


def test_outside_utf8_only_ascii_is_printed() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", newline="\n")
    trend = TrendColumn[str]("trend", lambda row: ([0.0, 1.0, None], [1]))
    table = DataTable((DataColumn[str]("name", str), trend), ["▲ rose"])
    print_page(Console(file=file, width=60), Page("", [table, Prose("a → b − c")]))
    file.flush()
    assert raw.getvalue().decode("ascii").splitlines()[-1] == "a > b - c"


def test_a_file_has_whole_lines_and_a_terminal_folds_them() -> None:
    long = Prose("word " * 30, item=1)
    assert len(printed(long, terminal=False).splitlines()) == 1
    folded = printed(long).splitlines()
    assert len(folded) == 2
    assert all(line.startswith("  word") for line in folded)
