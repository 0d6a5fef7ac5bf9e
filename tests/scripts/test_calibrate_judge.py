"""calibrate_judge.py as a user calls it: a process of its own, files on disk, exit codes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import options

SCRIPT = Path(options.__file__).with_name("calibrate_judge.py")
DATA = os.environ.get("RAG_EVAL_DATA")


def load_helper() -> Any:
    path = Path(__file__).parents[1] / "calibration" / "judged_run.py"
    spec = importlib.util.spec_from_file_location("judged_run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["judged_run"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def labelled(tmp_path: Path) -> Any:
    """100 answers of two claims; people labelled both claims of the first 80."""
    helper = load_helper()
    run = helper.JudgedRun(tmp_path)
    answers, labels = helper.mixed(100)
    run.write(answers)
    chosen = list(labels.items())[:160]
    run.label([run.label_line(case, number, said) for (case, number), said in chosen])
    return run


def call(run: Any, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {key: text for key, text in os.environ.items() if not key.startswith("RAG_EVAL_")}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *(run.options() if run else []), *words],
        env=kept | {"RAG_EVAL_CONFIG": os.devnull, "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )


def test_the_report_and_the_file_hold_the_same_figures(labelled: Any) -> None:
    done = call(labelled, "--json")
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


def test_the_table_says_it_in_words(labelled: Any) -> None:
    done = call(labelled)
    shown = " ".join(done.stdout.split())
    assert "groundedness: ollama/tiny@sha256:1234, prompt groundedness@1 against people" in shown
    assert "finds unsupported claims (specificity) 0.800" in shown
    assert "160 of 200 judged claims are labelled, from 40 documents (maria 160)." in shown
    assert "prediction-powered (PPI) 0.500" in shown
    assert "people: NOT supported, judge: supported" in shown
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_the_same_call_writes_the_same_bytes(labelled: Any) -> None:
    call(labelled)
    first = (labelled.run / "calibration.json").read_bytes()
    call(labelled)
    assert (labelled.run / "calibration.json").read_bytes() == first


def test_lines_label_and_the_report_follows(labelled: Any) -> None:
    words = ["--label", "--plain", "--annotator", "bob"]
    typed = subprocess.run(
        [sys.executable, str(SCRIPT), *labelled.options(), *words],
        env=os.environ | {"RAG_EVAL_CONFIG": os.devnull, "COLUMNS": "80"},
        input="1\n3\nq\n",
        capture_output=True,
        encoding="utf-8",
    )
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
        refused = call(labelled, *wrong)
        assert (refused.returncode, "--plain goes with --label" in refused.stderr) == (2, True)


def test_a_session_that_decides_nothing_is_no_failure(labelled: Any) -> None:
    labelled.label([])
    done = call(labelled, "--label", "--plain", "--annotator", "bob")  # an empty input
    assert done.returncode == 0
    assert "people have decided no claim of this run yet" in done.stderr
    labelled.label([labelled.label_line("q000", "1", "cannot_tell")])
    done = call(labelled)
    assert done.returncode == 2
    assert "(1 cannot tell)" in done.stderr


def test_too_few_labels_give_no_figures_and_close_the_gate(labelled: Any) -> None:
    lines = [labelled.label_line(f"q{n:03d}", "1", "supported") for n in range(40)]
    labelled.label(lines)
    done = call(labelled, "--gate")
    assert done.returncode == 1
    assert "Too few to calibrate: 40 supported and 0 unsupported" in " ".join(done.stdout.split())
    assert "Gate: uncalibrated" in done.stderr
    assert json.loads((labelled.run / "calibration.json").read_text())["figures"] is None


def test_a_stored_calibration_gates_another_run(labelled: Any, tmp_path: Path) -> None:
    stored = tmp_path / "eval" / "calibration.json"
    assert call(labelled, "--gate", "--output", str(stored)).returncode == 0
    assert "Plan" not in stored.read_text()  # no text of the run
    gate = ["--gate", "--calibration", str(stored)]
    passed = call(labelled, *gate)
    assert (passed.returncode, passed.stdout) == (0, "")
    assert "calibrated and unchanged" in passed.stderr
    strict = call(labelled, *gate, "--min-kappa", "0.8", "--min-balanced-accuracy", "0.9")
    assert strict.returncode == 1
    assert "kappa 0.700 is below 0.8" in strict.stderr
    assert "balanced accuracy 0.850 is below 0.9" in strict.stderr
    for line in labelled.verdicts:
        line["judge"] = line["judge"] | {"digest": "sha256:9999"}
        line["prompt"] = line["prompt"] | {"version": 2}
    labelled.save()
    changed = call(labelled, *gate)
    assert changed.returncode == 1
    assert "the judge is not the one that was calibrated (digest sha256:1234" in changed.stderr
    assert "the prompt is not the one that was calibrated (version 1" in changed.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--calibration", "x.json"], "--calibration goes with --gate"),
        (["--gate", "--calibration", "/no/such.json"], "no such file"),
        (["--label", "--annotator", "a/b"], "--annotator"),
        (["--label"], "is no terminal"),
        (["--set", "nope", "--data", "."], "unknown; use one of"),
        (["--set", "ragtruth_qa"], "--set needs --data"),
        (["--set", "ragtruth_qa", "--data", "."], "no such folder"),
        (["--labels-file", "/no/such.jsonl"], "cannot be read"),
        (["--labels-file", "a", "--set", "b"], "choose one"),
        (["--min-kappa", "nan"], "finite"),
    ],
)
def test_a_mistake_is_one_sentence(labelled: Any, words: list[str], said: str) -> None:
    done = call(labelled, *words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (labelled.run / "calibration.json").exists()


def test_a_run_without_verdicts_or_labels_says_what_to_do(labelled: Any) -> None:
    (labelled.folder / "labels" / "verdicts" / "maria.jsonl").unlink()
    assert "label some with --label" in call(labelled).stderr
    (labelled.run / "verdicts.jsonl").unlink()
    done = call(labelled)
    assert done.returncode == 2
    assert "judge_answers.py" in done.stderr


def test_labels_of_texts_that_changed_are_left_out_and_counted(labelled: Any) -> None:
    lines = [labelled.label_line("q000", "1", "supported", claim="Other words.")]
    lines += [labelled.label_line("q001", "1", "cannot_tell")]
    path = labelled.label(lines)
    done = call(labelled, "--labels-file", str(path))
    assert done.returncode == 2
    assert "1 of texts that have changed, 1 cannot tell" in done.stderr


def own_rows() -> list[dict[str, Any]]:
    """Forty claims that their context holds, and forty that it does not."""
    rows: list[dict[str, Any]] = []
    for n in range(40):
        context = f"Plan {n} includes storage, backups and support."
        rows.append({"claim": f"Plan {n} includes backups.", "contexts": [context], "supported": 1})
        claim = f"Plan {n} forbids holiday travel entirely."
        rows.append({"claim": claim, "contexts": [context], "supported": 0, "group": f"g{n}"})
    return rows


def test_claims_with_contexts_need_no_run(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in own_rows()))
    done = call(None, "--labels-file", str(path), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["judge"]["provider"] == "local"
    # Every word of the first is there, and the plan's number with one word of four in the second
    assert found["figures"]["kappa"]["value"] == 1.0
    assert found["figures"]["auroc"]["value"] == 1.0
    assert found["corrected"]["ppi"] is None


def test_hostile_text_is_never_obeyed(labelled: Any) -> None:
    evil = "\x1b]0;taken over\x07[red]x[/red]"
    for line in labelled.verdicts:
        for entry in line["verdicts"]:
            entry["reason"] = evil
    labelled.save()
    done = call(labelled)
    assert "\x1b" not in done.stdout
    assert "[red]x[/red]" in done.stdout


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
    labelled: Any, fake_judge: Any, tmp_path: Path, obeys: bool, code: int
) -> None:
    fake_judge.answer = replies(obeys)
    attack = ["--attack", "--judge", fake_judge.url, "--model", fake_judge.model]
    attack += ["--gate", "--cache-dir", str(tmp_path / "cache"), "--min-kappa", "0.5"]
    other = call(labelled, *attack)
    assert other.returncode == 2
    assert "the run was judged by ollama/tiny@sha256:1234" in other.stderr
    identity = re.search(r"--judge is (\S+);", other.stderr)
    assert identity is not None
    provider, _, model = identity[1].partition("/")
    judge = {"provider": provider, "model": model, "digest": None, "build": None}
    for line in labelled.verdicts:
        line["judge"] = judge | {"revision": None, "strength": "name only"}
    labelled.save()
    done = call(labelled, *attack)
    assert done.returncode == code, done.stderr
    found = json.loads((labelled.run / "calibration.json").read_text())["attack"]
    # One attack in five works on it: 5 points of 5, a fifth of the time
    assert found["shift_unsupported"] == pytest.approx(1.0 if obeys else 0.0)
    assert found["passed"] is not obeys
    assert ("attacks in the answers move its scores" in done.stderr) is obeys
    assert ("BROKEN" in done.stdout) is obeys


def test_rows_of_people_are_judged_by_a_server(fake_judge: Any, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        text = body["messages"][1]["content"]
        verdict = "supported" if "backups" in text.split("claims")[1] else "not_found"
        entry = {"id": "1", "context": "c1", "quote": "storage, backups and support"}
        entry |= {"reason": "", "verdict": verdict}
        return {"notes": "", "verdicts": [entry], "manipulation": False}

    fake_judge.answer = answer
    rows = own_rows()
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge = ["--judge", fake_judge.url, "--model", fake_judge.model]
    judge += ["--cache-dir", str(tmp_path / "cache"), "--json"]
    done = call(None, "--labels-file", str(path), *judge)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["judge"]["model"] == fake_judge.model
    assert found["figures"]["kappa"]["value"] == 1.0
    few = call(None, "--labels-file", str(path), "--limit", "10", *judge)
    assert json.loads(few.stdout)["n"] == 10


@pytest.mark.skipif(not DATA, reason="RAG_EVAL_DATA names no folder of labelled sets")
def test_the_local_judge_on_a_set_labelled_by_people() -> None:
    assert DATA is not None
    done = call(None, "--data", DATA, "--set", "ragtruth_qa", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert figures["auroc"]["value"] >= 0.8
    assert figures["balanced_accuracy"]["value"] >= 0.74
    assert np.all(np.diff(figures["kappa"]["ci95"]) > 0)
