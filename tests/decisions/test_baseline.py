"""When a change is a regression: by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.definitions import definition_of
from tests.metrics_files import write_metrics

from decisions.baseline import (
    Baseline,
    BaselineChange,
    EngineVerdict,
    caveats,
    compare,
    read_baseline,
    verdict_of,
)
from decisions.measures import measures
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


def change(
    before: dict[str, Any],
    now: dict[str, Any],
    max_drop: float | None = None,
    test: EngineVerdict | None = None,
) -> BaselineChange:
    baseline = Baseline("b", {"retrieval": before}, None, None)
    found = measures({"retrieval": now}, {})
    (one,) = compare(
        baseline, found, ["retrieval"], {"retrieval.mrr": test} if test else {}, max_drop
    )
    return one


def test_a_primary_metric_is_a_regression_by_its_p() -> None:
    """The engine's p decides, whatever the means are; what is not primary is only shown."""
    before, now = section(0.80, 0.77, 0.83), section(0.74, 0.70, 0.78)
    one = change(before, now, test=EngineVerdict(0.05, "no evidence"))
    assert (one.verdict, one.p) == ("regression", 0.05)
    assert one.worse_by == pytest.approx(0.06)
    assert change(before, now, test=EngineVerdict(0.06, "no evidence")).verdict == "no evidence"
    rose = section(0.95, 0.91, 0.99)
    assert change(before, rose, test=EngineVerdict(0.9, "better")).verdict == "better"
    assert change(before, rose, test=EngineVerdict(0.9, "no evidence")).verdict == "no evidence"
    assert change(before, rose, test=EngineVerdict(None, "too few")).verdict == "too few"
    assert change(before, section(0.80, 0.76, 0.84)).verdict == "same"


def test_what_was_not_tested_is_lower_or_higher() -> None:
    before = section(0.80, 0.77, 0.83)
    assert change(before, section(0.1, 0.0, 0.2)).verdict == "lower"
    assert change(before, section(0.95, 0.91, 0.99)).verdict == "higher"


def test_direction_comes_from_the_catalogue() -> None:
    """scope_miss is better when low: a rise is worse."""
    before = section(0.1, 0.08, 0.12, "scope_miss")
    rose = change(before, section(0.3, 0.28, 0.32, "scope_miss"))
    assert rose.verdict == "higher"
    assert rose.worse_by == pytest.approx(0.2)
    fell = change(before, section(0.0, 0.0, 0.0, "scope_miss"), max_drop=0.05)
    assert fell.verdict == "lower"
    assert fell.worse_by == pytest.approx(-0.1)


def test_max_drop_overrules_the_interval() -> None:
    before, now = section(0.80, 0.5, 1.0), section(0.78, 0.5, 1.0)
    assert change(before, now).verdict == "lower"
    assert change(before, now, max_drop=0.01).verdict == "regression"
    assert change(before, now, max_drop=0.02).verdict == "lower"
    assert change(now, before, max_drop=0.0).verdict == "higher"


def test_without_a_p_only_max_drop_decides() -> None:
    assert verdict_of(-0.5, 0.5, EngineVerdict()) == "lower"
    assert verdict_of(-0.5, 0.5, EngineVerdict(), 0.4) == "regression"


def test_another_definition_is_not_compared() -> None:
    before = section(0.9, 0.89, 0.91)
    before["definitions"]["mrr"] = "retrieval/mrr@99"
    assert change(before, section(0.1, 0.09, 0.11)).verdict == "not comparable"


def test_a_number_that_is_gone_is_told() -> None:
    assert change(section(0.9, 0.8, 1), section(None, 0, 0)).verdict == "no longer measured"
    before = Baseline("b", {"retrieval": section(0.9, 0.8, 1)}, None, None)
    assert compare(before, {}, ["retrieval"], {})[0].verdict == "no longer measured"
    assert compare(before, {}, ["safety"], {}) == []
    nothing = Baseline("b", {"retrieval": section(None, 0, 0)}, None, None)
    assert compare(nothing, {}, ["retrieval"], {}) == []


def test_a_number_that_applies_to_no_case_any_more_is_lost_only_when_it_decides() -> None:
    before, now = section(0.9, 0.8, 1), section(None, 0, 0) | {"not_applicable": {"mrr": 50}}
    assert change(before, now).verdict == "not applicable"
    assert change(before, now, test=EngineVerdict()).verdict == "no longer measured"
    failed = now | {"failed": {"mrr": 1}}
    assert change(before, failed).verdict == "no longer measured"


def test_what_makes_a_comparison_lame() -> None:
    one = Baseline("b", {}, "smoke", 24)
    assert caveats(one, "smoke", 24) == []
    assert caveats(one, "full", 90) == ["The baseline has 24 cases, this run 90."]
    assert caveats(one, "full", 24) == ["The baseline is of the smoke suite, this is full."]


def test_a_run_folder_is_read_through_its_metrics(tmp_path: Path) -> None:
    data = {"sections": {"retrieval": section(0.5, 0.4, 0.6)}, "cases": 3}
    write_metrics(tmp_path / "metrics.json", data)
    assert read_baseline(tmp_path).cases == 3
    (tmp_path / "metrics.json").write_text('{"schema": 9, "sections": {}}')
    with pytest.raises(StorageError, match="schema"):
        read_baseline(tmp_path)
