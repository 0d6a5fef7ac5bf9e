"""Facts of the reference (correctness): labelled, joined and calibrated like claims."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from calibrate_judge import main
from records.claim_labels import read_labels
from storage import StorageError, read_cases
from validation.claims import read_judged
from validation.labels import _fact_item, join

PROMPT = {"name": "correctness", "version": 1, "sha256": "cd" * 32}
Facts = dict[str, list[tuple[str, str]]]


def write(judged_run: Any, facts: Facts) -> None:
    """A run whose judge decided these facts of each case: text and verdict."""
    judged_run.write({case_id: [("It costs seven euros.", "supported")] for case_id in facts})
    lines = []
    for case_id, given in facts.items():
        line = judged_run.line(case_id, given) | {"metric": "correctness", "prompt": PROMPT}
        items = [{"id": f"f{n}", "text": text} for n, (text, _) in enumerate(given, 1)]
        line["input"] = {
            "question": "What does it cost?",
            "answer": judged_run.answers[case_id],
            "facts": items,
        }
        line["extra"] = {"addresses_question": True}
        line["verdicts"] = [
            {"id": f"f{n}", "verdict": verdict, "quote": "", "reason": "so"}
            for n, (_, verdict) in enumerate(given, 1)
        ]
        lines.append(line)
    judged_run.verdicts += lines
    path = judged_run.folder / "set.jsonl"
    cases = [json.loads(line) for line in path.read_text().splitlines()]
    for case in cases:
        case["reference_answer"] = f"Seven euros, says {case['id']}."
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    judged_run.save()


def call(judged_run: Any, *words: str, typed: str = "") -> Result:
    line = [*judged_run.options(), "--metric", "correctness", *words]
    return CliRunner().invoke(main, line, input=typed, env={"COLUMNS": "80"})


@pytest.fixture
def run(judged_run: Any) -> Any:
    write(
        judged_run,
        {
            "q1": [("It costs seven euros.", "present"), ("It is paid monthly.", "missing")],
            "q2": [("It is free.", "contradicted")],
        },
    )
    return judged_run


def test_facts_are_read_with_the_reference_that_they_come_from(run: Any) -> None:
    cases = {case.id: case for case in read_cases(run.folder / "set.jsonl")}
    found = read_judged(run.run, "correctness", cases).claims
    assert [(one.key, one.verdict, one.supported) for one in found] == [
        (("q1", 0, "f1"), "present", True),
        (("q1", 0, "f2"), "missing", False),
        (("q2", 0, "f1"), "contradicted", False),
    ]
    assert found[0].reference == "Seven euros, says q1."
    item = _fact_item(found[0])
    assert (item.name, item.answer) == ("q1 [f1]", "Seven euros, says q1.")
    (passage,) = item.passages
    assert passage.text == "It costs seven euros."
    assert passage.window is not None
    # claims are still claims
    assert [one.claim_id for one in read_judged(run.run, "groundedness", cases).claims] == ["1"] * 2


def test_lines_say_metric_and_fact_and_stay_apart_from_claims(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed line by line: the fourth label, an undo, and a claim that knows no fourth."""
    done = call(run, "--label", "--plain", "--annotator", "maria", typed="4\n1\nu\n2\ny\n?\n")
    assert done.exit_code == 0, done.output
    assert "fact 1 of 3, 0 done: " in done.stdout
    assert "reference answer" in done.stdout
    assert "Contradicted   The answer says" in done.stdout
    path = run.folder / "labels" / "verdicts" / "maria.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    expected = ["contradicted", "present", None, "missing", "present"]
    assert [line["label"] for line in lines] == expected
    assert {line["metric"] for line in lines} == {"correctness"}
    assert {line["claim_id"] for line in lines} <= {"f1", "f2"}
    # the same annotator's file, another metric: nothing of it is decided yet
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    line = [*run.options(), "--label", "--plain", "--annotator", "maria"]
    done = CliRunner().invoke(main, line, input="4\n1\n")
    assert "claim 1 of 2, 0 done" in done.stdout
    assert "'4' is not a command" in done.stdout
    again = call(run, "--label", "--plain", "--annotator", "maria", typed="")
    assert "3 done" in again.stdout


