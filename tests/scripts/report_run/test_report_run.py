"""report_run.py as a user calls it: what it writes, that its forms agree, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.scripts.report_run.answers import CASES, result

import eval_suite
import report_run
import score_pipeline
import score_retrieval
from records.metrics import load_metrics
from storage import RetrievedChunk

FORMS = ("md", "json", "html")


def made(run: Any, *options: str) -> dict[str, Any]:
    done = run.score(report_run.main, "--json", *options)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def written(run: Any) -> dict[str, bytes]:
    return {form: (run.run / f"report.{form}").read_bytes() for form in FORMS}


def test_three_forms_are_written_and_named_on_stdout(run: Any) -> None:
    done = run.score(report_run.main)
    assert done.exit_code == 0, done.output
    assert done.stdout.split() == [str(run.run / f"report.{form}") for form in FORMS]
    assert json.loads(written(run)["json"])["run_id"] == "run"


def test_json_on_stdout_is_the_file(run: Any) -> None:
    made(run)
    done = run.score(report_run.main, "--json")
    assert done.stdout.encode() == written(run)["json"]


def test_the_same_run_gives_the_same_bytes(run: Any) -> None:
    made(run)
    before = written(run)
    made(run)
    assert written(run) == before


def test_numbers_are_those_of_metrics_json(run: Any) -> None:
    section = load_metrics(run.run / "metrics.json")["sections"]["retrieval"]
    (part,) = made(run)["perspectives"]
    assert {one["metric"]: one["mean"] for one in part["metrics"]} == section["mean"]
    recall = next(one for one in part["metrics"] if one["metric"] == "evidence_recall@5")
    # three cases with gold and an answer: found, found, not found; bare has no gold, broken failed
    assert recall["mean"] == pytest.approx(2 / 3, abs=1e-6)
    assert (recall["n"], recall["not_applicable"], recall["failed"]) == (3, 1, 1)
    assert recall["coverage"] == 0.6
    assert (recall["target"], recall["passed"]) == ("> 0.7", False)
    assert recall["band"] == "too few to tell"  # one document: no interval, so no band either
    shown = next(one for one in part["metrics"] if one["metric"] == "recall@5")
    assert (shown["target"], shown["passed"]) == (None, None)
    assert shown["advisory"] == "advisory > 0.7"


def test_forms_tell_the_same(run: Any) -> None:
    report = made(run)
    texts = {form: content.decode() for form, content in written(run).items()}
    for text in (texts["md"], texts["html"].replace("<wbr>", "")):
        assert report["verdict"]["says"] in text
        for finding in report["diagnosis"]:
            assert finding["says"] in text.replace("&#39;", "'")
        for metric in report["perspectives"][0]["metrics"]:
            assert metric["metric"] in text
        for answer in report["worst"]["listed"]:
            assert answer["question"]["text"] in text
        assert "no answer in 60 s" in text
        assert "0.667" in text  # recall@5


def test_the_top_names_the_targets_that_are_not_kept(run: Any) -> None:
    """Of three cases two have recall 1; 2 / 3 misses 0.7, and ndcg (1 + 0.5 + 0) / 3 misses 0.6."""
    report = made(run)
    missed = [(one["section"], one["metric"]) for one in report["verdict"]["missed"]]
    assert missed == [("retrieval", "evidence_recall@5"), ("retrieval", "ndcg@5")]
    texts = {form: content.decode() for form, content in written(run).items()}
    assert "Missed: evidence_recall@5 0.667 (> 0.7), ndcg@5 0.500 (> 0.6)" in texts["md"]
    aim = '<a href="#metrics-1">Needed evidence in the first 5 passages 0.667 <span class="name">'
    assert aim in texts["html"]
    for text in (texts["md"], texts["html"]):
        assert "Failed calls: 1 of 5." in text
        assert "fewer than 20 cases" in text


def test_ranks_errors_and_reasons(run: Any) -> None:
    report = made(run)
    ranks = {one["rank"]: one["count"] for one in report["first_relevant"]["bins"]}
    assert {rank: n for rank, n in ranks.items() if n} == {"1": 1, "3": 1}
    assert (report["first_relevant"]["n"], report["first_relevant"]["not_found"]) == (3, 1)
    # Without a pipeline an answer that cites its gold is right: first does, third does not.
    shares = {one["rank"]: one["success"] for one in report["first_relevant"]["bins"]}
    assert (shares["1"], shares["3"], shares["2"]) == (1.0, 0.0, None)
    for content in written(run).values():
        assert "attribution_hit = 1" in content.decode()
    assert report["errors"] == [
        {"kind": "timeout", "count": 1, "example": "no answer in 60 s", "cases": ["broken"]}
    ]
    reasons = {one["reason"]: one["answers"] for one in report["not_applicable"]}
    assert reasons["no gold"] == 1
    assert not any("call failed" in reason for reason in reasons)


def test_confidence_is_held_against_what_was_cited(run: Any) -> None:
    """first (0.5) cites its gold; third and never (0.9) do not; bare has no gold.
    ECE = (1 x |1 - 0.5| + 2 x |0 - 0.9|) / 3 = 2.3 / 3."""
    found = made(run)["confidence"]
    assert found["success"] == "attribution_hit = 1"
    assert (found["n"], found["left_out"]) == (3, {"not scored": 1})
    assert found["ece"] == pytest.approx(2.3 / 3, abs=1e-6)
    chosen = made(run, "--confidence-by", "recall@5")["confidence"]
    assert chosen["success"] == "recall@5 = 1"
    assert chosen["ece"] == pytest.approx((0.5 + 2 * 0.4) / 3, abs=1e-6)


def test_the_worst_come_first_with_all_that_explains_them(run: Any) -> None:
    worst = made(run)["worst"]
    # the failed call, then what fails, then the others
    ids = [one["case_id"] for one in worst["listed"]]
    assert ids == ["broken", "never", "first", "third", "bare"]
    assert (worst["verdicts"]["failing"], worst["left_out"]) == (2, 0)
    assert worst["verdicts"]["reasons"] == {"no_response": 1, "no_gold": 1}
    assert worst["listed"][0]["error"] == "timeout: no answer in 60 s"
    assert worst["listed"][1]["fails"] == ["no gold passage was retrieved"]
    third = worst["listed"][3]
    assert (third["verdict"], third["fails"]) == ("ok", [])
    assert third["gold"] == [{"place": "gold", "quote": None, "rank": 3}]
    assert [one["gold"] for one in third["retrieved"]] == [False, False, True]
    assert [one["cited"] for one in third["retrieved"]] == [True, False, False]
    assert third["answer"]["text"] == "It is so [1]."


def test_targets_of_means_are_never_held_against_one_case(run: Any, tmp_path: Path) -> None:
    """third has ndcg@5 0.5 and first a mattr of 0: no reason for either to fail."""
    targets = tmp_path / "targets.toml"
    targets.write_text('[retrieval]\n"ndcg@5" = "> 0.6"\nmrr = "> 0.5"\n')
    worst = made(run, "--targets", str(targets))["worst"]
    assert worst["verdicts"]["failing"] == 2
    targets.write_text('[cases]\n"retrieval.ndcg@5" = "> 0.6"\n')
    worst = made(run, "--targets", str(targets))["worst"]
    assert worst["verdicts"]["failing"] == 3
    third = next(one for one in worst["listed"] if one["case_id"] == "third")
    assert third["fails"] == ["ndcg@5 is 0.5, must be > 0.6"]


def test_the_worst_are_capped_and_may_follow_a_metric(run: Any) -> None:
    worst = made(run, "--worst", "2")["worst"]
    assert [one["case_id"] for one in worst["listed"]] == ["broken", "never"]
    assert worst["left_out"] == 3
    assert "2 answers are shown in full, 3 are left out" in written(run)["html"].decode()
    by = made(run, "--worst-by", "mrr")["worst"]
    assert [one["case_id"] for one in by["listed"]][:3] == ["never", "third", "first"]


def test_latency_budgets_and_outcomes_come_from_the_pipeline(finished: Any) -> None:
    times = {"retrieve": 10.0, "total": 40.0}
    finished.write(CASES, [result(case["id"], 1, latency_ms=times) for case in CASES])
    assert finished.score(score_pipeline.main, "--quiet").exit_code == 0
    found = made(finished)["latency"]
    stages = {one["stage"]: one["p95"] for one in found["stages"]}
    assert stages == {"retrieve": 10.0, "total": 40.0}
    assert '<title id="latency-t">Latency by stage</title>' in written(finished)["html"].decode()


def test_huge_answers_do_not_make_a_huge_page(finished: Any) -> None:
    """400 answers of hostile text, a megabyte each as the bot gave them."""
    cases: list[dict[str, Any]] = [{"id": f"c{n}", "relevant_chunks": ["gold"]} for n in range(400)]
    long = "<\u202e&" * 40_000
    results = []
    for case in cases:
        one = result(case["id"], None, answer=long)
        one.retrieved = [RetrievedChunk(chunk_id=f"x{n}", text=long[:9000], rank=n) for n in (1, 2)]
        results.append(one)
    finished.write(cases, results)
    assert finished.score(score_retrieval.main, "--quiet").exit_code == 0
    worst = made(finished)["worst"]
    assert (finished.run / "report.html").stat().st_size < 5_000_000
    assert 10 < len(worst["listed"]) < 400
    assert len(worst["listed"]) + worst["left_out"] == worst["verdicts"]["failing"] == 400
    page = written(finished)["html"].decode()
    assert (
        f"{len(worst['listed'])} answers are shown in full, {worst['left_out']} are left out"
        in page
    )
    assert worst["listed"][0]["answer"]["left_out"] == len(long) - 6000


def test_a_run_of_which_only_metrics_json_is_kept(run: Any, tmp_path: Path) -> None:
    """That is what git holds of a run."""
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "metrics.json").write_bytes((run.run / "metrics.json").read_bytes())
    report = made(run, "--run", str(folder))
    assert report["notes"] == [
        "Without score file, so without single answers: retrieval.",
        "results.jsonl is not there: no answer, error or confidence is shown.",
    ]
    assert report["worst"]["listed"] == report["errors"] == report["configuration"] == []
    assert "reason" in report["confidence"]
    for form in ("md", "html"):
        text = (folder / f"report.{form}").read_text("utf-8")
        assert "Failed calls: 1. Why is not known without results.jsonl." in text
        assert "No call failed" not in text
        assert "Every answer has every score" not in text
    assert (folder / "report.html").exists()


def test_missing_means_by_slice_are_explained(run: Any) -> None:
    """Each form says which file is missing and what makes it; then all is as before."""
    before = made(run)
    assert before["slices"]
    assert before["slices_missing"] == ""
    (run.run / "slices.json").unlink()
    again = made(run)
    assert again["slices"] == []
    words = again["slices_missing"]
    assert words.startswith("Without means by slice: retrieval. ")
    assert f"{run.run / 'slices.json'}, which git leaves out, is missing" in words
    assert "No case has a category" not in (run.run / "report.html").read_text("utf-8")
    for name in ("report.html", "report.md"):
        text = (run.run / name).read_text("utf-8").replace("\\", "")
        assert "eval_suite.py --run run makes it" in text
    assert run.score(eval_suite.main, "--quiet").exit_code == 0
    assert made(run)["slices_missing"] == ""


def test_a_changed_eval_set_is_told(run: Any) -> None:
    path = run.folder / "set.jsonl"
    path.write_text(path.read_text() + '{"id": "new", "question": "New?"}\n')
    assert made(run)["notes"] == [
        "The eval set has changed since the run was scored; its texts may differ."
    ]


def test_forms_and_place_are_chosen(run: Any, tmp_path: Path) -> None:
    done = run.score(
        report_run.main, "--format", "html, md", "--output", str(tmp_path / "new" / "r1.2")
    )
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"r1.2.html", "r1.2.md"}
    assert not (run.run / "report.html").exists()
