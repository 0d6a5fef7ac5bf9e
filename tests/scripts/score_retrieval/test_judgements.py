"""Passages that people judged: what is unjudged, and what the numbers could be."""

from __future__ import annotations

import json
from math import log2
from typing import Any

import pytest

from records.judged import key_of_passage, passage_key
from storage import ErrorInfo, TestResult


def row(chunk: Any, grade: float | None, **more: Any) -> dict[str, Any]:
    place = {"rel_path": chunk.rel_path, "heading_path": chunk.heading_path}
    return {"key": key_of_passage(chunk), **place, "grade": grade, **more}


@pytest.fixture
def judged(evaluated: Any, chunk: Any, gold: Any) -> Any:
    """Two supports (a, b); the list is x, a, y, z, w; x is judged irrelevant, and one elsewhere."""

    def make(rows: list[dict[str, Any]] | None = None, **more: Any) -> Any:
        case = {"id": "q", "gold_supports": gold("a.md > A", "b.md > B")}
        listed = [chunk(f"{name}.md > {name.upper()}") for name in "xayzw"]
        # A case without gold and a call that failed have no evidence.
        cases = [case, {"id": "open"}, case | {"id": "broken"}]
        failed = TestResult("broken", status="error", error=ErrorInfo("timeout"))
        results = [TestResult("q", retrieved=listed), TestResult("open"), failed]
        run = evaluated(cases, results, **more)
        if rows is None:
            rows = [
                row(listed[0], 0),
                row(listed[1], 2),
                row(chunk("far.md > F"), 0),
                row(listed[2], None),  # never shown
                row(listed[3], 0, part=True),  # its end was never on the screen
            ]
        # A set that is not named eval_set.jsonl has a folder of its own.
        folder = run.folder / "labels" / "judgements" / "set"
        folder.mkdir(parents=True)
        lines = [json.dumps({"case_id": "q", "decision": "answerable", "rows": rows})]
        (folder / "gold.jsonl").write_text("".join(f"{line}\n" for line in lines))
        return run

    return make


def test_a_row_read_to_its_end_is_judged_and_one_never_shown_is_not(judged: Any) -> None:
    run = judged()
    found = run.section()
    mean = found["mean"]
    # x and a are judged, y, z and w are not: at 1 none, at 3 one of three, at 5 three of five.
    assert [mean[f"unjudged@{k}"] for k in (1, 3, 5, 10)] == [0.0, round(1 / 3, 6), 0.6, 0.3]
    # Without them the list is x, a: grade 3 at rank 2 of an ideal 3, 3.
    assert mean["condensed_ndcg@5"] == round((1 / log2(3)) / (1 + 1 / log2(3)), 6)
    # R = 2, N = 2 (x and the one elsewhere); one stands above a, b is not there.
    assert mean["bpref"] == (1 - 1 / 2) / 2
    # One of five is right; with y, z and w four. a is there, and one of them may be b.
    assert found["ranges"]["precision@5"] == [0.2, 0.8]
    assert found["ranges"]["evidence_recall@5"] == [0.5, 1.0]
    assert found["ranges"]["evidence_recall@1"] == [0.0, 0.0]
    assert run.rows()["q"]["evidence"]["unjudged"] == [3, 4, 5]
    shown = " ".join(run.score().stdout.split())
    assert "60 % of the top 5 have no human judgement." in shown
    assert "precision@5 0.200 … 0.800, evidence_recall@5 0.500 … 1.000" in shown
    assert "Most of it is unjudged" in shown


def test_without_judgements_it_is_not_applicable(judged: Any) -> None:
    run = judged([])
    found = run.section()
    for name, why in (
        ("unjudged@5", "unjudged@*"),
        ("condensed_ndcg@5", "condensed_ndcg@*"),
        ("bpref", "bpref"),
    ):
        assert (found["n"][name], found["not_applicable"][name]) == (0, 2)
        assert run.rows()["q"]["reasons"][why] == "no judgements"
    assert "ranges" not in found
    assert found["options"]["judgements"] == ""
    assert "have no human judgement" not in run.score().stdout


def test_nothing_judged_irrelevant_leaves_bpref_undefined(judged: Any, chunk: Any) -> None:
    run = judged([row(chunk("a.md > A"), 2)])
    found = run.section()
    assert found["mean"]["unjudged@5"] == 0.8
    assert run.rows()["q"]["reasons"]["bpref"] == "nothing judged irrelevant"
    assert len(found["options"]["judgements"]) == 64


def test_texts_that_were_cut_cannot_be_told(judged: Any, chunk: Any) -> None:
    long = chunk("x.md > X", text="x" * 300)
    assert key_of_passage(long) == passage_key("x.md", "X", "x" * 300)
    run = judged([row(long, 0)])
    results = run.path / "results.jsonl"
    line, *others = results.read_text().splitlines()
    cut = json.loads(line)
    cut["retrieved"][0] |= {"text": "x" * 200, "text_length": 300}
    results.write_text("\n".join([json.dumps(cut), *others, ""]))
    run.section()
    assert run.rows()["q"]["reasons"]["unjudged@*"] == "text was truncated"


def test_graded_ids_are_judgements(evaluated: Any) -> None:
    # c1 relevant, c2 judged irrelevant, c3 below 0: as in trec_eval not judged, c4 unknown.
    case = {"id": "q", "chunk_relevance_grades": {"c1": 1, "c2": 0, "c3": -1}}
    only = {"id": "only", "chunk_relevance_grades": {"c1": 1}}
    listed = TestResult("q", retrieved=["c4", "c2", "c3", "c1", "c2"])
    run = evaluated([case, only], [listed, TestResult("only", retrieved=["c4", "c1"])])
    found = run.section()
    mean, n = found["mean"], found["n"]
    assert [mean[f"unjudged@{k}"] for k in (1, 3)] == [1.0, round(2 / 3, 6)]
    assert mean["condensed_ndcg@3"] == round(1 / log2(3), 6)  # c2, c1, c2
    assert mean["bpref"] == 0.0  # one irrelevant one above, and R = N = 1
    assert (n["unjudged@5"], n["bpref"], n["recall@5"]) == (1, 1, 2)


def test_a_damaged_judgement_is_named(judged: Any) -> None:
    run = judged([])
    path = run.folder / "labels" / "judgements" / "set" / "gold.jsonl"
    path.write_text('{"case_id": "q", "rows": [{"key": 1}]}\n')
    done = run.score()
    assert done.exit_code == 2
    assert "gold.jsonl:1: Expected `str`, got `int`" in done.stderr
