"""The cases that changed most, what counts as a flip, and which verdicts fail."""

from __future__ import annotations

from typing import Any

import pytest

import options
from decisions.compare import CompareOptions, compare, compare_many, failures
from decisions.flips import Flips, _success_rule, find_flips
from records.errors import StorageError
from records.targets import Target

Runs = Any


def flips(runs: Runs, metric: str, base: Any, new: Any, count: int = 9, **more: Any) -> Flips:
    section, target = more.pop("section", "retrieval"), more.pop("target", None)
    one = runs.make("base", {metric: base}, section, **more)
    other = runs.make("new", {metric: new}, section, **(more | {"answers": {"q0": "No."}}))
    row = compare(one, other).row(metric)
    assert row is not None
    return find_flips(one, other, row, count, target)


def ids(found: Any) -> list[str]:
    return [flip.case_id for flip in found]


def test_flips_of_success_come_before_larger_changes(runs: Runs) -> None:
    """Bound .5: q0 .6 → .4 flips; q1 1 → .5 and q2 .4 → .1 fell further but did not."""
    found = flips(runs, "ndcg@5", [0.6, 1.0, 0.4, 0.2, 0.3], [0.4, 0.5, 0.1, 0.9, None])
    assert found.success == ">= 0.5"
    assert (found.broke, found.fixed, found.fell_behind, found.gained) == (1, 1, 3, 1)
    assert ids(found.worse) == ["q0", "q1", "q2"]
    assert [flip.kind for flip in found.worse] == ["broke", "", ""]
    assert ids(found.better) == ["q3"]


def test_a_target_is_the_bound(runs: Runs) -> None:
    found = flips(runs, "ndcg@5", [0.8, 0.6], [0.6, 0.8], target=Target(">", 0.7))
    assert (found.success, found.broke, found.fixed) == ("> 0.7", 1, 1)


def test_a_case_without_a_score_in_one_run_neither_broke_nor_was_fixed(runs: Runs) -> None:
    """Bound .5: q0 and q1 are at its good side in the one run and unmeasured in the other."""
    found = flips(runs, "ndcg@5", [0.9, None, 0.6], [None, 0.9, 0.4])
    assert (found.broke, found.fixed, found.fell_behind, found.gained) == (1, 0, 1, 0)
    assert (ids(found.worse), ids(found.better)) == (["q2"], [])


def test_less_is_better_where_the_catalogue_says_so(runs: Runs) -> None:
    found = flips(runs, "over_refusal", [0.0, 1.0], [1.0, 0.0], section="abstention")
    assert found.success == "= 0"
    assert ids(found.worse) == ["q0"]
    assert ids(found.better) == ["q1"]


def test_numbers_without_bounds_only_rise_and_fall(runs: Runs) -> None:
    found = flips(runs, "fact_dispersion", [2.0, 9.0], [7.0, 3.0], section="context")
    assert (found.success, found.broke, found.fixed) == (None, 0, 0)
    assert ids(found.worse) == ["q0"]
    assert _success_rule("custom.unknown_metric", None) == (None, None)
    assert _success_rule("judged.groundedness", None)[0] == ">= 2.5", "of 0 to 5"


def test_ranks_answers_and_questions_stand_side_by_side(runs: Runs) -> None:
    evidence = [{"match": "doc", "found": [1, None]}, {"match": "doc", "found": []}]
    found = flips(
        runs, "mrr", [1.0, 0.5], [0.0, 0.5], evidence=evidence, answers={"q0": "Yes, always."}
    )
    (flip,) = found.worse
    assert (flip.question, flip.base.answer, flip.new.answer) == (
        "About q0?",
        "Yes, always.",
        "No.",
    )
    assert flip.base.ranks == flip.new.ranks == (1, None)


def test_only_as_many_as_asked_for(runs: Runs) -> None:
    assert len(flips(runs, "mrr", [1.0] * 5, [0.0] * 5, 2).worse) == 2


class TestFailing:
    def comparison(self, runs: Runs) -> Any:
        """mrr (primary) falls, ndcg@5 (exploratory) falls, map@5 (primary) is gone."""
        base = runs.make("base", {"mrr": [1.0] * 9, "ndcg@5": [1.0] * 9, "map@5": [1.0] * 9})
        new = runs.make("new", {"mrr": [0.5] * 9, "ndcg@5": [0.5] * 9, "map@5": [None] * 9})
        return compare_many(base, [new], CompareOptions(metrics=("mrr", "map@5")))

    @pytest.mark.parametrize(
        ("rules", "named"),
        [
            ("worse", ["retrieval.mrr is worse", "retrieval.map@5 is measured in base but not"]),
            ("any-worse", ["retrieval.mrr", "retrieval.map@5", "retrieval.ndcg@5"]),
            ("look", ["retrieval.mrr", "retrieval.map@5", "retrieval.ndcg@5"]),
            ("ndcg@5", ["retrieval.ndcg@5 is worse in new: -0.5000 over 9 cases"]),
            ("retrieval.mrr, map@5", ["retrieval.mrr", "retrieval.map@5"]),
            ("", []),
        ],
    )
    def test_each_rule_names_its_reasons(self, runs: Runs, rules: str, named: list[str]) -> None:
        found = failures(self.comparison(runs), options.Names().convert(rules, None, None))
        assert len(found) == len(named)
        for reason, text in zip(found, named, strict=True):
            assert reason.startswith(text)

    def test_a_name_that_nobody_has(self, runs: Runs) -> None:
        with pytest.raises(StorageError, match="--fail-on recal: neither run has that metric"):
            failures(self.comparison(runs), ["recal"])

    def test_look_fails_where_the_interval_lies_on_the_bad_side(self, runs: Runs) -> None:
        """4 of 20 fall: p = 2/2^4 / 2 = .0625, but .031 for a change for the worse alone."""
        base = runs.make("base", {"mrr": [1.0] * 20})
        new = runs.make("new", {"mrr": [0.5] * 4 + [1.0] * 16})
        found = [compare(base, new, CompareOptions(metrics=("mrr",)))]
        assert failures(found, ["worse"]) == []
        assert failures(found, ["look"]) == [
            "retrieval.mrr may be worse in new: -0.1000 over 20 cases, corrected p 0.0625."
        ]

    def test_no_evidence_is_no_failure(self, runs: Runs) -> None:
        base = runs.make("base", {"mrr": [1.0] * 4})
        new = runs.make("new", {"mrr": [0.5] * 4})  # p = 2/16
        assert (
            failures([compare(base, new, CompareOptions(metrics=("mrr",)))], ["worse", "mrr"]) == []
        )
