"""Text pictures: what is drawn where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terminal.plot import (
    ASCII_BARS,
    BARS,
    change_line,
    plot_lines,
    scatter_lines,
    shrunk,
    sparkline,
)

values = st.lists(st.none() | st.floats(-1e6, 1e6), max_size=60)


def test_asparkline_goes_from_low_to_high() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == BARS
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], unicode=False) == ASCII_BARS
    assert sparkline([1.0, None, 0.0]) == "█·▁"
    assert sparkline([0.0, 0.0]) == "▁▁"  # nothing, twice
    assert sparkline([0.5, 0.5]) == "▅▅", "a flat line is in the middle"
    # 1 % apart of values near 1: in the middle tenth of a scale of .1, 0.45 and 0.55 of 8 bars
    assert sparkline([0.99, 1.0]) == "▄▅", "noise is no swing"
    assert sparkline([0.95, 1.05]) == "▁█"
    assert sparkline([None, None]) == "··"
    assert sparkline([0.0, 1.0], [1]) == "▁┊█"
    assert sparkline([0.0, 1.0], [1], unicode=False) == "_|#"


def test_too_many_points_become_means_of_neighbours() -> None:
    """Six points in three columns: (1+3)/2, (5+None)/1, (0+2)/2; the break at 4 is in column 2."""
    assert shrunk([1, 3, 5, None, 0, 2], [4], 3) == ([2, 5, 1], [2])
    assert shrunk([1, 2], [1], 3) == ([1, 2], [1])


def test_a_plot_in_ascii() -> None:
    """Two rows and five columns: high, high, low, gap, low. 0 and 1 are its ends."""
    drawn = plot_lines([1.0, 1.0, 0.0, None, 0.0], width=5, height=2, marks=[2], unicode=False)
    assert drawn == ["1.000 **", "0.000   * *", "        ^"]


def test_a_break_is_not_bridged_and_a_limit_is_dotted() -> None:
    joined = plot_lines([0.0, 1.0], width=9, height=3, unicode=False)
    broken = plot_lines([0.0, 1.0], width=9, height=3, breaks=[1], unicode=False)
    assert joined[1].count("*") == 3
    assert broken[1].strip() == ""
    dotted = plot_lines([1.0, 1.0], width=7, height=3, limits=[0.0], unicode=False)
    assert dotted[2] == "0.000 *  *  *"


def test_braille_has_eight_dots_a_cell() -> None:
    """Two columns and four rows of dots in one cell: a fall from the left top to the right bottom.

    Dot 1 is the left top, dot 8 the right bottom: 0x01 and 0x80, and on the way there the line
    passes rows 1 and 2 at columns 0 and 1: dot 2 (0x02) and dot 6 (0x20).
    """
    (line,) = plot_lines([1.0, 0.0], width=1, height=1)
    assert ord(line[-1]) - 0x2800 in (0x01 | 0x02 | 0x20 | 0x80, 0x01 | 0x10 | 0x20 | 0x80)


def test_an_interval_is_upright_and_widens_the_scale() -> None:
    """Five rows from 0 to 1, 0.25 a row, two values in columns 0 and 8: 0.75 within all five rows,
    0.5 from 0.25 to 0.75 in the middle three. Too close for that, an interval is its ends."""
    own = [(0.0, 1.0), (0.25, 0.75)]
    drawn = plot_lines([0.75, 0.5], width=9, height=5, breaks=[1], intervals=own, unicode=False)
    assert [row[6:].ljust(9)[::8] for row in drawn] == ["* ", "**", "**", "**", "* "]
    close = plot_lines([0.5, 0.5], width=2, height=5, intervals=own, unicode=False)
    assert [row[6:].ljust(2) for row in close] == ["* ", " *", "**", " *", "* "]
    assert plot_lines([0.5], width=9, height=3, intervals=[None]) != []


def test_a_scatter_names_its_front() -> None:
    """Eleven columns from 0 to 10, three rows from 0 to 2: (0, 2) left above, (10, 0) right below,
    (5, 1) in the middle without a name. The right one has its name on its left."""
    points = [(0, 2, "ab"), (10, 0, "cd"), (5, 1, "")]
    drawn = scatter_lines(points, width=11, height=3, label="{:g}".format)
    assert drawn == ["2 ◆ ab", "       •", "0        cd ◆", "  0        10"]
    plain = scatter_lines(points, width=11, height=3, label="{:g}".format, unicode=False)
    assert plain == ["2 o ab", "       .", "0        cd o", "  0        10"]
    assert scatter_lines(points[:1], width=11) == []
    assert scatter_lines([(1, 1, "long"), (1, 1, "")], width=2, height=2)[1].strip() == "1.000  ◆"


def test_nothing_to_draw() -> None:
    assert plot_lines([], width=5, height=2) == []
    assert plot_lines([None], width=5, height=2) == []
    assert plot_lines([1.0], width=0, height=2) == []


@given(values, st.booleans(), st.integers(1, 40), st.integers(1, 6))
@pytest.mark.filterwarnings("error")
def test_a_plot_keeps_its_size(
    line: list[float | None], unicode: bool, width: int, height: int
) -> None:
    drawn = plot_lines(line, width=width, height=height, unicode=unicode, marks=[0] if line else [])
    known = [value for value in line if value is not None]
    assert len(drawn) == (height + 1 if known else 0)
    margin = max((len(f"{value:.3f}") for value in known), default=0)
    assert all(len(row) <= margin + 1 + width for row in drawn)
    assert len(sparkline(line)) == len(line)


def test_a_change_is_drawn_around_the_value_before() -> None:
    """21 columns from −0.2 to +0.2 are 0.02 a column, 0 in column 10: after −0.1 in column 5, the
    interval −0.14 to −0.06 in columns 3 to 7, an MDE of 0.04 in columns 8 to 12, target in 15."""
    change = {"reach": 0.2, "columns": 21, "interval": (-0.14, -0.06), "unseen": 0.04}
    assert change_line(-0.1, **change, target=0.1) == "   ├─●━━━━○░░  │     "  # type: ignore
    assert change_line(-0.1, **change, target=0.3) == "   ├─●━━━━○░░       ▸"  # type: ignore
    plain = change_line(-0.1, **change, target=-0.3, unicode=False)  # type: ignore
    assert plain == "<  [-*====o..        "
    assert change_line(0.001, reach=0.2, columns=5) == "  ◉  ", "both dots in one column"
    assert change_line(0.3, reach=0.2, columns=21) == "", "outside of the scale"
    assert change_line(0.0, reach=0.0, columns=21) == "", "no scale"
