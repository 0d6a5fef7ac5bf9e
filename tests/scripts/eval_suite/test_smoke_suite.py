"""eval_suite.py --suite smoke: a small fixed part that leaves the run alone."""

from __future__ import annotations

from typing import Any

import pytest

from scorers.suite import CASES as SMOKE_CASES
from scorers.suite import _smoke_ids
from storage import TestCase


def cases_of(count: int) -> list[TestCase]:
    kinds = ("factual", "reasoning", "multi_hop", "general")
    return [
        TestCase(f"c{n}", "?", answerable=n % 5 != 0, category=kinds[n % 4])  # type: ignore[arg-type]
        for n in range(count)
    ]


def test_the_smoke_subset_is_small_fixed_and_of_every_kind() -> None:
    cases = cases_of(200)
    ids = _smoke_ids(cases)
    assert len(ids) == SMOKE_CASES
    kept = [case for case in cases if case.id in set(ids)]
    strata = {(case.category, case.answerable) for case in kept}
    assert len(strata) == 8, "four categories, answerable and not"
    assert set(_smoke_ids(list(reversed(cases)))) == set(ids)
    assert len(set(_smoke_ids([*cases, TestCase("new", "?", category="factual")])) - set(ids)) <= 1
    assert _smoke_ids(cases[:5]) == [case.id for case in cases[:5]]


def test_smoke_leaves_the_runs_own_numbers_alone(finished: Any, suite: Any, write: Any) -> None:
    write(good=40, bad=0)
    suite()
    before = (finished.run / "metrics.json").read_bytes()
    found = suite("--suite", "smoke")
    assert found["cases"] == SMOKE_CASES
    assert found["suite"] == "smoke"
    assert "24 cases" in found["left_out"]
    assert found["run_id"] == "run"
    assert (finished.run / "metrics.json").read_bytes() == before
    assert (finished.run / "suite-smoke.json").exists()


def test_smoke_loads_no_model(
    finished: Any, suite: Any, monkeypatch: pytest.MonkeyPatch, case: Any, result: Any
) -> None:
    monkeypatch.undo()
    words = ["--cache-dir", str(finished.folder / "c"), "--set", "embedding_model=no/such-model"]
    finished.write([case("q")], [result("q", answer="A text that nobody has embedded so far.")])
    found = suite("--suite", "smoke", "--sections", "embedding", *words)
    assert found["perspectives"]["embedding"]["status"] == "cannot run"
    assert "left out of the smoke suite" in found["perspectives"]["embedding"]["reason"]
