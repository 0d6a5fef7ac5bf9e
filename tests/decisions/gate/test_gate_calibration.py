"""[gates.calibration]: judged metrics count only with a judge that people have checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.processes import call_script

from storage import ResultsWriter, RetrievedChunk, RunConfig, TestResult

JUDGE = {"provider": "ollama", "model": "tiny", "digest": "sha256:1234", "build": None}
PROMPTS = {
    "groundedness": {"version": 1, "sha256": "aa"},
    "correctness": {"version": 2, "sha256": "bb"},
    "relevance": {"version": 1, "sha256": "cc"},
}
PARAMETERS = {"temperature": 0.0, "seed": 0}
RULE = '[gates.calibration]\n"judged.groundedness" = "kappa >= 0.6"\n'
NAME = "judged.groundedness:calibration"


def calibration(metric: str = "groundedness", **changes: Any) -> dict[str, Any]:
    """What calibrate_judge.py leaves: kappa .7 (.62 to .78), balanced accuracy .85 (.8 to .9)."""
    return {
        "schema": 1,
        "metric": metric,
        "judge": JUDGE,
        "prompt": {"name": metric} | PROMPTS[metric],
        "parameters": PARAMETERS,
        "n": 120,
        "too_few": False,
        "figures": {
            "kappa": {"value": 0.7, "ci95": [0.62, 0.78]},
            "balanced_accuracy": {"value": 0.85, "ci95": [0.8, 0.9]},
            "auroc": {"value": None, "ci95": None},
        },
        "attack": None,
    } | changes


@pytest.fixture
def judged(gate: Any) -> Any:
    """The gate's run, judged."""
    scores = {"groundedness": [4.0] * 4, "fact_recall": [1.0] * 4, "context_precision": [1.0] * 4}
    gate.new.scores = {"judged": scores}
    judge = {"identity": JUDGE, "prompts": PROMPTS, "parameters": PARAMETERS}
    gate.new.more = {"judged": {"options": {"judge": judge}}}
    gate.new.write()
    gate.rules(RULE)
    return gate


def put(judged: Any, *found: dict[str, Any], name: str = "calibration.json") -> None:
    for one in found:
        (judged.new.folder / name).write_text(json.dumps(one), encoding="utf-8")


def test_a_judge_that_nobody_held_against_people_or_that_is_not_known_fails(judged: Any) -> None:
    said = judged.failures()
    assert set(said) == {NAME}
    assert said[NAME].startswith("its judge was never compared with people; label with")
    put(judged, calibration())
    assert judged.failures() == {}
    put(judged, calibration())
    judged.new.more = {}
    judged.new.write()
    assert "do not say who judged" in judged.failures()[NAME]


@pytest.mark.parametrize(
    ("rule", "changes", "says"),
    [
        # The interval counts, not the value: .62 keeps .6, and .62 does not keep .65.
        ("kappa >= 0.6", {}, ""),
        ("kappa >= 0.65", {}, "kappa 0.700 (95 %: 0.620 – 0.780): the whole interval must be"),
        ("kappa >= 0.9", {}, "kappa 0.700 (95 %: 0.620 – 0.780), must be >= 0.9"),
        ("kappa > 0.6, balanced_accuracy >= 0.8", {}, ""),
        ("kappa > 0.6, balanced_accuracy > 0.8", {}, "balanced accuracy 0.850 (95 %: 0.800"),
        ("auroc > 0.5", {}, "auroc is not known for these labels"),
        ("calibrated", {}, ""),
        ("calibrated", {"judge": JUDGE | {"digest": "sha256:2"}}, "digest sha256:2 → sha256:1234"),
        ("calibrated", {"prompt": {"name": "groundedness"}}, "another prompt was calibrated"),
        ("calibrated", {"parameters": {"temperature": 1.0}}, "temperature 1.0 → 0.0"),
        ("calibrated", {"attack": {"passed": False}}, "attacks in the answers move"),
        (
            "calibrated",
            {"too_few": True, "figures": None, "supported": 40, "unsupported": 3},
            "40 supported and 3 unsupported claims are labelled",
        ),
    ],
)
def test_each_reason_to_refuse(judged: Any, rule: str, changes: Any, says: str) -> None:
    judged.rules(f'[gates.calibration]\n"judged.groundedness" = "{rule}"\n')
    put(judged, calibration(**changes))
    said = judged.failures()
    assert set(said) == ({NAME} if says else set())
    assert says in "".join(said.values())


def test_a_stored_calibration_of_the_same_judge_counts(judged: Any) -> None:
    """Beside the gates file; the first that fits, whatever stands before it."""
    other = calibration(judge=JUDGE | {"model": "old"})
    put(judged, other)
    files = 'files = ["stored/one.json", "stored/two.json"]\n'
    judged.rules(RULE + files)
    done = judged.run()
    assert done.returncode == 2
    assert "one.json: no such file" in " ".join(done.stderr.split())
    (judged.folder / "stored").mkdir()
    for name, found in (("one", other), ("two", calibration())):
        (judged.folder / "stored" / f"{name}.json").write_text(json.dumps(found))
    assert judged.failures() == {}
    (judged.folder / "stored" / "two.json").write_text(json.dumps(other))
    assert "model old → tiny" in judged.failures()[NAME]


