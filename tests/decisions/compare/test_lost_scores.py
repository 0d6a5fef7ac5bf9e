"""Runs of which one lost scores, refuses, or leads: compare, gate and cases, from files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.metrics_files import write_metrics
from tests.score_lines import read_lines, write_lines

from decisions.case_changes import changes_of, read_pair
from decisions.compare import CompareOptions, compare
from decisions.conditions import measured_run
from decisions.gate import evaluate
from decisions.gate_checks import GateEvidence
from decisions.gate_rules import GateRules
from decisions.headline import failures
from decisions.slices import common_slices
from records.metrics import load_metrics

Targets = Callable[[str], Path]
N = 120
CLAIMS = "groundedness.claim_support_rate"


def some(count: int, value: float = 1.0, rest: float = 0.0) -> list[float]:
    return [value] * count + [rest] * (N - count)


class LosingRuns:
    """Runs of 120 questions about 120 documents; 100 of them find their passage in base."""

    def __init__(self, runs: Any, folder: Path) -> None:
        self.runs = runs
        self.eval_set = folder / "set.jsonl"
        rows = [
            {
                "id": f"q{i}",
                "question": f"What about {i}?",
                "category": ("factual", "reasoning", "general")[i % 3],
                "gold_supports": [{"rel_path": f"{i}.md", "heading_path": "A"}],
            }
            for i in range(N)
        ]
        self.eval_set.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def make(self, name: str, **sections: Mapping[str, Sequence[float | None]]) -> Path:
        usual: dict[str, dict[str, Sequence[float | None]]] = {
            "retrieval": {"evidence_recall@5": some(100), "mrr": some(100)},
            "groundedness": {"claim_support_rate": some(N)},
            "abstention": {"decision_right": some(N), "over_refusal": some(0)},
            "pipeline": {"answered": some(N)},
        }
        for section, scores in usual.items():
            scores = scores | dict(sections.get(section, {}))
            run: Path = self.runs.make(name, scores, section)
        path = run / "metrics.json"
        write_metrics(path, load_metrics(path) | {"cases": N, "errors": 0})
        return run

    def without_passages(self, name: str, left: int) -> Path:
        """A bot that sends ``retrieved: null`` but for some answers, which find nothing."""
        gone: list[float | None] = [*([0.0] * left), *([None] * (N - left))]
        run = self.make(name, retrieval={"evidence_recall@5": gone, "mrr": gone})
        lines = read_lines(run, "retrieval")
        for line in lines[left:]:
            line |= {"status": "failed", "reasons": {"*": "no list at passages"}}
        write_lines(run, "retrieval", lines)
        return run

    def gated(self, base: Path, new: Path, **options: Any) -> Any:
        evidence = GateEvidence(measured_run(new), measured_run(base), self.eval_set, **options)
        return evaluate(GateRules(None), evidence)


@pytest.fixture
def bots(runs: Any, tmp_path: Path) -> LosingRuns:
    return LosingRuns(runs, tmp_path)


@pytest.mark.parametrize("left", [0, 6, 59])
def test_passages_that_are_not_sent_are_no_loss_of_evidence(bots: LosingRuns, left: int) -> None:
    """It was WORSE, 0 of 100 questions, on 6 cases; and 100 cases "gave no response"."""
    base, new = bots.make("base"), bots.without_passages("new", left)
    found = compare(base, new, CompareOptions(eval_set=bots.eval_set))
    assert found.headline == "INCOMPLETE"
    assert found.says[0].startswith(
        f"INCOMPLETE: new sends no passages: {N - left} of 120 answers;"
    )
    assert "evidence" not in found.says[0].partition(";")[0], "no mean of the few that are left"
    row = found.row("evidence_recall@5")
    assert row is not None
    assert (row.verdict, row.p_joint) == ("only in base" if not left else "no verdict", None)
    other = found.row("mrr")
    assert other is not None
    assert other.verdict in ("no verdict", "only in base"), "nor does any other metric decide on 6"
    assert failures([found], ["worse"]), "exit code 1, as for a metric that is no longer measured"
    failed = {check.name for check in bots.gated(base, new).of("failed")}
    assert any(name.startswith("retrieval.evidence_recall@5") for name in failed)


def test_no_clear_difference_says_how_many_cases_lost_their_score(bots: LosingRuns) -> None:
    """The 20 that find nothing in base lose their score in new: 100 of 120 are equal in both."""
    gone: list[float | None] = [*([1.0] * 100), *([None] * 20)]
    base = bots.make("base")
    new = bots.make("new", retrieval={"evidence_recall@5": gone, "mrr": gone})
    found = compare(base, new, CompareOptions(eval_set=bots.eval_set))
    assert found.headline == "NO CLEAR DIFFERENCE"
    assert "; 20 of 120 cases lost their score of retrieval.evidence_recall@5" in found.says[0]
    same = compare(base, bots.make("same"), CompareOptions(eval_set=bots.eval_set))
    assert "lost" not in same.says[0]


def test_a_missing_field_is_no_failed_call(bots: LosingRuns) -> None:
    """Of the cases without passages none broke, and none is fixed: 20 failed by ``no gold`` in
    base, of which nobody knows now. The six that find nothing broke, as they should."""
    base, new = bots.make("base"), bots.without_passages("new", 6)
    pair = read_pair(base, new)
    assert pair.counts() == {"broke": 6, "fixed": 0, "fails still": 0, "ok still": 114}
    changes = changes_of(pair, 10)
    assert changes is not None
    assert {case.fact for case in changes.changed} == {"gold 1 → none"}
    assert "114 cases by fewer rules, since one run lacks what the others read" in changes.says()
    assert common_slices(pair, bots.eval_set, None).sentences() == []
    assert read_pair(new, base).counts()["fixed"] == 6, "the other way round, too"


def test_a_rule_on_passages_that_nobody_knows_fixes_no_case(bots: LosingRuns) -> None:
    """Ten answers of base have a number that no passage has; of new's answers nobody can say."""
    plain: dict[str, Sequence[float | None]] = {"answer_quality": some(N)}
    base = bots.make("base", groundedness=plain | {"numeric_fabrications": some(10)})
    gone: list[float | None] = [None] * N
    new = bots.make("new", groundedness=plain | {"numeric_fabrications": gone})
    lines = read_lines(new, "groundedness")
    for line in lines:
        line["reasons"] = {"numeric_fabrications": "no list at passages"}
    assert read_pair(base, new).counts()["fixed"] == 10, "not applicable, such as no answer"
    write_lines(new, "groundedness", lines)
    assert read_pair(base, new).counts()["fixed"] == 0


