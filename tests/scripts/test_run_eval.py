"""run_eval.py as a process of its own, against a real HTTP server."""

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
from click.testing import CliRunner

import run_eval
from clients.errors import KINDS

SCRIPT = Path(__file__).parents[2] / "eval" / "scripts" / "run_eval.py"
SECRET = "tok-5f3a9c/ä+"
Lines = list[dict[str, Any]]


def write_set(folder: Path, count: int) -> Path:
    """q0, q1, …: half of them factual, half reasoning; every third with the tag ``t``."""
    path = folder / "set.jsonl"
    cases = [
        {
            "id": f"q{n}",
            "question": f"question {n}",
            "category": ("factual", "reasoning")[n % 2],
            "difficulty": "easy" if n < 2 else "hard",
            "answerable": n != 3,
            "tags": ["t"] if n % 3 == 0 else [],
        }
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


def environment() -> dict[str, str]:
    """Nothing of the developer's own settings, but a secret."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAG_EVAL_")}
    return kept | {"RAG_EVAL_CONFIG": os.devnull, "BOT_TOKEN": SECRET, "NO_COLOR": "1"}


@pytest.fixture
def command(tmp_path: Path, fake_bot: Any) -> Callable[..., list[str]]:
    """The command line of a quick run into ``tmp_path/results``."""

    def build(*words: str | Path, cases: int = 5, url: str | None = None) -> list[str]:
        eval_set = tmp_path / "set.jsonl"
        if not eval_set.exists():
            write_set(tmp_path, cases)
        return [
            *(sys.executable, str(SCRIPT), "--eval-set", str(eval_set)),
            *("--results-dir", str(tmp_path / "results")),
            *(() if "--from-jsonl" in words else ("--api-url", url or fake_bot.url)),
            *("--backoff", "0.001", "--timeout", "20"),
            *map(str, words),
        ]

    return build


@pytest.fixture
def run(command: Callable[..., list[str]]) -> Callable[..., subprocess.CompletedProcess[str]]:
    def call(*words: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*words, **more), capture_output=True, text=True, env=environment(), timeout=120
        )

    return call


@pytest.fixture
def invoke(command: Callable[..., list[str]]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same inside this process, for what does not depend on a process."""

    def call(*words: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
        line = command(*words, **more)
        done = CliRunner().invoke(run_eval.main, line[2:], env=environment())
        return subprocess.CompletedProcess(line, done.exit_code, done.stdout, done.stderr)

    return call


Run = Callable[..., subprocess.CompletedProcess[str]]


def read(folder: Path, name: str = "results.jsonl") -> Lines:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_a_run_from_end_to_end(tmp_path: Path, fake_bot: Any, run: Run) -> None:
    done = run("--k", "3", "--concurrency", "4", "--run-id", "one", cases=40)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "results" / "one"
    assert done.stdout == f"{folder}\n"
    assert "--store-full-text" in done.stderr
    assert "answered" in done.stderr
    assert "\x1b" not in done.stderr

    assert sum(fake_bot.asked.values()) == 40
    assert fake_bot.most_at_once <= 4
    assert fake_bot.seen[0].json() == {"question": "question 0", "k": 3}
    results = read(folder)
    assert [line["test_case_id"] for line in results] == [f"q{n}" for n in range(40)]
    assert results[7]["answer"] == "answer to question 7 [1]"
    assert len(results[7]["retrieved"][0]["text"]) == 200
    assert not (folder / "results.partial.jsonl").exists()

    config = json.loads((folder / "config.json").read_text())
    assert config["dataset"]["cases"] == 40
    assert len(config["dataset"]["sha256"]) == len(config["config_hash"]) == 64
    assert config["retriever"]["requested"]["k"] == 3
    assert config["api"]["url"] == fake_bot.url
    assert config["api"]["profile"] == "default"
    assert "retrieved[].chunk_id" in config["api"]["fields_seen"]
    assert config["started"] <= config["finished"]


def test_full_texts_and_the_summary_as_json(tmp_path: Path, invoke: Run) -> None:
    done = invoke("--store-full-text", "--json", "--run-id", "full")
    assert done.returncode == 0, done.stderr
    assert "--store-full-text" not in done.stderr
    summary = json.loads(done.stdout)
    # 5 answers of the fake bot: 10 tokens in and 5 out, 5 ms each
    assert (summary["answered"], summary["errors"]) == (5, {})
    assert summary["usage"] == {"input_tokens": 50, "output_tokens": 25}
    assert summary["latency_ms"]["total"] == {"p50": 5.0, "p95": 5.0}
    chunk = read(tmp_path / "results" / "full")[0]["retrieved"][0]
    assert len(chunk["text"]) == chunk["text_length"] == len("about question 0 ") + 300


def test_what_can_change_a_result_changes_the_hash(tmp_path: Path, invoke: Run) -> None:
    def config_hash(*words: str) -> str:
        done = invoke("-q", *words)
        assert done.returncode == 0, done.stderr
        found: str = json.loads((Path(done.stdout.strip()) / "config.json").read_text())[
            "config_hash"
        ]
        return found

    first = config_hash()
    assert config_hash("--concurrency", "2", "--timeout", "30", "--max-error-rate", "1") == first
    assert config_hash("--k", "4") != first


def test_filter_limit_and_repeat(fake_bot: Any, tmp_path: Path, run: Run) -> None:
    done = run("--filter", "category=factual", "tag=t", "--limit", "2", "--repeat", "3", cases=30)
    assert done.returncode == 0, done.stderr
    # even and a multiple of three: 0, 6, 12, …; the first two of them
    results = read(Path(done.stdout.strip()))
    order = [(line["test_case_id"], line["repeat"]) for line in results]
    assert order == [(case, n) for case in ("q0", "q6") for n in range(3)]
    assert dict(fake_bot.asked) == {"question 0": 3, "question 6": 3}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["id=q1?"], {f"q{n}" for n in range(10, 20)}),
        (["id=q1", "id=q2"], {"q1", "q2"}),
        (["difficulty=easy"], {"q0", "q1"}),
        (["answerable=false"], {"q3"}),
    ],
)
def test_filters(words: list[str], expected: set[str], invoke: Run) -> None:
    flags = [word for text in words for word in ("--filter", text)]
    done = invoke("-q", *flags, cases=20)
    assert {line["test_case_id"] for line in read(Path(done.stdout.strip()))} == expected


