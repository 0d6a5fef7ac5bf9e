"""track_metrics.py as a user runs it, on a repository with 30 commits of metrics.json."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.metrics_files import metrics_text
from tests.processes import call_script
from tests.rows import each_row

import track_metrics
from records.targets import read_decide

FELL = 21
"""The commit, counted from 0, in which recall falls."""


@pytest.fixture(scope="module")
def thirty(
    make_repo: Any, make_metrics: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[str]]:
    """Supported claims wobble around 0.80, and from commit 21 on around 0.60; pass is steady."""
    repo = make_repo(tmp_path_factory.mktemp("track") / "repo")
    shas = []
    for number in range(30):
        rate = (0.80 if number < FELL else 0.60) + (0.01 if number % 2 else -0.01)
        means = {"groundedness": {"claim_support_rate": rate}, "pipeline": {"pass": 0.5}}
        repo.write(f"n{number:02d}", make_metrics(f"n{number:02d}", means))
        shas.append(repo.commit("Smaller chunks [bold]" if number == FELL else f"Work {number}"))
    return repo.results, shas


def run(*words: object, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return call_script("track_metrics", *map(str, words), cwd=cwd, **({"COLUMNS": "100"} | env))


def test_the_trend_is_shown_and_the_commit_named(thirty: tuple[Path, list[str]]) -> None:
    results, shas = thirty
    done = run(results, "--fail-on", "any")
    assert done.returncode == 1, done.stderr
    rows = done.stdout.splitlines()
    assert rows[0] == "1 of 2 metrics need attention."
    row = next(line for line in rows if line.startswith("! claim_support_rate"))
    trend = row.split()[2]
    assert len(trend) == 30
    assert set(trend[:FELL]) == {"█"}
    assert set(trend[FELL:]) == {"▁"}
    shown = " ".join(done.stdout.split())
    assert f'Worse since {shas[FELL][:9]} (2026-01-22, run n21) "Smaller chunks [bold]"' in shown
    # before: (11 * .79 + 10 * .81) / 21 = .7995; since: (4 * .59 + 5 * .61) / 9 = .6011
    assert "claim_support_rate 0.610: 0.800 on average before, 0.601 in the 9 runs since" in shown
    assert "Primary metrics alert: claim_support_rate, pass." in shown
    assert "ALERT" not in run(results, "--metrics", "claim*", "--set", "last=8").stdout


def test_without_fail_the_exit_code_is_0_and_a_later_begin_ends_an_alert(
    thirty: tuple[Path, list[str]],
) -> None:
    results, shas = thirty
    assert run(results).returncode == 0
    assert run(results, "--fail-on", "drop,gone").returncode == 0
    done = run(results, "--fail-on", "any", "--set", f"since={shas[FELL]}")
    assert done.returncode == 0, done.stdout
    assert done.stdout.lstrip().startswith("No alert.")


def test_the_plain_rule_against_the_median(thirty: tuple[Path, list[str]]) -> None:
    """Of the 29 before the newest, 11 are .79, 10 are .81, the rest lower: in order of size the
    15th is .79, and .61 is 22.8 % under it."""
    results, _ = thirty
    for drop, code in ((22, 1), (23, 0)):
        done = run(results, "--fail-on", "drop", "--drop", drop)
        assert done.returncode == code, done.stdout
    shown = " ".join(run(results, "--drop", 22).stdout.split())
    assert "22.8 % worse than 0.790, the median before" in shown


def test_it_works_from_any_folder(thirty: tuple[Path, list[str]], tmp_path: Path) -> None:
    results, _ = thirty
    inside = run("--results-dir", ".", "--json", cwd=results)
    outside = run(results, "--json", cwd=tmp_path)
    assert (inside.returncode, outside.returncode) == (0, 0)
    assert inside.stdout == outside.stdout


def test_json_and_csv_hold_what_the_screen_shows(
    thirty: tuple[Path, list[str]], tmp_path: Path
) -> None:
    results, shas = thirty
    file = tmp_path / "history.csv"
    done = run(results, "--json", "--csv", file, "--metrics", "groundedness.*")
    found = json.loads(done.stdout)
    (metric,) = found["metrics"]
    assert [one["commit"] for one in found["points"]] == shas
    assert {one["kind"]: one["commit"] for one in metric["alerts"]} == {"shift": shas[FELL]}
    assert [one["began"] for one in metric["shifts"]] == [FELL]
    assert metric["primary"] is True
    rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8"))))
    assert len(rows) == 30
    assert [float(row["mean"]) for row in rows] == [one["mean"] for one in metric["values"]]
    assert [row["alert"] for row in rows] == [""] * FELL + ["shift"] + [""] * 8
    assert run(results, "--csv", "-", "--metrics", "groundedness.*").stdout == file.read_text(
        "utf-8"
    )
    both = run(results, "--csv", "-", "--json")
    assert (both.returncode, both.stdout) == (2, "")


def test_a_terminal_without_unicode_gets_ascii(thirty: tuple[Path, list[str]]) -> None:
    results, _ = thirty
    words = [sys.executable, track_metrics.__file__, str(results), "--metrics", "claim*"]
    settings = os.environ | {"PYTHONIOENCODING": "ascii"}
    plain = subprocess.run(words, env=settings, capture_output=True, encoding="utf-8")
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout.isascii()
    assert "\x1b" not in run(results, NO_COLOR="1", FORCE_COLOR="").stdout


def test_the_screen_fits_narrow_terminals(thirty: tuple[Path, list[str]]) -> None:
    done = run(thirty[0], COLUMNS="60", FORCE_COLOR="1")  # as on a terminal
    shown = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    assert max(map(len, shown.splitlines())) <= 60


@each_row(
    ("words", "says"),
    [
        (("--metrics", "nothing*"), "no metric of the history matches"),
        (("--set", "since=no-such-run"), "no point of this history"),
        (("--drop", "nan"), "not a finite number"),
        (("--drop", "0"), "not in the range"),
        (("--fail-on", "band"), "choose from shift, drop, gone, or any"),
    ],
)
def test_bad_wishes_are_one_sentence(
    thirty: tuple[Path, list[str]], words: tuple[str, str], says: str
) -> None:
    done = run(thirty[0], *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_another_definition_begins_a_new_line(repo: Any, make_metrics: Any) -> None:
    """0.9 by definition 1, 0.5 by definition 2: no drop, since the two are not the same number."""
    for place, (value, version) in enumerate([(0.9, 1), (0.9, 1), (0.5, 2), (0.5, 2)]):
        definitions = {"retrieval.mrr": f"retrieval/mrr@{version}"}
        means = {"retrieval": {"mrr": value}}
        repo.write("a", make_metrics(f"r{place}", means, definitions=definitions))
        repo.commit("c")
    done = run(repo.results, "--fail-on", "any")
    assert done.returncode == 0, done.stdout
    shown = " ".join(done.stdout.split())
    assert "definition of retrieval.mrr changed (retrieval/mrr@1 → retrieval/mrr@2)" in shown
    assert "┊" in done.stdout


def test_kinds_of_alerts_and_what_is_gone(repo: Any, make_metrics: Any) -> None:
    """``mrr`` is not primary, so that it is gone is no alert; that pass is gone is one."""
    for place in range(3):
        means = {"pipeline": {"pass": 0.5}, "retrieval": {"mrr": 0.5, "ndcg@5": 0.5}}
        if place == 2:
            means = {"retrieval": {"ndcg@5": 0.3}}
        repo.write("a", make_metrics(f"r{place}", means))
        repo.commit("c")
    found = json.loads(run(repo.results, "--json", "--drop", 10).stdout)["metrics"]
    alerts = {one["metric"]: [a["kind"] for a in one["alerts"]] for one in found}
    assert alerts == {"pass": ["gone"], "ndcg@5": ["drop"]}
    for kinds, metrics, code in [
        ("any", "mrr", 0),
        ("any", "pass", 1),
        ("drop", "pass", 0),
        ("shift,gone", "pass", 1),
        ("drop", "ndcg*", 1),
        ("gone", "ndcg*", 0),
    ]:
        done = run(repo.results, "--fail-on", kinds, "--metrics", metrics, "--drop", 10)
        assert done.returncode == code, (kinds, metrics)
    shown = run(repo.results, "--metrics", "ndcg*").stdout
    assert "None of the primary metrics is among these" in shown


def scored(
    make_metrics: Any, run_id: str, failed: int, cases: int = 30, **more: Any
) -> dict[str, Any]:
    """A run of which so many cases do not pass, with the scores of its cases."""
    rows = {f"c{number:02d}": [int(number >= failed)] for number in range(cases)}
    means = {"pipeline": {"pass": 1 - failed / cases}}
    content: dict[str, Any] = make_metrics(run_id, means, **more)
    return content | {"primary_metrics": ["pipeline.pass"], "primary": rows}


def test_the_newest_is_compared_with_the_one_before_and_with_the_pinned_one(
    repo: Any, make_metrics: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of 30 cases 12 less than before: -12/30 = -.400; 15 less than the pinned one: -.500. If 3
    fall and none rises, p is 2 * 2^-3: no evidence."""
    targets = tmp_path / "targets.toml"
    targets.write_text('[decide]\nprimary = ["pipeline.pass"]\npinned = "r0"\n')
    monkeypatch.setattr("records.targets.read_decide", lambda: read_decide(targets))
    shas = []
    for number, failed in enumerate((0, 3, 15)):
        repo.write("a", scored(make_metrics, f"r{number}", failed))
        shas.append(repo.commit(f"{failed} fail"))
        done = run(repo.results, "--fail-on", "any")
        assert done.returncode == 0, done.stdout
    shown = " ".join(done.stdout.split())
    assert f"The newest against the point before ({shas[1][:9]}): WORSE" in shown
    assert f"The newest against the pinned baseline ({shas[0][:9]}): WORSE" in shown
    assert shown.startswith("No alert.")
    # the pinned point counts though the history that is shown begins later
    data = json.loads(run(repo.results, "--json", "--set", "last=1").stdout)["differences"]
    assert [(one["role"], one["run_id"]) for one in data] == [("the pinned baseline", "r0")]
    data = json.loads(run(repo.results, "--json").stdout)["differences"]
    assert [one["rows"][0]["delta"] for one in data] == [-0.4, -0.5]
    assert all(
        low < one["rows"][0]["delta"] < high < 0
        for one in data
        for low, high in [one["rows"][0]["interval"]]
    )
    targets.write_text('[decide]\npinned = "r9"\n')
    done = run(repo.results)
    assert done.returncode == 0
    assert "[decide] pinned: 'r9': no point of this history" in " ".join(done.stderr.split())
    assert "pinned baseline" not in done.stdout
    targets.write_text("[decide]\npinned = 3\n")
    done = run(repo.results)
    assert (done.returncode, done.stdout) == (2, "")
    assert "decide.pinned: must be a text; write the id" in " ".join(done.stderr.split())


