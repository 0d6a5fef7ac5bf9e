"""run_eval.py without a network: answers from a file, selection, summary, the embedded API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import run_eval
import storage
from clients.retry import Interrupted
from runner.pool import ask_all
from runner.selection import Job, expand, select
from runner.tally import Tally, printable, rows

SCRIPT = Path(run_eval.__file__)
CASES = [
    {"id": "a", "question": "first?"},
    {"id": "b", "question": "second?"},
    {"id": "c", "question": "third?"},
]
Import = Callable[..., Result]


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Run --from-jsonl on these lines (objects, or text as it is)."""
    monkeypatch.setenv("RAG_EVAL_CONFIG", os.devnull)
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))

    def call(lines: list[Any], *words: str) -> Result:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path = tmp_path / "answers.jsonl"
        path.write_text("".join(text + "\n" for text in texts))
        flags = ["--eval-set", tmp_path / "set.jsonl", "--results-dir", tmp_path / "results"]
        flags += ["--run-id", "r", "--from-jsonl", path, *words]
        return CliRunner().invoke(run_eval.main, [str(flag) for flag in flags])

    return call


def results(tmp_path: Path) -> list[storage.TestResult]:
    return list(storage.iter_results(tmp_path / "results" / "r" / "results.jsonl"))


def test_answers_in_their_different_shapes(tmp_path: Path, take: Import) -> None:
    done = take(
        [
            {"user_input": "third?", "response": "C", "retrieved_contexts": ["one", "two"]},
            {"id": "b", "answer": "B", "retrieved": ["c7", {"chunk_id": "c8", "rel_path": "x.md"}]},
            {"test_case_id": "a", "error": {"kind": "timeout", "message": "slow"}},
        ],
        "--max-error-rate",
        "0.5",
    )
    assert done.exit_code == 0, done.stderr
    a, b, c = results(tmp_path)  # in the order of the set
    assert (a.test_case_id, a.status) == ("a", "error")
    assert a.error is not None
    assert (a.error.kind, a.error.message) == ("timeout", "slow")
    assert [(chunk.chunk_id, chunk.rank) for chunk in b.chunks()] == [("c7", 1), ("c8", 2)]
    assert (c.question, c.answer) == ("third?", "C")
    assert [(chunk.text, chunk.rank) for chunk in c.chunks()] == [("one", 1), ("two", 2)]
    config = storage.read_config(tmp_path / "results" / "r")
    assert config.api["source"] == "jsonl"
    assert len(config.answerer["imported_sha256"]) == 64


def test_our_own_result_lines_come_back_the_same(
    tmp_path: Path, take: Import, fake_bot: Any
) -> None:
    """Full texts in, full texts out: reading a run's own results changes nothing."""
    first = [
        storage.TestResult(
            case["id"],
            case["question"],
            answer=f"answer {repeat}",
            references=[storage.Reference(1, "c1")],
            retrieved=[storage.RetrievedChunk("c1", text="t" * 300, text_length=300, rank=1)],
            folder_selection=storage.FolderSelection(["x"], "why"),
            abstained=False,
            confidence=0.5,
            latency_ms={"total": 3.0},
            repeat=repeat,
        )
        for case in CASES
        for repeat in range(2)
    ]
    lines = [result.to_dict(store_full_text=True) for result in reversed(first)]
    done = take(lines, "--repeat", "2", "--store-full-text")
    assert done.exit_code == 0, done.stderr
    assert results(tmp_path) == first


def test_every_problem_of_an_answers_file_is_told_at_once(tmp_path: Path, take: Import) -> None:
    done = take(
        [
            {"id": "a", "answer": "A"},
            {"id": "a", "answer": "again"},
            {"id": "zzz", "answer": "?"},
            {"question": "unknown?", "answer": "?"},
            '{"id": "b", "answer": ',
            "[]",
            {"id": "b", "answer": 5},
            {"answer": "of nobody"},
            {"id": "b", "answer": "B", "repeat": 1},
            {"id": "b"},
            {"id": "b", "answer": "B", "contexts": "text"},
            {"id": "b", "answer": "B", "retrieved": [{"score_final": 1}]},
        ]
    )
    assert done.exit_code == 2
    for place, words in (
        (":2:", "answer on line 1 already"),
        (":3:", "'zzz' is in no line of the set"),
        (":4:", "no case of the set has the question 'unknown?'"),
        (":5:", "not JSON"),
        (":6:", "no JSON object"),
        (":7: answer:", "Expected"),
        (":8:", "neither an id nor a question"),
        (":9:", "--repeat"),
        (":10:", "holds no answer"),
        (":11:", "no list of texts"),
        (":12: retrieved[0]:", "has no id, path or text"),
        ("answers.jsonl:", "no answer for case 'c'"),
    ):
        assert any(place in line and words in line for line in done.stderr.splitlines()), words
    assert not (tmp_path / "results").exists()


def test_lines_of_cases_that_are_filtered_out_are_passed_over(tmp_path: Path, take: Import) -> None:
    done = take([{"id": case["id"], "answer": "x"} for case in CASES], "--filter", "id=b")
    assert done.exit_code == 0, done.stderr
    assert [result.test_case_id for result in results(tmp_path)] == ["b"]


def test_imported_errors_count(tmp_path: Path, take: Import) -> None:
    lines = [{"id": case["id"], "error": "broke"} for case in CASES]
    done = take(lines)
    assert done.exit_code == 3
    assert "--resume" not in done.stderr


def case(case_id: str, **fields: Any) -> storage.TestCase:
    return storage.TestCase(case_id, f"{case_id}?", **fields)


