"""The table of a section: figures in a width that leaves room for all of them."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console
from tests.rows import each_row

from decisions.measures import measures
from records.targets import Target
from scorers.section_page import draft_notes, section_blocks
from terminal.page import number
from terminal.print_page import print_blocks
from terminal.tables import picture, scale


@each_row(
    ("value", "shown"),
    [
        (None, "–"),
        (0.0, "0.000"),
        (-0.25, "−0.250"),
        (-0.0001, "0.000"),
        (9.876, "9.876"),
        (10.0, "10.0"),
        (99.94, "99.9"),
        (100.4, "100"),
        (14289.476, "14,289"),
        (-14289.476, "−14,289"),
    ],
)
def test_number(value: float | None, shown: str) -> None:
    assert number(value) == shown


WIDE = "longest_copied_span"
LONG = "citation_validity_content"
LEFT_OUT = "Left out on this narrow terminal: {}."
ALL_BUT_MARKS = "failed, n/a, n, 95 % interval"


def section() -> dict[str, Any]:
    """One metric with a wide number and one with a long name, each of 10,000 cases."""
    return {
        "mean": {WIDE: 14289.476, LONG: 0.5},
        "ci95": {WIDE: (13999.5, 14600.25), LONG: (0.49, 0.51)},
        "n": {WIDE: 10000, LONG: 9999},
        "not_applicable": {WIDE: 1234, LONG: 0},
        "failed": {WIDE: 5678, LONG: 0},
        "definitions": {},
        "marks": {},
        "clusters": {WIDE: 37, LONG: 36},
        "clustered_by": "none",
    }


def printed(width: int, terminal: bool = True, **more: Any) -> list[str]:
    targets = {WIDE: Target("<", 15000), LONG: Target(">=", 0.875)}
    console = Console(
        file=StringIO(), width=width, force_terminal=terminal, color_system=None, no_color=True
    )
    whole = section() | more
    rows = measures({"context": whole}, {"context": targets}).values()
    print_blocks(console, section_blocks(whole, list(rows)))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


WHOLE = "metric mean 95 % interval n n/a failed target"


@each_row(
    ("width", "left_out"),
    [(84, ""), (83, "failed"), (75, "failed, n/a"), (69, "failed, n/a, n"), (62, ALL_BUT_MARKS)],
)
def test_nothing_is_cut_and_other_columns_give_way(width: int, left_out: str) -> None:
    """Name, mean, interval, n, n/a, failed, target and mark take 25 + 6 + 15 + 5 + 4 + 6 + 8 + 1
    characters, and 7 gaps of 2: 84. Without failed 84 - 8 = 76, without n/a 70, without n 63,
    without the interval 46."""
    lines = printed(width)
    table = [line for line in lines if line.startswith(("metric", WIDE, LONG))]
    assert not left_out or LEFT_OUT.format(left_out) in " ".join(" ".join(lines).split())
    assert all(len(line) <= width for line in table)
    head = WHOLE
    for column in filter(None, left_out.split(", ")):
        head = f"{head} ".replace(f" {column} ", " ", 1).strip()
    assert " ".join(lines[0].split()) == head
    (wide,) = (line for line in lines if line.startswith(WIDE))
    assert "14,289" in wide
    assert wide.split()[-3:] == ["<", "15000", "✓"]
    (long,) = (line for line in lines if line.startswith(LONG))
    assert "0.500" in long
    assert long.split()[-3:] == [">=", "0.875", "✗"]
    assert "…" not in "".join(lines)


def test_outside_a_terminal_a_table_is_whole_however_narrow() -> None:
    lines = printed(40, terminal=False)
    assert " ".join(lines[0].split()) == WHOLE
    (wide,) = (line for line in lines if line.startswith(WIDE))
    assert " ".join(wide.split()[1:]) == "14,289 14,000 – 14,600 10000 1234 5678 < 15000 ✓"
    (long,) = (line for line in lines if line.startswith(LONG))
    assert " ".join(long.split()[1:]) == "0.500 0.490 – 0.510 9999 0 0 >= 0.875 ✗"


def test_a_terminal_with_room_has_pictures() -> None:
    """84 + 21 + 2 = 107. From 0 to 1 a picture has 20 steps: 0.49, 0.5 and 0.51 fall on the same
    one, the tenth; 0.875 is 17.5, rounded to the even 18. What lies outside 0 to 1 has none."""
    lines = printed(107)
    assert lines[0].split()[5:7] == ["0", "1"]
    (long,) = (line for line in lines if line.startswith(LONG))
    assert " " * 10 + "●" + " " * 7 + "│" in long
    assert "●" not in next(line for line in lines if line.startswith(WIDE))
    assert "●" not in "".join(printed(106))  # the picture gives way first
    assert "●" not in "".join(printed(120, terminal=False))


def test_a_picture_by_hand() -> None:
    """21 characters for 0 to 1, 20 steps of 0.05: 0.2 is place 4, 0.5 place 10, 0.7 place 14."""
    assert picture((0.2, 0.7), 0.5, 0.9) == "    ├─────●───┤   │  "
    assert picture((0.2, 0.7), 0.5, 0.4) == "    ├───│─●───┤      "
    assert picture(None, 0.5) == "          ●          "
    assert picture((-0.1, 0.1), 0.05, 0, low=-0.1, high=0.1) == "├─────────│────●────┤"
    assert picture((0.2, 0.7), 0.5, 0.9, unicode=False) == "    [-----o---]   |  "
    assert picture((0.2, 1.2), 0.5) == picture(None, None) == ""
    assert scale("−0.1", "+0.1", "0") == "−0.1      0      +0.1"


def test_a_star_says_why_and_clusters_are_told() -> None:
    lines = printed(120, marks={WIDE: "mostly zero", LONG: "mostly zero"}, clustered_by="doc")
    assert sum("*" in line for line in lines) == 3
    assert lines[-2] == f"* {WIDE}, {LONG}: mostly zero"
    assert lines[-1] == (
        "Cases that share their first gold document are counted together (37 independent units)."
    )
    assert "share a group" in printed(120, clustered_by="group")[-1]
    single = printed(120, clustered_by="group", clusters={WIDE: 1})[-1]
    assert "(1 independent unit)" in single


def test_how_many_cases_are_drafts_is_said_beside_figures() -> None:
    sections: list[dict[str, Any]] = [
        {"by": {"tag": {"draft": {"n": 3, "mean": {}}, "hard": {"n": 9, "mean": {}}}}},
        {"by": {"tag": {"draft": {"n": 6, "mean": {}}}}},
        {},
    ]
    (note,) = draft_notes(sections)
    assert note.startswith("Drafts that no person has accepted: 6 cases.")
    assert draft_notes([{"by": {"tag": {"hard": {"n": 9}}}}, {"by": {}}]) == []
