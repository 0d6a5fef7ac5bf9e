"""When a difference breaks a rule: by hand."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from decisions.change import Change
from decisions.gate_baseline import _explain
from decisions.gate_rules import AgainstBase

MARGIN = AgainstBase("margin", 0.05)
REGRESSION = AgainstBase("regression")


def change(
    old: float, now: float, interval: tuple[float, float] | None = None, *, higher: bool = True
) -> Change:
    means = Change("retrieval", "mrr", higher, base_mean=old, new_mean=now, n=50)
    return replace(means, delta=now - old, interval=interval)


@each_row(
    ("rule", "old", "now", "higher", "kept"),
    [
        (AgainstBase("drop", 0.1, True), 0.8, 0.72, True, True),  # 10 % of 0.8 is 0.08
        (AgainstBase("drop", 0.1, True), 0.8, 0.71, True, False),
        (AgainstBase("drop", 0.1, True), 0.2, 0.22, False, True),
        (AgainstBase("drop", 0.1, True), 0.2, 0.23, False, False),
        (AgainstBase("drop", 0.1, True), 0.0, 0.01, False, False),  # 10 % of nothing is nothing
        (AgainstBase("drop", 0.1, True), 0.0, 0.0, False, True),
        (AgainstBase("drop", 0.05), 0.8, 0.75, True, True),
        (AgainstBase("drop", 0.05), 0.8, 0.74, True, False),
        (AgainstBase("drop", 0.0), 0.8, 0.9, True, True),
    ],
)
def test_a_plain_drop(rule: AgainstBase, old: float, now: float, higher: bool, kept: bool) -> None:
    assert (_explain(rule, change(old, now, higher=higher)) == "") is kept


@each_row(
    ("interval", "higher", "kept"),
    [
        ((-0.04, 0.10), True, True),  # at worst 0.04 lower
        ((-0.06, 0.10), True, False),  # may be 0.06 lower, whatever its mean is
        ((-0.10, 0.04), False, True),  # what should be low rises by 0.04 at worst
        ((-0.10, 0.06), False, False),
        (None, True, False),
    ],
)
def test_non_inferiority_needs_the_whole_interval(
    interval: tuple[float, float] | None, higher: bool, kept: bool
) -> None:
    said = _explain(MARGIN, change(0.5, 0.5, interval, higher=higher))
    assert (said == "") is kept


def test_an_interval_that_is_too_wide_asks_for_more_cases() -> None:
    """The loss of 0.01 is within the margin; chance leaves room for 0.2."""
    said = _explain(MARGIN, change(0.5, 0.49, (-0.2, 0.18)))
    assert "ask more cases" in said
    assert "ask more cases" not in _explain(MARGIN, change(0.5, 0.4, (-0.2, 0.0)))


@each_row(
    ("interval", "higher", "kept"),
    [
        ((-0.2, 0.01), True, True),
        ((-0.2, -0.01), True, False),
        ((0.01, 0.2), True, True),
        ((0.01, 0.2), False, False),
        ((0.0, 0.0), True, True),
    ],
)
def test_a_regression_lies_wholly_on_the_bad_side(
    interval: tuple[float, float], higher: bool, kept: bool
) -> None:
    assert (_explain(REGRESSION, change(0.5, 0.4, interval, higher=higher)) == "") is kept


@given(st.floats(0, 1), st.floats(0, 1), st.booleans(), st.floats(0, 0.5))
def test_no_rule_fails_what_got_better(old: float, now: float, higher: bool, half: float) -> None:
    better = now >= old if higher else now <= old
    if not better:
        old, now = now, old
    delta = now - old
    sure = (min(delta, 0.0), max(delta, 0.0))
    one = change(old, now, sure, higher=higher)
    for rule in (AgainstBase("drop", 0.0), AgainstBase("drop", 0.1, True), MARGIN, REGRESSION):
        assert _explain(rule, one) == ""
