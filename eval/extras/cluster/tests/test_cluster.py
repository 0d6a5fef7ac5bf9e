"""Real processes of Dask on loopback: the same bytes, killed workers, a lost scheduler.

Each process is started as the page of the extra says, and killed with -9.
"""

from __future__ import annotations

import json
import pickle
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from tests.processes import call_script

pytest.importorskip("distributed")

from extras.cluster.bench.bench_cluster import Cluster, cluster, command, cpu_of, write_run, written
from extras.cluster.ranges import ResultRange, Sources, ranges_of, score_range, sources_of
from extras.cluster.starter import _connected, _threads
from records.errors import StorageError, Unreachable
from records.runs import VERSION

CASES = 240


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("dask"), 2) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    write_run(folder, CASES)
    return folder


def score(folder: Path, *words: str, section: str = "groundedness") -> tuple[int, str]:
    """The exit code and stderr of a score script."""
    done = call_script(f"score_{section}", *map(str, command(folder, *words)[2:]))
    return done.returncode, done.stderr


def files(folder: Path) -> dict[str, bytes]:
    run = folder / "texts"
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*.json*")}


def mixed(folder: Path) -> None:
    """Repeats, failed calls, a question that was asked and has no result; in no order."""
    path = folder / "texts" / "results.jsonl"
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    more = [row | {"repeat": 1} for row in rows[::3]]
    failed = {"status": "error", "answer": None, "error": {"kind": "timeout", "message": "late"}}
    rows = [row | failed if n % 10 == 4 else row for n, row in enumerate(rows + more)]
    del rows[7]
    random.Random(4).shuffle(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("groundedness", mixed),
        pytest.param("groundedness", None, marks=pytest.mark.thorough),
        pytest.param("context", mixed, marks=pytest.mark.thorough),
    ],
)
def test_two_workers_write_the_bytes_of_one_process(
    folder: Path, running: Cluster, section: str, change: Any
) -> None:
    if change is not None:
        change(folder)
    before = cpu_of(running.workers[0]), cpu_of(running.workers[1])
    assert score(folder, "--scheduler", running.address, section=section) == (0, "")
    if section == "groundedness":
        worked = [cpu_of(w) - b for w, b in zip(running.workers, before, strict=True)]
        assert min(worked) > 0.1, "both had a part of 1 or 2 CPU seconds"
    scored = files(folder)
    (folder / "texts" / "metrics.json").unlink()
    assert score(folder, section=section) == (0, "")
    assert files(folder) == scored


def kills(folder: Path, running: Cluster, rounds: int) -> int:
    """How many of the killed workers were at work; each time the bytes are those of one process."""
    assert score(folder)[0] == 0
    expected, rng, in_time = written(folder), random.Random(rounds), 0
    for _ in range(rounds):
        scoring = subprocess.Popen(
            command(folder, "--scheduler", running.address), stdout=subprocess.DEVNULL
        )
        in_time += running.kill_one(rng.randrange(2), rng.uniform(0.02, 0.4), scoring)
        assert scoring.wait() == 0
        assert written(folder) == expected
        running.wait()
    return in_time


@pytest.mark.slow
@pytest.mark.thorough
def test_twenty_killed_workers_lose_nothing(folder: Path, running: Cluster) -> None:
    assert kills(folder, running, 20) >= 15


@pytest.mark.slow
@pytest.mark.thorough
def test_a_lost_scheduler_ends_with_3_and_changes_nothing(folder: Path) -> None:
    assert score(folder)[0] == 0
    before = files(folder)
    with cluster(folder, 1) as running:
        scoring = subprocess.Popen(
            command(folder, "--scheduler", running.address), stderr=subprocess.PIPE, text=True
        )
        (worker,) = running.workers
        begun = cpu_of(worker)
        while cpu_of(worker) < begun + 0.2:
            assert scoring.poll() is None
        running.scheduler.kill()
        _, said = scoring.communicate(timeout=120)
    assert (scoring.returncode, said) == (
        3,
        f"Error: {running.address}: the scheduler was lost. Nothing was written: start it and its "
        "workers again, then the same command.\n",
    )
    assert files(folder) == before
    assert [path.name for path in (folder / "texts").glob(".*")] == []


