"""What a set holds, in counts and as qrels; expected values by hand."""

from __future__ import annotations

from typing import Any

from labeller.qrels import qrels
from labeller.statistics import statistics_of

Record = dict[str, Any]


def test_statistics() -> None:
    cases: dict[str, Record] = {
        "a": {
            "id": "a",
            "question": "?",
            "category": "factual",
            "gold_supports": [{"rel_path": "x", "snippets": ["s"]}, {"rel_path": "y"}],
            "required_support_groups": [[0], [1]],
            "expected_key_facts": ["f"],
        },
        "b": {"id": "b", "question": "?", "category": "factual", "answerable": False},
        "c": {"id": "c", "question": "?"},
        "d": {"id": "d", "question": "?", "gold_supports": [{"rel_path": "x"}]},
    }
    found = statistics_of(cases, {"c": {"decision": "skipped", "flag": True}})
    assert found["cases"] == 4
    assert found["status"] == {
        "open": 0,
        "labelled": 2,
        "unanswerable": 1,
        "skipped": 1,
        "cannot_tell": 0,
    }
    assert found["flagged"] == 1
    assert found["by_category"]["factual"]["cases"] == 2
    assert found["by_category"]["(none)"]["skipped"] == 1
    assert found["supports"] == {
        "total": 3,
        "per_labelled_case": 1.5,
        "most": 2,
        "labelled_without": 0,
    }
    assert (found["with_groups"], found["with_snippets"]) == (1, 1)
    assert found["with_expected_key_facts"] == 1


def test_qrels() -> None:
    cases: dict[str, Record] = {
        "q 1": {
            "id": "q 1",
            "question": "?",
            "gold_supports": [
                {"rel_path": "a b.md", "heading_path": "Plans > Free", "grade": 1},
                {"rel_path": "a b.md", "heading_path": "Other", "grade": 2},
                {"rel_path": "c.md"},
            ],
        },
        "q2": {"id": "q2", "question": "?", "answerable": False},
    }
    judged: dict[str, Record] = {
        "q 1": {
            "rows": [
                {"rel_path": "c.md", "heading_path": "Part", "grade": 0},
                {"rel_path": "no.md", "heading_path": "", "grade": 0},
                {"rel_path": "unseen.md", "heading_path": "", "grade": None},
            ]
        },
        "q2": {"rows": [{"rel_path": "no.md", "heading_path": "", "grade": 0}]},
    }
    assert sorted(qrels(cases, judged, "doc")) == [
        "q%201 0 a%20b.md 2",
        "q%201 0 c.md 3",
        "q%201 0 no.md 0",
    ]
    assert sorted(qrels(cases, judged, "anchor")) == [
        "q%201 0 a%20b.md#Other 2",
        "q%201 0 a%20b.md#Plans%20%3E%20Free 1",
        "q%201 0 c.md 3",
        "q%201 0 c.md#Part 0",
        "q%201 0 no.md 0",
    ]
