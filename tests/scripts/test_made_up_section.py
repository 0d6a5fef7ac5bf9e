"""A section that is added by the recipe alone (a row of the catalogue, a module of ``scorers``, a
script) is scored and explained; no table besides has to name it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import click
import pytest

import options
from ragmetrics import catalogue
from ragmetrics.catalogue.metric import Metric, MetricSection
from records.cases import TestCase
from scorers.contract import Evidence, ScoreRow, SectionScorer
from scorers.score_request import ScoreRequest
from storage import TestResult

ROW = Metric("one_word", "brevity", "1: the answer is one word", "an answer", "a test", headline=1)
NAME = "brevity"


@dataclass(frozen=True)
class BrevityScorer:
    """Whether an answer is one word; the evidence has a text of the bot and a list."""

    section = NAME
    metrics: tuple[Metric, ...] = (ROW,)

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        words = (result.answer or "").split()
        return ScoreRow((float(len(words) == 1),)), {
            "last": words[-1],
            "lengths": [*map(len, words)],
        }


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> click.Command:
    """The script of the section, made as the others are."""
    module = ModuleType(f"scorers.{NAME}")
    module.__dict__["SECTION"] = SectionScorer(BrevityScorer, lambda job, chosen: chosen)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    row = MetricSection(NAME, "Brevity", (ROW,), "score_brevity.py", worst_by=ROW.name)
    monkeypatch.setitem(catalogue.SECTIONS, NAME, row)

    @options.script(ScoreRequest, help="Score brevity.")
    def main(asked: ScoreRequest) -> None:
        from scorers.show import score_and_show
        from views.worst import print_worst

        score_and_show(NAME, asked, options.Streams(asked), print_worst)

    return main


@pytest.fixture
def answered(finished: Any) -> Any:
    cases = [{"id": "short"}, {"id": "long"}]
    answers = {"short": "Yes", "long": "Yes, ten \x1b[31mdays"}
    finished.write(cases, [TestResult(name, answer=answer) for name, answer in answers.items()])
    return finished


def test_it_is_scored_and_its_worst_case_explained(answered: Any, command: click.Command) -> None:
    shown = answered.score(command, "--worst", "2")
    assert shown.exit_code == 0, shown.output
    # one of two answers is one word
    assert answered.section(command)["mean"] == {ROW.name: 0.5}
    _, _, worst = shown.stdout.partition("The worst case by one_word:")
    # the words "Yes,", "ten" and "ESC[31mdays" have 4, 3 and 9 characters; for ESC stands U+FFFD
    assert [line.strip() for line in worst.split("\n\n")[1:3]] == [
        "long  one_word 0.000  About long?",
        "Answer\n  Yes, ten \ufffd[31mdays\n  last: \ufffd[31mdays\n  lengths: 4, 3, 9",
    ]
