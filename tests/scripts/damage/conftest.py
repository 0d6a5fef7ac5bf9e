"""Two scored and judged runs, copied for each test, and the scripts that only read them."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from tests.scripts.conftest import FinishedRun

import calibrate_judge
import compare_runs
import convert_data
import eval_suite
import gate_run
import judge_answers
import report_run
import score_abstention
import score_groundedness
import score_pipeline
import score_retrieval
import track_metrics
from records.results import Reference, RetrievedChunk, TestResult
from views.browser.case_page import case_docs
from views.browser.document import Doc
from views.case_blocks import ShownWith
from views.library import RunLibrary

CASES: list[dict[str, Any]] = [
    {
        "id": "kept",
        "question": "How long are logs kept?",
        "answerable": True,
        "category": "factual",
        "relevant_chunks": ["c1"],
        "expected_key_facts": ["Logs are kept for 30 days."],
        "reference_answer": "Logs are kept for 30 days.",
        "expected_outcome": "success",
        "required_flags": ["checked"],
        "latency_budget_ms": {"total": 10},
    },
    {"id": "unknown", "question": "Who reads them?", "answerable": False, "category": "general"},
]
JUDGED = "groundedness,correctness,context_precision,context_recall,abstained_judged"
SCORERS = (score_retrieval, score_groundedness, score_pipeline, score_abstention)


def _results() -> Iterator[TestResult]:
    text = "Logs are kept for 30 days and then deleted for ever by the night job."
    chunks: list[RetrievedChunk | str] = [RetrievedChunk("c2", text="Other words.", rank=1)]
    chunks += [RetrievedChunk("c1", text=text, rank=2)]
    answer = "Logs are kept for 30 days [2]. They are read by 17 people each night."
    for case in CASES:
        yield TestResult(
            case["id"],
            case["question"],
            answer=answer,
            retrieved=list(chunks),
            references=[Reference(index=2, chunk_id="c1")],
            confidence=0.5,
            latency_ms={"total": 12.0, "retrieve": 3.0},
            usage={"total_tokens": 7},
            cost_usd=0.01,
        )


class Desk:
    """A folder with an eval set and the runs ``a`` and ``b``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def where(self) -> list[str]:
        set_, results = self.folder / "set.jsonl", self.folder / "results"
        return ["--eval-set", str(set_), "--results-dir", str(results)]

    def path(self, name: str) -> Path:
        """A file of run ``a``."""
        return self.folder / "results" / "a" / name

    def invoke(self, command: click.Command, *words: str) -> Result:
        return CliRunner().invoke(command, list(words), env={"COLUMNS": "100"})

    def report(self) -> Result:
        return self.invoke(report_run.main, "--run", "a", *self.where)

    def compare(self) -> Result:
        return self.invoke(compare_runs.main, "a", "b", *self.where)

    def compare_answers(self) -> Result:
        """With the answers to the cases that changed most."""
        return self.invoke(compare_runs.main, "a", "b", "-v", *self.where)

    def track(self) -> Result:
        places = [str(self.folder / "results" / name) for name in "ab"]
        return self.invoke(track_metrics.main, *places, "--set", "source=runs")

    def export(self, form: str = "csv") -> Result:
        target = str(self.folder / "exported.jsonl")
        words = ["export", form, "--run", "a", "--output", target, *self.where]
        return self.invoke(convert_data.main, *words)

    def rescore(self) -> Result:
        return self.invoke(judge_answers.main, "--run", "a", "--rescore", *self.where)

    def judge(self) -> Result:
        words = ["--cache-dir", str(self.folder / "cache"), "--metrics", JUDGED]
        return self.invoke(judge_answers.main, "--run", "a", *words, *self.where)

    def decide(self) -> Result:
        words = ["--run", "a", "--set", "decide_by=judge"]
        return self.invoke(score_abstention.main, *words, *self.where)

    def calibrate(self) -> Result:
        return self.invoke(calibrate_judge.main, "--run", "a", *self.where)

    def gate(self, run: str = "a", baseline: str = "b") -> Result:
        return self.invoke(gate_run.main, "--run", run, "--baseline", baseline, *self.where)

    def gate_against(self) -> Result:
        return self.gate("b", "a")

    def suite(self, run: str = "a", baseline: str = "b") -> Result:
        """Against the other run, with gates that look at every section."""
        gates = self.folder / "gates.toml"
        gates.write_text('[gates.coverage]\n"*" = ">= 0"\n[gates.run]\ncases = ">= 0"\n')
        words = ["--baseline", str(self.folder / "results" / baseline), "--gates", str(gates)]
        return self.invoke(
            eval_suite.main, "--run", run, "--sections", "retrieval", *words, *self.where
        )

    def suite_against(self) -> Result:
        return self.suite("b", "a")

    def browse(self) -> list[str]:
        """Every page of run ``a``, drawn; what the browser says of the run and its cases."""
        library = RunLibrary(self.folder / "results", self.folder / "set.jsonl", None)
        said = [info.problem for info in library.refresh()]
        run = library.open("a")
        for case in CASES:
            if (detail := run.detail((case["id"], 0))) is not None:
                blank = lambda: Doc(ascii_only=False, width=78)  # noqa: E731
                case_docs(blank, detail, ShownWith("fails", failing=True), full=True, two=True)
                said += detail.problems
        return [text for text in (*said, *run.notices) if text]

    def change(self, name: str, how: Callable[[Any], object], at: int = 0) -> None:
        """Change the first JSON object of a file (or that on line ``at``) in place, or take what
        ``how`` returns."""
        path = self.path(name)
        if path.suffix == ".json":
            value = json.loads(path.read_text("utf-8"))
            path.write_text(json.dumps(_changed(value, how)))
        else:
            lines = path.read_text("utf-8").splitlines()
            lines[at] = json.dumps(_changed(json.loads(lines[at]), how))
            path.write_text("\n".join(lines) + "\n")


def _changed(value: Any, how: Callable[[Any], object]) -> Any:
    found = how(value)
    return value if found is None else found


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once by the scripts themselves."""
    desk = Desk(tmp_path_factory.mktemp("damage"))
    api = {"fields_seen": ["answer", "retrieved[].text"]}
    for name in "ab":
        FinishedRun(desk.folder, name).write(CASES, [*_results()], config={"api": api})
        for script in SCORERS:
            done = desk.invoke(script.main, "--run", name, "--quiet", *desk.where)
            assert done.exit_code == 0, done.output
        cache = ["--cache-dir", str(desk.folder / "cache"), "--metrics", JUDGED]
        done = desk.invoke(judge_answers.main, "--run", name, "--quiet", *desk.where, *cache)
        assert done.exit_code == 0, done.output
    return desk.folder


@pytest.fixture
def copied(original: Path) -> Callable[[], Any]:
    """A context with a Desk of its own; for tests that need several."""

    @contextmanager
    def copy() -> Iterator[Desk]:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(original, folder, dirs_exist_ok=True)
            yield Desk(Path(folder))

    return copy


@pytest.fixture
def desk(original: Path, tmp_path: Path) -> Desk:
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return Desk(tmp_path)
