"""Agreement of the judge and of the case verdicts with the thumbs of users; no mean from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.processes import call_script
from tests.validation.judge.judged_run import JudgedRun

BLOCKS = ((30, "supported", 1), (10, "supported", 0), (5, "not_found", 1), (25, "not_found", 0))
"""So many answers, what the judge says of their claim, and the thumb."""


@pytest.fixture
def rated(tmp_path: Path) -> JudgedRun:
    """70 answers of a claim each; every second is to a question that should not be answered."""
    run = JudgedRun(tmp_path)
    rows = [(verdict, thumb) for n, verdict, thumb in BLOCKS for _ in range(n)]
    run.write({f"q{n}": [(f"Claim {n}.", verdict)] for n, (verdict, _) in enumerate(rows)})
    thumbs = {f"q{n}": thumb for n, (_, thumb) in enumerate(rows)}
    rate(run, {case: [{"name": "thumbs", "score": thumb}] for case, thumb in thumbs.items()})
    path = tmp_path / "set.jsonl"
    cases = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [json.dumps(case | {"answerable": n % 2 == 0}) for n, case in enumerate(cases)]
    path.write_text("\n".join(lines) + "\n")
    run.save()  # the verdicts are on the cases with this label
    return run


def rate(run: JudgedRun, feedback: dict[str, Any]) -> None:
    path = run.run / "results.jsonl"
    results = [json.loads(line) for line in path.read_text().splitlines()]
    for result in results:
        result["feedback"] = feedback.get(result["test_case_id"], [])
    path.write_text("".join(json.dumps(result, separators=(",", ":")) + "\n" for result in results))


def calibrated(run: JudgedRun, *words: str) -> Any:
    done = call_script("calibrate_judge", *run.options(), *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_agreement_of_the_judge_with_thumbs(rated: JudgedRun) -> None:
    """Of 35 good thumbs the judge passes 30, of 35 bad ones it doubts 25: the same in 55 of 70,
    0.785714. By chance (35 · 40 + 35 · 30) / 70² = 0.5, so kappa is 0.285714 / 0.5 = 0.571429."""
    report = json.loads(calibrated(rated, "--json"))
    thumbs = report["thumbs"]
    assert (thumbs["good"], thumbs["bad"]) == (35, 35)
    judge = thumbs["judge"]
    assert judge["confusion"] == {
        "supported_supported": 30, "supported_not": 5, "not_supported": 10, "not_not": 25,
    }  # fmt: skip
    assert judge["figures"]["accuracy"]["value"] == pytest.approx(0.785714, abs=1e-6)
    assert judge["figures"]["kappa"]["value"] == pytest.approx(0.571429, abs=1e-6)
    low, high = judge["figures"]["kappa"]["ci95"]
    assert low < 0.571429 < high
    assert thumbs["cases"]["n"] == 0  # nothing is scored yet
    # No label is there, and thumbs stand for none: nothing is corrected by them.
    assert report["n"] == 0
    corrected = report["corrected"]
    assert [corrected[name] for name in ("ppi", "ppi_plus", "rogan_gladen", "labels_only")] == [
        None
    ] * 4


def test_agreement_of_case_verdicts_and_the_sentence(rated: JudgedRun) -> None:
    """Every second case fails: it was answered and should not be. Of the 70, q0 to q29 are good:
    15 ok and 15 fail; q30 to q39 bad: 5 and 5; q40 to q44 good: 3 and 2; q45 to q69 bad: 12 and
    13. Good: 18 and 17; bad: 17 and 18."""
    place = ["--eval-set", str(rated.folder / "set.jsonl"), "-q"]
    scored = call_script("score_abstention", "--run", "run", *place, "--results-dir",
                         str(rated.folder / "results"))  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    cases = json.loads(calibrated(rated, "--json"))["thumbs"]["cases"]
    assert cases["confusion"] == {
        "supported_supported": 18, "supported_not": 17, "not_supported": 17, "not_not": 18,
    }  # fmt: skip
    page = calibrated(rated)
    assert "Thumbs of users: 35 good, 35 bad." in page
    assert "case is ok" in page
    assert "Thumbs correct no mean: users choose" in " ".join(page.split())


def test_neither_good_nor_bad_and_few(rated: JudgedRun) -> None:
    """Two users who differ say neither; below 30 of each there are counts alone."""
    both = [{"name": "thumbs", "score": s, "user": u} for s, u in ((0, "h-a"), (1, "h-b"))]
    rate(rated, {"q0": both, "q1": both[:1], "q2": [{"name": "stars", "value": 3}]})
    thumbs = json.loads(calibrated(rated, "--json"))["thumbs"]
    assert (thumbs["good"], thumbs["bad"]) == (0, 1)
    assert (thumbs["judge"]["n"], thumbs["judge"]["figures"]) == (1, None)


def test_a_run_without_thumbs_has_none(rated: JudgedRun) -> None:
    rate(rated, {})
    done = call_script("calibrate_judge", *rated.options())
    assert done.returncode == 2
    assert "people have decided no claim" in done.stderr
