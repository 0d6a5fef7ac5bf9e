"""The labels of a set as qrels; expected values by hand."""

from __future__ import annotations

from typing import Any

from tests.scripts.labelling.conftest import Tool

from extras.research.qrels import qrels

Record = dict[str, Any]


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


def test_export_qrels(tool: Tool) -> None:
    tool.write([{"id": "d", "question": "?", "gold_supports": [{"rel_path": "x.md", "grade": 2}]}])
    assert tool.run("--export-qrels", "doc").stdout == "d 0 x.md 2\n"
