"""Every screen, file and ``--json`` says the same number of failing, broken and fixed cases. The
lines of cases in metrics.json are right after every scorer, and enough by themselves."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.metrics_files import write_metrics
from tests.pages import page_of
from tests.rows import each_row
from tests.scripts.conftest import FinishedRun
from tests.scripts.report_run.answers import result

import compare_runs
import eval_suite
import gate_run
import report_run
import score_abstention
import score_groundedness
import score_pipeline
import score_retrieval
import track_metrics
from decisions.case_changes import changes_of, read_pair
from decisions.case_rules import read_case_rules
from decisions.case_verdict import read_verdicts
from labeller.jobs import failures
from records.metrics import load_metrics
from scorers import suite
from storage import ErrorInfo, TestResult
from views.browser.listing import CaseList, PairList
from views.library import RunLibrary

GOLD = {"relevant_chunks": ["gold"], "answerable": True}

CASES: list[dict[str, Any]] = [
    {"id": case_id, "question": f"About {case_id}?", "category": "factual"} | GOLD
    for case_id in ("fine", "late", "gone", "back", "mute", "error", "slow", "ends")
]
CASES[6]["latency_budget_ms"] = 10.0
CASES[7]["expected_outcome"] = "success"

SAID = "It is so [1]."


def results(ranks: dict[str, int | None], **more: dict[str, Any]) -> list[TestResult]:
    """An answer to each case but the failed call, its gold at a rank (None: not retrieved)."""
    failed = TestResult("error", "?", status="error", error=ErrorInfo("timeout", "none", 4))
    own = {"slow": {"latency_ms": {"total": 99.0}}} | more
    answers = [result(case_id, rank, **own.get(case_id, {})) for case_id, rank in ranks.items()]
    return [*answers, failed]


BASE = results(
    {"fine": 1, "late": 3, "gone": 1, "back": None, "mute": 1, "slow": 1, "ends": 1},
    mute={"answer": None, "abstained": True},
    ends={"answer": SAID, "confidence": 0.9},
)
NEW = results(
    {"fine": 1, "late": None, "gone": None, "back": 1, "mute": 1, "slow": 1, "ends": 1},
    mute={"answer": None, "abstained": True},
    ends={"answer": SAID, "confidence": 0.2},
)
"""With a depth of 3 and of 2. By hand, of 8 cases:
base fails: back (no gold), mute (declined), error: 3; slow only warns, late has its gold at 3;
new fails: late, gone (no gold), mute, error, ends (uncertain instead of success): 5;
within the first 2 late fails in both, so broke: gone, ends; fixed: back; still: late, mute, error.
"""
FAILING = {"base": 3, "new": 5}
CHANGED = {"broke": {"gone", "ends"}, "fixed": {"back"}}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, scored by the suite."""
    home = tmp_path_factory.mktemp("one-count")
    for name, k, answers in (("base", 3, BASE), ("new", 2, NEW)):
        FinishedRun(home, name).write(CASES, answers, config={"retriever": {"k": k}})
        done = call(home, eval_suite.main, "--run", name)
        assert done.exit_code == 0, done.output
    return home


def call(home: Path, command: Any, *words: str) -> Result:
    words = (
        "--results-dir",
        str(home / "results"),
        "--eval-set",
        str(home / "set.jsonl"),
        *words,
    )
    return CliRunner().invoke(command, words, env={"COLUMNS": "200"})


def opened(home: Path, name: str) -> Any:
    library = RunLibrary(home / "results", home / "set.jsonl", home / "labels")
    return library.open(name)