def test_each_metric_by_the_verdicts_that_it_is_counted_from(judged: Any) -> None:
    """fact_recall is counted from correctness; passages nobody can label."""
    judged.rules('[gates.calibration]\n"judged.*" = "calibrated"\n')
    put(judged, calibration())
    said = judged.failures()
    assert set(said) == {"judged.fact_recall:calibration", "judged.context_precision:calibration"}
    assert "--metric correctness" in said["judged.fact_recall:calibration"]
    assert "groundedness and correctness" in said["judged.context_precision:calibration"]
    put(judged, calibration("correctness"), name="calibration_correctness.json")
    assert set(judged.failures()) == {"judged.context_precision:calibration"}
    judged.rules('[gates.calibration]\n"judged.[fg]*" = "calibrated"\n')
    assert judged.failures() == {}
    shown = " ".join(judged.run("-v").stdout.split())
    assert "judged.[fg]*:calibration calibrated (2)" in shown


def test_a_rule_that_fits_no_judged_metric_fails(judged: Any, make_run: Any) -> None:
    put(judged, calibration())
    judged.rules('[gates.calibration]\n"judged.no_such" = "calibrated"\n')
    assert "no metric of the run matches" in judged.failures()["judged.no_such:calibration"]
    judged.new.scores = judged.scores(32, 4)
    judged.new.more = {}
    judged.new.write()
    judged.rules(RULE)
    assert "no metric of the run matches" in judged.failures()[NAME]


def test_all_outputs_hold_it_and_accept_needs_its_own_name(judged: Any) -> None:
    judged.rules(RULE + '[judged]\ngroundedness = ">= 4.5"\n')
    done = judged.run("--github", "--junit", "g.xml", "--markdown", "g.md")
    assert done.returncode == 1
    assert (
        f"::error file=gates.toml,line=2,title=Gate failed%3A {NAME}".replace(
            "%3A judged.groundedness:", "%3A judged.groundedness%3A"
        )
        in done.stdout
    )
    (failure,) = ET.parse(judged.folder / "g.xml").iterfind(".//failure[@type='calibration']")
    assert "its judge was never compared" in str(failure.get("message"))
    assert NAME in (judged.folder / "g.md").read_text("utf-8")
    # who accepts a lower groundedness does not accept a judge that nobody checked
    assert set(judged.failures("--accept", "judged.groundedness=known")) == {NAME}
    both = ("--accept", "judged.groundedness=known", "--accept", f"{NAME}=labelling this week")
    assert judged.failures(*both) == {}


def test_the_whole_chain(tmp_path: Path) -> None:
    """Judged by the rules, labelled, calibrated and gated, each by its own script.

    32 answers repeat their passage and 32 do not; people agree with the judge on all of them, so
    kappa is 1. Its interval, by the claims, reaches below 0.99.
    """
    cases = []
    writer = ResultsWriter(tmp_path / "results", "run", store_full_text=True)
    writer.write_config(RunConfig("run"))
    for n in range(64):
        cases.append({"id": f"c{n}", "question": f"What does plan {n} cost?"})
        text = f"Plan {n} costs exactly seven euros every month."
        answer = text if n % 2 else "Penguins build their nests from pebbles in the spring."
        chunk = RetrievedChunk("k", f"{n}.md", f"{n}.md", text=text, rank=1)
        writer.write_result(TestResult(f"c{n}", answer=answer, retrieved=[chunk]))
    writer.finish(case["id"] for case in cases)
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(one) + "\n" for one in cases))
    label = {"claim_id": "1", "annotator": "maria"}
    labels = [
        label | {"case_id": f"c{n}", "label": "supported" if n % 2 else "not_supported"}
        for n in range(64)
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(one) + "\n" for one in labels))

    def call(script: str, *words: str, code: int = 0) -> str:
        places = ("--results-dir", "results", "--eval-set", "set.jsonl")
        done = call_script(script, *words, *places, cwd=tmp_path, COLUMNS="200")
        assert done.returncode == code, done.stderr
        return done.stdout

    call("judge_answers", "--judge", "local", "--metrics", "groundedness")
    (tmp_path / "g.toml").write_text(RULE.replace("0.6", "0.5"))
    (tmp_path / "strict.toml").write_text(RULE.replace("0.6", "0.99"))
    assert "never compared" in call("gate_run", "--gates", "g.toml", code=1)
    call("calibrate_judge", "--labels-file", "labels.jsonl")
    assert "Gate passed: 2 checks passed, 2 skipped" in call("gate_run", "--gates", "g.toml")
    assert "the whole interval must be >= 0.99" in call(
        "gate_run", "--gates", "strict.toml", code=1
    )
    path = tmp_path / "results" / "run" / "config.json"
    assert "local" in path.read_text()
