"""eval_suite.py --baseline: regressions, lost numbers, runs that were measured otherwise."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from tests.metrics_files import write_metrics

import gate_run
from decisions.case_rules import CaseRules
from decisions.committed import outcome_of
from eval_suite import main
from records.metrics import load_metrics


def test_a_regression_against_a_baseline_fails(
    finished: Any, suite: Any, case: Any, result: Any, targets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """12 of 30 lose their passage, case by case: p = 2^-12. Only primary metrics can regress; the
    report, its metrics.json and the run folder are the same baseline, and a gate says the same."""
    monkeypatch.setattr("decisions.primary.BUILT_IN", ("retrieval.recall@5", "pipeline.answered"))
    cases = [case(f"q{n}", gold_supports=[], relevant_docs=[f"q{n}.md"]) for n in range(30)]
    runs = finished.folder / "results"

    def ask(found: int, name: str) -> None:
        paths = [f"q{n}.md" if n < found else "owls.md" for n in range(30)]
        finished.write(cases, [result(f"q{n}", path) for n, path in enumerate(paths)])
        suite("--sections", "retrieval")
        shutil.move(finished.run, runs / name)

    ask(30, "before")
    ask(18, "after")
    ask(28, "few")  # 2 of 30 lose their passage: p = 2^-2, two-sided 2^-1
    for run, base in (("few", "before"), ("before", "few")):
        few = ("--run", run, "--baseline", str(runs / base), "--sections", "retrieval")
        changes = {one["metric"]: one for one in suite(*few)["changes"]}
        assert changes["recall@5"]["verdict"] == "no evidence"
        assert changes["ndcg@5"]["verdict"] == ("lower" if run == "few" else "higher")
    done = finished.score(main, *few)
    assert " 0 regressions; not tested: " in " ".join(done.stdout.split())
    said = outcome_of(runs / "before", runs / "few", CaseRules()).says[0]
    assert said.startswith("NO CLEAR DIFFERENCE: 30 cases could miss ±")
    assert said in done.stdout
    assert suite(*few)["says"][0] == said
    forms = ("before", "before/metrics.json", "before/suite.json")
    shutil.copytree(runs / "after", runs / "run")
    for form in forms:
        words = ("--run", "run", "--baseline", str(runs / form), "--sections", "retrieval")
        found = suite(*words, code=1)
        verdicts = {one["metric"]: one for one in found["changes"]}
        assert verdicts["recall@5"]["verdict"] == "regression"
        assert verdicts["recall@5"]["p"] == pytest.approx(2**-12, abs=2e-4)
        assert verdicts["recall@5"]["worse_by"] == pytest.approx(0.4, abs=1e-6)
        assert verdicts["ndcg@5"]["verdict"] == "lower", "explored, so it cannot fail"
        assert found["caveats"] == []
    line = ("--run", "run", "--baseline", "before", "--gates", targets("g.toml", "[gates]\n"))
    checks = json.loads(finished.score(gate_run.main, *line, "--json").stdout)["checks"]
    assert {c["name"] for c in checks if c["status"] == "failed"} == {"retrieval.recall@5"}

    against = ("--run", "run", "--sections", "retrieval", "--baseline")
    done = finished.score(main, *against, str(runs / "before"))
    assert "regression: retrieval recall@5 1.000 → 0.600 (worse by 0.400, p < .001)" in done.stdout
    shutil.rmtree(runs / "run")
    shutil.copytree(runs / "before", runs / "run")
    better = suite(*against, str(runs / "after"))
    verdicts = {one["metric"]: one["verdict"] for one in better["changes"]}
    assert (verdicts["recall@5"], verdicts["ndcg@5"]) == ("better", "higher")


def test_metrics_json_is_a_baseline_and_a_lost_number_fails(
    finished: Any, suite: Any, write: Any
) -> None:
    write()
    suite()
    baseline = finished.folder / "metrics.json"
    baseline.write_bytes((finished.run / "metrics.json").read_bytes())
    assert suite("--baseline", str(baseline))["passed"] is True
    (finished.folder / "labels" / "safety_labels.jsonl").unlink()
    found = suite("--baseline", str(baseline), code=1)
    lost = {one["section"] for one in found["changes"] if one["verdict"] == "no longer measured"}
    assert lost == {"safety"}
    said = {one["reason"] for one in found["changes"] if one["section"] == "safety"}
    assert ["no such file; write attacks" in reason for reason in said] == [True]


def test_a_baseline_without_scores_of_its_cases_gives_no_verdict(
    finished: Any, suite: Any, write: Any
) -> None:
    """As of a set of more than 5,000 cases. Its means are compared all the same."""
    write()
    suite()
    metrics = load_metrics(finished.run / "metrics.json")
    del metrics["primary"], metrics["primary_metrics"]
    baseline = finished.folder / "base.json"
    write_metrics(baseline, metrics)
    found = suite("--baseline", str(baseline))
    reasons = {one["reason"] for one in found["changes"]} - {""}
    assert [reason.partition(": ")[0] for reason in reasons] == ["no verdict"]
    assert "has no scores of its cases in metrics.json" in reasons.pop()
    assert (found["passed"], found["says"], found["headline"]) == (True, [], None)
    shown = " ".join(finished.score(main, "--baseline", str(baseline)).stdout.split())
    assert "; no verdict: run has no scores of its cases" in shown
    dropped = metrics["sections"]["pipeline"]["mean"]
    dropped["answered"] += 0.5
    write_metrics(baseline, metrics)
    assert suite("--baseline", str(baseline), "--set", "max_drop=0.4", code=1)["passed"] is False


def test_a_section_that_vanished_is_a_regression(finished: Any, suite: Any, write: Any) -> None:
    """A plugin's and a judge's numbers, of which this run has none; smoke leaves the judge out."""
    write()
    section = {"mean": {"m": 0.5}, "ci95": {"m": None}, "definitions": {"m": "m@1"}}
    baseline = finished.folder / "base.json"
    write_metrics(baseline, {"sections": {"custom": section, "judge": section}})
    found = suite("--baseline", str(baseline), code=1)["changes"]
    assert [(one["section"], one["verdict"]) for one in found] == [
        ("custom", "no longer measured"),
        ("judge", "no longer measured"),
    ]
    assert "the run has no such section" in found[0]["reason"]
    shown = " ".join(finished.score(main, "--baseline", str(baseline)).stdout.split())
    assert "judge m was 0.500, is no longer measured (the run has no such section" in shown
    smoke = suite("--baseline", str(baseline), "--suite", "smoke", code=1)["changes"]
    assert [one["section"] for one in smoke] == ["custom"]
    assert suite("--baseline", str(baseline), "--sections", "retrieval")["changes"] == []


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 2, "sections": {"retrieval": {}}}'])
def test_a_faulty_baseline_is_refused_before_anything_is_scored(
    finished: Any, text: str, write: Any
) -> None:
    write()
    path = finished.folder / "base.json"
    path.write_text(text)
    done = finished.score(main, "--baseline", str(path))
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert not (finished.run / "scores").exists()
    assert finished.score(main, "--baseline", str(finished.folder / "no.json")).exit_code == 2


def judged_by(model: str) -> dict[str, Any]:
    """The section of a judge, as judge_answers.py leaves it."""
    identity = {"provider": "vllm", "model": model, "digest": None}
    return {
        "mean": {"groundedness": 4.0},
        "ci95": {"groundedness": [3.5, 4.5]},
        "definitions": {"groundedness": "judged/groundedness@1"},
        "n": {"groundedness": 4},
        "not_applicable": {"groundedness": 0},
        "failed": {"groundedness": 0},
        "options": {"judge": {"identity": identity, "parameters": {"temperature": 0}}},
    }


def test_a_baseline_of_another_judge_is_not_comparable(
    finished: Any, suite: Any, write: Any
) -> None:
    """The means are equal, so nothing regressed: only the judge is another one."""
    write()
    suite()
    path = finished.run / "metrics.json"
    kept = json.loads(path.read_text())
    kept["sections"]["judged"] = judged_by("small")
    path.write_text(json.dumps(kept))
    base = finished.folder / "base.json"
    base.write_bytes(path.read_bytes())
    assert suite("--baseline", str(base))["not_comparable"] is None

    kept["sections"]["judged"] = judged_by("large")
    base.write_text(json.dumps(kept))
    found = suite("--baseline", str(base), code=1)
    assert found["passed"] is False
    assert {one["verdict"] for one in found["changes"]} == {"same"}
    assert "judged" not in {one["section"] for one in found["changes"]}, "left out"
    said = (
        "judged is left out, because it was scored differently (base → new): "
        "judge.identity.model: large → small; score one of the runs again like the other "
        "(judge_answers.py)"
    )
    assert found["not_comparable"] == said
    done = finished.score(main, "--baseline", str(base))
    assert f"not comparable: {said}" in " ".join(done.stdout.split())
    last = " ".join(done.stdout.split())
    assert last.endswith("; the baseline is not comparable.")
    assert "no verdict: 4 cases; at least 6 are needed" in last
    # who asks for other sections compares nothing that the judge decided
    assert suite("--baseline", str(base), "--sections", "retrieval")["passed"] is True


def test_a_report_whose_numbers_changed_or_are_gone_is_no_baseline(
    finished: Any, suite: Any, write: Any
) -> None:
    """The report names its metrics.json and the hash."""
    write()
    suite("--output", str(finished.folder / "out" / "report"))
    base = finished.folder / "out" / "report.json"
    named = json.loads(base.read_text())["metrics"]
    assert named["path"] == "../results/run/metrics.json"
    assert suite("--baseline", str(base))["passed"] is True

    path = finished.run / "metrics.json"
    path.write_text(path.read_text() + "\n")
    done = finished.score(main, "--baseline", str(base))
    assert done.exit_code == 2
    assert "metrics.json, which has changed since the report was written" in done.stderr
    path.unlink()
    done = finished.score(main, "--baseline", str(base))
    assert done.exit_code == 2
    assert "report.json: its numbers are in" in done.stderr
    assert "run eval_suite.py again, or give a metrics.json instead" in done.stderr


def test_the_smoke_suite_keeps_its_numbers_beside_its_report(
    finished: Any, suite: Any, write: Any
) -> None:
    """They are of some cases only, so they are not in the run's metrics.json."""
    write()
    found = suite("--suite", "smoke", "--sections", "retrieval")
    written = json.loads((finished.run / "suite-smoke.json").read_text())
    assert written["metrics"]["path"] == "suite-smoke.metrics.json"
    assert not (finished.run / "metrics.json").exists()
    base = finished.run / "suite-smoke.json"
    assert (
        load_metrics(base)["sections"]["retrieval"]["mean"]
        == (found["sections"]["retrieval"]["mean"])
    )
    again = suite("--suite", "smoke", "--sections", "retrieval", "--baseline", str(base))
    assert {one["verdict"] for one in again["changes"]} == {"same"}


