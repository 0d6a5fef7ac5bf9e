"""track_metrics.py as a user runs it, on a repository with 30 commits of metrics.json."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import track_metrics

SCRIPT = Path(track_metrics.__file__)
FELL = 21
"""The commit, counted from 0, in which recall falls."""


@pytest.fixture(scope="module")
def thirty(
    make_repo: Any, make_metrics: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[str]]:
    """Recall wobbles around 0.80, and from commit 21 on around 0.60; over_refusal is steady."""
    repo = make_repo(tmp_path_factory.mktemp("track") / "repo")
    shas = []
    for number in range(30):
        recall = (0.80 if number < FELL else 0.60) + (0.01 if number % 2 else -0.01)
        means = {"retrieval": {"recall@5": recall}, "abstention": {"over_refusal": 0.1}}
        repo.write(f"n{number:02d}", make_metrics(f"n{number:02d}", means))
        shas.append(repo.commit("Smaller chunks [bold]" if number == FELL else f"Work {number}"))
    return repo.results, shas


def run(*words: object, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, words)],
        cwd=cwd,
        env=kept | {"RAG_EVAL_CONFIG": os.devnull, "COLUMNS": "100"} | env,
        capture_output=True,
        encoding="utf-8",
    )


def test_the_trend_is_shown_and_the_commit_named(thirty: tuple[Path, list[str]]) -> None:
    results, shas = thirty
    done = run(results, "--fail-on", "any")
    assert done.returncode == 1, done.stderr
    row = next(line for line in done.stdout.splitlines() if "recall@5" in line)
    assert row.startswith("! ")
    trend = row.split()[2]
    assert len(trend) == 30
    assert set(trend[:FELL]) == {"█"}
    assert set(trend[FELL:]) == {"▁"}
    shown = " ".join(done.stdout.split())
    assert f'Worse since {shas[FELL][:9]} (2026-01-22, run n21) "Smaller chunks [bold]"' in shown
    # the best so far, 0.81, first in commit 1; today 0.61: (0.81 - 0.61) / 0.81 = 24.7 %
    assert f"24.7 % worse than 0.810 at {shas[1][:9]}" in shown
    assert "under its control band" in shown
    assert "ALERT" not in run(results, "--metrics", "recall@5", "--last", 8).stdout


def test_without_fail_the_exit_code_is_0_and_a_mended_metric_raises_no_alert(
    thirty: tuple[Path, list[str]],
) -> None:
    results, shas = thirty
    assert run(results).returncode == 0
    done = run(results, "--fail-on", "any", "--baseline", shas[22], "--band", "none")
    assert done.returncode == 0, done.stdout
    assert done.stdout.rstrip().endswith("No alert.")
    assert (
        run(results, "--fail-on", "any", "--max-drop-percent", 30, "--band", "none").returncode == 0
    )
    assert run(results, "--fail-on", "any", "--since", shas[FELL]).returncode == 0


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
    done = run(results, "--json", "--csv", file, "--metrics", "retrieval.*")
    found = json.loads(done.stdout)
    (metric,) = found["metrics"]
    assert [one["commit"] for one in found["points"]] == shas
    assert {one["kind"]: one["commit"] for one in metric["alerts"]} == {
        "drop": shas[FELL],
        "band": shas[FELL],
    }
    rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8"))))
    assert len(rows) == 30
    assert [float(row["mean"]) for row in rows] == [one["mean"] for one in metric["values"]]
    assert [row["alert"] for row in rows] == [""] * FELL + ["drop band"] * 9
    assert run(results, "--csv", "-", "--metrics", "retrieval.*").stdout == file.read_text("utf-8")
    both = run(results, "--csv", "-", "--json")
    assert (both.returncode, both.stdout) == (2, "")


def test_a_plot_in_unicode_and_in_ascii(thirty: tuple[Path, list[str]]) -> None:
    results, _ = thirty
    unicode = run(results, "--metrics", "recall@5")
    assert "▲" in unicode.stdout
    assert any("\u2800" < char < "\u28ff" for char in unicode.stdout)
    plain = run(results, "--metrics", "recall@5", "--plot", PYTHONIOENCODING="ascii")
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout.isascii()
    assert "^" in plain.stdout
    assert "\x1b" not in run(results, NO_COLOR="1", FORCE_COLOR="").stdout


def test_the_screen_fits_narrow_terminals(thirty: tuple[Path, list[str]]) -> None:
    done = run(thirty[0], "--plot", COLUMNS="60")
    assert max(map(len, done.stdout.splitlines())) <= 60


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--metrics", "nothing*"), "no metric of the history fits"),
        (("--baseline", "no-such-commit"), "no point of this history"),
        (("--since", "no-such-run"), "no point of this history"),
        (("--max-drop-percent", "nan"), "no finite number"),
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
    assert "retrieval.mrr has another definition (retrieval/mrr@1 → retrieval/mrr@2)" in shown
    assert "┊" in done.stdout


def test_a_rise_of_what_should_be_low_alerts_and_a_lost_metric_too(
    repo: Any, make_metrics: Any
) -> None:
    for place, value in enumerate([0.2, 0.2, 0.3]):
        means = {"abstention": {"over_refusal": value}, "retrieval": {"mrr": 0.5}}
        if place == 2:
            del means["retrieval"]
        repo.write("a", make_metrics(f"r{place}", means))
        sha = repo.commit("c")
    found = json.loads(run(repo.results, "--json").stdout)["metrics"]
    alerts = {one["metric"]: [a["kind"] for a in one["alerts"]] for one in found}
    assert alerts == {"over_refusal": ["drop"], "mrr": ["gone"]}
    (rise,) = next(one for one in found if one["metric"] == "over_refusal")["alerts"]
    assert rise["commit"] == sha
    for kinds, metrics, code in [
        ("any", "mrr", 1),
        ("drop", "mrr", 0),
        ("drop,band", "mrr", 0),
        ("gone", "mrr", 1),
        ("drop", "mrr,over_*", 1),
        ("gone", "over_*", 0),
    ]:
        done = run(repo.results, "--fail-on", kinds, "--metrics", metrics)
        assert done.returncode == code, (kinds, metrics)
    refused = run(repo.results, "--fail-on", "gone,worse")
    assert refused.returncode == 2
    assert "--fail-on worse: no such alert; name some of drop, band, gone, or any" in refused.stderr


def test_a_number_that_was_always_0_and_rises_names_one_commit(
    repo: Any, make_metrics: Any
) -> None:
    """Equal points draw no band; the first one that moved begins the fall, not the second, from
    which on there is a band. Of 0 there is no share, so the rise itself is told."""
    shas = []
    for place, value in enumerate([0.0] * 9 + [0.1, 0.1, 0.1]):
        means = {"abstention": {"over_refusal": value}}
        repo.write("a", make_metrics(f"r{place}", means))
        shas.append(repo.commit(f"c{place}"))
    shown = " ".join(run(repo.results).stdout.split())
    assert f"Worse since {shas[9][:9]}" in shown
    assert f"0.100 worse than 0.000 at {shas[0][:9]}; over its control band" in shown
    assert shown.count("Worse since") == 1


def test_a_slow_slide_names_its_largest_step(repo: Any, make_metrics: Any) -> None:
    """1.0, 0.98, 0.92, 0.89, 0.88: 10 % under the best is crossed by 0.89; the step to 0.92 was
    the largest."""
    shas = []
    for place, value in enumerate([1.0, 0.98, 0.92, 0.89, 0.88]):
        repo.write("a", make_metrics(f"r{place}", {"retrieval": {"mrr": value}}))
        shas.append(repo.commit(f"c{place}"))
    shown = " ".join(run(repo.results).stdout.split())
    assert f"Worse since {shas[3][:9]}" in shown
    assert f"its largest step was {shas[2][:9]}" in shown


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


def test_another_eval_set_begins_a_new_line(repo: Any, make_metrics: Any) -> None:
    """0.9 on easy questions and 0.5 on hard ones is no fall; 0.5 to 0.4 on the hard ones is."""
    for place, (value, letter) in enumerate([(0.9, "a"), (0.5, "b"), (0.4, "b")]):
        content = make_metrics(
            f"r{place}", {"retrieval": {"mrr": value}}, eval_set_sha256=letter * 64
        )
        repo.write("a", content)
        sha = repo.commit(f"c{place}")
        done = run(repo.results, "--fail-on", "any")
        assert done.returncode == (1 if place == 2 else 0), done.stdout
        if place == 1:
            assert f"{sha[:9]}: the eval set changed (10 cases as before): new lines" in done.stdout
    assert f"Worse since {sha[:9]}" in done.stdout
    assert "20.0 % worse than 0.500" in " ".join(done.stdout.split())
    fixed = run(repo.results, "--baseline", "HEAD~2", "--fail-on", "any")
    assert fixed.returncode == 0
    assert "--baseline HEAD~2: 1 of 1 metrics have no number there of today's" in fixed.stderr


def test_a_point_that_does_not_tell_its_eval_set_breaks_no_line(
    repo: Any, make_metrics: Any
) -> None:
    """Set a, unknown, set a: one line. Set a, unknown, set b: two."""
    for place, letter in enumerate("a?a?b"):
        content = make_metrics(f"r{place}", {"retrieval": {"mrr": 1 - place / 4}})
        content["eval_set_sha256"] = None if letter == "?" else letter * 64
        repo.write("a", content)
        repo.commit(f"c{place}")
        struck = run(repo.results, "--fail-on", "any").returncode
        assert struck == (0 if place in (0, 4) else 1), f"point {place}"


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
        (folder / "metrics.json").write_text(
            json.dumps(make_metrics(name, {"retrieval": {"mrr": value}}))
        )
        config = {"schema": 1, "run_id": name, "started": f"{start}T00:00:00+00:00"}
        (folder / "config.json").write_text(json.dumps(config))
    done = run("--results-dir", tmp_path, "--source", "runs", "--fail-on", "any")
    assert done.returncode == 1
    assert "Worse since a (2026-02-01, not committed)" in done.stdout
