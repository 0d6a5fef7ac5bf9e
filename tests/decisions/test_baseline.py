"""When a change is a regression: by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.definitions import definition_of
from tests.metrics_files import write_metrics

from decisions.change import Change, ChangeVerdict
from decisions.conditions import Conditions, baseline_of
from decisions.measures import measures
from decisions.regressions import caveats, compare_means, outcome_of
from records.results import RunConfig
from storage import StorageError


def section(mean: float | None, low: float, high: float, name: str = "mrr") -> dict[str, Any]:
    return {
        "definitions": {name: definition_of("retrieval", name)},
        "mean": {name: mean},
        "ci95": {name: None if mean is None else [low, high]},
        "n": {name: 50},
        "not_applicable": {name: 0},
        "failed": {name: 0},
    }


def baseline_with(sections: dict[str, Any], **head: Any) -> Conditions:
    return Conditions("b", head | {"sections": sections}, RunConfig("b"), Path("b"))


def joint(p: float | None, verdict: ChangeVerdict) -> Change:
    """A primary metric as the joint test has it."""
    return Change("retrieval", "mrr", True, primary=True, p_worse=p, verdict=verdict)


def change(before: dict[str, Any], now: dict[str, Any], test: Change | None = None) -> Change:
    baseline = baseline_with({"retrieval": before})
    found = measures({"retrieval": now}, {})
    (one,) = compare_means(baseline, found, ["retrieval"], {"retrieval.mrr": test} if test else {})
    return one


def outcome(
    before: dict[str, Any],
    now: dict[str, Any],
    max_drop: float | None = None,
    test: Change | None = None,
) -> str:
    return outcome_of(change(before, now, test), max_drop)


def test_a_primary_metric_is_a_regression_by_its_p() -> None:
    """The engine's p decides, whatever the means are; what is not primary is only shown."""
    before, now = section(0.80, 0.77, 0.83), section(0.74, 0.70, 0.78)
    one = change(before, now, test=joint(0.05, "no evidence"))
    assert (outcome_of(one), one.p_worse) == ("regression", 0.05)
    assert one.worse_by == pytest.approx(0.06)
    assert outcome(before, now, test=joint(0.06, "no evidence")) == "no evidence"
    assert outcome(before, now, test=joint(0.04, "equal")) == "equal", "it does not matter"
    rose = section(0.95, 0.91, 0.99)
    assert outcome(before, rose, test=joint(0.9, "better")) == "better"
    assert outcome(before, rose, test=joint(0.9, "no evidence")) == "no evidence"
    assert outcome(before, rose, test=joint(None, "too few")) == "too few"
    assert outcome(before, section(0.80, 0.76, 0.84)) == "same"


def test_direction_comes_from_the_catalogue() -> None:
    """scope_miss is better when low: a rise is worse."""
    before = section(0.1, 0.08, 0.12, "scope_miss")
    rose = change(before, section(0.3, 0.28, 0.32, "scope_miss"))
    assert outcome_of(rose) == "higher"
    assert rose.worse_by == pytest.approx(0.2)
    fell = change(before, section(0.0, 0.0, 0.0, "scope_miss"))
    assert outcome_of(fell, max_drop=0.05) == "lower"
    assert fell.worse_by == pytest.approx(-0.1)


def test_max_drop_overrules_the_interval() -> None:
    before, now = section(0.80, 0.5, 1.0), section(0.78, 0.5, 1.0)
    assert outcome(before, now) == "lower"
    assert outcome(before, now, max_drop=0.01) == "regression"
    assert outcome(before, now, max_drop=0.02) == "lower"
    assert outcome(now, before, max_drop=0.0) == "higher"
    before = section(0.80, 0.77, 0.83)
    assert outcome(before, section(0.1, 0.0, 0.2)) == "lower"
    assert outcome(before, section(0.95, 0.91, 0.99)) == "higher"


def test_another_definition_is_not_compared() -> None:
    before = section(0.9, 0.89, 0.91)
    before["definitions"]["mrr"] = "retrieval/mrr@99"
    assert outcome(before, section(0.1, 0.09, 0.11)) == "not comparable"


def test_a_number_that_is_gone_is_told() -> None:
    assert outcome(section(0.9, 0.8, 1), section(None, 0, 0)) == "no longer measured"
    before = baseline_with({"retrieval": section(0.9, 0.8, 1)})
    (gone,) = compare_means(before, {}, ["retrieval"], {}, {"retrieval": "not scored"})
    assert (outcome_of(gone), gone.reason) == ("no longer measured", "not scored")
    assert compare_means(before, {}, ["safety"], {}) == []
    nothing = baseline_with({"retrieval": section(None, 0, 0)})
    assert compare_means(nothing, {}, ["retrieval"], {}) == []


def test_a_number_that_applies_to_no_case_any_more_is_lost_only_when_it_decides() -> None:
    before, now = section(0.9, 0.8, 1), section(None, 0, 0) | {"not_applicable": {"mrr": 50}}
    assert outcome(before, now) == "not applicable"
    assert outcome(before, now, test=joint(None, "not tested")) == "no longer measured"
    failed = now | {"failed": {"mrr": 1}}
    assert outcome(before, failed) == "no longer measured"


def test_what_makes_a_comparison_lame() -> None:
    one = baseline_with({}, suite="smoke", cases=24)
    assert caveats(one, "smoke", 24) == []
    assert caveats(one, "full", 90) == ["The baseline has 24 cases, this run 90."]
    assert caveats(one, "full", 24) == ["The baseline is of the smoke suite, this is full."]


def test_a_run_folder_is_read_through_its_metrics(tmp_path: Path) -> None:
    data = {"sections": {"retrieval": section(0.5, 0.4, 0.6)}, "cases": 3}
    write_metrics(tmp_path / "metrics.json", data)
    assert baseline_of(tmp_path, str(tmp_path)).metrics["cases"] == 3
    file = baseline_of(tmp_path, str(tmp_path / "metrics.json"))
    assert (file.folder, file.part("retrieval", "mean", "mrr")) == (None, 0.5)
    (tmp_path / "metrics.json").write_text('{"schema": 9, "sections": {}}')
    with pytest.raises(StorageError, match="schema"):
        baseline_of(tmp_path, str(tmp_path))
