"""report_run.py as a user calls it: what it writes, that its forms agree, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.pages import Blocks, page_of
from tests.processes import refused
from tests.scripts.report_run.answers import CASES, RESULTS, result

import eval_suite
import report_run
import score_pipeline
import score_retrieval
from records.metrics import load_metrics
from storage import RetrievedChunk
from terminal.page import number
from views.report.cases import FIGURE_BYTES, ROW_BYTES

FORMS = ("md", "html")


@pytest.fixture
def run(finished: Any) -> Any:
    finished.write(CASES, RESULTS)
    assert finished.score(score_retrieval.main, "--quiet").exit_code == 0
    return finished


def made(run: Any, *options: str) -> Blocks:
    done = run.score(report_run.main, "--json", *options)
    assert done.exit_code == 0, done.output
    return page_of(json.loads(done.stdout))


def written(run: Any) -> dict[str, bytes]:
    return {form: (run.run / f"report.{form}").read_bytes() for form in FORMS}


def test_two_forms_are_written_and_named_and_are_the_same_bytes_again(run: Any) -> None:
    done = run.score(report_run.main)
    assert done.exit_code == 0, done.output
    assert done.stdout.split() == [str(run.run / f"report.{form}") for form in FORMS]
    before = written(run)
    first = run.score(report_run.main, "--json").stdout
    assert json.loads(first)["title"] == "Report of run run"
    assert json.loads(first)["blocks"][0]["kind"] == "conclusion"
    assert written(run) == before
    assert run.score(report_run.main, "--json").stdout == first


def test_numbers_are_those_of_metrics_json(run: Any) -> None:
    section = load_metrics(run.run / "metrics.json")["sections"]["retrieval"]
    tables = [table for table in made(run).section("Metrics").of("table") if table["rows"]]
    names = tables[0]["columns"]
    rows = {
        row[0].split()[0]: dict(zip(names, row, strict=True)) for t in tables for row in t["rows"]
    }
    assert {name: row["mean"] for name, row in rows.items()} == {
        name: number(mean) for name, mean in section["mean"].items()
    }
    recall = rows["evidence_recall@5"]
    # three cases with gold and an answer: found, found, not found; bare has no gold, broken failed
    assert recall["picture"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert (recall["mean"], recall["n"], recall["coverage"]) == ("0.667", "3", "60 %")
    assert (recall["target"], recall["verdict"]) == ("> 0.7", "? too few to say")
    assert (rows["recall@5"]["target"], rows["recall@5"]["verdict"]) == ("advisory > 0.7", "")


def test_forms_tell_the_same(run: Any) -> None:
    report = made(run)
    texts = {form: content.decode() for form, content in written(run).items()}
    for text in (texts["md"], texts["html"].replace("<wbr>", "")):
        assert report.verdict in text
        for row in report.section("Metrics").table("Main retrieval"):
            assert row["metric"].split()[0] in text
        for case in report.in_full.values():
            assert case.of("quotation")[0]["text"] in text
        assert "no answer in 60 s" in text
        assert "0.667" in text  # recall@5


def test_the_top_has_the_targets_and_how_far_they_are_trusted(run: Any) -> None:
    """Of three cases two have recall 1: 2 / 3, which is on too few cases for a verdict."""
    report = made(run)
    (row,) = report.table("Mean with its 95 % interval")
    assert (row["metric"], row["mean"], row["target"]) == ("evidence_recall@5", "0.667", "> 0.7 ?")
    texts = {form: content.decode() for form, content in written(run).items()}
    assert "| evidence_recall@5 | 0.667 |" in texts["md"]
    assert 'Needed evidence in the first 5 passages</span> <span class="name">' in texts["html"]
    (about,) = [one for one in report.top if one.get("title") == "About this run"]
    assert "Failed calls: 1 of 5." in " ".join(one.get("words", "") for one in about["blocks"])
    for text in (texts["md"], texts["html"]):
        assert "Failed calls: 1 of 5." in text


def test_ranks_errors_and_reasons(run: Any) -> None:
    report = made(run)
    ranks = {row["rank"]: row for row in report.table("Answers by the rank of their first")}
    assert {rank: row["answers"] for rank, row in ranks.items() if row["answers"] != "0"} == {
        "1": "1",
        "3": "1",
        "none found": "1",
    }
    assert "3 answers with gold; of 1 no relevant passage was retrieved." in report.text
    # Without a pipeline an answer that cites its gold is right: first does, third does not.
    assert [ranks[n]["successes"] for n in ("1", "3", "2")] == ["100 %", "0 %", "–"]
    for content in written(run).values():
        assert "attribution_hit = 1" in content.decode()
    (error,) = report.table("Failed calls by kind")
    row = (error["kind"], error["calls"], error["such as"])
    assert row == ("timeout", "1", "no answer in 60 s")
    assert error["cases"]["listed"] == [["broken", 0]]
    reasons = {row["reason"]: row["answers"] for row in report.table("Why scores are missing")}
    assert reasons["no gold"] == "1"
    assert not any("call failed" in reason for reason in reasons)


def test_confidence_is_held_against_what_was_cited(run: Any) -> None:
    """first (0.5) cites its gold; third and never (0.9) do not; bare has no gold.
    ECE = (1 x |1 - 0.5| + 2 x |0 - 0.9|) / 3 = 2.3 / 3; by recall (0.5 + 2 x 0.4) / 3."""
    found = made(run).section("Calibration").text
    assert "Expected calibration error 0.767 over 3 answers" in found
    assert "Success: attribution_hit = 1." in found
    assert "Left out: 1 not scored." in found
    chosen = made(run, "--set", "confidence_by=recall@5").section("Calibration").text
    assert "Expected calibration error 0.433 over 3 answers" in chosen
    assert "Success: recall@5 = 1." in chosen


def test_the_worst_come_first_with_all_that_explains_them(run: Any) -> None:
    report = made(run)
    # the failed call, then what fails, then the others
    assert list(report.in_full) == ["broken", "never", "first", "third", "bare"]
    head = report.section("Cases in full").texts[0]
    assert head.startswith("2 of 5 cases fail: 1 without a gold passage, 1 without a response.")
    assert "All answers are shown in full" in head
    broken, never, third = (report.in_full[name] for name in ("broken", "never", "third"))
    assert "The call failed: timeout: no answer in 60 s" in broken.texts
    assert "fails: no gold passage was retrieved" in never.texts
    assert not [text for text in third.texts if text.startswith("fails")]
    assert ("gold found at 3", "chunk gold") in third.facts
    tags = [[tag["text"] for tag in one.get("tags", ())] for one in third.of("passage")]
    assert tags == [["cited"], [], ["relevant"]]
    assert "It is so [1]." in [one["text"] for one in third.of("quotation")]


def test_a_rule_of_cases_is_held_against_each(run: Any, tmp_path: Path) -> None:
    """third has ndcg@5 0.5: without such a rule no reason to fail."""
    targets = tmp_path / "targets.toml"
    targets.write_text('[cases]\n"retrieval.ndcg@5" = "> 0.6"\n')
    report = made(run, "--targets", str(targets))
    assert report.section("Cases in full").texts[0].startswith("3 of 5 cases fail")
    assert "fails: ndcg@5 is 0.5, must be > 0.6" in report.in_full["third"].texts


def test_the_worst_are_capped_and_may_follow_a_metric(run: Any) -> None:
    assert list(made(run, "--worst", "2").in_full) == ["broken", "never"]
    assert "2 answers are shown in full, 3 are left out" in written(run)["html"].decode()
    assert list(made(run, "--worst-by", "mrr").in_full)[:3] == ["never", "third", "first"]


def test_latency_budgets_and_outcomes_come_from_the_pipeline(finished: Any) -> None:
    times = {"retrieve": 10.0, "total": 40.0}
    finished.write(CASES, [result(case["id"], 1, latency_ms=times) for case in CASES])
    assert finished.score(score_pipeline.main, "--quiet").exit_code == 0
    rows = made(finished).table("Milliseconds by stage")
    stages = {row["stage, ms"]: row["p95"] for row in rows}
    assert stages == {"retrieve": "10.0*", "total": "40.0*"}
    assert '<title id="latency-t">Latency by stage</title>' in written(finished)["html"].decode()


def test_huge_answers_do_not_make_a_huge_page(
    finished: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    report = made(finished)
    assert (finished.run / "report.html").stat().st_size < 5_000_000
    shown = len(report.in_full)
    assert 10 < shown < 400
    page = written(finished)["html"].decode()
    assert f"{shown} answers are shown in full, {400 - shown} are left out" in page
    assert f"… {len(long) - 6000:,} more characters" in page
    monkeypatch.setattr("views.report.build.PAGE_BYTES", FIGURE_BYTES + 400 * ROW_BYTES)
    assert not made(finished).in_full, "a list of 400 takes all the room"


def test_a_run_of_which_only_metrics_json_is_kept(run: Any, tmp_path: Path) -> None:
    """That is what git holds of a run."""
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "metrics.json").write_bytes((run.run / "metrics.json").read_bytes())
    report = made(run, "--run", str(folder))
    notes = [one["words"] for one in report.top if one["kind"] == "prose"]
    assert notes == [
        "Without score file, so without single answers: retrieval.",
        "results.jsonl is not there: no answer, error or confidence is shown.",
    ]
    assert (report.in_full, report.listed) == ({}, [])
    assert "config.json is not there." in report.texts
    assert "Not shown: no answer counts (none was read)." in report.texts
    for form in ("md", "html"):
        text = (folder / f"report.{form}").read_text("utf-8")
        assert "Failed calls: 1. Why is not known without results.jsonl." in text
        assert "No call failed" not in text
        assert "Every answer has every score" not in text
    assert (folder / "report.html").exists()


def test_missing_means_by_slice_are_explained(run: Any) -> None:
    slices = made(run).section("Slices")
    assert slices.of("table")
    assert not slices.text.startswith("Without")
    (run.run / "slices.json").unlink()
    again = made(run).section("Slices")
    assert again.of("table") == []
    words = again.text
    assert words.startswith("Without means by slice: retrieval. ")
    assert f"{run.run / 'slices.json'}, which git leaves out, is missing" in words
    assert "No case has a category" not in (run.run / "report.html").read_text("utf-8")
    for name in ("report.html", "report.md"):
        text = (run.run / name).read_text("utf-8").replace("\\", "")
        assert "eval_suite.py --run run makes it" in text
    assert run.score(eval_suite.main, "--quiet").exit_code == 0
    assert made(run).section("Slices").of("table")


def test_a_changed_eval_set_is_told(run: Any) -> None:
    path = run.folder / "set.jsonl"
    path.write_text(path.read_text() + '{"id": "new", "question": "New?"}\n')
    note = "The eval set has changed since the run was scored; its texts may differ."
    assert note in made(run).texts


def test_forms_and_place_are_chosen(run: Any, tmp_path: Path) -> None:
    done = run.score(
        report_run.main, "--format", "html, md", "--output", str(tmp_path / "new" / "r1.2")
    )
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"r1.2.html", "r1.2.md"}
    assert not (run.run / "report.html").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--format", "pdf"], "name some of md, html"),
        (["--worst-by", "nonsense"], "'nonsense': the run has no such metric; choose one of: "),
        (["--set", "confidence_by=nonsense"], "'nonsense': the run has no such metric"),
    ],
)
def test_a_wrong_wish_is_one_sentence_and_writes_nothing(
    run: Any, options: list[str], told: str
) -> None:
    assert told in refused(run.score(report_run.main, *options))
    assert list(run.run.glob("report.*")) == []


def test_an_unscored_run_is_told_what_to_do(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    assert "metrics.json: no such file; score the run first" in refused(
        finished.score(report_run.main)
    )


def test_a_folder_that_cannot_be_written_keeps_the_old_report(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be made" in refused(
        run.score(report_run.main, "--output", str(tmp_path / "file" / "report"))
    )
