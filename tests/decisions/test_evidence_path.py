"""Where the evidence is lost: each share by hand, and the files of a run as they are read."""

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
from decisions.evidence_path import RANKS, PathAnswer, evidence_path, path_blocks, read_paths
from records.run import Run
from terminal.page import DataColumn, DataTable
from terminal.plot import bar

RULING = Ruling(CaseRules(), Basis())


def shares(answers: list[PathAnswer]) -> dict[str, tuple[float | None, int]]:
    return {step.name: (step.share, step.n) for step in evidence_path(answers)}


def test_each_step_by_hand() -> None:
    """Four answers: complete at ranks 1, 3, 12 and never. Within 2: 1 of 4, within 10: 2, within
    20: 3. In the prompt: 3 of 4. Of these 3 two are measured for citations and one of them cites:
    3/4 x 1/2 = .375. The one that does not is gone; of the other two one is measured for claims and
    has them: .375 x 1. Nobody said what is right: a gap."""
    found = shares(
        [
            PathAnswer(1, cited=True, claimed=True),
            PathAnswer(3, cited=False, claimed=True),
            PathAnswer(12),
            PathAnswer(0, cited=True, claimed=True, correct=True),
        ]
    )
    ranks = [found[f"rank {rank}"] for rank in RANKS]
    assert ranks == [(0.25, 4), (0.25, 4), (0.5, 4), (0.5, 4), (0.5, 4), (0.75, 4)]
    assert found["in the prompt"] == (0.75, 4)
    assert found["cited"] == (0.375, 2)
    assert found["claimed"] == (0.375, 1)
    assert found["correct"] == (None, 0)


def test_a_gap_takes_nothing_away() -> None:
    """Both are seen, citations were not measured; one of two claims it: .5; that one is right."""
    found = shares([PathAnswer(1, None, True, True), PathAnswer(2, None, False, True)])
    assert found["cited"] == (None, 0)
    assert found["claimed"] == (0.5, 2)
    assert found["correct"] == (0.5, 1)


def test_nothing_to_measure() -> None:
    assert evidence_path([]) == ()
    found = shares([PathAnswer(0, cited=False)])
    assert found["in the prompt"] == (0.0, 1)
    assert found["cited"] == (None, 0)


told = st.sampled_from([None, False, True])


@given(st.lists(st.builds(PathAnswer, st.integers(0, 30), told, told, told), min_size=1))
def test_shares_lie_in_0_to_1_and_fall_once_the_prompt_is_full(answers: list[PathAnswer]) -> None:
    steps = evidence_path(answers)
    known = [step.share for step in steps if step.share is not None]
    assert all(0 <= share <= 1 for share in known)
    ranks, later = known[: len(RANKS) + 1], known[len(RANKS) :]
    assert ranks == sorted(ranks)
    assert later == sorted(later, reverse=True)


@given(st.lists(st.builds(PathAnswer, st.integers(0, 3), *[st.booleans()] * 3), min_size=1))
def test_where_all_is_measured_it_is_the_share_that_passes_every_step(
    answers: list[PathAnswer],
) -> None:
    last = evidence_path(answers)[-1].share
    passed = sum(one.complete > 0 and all(one[1:]) for one in answers) / len(answers)
    assert (last or 0.0) == pytest.approx(passed)


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


def path_of(folder: Path, eval_set: Path) -> dict[str, Any]:
    (path,) = read_paths([Run(folder)], eval_set, None, RULING)
    return {step.name: (step.share, step.n) for step in path.steps}


def test_the_path_of_a_run_is_read_from_its_score_lines(run: tuple[Path, Path]) -> None:
    """Three answers count: any at 2, both at 4, lost never. Of the two that saw it ``any`` cites;
    ``both`` has no reference, so it cites nothing: 2/3 x 1/2."""
    found = path_of(*run)
    assert found["rank 1"] == (0.0, 3)
    assert found["rank 2"] == (pytest.approx(1 / 3), 3)
    assert found["rank 5"] == (pytest.approx(2 / 3), 3)
    assert found["cited"] == (pytest.approx(1 / 3), 2)
    assert found["claimed"] == found["correct"] == (None, 0)


def test_other_sections_are_joined_by_answer_and_who_declines_says_nothing(
    run: tuple[Path, Path],
) -> None:
    """Groundedness has the lines in another order: ``any`` states half of its claims, ``both`` has
    no score. It declines, so it states nothing either: 0 of 1 that is left after citing (any)."""
    folder, eval_set = run
    rows = [("lost", 1.0), ("any", 0.5)]
    write_lines(
        folder,
        "groundedness",
        [{"case_id": case, "scores": {"expected_claim_recall": score}} for case, score in rows],
    )
    write_lines(folder, "abstention", [{"case_id": "both", "scores": {"over_refusal": 1.0}}])
    assert path_of(folder, eval_set)["claimed"] == (0.0, 1)


def test_a_run_without_retrieval_or_a_set_has_no_path(run: tuple[Path, Path]) -> None:
    folder, eval_set = run
    assert read_paths([Run(folder)], eval_set.with_name("no.jsonl"), None, RULING) == []
    assert read_paths([Run(folder.parent)], eval_set, None, RULING) == []
    assert [*path_blocks([])] == []


def test_the_table_of_two_runs(run: tuple[Path, Path]) -> None:
    paths = read_paths([Run(run[0])] * 2, run[1], None, RULING)
    (table,) = (block for block in path_blocks(paths) if isinstance(block, DataTable))
    columns = [column for column in table.columns if isinstance(column, DataColumn)]
    assert [column.name for column in columns] == ["step", "run", " ", "of", "run", "  ", "of "]
    cells = [[column.cell(row) for column in columns] for row in (1, 9)]
    assert cells[0] == ["rank 2", "33 %", "█████▍", "3", "33 %", "█████▍", "3"]  # 43/8 of 16
    assert cells[1] == ["correct", "–", "", "0", "–", "", "0"]


def test_a_bar_has_eighths() -> None:
    assert (bar(None, 4), bar(0.0, 4), bar(1.0, 4), bar(0.5, 4)) == ("", "", "████", "██")
    assert bar(0.28125, 4) == "█▏"  # 1.125 characters
