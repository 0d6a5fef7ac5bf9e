"""The exit code of a verdict does not depend on who reads the output, or how much of it.

Each script runs as a process whose reader has left, as in ``gate_run.py … | head -1``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.scripts.conftest import FinishedRun

import score_retrieval
import storage
from storage import RetrievedChunk, TestResult

SCRIPTS = Path(storage.__file__).parent
OPTIONS = SCRIPTS / "options"
CASES = 12


def end(name: str, *words: object, both: bool = False, **more: str) -> tuple[int, str]:
    """The exit code and stderr of a script whose stdout nobody reads any more; with ``both`` its
    stderr is the same closed pipe, as behind ``2>&1``."""
    reader, writer = os.pipe()
    os.close(reader)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RAG_EVAL_")}
    try:
        done = subprocess.run(
            [sys.executable, SCRIPTS / f"{name}.py", *map(str, words)],
            stdout=writer,
            stderr=writer if both else subprocess.PIPE,
            env=kept | {"RAG_EVAL_CONFIG": os.devnull} | more,
            timeout=120,
        )
    finally:
        os.close(writer)
    return done.returncode, (done.stderr or b"").decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scored runs of twelve cases, of which the second finds no document; and rules that it
    does not pass."""
    folder = tmp_path_factory.mktemp("closed")
    cases = [{"id": f"q{n}", "relevant_docs": [f"{n}.md"]} for n in range(CASES)]
    for day, name in enumerate(("base", "new"), 1):
        results = []
        for n in range(CASES):
            path = f"{n}.md" if name == "base" else "other.md"
            chunk = RetrievedChunk("c", path, path, rank=1)
            results.append(TestResult(f"q{n}", "?", answer="Yes.", retrieved=[chunk]))
        config = {"started": f"2026-03-{day:02d}T00:00:00+00:00", "run": {"selected": CASES}}
        run = FinishedRun(folder, name)
        run.write(cases, results, config=config)
        run.section(score_retrieval.main, "--run", name)
    (folder / "gates.toml").write_text('[retrieval]\n"recall@5" = ">= 0.9"\n')
    return folder


Words = Callable[[Path], list[Any]]


def of_runs(folder: Path) -> list[Any]:
    return ["--results-dir", folder / "results"]


def with_set(folder: Path) -> list[Any]:
    return [*of_runs(folder), "--eval-set", folder / "set.jsonl"]


def rules(folder: Path) -> list[Any]:
    return ["--run", "new", "--gates", folder / "gates.toml", *with_set(folder)]


FAILING: dict[str, tuple[str, Words]] = {
    "gate": ("gate_run", rules),
    "gate as JSON": ("gate_run", lambda folder: [*rules(folder), "--json"]),
    "gate with a baseline": ("gate_run", lambda folder: [*rules(folder), "--baseline", "base"]),
    "compare": (
        "compare_runs",
        lambda folder: ["base", "new", "--fail-on", "any-worse", *with_set(folder)],
    ),
    "suite with gates": (
        "eval_suite",
        lambda folder: [*rules(folder), "--sections", "retrieval"],
    ),
    "suite with a baseline": (
        "eval_suite",
        lambda folder: [
            *("--run", "new", "--sections", "retrieval"),
            *("--baseline", folder / "results" / "base", *with_set(folder)),
        ],
    ),
    "track": (
        "track_metrics",
        lambda folder: [
            *("--set", "source=runs", "--fail-on", "any", "--drop", 10, *of_runs(folder)),
        ],
    ),
}


def verdict_stands(folder: Path, name: str, both: bool) -> None:
    script, words = FAILING[name]
    code, errors = end(script, *words(folder), both=both)
    assert "Traceback" not in errors
    assert code == 1, errors


BOTH = ("gate", "compare", "track")
EACH_SCRIPT = [
    *((name, True) for name in BOTH),
    ("gate as JSON", False),
    ("suite with gates", False),
]
test_a_verdict_stands_when_its_reader_has_left = each_row(("name", "both"), EACH_SCRIPT)(
    verdict_stands
)
test_so_with_other_words = pytest.mark.thorough(
    each_row(
        ("name", "both"), [(name, False) for name in FAILING if (name, False) not in EACH_SCRIPT]
    )(verdict_stands)
)


def test_bad_input_and_success_keep_their_codes(folder: Path) -> None:
    assert end("gate_run", "--run", "none", *of_runs(folder), both=True) == (2, "")
    words = ("base", "base", *with_set(folder))
    assert end("compare_runs", *words, "-q") == (0, "")
    assert end("compare_runs", *words, both=True, PYTHONUNBUFFERED="1") == (0, "")


def test_unbuffered_output_is_written_at_once(folder: Path) -> None:
    """Where PYTHONUNBUFFERED asks for it, as in a container, no layer of ours keeps text back."""
    code = "import streams, sys, os; streams.prepare(); print('now', end=''); os._exit(0)"
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(OPTIONS)!r}); {code}"]
    for unbuffered, text in (("1", "now"), ("", "")):
        environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stdout, done.stderr) == (0, text, "")