def test_damaged_case_scores_are_named(repo: Any, make_metrics: Any) -> None:
    repo.write("a", scored(make_metrics, "r0", 0))
    repo.commit("sound")
    broken = scored(make_metrics, "r1", 0)
    broken["primary"]["c03"] = [1, 1]
    repo.write("a", broken)
    repo.commit("broken")
    done = run(repo.results)
    assert done.returncode == 0
    assert "a case has not a score for each of primary_metrics" in " ".join(done.stderr.split())


def test_a_changed_eval_set_and_changed_options_are_told(repo: Any, make_metrics: Any) -> None:
    means = {"retrieval": {"mrr": 0.5}}
    repo.write("a", make_metrics("r0", means, labels_sha256="c" * 64))
    repo.commit("c")
    other = {"eval_set_sha256": "b" * 64, "labels_sha256": "d" * 64, "cases": 12}
    changed = make_metrics("r1", means, **other)
    changed["sections"]["retrieval"]["options"] = {"k": 3}
    repo.write("a", changed)
    repo.commit("c")
    shown = " ".join(run(repo.results).stdout.split())
    assert "the eval set changed (10 → 12 cases)" in shown
    assert "the labels changed" in shown
    assert "the options of retrieval changed" in shown
    for labels in (None, "e" * 64):
        repo.write("a", make_metrics("r2", means, labels_sha256=labels))
        sha = repo.commit("c")
        assert f"{sha[:9]}: the labels changed" in run(repo.results).stdout


