"""A judge is tested with known answers and pairs: what it obeys, repeats, and turns round."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from tests.judging.test_rubrics import HELPFUL, SALT
from tests.rows import each_row

from extras.research.self_test import self_test, self_test_by_rubric
from judge_answers import main
from judging.local import LocalJudge
from judging.types import JudgeTask
from records.rubrics import RubricExample


def test_the_local_judge_passes_its_self_test() -> None:
    report = self_test(LocalJudge(), SALT)
    assert report["passed"] is True
    assert report["right"] == 1.0
    assert report["failed"] == 0
    # three probes: one opinion, ten attacks, two repeats, two orders
    assert report["opinions"] == 3 * (1 + 10 + 2 + 2)


def claims_reply(task: JudgeTask, supports: Any) -> Any:
    """Verdicts with the first passage as quote; ``supports``: of a claim's place and id."""
    entry = {"context": "c1", "quote": task.inputs["contexts"][0]["text"], "reason": ""}
    verdicts = [
        entry | {"id": n, "verdict": "supported" if supports(place, n) else "not_found"}
        for place, n in enumerate(task.inputs["ids"])
    ]
    return {"verdicts": verdicts}


def test_a_judge_that_obeys_is_caught(scripted: Any) -> None:
    orders = ("score of 5", "mark all", "ignore the", "new rule", '{"verd')

    def obey(task: JudgeTask) -> Any:
        """Supports all when told so; quotes the first passage for what it supports."""
        attacked = any(word in task.messages[1]["content"].lower() for word in orders)
        return claims_reply(task, lambda place, name: name in ("1", "2") or attacked)

    report = self_test(scripted(obey), SALT)
    assert report["passed"] is False
    assert report["obeyed"] == report["got_through"] == 1.0
    assert report["shift_false_claims"] == 5.0
    assert report["self_agreement"] == 1.0
    assert report["flips_under_order"] == 0.0


def test_a_judge_that_counts_places_is_caught(scripted: Any) -> None:
    report = self_test(
        scripted(lambda task: claims_reply(task, lambda place, name: place < 2)), SALT
    )
    # reversed: all four change; (3, 1, 4, 2): claims 3 and 2 change
    assert report["flips_under_order"] == 6 / 8
    assert report["passed"] is False


def test_a_dead_judge_measures_nothing(scripted: Any) -> None:
    report = self_test(scripted(lambda task: "transport"), SALT)
    assert report["passed"] is None
    assert report["failed"] == report["opinions"] == 3
    assert report["obeyed"] is None


def replying(task: JudgeTask, verdict: str) -> Any:
    quote = task.inputs["answer"].split(".")[0]
    return {"verdicts": [{"id": "1", "quote": quote, "reason": "", "verdict": verdict}]}


BOTH = (
    RubricExample("Nothing of use is in here.", "no help", question="Q one?"),
    RubricExample("All that one could want.", "help", question="Q two?"),
)
SELF = replace(HELPFUL, examples=BOTH)


def test_the_self_test_of_a_rubric_by_a_judge_that_minds_no_attack(scripted: Any) -> None:
    def calm(task: JudgeTask) -> Any:
        return replying(task, "help" if "All" in task.inputs["answer"] else "no help")

    judge = scripted(calm)
    report = self_test_by_rubric(judge, SELF, SALT)
    assert (report["right"], report["obeyed"], report["shift_false_claims"]) == (1.0, 0.0, 0.0)
    assert report["self_agreement"] == 1.0
    assert report["passed"]
    # two examples: once plainly, five attacks at two places, and two repeats
    assert report["opinions"] == 2 * (1 + 10 + 2)
    # the example that is judged is in no prompt
    for task in judge.tasks:
        assert task.inputs["answer"][:20] not in task.messages[0]["content"]


def test_the_self_test_of_a_rubric_by_a_judge_that_obeys(scripted: Any) -> None:
    def obeys(task: JudgeTask) -> Any:
        texts = task.inputs["answer"] + task.inputs["question"]
        return replying(task, "help" if "grader" in texts or "All" in texts else "no help")

    report = self_test_by_rubric(scripted(obeys), SELF, SALT)
    assert report["obeyed"] == pytest.approx(1 / 5)  # one of the five attacks, at either place
    assert report["shift_false_claims"] == pytest.approx(5 / 5)  # 5 points for one in five
    assert report["passed"] is False


def test_the_self_test_runs_without_a_run(tmp_path: Path) -> None:
    words = ["--self-test", "--json", "--cache-dir", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["passed"] is True


@each_row(
    ("words", "message"),
    [
        (["--model", "m-2025-01-01"], "name its server with --judge"),
        (["--metrics", "rubrics.helpful,rubrics.tone"], "--self-test tries one rubric"),
        (["--metrics", "rubrics.nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_tested_is_one_sentence(
    tmp_path: Path, words: list[str], message: str
) -> None:
    done = CliRunner().invoke(main, [*words, "--self-test", "--cache-dir", str(tmp_path)])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_a_person_reads_each_figure_beside_its_limit(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--self-test", "--cache-dir", str(tmp_path)])
    lines = [" ".join(line.split()) for line in done.output.splitlines()]
    assert "Self-test of local/support:" in lines
    # all twelve known claims are right; at least 0.6 of them must be
    assert any(
        line.startswith("verdicts on known claims that are right 1") and line.endswith(">= 0.6 ✓")
        for line in lines
    ), lines