@each_row("name", ["base", "new"])
def test_one_number_of_failing_cases(home: Path, name: str) -> None:
    folder = home / "results" / name
    wanted = FAILING[name]
    assert read_verdicts(folder).counts().failing == wanted
    run = opened(home, name)
    cases = CaseList(run)
    assert cases.failing.counts(run.table)[:2] == (8, wanted), "the browser"
    cases.set_filter("failing")
    cases.update(0)
    assert len(cases.listed) == wanted
    report = page_of(json.loads(call(home, report_run.main, "--run", name, "--json").stdout))
    assert sum(row["state"].startswith("fails") for row in report.listed) == wanted
    words = f"{wanted} of 8 cases fail"
    for form in ("md", "html"):
        call(home, report_run.main, "--run", name, "--format", form)
        assert words in (folder / f"report.{form}").read_text()
    suite = json.loads((folder / "suite.json").read_text())
    assert suite["verdicts"]["failing"] == wanted
    found = failures(folder, [case["id"] for case in CASES])
    assert sum(value > 1 for value in found.values()) == wanted, "label_eval --order failing"
    gates = home / f"{name}.toml"
    gates.write_text(f"[[gates.must_pass]]\ncases = {[case['id'] for case in CASES]}\n")
    gate = call(home, gate_run.main, "--run", name, "--gates", str(gates), "--json")
    checks = [row for row in json.loads(gate.stdout)["checks"] if row["rule"] == "must_pass"]
    assert sum(check["status"] == "failed" for check in checks) == wanted
    run.close()


def test_one_number_of_broken_and_fixed_cases(home: Path) -> None:
    base, new = (home / "results" / name for name in ("base", "new"))
    pair = read_pair(base, new)
    ways = {case["id"]: pair.way(case["id"]) for case in CASES}
    for way, ids in CHANGED.items():
        assert {case_id for case_id, own in ways.items() if own == way} == ids
    compared = json.loads(call(home, compare_runs.main, "base", "new", "--json").stdout)["cases"]
    assert (compared["broke"], compared["fixed"], compared["depth"]) == (2, 1, 2)
    printed = call(home, compare_runs.main, "base", "new").stdout
    assert "Of 8 cases 2 broke and 1 was fixed; 3 still fail, 2 still ok" in printed
    hidden = (
        "gold must be among the first 2 passages of both runs; 1 of those that still fail passes"
    )
    assert f"{hidden} in base by its passages up to 3" in printed, "late: 3 failing are 2 + 1"
    assert compared["deeper"] == {"run": "base", "depth": 3, "cases": 1}
    words = ("--run", "new", "--baseline", "base", "--json")
    report = page_of(json.loads(call(home, report_run.main, *words).stdout))
    runs = [opened(home, name) for name in ("base", "new")]
    listed = PairList(*runs)
    listed.only_flips = True
    listed.update(0)
    shown = {listed.table.ids[row]: listed.flips[row] for row in listed.listed}
    done = call(home, eval_suite.main, "--run", "new", "--baseline", "base")
    assert "Of 8 cases 2 broke and 1 was fixed" in done.stdout
    suite = json.loads((new / "suite.json").read_text())["cases_changed"]
    for way, ids in CHANGED.items():
        assert {row["case_id"] for row in compared["changed"] if row["way"] == way} == ids
        assert {row["case_id"] for row in suite["changed"] if row["way"] == way} == ids
        told = [text for text in report.texts if text.startswith(f"{way}: ")]
        assert {text.split(": ")[1] for text in told} == ids
        assert {row["case_id"] for row in report.listed if row["state"] == way} == ids
        assert {case_id for case_id, own in shown.items() if own == way} == ids, "the browser"
    assert "the right passage was at rank 1 and is now missing" in printed
    for run in runs:
        run.close()


