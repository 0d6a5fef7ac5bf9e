"""What a list amounts to, has in common, and what leaves the browser: groups, exports, notes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.views.browser.case_lines import detail_of

from decisions.case_changes import read_pair
from decisions.slices import common_slices
from records.errors import StorageError
from records.labels import read_cases
from records.notes import CaseNote
from views.browser.answers import AnswerTable
from views.browser.case_page import case_markdown
from views.browser.failing import Failing, Group, group_rows, mean_of, reasons_text
from views.browser.listing import PairList
from views.browser.query import QueryError, equals, parse
from views.browser.rows import group_columns, group_row
from views.case_blocks import ShownWith
from views.library import RunLibrary
from views.runs import MetricTrend


def test_failing_cases_are_counted_by_reason(table: AnswerTable) -> None:
    """b: outcome_match=0; c: mrr=0; d: the call failed; a and e break no rule."""
    assert reasons_text(Failing(), table, range(5)) == (
        "3 failing: 1 without a response, 1 without a gold passage, "
        "1 ended differently than expected"
    )
    assert reasons_text(Failing(), table, [0, 1]) == "1 failing: 1 ended differently than expected"
    assert reasons_text(Failing(), table, [0, 4]) == ""


def test_the_mean_is_over_the_rows_that_have_a_value(table: AnswerTable) -> None:
    assert mean_of(table, "recall@5", range(5)) == (0.5, 3)  # 1, 0.5, 0
    assert mean_of(table, "recall@5", [1, 2, 3]) == (0.25, 2)
    assert mean_of(table, "recall@5", [3]) == (None, 0)
    assert mean_of(table, "no such column", [3]) == (None, 0)


def test_cases_are_grouped_by_any_field_those_that_fail_most_first(table: AnswerTable) -> None:
    groups = group_rows(table, "category", range(5), Failing())
    assert [(group.value, list(group.rows), group.failing) for group in groups] == [
        ("factual", [0, 1], 1),
        ("", [3], 1),
        ("recency/conflict", [2], 1),
        ("general", [4], 0),
    ]
    by_tag = {
        group.value: list(group.rows) for group in group_rows(table, "tag", range(5), Failing())
    }
    assert by_tag == {"logs": [0, 2], "time": [0], "tenants": [1], "": [3, 4]}
    reasons = {g.value: g.share for g in group_rows(table, "reason", range(5), Failing())}
    assert reasons == {"outcome": 1.0, "no gold": 1.0, "error": 1.0, "": 0.0}
    assert groups[0].reasons == {"outcome": 1}, (
        "of a and b one fails, ended differently than expected"
    )
    with pytest.raises(KeyError):
        group_rows(table, "colour", range(5), Failing())


def test_groups_show_reasons_as_a_heat_map() -> None:
    """4 of 20 are 20 %, the second shade; 11 are 55 %, the loudest."""
    group = Group("lists", range(20), 15, {"refused": 11, "no gold": 4})
    columns = group_columns(80, (), 8, ["refused", "no gold", "error"])
    line = group_row(AnswerTable(), group, columns, " ", "(none)", ascii_only=False)
    assert "".join(text for _, text in line).split() == [
        *("lists", "20", "15", "75", "█", "11", "▒", "4", "-")
    ]
    assert [style for style, _ in line][-3:] == ["bad", "row", "dim"]
    plain = group_row(AnswerTable(), group, columns, " ", "(none)", ascii_only=True)
    assert "# 11" in "".join(text for _, text in plain)
    # 1 + 9 + 3 * 8 for value and numbers and 8 a reason: 49 columns have room for one reason
    assert len(group_columns(49, (), 8, ["refused", "no gold", "error"])) == 5


def test_a_group_is_a_filter_that_can_be_typed(table: AnswerTable) -> None:
    groups: dict[tuple[str, str], list[int]] = {
        **{("category", "factual"): [0, 1], ("category", ""): [3]},
        **{("tag", ""): [3, 4], ("tag", "logs"): [0, 2]},
        **{("reason", "no gold"): [2], ("reason", ""): [0, 4]},
    }
    for group, rows in groups.items():
        query = parse(equals(*group), table.metrics)
        assert list(query.select(table, range(5), Failing().reasons(table))) == rows, group


def test_what_a_reason_filter_cannot_mean(table: AnswerTable) -> None:
    with pytest.raises(QueryError, match=r'a reason is one of: error, answered, .*"no gold"'):
        parse("reason=gold", table.metrics)
    with pytest.raises(QueryError, match="quotation mark"):
        equals("tag", 'a"b')


def test_noted_and_flagged_are_words_of_a_filter(table: AnswerTable) -> None:
    table.notes = {"a": (CaseNote("x"),), "c": (CaseNote("", True),)}
    for text, rows in (("noted", [0, 2]), ("flagged", [2]), ("noted -flagged", [0])):
        assert list(parse(text, table.metrics).select(table, range(5))) == rows


@pytest.fixture
def library(runs: Any) -> RunLibrary:
    """Two runs; case a: recall 1 then 0, b: 0.5 in the newer one alone. Labels beside the set."""
    labels = runs.root / "labels"
    labels.mkdir()
    line = '{"case_id": "a", "category": "factual", "tags": ["t"]}\n'
    (labels / "cases.jsonl").write_text(line)
    support = {"rel_path": "d.md", "heading_path": ""}
    runs.cases(
        {"id": "a", "question": "=A?", "gold_supports": [support, support]},
        {"id": "b", "question": "B?", "relevant_docs": ["e.md"]},
    )
    for name, scores, day in (("old", {"a": 1.0}, 1), ("new", {"a": 0.0, "b": 0.5}, 2)):
        means = {"mean": {"recall@5": 0.5}, "definitions": {"recall": name[0]}}
        runs.run(
            name,
            [
                {"id": case, "answer": f"{name} answer\x1b[2J", "retrieved": ["c1"]}
                for case in scores
            ],
            config={"started": f"2026-01-0{day}T00:00:00"},
            metrics={"sections": {"retrieval": means}},
            retrieval=[
                {"case_id": case, "scores": {"recall@5": value, "mrr": value}}
                for case, value in scores.items()
            ],
        )
    return RunLibrary(runs.results_dir, runs.eval_set, labels)


def test_a_case_over_all_runs_that_scored_it(library: RunLibrary) -> None:
    trend = library.trend(("a", 0))
    assert [run_id for run_id, _ in trend.runs] == ["old", "new"]
    assert trend.metrics == (
        # the definition of recall is another one in the new run; mrr has none
        MetricTrend("retrieval", "recall@5", (1.0, 0.0), (1,)),
        MetricTrend("retrieval", "mrr", (1.0, 0.0)),
    )
    assert [run_id for run_id, _ in library.trend(("b", 0)).runs] == ["new"]
    assert library.trend(("a", 1)).runs == library.trend(("zz", 0)).runs == ()


def test_what_is_filtered_goes_to_a_file(library: RunLibrary, tmp_path: Path) -> None:
    run = library.open("new")
    assert run.table.sets["document"] == [("d.md",), ("e.md",)]
    assert run.table.sets["tag"] == [("t",), ()], "of the labels beside the set"
    assert run.table.words["category"] == ["factual", ""]
    keys = [("a", 0), ("b", 0)]
    library.notes.put("a", CaseNote("look", run="new"))
    run.export(keys, ["no gold", ""], "csv", tmp_path / "out.csv")
    text = (tmp_path / "out.csv").read_text("utf-8-sig")
    first, second = csv.DictReader(io.StringIO(text))
    expected = ("a", "no gold", "Question of a?")
    assert (first["case_id"], first["fails"], first["question"]) == expected
    assert (first["category"], first["documents"], first["notes"]) == ("factual", "d.md", "look")
    assert (first["recall@5"], second["recall@5"]) == ("0.0", "0.5")
    assert "\x1b" not in text, "a table is looked at in terminals too"
    assert run.export(keys, ["", ""], "jsonl", tmp_path / "out.jsonl") == 2
    record = json.loads((tmp_path / "out.jsonl").read_bytes().splitlines()[0])
    assert record["metrics"] == {"retrieval": {"recall@5": 0.0, "mrr": 0.0}}
    assert record["retrieved"][0]["chunk_id"] == "c1"
    assert run.export(keys[:1] * 2, ["", ""], "set", tmp_path / "set.jsonl") == 1
    (case,) = read_cases(tmp_path / "set.jsonl", None)
    assert (case.id, case.category, len(case.gold_supports)) == ("a", "factual", 2)
    with pytest.raises(StorageError, match="exists already"):
        run.export(keys, ["", ""], "csv", tmp_path / "out.csv")
    with pytest.raises(StorageError, match="gone: not in the files"):
        run.export([("gone", 0)], [""], "csv", tmp_path / "gone.csv")
    assert not (tmp_path / "gone.csv").exists()
    run.close()


def test_a_case_as_markdown_is_inert() -> None:
    detail = detail_of({**detail_of.__defaults__[0], "answer": "```\n<b>\x1b[2J [x](http://y)"})  # type: ignore[index]
    notes = [CaseNote("see [1]", author="maria")]
    text = case_markdown("k*10", detail, ShownWith("FAILS: refused", failing=True, notes=notes))
    assert text.startswith("## q, run k\\*10\n")
    assert "\nFAILS: refused\n" in text
    assert "````text\n```\n<b>⟨U+001B⟩[2J [x](http://y)\n````" in text
    assert "- note: maria: see \\[1\\]" in text
    assert "- gold found at 1: a.md > A" in text
    assert "\x1b" not in text


BROKE = {*range(20, 38), 0, 1}
"""18 of the 20 cases with the tag, from the 21st on, and 2 of the 40 others."""

FAILED_BEFORE = {39, 50}
"""One of the cases with the tag and one of the others: they were not ok, so they cannot break."""


@pytest.fixture
def pair(runs: Any) -> Any:
    """The base run and the new one; a case fails where its call failed."""
    names = [f"c{at:02}" for at in range(60)]
    tags = [["late"] if 20 <= at < 40 else ["early"] if at < 20 else [] for at in range(60)]
    runs.cases(
        *({"id": n, "question": f"Q {n}?", "tags": t} for n, t in zip(names, tags, strict=True))
    )
    for run, bad in (("base", FAILED_BEFORE), ("new", BROKE | FAILED_BEFORE)):
        results = [
            {"id": name, "status": "error" if at in bad else "ok", "answer": f"A {at}."}
            for at, name in enumerate(names)
        ]
        lines: list[dict[str, Any]] = [
            {"case_id": name, "status": "failed" if at in bad else "scored", "scores": {}}
            for at, name in enumerate(names)
        ]
        runs.run(run, results, pipeline=lines)
    return runs


def test_what_broke_is_told_from_run_files_and_the_browser_says_the_same(pair: Any) -> None:
    folders = pair.results_dir / "base", pair.results_dir / "new"
    slices = common_slices(read_pair(*folders), pair.eval_set, None)
    assert slices.verb == "broke"
    # of 20 cases with the tag 19 were ok before, of 40 others 39
    (sentence,) = slices.sentences()
    assert sentence == (
        "Of the questions that were ok before, those with tag late broke more often: "
        "18 of 19, against 2 of 39 others (p < .001)."
    )
    library = RunLibrary(pair.results_dir, pair.eval_set, None)
    pairs = PairList(*(library.open(name) for name in ("base", "new")))
    pairs.update(0)
    sentences, groups = pairs.slices()
    assert sentences[0] == sentence.removesuffix(".")
    assert groups[0].value == "with tag late"
    # the cases of the slice that were ok before; 18 of them broke
    assert (len(groups[0].rows), groups[0].failing) == (19, 18)
