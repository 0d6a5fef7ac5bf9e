"""Two scored and judged runs, copied for each test, and the scripts that only read them."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

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


SUITE = "--sections retrieval --gates {folder}/gates.toml"
GATES = '[gates.coverage]\n"*" = ">= 0"\n[gates.run]\ncases = ">= 0"\n'
"""They look at every section."""
READERS: dict[str, tuple[ModuleType, str]] = {
    "report": (report_run, "--run a"),
    "compare": (compare_runs, "a b"),
    "compare_answers": (compare_runs, "a b -v"),
    "track": (track_metrics, "{folder}/results/a {folder}/results/b --set source=runs"),
    "export": (convert_data, "export csv --run a --output {folder}/exported.jsonl"),
    "export_json": (convert_data, "export json --run a --output {folder}/exported.jsonl"),
    "rescore": (judge_answers, "--run a --rescore"),
    "judge": (judge_answers, "--run a --cache-dir {folder}/cache --metrics " + JUDGED),
    "decide": (score_abstention, "--run a --set decide_by=judge"),
    "calibrate": (calibrate_judge, "--run a"),
    "gate": (gate_run, "--run a --baseline b"),
    "gate_against": (gate_run, "--run b --baseline a"),
    "suite": (eval_suite, SUITE + " --run a --baseline {folder}/results/b"),
    "suite_against": (eval_suite, SUITE + " --run b --baseline {folder}/results/a"),
}


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

    def invoke(self, script: ModuleType, *words: str) -> Result:
        return CliRunner().invoke(script.main, list(words), env={"COLUMNS": "100"})

    def read(self, reader: str) -> Result:
        """One of the calls of READERS, as a user makes it."""
        script, words = READERS[reader]
        places = [] if reader == "track" else self.where
        return self.invoke(script, *words.format(folder=self.folder).split(), *places)

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
    (desk.folder / "gates.toml").write_text(GATES)
    api = {"fields_seen": ["answer", "retrieved[].text"]}
    for name in "ab":
        FinishedRun(desk.folder, name).write(CASES, [*_results()], config={"api": api})
        for script in SCORERS:
            done = desk.invoke(script, "--run", name, "--quiet", *desk.where)
            assert done.exit_code == 0, done.output
        cache = ["--cache-dir", str(desk.folder / "cache"), "--metrics", JUDGED]
        done = desk.invoke(judge_answers, "--run", name, "--quiet", *desk.where, *cache)
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
