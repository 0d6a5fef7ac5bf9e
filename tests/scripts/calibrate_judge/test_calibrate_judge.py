"""calibrate_judge.py on a run, as a user calls it: files on disk, exit codes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.processes import refused

Call = Callable[..., subprocess.CompletedProcess[str]]


def test_the_report_and_the_file_hold_the_same_figures(calibrate: Call, labelled: Any) -> None:
    done = calibrate(labelled, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found == json.loads((labelled.run / "calibration.json").read_text())
    # 80 answers, 0 to 79. True claims missed: every tenth, 8. False ones passed: every fifth, 16.
    assert found["confusion"] == {
        "supported_supported": 72,
        "supported_not": 8,
        "not_supported": 16,
        "not_not": 64,
    }
    figures = found["figures"]
    assert figures["sensitivity"]["value"] == 0.9
    assert figures["specificity"]["value"] == 0.8
    assert figures["balanced_accuracy"]["value"] == 0.85
    assert figures["kappa"]["value"] == pytest.approx(0.7)  # (0.85 - 0.5) / 0.5
    # 100 answers: 90 true and 20 false claims are passed
    assert found["corrected"]["claim_rate"] == 0.55
    assert found["corrected"]["ppi"]["mean"] == pytest.approx(0.55 + (8 - 16) / 160)
    assert found["corrected"]["rogan_gladen"]["mean"] == pytest.approx((0.55 + 0.8 - 1) / 0.7)
    assert found["labels"]["annotators"] == {"maria": 160}
    assert found["labels"]["random_sample"] is True
    assert [row["verdict"] for row in found["worst"]] == ["supported"] * 5
    assert found["by"]["category"]["factual"]["n"] == 80


def test_the_table_says_it_in_words(calibrate: Call, labelled: Any) -> None:
    done = calibrate(labelled)
    shown = " ".join(done.stdout.split())
    assert "groundedness: ollama/tiny@sha256:1234, prompt groundedness@1 against people" in shown
    assert "finds unsupported claims (specificity) 0.800" in shown
    assert "160 of 200 judged claims are labelled, from 80 cases (maria 160)." in shown
    assert "(stratified PPI) 0.500" in shown  # of five corrected means one; all are in --json
    for other in ("(PPI)", "PPI++", "Rogan-Gladen", "from the labels alone"):
        assert other not in shown
    assert "people: NOT supported, judge: supported" in shown
    prose = (".", ":")  # which no line outside a terminal folds
    assert max(len(line) for line in done.stdout.splitlines() if line[-1:] not in prose) <= 100


def test_the_same_call_writes_the_same_bytes(calibrate: Call, labelled: Any) -> None:
    calibrate(labelled)
    first = (labelled.run / "calibration.json").read_bytes()
    calibrate(labelled)
    assert (labelled.run / "calibration.json").read_bytes() == first


def test_lines_label_and_the_report_follows(calibrate: Call, labelled: Any) -> None:
    words = ["--label", "--plain", "--annotator", "bob"]
    typed = calibrate(labelled, *words, typed="1\n3\nq\n")
    assert (typed.returncode, typed.stderr) == (0, "")
    assert "claim 3 of 100, 2 done" in typed.stdout
    assert "finds unsupported claims" in typed.stdout
    path = labelled.folder / "labels" / "verdicts" / "bob.jsonl"
    made = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(one["label"], one["annotator"]) for one in made] == [
        ("supported", "bob"),
        ("cannot_tell", "bob"),
    ]
    for wrong in (["--plain"], [*words, "--json"]):
        refused = calibrate(labelled, *wrong)
        assert (refused.returncode, "--plain needs --label" in refused.stderr) == (2, True)


def test_a_session_that_decides_nothing_is_no_failure(calibrate: Call, labelled: Any) -> None:
    labelled.label([])
    done = calibrate(labelled, "--label", "--plain", "--annotator", "bob")  # an empty input
    assert done.returncode == 0
    assert "people have decided no claim of this run yet" in done.stderr
    stale = labelled.label_line("q000", "1", "supported", claim="Other words.")
    labelled.label([stale, labelled.label_line("q001", "1", "cannot_tell")])
    assert "1 of texts that have changed, 1 cannot tell" in refused(calibrate(labelled))


def test_too_few_labels_give_no_figures_and_close_the_gate(calibrate: Call, labelled: Any) -> None:
    lines = [labelled.label_line(f"q{n:03d}", "1", "supported") for n in range(40)]
    labelled.label(lines)
    done = calibrate(labelled, "--gate")
    assert done.returncode == 1
    assert "Too few to calibrate: 40 supported and 0 unsupported" in " ".join(done.stdout.split())
    assert "Gate: uncalibrated" in done.stderr
    assert json.loads((labelled.run / "calibration.json").read_text())["figures"] is None


def test_a_stored_calibration_gates_another_run(
    calibrate: Call, labelled: Any, tmp_path: Path
) -> None:
    stored = tmp_path / "eval" / "calibration.json"
    assert calibrate(labelled, "--gate", "--output", str(stored)).returncode == 0
    assert "Plan" not in stored.read_text()  # no text of the run
    gate = ["--gate", "--calibration", str(stored)]
    passed = calibrate(labelled, *gate)
    assert (passed.returncode, passed.stdout) == (0, "")
    assert "calibrated and unchanged" in passed.stderr
    strict = calibrate(
        labelled, *gate, "--set", "min_kappa=0.8", "--set", "min_balanced_accuracy=0.9"
    )
    assert strict.returncode == 1
    assert "kappa 0.700 is below 0.8" in strict.stderr
    assert "balanced accuracy 0.850 is below 0.9" in strict.stderr
    for line in labelled.verdicts:
        line["judge"] = line["judge"] | {"digest": "sha256:9999"}
        line["prompt"] = line["prompt"] | {"version": 2}
    labelled.save()
    changed = calibrate(labelled, *gate)
    assert changed.returncode == 1
    assert "another judge was calibrated (digest sha256:1234" in changed.stderr
    assert "another prompt was calibrated (version 1" in changed.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--calibration", "x.json"], "--calibration needs --gate"),
        (["--gate", "--calibration", "/no/such.json"], "no such file"),
        (["--label", "--annotator", "a/b"], "--annotator"),
        (["--label"], "is not a terminal"),
        (["--set", "nope"], "write KEY=VALUE"),
        (["--labels-file", "ragtruth_qa", "--labels-file", "a"], "a known set cannot be combined"),
        (["--labels-file", "/no/such.jsonl"], "cannot be read"),
        (["--set", "min_kappa=nan"], "min_kappa: must be a number from -1 up to 1"),
    ],
)
def test_a_mistake_is_one_sentence(
    calibrate: Call, labelled: Any, words: list[str], said: str
) -> None:
    assert said in refused(calibrate(labelled, *words))
    assert not (labelled.run / "calibration.json").exists()


def test_a_run_without_verdicts_or_labels_says_what_to_do(calibrate: Call, labelled: Any) -> None:
    (labelled.folder / "labels" / "verdicts" / "maria.jsonl").unlink()
    assert "label some with --label" in calibrate(labelled).stderr
    (labelled.run / "verdicts.jsonl").unlink()
    assert "judge_answers.py" in refused(calibrate(labelled))


def test_hostile_text_is_never_obeyed(calibrate: Call, labelled: Any) -> None:
    evil = "\x1b]0;taken over\x07[red]x[/red]"
    for line in labelled.verdicts:
        for entry in line["verdicts"]:
            entry["reason"] = evil
    labelled.save()
    done = calibrate(labelled)
    assert "\x1b" not in done.stdout
    assert "[red]x[/red]" in done.stdout