def test_one_first_line(home: Path) -> None:
    words = ("--run", "new", "--baseline", "base")
    compared = json.loads(call(home, compare_runs.main, "base", "new", "--json").stdout)
    said = compared["comparisons"][0]["says"][0]
    assert said.startswith(compared["comparisons"][0]["headline"])
    for command in (gate_run.main, report_run.main):
        told = json.loads(call(home, command, *words, "--json").stdout)
        says = told["says"] if "says" in told else [page_of(told).verdict]
        assert says[0] == said, command
    assert said in call(home, gate_run.main, *words).stdout
    for form in ("md", "html"):
        call(home, report_run.main, *words, "--format", form)
        assert said in (home / "results" / "new" / f"report.{form}").read_text(), form
    suite = ("--run", "new", "--baseline", str(home / "results" / "base"))
    assert json.loads(call(home, eval_suite.main, *suite, "--json").stdout)["says"][0] == said
    assert said in call(home, eval_suite.main, *suite).stdout
    tracked = call(home, track_metrics.main, "--set", "source=runs", "--json")
    assert json.loads(tracked.stdout)["differences"][0]["says"][0] == said
    base, new = (opened(home, name) for name in ("base", "new"))
    pairs = PairList(base, new)
    pairs.take(new.outcome(base))
    assert said in "".join(text for _, text in pairs.second_line(2000))
    base.close()
    new.close()


SCORERS = (score_retrieval, score_pipeline, score_abstention, score_groundedness)


def make(lined: Path, name: str, k: int, answers: list[Any]) -> Path:
    """A run that is not scored."""
    run = FinishedRun(lined, name)
    run.write(CASES, answers, config={"retriever": {"k": k}})
    return run.run


