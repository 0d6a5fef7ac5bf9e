"""A gate that passes although many cases broke says so, and names a rule that fails then."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.decisions.test_one_voice import make_run, write_set
from tests.definitions import definition_of
from tests.metrics_files import write_metrics
from tests.score_lines import read_lines, write_lines

from decisions.conditions import measured_run
from decisions.gate import evaluate
from decisions.gate_checks import GateEvidence
from decisions.gate_print import gate_page, junit, workflow_commands
from decisions.gate_rules import GateRules, read_rules
from records.gate_verdict import Verdict
from records.metrics import load_metrics
from views.page import markdown

TITLE = "Gate passed, but 7 of 14 cases broke: too few cases to tell"


class Pair:
    """Fourteen cases on eight documents, the first seven of them on three."""

    def __init__(self, folder: Path) -> None:
        gold = [{"rel_path": f"{d}.md", "heading_path": ""} for d in "00011223344567"]
        self.folder, self.eval_set = folder, write_set(folder / "set.jsonl", gold)
        self.targets = folder / "targets.toml"
        self.targets.write_text('[decide]\nprimary = ["pipeline.pass", "pipeline.answered"]\n')

    @staticmethod
    def add_mrr(run: Path) -> None:
        """The rank of the first gold passage, by which a case fails: 1 or none."""
        rows = read_lines(run, "retrieval")
        for row in rows:
            row["scores"]["mrr"] = row["scores"]["recall@5"]
        write_lines(run, "retrieval", rows)
        metrics = load_metrics(run / "metrics.json")
        for part in ("definitions", "mean", "ci95", "n", "not_applicable", "failed"):
            table = metrics["sections"]["retrieval"][part]
            table["mrr"] = table["recall@5"]
        for section, own in metrics["sections"].items():
            own["definitions"] = {name: definition_of(section, name) for name in own["mean"]}
        write_metrics(run / "metrics.json", metrics)

    def gated(self, broke: int, fixed: int = 0, rules: str = "") -> Verdict:
        """The first cases broke; the last ones were fixed."""
        none = np.zeros(14, bool)
        place = np.arange(14)
        passed = (place < 14 - fixed).astype(float), (place >= broke).astype(float)
        for name, own in zip(("base", "new"), passed, strict=True):
            make_run(self.folder / name, self.eval_set, own, own, none)
            self.add_mrr(self.folder / name)
        sides = measured_run(self.folder / "new"), measured_run(self.folder / "base")
        evidence = GateEvidence(*sides, self.eval_set, targets=self.targets)
        (self.folder / "g.toml").write_text(rules or "[gates]\n")
        return evaluate(read_rules(self.folder / "g.toml") if rules else GateRules(None), evidence)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_the_title_says_it_wherever_a_gate_is_read(pair: Pair) -> None:
    """Seven cases on three documents: of 2^3 patterns of signs one is as bad, and half of that tie
    counts: p 1/16 > .05. If each case counted alone: seven of seven, mid-p 2^-8."""
    verdict = pair.gated(7)
    assert verdict.passed
    assert verdict.title == TITLE
    assert verdict.summary().startswith(f"{TITLE}. ")
    assert verdict.to_dict()["title"] == TITLE
    text = markdown([gate_page(verdict)], head="", most=60_000, rest="")
    assert text.index(TITLE) < text.index("NO CLEAR DIFFERENCE")
    root = ET.fromstring(junit(verdict))
    assert TITLE in [each.get("value") for each in root.iter("property")]
    said = [each.get("message") or "" for each in root.iter("skipped")]
    assert any(message.startswith("7 of 14 cases broke, 0 were fixed") for message in said)
    assert any(TITLE in line for line in workflow_commands(verdict, "g.toml"))
    assert json.dumps(verdict.to_dict())


def test_the_rule_that_it_names_fails_the_same_pair(pair: Pair) -> None:
    (check,) = [check for check in pair.gated(7).checks if check.rule == "broke"]
    assert '"pipeline.pass" = "drop 10 %" under [gates.baseline]' in check.reason
    verdict = pair.gated(7, rules='[gates.baseline]\n"pipeline.pass" = "drop 10 %"\n')
    assert [check.name for check in verdict.of("failed")] == ["pipeline.pass"]
    assert verdict.title == "Gate FAILED"
    # Five of 14 cases broke, on two documents: a mean fall of .36, and 95 points matter.
    pair.targets.write_text(f"{pair.targets.read_text()}matters = 0.95\n")
    title = "Gate passed, but 5 of 14 cases broke: the fall is within what matters"
    assert pair.gated(5).title == title


@pytest.mark.parametrize(("broke", "fixed"), [(3, 0), (4, 3), (0, 7), (0, 0)])
def test_what_chance_explains_is_no_remark(pair: Pair, broke: int, fixed: int) -> None:
    """Three of three: mid-p 1/16."""
    assert pair.gated(broke, fixed).title == "Gate passed"