def test_labels_of_the_other_metric_are_refused(run: Any) -> None:
    line = {"case_id": "q1", "metric": "correctness", "claim_id": "f1", "label": "supported"}
    path = run.label([line])
    with pytest.raises(StorageError, match="present, missing, contradicted, cannot_tell"):
        read_labels([path])
    path = run.label([line | {"metric": "beauty"}])
    with pytest.raises(StorageError, match="metric: must be one of groundedness, correctness"):
        read_labels([path])


def test_missing_and_contradicted_are_both_not_present(run: Any) -> None:
    cases = {case.id: case for case in read_cases(run.folder / "set.jsonl")}
    claims = read_judged(run.run, "correctness", cases).claims
    said = {"q1 f1": "contradicted", "q1 f2": "missing", "q2 f1": "present"}
    lines = []
    for name, label in said.items():
        case_id, fact = name.split()
        line = {"case_id": case_id, "metric": "correctness", "claim_id": fact, "label": label}
        lines.append(line)
    joined = join(read_labels([run.label(lines)]), claims, "correctness")
    assert joined.human == {("q1", 0, "f1"): 0, ("q1", 0, "f2"): 0, ("q2", 0, "f1"): 1}
    assert joined.by_verdict == {
        "contradicted": {"present": 1},
        "missing": {"missing": 1},
        "present": {"contradicted": 1},
    }


def test_the_report_and_its_gate_speak_of_facts(judged_run: Any) -> None:
    """40 cases of a present and an absent fact. The judge misses 4 of 40 present ones and passes 8
    of 40 absent ones: sensitivity .9, specificity .8, balanced accuracy .85, kappa (.85 - .5) / .5
    = .7, since people say present half of the time. Judged present: (36 + 8) / 80 = .55."""
    facts: Facts = {}
    lines = []
    for n in range(40):
        true = "missing" if n < 4 else "present"
        false = "present" if n < 8 else "contradicted"
        facts[f"q{n:02}"] = [("It costs seven euros.", true), ("It is free.", false)]
        for fact, label in (("f1", "present"), ("f2", "missing" if n % 2 else "contradicted")):
            lines.append(
                {
                    "case_id": f"q{n:02}",
                    "metric": "correctness",
                    "claim_id": fact,
                    "label": label,
                    "annotator": "maria",
                }
            )
    write(judged_run, facts)
    judged_run.label(lines)
    done = call(judged_run, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    kept = json.loads((judged_run.run / "calibration_correctness.json").read_text())
    assert kept == found
    assert not (judged_run.run / "calibration.json").exists()
    values = {name: row["value"] for name, row in found["figures"].items()}
    assert values["sensitivity"] == pytest.approx(0.9)
    assert values["specificity"] == pytest.approx(0.8)
    assert values["kappa"] == pytest.approx(0.7)
    assert found["corrected"]["claim_rate"] == found["corrected"]["fact_recall"] == 0.55
    assert "faithfulness" not in found["corrected"]
    shown = call(judged_run).stdout
    assert max(map(len, shown.splitlines())) <= 80
    flat = " ".join(shown.split())
    for words in (
        "finds absent facts (specificity) 0.800",
        "passes present facts (sensitivity) 0.900",
        "people say judge: contradicted judge: missing judge: present",
        "contradicted 16 0 4",
        "cases, as judged (fact_recall) 0.550",
    ):
        assert words in flat
    assert "claims" not in flat
    assert "support" not in flat
    gate = call(judged_run, "--gate", "--set", "min_kappa=0.6")
    assert (gate.exit_code, gate.stderr) == (0, "Gate: the judge is calibrated and unchanged.\n")


def test_what_is_for_claims_alone_is_refused(run: Any, tmp_path: Path) -> None:
    assert "work only for groundedness" in call(run, "--attack").stderr
    path = tmp_path / "rows.jsonl"
    path.write_text('{"claim": "B is free.", "contexts": ["0 EUR"], "supported": 1}\n')
    done = call(run, "--labels-file", str(path))
    assert done.exit_code == 2
    assert "have labels only for groundedness" in done.stderr


def test_too_few_labels_are_told_in_the_words_of_facts(run: Any) -> None:
    line = {"case_id": "q1", "metric": "correctness", "claim_id": "f1", "label": "present"}
    run.label([line])
    shown = " ".join(call(run).stdout.split())
    assert "Too few to calibrate: 1 present and 0 absent facts are labelled" in shown
    run.label([])
    assert "people have decided no fact of this run yet" in call(run).stderr
