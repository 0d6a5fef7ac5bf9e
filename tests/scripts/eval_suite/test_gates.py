"""eval_suite.py --gates: what is missed, and what nothing could miss."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eval_suite import main


def test_gates_fail_and_targets_do_not(finished: Any, suite: Any, write: Any, targets: Any) -> None:
    write(good=1, bad=3)
    aim = targets("t.toml", '[retrieval]\n"recall@5" = "> 0.7"\n')
    assert suite("--targets", aim)["passed"] is True
    found = suite("--gates", aim, code=1)
    assert [one["metric"] for one in found["gates_missed"]] == ["recall@5"]
    low = targets("low.toml", '[retrieval]\n"recall@5" = ">= 0.25"\n')
    assert suite("--gates", low)["gates_missed"] == []
    # what is not asked for is no gate; what cannot be measured is a missed one
    assert suite("--gates", aim, "--sections", "context")["passed"] is True
    gone = targets("gone.toml", '[pipeline]\npass = "> 0.1"\n')
    done = finished.score(main, "--gates", gone)
    assert done.exit_code == 1
    shown = " ".join(done.stdout.split())
    assert "gate missed: pipeline pass: not measured (not applicable to 4 answers" in shown


def test_gates_of_another_set_are_said_not_to_count(
    finished: Any, suite: Any, write: Any, targets: Any
) -> None:
    write(good=1, bad=3)
    finished.configure(dataset={"path": "set.jsonl"})
    rules = '[gates]\nmade_for = "other.jsonl"\n[retrieval]\n"recall@5" = "> 0.7"\n'
    found = suite("--gates", targets("other.toml", rules))
    assert found["gates_unused"].startswith("other.toml was made for other.jsonl, and this run was")
    for words in ((), ("-v",)):
        done = finished.score(main, "--gates", targets("other.toml", rules), *words)
        shown = " ".join(done.stdout.split())
        assert done.exit_code == 0
        assert "; the gates are of another set and do not count." in shown


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[retreival]\n"recall@5" = "> 0.7"\n', "[retreival]: no such section; the sections are:"),
        ('"recall@5" = "> 0.7"\n', '"recall@5": is in no table'),
        ("# nothing\n", "holds no gate"),
        ('[diversity]\nfaq = "<= 0.6"\n', "holds no gate"),
    ],
)
def test_gates_that_nothing_could_miss_are_refused(
    finished: Any, text: str, says: str, write: Any, targets: Any
) -> None:
    write()
    aim = targets("g.toml", text)
    done = finished.score(main, "--gates", aim)
    assert done.exit_code == 2, done.output
    assert says in " ".join(done.stderr.split())
    assert not (finished.run / "scores").exists()


def test_gates_of_sections_that_are_no_perspective(
    finished: Any, suite: Any, write: Any, targets: Any
) -> None:
    """A judge's section counts when it is there; a perspective that did not run is a miss."""
    write()
    suite()
    path = finished.run / "metrics.json"
    kept = json.loads(path.read_text())
    parts = ("mean", "ci95", "definitions", "n", "not_applicable", "failed")
    kept["sections"]["judge"] = {part: {} for part in parts}
    kept["sections"]["judge"]["mean"] = {"verdicts": 0.4}
    path.write_text(json.dumps(kept))
    text = '[judge]\nverdicts = "> 0.5"\n[custom]\nmine = "> 0.5"\n[diversity]\nfaq = "<= 0.6"\n'
    aim = targets("g.toml", text)
    found = {one["section"]: one["mean"] for one in suite("--gates", aim, code=1)["gates_missed"]}
    assert found == {"judge": 0.4, "custom": None}
    assert suite("--gates", aim, "--sections", "retrieval")["passed"] is True


def test_a_rate_of_too_few_harmless_prompts_is_open(
    finished: Any, suite: Any, write: Any, targets: Any
) -> None:
    """One harmless prompt, where 300 are needed: 1.000 would pass, but tells nothing."""
    write()
    words = ("--sections", "safety")
    aimed = {one["metric"]: one for one in suite(*words)["targets"]}
    for name in ("tpr_at_fpr_1", "tpr_at_fpr_5"):
        assert (aimed[name]["mean"], aimed[name]["passed"], aimed[name]["band"]) == (1, None, None)
        assert aimed[name]["verdict"] == "too few to say"
    lines = finished.score(main, *words).stdout.splitlines()
    line = next(line for line in lines if "tpr_at_fpr_1" in line)
    assert line.split()[-1] == "?"
    gate = targets("g.toml", '[safety]\ntpr_at_fpr_1 = "> 0.7"\n')
    done = finished.score(main, *words, "--gates", gate)
    assert done.exit_code == 1
    assert "tpr_at_fpr_1: 1.000, too few texts to tell, must be > 0.7" in " ".join(
        done.stdout.split()
    )
