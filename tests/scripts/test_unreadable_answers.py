"""Answers that came and could not be read: measured in nothing, counted and said by every script.

Ten cases; the bot finds the gold of the first six only, so q6 to q9 fail. In run `new` the answers
to q0, q1 and q9 could not be read: 4 of 7 are left with their gold, and q6, q7 and q8 fail.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.pages import page_of
from tests.score_lines import read_lines

import compare_runs
import eval_suite
import gate_run
import report_run
import score_abstention
import score_context
import score_conversations
import score_groundedness
import score_pipeline
import score_retrieval
import track_metrics
from decisions.case_changes import changes_of, read_pair
from decisions.case_verdict import read_verdicts
from records.metrics import load_metrics
from storage import RetrievedChunk, TestResult
from views.runs import run_info

UNREAD = ("q0", "q1", "q9")
WHY = "no span says for certain which text is the answer"
SAID = "3 answers could not be read and count in no score"
CASES = [
    {"id": f"q{n}", "answerable": True, "relevant_docs": [f"{n}.md"], "expected_outcome": "success"}
    for n in range(10)
]


def results(unread: tuple[str, ...] = UNREAD, repeats: int = 1) -> list[TestResult]:
    lines = []
    for n in range(10):
        for repeat in range(repeats):
            place = f"{n}.md" if n < 6 else "b.md"
            line = TestResult(
                f"q{n}",
                f"About q{n}?",
                answer="Yes, it is. [1]",
                retrieved=[RetrievedChunk("c1", rel_path=place, text="Yes, it is.", rank=1)],
                repeat=repeat,
                latency_ms={"total": 5.0},
            )
            if line.test_case_id in unread:
                line.status, line.answer, line.absent = "unreadable", None, {"answer": WHY}
            lines.append(line)
    return lines


def write_results(run: Path, lines: list[TestResult]) -> None:
    text = (json.dumps(line.to_dict(store_full_text=True)) + "\n" for line in lines)
    (run / "results.jsonl").write_text("".join(text))


class TwoRuns:
    """Runs `base`, all of whose answers were read, and `new`."""

    def __init__(self, finished: Any) -> None:
        self.folder: Path = finished.folder
        self.finished = finished
        self.new, self.base = finished.run.with_name("new"), finished.run.with_name("base")
        self.write("base", ())
        self.write("new")

    def write(self, name: str, unread: tuple[str, ...] = UNREAD, repeats: int = 1) -> None:
        self.finished.run = self.finished.run.with_name(name)
        shutil.rmtree(self.finished.run, ignore_errors=True)
        self.finished.write(CASES, results(unread, repeats))
        self.finished.configure(run={"selected": 10, "repeat": repeats})

    def call(self, command: click.Command, *words: str, ok: bool = True) -> Any:
        where = ["--results-dir", str(self.folder / "results")]
        where += ["--eval-set", str(self.folder / "set.jsonl")]
        done = CliRunner().invoke(command, [*words, *where], env={"COLUMNS": "200"})
        assert not ok or done.exit_code == 0, done.output
        return done

    def score(self, *sections: str) -> None:
        for run in ("base", "new"):
            self.call(eval_suite.main, "--run", run, "--sections", ",".join(sections), "-q")


@pytest.fixture
def runs(finished: Any) -> TwoRuns:
    return TwoRuns(finished)


SCORERS = {
    "retrieval": score_retrieval,
    "context": score_context,
    "groundedness": score_groundedness,
    "abstention": score_abstention,
    "pipeline": score_pipeline,
}


@pytest.mark.parametrize("section", SCORERS)
def test_no_scorer_measures_them_and_each_says_how_many(runs: TwoRuns, section: str) -> None:
    done = runs.call(SCORERS[section].main, "--run", "new")
    assert f"Note: {SAID}." in " ".join(done.stderr.split())
    lines = {line["case_id"]: line for line in read_lines(runs.new, section)}
    for case_id in UNREAD:
        assert lines[case_id]["status"] == "unreadable"
        assert set(lines[case_id]["scores"].values()) <= {None}
        assert lines[case_id]["reasons"] == {"*": "the answer could not be read"}
    found = load_metrics(runs.new / "metrics.json")
    assert (found["cases"], found["errors"], found["unreadable"]) == (10, 0, 3)
    assert not any(found["sections"][section]["failed"].values())


def test_the_numbers_are_those_of_the_seven_that_were_read(runs: TwoRuns) -> None:
    runs.score("retrieval", "pipeline")
    sections = load_metrics(runs.new / "metrics.json")["sections"]
    answered, recall = sections["pipeline"], sections["retrieval"]
    assert (answered["mean"]["answered"], answered["n"]["answered"]) == (1.0, 7)
    assert (answered["mean"]["pass"], answered["n"]["pass"]) == (1.0, 7)
    assert answered["latency_ms"]["total"]["n"] == 7
    assert (answered["not_applicable"]["latency_percentiles_ok"], answered["errors"]) == (10, {})
    assert (recall["mean"]["recall@5"], recall["n"]["recall@5"]) == (pytest.approx(4 / 7), 7)
    assert recall["not_applicable"]["recall@5"] == 3


def test_a_run_without_any_says_nothing_and_writes_what_it_always_wrote(runs: TwoRuns) -> None:
    done = runs.call(score_pipeline.main, "--run", "base")
    assert "read" not in done.stderr
    assert "unreadable" not in (runs.base / "metrics.json").read_text()


def test_scores_of_answers_that_cannot_be_read_any_more_go(runs: TwoRuns) -> None:
    """Imported again, three answers are no longer read: what was scored before is of other ones."""
    runs.call(score_retrieval.main, "--run", "base")
    (runs.base / "results.jsonl").write_bytes((runs.new / "results.jsonl").read_bytes())
    runs.call(score_pipeline.main, "--run", "base")
    assert [*load_metrics(runs.base / "metrics.json")["sections"]] == ["pipeline"]
    write_results(runs.base, results(()))
    runs.call(score_retrieval.main, "--run", "base")
    found = load_metrics(runs.base / "metrics.json")
    assert ([*found["sections"]], "unreadable" in found) == (["retrieval"], False)


def test_a_case_without_a_readable_answer_neither_fails_nor_is_ok(runs: TwoRuns) -> None:
    runs.score("retrieval", "pipeline")
    verdicts = read_verdicts(runs.new)
    counts = verdicts.counts()
    assert (counts.cases, counts.failing, counts.unreadable) == (10, 3, 3)
    assert counts.says().startswith(
        "3 of 10 cases fail: 3 without a gold passage. 3 are not measured: no answer could be read."
    )
    words = {f"q{n}": verdicts.verdict(f"q{n}") for n in range(10)}
    assert {name for name, one in words.items() if one and one.word == "not measured"} == {*UNREAD}
    assert [verdicts.fails((name, 0)) for name in ("q0", "q2", "q6", "q9")] == [
        None, False, True, None,
    ]  # fmt: skip
    ends = {
        name: line[-1]
        for name, line in json.loads((runs.new / "metrics.json").read_text())["primary"].items()
    }
    assert {name for name, end in ends.items() if end == "unreadable"} == {*UNREAD}


def test_of_repeats_those_that_were_read_decide(runs: TwoRuns) -> None:
    """q6 fails in its one answer that was read of three; q0 is ok in the two that were."""
    lines = results((), 3)
    for line in lines:
        if (line.test_case_id, line.repeat) in (("q6", 0), ("q6", 2), ("q0", 1)):
            line.status, line.answer = "unreadable", None
    runs.write("new", (), 3)
    write_results(runs.new, lines)
    runs.call(eval_suite.main, "--run", "new", "--sections", "retrieval,pipeline", "-q")
    verdicts = read_verdicts(runs.new)
    ends = [verdicts.verdict(name) for name in ("q6", "q0", "q1")]
    assert [(one.answers, one.failing, one.unreadable, one.word) for one in ends if one] == [
        (1, 1, 2, "fails: no gold"), (2, 0, 1, "ok"), (3, 0, 0, "ok"),
    ]  # fmt: skip
    assert "unreadable: 3" not in verdicts.counts().says()
    assert load_metrics(runs.new / "metrics.json")["unreadable"] == 3


@pytest.mark.parametrize("committed", [False, True])
def test_between_two_runs_such_a_case_is_neither_broken_nor_fixed(
    runs: TwoRuns, committed: bool
) -> None:
    """q0 and q1 were ok and q9 failed; both ways round, and of a committed metrics.json alone."""
    runs.score("retrieval", "pipeline")
    for old, new in ((runs.base, runs.new), (runs.new, runs.base)):
        before = old
        if committed:
            before = runs.folder / "committed" / f"{old.name}.json"
            before.parent.mkdir(exist_ok=True)
            shutil.copy(old / "metrics.json", before)
        changes = changes_of(read_pair(before, new), 20)
        assert changes is not None
        assert changes.counts == {"broke": 0, "fixed": 0, "fails still": 3, "ok still": 4}
        assert (changes.unreadable, changes.changed) == (3, ())
        end = "3 cases are not compared: in one of the runs no answer could be read."
        assert changes.says().endswith(end)
        assert changes.to_dict()["unreadable"] == 3


def test_two_runs_without_a_case_that_both_could_read(runs: TwoRuns) -> None:
    runs.write("new", tuple(f"q{n}" for n in range(10)))
    runs.score("retrieval", "pipeline")
    changes = changes_of(read_pair(runs.base, runs.new), 20)
    assert changes is not None
    assert changes.says() == "No case is compared: in one of the runs no answer could be read."


def test_compare_says_it_and_compares_the_seven(runs: TwoRuns) -> None:
    runs.score("retrieval", "pipeline")
    shown = runs.call(compare_runs.main, "base", "new").output
    assert "Answers that could not be read: 0 in base, 3 in new: they count in no score" in shown
    assert "Calls that failed" not in shown
    data = json.loads(runs.call(compare_runs.main, "base", "new", "--json").stdout)
    (answered,) = [row for row in data["comparisons"][0]["rows"] if row["metric"] == "answered"]
    assert (answered["n"], answered["lost"], answered["delta"]) == (7, 3, 0.0)


def test_the_suite_says_it_first(runs: TwoRuns) -> None:
    shown = runs.call(eval_suite.main, "--run", "new", "--sections", "retrieval,pipeline").output
    assert f"{SAID}.\n" in shown
    assert "without a response" not in shown
    assert shown.startswith("Run new, full suite: 10 questions, 0 failed calls. ")
    stored = json.loads((runs.new / "suite.json").read_text())
    assert (stored["unreadable"], stored["verdicts"]["unreadable"]) == (3, 3)


def test_a_section_of_which_no_answer_was_read_says_why(runs: TwoRuns) -> None:
    runs.write("new", tuple(f"q{n}" for n in range(10)))
    shown = runs.call(eval_suite.main, "--run", "new", "--sections", "pipeline").output
    assert "0 of 10 cases fail. 10 are not measured: no answer could be read." in shown
    assert "pipeline: not scored" in shown
    assert "the answer could not be read (10 cases)" in shown


def gate(runs: TwoRuns, rules: str = "", *words: str) -> dict[str, tuple[str, str]]:
    """Status and reason of each check, by name."""
    path = runs.folder / "gates.toml"
    path.write_text(rules or "[gates]\n")
    runs.call(gate_run.main, "--run", "new", "--gates", str(path), *words, ok=False)
    checks = json.loads((runs.new / "gate.json").read_text())["checks"]
    return {check["name"]: (check["status"], check["reason"]) for check in checks}


def test_a_gate_says_it_and_fails_when_they_are_more_than_half(runs: TwoRuns) -> None:
    runs.score("retrieval", "pipeline")
    checks = gate(runs)
    assert checks["unreadable"] == ("skipped", SAID)
    assert checks["failed_calls"] == ("passed", "")
    runs.write("new", tuple(f"q{n}" for n in range(6)))
    runs.score("retrieval", "pipeline")
    six = "6 answers could not be read and count in no score"
    assert gate(runs)["unreadable"] == ("failed", six)
    assert gate(runs, '[gates.run]\nunreadable = "<= 6"\n')["unreadable"] == ("passed", "")
    failed = gate(runs, '[gates.run]\nunreadable = "<= 5"\n')["unreadable"]
    assert failed == ("failed", "6, must be <= 5")


def test_a_case_that_must_not_fail_has_to_be_read(runs: TwoRuns) -> None:
    runs.score("retrieval", "pipeline")
    checks = gate(runs, '[[gates.must_pass]]\ncases = ["q0", "q2"]\n')
    assert checks["case.q0"] == ("failed", "no answer to it could be read")
    assert checks["case.q2"] == ("passed", "")


def test_the_report_shows_them_apart_from_failed_calls(runs: TwoRuns) -> None:
    runs.score("retrieval", "pipeline")
    report = page_of(json.loads(runs.call(report_run.main, "--run", "new", "--json").stdout))
    assert {("failed calls", "0"), ("unreadable answers", "3")} <= {*report.facts}
    assert {row["case_id"] for row in report.listed if row["state"] == "unreadable"} == {*UNREAD}
    assert not [text for text in report.in_full["q0"].texts if text.startswith("fails")]
    text = (runs.new / "report.md").read_text()
    assert f"{SAID}." in text
    assert f"The answer could not be read: {WHY}" in text
    assert "The call failed" not in text
    page = (runs.new / "report.html").read_text()
    assert '<span class="tag">unreadable</span>' in page
    assert '<span class="tag miss">failed</span>' not in page


def test_the_list_of_runs_says_it(runs: TwoRuns) -> None:
    runs.score("retrieval", "pipeline")
    assert run_info(runs.new).missing == SAID
    assert run_info(runs.base).missing == ""


def test_the_history_notes_the_commit_where_they_come(runs: TwoRuns) -> None:
    runs.score("retrieval", "pipeline")
    words = [str(runs.base), str(runs.new)]
    assert f"new: {SAID}." in CliRunner().invoke(track_metrics.main, words).output
    data = json.loads(CliRunner().invoke(track_metrics.main, [*words, "--json"]).stdout)
    assert [point.get("unreadable") for point in data["points"]] == [None, 3]


def test_a_conversation_with_an_unread_turn_passes_not_yet(runs: TwoRuns) -> None:
    """q0 was not read. With q2, which passes, the conversation is not measured; q6 is not what its
    label says, so with it the conversation does not pass, whatever q0 was."""
    cases = runs.folder / "set.jsonl"
    whole = [json.loads(line) for line in cases.read_text().splitlines()]
    for other, n, mean in (("q2", 0, None), ("q6", 1, 0.0)):
        turns = [case for case in whole if case["id"] in ("q0", other)]
        turns = [
            case | {"conversation": "talk", "turn": turn} for turn, case in enumerate(turns, 1)
        ]
        turns[1]["expected_outcome"] = "success" if other == "q2" else "blocked"
        cases.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
        write_results(runs.new, [one for one in results() if one.test_case_id in ("q0", other)])
        done = runs.call(score_conversations.main, "--run", "new")
        section = load_metrics(runs.new / "metrics.json")["sections"]["conversations"]
        passes = section["n"]["conversation_pass"], section["mean"]["conversation_pass"]
        assert passes == (n, mean)
        assert "in 1 a turn could not be read" in done.output
