"""The gates file, every fault at once with its line; and when a difference breaks a rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

import storage
from decisions.change import Change
from decisions.gate_baseline import _explain
from decisions.gate_rules import AgainstBase, against, calibrated, read_rules
from records.targets import Target, read_advisory, read_targets
from storage import StorageError


def rules_of(folder: Path, text: str):  # type: ignore[no-untyped-def]
    path = folder / "gates.toml"
    path.write_text(text, encoding="utf-8")
    return read_rules(path)


WHOLE = """\
[retrieval]
"recall@5" = ">= 0.7"

[diversity]
faq = "<= 0.6"

[gates]
coverage_drop = 0.02
require_baseline = true

[gates.run]
cost_usd = "<= 1"
latency_generate_p95_ms = "<= 3000"

[gates.coverage]
"retrieval.*" = ">= 0.5"

[gates.failed]
"*" = "<= 0.02"

[gates.calibration]
files = ["stored.json"]
"judged.*" = "kappa >= 0.4, auroc > 0.8"

[gates.baseline]
"*" = "drop 10 %"
"retrieval.*" = "regression"
"retrieval.recall@5" = "margin 0.05"
"context.*" = "none"

[[gates.must_pass]]
cases = ["a"]

[[gates.must_pass]]
metric = "retrieval.mrr"
tags = ["critical"]
score = "> 0.5"
"""


def test_a_whole_file(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, WHOLE)
    assert [(r.name, r.target) for r in rules.on("floor")] == [
        ("retrieval.recall@5", Target(">=", 0.7))
    ]
    assert [rule.target for rule in rules.on("run")] == [Target("<=", 1.0), Target("<=", 3000.0)]
    assert (rules.coverage_drop, rules.require_baseline) == (0.02, True)
    assert [one.metric for one in rules.must_pass] == ["", "retrieval.mrr"]
    assert rules.must_pass[1].target == Target(">", 0.5)
    assert [rule.line for rule in rules.on("baseline")] == [26, 27, 28, 29]
    assert [str(rule.must) for rule in rules.on("calibration")] == ["kappa >= 0.4, auroc > 0.8"]
    assert rules.calibrations == [tmp_path / "stored.json"]
    assert rules.on("floor")[0].line == 2
    assert set(read_targets(tmp_path / "gates.toml")) == {"retrieval", "diversity"}, "no gates"


def test_the_rule_nearest_to_the_name_holds(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, WHOLE)
    found = {
        name: rules.of_baseline(name)
        for name in (
            "retrieval.recall@5",
            "retrieval.mrr",
            "retrieval.mrr (by document)",  # no pattern means it
            "safety.auc",
            "context.x",
        )
    }
    assert {name: str(rule.must) for name, rule in found.items() if rule} == {
        "retrieval.recall@5": "margin 0.05",
        "retrieval.mrr": "regression",
        "safety.auc": "drop 10 %",
        "context.x": "none",
    }


def test_every_fault_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    text = """\
[retrieval]
"recall@5" = "0.7"
[gates]
coverage_drop = 3
require_baseline = "yes"
foo = 1
[gates.run]
cost = "<= 1"
cases = 90
[gates.baseline]
"a.b" = "drop ten"
[gates.failed]
"*" = "few"
[gates.calibration]
files = "a.json"
"judged.*" = "kappa < 0.4"
[[gates.must_pass]]
metric = "pass"
cases = ["x"]
[[gates.must_pass]]
caes = ["x"]
"""
    with pytest.raises(StorageError) as caught:
        rules_of(tmp_path, text)
    found = {(one.line, one.field) for one in caught.value.problems}
    assert found == {
        (2, 'retrieval."recall@5"'),
        (4, "gates.coverage_drop"),
        (5, "gates.require_baseline"),
        (6, "gates.foo"),
        (8, "gates.run.cost"),
        (9, "gates.run.cases"),
        (11, 'gates.baseline."a.b"'),
        (13, 'gates.failed."*"'),
        (15, "gates.calibration.files"),
        (16, 'gates.calibration."judged.*"'),
        (18, "gates.must_pass[1].metric"),
        (20, "gates.must_pass[2].cases"),
        (21, "gates.must_pass[2].caes"),
    }
    said = str(caught.value.format_message())
    assert "must_pass[1].metric: write section.metric, such as" in said
    assert "must_pass[2].caes: is unknown; write cases" in said
    assert "must_pass[2].cases: names no case" in said


@each_row(
    ("text", "says"),
    [
        ("", "holds no gate"),
        ('[gates]\nunlabelled = "pass"\n', "must be one of fail, skip"),
        ("[gates]\nmade_for = 3\n", "made_for: must be a text"),
        ("[gates", "cannot be used"),
        ("gates = 3\n", "is in no table"),
        ("[gates]\nrun = 3\n", "write [gates.run]"),
        ("[gates]\nmust_pass = 3\n", "write [[gates.must_pass]]"),
        ("[[gates.must_pass]]\ncases = 'a'\n", "cases: must be a list of texts"),
        ("[[gates.must_pass]]\ncases = ['a']\nscore = '1'\n", "is no bound"),
    ],
)
def test_faulty_files(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(StorageError) as caught:
        rules_of(tmp_path, text)
    assert says in caught.value.format_message()


def test_files_that_are_missing_sound_or_without_rules(
    tmp_path: Path,
) -> None:
    with pytest.raises(StorageError, match="no such file"):
        read_rules(tmp_path / "no.toml")
    rules = read_rules(storage.ROOT / "eval" / "gates.toml")
    assert rules.on("floor")
    assert rules.made_for == "eval_set.jsonl", "it says that it is the demo's"
    rules = rules_of(tmp_path, '[gates]\nunlabelled = "skip"\n')
    assert rules.empty
    assert rules.skip_unlabelled
    assert rules.coverage_drop is None


@each_row(
    ("text", "rule"),
    [
        ("drop 10 %", AgainstBase("drop", 0.1, True)),
        ("drop 10%", AgainstBase("drop", 0.1, True)),
        ("Drop 0.05", AgainstBase("drop", 0.05)),
        ("margin 0.05", AgainstBase("margin", 0.05)),
        ("regression", AgainstBase("regression")),
        ("none", AgainstBase("none")),
        ("margin 5 %", None),
        ("drop", None),
        ("drop -1", None),
        (0.05, None),
    ],
)
def test_rules_on_a_baseline(text: object, rule: AgainstBase | None) -> None:
    if rule is None:
        with pytest.raises(ValueError, match=r'write "drop 10 %"'):
            against(text)
    else:
        assert against(text) == rule


@each_row(
    ("text", "shown"),
    [
        ("calibrated", "calibrated"),
        ("kappa>=0.4", "kappa >= 0.4"),
        ("kappa >= 0.4 , specificity > .5", None),
        ("kappa >= 0.4, specificity > 0.5", "kappa >= 0.4, specificity > 0.5"),
        ("kappa <= 0.4", None),
        ("f1 >= 0.4", None),
        ("", None),
        (0.4, None),
    ],
)
def test_rules_on_a_calibration(text: object, shown: str | None) -> None:
    if shown is None:
        with pytest.raises(ValueError, match=r'write "kappa >= 0\.4"'):
            calibrated(text)
    else:
        rule = calibrated(text)
        assert str(rule) == shown
        assert calibrated(shown) == rule


def test_an_advisory_bound_is_read_apart_and_is_no_gate(tmp_path: Path) -> None:
    path = tmp_path / "targets.toml"
    path.write_text('[retrieval]\n"recall@5" = "advisory > 0.7"\nmrr = "> 0.5"\n')
    assert read_targets(path) == {"retrieval": {"mrr": Target(">", 0.5)}}
    (bound,) = read_advisory(path)["retrieval"].values()
    assert (str(bound), bound.passed(0.9), bound.passed(0.1)) == ("advisory > 0.7", None, None)
    with pytest.raises(StorageError, match=r"'advisory > 0\.7' is no bound"):
        read_rules(path)
    path.write_text('[retrieval]\n"recall@5" = "advisory 0.7"\n')
    with pytest.raises(StorageError, match=r"'advisory 0\.7' is no bound"):
        read_targets(path)


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
    ("rule", "interval", "higher", "kept"),
    [
        (MARGIN, (-0.04, 0.10), True, True),  # at worst 0.04 lower
        (MARGIN, (-0.06, 0.10), True, False),  # may be 0.06 lower, whatever its mean is
        (MARGIN, (-0.10, 0.04), False, True),  # what should be low rises by 0.04 at worst
        (MARGIN, (-0.10, 0.06), False, False),
        (MARGIN, None, True, False),
        (REGRESSION, (-0.2, 0.01), True, True),
        (REGRESSION, (-0.2, -0.01), True, False),
        (REGRESSION, (0.01, 0.2), True, True),
        (REGRESSION, (0.01, 0.2), False, False),
        (REGRESSION, (0.0, 0.0), True, True),
    ],
)
def test_non_inferiority_needs_the_whole_interval_and_a_regression_lies_on_the_bad_side(
    rule: AgainstBase, interval: tuple[float, float] | None, higher: bool, kept: bool
) -> None:
    now = 0.5 if rule == MARGIN else 0.4
    assert (_explain(rule, change(0.5, now, interval, higher=higher)) == "") is kept


def test_an_interval_that_is_too_wide_asks_for_more_cases() -> None:
    """The loss of 0.01 is within the margin; chance leaves room for 0.2."""
    said = _explain(MARGIN, change(0.5, 0.49, (-0.2, 0.18)))
    assert "ask more cases" in said
    assert "ask more cases" not in _explain(MARGIN, change(0.5, 0.4, (-0.2, 0.0)))


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
