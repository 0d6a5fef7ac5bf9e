"""Tool calls against what a case expects: values by hand, ranges by drawn examples."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics.catalogue.tools import ROWS
from ragmetrics.tools import (
    NO_CALLS,
    NONE_EXPECTED,
    NOT_KEPT,
    NOT_REPORTED,
    ToolLabels,
    argument_fits,
    assign,
    canonical,
    fits,
    score_tools,
)
from records.tool_calls import ExpectedTool, ToolCall

NAMES = [metric.name for metric in ROWS]


def call(name: str, error: str | None = None, **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments, error=error)


def expect(name: str, match: Any = "subset", **arguments: Any) -> ExpectedTool:
    return ExpectedTool(name, arguments, match)


def score(calls: list[ToolCall] | None, **labels: Any) -> dict[str, float | None]:
    return dict(score_tools(NAMES, calls, ToolLabels(**labels)).values)


def reasons(calls: list[ToolCall] | None, **labels: Any) -> dict[str, str]:
    return dict(score_tools(NAMES, calls, ToolLabels(**labels)).reasons)


def evidence(calls: list[ToolCall], **labels: Any) -> Any:
    return score_tools(NAMES, calls, ToolLabels(**labels)).evidence


def test_three_of_four_calls_and_three_of_five_expectations_fit() -> None:
    """E: search(q=hat), search(q=tyre), price(id=7), book, mail. C: search(q=hat, k=5), price(7),
    price(8), book. Fits: 1-1, 3-2, 4-4, so M = 3: precision 3/4, recall 3/5, F1 2*3/(5+4) = 2/3.
    By name search pairs once (q=hat fits: 1, the other search has no call: 0), price with id=7: 1,
    book states nothing: 1, mail: 0: (1 + 0 + 1 + 1 + 0) / 5 = .6."""
    expected = [
        expect("search", q="hat"),
        expect("search", q="tyre"),
        expect("price", id=7),
        expect("book"),
        expect("mail"),
    ]
    calls = [call("search", q="hat", k=5), call("price", id=7), call("price", id=8), call("book")]
    scores = score(calls, expected=expected)
    assert scores["tool_precision"] == 0.75
    assert scores["tool_recall"] == 0.6
    assert scores["tool_f1"] == pytest.approx(2 / 3)
    assert scores["argument_match"] == 0.6
    assert scores["tool_calls"] == 4
    assert scores["order_match"] is scores["no_call_ok"] is None
    rows = evidence(calls, expected=expected)
    assert rows["missing"] == [1, 4]
    assert [row.get("expected") for row in rows["calls"]] == [0, 2, None, 3]


def test_the_matching_is_the_largest_one() -> None:
    """search() fits both calls, search(q=hat) the first alone: a greedy pairing of the first with
    search() would find one pair; there are two."""
    expected = [expect("search"), expect("search", q="hat")]
    calls = [call("search", q="hat"), call("search", q="tyre")]
    assert score(calls, expected=expected)["tool_recall"] == 1.0
    # E: f(a=1, b=2), f(a=3, b=4). C: f(a=3, b=2), f(a=1, b=9). Pairs in order fit b and nothing:
    # (1/2 + 0)/2; crossed a and a: (1/2 + 1/2)/2 = .5, the larger sum. No call fits whole.
    expected = [expect("f", a=1, b=2), expect("f", a=3, b=4)]
    scores = score([call("f", a=3, b=2), call("f", a=1, b=9)], expected=expected)
    assert (scores["argument_match"], scores["tool_recall"], scores["tool_f1"]) == (0.5, 0.0, 0.0)


def test_a_retry_after_an_error_is_one_call() -> None:
    """f fails, f again with the same arguments works: one call, not failed, not redundant. g fails
    twice: one call that failed. Of two calls one failed: .5; nothing is redundant."""
    calls = [call("f", "timeout", a=1), call("f", a=1.0), call("g", "no"), call("g", "no")]
    scores = score(calls, expected=[expect("f"), expect("g")])
    assert (scores["tool_calls"], scores["failed_call_rate"]) == (2, 0.5)
    assert (scores["redundant_call_rate"], scores["tool_f1"]) == (0.0, 1.0)
    rows = evidence(calls)["calls"]
    assert [bool(row.get("retry")) for row in rows] == [False, True, False, True]
    # f, f, g (fails), f: the second f repeats the first (1 of 4), the third follows an error.
    calls = [call("f", a=1), call("f", a=1), call("g", "down"), call("f", a=1)]
    scores = score(calls)
    assert (scores["tool_calls"], scores["redundant_call_rate"]) == (4, 0.25)
    assert score([call("f", a=1), call("f", a=2)])["redundant_call_rate"] == 0.0


def test_forbidden_calls() -> None:
    """delete with any arguments and pay above nothing stated but to=x: 2 of 3 calls."""
    forbidden = [expect("delete"), expect("pay", to="x")]
    calls = [call("delete", id=1), call("pay", to="y"), call("pay", to="x")]
    scores = score(calls, forbidden=forbidden)
    assert scores["forbidden_called"] == 1.0
    assert scores["forbidden_tool_rate"] == pytest.approx(2 / 3)
    none = score([], forbidden=forbidden)
    assert (none["forbidden_called"], none["forbidden_tool_rate"]) == (0.0, None)
    assert score(calls)["forbidden_called"] is None


@each_row(
    ("names", "strict", "partial"),
    [("ab", 1, 1), ("ba", 0, 0), ("axb", 0, 1), ("a", 0, 0), ("aab", 0, 1), ("", 0, 0)],
)
def test_the_order_of_calls(names: str, strict: float, partial: float) -> None:
    """Expected are a, then b: strict means these alone, partial others between them as well."""
    calls = [call(name, n=place) for place, name in enumerate(names)]
    expected = [expect("a"), expect("b")]
    assert score(calls, expected=expected, order="strict")["order_match"] == strict
    assert score(calls, expected=expected, order="partial")["order_match"] == partial
    assert score(calls, expected=expected, order="none")["order_match"] is None


def test_what_is_not_reported_is_undefined_and_an_empty_list_is_no_call() -> None:
    labels = {"expected": [expect("f")], "forbidden": [expect("g")], "most_calls": 0}
    assert set(score(None, **labels).values()) == {None}
    assert set(reasons(None, **labels).values()) == {NOT_REPORTED}
    scores, why = score([], **labels), reasons([], **labels)
    assert (scores["tool_calls"], scores["within_calls"], scores["tool_recall"]) == (0, 1, 0)
    assert (scores["tool_f1"], scores["argument_match"]) == (0, 0)
    for name in ("tool_precision", "failed_call_rate", "redundant_call_rate"):
        assert (scores[name], why[name]) == (None, NO_CALLS)
    long = ToolCall("f", arguments_length=30_000)
    assert set(reasons([long], **labels).values()) == {NOT_KEPT}


def test_a_question_that_needs_no_tool() -> None:
    assert score([], expected=[])["no_call_ok"] == 1.0
    scores = score([call("f")], expected=[])
    assert scores["no_call_ok"] == 0.0
    for name in ("tool_precision", "tool_recall", "tool_f1", "argument_match", "order_match"):
        assert reasons([call("f")], expected=[], order="strict")[name] == NONE_EXPECTED
    assert score([call("f")], expected=[expect("f")])["no_call_ok"] is None
    calls = [call("f", "down"), call("f"), call("g")]  # a retry and one more: two calls
    assert score(calls, most_calls=2)["within_calls"] == 1.0
    assert score(calls, most_calls=1)["within_calls"] == 0.0
    assert score(calls)["within_calls"] is None


def test_more_arguments_are_allowed_but_where_they_match_exactly() -> None:
    made = call("f", a=1, b=2)
    assert fits(expect("f", a=1), made)
    assert not fits(expect("f", match="exact", a=1), made)
    assert fits(expect("f", match="exact", b=2, a=1), made)
    assert not fits(expect("g", a=1), made)
    assert not fits(expect("f", a=1, c=3), made)
    assert canonical({"b": 1.0, "a": [True, "é"]}) == canonical({"a": [True, "é"], "b": 1})
    assert canonical(1.5) == "1.5"


@each_row(
    ("stated", "value", "fit"),
    [
        (1, 1.0, True),
        (1, True, False),  # equal in Python, not in JSON
        (1, "1", False),
        ({"a": [1, 2], "b": None}, {"b": None, "a": [1.0, 2]}, True),
        ([1, 2], [2, 1], False),
        ({"regex": "(?i)hats?"}, "HAT", True),
        ({"regex": "hat"}, "a hat", False),  # the whole of it
        ({"regex": r"\d+"}, 17, True),
        ({"number": 1, "tolerance": 0.1}, 1.1, True),  # 1.1 - 1 is above .1 in binary
        ({"number": 1, "tolerance": 0.1}, 1.11, False),
        ({"number": 5}, 5.0, True),
        ({"number": 1}, True, False),
        ({"number": 1}, "1", False),
        ({"equals": {"regex": "a"}}, {"regex": "a"}, True),
        ({"equals": {"regex": "a"}}, "a", False),
        ({"number": 1, "unit": "kg"}, {"unit": "kg", "number": 1}, True),  # a plain object
    ],
)
def test_a_stated_argument(stated: Any, value: Any, fit: bool) -> None:
    assert argument_fits(stated, value) is fit


gains = st.integers(0, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from([0, 0.25, 0.5, 1, 1.5]), min_size=width, max_size=width),
        max_size=4,
    )
)


@given(gains)
def test_the_assignment_has_the_largest_sum_of_all(table: list[list[float]]) -> None:
    pairs = assign(table)
    rows, columns = len(table), len(table[0]) if table else 0
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    small, large = sorted((rows, columns))
    best = max(
        (
            sum(table[at][to] if rows <= columns else table[to][at] for at, to in enumerate(order))
            for order in permutations(range(large), small)
        ),
        default=0.0,
    )
    assert sum(table[row][column] for row, column in pairs) == best


tool_names = st.sampled_from("abc")
arguments = st.dictionaries(st.sampled_from("xy"), st.sampled_from([1, 2, "t"]), max_size=2)
made = st.builds(
    ToolCall, name=tool_names, arguments=arguments, error=st.sampled_from([None, None, "down"])
)
stated = st.builds(ExpectedTool, tool_names, arguments, st.sampled_from(["subset", "exact"]))
RANGES = {row.name: (row.low, row.high) for row in ROWS}


@given(
    st.none() | st.lists(made, max_size=6),
    st.none() | st.lists(stated, max_size=4),
    st.lists(stated, max_size=2),
    st.none() | st.integers(0, 4),
    st.sampled_from([None, "none", "partial", "strict"]),
)
def test_every_value_is_in_its_range_or_has_a_reason(
    calls: Any, expected: Any, forbidden: Any, most_calls: Any, order: Any
) -> None:
    scores = score_tools(NAMES, calls, ToolLabels(expected, forbidden, most_calls, order))
    assert scores.values.keys() == set(NAMES)
    for name, value in scores.values.items():
        low, high = RANGES[name]
        assert (value is None) == bool(scores.reasons.get(name))
        assert value is None or ((low or 0.0) <= value and (high is None or value <= high))
    found = scores.values
    if found["tool_f1"] is not None and found["tool_precision"] is not None:
        low, high = sorted((found["tool_precision"], found["tool_recall"] or 0.0))
        assert low - 1e-12 <= found["tool_f1"] <= high + 1e-12
    if found["order_match"] == 1.0:
        assert found["tool_recall"] == 1.0
    if calls and found["tool_calls"] is not None:
        assert 1 <= found["tool_calls"] <= len(calls)


@given(st.lists(made, min_size=1, max_size=5))
def test_what_was_called_is_what_is_expected(calls: list[ToolCall]) -> None:
    """Each distinct call expected exactly, in order: a perfect result is exactly 1."""
    once = [call for call in calls if call.error is None]
    expected = [ExpectedTool(call.name, call.arguments, "exact") for call in once]
    scores = score(once, expected=expected or None, order="strict")
    if expected:
        assert [scores[name] for name in ("tool_f1", "argument_match", "order_match")] == [1, 1, 1]
