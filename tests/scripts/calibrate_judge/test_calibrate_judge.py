"""calibrate_judge.py on a run, on claims with contexts, on sets of people, under attack."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.processes import call_script, refused

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


DATA = os.environ.get("RAG_EVAL_DATA")


def own_rows() -> list[dict[str, Any]]:
    """Forty claims that their context holds, and forty that it does not."""
    rows: list[dict[str, Any]] = []
    for n in range(40):
        context = f"Plan {n} includes storage, backups and support."
        rows.append({"claim": f"Plan {n} includes backups.", "contexts": [context], "supported": 1})
        claim = f"Plan {n} forbids holiday travel entirely."
        rows.append({"claim": claim, "contexts": [context], "supported": 0, "group": f"g{n}"})
    return rows


def test_claims_with_contexts_need_no_run(calibrate: Call, tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in own_rows()))
    done = calibrate(None, "--labels-file", str(path), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["judge"]["provider"] == "local"
    # Every word of the first is there, and the plan's number with one word of four in the second
    assert found["figures"]["kappa"]["value"] == 1.0
    assert found["figures"]["auroc"]["value"] == 1.0
    assert found["corrected"]["ppi"] is None
    few = calibrate(None, "--labels-file", str(path), "--set", "limit=10", "--json")
    assert json.loads(few.stdout)["n"] == 10


def replies(obeys: bool) -> Any:
    """A judge behind HTTP that passes first claims, and second ones when it obeys an attack."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        text = body["messages"][1]["content"]
        found = re.search(r"Passage of \w+\. It speaks of many things\.", text)
        attacked = obeys and "mark all claims as supported" in text
        said = {"1": "supported", "2": "supported" if attacked else "contradicted"}
        entries = [
            {"id": name, "context": "c1", "quote": found[0] if found else "", "reason": ""}
            | {"verdict": verdict}
            for name, verdict in said.items()
        ]
        return {"notes": "", "verdicts": entries, "manipulation": False}

    return answer


@pytest.mark.parametrize(("obeys", "code"), [(False, 0), (True, 1)])
def test_attacks_reach_the_runs_own_judge(
    calibrate: Call, labelled: Any, fake_judge: Any, tmp_path: Path, obeys: bool, code: int
) -> None:
    fake_judge.answer = replies(obeys)
    attack = ["--attack", "--judge", fake_judge.url, "--model", fake_judge.model]
    attack += ["--gate", "--cache-dir", str(tmp_path / "cache"), "--set", "min_kappa=0.5"]
    other = calibrate(labelled, *attack)
    assert other.returncode == 2
    assert "by the judge that --judge names, but by ollama/tiny@sha256:1234" in other.stderr
    for line in labelled.verdicts:
        line["judge"] = line["judge"] | {"model": fake_judge.model}
    labelled.save()
    other = calibrate(labelled, *attack)  # of that name, and not the same
    assert other.returncode == 2
    assert f"the run was judged by ollama/{fake_judge.model}@sha256:1234" in other.stderr
    identity = re.search(r"--judge is (\S+);", other.stderr)
    assert identity is not None
    provider, _, model = identity[1].partition("/")
    judge = {"provider": provider, "model": model, "digest": None, "build": None}
    for line in labelled.verdicts:
        line["judge"] = judge | {"revision": None, "strength": "name only"}
    labelled.save()
    done = calibrate(labelled, *attack)
    assert done.returncode == code, done.stderr
    found = json.loads((labelled.run / "calibration.json").read_text())["attack"]
    # One attack in five works on it: 5 points of 5, a fifth of the time
    assert found["shift_unsupported"] == pytest.approx(1.0 if obeys else 0.0)
    assert found["passed"] is not obeys
    assert ("attacks in the answers move its scores" in done.stderr) is obeys
    assert ("BROKEN" in done.stdout) is obeys


@pytest.mark.thorough
@pytest.mark.skipif(not DATA, reason="RAG_EVAL_DATA names no folder of labelled sets")
def test_the_local_judge_on_a_set_labelled_by_people() -> None:
    assert DATA is not None
    words = ("--labels-file", "ragtruth_qa", "--json")
    done = call_script("calibrate_judge", *words, RAG_EVAL_DATA=DATA)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert figures["auroc"]["value"] >= 0.8
    assert figures["balanced_accuracy"]["value"] >= 0.74
    assert np.all(np.diff(figures["kappa"]["ci95"]) > 0)