def test_an_address_without_a_scheduler_ends_with_3(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("extras.cluster.starter.CONNECT_S", 0.2)
    before = files(folder)
    code, said = score(folder, "--scheduler", "tcp://127.0.0.1:9")
    assert code == 3
    assert said.startswith("Error: tcp://127.0.0.1:9: no scheduler of Dask answers (")
    assert said.count("\n") == 1
    assert files(folder) == before
    for address in ("nonsense://x:1", "10.0.0.1", "tcp://10.0.0.1"):
        code, said = score(folder, "--scheduler", address)
        assert (code, "write it as tcp://HOST:PORT" in said) == (2, True)
    assert files(folder) == before


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("strangers", ["scheduler", "worker"])
def test_processes_that_lack_the_toolkit_are_said(folder: Path, strangers: str) -> None:
    with cluster(folder, 1, strangers) as running:
        code, said = score(folder, "--scheduler", running.address)
    assert (code, said) == (
        2,
        "Error: the scheduler or a worker cannot load the toolkit; start them anew, see "
        "eval/extras/cluster/README.md.\n",
    )


@pytest.mark.thorough
def test_a_scheduler_without_workers_ends_with_3(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("extras.cluster.starter.NO_WORKER_S", 0.5)
    with (
        cluster(folder, 0) as running,
        _connected(running.address) as client,
        pytest.raises(Unreachable, match=f"^{running.address}: the scheduler has no worker"),
    ):
        _threads(client)


# -- ranges, in this process ----------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 100, 5000, 1 << 20])
def test_ranges_are_whole_lines_and_together_the_file(folder: Path, size: int) -> None:
    path = folder / "texts" / "results.jsonl"
    whole = path.read_bytes()
    parts = list(ranges_of(path, size))
    cut = [whole[part.start : part.start + part.size] for part in parts]
    assert b"".join(cut) == whole
    assert all(data.endswith(b"\n") for data in cut)
    assert [part.checksum for part in parts] == list(map(crc32, cut))
    assert len(parts) == {1: CASES, 100: CASES}.get(size, len(parts))


def nothing(cases: Any, results: Any) -> list[Any]:
    return [result.test_case_id for result in results]


TASK = pickle.dumps(nothing)


def test_a_range_gives_the_sound_answers_of_the_set(folder: Path) -> None:
    path = folder / "texts" / "results.jsonl"
    lines = path.read_text().splitlines()[:3]
    failed = json.loads(lines[1]) | {"status": "error"}
    strange = json.loads(lines[2]) | {"test_case_id": "of another set"}
    data = f"{lines[0]}\n{json.dumps(failed)}\n{{damaged\n{json.dumps(strange)}\n".encode()
    path.write_bytes(data)
    sources = sources_of(path.parent, folder / "eval_set.jsonl", None)
    scored = pickle.loads(score_range(TASK, sources, ResultRange(0, len(data), crc32(data))))
    assert scored == [(("q0000000", 0), "q0000000")]


@pytest.mark.parametrize("change", ["version", "results", "run", "set"])
def test_a_worker_with_other_files_says_so(folder: Path, change: str) -> None:
    path = folder / "texts" / "results.jsonl"
    sources = sources_of(path.parent, folder / "eval_set.jsonl", None)
    (part,) = ranges_of(path, 1 << 30)
    words = {
        "version": f"version {VERSION} of the toolkit, and the starter 0",
        "results": f"another {path};",
        "run": f"no {path} \\(No such file",
        "set": f"another {folder / 'eval_set.jsonl'}, or other labels",
    }
    if change == "version":
        sources = Sources(*sources[:-1], "0")
    elif change == "results":
        part = part._replace(checksum=part.checksum ^ 1)
    elif change == "run":
        path.unlink()
    else:
        with open(folder / "eval_set.jsonl", "a") as file:
            file.write('{"id": "more", "question": "?"}\n')
    with pytest.raises(StorageError, match=f"the worker on .* has {words[change]}"):
        score_range(TASK, sources, part)