def test_every_failure_has_its_kind_and_none_is_an_answer(
    fake_bot: Any, tmp_path: Path, run: Run
) -> None:
    answer = json.dumps(fake_bot.answer("x")).encode()
    stream_left = threading.Event()
    streamed: list[int] = []

    def flood(exchange: Any) -> None:
        streamed.append(exchange.stream(200 * 2**20))
        stream_left.set()

    faults: list[tuple[str, Callable[[Any], None]]] = [
        ("rate_limited", lambda e: e.reply({}, 429, Retry_After="0")),
        ("server_error", lambda e: e.reply({}, 500)),
        ("client_error", lambda e: e.reply({}, 404)),
        ("timeout", lambda e: e.hang()),
        ("connection", lambda e: e.reset()),
        ("malformed", lambda e: e.raw(answer[: len(answer) // 2])),
        ("malformed", lambda e: e.raw(b"<html>", Content_Type="text/html")),
        ("malformed", lambda e: e.raw(answer.replace(b"0.9", b"NaN"))),
        ("too_large", flood),
        ("mapping", lambda e: e.reply(fake_bot.answer("x", answer=["a"]))),
        ("mapping", lambda e: e.reply(fake_bot.answer("x", retrieved={"a": 1}))),
        ("redirect", lambda e: e.raw(b"", 302, Location="http://other.invalid/")),
        ("bot_error", lambda e: e.reply({"error": "no"})),
    ]
    for number, (_, behaviour) in enumerate(faults):
        fake_bot.script(f"question {number}", behaviour)
    recovers = len(faults)
    fake_bot.script(
        f"question {recovers}",
        lambda e: e.reply({}, 429, Retry_After="1"),
        lambda e: e.reply({}, 500),
        fake_bot.reply_properly,
    )
    flags = ("--timeout", "2", "--retries", "2", "--max-mb", "1", "--max-error-rate", "1")
    done = run(*flags, "--run-id", "bad", "--concurrency", "16", "-v", cases=recovers + 2)
    assert done.returncode == 0, done.stderr
    results = read(tmp_path / "results" / "bad")
    for (kind, _), line in zip(faults, results, strict=False):
        assert line["status"] == "error"
        assert line["error"]["kind"] == kind
        assert kind in KINDS
        assert line["answer"] is None
        assert line["retrieved"] == []
        assert f"{line['test_case_id']}: {kind}: " in done.stderr
    assert [line["status"] for line in results[recovers:]] == ["ok", "ok"]
    assert stream_left.wait(30)
    assert streamed[0] < 40 * 2**20


def test_too_many_errors_end_the_run_with_3_and_keep_what_came(
    fake_bot: Any, tmp_path: Path, run: Run
) -> None:
    for number in range(3, 7):
        fake_bot.script(f"question {number}", lambda e: e.reply({}, 400), fake_bot.reply_properly)
    done = run("--run-id", "r", "--concurrency", "1", "--max-error-rate", "0.1", cases=20)
    assert done.returncode == 3
    assert "--max-error-rate" in done.stderr
    assert "Traceback" not in done.stderr
    folder = tmp_path / "results" / "r"
    assert not (folder / "results.jsonl").exists()
    # 2 of 20 are allowed; the third error stops the run
    statuses = [line["status"] for line in read(folder, "results.partial.jsonl")]
    assert statuses == ["ok"] * 3 + ["error"] * 3

    done = run("--run-id", "r", "--resume", "--retry-errors", "--max-error-rate", "0.1")
    assert done.returncode == 0, done.stderr
    assert [line["test_case_id"] for line in read(folder)] == [f"q{n}" for n in range(20)]
    asked = fake_bot.asked
    assert all(asked[f"question {n}"] == 1 for n in range(3))
    assert all(asked[f"question {n}"] == 2 for n in range(3, 6))


@pytest.mark.parametrize("way", ["kill", "interrupt"])
def test_stopped_in_the_middle_and_resumed(
    way: str, fake_bot: Any, tmp_path: Path, command: Callable[..., list[str]], run: Run
) -> None:
    """500 cases against a slow server; each is asked at most once more, and all are there."""
    fake_bot.delay = 0.02
    in_flight = 16
    folder = tmp_path / "results" / "r"
    words = ("--run-id", "r", "--concurrency", str(in_flight))
    process = subprocess.Popen(
        command(*words, cases=500), stderr=subprocess.PIPE, text=True, env=environment()
    )
    partial = folder / "results.partial.jsonl"
    while process.poll() is None and sum(fake_bot.asked.values()) < 150:
        threading.Event().wait(0.01)
    process.send_signal(signal.SIGKILL if way == "kill" else signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    if way == "interrupt":
        assert process.returncode == 130
        assert "--resume --run-id r" in stderr
        assert "Traceback" not in stderr
    first = sum(fake_bot.asked.values())
    kept = partial.read_bytes().count(b"\n")
    assert 0 < kept < 500
    assert not (folder / "results.jsonl").exists()

    # what a crash of the machine could leave: a line without its end
    with open(partial, "ab") as file:
        file.write(b'{"test_case_id": "q4')
    done = run(*words, "--resume")
    assert done.returncode == 0, done.stderr
    results = read(folder)
    assert [line["test_case_id"] for line in results] == [f"q{n}" for n in range(500)]
    assert all(line["status"] == "ok" for line in results)
    assert max(fake_bot.asked.values()) <= 2
    assert sum(fake_bot.asked.values()) == first + 500 - kept
    # lost: calls in flight, and answers that waited to be written (at most as many again)
    assert first - kept <= 2 * in_flight + 1
    before = (folder / "results.jsonl").stat().st_mtime_ns
    assert run(*words, "--resume").returncode == 0  # nothing left to do, nothing touched
    assert (folder / "results.jsonl").stat().st_mtime_ns == before


def test_resume_refuses_another_set_or_configuration(
    fake_bot: Any, tmp_path: Path, invoke: Run
) -> None:
    words = ("--run-id", "r", "--concurrency", "1", "--max-error-rate", "0.1", "--resume")
    fake_bot.script("question 2", lambda e: e.reply({}, 400))
    assert invoke(*words[:-1]).returncode == 3
    folder = tmp_path / "results" / "r"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}

    def refused(*more: str) -> str:
        done = invoke(*words, *more)
        assert done.returncode == 2, done.stderr
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
        return done.stderr

    assert "retriever.requested.k: was 10, is 4" in refused("--k", "4")
    assert "run.repeat: was 1, is 2" in refused("--repeat", "2")
    assert "seed: was 0, is 5" in refused("--seed", "5")
    assert "api.profile_sha256" in refused("--profile", "documents")
    eval_set = tmp_path / "set.jsonl"
    old = eval_set.read_bytes()
    eval_set.write_bytes(old.replace(b"question 4", b"question four"))
    assert "dataset.sha256" in refused()
    eval_set.write_bytes(old)

    # the bot itself has changed: it says so with the first answer
    changed = fake_bot.answer("x", index={"corpus_hash": "new"})
    for number in range(5):
        fake_bot.script(f"question {number}", lambda e: e.reply(changed))
    assert "index.corpus_hash: was absent, is new" in refused("--max-error-rate", "0.5")


def test_facts_of_the_bot_enter_the_configuration(
    fake_bot: Any, tmp_path: Path, invoke: Run
) -> None:
    facts = {
        "index": {"corpus_hash": "h1", "chunker": "headings"},
        "retriever": {"k": 10, "filters": {"folders": ["varies"]}, "reranker": None},
        "answerer": {"model": "m-1"},
    }
    fake_bot.default = lambda e: e.reply(fake_bot.answer("x", **facts))
    assert invoke("--run-id", "a").returncode == 0
    config = json.loads((tmp_path / "results" / "a" / "config.json").read_text())
    assert config["index"] == facts["index"]
    assert config["answerer"] == facts["answerer"]
    assert config["retriever"]["k"] == 10
    assert "filters" not in config["retriever"]
    facts["index"]["corpus_hash"] = "h2"  # type: ignore[index]
    assert invoke("--run-id", "b").returncode == 0
    other = json.loads((tmp_path / "results" / "b" / "config.json").read_text())
    assert other["config_hash"] != config["config_hash"]


def test_a_secret_is_written_nowhere(fake_bot: Any, tmp_path: Path, run: Run) -> None:
    """The bot sends the header back in every way it can."""

    def echo(exchange: Any) -> None:
        seen = exchange.headers["X-Key"].encode("latin-1").decode("utf-8", "replace")
        value = exchange.headers["X-Key"]
        exchange.reply(
            fake_bot.answer("x", answer=f"{value} {seen}", usage={value: 1}, index={"v": value})
        )

    fake_bot.default = echo
    fake_bot.script("question 1", lambda e: e.reply({"error": e.headers["X-Key"]}))
    fake_bot.script("question 2", lambda e: e.reply(e.headers["X-Key"], 401))
    url = fake_bot.url.replace("http://", "http://user:pass-word@") + "/?key=query-secret"
    flags = ("--header", "X-Key=BOT_TOKEN", "--max-error-rate", "1", "-v", "--run-id", "r")
    done = run(*flags, url=url)
    assert done.returncode == 0, done.stderr
    assert fake_bot.seen[0].headers["X-Key"] == SECRET
    written = [path.read_text() for path in (tmp_path / "results" / "r").iterdir()]
    for text in (*written, done.stdout, done.stderr):
        for secret in (SECRET, json.dumps(SECRET)[1:-1], "pass-word", "query-secret"):
            assert secret not in text
    assert json.loads(written[0] if "config_hash" in written[0] else written[1])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--header", "X-Key=NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE is not set"),
        (("--header", "Authorization: Bearer sk-123456"), "--header Authorization"),
        (("--header", "Authorization=Bearer sk-123456"), "--header Authorization"),
        (("--profile", "nothing"), "known: "),
        (("--profile", "documents", "--folder-mode", "on"), "no {folder_mode}"),
        (("--filter", "colour=red"), "the names are"),
        (("--filter", "category=nothing"), "category: factual, reasoning"),
        (("--run-id", "../up"), "run id"),
        (("--resume",), "--run-id"),
        (("--resume", "--run-id", "never-made"), "no such run"),
        (("--retry-errors",), "--resume"),
        (("--demo-arg", "x"), "--api-url demo"),
        (("--k", "0"), "--k"),
        (("--max-error-rate", "2"), "--max-error-rate"),
    ],
)
def test_usage_errors_write_nothing(
    flags: tuple[str, ...], words: str, tmp_path: Path, fake_bot: Any, invoke: Run
) -> None:
    done = invoke(*flags)
    assert done.returncode == 2
    assert words in done.stderr
    assert "sk-123456" not in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()
    assert not fake_bot.seen


def test_an_id_that_exists_is_not_overwritten(tmp_path: Path, invoke: Run) -> None:
    assert invoke("--run-id", "r").returncode == 0
    before = (tmp_path / "results" / "r" / "results.jsonl").read_bytes()
    done = invoke("--run-id", "r", "--k", "2")
    assert done.returncode == 2
    assert "choose another id" in done.stderr
    assert (tmp_path / "results" / "r" / "results.jsonl").read_bytes() == before


def test_a_bot_that_is_not_there(tmp_path: Path, fake_bot: Any, run: Run) -> None:
    fake_bot.close()
    done = run("--retries", "1")
    assert done.returncode == 3
    assert len(done.stderr.strip().splitlines()) == 1
    assert fake_bot.url in done.stderr
    assert not (tmp_path / "results").exists()


def test_help_loads_nothing_slow() -> None:
    code = (
        "import runpy, sys; sys.argv = ['run_eval.py', '--help']\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit: pass\n"
        "slow = {'requests', 'urllib3', 'rich', 'numpy', 'jmespath', 'textual', 'torch'}\n"
        "print(sorted(slow & sys.modules.keys()), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code.replace("sys.argv[0]", repr(str(SCRIPT)))],
        capture_output=True,
        text=True,
        env=environment() | {"PYTHONPATH": str(SCRIPT.parent)},
    )
    assert "--from-jsonl" in done.stdout
    assert done.stderr.strip() == "[]"


def test_a_full_disk_is_a_sentence_and_loses_nothing(
    fake_bot: Any, tmp_path: Path, command: Callable[..., list[str]], run: Run
) -> None:
    """A limit on the size of files stands for the end of the disk."""
    resource = pytest.importorskip("resource")
    limit = 40_000

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    words = ("--run-id", "r", "--concurrency", "2")
    done = subprocess.run(
        command(*words, cases=100),
        capture_output=True,
        text=True,
        env=environment(),
        preexec_fn=little_room,
    )
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "--resume --run-id r" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    done = run(*words, "--resume")
    assert done.returncode == 0, done.stderr
    results = read(tmp_path / "results" / "r")
    assert [line["test_case_id"] for line in results] == [f"q{n}" for n in range(100)]
    assert max(fake_bot.asked.values()) <= 2


def test_the_address_may_name_the_endpoint(fake_bot: Any, invoke: Run) -> None:
    done = invoke("-q", url=f"{fake_bot.url}/api/v1/ask")
    assert done.returncode == 0, done.stderr
    assert {exchange.path for exchange in fake_bot.seen} == {"/api/v1/ask?debug=true"}


def test_a_bot_that_changes_during_the_run_is_noticed(
    fake_bot: Any, tmp_path: Path, invoke: Run
) -> None:
    def built(name: str) -> Callable[[Any], None]:
        return lambda e: e.reply(fake_bot.answer("x", index={"corpus_hash": name}))

    fake_bot.default = built("old")
    fake_bot.script("question 4", built("new"))
    done = invoke("--run-id", "r")
    assert done.returncode == 0, done.stderr
    change = "index.corpus_hash: was old, is new"
    assert change in done.stderr
    config = json.loads((tmp_path / "results" / "r" / "config.json").read_text())
    assert config["api"]["facts_changed"] == [change]
    assert config["index"] == {"corpus_hash": "old"}


def test_escape_sequences_of_a_bot_do_not_reach_the_terminal(fake_bot: Any, run: Run) -> None:
    fake_bot.script("question 1", lambda e: e.raw(b"\x1b[2J\x1b]0;owned\x07[red]x[/red]", 400))
    fake_bot.default = lambda e: e.reply(fake_bot.answer("x", latency_ms={"\x1b[31m": 1.0}))
    done = run("-v", "--max-error-rate", "1")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stderr
    assert "\x07" not in done.stderr
    assert "[red]x[/red]" in done.stderr