@pytest.fixture(scope="module")
def lined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of a depth of 3 and one of 2, scored; of ``committed`` there is metrics.json alone.

    By hand, within the first 3: base fails back (no gold), mute (declined), error; new fails late
    and gone (no gold), mute, error, ends (another outcome). So late, gone and ends broke, back is
    fixed.
    """
    lined = tmp_path_factory.mktemp("case-lines")
    for name, k, answers in (("base", 3, BASE), ("new", 3, NEW), ("shallow", 2, NEW)):
        make(lined, name, k, answers)
        done = call(lined, eval_suite.main, "--run", name)
        assert done.exit_code == 0, done.output
    committed = lined / "results" / "committed"
    committed.mkdir()
    shutil.copyfile(lined / "results" / "base" / "metrics.json", committed / "metrics.json")
    return lined


BROKE, FIXED = {"late", "gone", "ends"}, {"back"}


def test_each_line_ends_with_the_verdict_and_its_first_reason(lined: Path) -> None:
    metrics = load_metrics(lined / "results" / "new" / "metrics.json")
    assert metrics["case_verdicts"] == {
        "fine": ["ok"],
        "late": ["fails", "no_gold"],
        "gone": ["fails", "no_gold"],
        "back": ["ok"],
        "mute": ["fails", "refused"],
        "error": ["fails", "no_response"],
        "slow": ["ok"],
        "ends": ["fails", "outcome"],
    }
    ruling = read_verdicts(lined / "results" / "new").ruling
    assert metrics["case_rule"] == {"depth": 3, "sha256": ruling.sha256}


def test_the_lines_are_right_after_each_scorer_in_any_order(lined: Path) -> None:
    wanted = set()
    for order in list(permutations(SCORERS))[::9]:
        folder = make(lined, "order", 3, NEW)
        for script in order:
            done = call(lined, script.main, "--run", "order", "-q")
            assert done.exit_code == 0, done.output
            verdicts = read_verdicts(folder)
            for case_id, end in lines(folder).items():
                verdict = verdicts.verdict(case_id)
                assert verdict is not None
                assert end == [*(["fails", verdict.reasons[0].name] if verdict.fails else ["ok"])]
        wanted.add((folder / "metrics.json").read_bytes())
        shutil.rmtree(folder)
    assert len(wanted) == 1


def lines(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = load_metrics(folder / "metrics.json").get("case_verdicts", {})
    return found


def test_scorers_at_once_leave_the_lines_of_the_last(lined: Path) -> None:
    folder = make(lined, "order", 3, NEW)
    words = ("--results-dir", str(lined / "results"), "--eval-set", str(lined / "set.jsonl"))
    with ThreadPoolExecutor() as pool:
        codes = pool.map(
            lambda script: script.main(["--run", "order", "-q", *words], standalone_mode=False),
            SCORERS,
        )
    assert not any(codes)
    together = (folder / "metrics.json").read_bytes()
    for script in SCORERS:
        call(lined, script.main, "--run", "order", "-q")
    assert (folder / "metrics.json").read_bytes() == together
    shutil.rmtree(folder)


def test_every_screen_says_it_of_a_committed_baseline(lined: Path) -> None:
    done = call(lined, compare_runs.main, "committed", "new")
    assert done.exit_code == 0, done.output
    says = "Of 8 cases 3 broke and 1 was fixed; 2 still fail, 2 still ok"
    assert says in done.stdout
    words = ("--run", "new", "--baseline", str(lined / "results" / "committed"))
    report = page_of(json.loads(call(lined, report_run.main, *words, "--json").stdout))
    assert any(text.startswith(says) for text in report.texts)
    told = [text.split(": ")[1] for text in report.texts if text.startswith(("broke: ", "fixed: "))]
    assert sorted(told) == sorted(BROKE | FIXED)
    done = call(lined, report_run.main, *words, "--format", "html")
    assert done.exit_code == 0, done.output
    for source in ("committed/metrics.json", "base/suite.json"):
        path = lined / "results" / source
        done = call(lined, eval_suite.main, "--run", "new", "--baseline", str(path))
        assert says in done.stdout


def test_what_a_committed_file_cannot_tell_is_said(lined: Path, tmp_path: Path) -> None:
    results = lined / "results"
    pair = read_pair(results / "committed", results / "shallow")
    assert not pair
    cases = changes_of(pair, 20)
    assert cases is not None
    says = "gold counted within the first 3 in the baseline, and counts within the first 2 here"
    assert cases.says() == f"Which cases broke is unknown: {says}."
    assert cases.to_dict() == {"unknown": says, "changed": []}
    deeper = read_pair(alone(results / "shallow", tmp_path), results / "new")
    assert {case["id"] for case in CASES if deeper.way(case["id"]) == "broke"} == set()
    assert deeper.ruling.gold_within == 2


def alone(folder: Path, target: Path) -> Path:
    shutil.copyfile(folder / "metrics.json", target / "metrics.json")
    return target


def test_a_file_without_verdicts_serves_as_a_baseline(lined: Path, tmp_path: Path) -> None:
    """As of a run that was scored in part: scores of cases, and no verdicts."""
    metrics = load_metrics(lined / "results" / "base" / "metrics.json")
    plain = {name: value for name, value in metrics.items() if not name.startswith("case_")}
    path = write_metrics(tmp_path / "old" / "metrics.json", plain)
    says = f"{path} does not say which cases fail; score that run again"
    done = call(lined, compare_runs.main, str(path.parent), "new", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["cases"] == {"unknown": says, "changed": []}
    assert any(row["verdict"] for row in found["comparisons"][0]["rows"])


def test_other_rules_are_not_mixed(lined: Path, tmp_path: Path) -> None:
    (tmp_path / "targets.toml").write_text('[cases]\nno_gold = "warn"\n')
    rules = read_case_rules(tmp_path / "targets.toml")
    results = lined / "results"
    pair = read_pair(results / "committed", results / "new", rules)
    assert "the rules by which a case fails" in pair.unknown


def test_a_suite_that_is_killed_leaves_no_lines_of_earlier_scores(
    lined: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The means are new once a section is scored; lines made of the old scores would not be."""
    folder = make(lined, "killed", 3, NEW)
    call(lined, eval_suite.main, "--run", "killed")
    whole = (folder / "metrics.json").read_bytes()
    assert len(lines(folder)) == len(CASES)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:  # as by a signal: what would follow is not done
        patched.setattr(suite, "_write_case_lines", killed)
        call(lined, eval_suite.main, "--run", "killed")
        assert not lines(folder)
    call(lined, eval_suite.main, "--run", "killed")
    assert (folder / "metrics.json").read_bytes() == whole
    shutil.rmtree(folder)