def test_a_failed_call_is_one_still(bots: LosingRuns) -> None:
    base, new = bots.make("base"), bots.make("new")
    for section in ("retrieval", "groundedness", "abstention", "pipeline"):
        lines = read_lines(new, section)
        for line in lines[:5]:
            line |= {"status": "failed", "reasons": {"*": "call failed: timeout"}}
            line["scores"] = dict.fromkeys(line["scores"])
        write_lines(new, section, lines)
    pair = read_pair(base, new)
    assert pair.counts()["broke"] == 5
    changes = changes_of(pair, 10)
    assert changes is not None
    assert {case.reasons for case in changes.changed} == {("the call gave no response",)}


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 1.0])
def test_a_bot_that_refuses_is_worse_and_the_gate_says_so(bots: LosingRuns, share: float) -> None:
    """It was INCOMPLETE when it refused all, and the gate failed for claims that nobody made."""
    no = round(share * N)
    base = bots.make("base")
    new = bots.make(
        "new",
        groundedness={"claim_support_rate": [None] * no + [1.0] * (N - no)},
        abstention={"decision_right": some(no, 0.0, 1.0), "over_refusal": some(no)},
    )
    found = compare(base, new, CompareOptions(eval_set=bots.eval_set))
    assert found.says[0].startswith(
        f"WORSE: answers or declines correctly on {N - no} of 120 questions (120 before)"
    )
    left_out = f"; {CLAIMS} is left out ({no} of 120 answers failed or declined)."
    assert found.says[0].endswith(left_out) == (share > 0.5)
    assert found.says[-1] == "Next: see which cases broke: browse_runs.py base new."
    verdict = bots.gated(base, new)
    assert [check.name for check in verdict.of("failed")] == ["abstention.decision_right"]
    skipped = {check.name: check.reason for check in verdict.of("skipped")}
    assert (CLAIMS in skipped) == (share > 0.5)
    if share > 0.5:
        assert "the others failed or declined, which other primary metrics judge" in skipped[CLAIMS]


def test_what_does_not_matter_passes_exit_code_and_gate(bots: LosingRuns, targets: Targets) -> None:
    """Eight of 120 lose their answer: 6.7 points, p = 1/2^8."""
    base, new = bots.make("base"), bots.make("new", abstention={"decision_right": some(112)})
    found = compare(base, new, CompareOptions(eval_set=bots.eval_set))
    assert (found.headline, len(failures([found], ["worse"]))) == ("WORSE", 1)
    assert not bots.gated(base, new).passed
    wide = compare(base, new, CompareOptions(eval_set=bots.eval_set, margin=0.15))
    assert wide.headline == "SAME"
    assert wide.says[0] == (
        "SAME within 15 points (right decisions to answer or to decline 6.7 points lower, not by "
        "chance)."
    )
    assert failures([wide], ["worse"]) == []
    path = targets("[decide]\nmatters = 0.15\n")
    assert (
        compare(base, new, CompareOptions(eval_set=bots.eval_set, targets=path)).says == wide.says
    )
    assert bots.gated(base, new, targets=path).passed


def test_a_declared_lead_gives_the_word(bots: LosingRuns, targets: Targets) -> None:
    lead = targets('[decide]\nlead = "pipeline.answered"\n')
    options = CompareOptions(eval_set=bots.eval_set, targets=lead)
    base = bots.make("base", abstention={"decision_right": some(90)})
    new = bots.make("new")
    assert compare(base, new, CompareOptions(eval_set=bots.eval_set)).headline == "BETTER"
    found = compare(base, new, options)
    assert found.headline == "NO CLEAR DIFFERENCE"
    assert found.says[0].startswith("NO CLEAR DIFFERENCE in what you lead by (a fall of ")
    assert found.says[0].endswith(
        "; better: answers or declines correctly on 120 of 120 questions (90 before)."
    )
    assert compare(new, base, options).headline == "WORSE"
    assert not any("gate_run" in text for text in found.says)
    lost = targets('[decide]\nlead = "judged.correctness"\n')
    found = compare(base, new, CompareOptions(eval_set=bots.eval_set, targets=lost))
    assert found.headline == "INCOMPLETE"
    assert "judged.correctness, which you lead by, has no score in either run" in found.says[0]
    one = CompareOptions(eval_set=bots.eval_set, targets=lost, metrics=("decision_right",))
    assert compare(base, new, one).headline == "BETTER", "--metrics names what decides"