def test_a_baseline_with_other_labels_or_another_set_is_not_comparable(
    finished: Any, suite: Any, write: Any, targets: Any
) -> None:
    write()
    sections = ("--sections", "retrieval")
    suite(*sections)
    old = finished.folder / "results" / "old"
    shutil.copytree(finished.run, old)
    forms = [str(path) for path in (old / "suite.json", old / "metrics.json", old)]
    assert {suite("--baseline", base, *sections)["not_comparable"] for base in forms} == {None}
    label = {"case_id": "good0", "expected_key_facts": ["Cats sleep."]}
    labels = finished.folder / "labels" / "pipeline_labels.jsonl"
    labels.write_text(json.dumps(label) + "\n")
    rules = targets("g.toml", '[gates.baseline]\n"retrieval.*" = "none"\n')
    alike = "the runs are not measured alike (baseline → run): labels (scored): "
    for base in forms:
        said = suite("--baseline", base, *sections, code=1)["not_comparable"]
        assert said.startswith(alike)
        words = ("--run", "run", "--gates", rules, "--baseline", base, "--json")
        gate = json.loads(finished.score(gate_run.main, *words).stdout)
        (check,) = [one for one in gate["checks"] if one["name"] == "comparable"]
        assert (check["status"], check["reason"]) == ("failed", said)
    labels.unlink()
    with open(finished.folder / "set.jsonl", "a") as file:
        file.write("\n")
    assert "eval set (scored): " in suite("--baseline", base, *sections, code=1)["not_comparable"]
