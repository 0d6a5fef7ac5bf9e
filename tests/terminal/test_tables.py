"""The table of a section: figures in a width that leaves room for all of them."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from records.targets import Target
from terminal.tables import counted, number, print_section, printable


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0.0, "0.000"),
        (-0.25, "-0.250"),
        (9.876, "9.876"),
        (10.0, "10.0"),
        (99.94, "99.9"),
        (100.4, "100"),
        (14289.476, "14,289"),
        (-14289.476, "-14,289"),
    ],
)
def test_number(value: float | None, shown: str) -> None:
    assert number(value) == shown


WIDE = "longest_copied_span"
LONG = "citation_validity_content"


def section() -> dict[str, Any]:
    """One metric with a wide number and one with a long name, each of 10,000 cases."""
    return {
        "mean": {WIDE: 14289.476, LONG: 0.5},
        "ci95": {WIDE: (13999.5, 14600.25), LONG: (0.49, 0.51)},
        "n": {WIDE: 10000, LONG: 9999},
        "not_applicable": {WIDE: 1234, LONG: 0},
        "failed": {WIDE: 5678, LONG: 0},
        "marks": {},
        "clusters": {WIDE: 37, LONG: 36},
        "clustered_by": "none",
    }


def printed(width: int, **more: Any) -> list[str]:
    targets = {WIDE: Target("<", 15000), LONG: Target(">=", 0.875)}
    console = Console(file=StringIO(), width=width, color_system=None)
    print_section(console, section() | more, targets)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [72, 80, 120])
def test_no_figure_and_no_mark_is_cut(width: int) -> None:
    """Beside the name stand 6 + 15 + 5 + 4 + 6 + 8 + 1 characters and 7 gaps of 2: 59."""
    lines = printed(width)
    assert all(len(line) <= width for line in lines)
    assert " ".join(lines[0].split()) == "metric mean 95 % interval n n/a failed target"
    (wide,) = (line for line in lines if "14,289" in line)
    assert " ".join(wide.split()[1:]) == "14,289 14,000 – 14,600 10000 1234 5678 < 15000 ✓"
    (long,) = (line for line in lines if "0.500" in line)
    assert " ".join(long.split()[1:]) == "0.500 0.490 – 0.510 9999 0 0 >= 0.875 ✗"
    assert "…" not in "".join(lines)


def test_a_long_name_is_folded_and_whole() -> None:
    """At 72 columns 72 - 59 = 13 are left for names: 25 characters take two lines."""
    lines = printed(72)
    place = next(i for i, line in enumerate(lines) if line.startswith(LONG[:12]))
    assert lines[place].split()[0] + lines[place + 1].strip() == LONG


def test_a_star_says_why_and_clusters_are_told() -> None:
    lines = printed(120, marks={WIDE: "mostly zero", LONG: "mostly zero"}, clustered_by="doc")
    assert sum("*" in line for line in lines) == 3
    assert lines[-2] == f"* {WIDE}, {LONG}: mostly zero"
    assert lines[-1] == (
        "Cases that share their first gold document are counted together (37 independent units)."
    )
    assert "share a group" in printed(120, clustered_by="group")[-1]


def test_a_number_has_its_noun_in_the_right_form() -> None:
    assert [counted(n, "case") for n in (0, 1, 2)] == ["0 cases", "1 case", "2 cases"]
    assert counted(2_000, "entry", "entries") == "2,000 entries"


def test_what_a_server_says_stays_on_its_line() -> None:
    assert printable("no\nmodel \x1b[31mx\u202e") == "no model  [31mx "
