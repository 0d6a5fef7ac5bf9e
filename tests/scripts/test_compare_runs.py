"""compare_runs.py as a user runs it: real scored runs, every output, refusals, hostile texts."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt
from tests.score_lines import change_lines, write_lines
from tests.scripts.conftest import FinishedRun

import compare_runs
import score_pipeline
import score_retrieval
from records.files import sha256_file
from records.scores import ScoreLine
from storage import RetrievedChunk, TestResult

CASES = 24
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/] ``` <script>alert(1)</script> ![i](http://e/) @all"
Compare = Callable[..., Result]


def run(command: click.Command, folder: Path, *words: str, columns: int = 100) -> Result:
    places = ("--eval-set", str(folder / "set.jsonl"), "--results-dir", str(folder / "results"))
    return CliRunner().invoke(command, [*words, *places], env={"COLUMNS": str(columns)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of 24 questions and the runs ``good`` (gold first), ``bad`` (every third time gone,
    k 5 instead of 9) and ``same`` (as good), all scored."""
    lines = [
        {
            "id": f"q{i}",
            "question": f"What is {i}? {HOSTILE}" if i == 3 else f"What is {i}?",
            "answerable": True,
            "category": "factual" if i < 12 else "reasoning",
            "relevant_docs": [f"notes/{i}.md"],
            "gold_supports": [],
            "expected_outcome": "success",
            "thread": i // 4,
        }
        for i in range(CASES)
    ]
    for name, lost, k in (("good", 0, 9), ("bad", 3, 5), ("same", 0, 9)):
        results = []
        for i in range(CASES):
            found = "other.md" if lost and i % lost == 0 else f"notes/{i}.md"
            chunks: list[RetrievedChunk | str] = [RetrievedChunk("c", "x.md", "x.md", rank=1)]
            chunks.append(RetrievedChunk("d", found, found, rank=2))
            answer = f"{name} says {i}. {HOSTILE}\n```\n<b>out</b>\n" if i == 3 else f"It is {i}."
            question = str(lines[i]["question"])
            results.append(TestResult(f"q{i}", question, answer=answer, retrieved=chunks))
        made = FinishedRun(tmp_path, name)
        made.write(lines, results, full=False, config={"retriever": {"k": k}})
        for script in (score_retrieval.main, score_pipeline.main):
            made.section(script, "--run", name)
    return tmp_path


@pytest.fixture
def compare(folder: Path) -> Compare:
    return lambda *words, **more: run(compare_runs.main, folder, *words, **more)


def test_the_report_on_the_terminal(compare: Compare) -> None:
    done = compare("good", "bad", "--metrics", "recall@5,mrr", "--set", "flips=2")
    assert done.exit_code == 0
    shown = done.stdout
    assert "good → bad: 24 cases in both" in shown
    assert "Changed: k 9 → 5." in shown
    assert "Primary metrics (these decide the verdict)" in shown
    # 8 of 24 lose their only gold, in both metrics: 2 of 2^8 patterns, counted half: .0039.
    row = next(line for line in shown.splitlines() if line.startswith("recall@5"))
    assert row.split()[1:5] == ["1.000", "0.667", "24/24", "−0.333"]
    assert " .004 " in row
    assert "▼ worse" in row
    assert "Of 24 cases 0 broke and 0 were fixed; 24 still fail" in shown  # none cites a source
    assert "Got worse: q0" not in shown
    whole = compare("good", "bad", "-v").stdout
    assert "gold 2 → none: " in whole
    assert "Got worse: q0" in whole


