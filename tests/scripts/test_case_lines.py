"""The lines of cases in metrics.json: right after every scorer in any order, and enough by
themselves to tell which cases broke and were fixed."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tests.metrics_files import write_metrics
from tests.pages import page_of
from tests.scripts.conftest import FinishedRun
from tests.scripts.test_one_count import BASE, CASES, NEW, call

import compare_runs
import eval_suite
import report_run
import score_abstention
import score_groundedness
import score_pipeline
import score_retrieval
from decisions.case_changes import changes_of, read_pair
from decisions.case_rules import read_case_rules
from decisions.case_verdict import read_verdicts
from records.metrics import load_metrics
from scorers import suite

SCORERS = (score_retrieval, score_pipeline, score_abstention, score_groundedness)


def make(home: Path, name: str, k: int, answers: list[Any]) -> Path:
    """A run that is not scored."""
    run = FinishedRun(home, name)
    run.write(CASES, answers, config={"retriever": {"k": k}})
    return run.run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of a depth of 3 and one of 2, scored; of ``committed`` there is metrics.json alone.

    By hand, within the first 3: base fails back (no gold), mute (declined), error; new fails late
    and gone (no gold), mute, error, ends (another outcome). So late, gone and ends broke, back is
    fixed.
    """
    home = tmp_path_factory.mktemp("case-lines")
    for name, k, answers in (("base", 3, BASE), ("new", 3, NEW), ("shallow", 2, NEW)):
        make(home, name, k, answers)
        done = call(home, eval_suite.main, "--run", name)
        assert done.exit_code == 0, done.output
    committed = home / "results" / "committed"
    committed.mkdir()
    shutil.copyfile(home / "results" / "base" / "metrics.json", committed / "metrics.json")
    return home


BROKE, FIXED = {"late", "gone", "ends"}, {"back"}


def test_each_line_ends_with_the_verdict_and_its_first_reason(home: Path) -> None:
    metrics = load_metrics(home / "results" / "new" / "metrics.json")
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
    ruling = read_verdicts(home / "results" / "new").ruling
    assert metrics["case_rule"] == {"depth": 3, "sha256": ruling.sha256}


def test_the_lines_are_right_after_each_scorer_in_any_order(home: Path) -> None:
    wanted = set()
    for order in list(permutations(SCORERS))[::9]:
        folder = make(home, "order", 3, NEW)
        for script in order:
            done = call(home, script.main, "--run", "order", "-q")
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


def test_scorers_at_once_leave_the_lines_of_the_last(home: Path) -> None:
    folder = make(home, "order", 3, NEW)
    words = ("--results-dir", str(home / "results"), "--eval-set", str(home / "set.jsonl"))
    with ThreadPoolExecutor() as pool:
        codes = pool.map(
            lambda script: script.main(["--run", "order", "-q", *words], standalone_mode=False),
            SCORERS,
        )
    assert not any(codes)
    together = (folder / "metrics.json").read_bytes()
    for script in SCORERS:
        call(home, script.main, "--run", "order", "-q")
    assert (folder / "metrics.json").read_bytes() == together
    shutil.rmtree(folder)


def test_every_screen_says_it_of_a_committed_baseline(home: Path) -> None:
    done = call(home, compare_runs.main, "committed", "new")
    assert done.exit_code == 0, done.output
    says = "Of 8 cases 3 broke and 1 was fixed; 2 still fail, 2 still ok"
    assert says in done.stdout
    words = ("--run", "new", "--baseline", str(home / "results" / "committed"))
    report = page_of(json.loads(call(home, report_run.main, *words, "--json").stdout))
    assert any(text.startswith(says) for text in report.texts)
    told = [text.split(": ")[1] for text in report.texts if text.startswith(("broke: ", "fixed: "))]
    assert sorted(told) == sorted(BROKE | FIXED)
    done = call(home, report_run.main, *words, "--format", "html")
    assert done.exit_code == 0, done.output
    for source in ("committed/metrics.json", "base/suite.json"):
        path = home / "results" / source
        done = call(home, eval_suite.main, "--run", "new", "--baseline", str(path))
        assert says in done.stdout


def test_what_a_committed_file_cannot_tell_is_said(home: Path, tmp_path: Path) -> None:
    results = home / "results"
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


def test_a_file_without_verdicts_serves_as_a_baseline(home: Path, tmp_path: Path) -> None:
    """As of a run that was scored in part: scores of cases, and no verdicts."""
    metrics = load_metrics(home / "results" / "base" / "metrics.json")
    plain = {name: value for name, value in metrics.items() if not name.startswith("case_")}
    path = write_metrics(tmp_path / "old" / "metrics.json", plain)
    says = f"{path} does not say which cases fail; score that run again"
    done = call(home, compare_runs.main, str(path.parent), "new", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["cases"] == {"unknown": says, "changed": []}
    assert any(row["verdict"] for row in found["comparisons"][0]["rows"])


def test_other_rules_are_not_mixed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "targets.toml").write_text('[cases]\nno_gold = "warn"\n')
    rules = read_case_rules(tmp_path / "targets.toml")
    results = home / "results"
    pair = read_pair(results / "committed", results / "new", rules)
    assert "the rules by which a case fails" in pair.unknown


def test_a_suite_that_is_killed_leaves_no_lines_of_earlier_scores(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The means are new once a section is scored; lines made of the old scores would not be."""
    folder = make(home, "killed", 3, NEW)
    call(home, eval_suite.main, "--run", "killed")
    whole = (folder / "metrics.json").read_bytes()
    assert len(lines(folder)) == len(CASES)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:  # as by a signal: what would follow is not done
        patched.setattr(suite, "_write_case_lines", killed)
        call(home, eval_suite.main, "--run", "killed")
        assert not lines(folder)
    call(home, eval_suite.main, "--run", "killed")
    assert (folder / "metrics.json").read_bytes() == whole
    shutil.rmtree(folder)
