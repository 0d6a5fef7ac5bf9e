"""What a set holds, in counts; expected values by hand."""

from __future__ import annotations

from typing import Any

from labeller.jobs import statistics_of

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
    expected = {"open": 0, "labelled": 2, "unanswerable": 1, "skipped": 1, "cannot_tell": 0}
    assert found["status"] == expected
    assert found["flagged"] == 1
    assert found["by_category"]["factual"]["cases"] == 2
    assert found["by_category"]["(none)"]["skipped"] == 1
    expected = {"total": 3, "per_labelled_case": 1.5, "most": 2, "labelled_without": 0}
    assert found["supports"] == expected
    assert (found["with_groups"], found["with_snippets"]) == (1, 1)
    assert found["with_expected_key_facts"] == 1
