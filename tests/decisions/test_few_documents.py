"""Cases about few documents: compare, gate, report, and the files that a user may change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.decisions.test_one_voice import make_run, write_set
from tests.score_lines import read_lines, write_lines

from decisions.compare import CompareOptions, compare
from decisions.compare_words import cases_line, compare_page
from decisions.conditions import measured_run
from decisions.gate import evaluate
from decisions.gate_checks import GateEvidence
from decisions.gate_rules import GateRules, read_rules
from decisions.primary import clusters_of_run
from decisions.regressions import regressions
from records.errors import StorageError
from records.files import sha256_file
from records.run import Run
from views.report.compared import compare_with

NAMES = ("pipeline.pass", "pipeline.answered")
SECTIONS = 12
SCOPE = "on this document; other documents may differ"


class Pair:
    """Fifteen cases about one manual, in twelve sections; a change breaks the first six."""

    def __init__(self, folder: Path) -> None:
        gold = [{"rel_path": "m.pdf", "heading_path": f"h{n % SECTIONS}"} for n in range(15)]
        self.eval_set = write_set(folder / "set.jsonl", gold)
        self.base, self.new = folder / "base", folder / "new"
        for run, broken in ((self.base, 0), (self.new, 6)):
            passed = np.where(np.arange(15) < broken, 0.0, 1.0)
            make_run(run, self.eval_set, np.ones(15), passed, np.zeros(15, bool))
            for section in ("retrieval", "pipeline"):
                rows = read_lines(run, section)
                write_lines(run, section, [row | {"cluster": "document: m.pdf"} for row in rows])
        self.targets = folder / "targets.toml"
        self.decide()

    def decide(self, *more: str) -> None:
        self.targets.write_text("\n".join(["[decide]", f"primary = {json.dumps(NAMES)}", *more]))

    def compared(self, eval_set: Path | None = None) -> Any:
        eval_set = eval_set or self.eval_set
        clusters, notes = clusters_of_run(
            eval_set,
            sha256_file(self.eval_set),
            "base",
            folders=(self.base, self.new),
            targets=self.targets,
        )
        options = CompareOptions(targets=self.targets, eval_set=self.eval_set)
        return compare(self.base, self.new, options, clusters=clusters), notes

    def gated(self, rules: GateRules | None = None) -> Any:
        sides = measured_run(self.new), measured_run(self.base)
        evidence = GateEvidence(*sides, self.eval_set, targets=self.targets)
        return evaluate(rules or GateRules(None), evidence)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_one_document_is_fixed_and_every_verdict_says_so(pair: Pair) -> None:
    found, notes = pair.compared()
    # q0 to q5 are of six sections: of 2^6 patterns the observed one and its mirror image, halved
    row = found.row("pipeline.pass")
    assert (row.units, row.verdict, row.p_joint) == (SECTIONS, "worse", 1 / 2**6)
    assert found.clusters == "15 cases in 12 sections, of 1 document"
    assert found.scope == SCOPE == found.to_dict()["scope"]
    assert SCOPE in found.says[0]
    assert SCOPE in str(compare_page(found))
    assert "run_eval.py --repeat 2" in notes[0]
    report = compare_with(pair.base, Run(pair.new), pair.eval_set, pair.targets)
    assert SCOPE in report.comparison.says[0]
    verdict = pair.gated()
    (failed,) = verdict.of("failed")
    assert (failed.name, verdict.passed) == ("pipeline.pass", False)
    assert "12 sections, of 1 document" in failed.reason
    assert f"All verdicts are {SCOPE}." in verdict.caveats


def test_a_declaration_overrides_and_what_cannot_be_tested_fails(
    pair: Pair, tmp_path: Path
) -> None:
    pair.decide('documents = "sampled"')
    found, _ = pair.compared()
    assert (found.headline, found.scope) == ("TOO FEW", "")
    verdict = pair.gated()
    reasons = {check.name: check.reason for check in verdict.of("failed")}
    assert set(reasons) == {*NAMES}
    assert reasons["pipeline.pass"] == (
        "no verdict: 1 document; at least 6 are needed; add cases, or write untested = "
        '"allow" under [gates] of the rules file'
    )
    file = tmp_path / "gates.toml"
    file.write_text('[gates]\nuntested = "allow"\n')
    allowed = pair.gated(read_rules(file))
    assert allowed.passed
    assert {check.name for check in allowed.of("skipped")} == {*NAMES}
    file.write_text('[gates]\nuntested = "maybe"\n')
    with pytest.raises(StorageError, match=r"gates\.untested: must be one of fail, allow"):
        read_rules(file)


def test_without_the_set_the_sections_are_unknown_and_the_remark_says_so(
    pair: Pair, tmp_path: Path
) -> None:
    found, notes = pair.compared(tmp_path / "gone.jsonl")
    assert found.headline == "TOO FEW"
    assert notes == [
        f"{tmp_path / 'gone.jsonl'} is not there, so the sections of 1 document are not known. "
        "Give that set with --eval-set, or score the run again."
    ]


def test_a_part_of_the_set_is_counted_alone(pair: Pair) -> None:
    """The runs were asked the first seven cases: seven sections, of which six broke."""
    for run in (pair.base, pair.new):
        for section in ("retrieval", "pipeline"):
            write_lines(run, section, read_lines(run, section)[:7])
    found, _ = pair.compared()
    assert found.clusters == "7 cases, each by itself, of 1 document"
    assert cases_line(found).endswith(": 7 cases in both; each by itself, of 1 document")
    evidence = GateEvidence(
        measured_run(pair.new), measured_run(pair.base), pair.eval_set, targets=pair.targets
    )
    assert regressions(evidence, NAMES).cases == found.clusters