def test_filters_of_one_name_are_an_or_and_of_several_an_and() -> None:
    cases = [
        case("a", category="factual", tags=["x", "y"]),
        case("b", category="reasoning", tags=["x"]),
        case("c", category="factual", tags=["z"]),
    ]

    def ids(*filters: str, limit: int | None = None) -> list[str]:
        return [kept.id for kept in select(cases, filters, limit)]

    assert ids() == ["a", "b", "c"]
    assert ids("tag=x", "tag=z") == ["a", "b", "c"]
    assert ids("tag=x", "category=factual") == ["a"]
    assert ids("answerable=unknown", limit=2) == ["a", "b"]
    with pytest.raises(storage.StorageError, match="tag: x, y, z"):
        ids("tag=nothing")


def test_all_cases_come_once_before_any_comes_twice() -> None:
    cases = [case("a"), case("b")]
    keys = [job.key for job in expand(cases, 2)]
    assert keys == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert Job(cases[0]).key == ("a", 0)


def test_the_pool_asks_everything_and_never_more_at_once() -> None:
    now, most = 0, 0
    lock = threading.Lock()

    def ask(number: int) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.001)
        with lock:
            now -= 1
        return number * 2

    answers = list(ask_all(range(200), ask, 7, threading.Event()))
    assert sorted(answers) == [number * 2 for number in range(200)]
    assert most <= 7


def test_an_exception_of_a_worker_reaches_the_consumer() -> None:
    def ask(number: int) -> int:
        if number == 5:
            raise ZeroDivisionError
        return number

    with pytest.raises(ZeroDivisionError):
        list(ask_all(range(100), ask, 3, threading.Event()))


def test_closing_the_pool_stops_it() -> None:
    stop = threading.Event()
    asked: list[int] = []

    def ask(number: int) -> int:
        if stop.is_set():
            raise Interrupted
        asked.append(number)
        return number

    answers = ask_all(iter(range(10**9)), ask, 2, stop)
    next(answers)
    answers.close()
    assert stop.is_set()
    assert len(asked) < 1000


def test_the_summary() -> None:
    def ok(total: float, **fields: Any) -> storage.TestResult:
        return storage.TestResult("a", latency_ms={"total": total, "retrieve": 1.0}, **fields)

    tally = Tally(
        [
            *(ok(float(n), usage={"tokens": 2, "model": "m"}, cost_usd=0.5) for n in range(1, 21)),
            ok(100.0, abstained=True),
            storage.TestResult("b", status="error", error=storage.ErrorInfo("timeout")),
        ]
    )
    summary = tally.to_dict()
    assert (summary["answered"], summary["abstained"]) == (20, 1)
    assert summary["errors"] == {"timeout": 1}
    assert summary["usage"] == {"tokens": 40}
    assert summary["cost_usd"] == 10.0
    # 21 times, 1 to 20 and 100: nearest rank of p50 is the 11th, of p95 the 20th (19.95 up)
    assert summary["latency_ms"]["total"] == {"p50": 11.0, "p95": 20.0}
    assert list(summary["latency_ms"]) == ["retrieve", "total"]
    assert ("  timeout", "1") in rows(summary)


def test_what_a_bot_says_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[2Jb\r\nc\u202ed") == "a [2Jb  c d"


@pytest.fixture
def two_cases(tmp_path: Path) -> Path:
    path = tmp_path / "set.jsonl"
    lines = [
        {"id": "a", "question": "What does a lambda expression yield?"},
        {"id": "b", "question": "Which cheese goes on a pizza?"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def demo_command(two_cases: Path, *words: str) -> list[str]:
    folder = two_cases.parent
    return [
        *(sys.executable, str(SCRIPT), "--eval-set", str(two_cases)),
        *("--results-dir", str(folder / "results"), "--run-id", "r", "--api-url", "demo"),
        *("--demo-arg", f"--lexical-only --cache-dir {folder / 'cache'}", *words),
    ]


def test_the_embedded_api_is_started_asked_and_stopped(two_cases: Path) -> None:
    done = subprocess.run(demo_command(two_cases, "-v"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    first, second = storage.iter_results(folder / "results.jsonl")
    assert first.status == second.status == "ok"
    assert "lambda" in (first.answer or "").lower()
    assert len(first.retrieved) == 10
    assert {"retrieve", "generate", "total"} <= first.latency_ms.keys()
    config = storage.read_config(folder)
    assert config.api["url"] == "demo"
    assert config.index["corpus_hash"]
    assert config.retriever["vector_weight"] == 0
    assert config.answerer["model"]


def test_the_embedded_api_refuses_its_options(two_cases: Path) -> None:
    words = demo_command(two_cases, "--demo-arg=--no-such-option")
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert "refused its options" in done.stderr
    assert not (two_cases.parent / "results").exists()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the child in /proc")
def test_the_embedded_api_does_not_outlive_a_killed_run(two_cases: Path, fake_bot: Any) -> None:
    eval_set = two_cases.read_text()
    many = [eval_set.replace('"a"', f'"a{n}"').replace('"b"', f'"b{n}"') for n in range(2000)]
    two_cases.write_text("".join(many))
    process = subprocess.Popen(
        demo_command(two_cases, "-q", "--concurrency", "1"), stdout=subprocess.DEVNULL
    )
    partial = two_cases.parent / "results" / "r" / "results.partial.jsonl"
    while process.poll() is None and not partial.exists():
        threading.Event().wait(0.01)
    children = child_ids(process.pid)
    assert len(children) == 1
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(3000):
        if not Path(f"/proc/{children[0]}/stat").exists() or is_zombie(children[0]):
            break
        threading.Event().wait(0.01)
    else:
        os.kill(children[0], signal.SIGKILL)
        pytest.fail("the server is still there")


def child_ids(parent: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{parent}/task").glob("*/children"):
        found += map(int, path.read_text().split())
    return found


def is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
