"""Failing cases by reason, category and tag: counts, order and loudness by hand."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.score_lines import write_lines

from decisions.case_verdict import read_verdicts
from decisions.failure_map import (
    MOST_ROWS,
    FailureMap,
    MapRow,
    failure_blocks,
    failure_map,
    read_failure_map,
)
from terminal.page import Page, print_page
from views.page import markdown

A, B, NEW = ("category", "a"), ("category", "b"), ("tag", "new")


def test_counts_shares_and_order_by_hand() -> None:
    """Five cases: of a one of two fails, of b two of two; reason y twice, x once."""
    found = failure_map([([A, NEW], "y"), ([A], ""), ([B], "x"), ([B, B], "y"), ([NEW], "")])
    assert found.reasons == ("y", "x")
    assert found.rows == (
        MapRow("", "all cases", 5, (2, 1)),
        MapRow("category", "b", 2, (1, 1)),
        MapRow("category", "a", 2, (1, 0)),
        MapRow("tag", "new", 2, (1, 0)),
    )
    assert [row.failing for row in found.rows] == [3, 2, 1, 1]
    assert found.rows[0].share(0) == 0.4


def test_no_failing_case_no_map() -> None:
    assert failure_map([([A], ""), ([], "")]) == FailureMap()
    assert [*failure_blocks(FailureMap())] == []


def test_the_larger_the_share_the_louder() -> None:
    """Shares of 20 cases: 0, 5, 10, 15, 25, 30, 50, 55 and 100 %; the bounds are 0, 10, 25, 50."""
    row = MapRow("tag", "t", 20, (0, 1, 2, 3, 5, 6, 10, 11, 20))
    assert [row.level(at) for at in range(9)] == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert (row.few, MapRow("tag", "t", 19, (0,)).few) == (False, True)


def test_labels_with_fewer_failing_cases_are_left_out() -> None:
    """Fifteen tags; the first three fail twice, the others once: the last ones by name go."""
    cases = [([("tag", f"t{n:02}")], "x") for n in range(15)]
    cases += cases[:3]
    found = failure_map(cases)
    assert (len(found.rows), found.left_out) == (1 + MOST_ROWS, 15 - MOST_ROWS)
    assert {row.value for row in found.rows[1:]} == {f"t{n:02}" for n in range(12)}


labels = st.lists(st.tuples(st.sampled_from(["category", "tag", "vault"]), st.sampled_from("abc")))

Cases = list[tuple[list[tuple[str, str]], str]]


@given(st.lists(st.tuples(labels, st.sampled_from(["", "x", "y"]))))
def test_the_shares_of_a_row_add_up_to_what_fails(cases: Cases) -> None:
    for row in failure_map(cases).rows:
        own = [why for of, why in cases if not row.dimension or (row.dimension, row.value) in of]
        assert row.n == len(own)
        assert row.failing == sum(map(bool, own))
        assert row.dimension != "vault"


def test_it_is_read_from_the_verdicts_of_a_run(tmp_path: Path) -> None:
    """The call for q1 fails; q2 is not in the set, q3 was not asked."""
    cases: list[dict[str, Any]] = [
        {"id": "q1", "category": "general", "tags": ["t"]},
        {"id": "q3", "category": "factual"},
    ]
    text = "".join(json.dumps(case | {"question": "?"}) + "\n" for case in cases)
    (tmp_path / "set.jsonl").write_text(text)
    lines: list[dict[str, Any]] = [
        {"case_id": "q1", "status": "failed"},
        {"case_id": "q2", "scores": {"answered": 1.0}},
    ]
    write_lines(tmp_path, "pipeline", lines)
    run = read_verdicts(tmp_path)
    found = read_failure_map(run, tmp_path / "set.jsonl", None)
    assert found.reasons == ("error",)
    assert [(row.value, row.counts) for row in found.rows] == [
        ("all cases", (1,)),
        ("general", (1,)),
        ("t", (1,)),
    ]
    assert read_failure_map(run, tmp_path / "no.jsonl", None) == FailureMap()


def test_few_cases_are_marked_and_foreign_labels_are_text() -> None:
    found = failure_map([([("tag", "<b>\x1b[31m|")], "x")] * 3 + [([], "")] * 17)
    text = markdown([Page("", [*failure_blocks(found)])])
    assert "| all cases | 20 | 15 % | ▒ 15 % |" in text.replace("`", "")
    assert "| 3\\* | 100 % | █ 100 % |" in text
    assert "\x1b" not in text
    drawn = io.StringIO()
    print_page(Console(file=drawn, width=80), Page("", [*failure_blocks(found)]))
    assert "\x1b" not in drawn.getvalue()
    assert "█ 100 %" in drawn.getvalue()
