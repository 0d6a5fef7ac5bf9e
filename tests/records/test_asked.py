"""How many cases were asked, and how many of them have no result."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.rows import each_row

from records.asked import (
    Asked,
    asked_counts,
    asked_ids,
    asked_list,
    asked_of,
    count_results,
    missing_remark,
    stopped,
)
from records.files import sha256_file
from records.results import RunConfig
from storage import ResultsWriter, read_config


@each_row(
    ("config", "asked"),
    [
        ({"run": {"selected": 90, "repeat": 1}}, Asked(90)),
        ({"run": {"selected": 90, "repeat": 3}, "dataset": {"cases": 200}}, Asked(90, 3)),
        ({"run": {"selected": 90}}, Asked(90)),
        # an import asks every case of its set, unless it says otherwise
        ({"run": {"imported": {"format": "ragas"}}, "dataset": {"cases": 7}}, Asked(7)),
        ({"run": {"imported": {}, "selected": 5}, "dataset": {"cases": 7}}, Asked(5)),
        # the set of any other run says nothing of what was asked of it
        ({"dataset": {"cases": 7}}, None),
        ({}, None),
        # a file that somebody wrote by hand
        ({"run": {"selected": True}}, None),
        ({"run": {"selected": -1}}, None),
        ({"run": {"selected": "90"}}, None),
        ({"run": {"selected": 9, "repeat": "3"}}, Asked(9)),
    ],
)
def test_what_a_configuration_says_was_asked(config: dict[str, Any], asked: Asked | None) -> None:
    assert asked_of(RunConfig("r", **config)) == asked


def test_a_case_is_missing_when_any_of_its_results_is() -> None:
    """4 cases, each asked twice: one has both results, two have one, one has none: 3 lack some.
    A case with a third result makes up for nothing."""
    assert Asked(4, 2).missing(Counter({2: 1, 1: 2})) == 3
    assert Asked(4, 2).missing(Counter({3: 1, 1: 2})) == 3
    assert Asked(4).missing(Counter({1: 3})) == 1
    assert Asked(4).missing(Counter({1: 4})) == 0
    assert Asked(4).missing(Counter({1: 9})) == 0  # more than were asked: a set that grew
    assert Asked(4).missing(Counter()) == 4


def test_counts_for_the_head_of_metrics_json() -> None:
    config = RunConfig("r", run={"selected": 90})
    assert asked_counts(config, {1: 79}) == {"asked": 90, "missing": 11}
    assert asked_counts(RunConfig("r"), {1: 79}) == {"asked": None, "missing": None}


def test_the_commit_of_the_set_is_in_the_configuration(tmp_path: Path) -> None:
    config = RunConfig("r", dataset={"cases": 4})
    ResultsWriter(tmp_path, "r").write_config(config, "0a1b")
    assert read_config(tmp_path / "r").dataset == {"cases": 4, "git_commit": "0a1b"}


def test_results_are_counted_by_case(tmp_path: Path) -> None:
    """a has two results that do not stand together, b one; what is no result is none."""
    path = tmp_path / "results.jsonl"
    path.write_text(
        '{"test_case_id":"a"}\n{"test_case_id":"b","repeat":0}\n\n{"broken\n{"test_case_id":7}\n'
        '{"test_case_id":"a","repeat":1}\n'
    )
    assert count_results(path) == {2: 1, 1: 1}
    assert count_results(tmp_path / "nothing") == {}


def test_the_sentence() -> None:
    assert missing_remark({"asked": 90, "missing": 11}) == "11 of 90 asked cases have no result"
    assert missing_remark({"asked": 90, "missing": 1}) == "1 of 90 asked cases has no result"
    thousands = {"asked": 2500, "missing": 1069}
    assert missing_remark(thousands) == "1,069 of 2,500 asked cases have no result"
    for complete in ({"asked": 90, "missing": 0}, {"asked": None, "missing": None}, {}):
        assert missing_remark(complete) == ""
    repeated = missing_remark({"asked": 90, "missing": 2}, repeats=3)
    assert repeated == "2 of 90 asked cases have no result, or fewer than the 3 asked for"


def test_which_cases_were_asked(tmp_path: Path) -> None:
    """Of a part the list; of a whole set, or its beginning, the lines of that very set."""
    path = tmp_path / "set.jsonl"
    path.write_text("".join(f'{{"id": "c{n}", "question": "Why?"}}\n' for n in range(4)))
    dataset = {"cases": 4, "sha256": sha256_file(path)}
    assert asked_list(["c1", "c3"], 4) == {"asked": ["c1", "c3"]}
    assert asked_list(["c0", "c1", "c2", "c3"], 4) == {}
    assert asked_list([f"c{n}" for n in range(2001)], 9999) == {}
    part = RunConfig("r", dataset=dataset, run={"selected": 2, "asked": ["c1", "c3"]})
    assert asked_ids(part) == ["c1", "c3"]
    whole = RunConfig("r", dataset=dataset, run={"selected": 4})
    assert asked_ids(whole, path) == ["c0", "c1", "c2", "c3"]
    assert asked_ids(whole) is None
    first = RunConfig("r", dataset=dataset, run={"selected": 3, "filter": [], "limit": 3})
    assert asked_ids(first, path) == ["c0", "c1", "c2"]
    filtered = RunConfig("r", dataset=dataset, run={"selected": 3, "filter": ["id=c*"]})
    assert asked_ids(filtered, path) is None
    path.write_text('{"id": "c0", "question": "Why?"}\n')
    assert asked_ids(whole, path) is None


def test_why_a_run_was_stopped(tmp_path: Path) -> None:
    assert stopped(tmp_path, RunConfig("r")) == ""
    assert stopped(tmp_path, RunConfig("r", run={"stopped": True})) == "the run was stopped"
    reason = stopped(tmp_path, RunConfig("r", run={"stopped": "lost the race"}))
    assert reason == "the run was stopped (lost the race)"
    (tmp_path / "results.partial.jsonl").touch()
    assert "is not finished" in stopped(tmp_path, RunConfig("r"))
