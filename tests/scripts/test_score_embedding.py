"""score_embedding.py as a user runs it: a model that counts words takes the bundled one's place.

What is patched is the one method that runs the model: cache, windows and order are the real ones.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tests.rows import each_row

from clients import embedder
from records.metrics import load_metrics
from score_embedding import main
from storage import ErrorInfo, RetrievedChunk, TestResult

WORDS = ("cats", "dogs", "sleep", "bark")
CASES = [
    {"id": "near", "question": "cats?", "reference_answer": "Cats sleep."},
    {"id": "far", "question": "dogs?", "reference_answer": "Dogs bark."},
    {"id": "silent", "question": "cats?"},
    {"id": "broken", "question": "cats?"},
]


def result(name: str, answer: str, *texts: str) -> TestResult:
    chunks: list[RetrievedChunk | str] = [
        RetrievedChunk(f"c{rank}", text=text, rank=rank) for rank, text in enumerate(texts, 1)
    ]
    return TestResult(name, answer=answer, retrieved=chunks)


RESULTS = [
    result("near", "Cats sleep.", "Cats sleep.", "Cats sleep."),
    result("far", "[red]Dogs\x1b[31m sleep.", "Cats bark."),
    result("silent", "", "Cats sleep."),
    TestResult("broken", status="error", error=ErrorInfo("timeout")),
]


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counter[str]:
    """How often each text went through the model."""
    asked: Counter[str] = Counter()

    def run(self: embedder.Embedder, texts: list[str]) -> Any:
        asked.update(texts)
        counts = np.array([[text.lower().count(word) for word in WORDS] for text in texts], float)
        counts = np.c_[counts, ~counts.any(axis=1)]
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)

    monkeypatch.setattr(embedder.Embedder, "_run_model", run)
    monkeypatch.setenv("RAG_EVAL_CACHE_DIR", str(tmp_path / "cache"))
    return asked


def test_numbers_states_and_evidence(finished: Any, embedded: Counter[str]) -> None:
    finished.write(CASES, RESULTS)
    found = finished.section(main)
    # near: cosine(cats, cats sleep) = 1 / sqrt 2; far: dogs against cats bark = 0; silent as near
    assert found["mean"]["context_relevance"] == pytest.approx(2 * 0.707107 / 3)
    # near 1.0; far: (dogs sleep) . (dogs bark) = 1/2
    assert found["mean"]["answer_correctness"] == 0.75
    # near: its sentence is a window; far: (dogs sleep) . (cats bark) = 0
    assert found["mean"]["answer_hallucination"] == 0.5
    assert found["mean"]["answer_hallucination@2"] == 0.5
    assert found["definitions"]["answer_hallucination"] == "embedding/answer_hallucination@3"
    assert found["definitions"]["answer_hallucination@2"] == "embedding/answer_hallucination@4"
    counts = [found[name]["answer_correctness"] for name in ("n", "not_applicable", "failed")]
    assert counts == [2, 1, 1]
    assert found["options"]["model"].startswith("all-MiniLM-L6-v2 ")
    rows = finished.rows("embedding")
    assert rows["silent"]["reasons"]["answer_hallucination"] == "empty answer"
    assert rows["near"]["evidence"]["sentences"][0]["nearest"] == "Cats sleep."


def test_the_worst_cases_show_data_as_data(finished: Any, embedded: Counter[str]) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(main, "--worst", "1", "--quiet")
    assert done.exit_code == 0, done.output
    assert "[red]Dogs" in done.stdout
    assert "\x1b[31m" not in done.stdout
    assert "nearest Cats bark." in done.stdout


def data_set(folder: Path, items: Any) -> Path:
    path = folder / "answers.json"
    path.write_text(items if isinstance(items, str) else json.dumps(items), encoding="utf-8")
    return path


def score_file(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["--dataset", str(path), *options], env={"COLUMNS": "80"})


def test_a_plain_data_set_needs_no_run(tmp_path: Path, embedded: Counter[str]) -> None:
    items = [
        {
            "question": "cats?",
            "reference_answer": "Cats sleep.",
            "answer": "Cats sleep.",
            "contexts": ["Cats sleep.", "Dogs bark."],
        },
        {"question": "dogs?", "reference_answer": None, "answer": "", "contexts": []},
    ]
    done = score_file(data_set(tmp_path, items), "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["mean"]["context_relevance"] == pytest.approx(0.707107 / 2, abs=1e-6)
    assert found["mean"]["context_sufficiency"] == 0.5
    assert found["mean"]["answer_correctness"] == 1.0
    assert found["not_applicable"]["answer_correctness"] == 1
    sharp = score_file(tmp_path / "answers.json", "--json", "--set", "sufficiency_threshold=0.8")
    assert json.loads(sharp.stdout)["mean"]["context_sufficiency"] == 0.0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.json", "cache"]


@each_row(
    ("items", "says"),
    [
        ("[{", "answers.json:1:"),
        ({"question": "?"}, "is not a list"),
        (None, "cannot be read"),
        (["?"], "[0]: is not an object"),
        ([{"question": " "}], "[0].question: is missing or empty"),
        ([{"question": "?", "answer": 3}], "[0].answer: is not a text"),
        ([{"question": "?", "contexts": "one"}], "[0].contexts: is not a list of texts"),
    ],
)
def test_a_faulty_data_set_is_refused(
    tmp_path: Path, embedded: Counter[str], items: Any, says: str
) -> None:
    done = score_file(data_set(tmp_path, items) if items else tmp_path / "none.json")
    assert done.exit_code == 2
    assert says in done.stderr


def test_the_judges_model_in_the_environment_is_not_the_embedding_model(
    finished: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished.write(CASES, RESULTS)
    monkeypatch.setenv("RAG_EVAL_MODEL", "gpt-4o")
    monkeypatch.setenv("RAG_EVAL_EMBEDDING_MODEL", "/no/such/folder")
    done = finished.score(main)
    assert (done.exit_code, "/no/such/folder" in done.stderr) == (2, True)
    assert "gpt-4o" not in done.stderr


def test_the_model_has_its_name_and_the_run_its_id(finished: Any, embedded: Counter[str]) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(main, "--run-id", "run", "--model", "all-MiniLM-L6-v2")
    assert done.exit_code == 0, done.output
    section = load_metrics(finished.run / "metrics.json")["sections"]["embedding"]
    assert section["options"]["model"].startswith("all-MiniLM-L6-v2 ")


def test_without_a_model_it_says_what_to_do(finished: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    finished.write(CASES, RESULTS)
    monkeypatch.setattr(embedder, "BUNDLED_PACKAGE", "no_such_package_here")
    for options, says in (
        ((), "run `make setup"),
        (("--embedding-model", "/no/such/folder"), "correct the name"),
        (("--model", "/no/such/folder"), "correct the name"),
    ):
        done = finished.score(main, *options)
        assert (done.exit_code, says in " ".join(done.stderr.split())) == (2, True), done.stderr
        assert not (finished.run / "metrics.json").exists()
