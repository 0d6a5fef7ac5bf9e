"""calibrate_judge.py where it asks a judge: claims with contexts, sets of people, attacks."""

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
from tests.processes import call_script

Call = Callable[..., subprocess.CompletedProcess[str]]
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
