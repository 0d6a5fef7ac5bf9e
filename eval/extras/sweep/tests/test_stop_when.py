"""A run that stops when it is decided, and what compare and the history make of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import compare_runs
import track_metrics
from extras.sweep.tests.conftest import CASES, Command, MissingBot

Config = Callable[[str], dict[str, Any]]
STOP = ("--against", "base")


@pytest.fixture
def base(ask: Command, score: Command) -> None:
    for done in (ask("base"), score("base")):
        assert done.exit_code == 0, done.output


def compare(tmp_path: Path, eval_set: Path, *runs: str) -> dict[str, Any]:
    folders = ["--eval-set", str(eval_set), "--results-dir", str(tmp_path / "results")]
    done = CliRunner().invoke(compare_runs.main, [*folders, *runs, "--json"])
    assert done.exit_code == 0, done.output
    data: dict[str, Any] = json.loads(done.stdout)
    return data


@pytest.mark.usefixtures("base")
def test_a_large_drop_stops_the_run_and_compare_says_the_same(
    tmp_path: Path, eval_set: Path, ask: Command, score: Command, bot: MissingBot, config: Config
) -> None:
    """Half of the cases fall by 1: t is 4.2 at 20 cases, where the planned bound 2.040/√.2 = 4.56
    is 6.5 of Student's t; at 40 it is 6.2 against 3.5, but no look decides before 50 cases. So
    60 of 100 calls."""
    bot.misses = lambda number: number % 4 < 2
    bot.asked.clear()
    done = ask("new", *STOP)
    assert done.exit_code == 0, done.output
    assert "worse" in done.stderr
    assert "40% of the calls saved" in done.stderr
    assert bot.asked.total() == 60
    run = config("new")["run"]
    assert run["selected"] == len(run["asked"]) == 60
    assert run["stopped"] == "retrieval.evidence_recall@5 is worse than in base"
    decided = run["decided"]
    assert (decided["verdict"], decided["calls"], decided["of"]) == ("worse", 60, 100)
    assert decided["share"] == pytest.approx(0.6)
    assert decided["saved"] == pytest.approx(0.4)
    lines = (tmp_path / "results/new/results.jsonl").read_text().splitlines()
    ids = [json.loads(line)["test_case_id"] for line in lines]
    assert ids == sorted(ids, key=lambda name: int(name[1:]))  # the set's order
    assert ids != [f"q{n}" for n in range(60)]
    assert sum(int(name[1:]) % 2 for name in ids) == 30  # both categories in their share

    assert score("new").exit_code == 0
    told = compare(tmp_path, eval_set, "base", "new")
    told = told.get("comparisons", [told])[0]
    assert told["headline"] == "WORSE"
    row = next(row for row in told["rows"] if row["metric"] == "evidence_recall@5")
    assert row["verdict"] == "worse"
    assert row["interval"] == pytest.approx(decided["interval"])
    assert row["delta"] == pytest.approx(decided["difference"])
    assert [r["metric"] for r in told["rows"] if r["primary"]] == ["evidence_recall@5"]
    assert any("allows for every look" in note for note in told["notes"])

    # against another run: the ordinary interval, which is narrower, and a note
    bot.misses = lambda number: False
    assert ask("third").exit_code == 0
    assert score("third").exit_code == 0
    told = compare(tmp_path, eval_set, "third", "new")
    told = told.get("comparisons", [told])[0]
    other = next(row for row in told["rows"] if row["metric"] == "evidence_recall@5")
    assert other["interval"][1] - other["interval"][0] < row["interval"][1] - row["interval"][0]
    assert any("is biased to one side" in note for note in told["notes"])

    tracked = CliRunner().invoke(track_metrics.main, [str(tmp_path / "results"), "--json"])
    assert "new: stopped or still running, so not shown" in tracked.output

    # nor when its metrics.json is committed, where nothing but that file tells
    for words in (("init", "-q"), ("add", "results/new/metrics.json"), ("commit", "-qm", "x")):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *words], check=True)
    (tmp_path / "results/new/config.json").unlink()
    tracked = CliRunner().invoke(track_metrics.main, [str(tmp_path / "results/new"), "--json"])
    assert "of a run that was stopped, so no point" in " ".join(tracked.output.split())


@pytest.mark.usefixtures("base")
def test_no_difference_asks_everything(ask: Command, bot: MissingBot, config: Config) -> None:
    done = ask("same", *STOP)
    assert done.exit_code == 0, done.output
    run = config("same")["run"]
    assert "stopped" not in run
    assert run["selected"] == CASES
    assert run["decided"]["verdict"] == "no evidence"
    assert run["decided"]["calls"] == 100


@pytest.mark.usefixtures("base")
def test_a_stopped_run_that_is_resumed_stays_stopped_and_keeps_its_plan(
    tmp_path: Path, ask: Command, bot: MissingBot, config: Config
) -> None:
    bot.misses = lambda number: number % 4 < 2
    assert ask("new", *STOP).exit_code == 0
    first = config("new")
    bot.asked.clear()
    # as if it had been killed after the first look: 25 results and no end
    folder = tmp_path / "results/new"
    lines = (folder / "results.jsonl").read_text().splitlines(keepends=True)
    (folder / "results.partial.jsonl").write_text("".join(lines[:25]) + lines[25][:30])
    (folder / "results.jsonl").unlink()
    done = ask("new", "--resume", *STOP)
    assert done.exit_code == 0, done.output
    assert bot.asked.total() == 35
    assert (folder / "results.jsonl").read_text().count("\n") == 60
    assert config("new")["run"] == first["run"]
    bot.asked.clear()
    assert ask("new", "--resume", *STOP).exit_code == 0
    assert bot.asked.total() == 0


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((*STOP, "--until-sure", ".1"), "choose one"),
        (("--until-sure", ".1", "--repeat", "2"), "choose one"),
        (("--max-calls", "9"), "--until-sure"),
        (("--until-sure", "0"), "--until-sure"),
        ((*STOP, "--metric", "fact_recall"), "is not scored in it"),
        (("--against", "nobody"), "no such folder"),
        (("--until-sure", ".1", "--metric", "nothing"), "no such metric"),
        (("--until-sure", ".1", "--metric", "fact_recall"), "needs more than results"),
    ],
)
def test_options_that_cannot_be_kept(
    tmp_path: Path, ask: Command, bot: MissingBot, words: tuple[str, ...], says: str
) -> None:
    bot.asked.clear()
    done = ask("new", *words)
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())
    assert bot.asked.total() == 0
    assert not (tmp_path / "results/new").exists()
