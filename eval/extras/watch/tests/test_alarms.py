"""An alarm lasts: through quarters, crashes, a deleted index, a clock that goes back; until it is
over or seen. Where the promise is about processes, real ones run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from extras.watch import watch_traces
from extras.watch.alarms import alarms_file, read_alarms, write_alarms
from extras.watch.rise import Rise
from extras.watch.tests.conftest import DAY, REFUSAL, START, call, otlp, trace
from extras.watch.what_rose import what_rose
from records.errors import StorageError

A_DAY = 20
REFERENCE = "2026-03-01..2026-04-25"
"""56 days: eight weeks."""


def days(first: int, last: int, every: int, a_day: int = A_DAY, question: str = "") -> str:
    """Lines of traces of some days; one in ``every`` is a refusal."""
    lines = []
    for day in range(first, last):
        for n in range(a_day):
            answer = REFUSAL if n % every == 0 else "With oil, once a week, as the maker says."
            own = f"How is part {(7 * n + day) % 13} of crane {day} greased?"
            asked = question.format(n) or own
            at = START + day * DAY + n * DAY / a_day
            lines.append(otlp(*trace(f"{day}.{n}", at=at, question=asked, answer=answer)))
    return "".join(lines)


def at(day: int) -> int:
    """The first moment of a day, in microseconds."""
    return (START + day * DAY) * 1_000_000


@pytest.fixture
def risen(folder: Path) -> Path:
    """One in twenty refuses; from day 70 (10 May) on one in four. The quarter ends on day 121."""
    (folder / "a.jsonl").write_text(days(0, 70, 20) + days(70, 100, 4))
    return folder


def alarm(outcome: Any) -> list[str]:
    return [f"{figure.name} {figure.lasting.since}" for figure in outcome.alarms]


SINCE = ["refusals 2026-05-10"]


def test_an_alarm_lasts_over_the_end_of_a_quarter(risen: Path, tmp_path: Path, look: Any) -> None:
    assert alarm(look(now=at(100), reference=REFERENCE)) == SINCE
    until = 100
    for day in (121, 122, 125, 128):
        (risen / f"{day}.jsonl").write_text(days(until, day, 4))
        until = day
        assert alarm(look(now=at(day))) == SINCE
    (risen / "c.jsonl").write_text(days(128, 140, 20))
    assert alarm(look(now=at(140))) == SINCE
    (risen / "d.jsonl").write_text(days(140, 150, 20))
    outcome = look(now=at(150))
    assert (alarm(outcome), outcome.has_alarm) == ([], False)
    (refusals,) = read_alarms(alarms_file(tmp_path / "index.sqlite"))["refusals"]
    assert (refusals.since, refusals.ended) == (date(2026, 5, 10), date(2026, 7, 20))
    # 5 % as in the reference (1 of 20 each day) from day 128, 7 July, on: 14 days later it is over.


def test_a_day_counts_when_it_is_over(folder: Path, look: Callable[..., Any]) -> None:
    """A day on which half of the answers refuse counts from midnight on."""
    lines = days(0, 56, 20) + days(56, 60, 4) + days(60, 70, 2, 2)
    (folder / "a.jsonl").write_text(lines)
    before = [look(now=at(70) - DAY * 500_000, reference=REFERENCE)]
    before.append(look(now=at(70)))
    assert [figure.days[-1].day for figure in (o.figures[0] for o in before)] == [
        date(2026, 5, 8), date(2026, 5, 9)
    ]  # fmt: skip


def test_an_alarm_outlives_its_index_its_traces_and_a_clock(
    risen: Path, tmp_path: Path, look: Callable[..., Any]
) -> None:
    assert alarm(look(now=at(100), reference=REFERENCE)) == SINCE
    assert alarm(look(now=at(60))) == SINCE, "a clock that goes back loses no alarm"
    assert alarm(look(now=at(100))) == SINCE
    (tmp_path / "index.sqlite").unlink()
    for leftover in tmp_path.glob("index.sqlite-*"):
        leftover.unlink()
    (risen / "a.jsonl").write_text(days(0, 62, 20) + days(95, 105, 4))  # a gap of days, too
    outcome = look(now=at(105), reference=REFERENCE)
    assert alarm(outcome) == SINCE
    assert len(outcome.risen) == 1
    # A new reference is a new beginning: the traces that are left rose on day 95.
    wished = {"reference": "2026-03-02..2026-04-26", "replace_reference": True}
    assert alarm(look(now=at(106), **wished)) == ["refusals 2026-06-04"]


def test_days_without_traffic_end_no_alarm(risen: Path, look: Callable[..., Any]) -> None:
    assert alarm(look(now=at(100), reference=REFERENCE)) == SINCE
    for day in (115, 150, 300):
        assert alarm(look(now=at(day))) == SINCE
    (risen / "b.jsonl").write_text(days(300, 304, 20))
    assert alarm(look(now=at(305))) == SINCE, "four days are no two weeks"


def test_what_a_person_has_seen_is_no_alarm_and_what_no_look_showed_stays_one(
    risen: Path, look: Callable[..., Any]
) -> None:
    # No look has shown it yet, so it cannot have been seen.
    assert alarm(look(now=at(90), reference=REFERENCE, seen=True)) == SINCE
    outcome = look(now=at(91), seen=True)
    assert (alarm(outcome), outcome.figures[0].lasting.seen) == ([], date(2026, 5, 31))
    assert "seen on 31 May" in outcome.figures[0].sentence
    assert alarm(look(now=at(100))) == []
    (risen / "b.jsonl").write_text(days(100, 130, 2))  # a half refuses: that is more
    (more,) = alarm(look(now=at(130)))
    assert more == "refusals 2026-06-09"


def test_a_damaged_file_of_alarms_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = alarms_file(tmp_path / "x.sqlite")
    assert read_alarms(path) == {}
    known = {"slow": [Rise(date(2026, 5, 1), date(2026, 5, 9))], "leaks": []}
    write_alarms(path, known)
    assert read_alarms(path) == {"slow": known["slow"]}
    assert json.loads(path.read_text())["figures"]["slow"][0]["since"] == "2026-05-01"
    for text, message in (
        ("{", "not JSON"),
        ('{"schema": 9}', "schema"),
        ('{"schema": 1, "figures": {"slow": [{"since": "today"}]}}', "delete it to forget"),
    ):
        path.write_text(text)
        with pytest.raises(StorageError, match=message):
            read_alarms(path)


def options(index: Path) -> list[str]:
    return ["--index", str(index), "--check-share", "0", "--json", "--reference", REFERENCE]


def start(folder: Path, index: Path, **streams: Any) -> subprocess.Popen[bytes]:
    words = [sys.executable, watch_traces.__file__, str(folder), *options(index)]
    environment = os.environ | {"RAG_EVAL_DATA": "", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, env=environment, **streams)


def test_kills_between_and_within_looks_lose_no_alarm(folder: Path, tmp_path: Path) -> None:
    """After each part of the traces a look is killed -9, sooner or later, then one goes through.
    What is known in the end is what a watcher knows that no kill met."""
    parts = [days(0, 70, 20), days(70, 78, 4), days(78, 90, 4), days(90, 97, 4)]
    indexes = [tmp_path / "killed.sqlite", tmp_path / "calm.sqlite"]
    for number, part in enumerate(parts):
        (folder / f"{number}.jsonl").write_text(part)
        process = start(folder, indexes[0], stdout=DEVNULL, stderr=DEVNULL)
        time.sleep((0.3, 0.6)[number % 2])
        process.send_signal(signal.SIGKILL)
        process.wait()
        for index in indexes:
            done = call(str(folder), *options(index))
            assert done.returncode == 0, done.stderr
    killed, calm = (read_alarms(alarms_file(index)) for index in indexes)
    assert killed == calm
    assert [known.since for known in calm["refusals"]] == [date(2026, 5, 10)]


def test_two_watchers_at_once_know_the_same(risen: Path, tmp_path: Path) -> None:
    index = tmp_path / "shared.sqlite"
    both = [start(risen, index, stdout=PIPE, stderr=PIPE) for _ in range(2)]
    ends = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], ends
    first, second = (json.loads(out) for out, _ in ends)
    assert first["alarms"] == second["alarms"] == ["refusals"]
    assert first["figures"] == second["figures"]
    assert len(read_alarms(alarms_file(index))["refusals"]) == 1


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone of a process is fixed")
def test_days_are_utc_wherever_the_watcher_runs(
    risen: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Any] = []
    for zone in ("UTC", "Pacific/Kiritimati", "America/Anchorage", "Asia/Kolkata"):
        with monkeypatch.context() as there:
            there.setenv("TZ", zone)
            time.tzset()
            done = call(str(risen), *options(tmp_path / f"{len(figures)}.sqlite"))
            assert done.returncode == 0, done.stderr
            figures.append(json.loads(done.stdout)["figures"])
        time.tzset()
    assert figures == figures[:1] * 4


def test_an_alarm_says_what_rose_shows_three_traces_and_the_command(
    folder: Path, tmp_path: Path
) -> None:
    """A quarter of the questions are German; from day 70 on they are refused, others as before."""
    asked = "Wie wird das Lager von der Pumpe {} mit dem Fett für die Anlage gepflegt? jane@corp.io"
    lines = days(0, 70, 20, 15) + days(70, 90, 20, 15)
    german = days(0, 70, 20, 5, asked) + days(70, 90, 1, 5, asked)
    lines += re.sub(r'"((?:trace|span|parentSpan)Id)": "(?=\d)', r'"\1": "de', german)
    (folder / "a.jsonl").write_text(lines)
    index = ["--index", str(tmp_path / "i.sqlite"), "--check-share", "0"]
    done = call(str(folder), *index, "--reference", REFERENCE, COLUMNS="200")
    assert done.returncode == 0
    text = done.stdout
    assert "Refusals: what rose, and three traces" in text
    german = "Questions in German rose more often: 100 of 100 (25 of 123 before), against 20 of 300"
    assert f"{german} others" in text
    examples = [line for line in text.splitlines() if "trace-" in line]
    assert len(examples) == 3
    assert all("Wie wird das Lager" in line and "[email]" in line for line in examples)
    assert "jane@corp.io" not in text
    drawing = f"for labelling: watch_traces.py {folder} --cases 12 --output drawn"
    assert drawing in " ".join(text.split())
    html = tmp_path / "watch.html"
    call(str(folder), *index, "--html", str(html))
    page = html.read_text()
    german = "Questions in German rose more often: 100 of 100 (25 of 123 before), against 20 of 300"
    assert f"{german} others" in page
    assert page.count("Wie wird das Lager") == 3
    assert "jane@corp.io" not in page
    as_json = call(str(folder), *index, "--json", "--fail-on", "alarm")
    assert as_json.returncode == 1
    (shown,) = json.loads(as_json.stdout)["risen"]
    assert (shown["figure"], len(shown["examples"])) == ("refusals", 3)
    seen = call(str(folder), *index, "--seen", "--fail-on", "alarm")
    assert seen.returncode == 0
    assert seen.stdout.rstrip().endswith("No alarm in 5 figures.")
    quiet = call(str(folder), *index, "--silent")
    assert quiet.stdout == ""


def test_even_mixes_have_nothing_in_common(risen: Path, look: Callable[..., Any]) -> None:
    (shown,) = look(now=at(100), reference=REFERENCE).risen
    assert shown.slices == ()
    assert len(shown.examples) == 3
    assert what_rose.__doc__
    assert datetime.fromtimestamp(START, UTC).date() == date(2026, 3, 1)
