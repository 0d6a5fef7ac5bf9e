"""The cases that changed most, and which verdicts fail."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from decisions import invariants
from decisions.case_changes import changes_of, read_pair
from decisions.compare import CompareOptions, clusters_of, compare, compare_many
from decisions.flips import Flips, find_flips
from decisions.headline import failures
from options.values import Names
from records.errors import StorageError
from records.file_access import open_plain
from records.run import Run
from records.run import Runs as OpenRuns
from terminal.page import Page
from views.case_files import first_answers
from views.flips import flip_blocks
from views.page import markdown

Runs = Any


def flips(runs: Runs, metric: str, base: Any, new: Any, count: int = 9, **more: Any) -> Flips:
    section = more.pop("section", "retrieval")
    one = runs.make("base", {metric: base}, section, **more)
    other = runs.make("new", {metric: new}, section, **(more | {"answers": {"q0": "No."}}))
    row = compare(one, other).row(metric)
    assert row is not None
    return find_flips(one, other, row, count)


def ids(found: Any) -> list[str]:
    return [flip.case_id for flip in found]


def test_larger_changes_come_first(runs: Runs) -> None:
    """q0 fell by .2, q1 by .5, q2 by .3; q3 rose; q4 has no score now."""
    found = flips(runs, "ndcg@5", [0.6, 1.0, 0.4, 0.2, 0.3], [0.4, 0.5, 0.1, 0.9, None])
    assert (found.fell_behind, found.gained) == (3, 1)
    assert ids(found.worse) == ["q1", "q2", "q0"]
    assert ids(found.better) == ["q3"]


def test_less_is_better_where_the_catalogue_says_so(runs: Runs) -> None:
    found = flips(runs, "over_refusal", [0.0, 1.0], [1.0, 0.0], section="abstention")
    assert ids(found.worse) == ["q0"]
    assert ids(found.better) == ["q1"]
    found = flips(runs, "fact_dispersion", [2.0, 9.0], [7.0, 3.0], section="context")
    assert ids(found.worse) == ["q0"]
    assert len(flips(runs, "mrr", [1.0] * 5, [0.0] * 5, 2).worse) == 2


def test_ranks_answers_and_questions_stand_side_by_side(runs: Runs) -> None:
    evidence = [{"match": "doc", "found": [1, None]}, {"match": "doc", "found": []}]
    found = flips(
        runs, "mrr", [1.0, 0.5], [0.0, 0.5], evidence=evidence, answers={"q0": "Yes, always."}
    )
    read = [first_answers(Run(runs.folder / name), found.case_ids) for name in ("base", "new")]
    (flip,) = found.to_dict(*read)["worse"]
    ranks = {"error": None, "ranks": (1, None)}
    assert flip == {
        "case_id": "q0",
        "question": "About q0?",
        "base": {"score": 1.0, "answer": "Yes, always."} | ranks,
        "new": {"score": 0.0, "answer": "No."} | ranks,
    }
    (unread,) = found.to_dict({}, {})["worse"]
    assert (unread["question"], unread["new"]["answer"]) == ("", None)
    page = Page("", list(flip_blocks(found, read[0], read[1], ("base", "new"))))
    text = markdown([page])
    for part in ("mrr: 0 cases better, 1 worse.", "Got worse: `q0`", "Yes, always.", "No."):
        assert part in text


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
            ("target", ["retrieval.ndcg@5 met its target > 0.6 in base and misses it in new."]),
            ("safety", []),
            ("cost", []),
            ("ndcg@5", ["retrieval.ndcg@5 is worse in new: -0.5000 over 9 cases"]),
            ("retrieval.mrr, map@5", ["retrieval.mrr", "retrieval.map@5"]),
            ("", []),
        ],
    )
    def test_each_rule_names_its_reasons(self, runs: Runs, rules: str, named: list[str]) -> None:
        found = failures(self.comparison(runs), Names().convert(rules, None, None))
        assert len(found) == len(named)
        for reason, text in zip(found, named, strict=True):
            assert reason.startswith(text)

    def test_a_name_that_nobody_has(self, runs: Runs) -> None:
        with pytest.raises(
            StorageError, match="--fail-on recal: not compared; write worse, target"
        ):
            failures(self.comparison(runs), ["recal"])

    def test_no_evidence_is_no_failure(self, runs: Runs) -> None:
        base = runs.make("base", {"mrr": [1.0] * 4})
        new = runs.make("new", {"mrr": [0.5] * 4})  # p = 2/16
        assert (
            failures([compare(base, new, CompareOptions(metrics=("mrr",)))], ["worse", "mrr"]) == []
        )


def test_a_comparison_reads_each_file_of_scores_once(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clusters, tests, changed cases, flips: all of them look at the same columns."""
    scores = {"base": [1.0, 0.5, 0.25, 1.0] * 5, "new": [1.0, 0.25, 0.5, 0.5] * 5}
    for name, values in scores.items():
        runs.make(name, {"decision_right": [float(v > 0.3) for v in values]}, "abstention")
    base, new = (runs.make(name, {"mrr": values}) for name, values in scores.items())
    files_read: Counter[str] = Counter()

    def counting(address: Any) -> Any:
        files_read["/".join(Path(address).parts[-3:])] += 1
        return open_plain(address)

    monkeypatch.setattr(invariants, "_supports_per_chunk", lambda _: None)  # reads their heads
    monkeypatch.setattr("records.jsonl.open_plain", counting)
    tables = OpenRuns()
    clusters, _ = clusters_of((base, new), tmp_path / "none.jsonl", "auto", tables)
    comparison = compare(base, new, clusters=clusters, tables=tables)
    row = next(row for row in comparison.rows if row.metric == "mrr")
    assert find_flips(base, new, row, 3, tables=tables).worse
    changes_of(read_pair(base, new, tables=tables), 3)
    sections = ("retrieval", "abstention")
    assert files_read == {
        f"{run}/scores/{name}.jsonl": 1 for run in ("base", "new") for name in sections
    }
