"""A fixed set asked daily: gated as any run, judged as a line, and no alarm for other questions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.decisions.gate.conftest import MadeRun
from tests.rows import each_row

from extras.watch.canaries import look_at_canaries, sentence
from extras.watch.tests.conftest import NOW, call, otlp, trace
from records.errors import StorageError

CASES = 40


def ask(folder: Path, day: int, hits: int, sha: str = "a" * 64, cases: int = CASES) -> None:
    """The canaries of a day: the first ``hits`` of them find the needed evidence."""
    scores = [float(place < hits) for place in range(cases)]
    run = MadeRun(folder / f"canaries-{day:02d}", {"retrieval": {"evidence_recall@5": scores}})
    run.head["eval_set_sha256"] = sha
    run.write()
    config = json.loads((run.folder / "config.json").read_text())
    config |= {"started": f"2026-03-{day + 1:02d}T06:00:00+00:00"}
    (run.folder / "config.json").write_text(json.dumps(config))


STEADY = (32, 33, 31, 32, 33, 32, 31, 33, 32, 31)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "canaries"
    for day, hits in enumerate(STEADY):
        ask(folder, day, hits)
    return folder


def test_quiet_days_are_no_alarm(runs: Path) -> None:
    look = look_at_canaries(runs)
    assert (look.newest, look.baseline, look.runs) == ("canaries-09", "canaries-00", 10)
    assert (look.passed, look.alarms) == (True, ())
    (said,) = look.notes
    assert said.startswith("NO CLEAR DIFFERENCE: 40 cases could miss ±")
    told = "Canaries: canaries-09 passes the gate against canaries-00; no alarm in 10 runs."
    assert sentence(look) == told


def test_a_bot_that_got_worse_is_an_alarm_with_its_day(runs: Path) -> None:
    for day in (10, 11, 12):
        ask(runs, day, 20)
    look = look_at_canaries(runs)
    assert not look.passed
    (alarm,) = look.alarms
    assert alarm.startswith("retrieval.evidence_recall@5 is worse since canaries-10 of 2026-03-11")
    assert look.notes[0].startswith("WORSE: finds 50 % of the needed evidence (80 % before)")
    assert "as on 1 of 20 quiet days" in look.notes[1]


@each_row(("hits", "count"), [(22, 1), (23, 0)])
def test_a_collapse_is_an_alarm_on_the_second_day(tmp_path: Path, hits: int, count: int) -> None:
    """All changed cases fell, and a tie counts half: of 10 changes p is 1 / 2^10 / 2 = .0005, of 9
    it is .001, which fails the gate and is no alarm yet."""
    for day, found in enumerate((32, hits)):
        ask(tmp_path, day, found)
    look = look_at_canaries(tmp_path)
    assert not look.passed
    assert len(look.alarms) == count
    assert all("is worse than in canaries-00: 0.550 now, 0.800 then" in a for a in look.alarms)


def test_other_questions_are_no_change_of_the_bot(runs: Path) -> None:
    """Harder questions from day 10 on: what was asked before is left out, and nothing is worse."""
    for day in (10, 11, 12):
        ask(runs, day, 20, "b" * 64)
    look = look_at_canaries(runs)
    assert (look.baseline, look.runs, look.passed, look.alarms) == ("canaries-10", 3, True, ())
    said, left_out = look.notes
    assert said.startswith("NO CLEAR DIFFERENCE: ")
    assert left_out == "10 runs of another set left out: the bot need not have changed."


def test_lost_cases_are_an_alarm_on_the_same_day(runs: Path) -> None:
    ask(runs, 10, 31, cases=CASES - 3)
    look = look_at_canaries(runs)
    assert not look.passed
    assert any("3" in alarm for alarm in look.alarms)


def test_one_run_and_none(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    ask(folder, 0, 32)
    assert "there is no earlier run yet" in sentence(look_at_canaries(folder))
    (tmp_path / "none").mkdir()
    with pytest.raises(StorageError):
        look_at_canaries(tmp_path / "none")


def test_the_script_shows_them_beside_the_traffic(
    runs: Path, folder: Path, tmp_path: Path, look: Callable[..., Any]
) -> None:
    (folder / "a.jsonl").write_text(otlp(*trace("t")))
    words = [str(folder), "--index", str(tmp_path / "i.sqlite"), "--check-share", "0"]
    words += ["--canaries", str(runs)]
    calm = call(*words, "--silent", "--fail-on", "alarm")
    assert (calm.returncode, calm.stdout) == (0, "")
    for day in (10, 11, 12):
        ask(runs, day, 20)
    shown = call(*words, "--silent", "--fail-on", "alarm", COLUMNS="200")
    assert shown.returncode == 1
    told = "canaries-12 fails the gate against canaries-00; 1 alarm in 13 runs."
    assert f"! Canaries: {told}" in shown.stdout
    assert "is worse since canaries-10" in shown.stdout
    reference = ["--reference", "2026-03-01..2026-03-01"]
    both = call(*words, *reference)
    assert both.stdout.rstrip().endswith("No alarm in 5 figures. ALARM of the canaries.")
    html = tmp_path / "watch.html"
    call(*words, *reference, "--html", str(html))
    page = html.read_text()
    assert "No alarm in 5 figures. ALARM of the canaries." in page
    assert told in page
    assert "is worse since canaries-10" in page
    report = json.loads(call(*words, "--json").stdout)
    assert (report["alarms"], len(report["canaries"]["alarms"])) == ([], 1)
    assert look(now=NOW, canaries=runs).has_alarm
