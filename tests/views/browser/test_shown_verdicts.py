"""What browser, report and worst cases show of a judge is what the scores are counted from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.pages import Blocks, page_of
from tests.score_lines import read_lines

import judge_answers
import report_run
from views.case import Case
from views.library import RunLibrary

CLAIMS = 45
"""More than two parts of twenty."""
CASE = {"id": "q", "question": "What is kept?", "answerable": True}
CHUNK = {"chunk_id": "c1", "rel_path": "a.md", "text": "Box 1 holds the green lamp."}
LONG = " ".join(f"Box {n} holds the green lamp." for n in range(1, CLAIMS + 1))
SHORT = "Box 7 holds the red lamp."
"""Its number stands in no passage: not supported."""


class Judged:
    """A run of one answer in a folder, judged by the embedded rules."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "results" / "r"
        self.run.mkdir(parents=True)
        self.eval_set = folder / "set.jsonl"
        self.eval_set.write_text(json.dumps(CASE) + "\n")
        (self.run / "config.json").write_text('{"schema": 1, "run_id": "r"}')

    def answer(self, text: str) -> None:
        """Replace the answer."""
        result = {"schema": 1, "test_case_id": "q", "question": CASE["question"], "answer": text}
        line = json.dumps(result | {"retrieved": [CHUNK]}) + "\n"
        (self.run / "results.jsonl").write_text(line)

    def _call(self, command: Any, *options: str) -> str:
        words = ["--run", str(self.run), "--eval-set", str(self.eval_set), *options]
        done = CliRunner().invoke(command, words)
        assert done.exit_code == 0, done.output
        return done.stdout

    def judge(self, *options: str) -> str:
        words = ("--judge", "local", "--metrics", "groundedness", "--cache-dir")
        return self._call(judge_answers.main, *words, str(self.folder / "cache"), *options)

    def verdict_lines(self) -> list[dict[str, Any]]:
        """All but those that say who judged."""
        lines = map(json.loads, self._path.read_text().splitlines())
        return [line for line in lines if "case_id" in line]

    def append(self, line: dict[str, Any]) -> None:
        with open(self._path, "a") as file:
            file.write(json.dumps(line) + "\n")

    @property
    def _path(self) -> Path:
        return self.run / "verdicts.jsonl"

    def scored(self) -> list[str]:
        """The claims that the scores were counted from."""
        (line,) = read_lines(self.run, "judged")
        return [claim["text"] for claim in line["evidence"].get("claims", ())]

    def reported(self) -> Blocks:
        """The one answer of the report."""
        told = self._call(report_run.main, "--json", "--worst-by", "faithfulness")
        (answer,) = page_of(json.loads(told)).in_full.values()
        return answer

    def browsed(self) -> Case:
        """The case as the browser shows it."""
        detail = RunLibrary(self.run.parent, self.eval_set, None).open("r").detail(("q", 0))
        assert detail is not None
        return detail


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    run = Judged(tmp_path)
    run.answer(LONG)
    run.judge()
    assert len(run.verdict_lines()) == 3
    return run


def browsed_claims(detail: Case) -> list[str]:
    return [claim.text for one in detail.judged for claim in one.items]


def test_parts_of_an_answer_that_is_gone_are_not_shown(judged: Judged) -> None:
    """Judged in three parts, then answered in a sentence and judged again: two parts stay over."""
    judged.answer(SHORT)
    told = judged.judge("--worst", "1")
    assert judged.scored() == [SHORT]
    detail = judged.browsed()
    assert browsed_claims(detail) == [SHORT]
    assert [claim.text for claim in detail.claims] == [SHORT]
    assert detail.problems == (), "what stays over of the old answer is no news"
    answer = judged.reported()
    assert ("✗ not found", SHORT) in answer.facts
    assert not [fact for fact in answer.facts if "Box 45" in fact[1]]
    assert not [why for why in answer.texts if "the judge: " in why]
    assert (SHORT in told, "Box 45" in told) == (True, False)


def test_verdicts_on_another_answer_are_not_shown_before_it_is_judged(judged: Judged) -> None:
    judged.answer(SHORT)
    detail = judged.browsed()
    assert (detail.judged, detail.claims) == ((), ())
    assert detail.problems == (
        "verdicts of the judge are not shown: judged before its answer or labels changed",
    )
    answer = judged.reported()
    assert not [label for label, _ in answer.facts if label.startswith(("✓", "✗"))]
    assert "the judge: judged before its answer or labels changed" in answer.texts


def test_parts_of_another_judge_are_not_shown_under_this_ones_name(judged: Judged) -> None:
    """The same three parts by another model, the last of them newer than all others."""
    other = judged.verdict_lines()[1]
    other["judge"] = {"provider": "local", "model": "another", "strength": "code"}
    for entry in other["verdicts"]:
        entry["verdict"] = "contradicted"
    judged.append(other)
    detail = judged.browsed()
    assert browsed_claims(detail) == judged.scored()
    assert len(browsed_claims(detail)) == CLAIMS
    assert [one.judge for one in detail.judged] == ["local/support"]
    assert "contradicted" not in {claim.verdict for one in detail.judged for claim in one.items}
    assert detail.problems == (
        "Lines of verdicts.jsonl by another judge, prompt or temperature, which are ignored: 1.",
    )
    told = {label for label, _ in judged.reported().facts if label[:1] in "✓✗‼?" and label}
    assert told <= {"✓ supported", "✗ not found"}


def test_without_its_case_nothing_tells_whether_a_verdict_is_on_this_answer(judged: Judged) -> None:
    judged.eval_set.write_text("")
    detail = judged.browsed()
    assert detail.judged == ()
    (problem,) = detail.problems
    assert problem.startswith("the judge's verdicts are not shown: without the case")


def test_a_damaged_verdict_is_named(judged: Judged) -> None:
    judged.append({"case_id": "q"})
    detail = judged.browsed()
    assert detail.judged == ()
    assert "is not a verdict line" in detail.problems[0]
    assert "delete the line and judge again" in detail.problems[0]
