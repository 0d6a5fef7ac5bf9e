"""Text pictures: what is drawn where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terminal.plot import ASCII_BARS, BARS, change_line, loudness, shrunk, sparkline

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


@given(values, st.booleans())
@pytest.mark.filterwarnings("error")
def test_asparkline_has_a_character_a_value(line: list[float | None], unicode: bool) -> None:
    assert len(sparkline(line, unicode=unicode)) == len(line)


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


def test_a_larger_share_is_louder() -> None:
    """The bounds are 0, 10, 25 and 50 %."""
    shares = (0, 0.05, 0.1, 0.15, 0.25, 0.3, 0.5, 0.55, 1)
    assert [loudness(share) for share in shares] == [0, 1, 1, 2, 2, 3, 3, 4, 4]