def test_the_answer_stands_last(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--metrics", "recall@5,mrr", "--json")
    (found,) = json.loads(compare("good", "bad", *words).stdout)["comparisons"]
    lines = compare("good", "bad", *words[:2], columns=80).stdout.splitlines()
    assert lines[-len(found["says"]) :] == found["says"]
    assert found["says"][0] == (
        "WORSE: right passages found in the first 5: 67 % (100 % before) and how early the first "
        "right passage comes: 0.333 (0.500 before)."
    )
    assert found["says"][-1] == "Next: see which cases broke: browse_runs.py good bad."
    same = compare("good", "same", "--metrics", "recall@5").stdout.splitlines()
    assert same[-4].startswith("NO CLEAR DIFFERENCE: 24 cases could miss ±")
    since = "Since the pinned baseline v1: recall@5 −6 points."
    monkeypatch.setattr("decisions.alerts.since_pinned", lambda *_: since)
    assert since in " ".join(compare("good", "same").stdout.split())
    assert since not in " ".join(compare("good", "same", "bad").stdout.split())


def set_score(lines: list[ScoreLine], number: int, metric: str, value: float) -> None:
    lines[number].scores[metric] = value


def test_flips_are_of_the_primary_metric_that_got_worse(compare: Compare, folder: Path) -> None:
    for name, passed in (("good", 0.0), ("bad", 1.0)):
        change = partial(set_score, number=7, metric="pass", value=passed)
        change_lines(folder / "results" / name, "pipeline", change)
    words = ("good", "bad", "--metrics", "pass,recall@5", "--json")
    found = json.loads(compare(*words).stdout)["flips"]
    assert (found["metric"], found["fell_behind"]) == ("retrieval.recall@5", 8)
    assert [flip["case_id"] for flip in found["worse"]] == ["q0", "q3", "q6"]


def test_json_holds_what_the_tables_show(compare: Compare) -> None:
    words = ("good", "bad", "--metrics", "recall@5", "--by", "category", "--json")
    done = compare(*words)
    found = json.loads(done.stdout)
    (one,) = found["comparisons"]
    row = next(row for row in one["rows"] if row["metric"] == "recall@5")
    assert (row["section"], row["n"], row["fell"], row["verdict"]) == ("retrieval", 24, 8, "worse")
    assert (row["p"], row["p_joint"], row["p_worse"]) == (2 / 2**8, 1 / 2**8, 1 / 2**9)
    assert row["base_coverage"] == row["new_coverage"] == 1
    assert [part["slice"] for part in one["slices"]] == ["category=factual", "category=reasoning"]
    assert [part["n"] for part in one["slices"]] == [12, 12]
    assert one["varied"] == [{"name": "retriever.k", "base": 9, "new": 5}]
    assert found["flips"]["fell_behind"] == 8
    assert (found["cases"]["broke"], found["cases"]["fails_still"]) == (0, 24)
    assert found["flips"]["worse"][0]["base"]["ranks"] == [2]
    assert done.stdout == compare(*words).stdout


def test_several_runs_make_a_matrix(compare: Compare, folder: Path) -> None:
    path = folder / "all.md"
    done = compare("good", "bad", "same", "--metrics", "recall@5", "--markdown", str(path))
    line, verdicts, _ = done.stdout.splitlines()[-3:]
    assert re.split(r"  +", verdicts.strip()) == ["verdict", "WORSE", "NO CLEAR DIFFERENCE"]
    cells = ["recall@5", "1.000", "0.667 (−0.333) ▼", "1.000 (0.000) ·"]
    assert re.split(r"  +", line.strip()) == cells
    heads = [line for line in path.read_text("utf-8").splitlines() if line.startswith("# ")]
    assert heads == ["# All runs", "# `good` → `bad`", "# `good` → `same`"]


def test_clusters_from_the_set(compare: Compare, folder: Path) -> None:
    done = compare("good", "bad", "--metrics", "recall@5", "--set", "cluster=thread", "--json")
    rows = json.loads(done.stdout)["comparisons"][0]["rows"]
    assert [row["units"] for row in rows if row["metric"] == "recall@5"] == [6]
    done = compare("good", "bad", "--set", "cluster=patient")
    assert done.exit_code == 2
    assert "--set cluster=patient: no case of" in done.stderr
    by_document = ("good", "bad", "--metrics", "recall@5", "--set", "cluster=doc", "--json")
    assert '"units": 24' in compare(*by_document).stdout
    path, metrics = folder / "set.jsonl", folder / "results" / "bad" / "metrics.json"
    scored_with = sha256_file(path)
    path.write_text(path.read_text().replace('"id"', '"case_id"').replace('"question"', '"query"'))
    assert compare(*by_document).exit_code == 2, "another set"
    metrics.write_text(metrics.read_text().replace(scored_with, sha256_file(path)))
    assert '"units": 24' in compare(*by_document, "--ignore-invariants").stdout


def test_a_set_that_changed_since_is_remarked(compare: Compare, folder: Path) -> None:
    words = ("good", "bad", "--by", "category", "--set", "flips=0")
    assert compare(*words).stderr == ""
    path = folder / "set.jsonl"
    path.write_text(path.read_text().replace('"reasoning"', '"factual"'))
    done = compare(*words)
    assert done.exit_code == 0
    assert "has changed since bad was scored: slices come from the present set" in done.stderr


def test_fail_on(compare: Compare) -> None:
    done = compare("good", "bad", "--metrics", "recall@5", "--fail-on", "worse")
    assert done.exit_code == 1
    assert done.stderr.startswith("Failed: retrieval.recall@5 is worse in bad: -0.3333 over 24 ca")
    silent = compare("good", "bad", "--fail-on", "any-worse", "-q")
    assert (silent.exit_code, silent.stderr) == (1, "")
    assert compare("good", "same", "--fail-on", "any-worse").exit_code == 0
    assert compare("bad", "good", "--fail-on", "worse,mrr").exit_code == 0, "it got better"
    assert compare("good", "bad", "--fail-on", "mrr").exit_code == 1
    assert compare("good", "bad", "--fail-on", "nothing").exit_code == 2


def test_the_seed_decides_the_draws(compare: Compare, folder: Path) -> None:
    """14 of 24 cases change by different amounts: more patterns than are looked at one by one."""

    def spread(lines: list[ScoreLine]) -> None:
        for number in range(14):
            set_score(lines, number, "mrr", number / 20)

    change_lines(folder / "results" / "bad", "retrieval", spread)
    words = ("good", "bad", "--json", "--set", "flips=0", "--metrics", "mrr")
    assert compare(*words).stdout == compare(*words, "--seed", "0").stdout
    assert compare(*words).stdout != compare(*words, "--seed", "1").stdout


def test_another_set_is_refused_with_the_flag_that_overrides(
    compare: Compare, folder: Path
) -> None:
    path = folder / "results" / "bad" / "metrics.json"
    known = json.loads(path.read_text())
    path.write_text(json.dumps(known | {"eval_set_sha256": "f" * 64}))
    done = compare("good", "bad")
    assert done.exit_code == 2
    assert "eval set (scored)" in done.stderr
    assert "--ignore-invariants" in done.stderr
    assert done.stdout == ""
    done = compare("good", "bad", "--ignore-invariants")
    assert done.exit_code == 0
    assert "MUST BE THE SAME, BUT DIFFERS:" in done.stdout


def test_an_unscored_run_says_what_to_run(compare: Compare, folder: Path) -> None:
    (folder / "results" / "bare").mkdir()
    done = compare("good", "bare")
    assert done.exit_code == 2
    assert "bare: is not scored; run score_retrieval.py --run bare" in done.stderr
    done = compare("good", "bad", "--sections", "retrieval,judged")
    assert done.exit_code == 2
    assert "run judge_answers.py --run good" in done.stderr


def test_a_committed_file_without_scores_of_its_cases_is_named(
    compare: Compare, folder: Path
) -> None:
    """Git keeps no score lines."""
    bare = folder / "results" / "same"
    shutil.rmtree(bare / "scores", ignore_errors=True)
    metrics = json.loads((bare / "metrics.json").read_text())
    metrics = {key: value for key, value in metrics.items() if not key.startswith("primary")}
    (bare / "metrics.json").write_text(json.dumps(metrics))
    done = compare("same", "bad", "--ignore-invariants")
    assert done.exit_code == 2
    assert "same/metrics.json: has no scores of its cases" in done.stderr.replace("\n", "")


def test_a_run_that_is_not_there_and_a_metric_that_is_none(compare: Compare) -> None:
    assert "no such folder" in compare("good", "gone").stderr
    assert "neither run has it" in compare("good", "bad", "--metrics", "recal").stderr
    assert "not compared; choose from" in compare("good", "bad", "--set", "flips_by=recal").stderr
    assert compare("good").exit_code == 2


def foreign_markup(text: str) -> set[str]:
    """What a Markdown parser makes of a document besides our own: HTML, links, images, mentions."""
    found = set()
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        for part in (token, *(token.children or ())):
            ours = ("<details><summary>", "</details>")
            if part.type in ("html_block", "html_inline") and not part.content.startswith(ours):
                found.add(part.content)
            if part.type in ("image", "link_open") or (part.type == "text" and "@" in part.content):
                found.add(part.content or part.type)
    return found


def test_hostile_texts_and_names_of_metrics_do_nothing(
    compare: Compare, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good", "bad"):
        scores = {HOSTILE: float(name == "good")}
        rows = [{"case_id": f"q{i}", "scores": scores} for i in range(CASES)]
        write_lines(folder / "results" / name, "custom", rows)
    path = folder / "diff.md"
    monkeypatch.setenv("RAG_EVAL_FLIPS_BY", HOSTILE)
    words = ("good", "bad", "-v", "--set", "flips=30", "--markdown", str(path))
    done = compare(*words)
    assert done.exit_code == 0, done.stderr
    assert not {"\x1b", "\x07"} & set(done.stdout)
    assert "[bold red]x[/]" in done.stdout
    text = path.read_text("utf-8")
    assert compare(*words).exit_code == 0
    assert path.read_text("utf-8") == text
    assert text.startswith("# `good` → `bad`\n")
    assert str(folder) not in text
    assert "\x1b" not in text
    assert "<script>" in text
    assert foreign_markup(text) == set()
