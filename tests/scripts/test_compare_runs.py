"""compare_runs.py as a user runs it: real scored runs, every output, refusals, hostile texts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt

import compare_runs
import score_pipeline
import score_retrieval
import storage
from storage import ResultsWriter, RetrievedChunk, TestResult

CASES = 24
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/] ``` <script>alert(1)</script> ![i](http://e/) @all"
Compare = Callable[..., Result]


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
            "conversation": i // 4,
        }
        for i in range(CASES)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "set.jsonl").write_text(text, encoding="utf-8")
    for name, lost, k in (("good", 0, 9), ("bad", 3, 5), ("same", 0, 9)):
        writer = ResultsWriter(tmp_path / "results", name)
        config = storage.RunConfig(
            name,
            dataset={"sha256": storage.sha256_file(tmp_path / "set.jsonl")},
            retriever={"k": k},
        )
        writer.write_config(config)
        for i in range(CASES):
            found = "other.md" if lost and i % lost == 0 else f"notes/{i}.md"
            chunks: list[RetrievedChunk | str] = [RetrievedChunk("c", "x.md", "x.md", rank=1)]
            chunks.append(RetrievedChunk("d", found, found, rank=2))
            answer = f"{name} says {i}. {HOSTILE}\n```\n<b>out</b>\n" if i == 3 else f"It is {i}."
            result = TestResult(f"q{i}", lines[i]["question"], answer=answer, retrieved=chunks)  # type: ignore[arg-type]
            writer.write_result(result)
        writer.finish(line["id"] for line in lines)  # type: ignore[misc]
        for script in (score_retrieval.main, score_pipeline.main):
            done = run(script, tmp_path, "--run", name, "-q")
            assert done.exit_code == 0, done.output
    return tmp_path


def run(command: click.Command, folder: Path, *words: str, columns: int = 100) -> Result:
    places = ("--eval-set", str(folder / "set.jsonl"), "--results-dir", str(folder / "results"))
    return CliRunner().invoke(command, [*words, *places], env={"COLUMNS": str(columns)})


@pytest.fixture
def compare(folder: Path) -> Compare:
    return lambda *words, **more: run(compare_runs.main, folder, *words, **more)


def test_the_report_on_the_terminal(compare: Compare) -> None:
    done = compare("good", "bad", "--metrics", "recall@5,mrr", "--flips", "2")
    assert done.exit_code == 0
    shown = done.stdout
    assert "good → bad: 24 cases in both" in shown
    assert "retriever.k: 9 → 5" in shown
    assert "p after Holm, 2 tests" in shown
    # 8 of 24 lose their only gold: .333 fewer; exact p 2/2^8 = .0078, twice that after Holm.
    row = next(line for line in shown.splitlines() if line.startswith("recall@5"))
    assert re.split(r"  +", row)[1:4] == ["1.000", "0.667", "−0.333"]
    assert "0.016" in row
    assert "▼ worse" in row
    assert "success (score = 1)" not in shown, "recall@5 has a target: > 0.7"
    assert "success (score > 0.7) → failure 8, back 0" in shown
    assert "gold at rank 2 → –" in shown
    assert "Got worse: q0" in shown


def test_the_answer_comes_first(compare: Compare) -> None:
    lines = compare("good", "bad", "--metrics", "recall@5,mrr", columns=80).stdout.splitlines()
    assert lines[1] == "WORSE: of 2 declared metrics 2 worse."
    assert lines[2].startswith("▼ worse: ")
    assert "recall@5 −0.333" in lines[2]
    same = compare("good", "same", "--metrics", "recall@5").stdout.splitlines()
    assert same[1].startswith("NO EVIDENCE of a difference: of 1 declared metrics")


def test_flips_are_of_whether_cases_passed_where_that_changed(
    compare: Compare, folder: Path
) -> None:
    found = json.loads(compare("good", "bad", "--json").stdout)
    assert found["flips"]["metric"].startswith("retrieval.")
    for name, passed in (("good", 1.0), ("bad", 0.0)):
        path = folder / "results" / name / "scores" / "pipeline.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[7]["scores"]["pass"] = passed
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = json.loads(compare("good", "bad", "--json").stdout)["flips"]
    assert (found["metric"], found["broke"]) == ("pipeline.pass", 1)
    assert found["worse"][0]["case_id"] == "q7"


def test_numbers_are_whole_on_a_narrow_terminal(compare: Compare) -> None:
    done = compare("good", "bad", "--all", "--flips", "0", "--power", "0.05", columns=60)
    assert "…" not in done.stdout
    assert "n=1000" in done.stdout


def test_json_holds_what_the_tables_show(compare: Compare) -> None:
    done = compare("good", "bad", "--metrics", "recall@5", "--by", "category", "--json")
    found = json.loads(done.stdout)
    (one,) = found["comparisons"]
    row = next(row for row in one["rows"] if row["metric"] == "recall@5")
    assert (row["section"], row["n"], row["fell"], row["verdict"]) == ("retrieval", 24, 8, "worse")
    assert row["p_holm"] == row["p"] == 2 / 2**8
    assert row["base_coverage"] == row["new_coverage"] == 1
    assert [part["slice"] for part in one["slices"]] == ["category=factual", "category=reasoning"]
    assert [part["n"] for part in one["slices"]] == [12, 12]
    assert one["varied"] == [{"name": "retriever.k", "base": 9, "new": 5}]
    assert found["flips"]["broke"] == 8
    assert found["flips"]["worse"][0]["base"]["ranks"] == [2]
    assert (
        done.stdout
        == compare("good", "bad", "--metrics", "recall@5", "--by", "category", "--json").stdout
    )


def test_several_runs_make_a_matrix(compare: Compare) -> None:
    done = compare("good", "bad", "same", "--metrics", "recall@5")
    line = done.stdout.splitlines()[-2]
    assert re.split(r"  +", line.strip()) == [
        "recall@5",
        "1.000",
        "0.667 (−0.333) ▼",
        "1.000 (0.000) ·",
    ]


def test_several_runs_in_markdown_begin_with_the_matrix(compare: Compare, folder: Path) -> None:
    path = folder / "all.md"
    assert compare("good", "bad", "same", "--markdown", str(path)).exit_code == 0
    heads = [line for line in path.read_text("utf-8").splitlines() if line.startswith("# ")]
    assert heads == ["# All runs", "# `good` → `bad`", "# `good` → `same`"]


def test_clusters_from_the_set(compare: Compare) -> None:
    done = compare("good", "bad", "--metrics", "recall@5", "--cluster", "conversation", "--json")
    row = next(
        row
        for row in json.loads(done.stdout)["comparisons"][0]["rows"]
        if row["metric"] == "recall@5"
    )
    assert row["units"] == 6
    done = compare("good", "bad", "--cluster", "patient")
    assert done.exit_code == 2
    assert "--cluster patient: no case of" in done.stderr
    done = compare("good", "bad", "--metrics", "recall@5", "--cluster", "doc", "--json")
    assert '"units": 24' in done.stdout


def test_a_set_that_changed_since_is_remarked(compare: Compare, folder: Path) -> None:
    words = ("good", "bad", "--by", "category", "--flips", "0")
    assert compare(*words).stderr == ""
    path = folder / "set.jsonl"
    path.write_text(path.read_text().replace('"reasoning"', '"factual"'))
    done = compare(*words)
    assert done.exit_code == 0
    assert "is not the set that good was scored with" in done.stderr


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


def test_the_seed_decides_the_draws(compare: Compare) -> None:
    words = ("good", "bad", "--json", "--flips", "0")
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


def test_options_of_a_scorer_are_held_against_each_other(compare: Compare, folder: Path) -> None:
    assert run(score_retrieval.main, folder, "--run", "bad", "--gain", "exp", "-q").exit_code == 0
    done = compare("good", "bad")
    assert done.exit_code == 2
    assert "retrieval.options.gain: linear → exp" in done.stderr


def test_an_unscored_run_says_what_to_run(compare: Compare, folder: Path) -> None:
    (folder / "results" / "bare").mkdir()
    done = compare("good", "bare")
    assert done.exit_code == 2
    assert "bare: is not scored; run score_retrieval.py --run bare" in done.stderr
    done = compare("good", "bad", "--sections", "retrieval,judged")
    assert done.exit_code == 2
    assert "run judge_answers.py --run good" in done.stderr


def test_a_run_that_is_not_there_and_a_metric_that_is_none(compare: Compare) -> None:
    assert "no such folder" in compare("good", "gone").stderr
    assert "neither run has it" in compare("good", "bad", "--metrics", "recal").stderr
    assert "not compared; choose from" in compare("good", "bad", "--flips-by", "recal").stderr
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


def test_markdown_is_the_same_bytes_and_shuts_foreign_text_in(
    compare: Compare, folder: Path
) -> None:
    path = folder / "diff.md"
    words = ("good", "bad", "--metrics", "recall@5", "--flips", "30", "--markdown", str(path))
    assert compare(*words).exit_code == 0
    text = path.read_text("utf-8")
    assert compare(*words).exit_code == 0
    assert path.read_text("utf-8") == text
    assert text.startswith("# `good` → `bad`\n")
    assert "\x1b" not in text
    assert "<script>" in text
    assert foreign_markup(text) == set()
    assert str(folder) not in text


def test_a_hostile_metric_name_does_nothing(compare: Compare, folder: Path) -> None:
    for name in ("good", "bad"):
        path = folder / "results" / name / "scores" / "custom.jsonl"
        value = float(name == "good")
        line = {"case_id": "q0", "scores": {HOSTILE: value}}
        rows = [line | {"case_id": f"q{i}"} for i in range(CASES)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "diff.md"
    words = ("--power", "1", "--all", "--flips-by", HOSTILE, "--markdown", str(path))
    done = compare("good", "bad", *words)
    assert done.exit_code == 0, done.stderr
    assert "\x1b" not in done.stdout
    text = path.read_text("utf-8")
    assert "\x1b" not in text
    assert "<script>" in text
    assert foreign_markup(text) == set()


def test_hostile_texts_do_nothing_on_the_terminal(compare: Compare) -> None:
    done = compare("good", "bad", "--metrics", "recall@5", "--flips", "30")
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    assert "[bold red]x[/]" in done.stdout


def test_as_a_process_it_ends_quietly_when_the_reader_has_left(folder: Path) -> None:
    script = Path(compare_runs.__file__)
    words = [sys.executable, str(script), "good", "bad", "--all"]
    words += ["--results-dir", str(folder / "results"), "--eval-set", str(folder / "set.jsonl")]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"RAG_EVAL_CONFIG": os.devnull},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors: Any = process.stderr.read()
    assert (process.returncode, errors) == (0, b"")
