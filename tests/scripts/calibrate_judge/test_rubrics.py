"""calibrate_judge.py --metric rubrics.NAME: lines of the screen, kappa, confusion, means."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.rows import each_row
from tests.scripts.conftest import FinishedRun
from tests.scripts.judging.conftest import LABELS, JudgedRun, Server, helpful_as_said, result
from tests.scripts.judging.conftest import server as server

import calibrate_judge
import gate_run
from ragmetrics.stats.agreement import weighted_kappa
from records import rubrics
from records.results import TestResult
from storage import RetrievedChunk

NAMES = [f"case{number:02}" for number in range(60)]


@pytest.fixture
def run(tmp_path: Path, server: Server) -> JudgedRun:
    """Sixty answers of twelve documents, judged in turn not, partly and wholly helpful."""
    made = JudgedRun(FinishedRun(tmp_path))
    results: list[TestResult] = []
    for number, name in enumerate(NAMES):
        chunks: list[RetrievedChunk | str] = [
            RetrievedChunk("k", text="The fee.", rank=1, rel_path=f"doc{number % 12}.md")
        ]
        results.append(result(name, f"Verdict {number % 3} of {name}.", retrieved=chunks))
    made.write([{"id": name} for name in NAMES], results)

    server.reply = helpful_as_said
    judged = made.call(*server.words()[:-2], "--metrics", "rubrics.helpful")
    assert judged.exit_code == 0, judged.output
    return made


def calibrate(run: JudgedRun, *words: str, lines: str | None = None) -> Any:
    own = run.finished
    given = ["--run", "run", "--results-dir", str(own.folder / "results")]
    given += ["--eval-set", str(own.folder / "set.jsonl")]
    given += ["--labels-dir", str(own.folder / "labels"), "--metric", "rubrics.helpful", *words]
    return CliRunner().invoke(calibrate_judge.main, given, input=lines)


def label_by_file(run: JudgedRun, words: dict[str, str]) -> None:
    """Labels of answers drawn at random, as a file."""
    folder = run.finished.folder / "labels" / "verdicts"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {"metric": "rubrics.helpful", "claim_id": "1", "annotator": "ann", "sample": "random:0"}
    rows = [drawn | {"case_id": name, "label": word} for name, word in words.items()]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "ann.jsonl").write_text(text, "utf-8")


def drawn_words(count: int) -> dict[str, str]:
    """People agree with the judge in about two of three cases."""
    chance = random.Random(11)
    return {
        name: LABELS[number % 3] if chance.random() < 0.6 else chance.choice(LABELS)
        for number, name in enumerate(NAMES[:count])
    }


def test_the_lines_show_the_answer_and_the_scale_and_hide_the_verdict(run: JudgedRun) -> None:
    words = ("--label", "--plain", "--annotator", "ann", "--set", "sample=9")
    call = calibrate(run, *words, lines="3\n2\nx\nh\nv\nq\n")
    assert "1  not helpful: The person knows no more" in call.stdout
    assert "3  helpful: The person can act on it" in call.stdout
    assert "Verdict " in call.stdout  # the answer
    before, _, after = call.stdout.partition("judge: ")
    assert after.split(" - ")[0] in LABELS
    assert "judge: " not in before
    assert "'x' is not a command" in call.stdout  # letters give no labels on a scale
    path = run.finished.folder / "labels" / "verdicts" / "ann.jsonl"
    kept = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line["label"] for line in kept] == ["helpful", "partly helpful"]
    assert {line["metric"] for line in kept} == {"rubrics.helpful"}


def test_kappa_confusion_and_means_of_forty_labels(run: JudgedRun) -> None:
    words = drawn_words(40)
    label_by_file(run, words)
    report = json.loads(calibrate(run, "--json").stdout)
    pairs = [(word, LABELS[NAMES.index(name) % 3]) for name, word in words.items()]
    by_hand: dict[str, dict[str, int]] = {}
    for said, judged in pairs:
        row = by_hand.setdefault(said, {})
        row[judged] = row.get(judged, 0) + 1
    assert report["scale"]["confusion"] == by_hand
    sklearn = pytest.importorskip("sklearn.metrics")
    people, judge = zip(*pairs, strict=True)
    kappa = sklearn.cohen_kappa_score(people, judge, labels=list(LABELS), weights="linear")
    assert report["figures"]["kappa"]["value"] == pytest.approx(kappa, abs=1e-6)
    low, high = report["figures"]["kappa"]["ci95"]
    assert low < kappa < high
    assert not report["too_few"]
    # every third answer is judged helpful, and ranks 1, 2, 3 come equally often
    assert report["corrected"]["helpful"] == pytest.approx(1 / 3, abs=1e-6)
    assert report["scale"]["mean_rank"]["judge"] == 2.0
    ends = report["scale"]["mean_rank"]["ppi"]["ci95"]
    assert ends[0] < report["scale"]["mean_rank"]["ppi"]["mean"] < ends[1]
    shown = calibrate(run).stdout
    assert "linear weighted kappa of the labels" in shown
    assert "judge: partly helpful" in shown


def test_fewer_than_thirty_labels_do_not_calibrate(run: JudgedRun) -> None:
    label_by_file(run, drawn_words(29))
    report = json.loads(calibrate(run, "--json").stdout)
    assert report["too_few"]
    assert report["figures"] is None
    assert "Too few to calibrate: 29 answers are labelled; 30 are needed" in calibrate(run).stdout
    gate = calibrate(run, "--gate")
    assert gate.exit_code == 1
    assert "uncalibrated: 29 answers are labelled, 30 are needed" in gate.output


def test_the_mark_goes_when_thirty_people_have_labelled(run: JudgedRun) -> None:
    label_by_file(run, drawn_words(30))
    assert calibrate(run).exit_code == 0
    section = run.judge("--rescore", "--metrics", "rubrics.helpful")
    assert "helpful" not in section["marks"]


def test_a_calibration_holds_for_its_target_alone(
    run: JudgedRun, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    label_by_file(run, drawn_words(40))
    assert calibrate(run).exit_code == 0
    real, folder = rubrics.find.__wrapped__, tmp_path / "rubrics"
    folder.mkdir()
    text = real("helpful")[1].read_text("utf-8").replace('target = "h', 'target = "partly h')
    (folder / "helpful.toml").write_text(text, "utf-8")
    monkeypatch.setattr(rubrics, "find", lambda name: real(name, (folder,)))
    section = run.judge(*server.words()[:-2], "--metrics", "rubrics.helpful")
    assert section["mean"]["helpful"] == pytest.approx(2 / 3, abs=1e-6)  # ranks 2 and 3 of 1, 2, 3
    assert "not calibrated" in section["marks"]["helpful"]
    assert calibrate(run).exit_code == 0
    assert "helpful" not in run.judge("--rescore")["marks"]


def test_labels_of_one_document_correct_no_mean_and_say_why(run: JudgedRun) -> None:
    path = run.finished.run / "results.jsonl"
    path.write_text(re.sub(r"doc\d+\.md", "doc.md", path.read_text("utf-8")), "utf-8")
    label_by_file(run, drawn_words(40))
    shown = calibrate(run).stdout
    assert "All labels are of one source, and others may differ: no mean is corrected" in " ".join(
        shown.split()
    )
    assert "Below 30 labels" not in shown


def test_a_gate_rule_can_demand_a_calibrated_rubric(run: JudgedRun, tmp_path: Path) -> None:
    rules = tmp_path / "gates.toml"
    rules.write_text(
        '[gates.calibration]\n"rubrics.helpful" = "kappa >= 0.9"\n[rubrics]\nhelpful = ">= 0.3"\n'
    )
    own = run.finished
    words = ["--run", "run", "--results-dir", str(own.folder / "results"), "--gates", str(rules)]
    words += ["--eval-set", str(own.folder / "set.jsonl"), "--json"]
    before = json.loads(CliRunner().invoke(gate_run.main, words).stdout)
    calibration = [check for check in before["checks"] if check["rule"] == "calibration"]
    assert [check["status"] for check in calibration] == ["failed"]
    assert "its judge was never compared with people" in calibration[0]["reason"]
    floors = [check for check in before["checks"] if check["metric"] == "helpful"]
    assert {check["status"] for check in floors if check["rule"] == "floor"} == {"passed"}
    label_by_file(run, {name: LABELS[n % 3] for n, name in enumerate(NAMES)})
    assert calibrate(run).exit_code == 0
    after = json.loads(CliRunner().invoke(gate_run.main, words).stdout)
    calibration = [check for check in after["checks"] if check["rule"] == "calibration"]
    assert [check["status"] for check in calibration] == ["passed"]


def test_a_label_that_is_not_on_the_scale_counts_as_stale(run: JudgedRun) -> None:
    label_by_file(run, drawn_words(35) | {"case00": "great"})
    report = json.loads(calibrate(run, "--json").stdout)
    assert (report["n"], report["labels"]["stale"]) == (34, 1)


@each_row("weights", ["linear", "quadratic"])
def test_weighted_kappa_with_times_is_that_of_scikit_learn(weights: Any) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    chance = random.Random(4)
    for labels in (("no", "yes"), LABELS, ("a", "b", "c", "d", "e")):
        a, b = ([chance.choice(labels) for _ in range(80)] for _ in range(2))
        times = [chance.uniform(0.2, 3) for _ in range(80)]
        own = weighted_kappa(a, b, labels, weights, times)
        theirs = sklearn.cohen_kappa_score(
            a, b, labels=list(labels), weights=weights, sample_weight=times
        )
        assert own == pytest.approx(theirs, abs=1e-12)


@pytest.fixture
def two_judges(run: JudgedRun, server: Server) -> JudgedRun:
    """The same run, judged by rules afterwards: config.json names the rules now."""
    label_by_file(run, drawn_words(40))
    first = json.loads(calibrate(run, "--json").stdout)
    assert run.call("--judge", "local", "--metrics", "groundedness").exit_code == 0
    config = json.loads((run.finished.run / "config.json").read_text())
    assert config["judge"]["identity"]["provider"] == "local"
    (run.finished.folder / "first.json").write_text(json.dumps(first))
    return run


def report_of(done: Any) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_verdicts_of_a_judge_count_after_another_one_was_asked(
    two_judges: JudgedRun, server: Server
) -> None:
    """The report is what it was before the other judge was asked."""
    server.shutdown()  # nothing is asked
    first = json.loads((two_judges.finished.folder / "first.json").read_text())
    named = ("--judge", server.url, "--model", server.model, "--set", "revision=r1")
    for words in (named, named[:4], named[:2]):
        done = calibrate(two_judges, *words, "--json")
        report = report_of(done)
        for part in ("judge", "prompt", "parameters", "figures", "scale", "corrected", "labels"):
            assert report.get(part) == first.get(part), (words, part)
        assert "Note: these are the verdicts of unknown/judge-2025-01-01@r1" in done.stderr
        assert "the run was judged last by local/" in done.stderr


def test_of_a_judge_without_verdicts_it_is_said_who_has_some(two_judges: JudgedRun) -> None:
    other = ("--judge", "http://localhost:9/v1")
    for words, who in (
        ((), "in config.json"),
        (("--judge", "local"), "that --judge names"),
        ((*other, "--model", "another-2025-01-01"), "that --judge names"),
        ((*other, "--set", "revision=r2"), "that --judge names"),
    ):
        done = calibrate(two_judges, *words)
        assert done.exit_code == 2
        said = f"no verdicts of rubrics.helpful by the judge {who}, but by unknown/judge-2025-01-01"
        assert f"{said}@r1; name that one with --judge" in done.stderr


def test_a_metric_of_the_present_judge_is_still_its_own(
    two_judges: JudgedRun, server: Server
) -> None:
    """Groundedness was judged by both: by the rules last, and by the server when it is named."""
    folder = two_judges.finished.folder / "labels" / "verdicts"
    server.reply = Server.support
    words = two_judges.call(*server.words())
    assert words.exit_code == 0, words.output
    assert two_judges.call("--judge", "local", "--metrics", "groundedness").exit_code == 0
    texts = {}
    for given in ((), ("--judge", "local"), ("--judge", server.url)):
        claims = json.dumps({"case_id": "case00", "claim_id": "1", "label": "supported"})
        (folder / "ann.jsonl").write_text(claims + "\n")
        done = calibrate(two_judges, "--metric", "groundedness", *given, "--json")
        texts[given] = report_of(done)["judge"]["provider"]
        assert ("Note: these are the verdicts" in done.stderr) == (given[1:] == (server.url,))
    assert list(texts.values()) == ["local", "local", "unknown"]