def test_a_point_that_does_not_tell_its_eval_set_breaks_no_line(
    repo: Any, make_metrics: Any
) -> None:
    """Set a, unknown, set a: one line. Set a, unknown, set b: two."""
    for place, letter in enumerate("a?a?b"):
        content = make_metrics(f"r{place}", {"retrieval": {"mrr": 1 - place / 4}})
        content["eval_set_sha256"] = None if letter == "?" else letter * 64
        repo.write("a", content)
        sha = repo.commit(f"c{place}")
        done = run(repo.results, "--fail-on", "any", "--drop", 10)
        assert done.returncode == (0 if place in (0, 4) else 1), f"point {place}"
    assert f"{sha[:9]}: the eval set changed (10 cases as before): new lines" in done.stdout


def test_hostile_texts_are_shown_as_they_are(repo: Any, make_metrics: Any) -> None:
    subject = "=cmd|' /C calc'!A1 [red]x[/red] \x1b[31mred"
    for place, value in enumerate([0.9, 0.5]):
        repo.write("a", make_metrics("\x1b]0;title\x07", {"retrieval": {"mrr": value}}))
        repo.commit(subject if place else "first")
    done = run(repo.results)
    assert "\x1b" not in done.stdout
    assert "[red]x[/red]" in " ".join(done.stdout.split())
    rows = list(csv.DictReader(io.StringIO(run(repo.results, "--csv", "-").stdout)))
    assert rows[1]["subject"].startswith("'=cmd|")
    assert "\x1b" not in rows[1]["subject"] + rows[1]["run_id"]


def test_runs_without_git(make_metrics: Any, tmp_path: Path) -> None:
    for name, value, start in (("b", 0.9, "2026-01-01"), ("a", 0.5, "2026-02-01")):
        folder = tmp_path / name
        folder.mkdir()
        metrics = make_metrics(name, {"retrieval": {"mrr": value}})
        (folder / "metrics.json").write_text(metrics_text(metrics))
        config = {"schema": 1, "run_id": name, "started": f"{start}T00:00:00+00:00"}
        (folder / "config.json").write_text(json.dumps(config))
    words = ("--results-dir", tmp_path, "--set", "source=runs", "--fail-on", "any", "--drop", 10)
    done = run(*words)
    assert done.returncode == 1
    assert "Worse since a (2026-02-01, not committed)" in done.stdout
    (tmp_path / "a" / "results.partial.jsonl").write_text("")
    done = run(*words)
    assert done.returncode == 0, "a run that was stopped is no point"
    assert "a: stopped or still running, so not shown" in " ".join(done.stderr.split())
