"""What a broken-off scoring left in a run's folder is data: nothing in it runs, leads elsewhere or
is believed without a look."""

from __future__ import annotations

import ast
import json
import os
import pickle
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import storage
from clients.embedder import Embedder
from records.errors import StorageError
from records.runs import METRICS, scores_file
from scorers.groundedness import GroundednessScorer
from scorers.loop import score_run

SCRIPTS = Path(storage.__file__).parent
PICKLES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
"""Modules whose readers run what they read."""


class Lost(ThreadPoolExecutor):
    """A scheduler that is lost after two ranges."""

    calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        if self.calls > 2:
            raise ConnectionError("lost")
        return super().submit(fn, *args, **kwargs)


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of 40 cases, two of whose four ranges are scored."""
    run = tmp_path / "run"
    run.mkdir()
    cases, answers = [], []
    for n in range(40):
        cases.append({"id": f"q{n:02}", "question": "?", "tags": [f"t{n % 3}"]})
        text = f"Item {n} costs {n}.50 euros."
        chunk = {"chunk_id": "a", "text": text, "text_length": len(text), "rank": 1}
        answers.append({"test_case_id": f"q{n:02}", "answer": text, "retrieved": [chunk]})
    for path, rows in ((tmp_path / "set.jsonl", cases), (run / "results.jsonl", answers)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    score_run(run, tmp_path / "set.jsonl", GroundednessScorer(), jobs=1)
    with Lost(1) as executor, pytest.raises(ConnectionError):
        score_on(executor, run)
    return run


def score_on(executor: ThreadPoolExecutor, run: Path) -> None:
    score_run(run, run.parent / "set.jsonl", GroundednessScorer(), jobs=4, executor=executor)


def bytes_of(run: Path) -> list[bytes]:
    return [(run / METRICS).read_bytes(), scores_file(run, "groundedness").read_bytes()]


def kept(run: Path) -> Path:
    (folder,) = run.glob(".ranges.*")
    return folder


def test_only_ranges_that_are_missing_are_scored_again(run: Path) -> None:
    serial = bytes_of(run)
    assert len(list(kept(run).glob("*.part"))) == 2
    executor = Lost(1)
    score_on(executor, run)  # a third one would be refused
    assert executor.calls == 2
    assert bytes_of(run) == serial


@pytest.mark.parametrize("name", ["0.part", "1.part", "2.part", "task.pickle", "0.more"])
def test_a_pickle_in_the_folder_is_never_run(run: Path, name: str) -> None:
    serial, mark = bytes_of(run), run.parent / "ran"
    pickle.loads(pickle.dumps(Trap(mark)))
    mark.rmdir()  # the trap works
    (kept(run) / name).write_bytes(pickle.dumps(Trap(mark)))
    with ThreadPoolExecutor(2) as executor:
        score_on(executor, run)
    assert not mark.exists()
    assert bytes_of(run) == serial


def test_links_in_the_folder_lead_nowhere(run: Path) -> None:
    serial, target = bytes_of(run), run.parent / "precious"
    target.write_text("mine")
    for kind in (".jsonl", ".part", ".counted"):
        path = kept(run) / f"0{kind}"
        path.unlink()
        path.symlink_to(target)
    with ThreadPoolExecutor(2) as executor:
        score_on(executor, run)
    assert target.read_text() == "mine"
    assert bytes_of(run) == serial


@pytest.mark.parametrize("kind", [".part", ".jsonl", ".ids", ".counted", ".turns"])
@pytest.mark.parametrize("damage", ["cut", "gone", "empty"])
def test_a_damaged_range_is_scored_again(run: Path, kind: str, damage: str) -> None:
    serial, path = bytes_of(run), kept(run) / f"0{kind}"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 + 1] if damage == "cut" else b"")
    if damage == "gone":
        path.unlink()
    with ThreadPoolExecutor(2) as executor:
        score_on(executor, run)
    assert bytes_of(run) == serial


def test_numbers_that_belong_to_nothing_are_one_sentence(run: Path) -> None:
    path = kept(run) / "0.counted"
    path.write_bytes(b"\x7f" * path.stat().st_size)  # the size is right
    with (
        ThreadPoolExecutor(2) as executor,
        pytest.raises(StorageError, match=r"0\.counted: is damaged; start the same command again"),
    ):
        score_on(executor, run)
    assert not list(run.glob(".ranges.*"))


def embedder(tmp_path: Path) -> Embedder:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    return Embedder(str(model), tmp_path / "cache")


def test_vectors_travel_as_raw_numbers_of_a_checked_length(tmp_path: Path) -> None:
    home = embedder(tmp_path)
    worker = home.apart()
    rows = {bytes([n]) * 32: np.full(3, n, np.float32) for n in range(4)}
    worker._cache.write(rows.items())
    left = worker.new_vectors()
    for row in rows.values():
        assert row.astype("<f4").tobytes() in left
    home.keep(left)
    back = home._cache.read(list(rows))
    assert {key: row.tolist() for key, row in back.items()} == {
        key: row.tolist() for key, row in rows.items()
    }
    home.keep(home.apart().new_vectors())  # none


@pytest.mark.parametrize("harm", ["pickle", "cut", "longer", "key", "nan"])
def test_vectors_that_are_none_are_refused(tmp_path: Path, harm: str) -> None:
    home = embedder(tmp_path)
    worker = home.apart()
    value = np.full(3, np.nan if harm == "nan" else 1, np.float32)
    worker._cache.write([(b"k" * (31 if harm == "key" else 32), value)])
    left = worker.new_vectors()
    mark = tmp_path / "ran"
    harmed = {"pickle": pickle.dumps(Trap(mark)), "cut": left[:-1], "longer": left + b"\0"}
    with pytest.raises(ValueError, match=r"."):
        home.keep(harmed.get(harm, left))
    assert not mark.exists()
    assert home._cache.read([b"k" * 32]) == {}


def imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def test_no_script_reads_a_pickle_from_a_file() -> None:
    """One module unpickles: what the executor's own channel handed over. numpy and torch would do
    it if they were asked to."""
    who = set()
    for path in SCRIPTS.rglob("*.py"):
        text = path.read_text("utf-8")
        if imported(ast.parse(text)) & PICKLES:
            who.add(path.relative_to(SCRIPTS).as_posix())
        assert "allow_pickle=True" not in text, path
        assert "read_pickle" not in text, path
        assert "torch.load" not in text, path
        assert "weights_only=False" not in text, path
    assert who == {"scorers/workers.py"}
    text = (SCRIPTS / "scorers/workers.py").read_text("utf-8")
    assert text.count("pickle.loads(") == 1
    assert "pickle.load(" not in text
