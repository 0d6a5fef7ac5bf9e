"""Where the evidence is lost: each count by hand, and the files of a run as they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.score_lines import write_lines

from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Ruling
from decisions.evidence_path import PathAnswer, RunPath, evidence_path, path_blocks, read_paths
from records.run import Run
from terminal.page import BarColumn, DataColumn, DataTable, Prose
from terminal.plot import bar

RULING = Ruling(CaseRules(), Basis())


def test_each_step_by_hand() -> None:
    """Six answers need evidence; five have all of it at some rank. Four of these cite it: the last
    but one does not. All four were measured for support, one has a claim without it. Three are
    left; two of them were called right or not, which is 67 % of them: left out."""
    answers = [
        PathAnswer(1, cited=True, supported=True, right=True),
        PathAnswer(3, cited=True, supported=True, right=False),
        PathAnswer(12, cited=True, supported=True),
        PathAnswer(2, cited=True, supported=False, right=True),
        PathAnswer(2, cited=False, supported=True, right=True),
        PathAnswer(0, cited=True, supported=True, right=True),
    ]
    steps = {"need evidence": 6, "find all of it": 5, "cite a passage of it": 4}
    assert evidence_path(answers) == steps | {"support every claim": 3}


def test_a_step_that_was_not_measured_takes_nothing_away() -> None:
    """Citations were not measured. Of ten answers nine were measured for support, 90 %: the tenth
    does not pass. One of the nine has an unsupported claim. Of the eight that are left all but one
    were called right, 7 of 8 or 88 %: too few."""
    answers = [PathAnswer(1, None, True, True)] * 7 + [PathAnswer(1, None, True)]
    answers += [PathAnswer(2, None, False, True), PathAnswer(2)]
    steps = {"need evidence": 10, "find all of it": 10, "support every claim": 8}
    assert evidence_path(answers) == steps
    assert evidence_path([]) == {}
    assert evidence_path([PathAnswer(0, cited=False)]) == {"need evidence": 1, "find all of it": 0}


measured = st.sampled_from([None, False, True])


@given(st.lists(st.builds(PathAnswer, st.integers(0, 30), *[measured] * 3), min_size=1))
def test_a_funnel_never_widens(answers: list[PathAnswer]) -> None:
    counts = list(evidence_path(answers).values())
    assert counts[0] == len(answers)
    assert counts == sorted(counts, reverse=True)


@given(st.lists(st.builds(PathAnswer, st.integers(1, 3), *[st.booleans()] * 3), min_size=1))
def test_where_all_is_measured_the_last_step_counts_those_that_pass_all(
    answers: list[PathAnswer],
) -> None:
    last = list(evidence_path(answers).values())[-1]
    assert last == sum(all(answer[1:4]) for answer in answers)


def gold(*paths: str) -> list[dict[str, Any]]:
    return [{"rel_path": path, "heading_path": "", "snippets": []} for path in paths]


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, Path]:
    """Six answers. ``any``: one of two supports is enough, found at 2. ``both``: both are needed,
    at 1 and 4. ``lost``: found nowhere. ``changed``: the set has a third support by now. ``failed``
    and ``none`` have no gold that was looked for."""
    cases: list[dict[str, Any]] = [
        {"id": "any", "gold_supports": gold("a", "b"), "required_support_groups": [[0], [1]]},
        {"id": "both", "gold_supports": gold("a", "b")},
        {"id": "lost", "gold_supports": gold("a")},
        {
            "id": "changed",
            "gold_supports": gold("a", "b", "c"),
            "required_support_groups": [[0, 2]],
        },
        {"id": "failed", "gold_supports": gold("a")},
        {"id": "none"},
    ]
    lines = "".join(json.dumps(case | {"question": "?"}) + "\n" for case in cases)
    (tmp_path / "set.jsonl").write_text(lines)
    found = {"any": [2, None], "both": [4, 1], "lost": [None], "changed": [1, 1]}
    cited = {"any": 1.0, "both": None}
    folder = tmp_path / "run"
    write_lines(
        folder,
        "retrieval",
        [
            {
                "case_id": case["id"],
                "scores": {"attribution_hit": cited.get(str(case["id"]))},
                "evidence": {"match": "anchor", "found": found.get(str(case["id"]))},
                "status": "failed" if case["id"] == "failed" else "scored",
            }
            for case in cases
        ],
    )
    return folder, tmp_path / "set.jsonl"


def steps_of(folder: Path, eval_set: Path) -> dict[str, int]:
    (path,) = read_paths([Run(folder)], eval_set, None, RULING)
    return dict(path.steps)


def test_the_path_of_a_run_is_read_from_its_score_lines(run: tuple[Path, Path]) -> None:
    """Three answers count: any at 2, both at 4, lost never. Of the two that saw it ``any`` cites;
    ``both`` has no reference, so it cites nothing."""
    assert steps_of(*run) == {"need evidence": 3, "find all of it": 2, "cite a passage of it": 1}
    folder, eval_set = run
    assert read_paths([Run(folder)], eval_set.with_name("no.jsonl"), None, RULING) == []
    assert read_paths([Run(folder.parent)], eval_set, None, RULING) == []
    assert [*path_blocks([])] == []


def test_other_sections_are_joined_by_answer_and_who_declines_passes_nothing(
    run: tuple[Path, Path],
) -> None:
    """Groundedness has the lines in another order. ``any`` supports its claims and states half of
    those that are expected, so it is not right."""
    folder, eval_set = run
    rows = [("lost", 1.0, 1.0), ("any", 1.0, 0.5)]
    names = "claim_support_rate", "expected_claim_recall"
    write_lines(
        folder,
        "groundedness",
        [{"case_id": case, "scores": dict(zip(names, own, strict=True))} for case, *own in rows],
    )
    later = {"support every claim": 1, "are right": 0}
    assert steps_of(folder, eval_set) == {
        "need evidence": 3,
        "find all of it": 2,
        "cite a passage of it": 1,
        **later,
    }
    write_lines(folder, "abstention", [{"case_id": "any", "scores": {"over_refusal": 1.0}}])
    assert steps_of(folder, eval_set)["cite a passage of it"] == 0


def test_one_funnel_says_what_each_step_loses(run: tuple[Path, Path]) -> None:
    """Of 3 answers 1 never finds it all; of the other 2 one cites nothing."""
    path = RunPath(
        "run", {"need evidence": 3, "find all of it": 2, "cite a passage of it": 1}, 2, 0.5
    )
    _, table, note = path_blocks([path])
    assert isinstance(table, DataTable)
    assert isinstance(note, Prose)
    assert cells(table) == [
        ["need evidence", "3", 1.0, ""],
        ["find all of it", "2", 2 / 3, "−1"],
        ["cite a passage of it", "1", 1 / 3, "−1"],
    ]
    assert str(note.words).startswith("Found in the first 5 passages already: 2 of 2 (run).")


def test_two_funnels_have_a_row_for_each_step_of_either() -> None:
    old = RunPath("old", {"need evidence": 4, "find all of it": 2, "are right": 1}, 1, 0.5)
    new = RunPath(
        "new", {"need evidence": 4, "find all of it": 3, "cite a passage of it": 3}, 3, 0.75
    )
    _, table, _ = path_blocks([old, new])
    assert isinstance(table, DataTable)
    assert cells(table) == [
        ["need evidence", "4", 1.0, "4", 1.0],
        ["find all of it", "2", 0.5, "3", 0.75],
        ["cite a passage of it", "–", 0.0, "3", 0.75],
        ["are right", "1", 0.25, "–", 0.0],
    ]


def cells(table: DataTable[Any]) -> list[list[Any]]:
    return [
        [
            column.share(row) if isinstance(column, BarColumn) else column.cell(row)
            for column in table.columns
            if isinstance(column, BarColumn | DataColumn)
        ]
        for row in table.rows
    ]


def test_a_bar_has_eighths() -> None:
    assert (bar(0.0, 4), bar(1.0, 4), bar(0.5, 4)) == ("", "████", "██")
    assert bar(0.28125, 4) == "█▏"  # 1.125 characters
