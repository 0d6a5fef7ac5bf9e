"""The script: a real process that serves, stops cleanly, and never outlives its parent."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.rows import each_row

SCRIPT = Path(__file__).resolve().parents[2] / "eval" / "scripts" / "demo_api.py"

Start = Callable[..., tuple["subprocess.Popen[str]", str]]


def run(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """demo_api.py that is expected to end by itself."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
    )


def ask(url: str, question: str, **settings: Any) -> Any:
    body = {"question": question, **settings}
    response = requests.post(f"{url}/api/v1/ask?debug=true", json=body, timeout=240)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "zoo"
    (folder / "birds").mkdir(parents=True)
    (folder / "birds" / "hen.md").write_text("# Hen\n\nA hen lays eggs in the morning.\n")
    (folder / "cod.md").write_text("# Cod\n\n## Eggs\n\nA cod lays very many eggs in the sea.\n")
    return folder


@pytest.fixture
def quick(tmp_path: Path, vault: Path) -> tuple[str, ...]:
    folders = ("--cache-dir", str(tmp_path / "cache"), "--vault", str(vault))
    return ("--set", "lexical_only=true", *folders)


def test_serves_a_folder_by_its_settings(start_api: Start, quick: tuple[str, ...]) -> None:
    _, url = start_api(*quick, "--set", "chunk_size=100")
    question = "How many eggs does a cod lay in the sea?"
    body = ask(url, question, folders=[""], k=1, folder_mode="on")
    assert body["references"][0]["heading_path"] == "Cod > Eggs"
    assert len(body["retrieved"]) == 1
    assert (body["index"]["vaults"], body["index"]["chunks"]) == (["zoo"], 2)
    assert body["index"]["chunk_size"] == 100
    assert (body["retriever"]["vector_weight"], body["retriever"]["folder_mode"]) == (0, "on")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_stop_it_cleanly(
    start_api: Start, quick: tuple[str, ...], tmp_path: Path, number: int
) -> None:
    process, url = start_api(*quick)
    ask(url, "eggs")
    process.send_signal(number)
    assert process.wait(60) == 130
    told = (tmp_path / "stderr0.txt").read_text()
    assert told == "Interrupted. The embeddings are kept: start the same command again.\n"
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=60)


def test_closed_stdin_stops_it(start_api: Start, quick: tuple[str, ...]) -> None:
    process, _ = start_api(*quick)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0


@each_row(
    ("arguments", "says"),
    [
        (("--port", "70000"), "--port"),
        (("--vault", "no-such-folder"), "no-such-folder"),
        (("--set", "vector_weight=-1"), "vector_weight"),
        (("--set", "vector_weight=nan"), "vector_weight"),
        (("--set", "vector_weight=1.1"), "from 0 up to 1"),
        (("--set", "chunk-size=400"), "write chunk_size"),
        (("--set", "lexical_only=true", "--vault", "."), "Markdown"),
    ],
)
def test_mistakes_are_one_message_and_exit_2(tmp_path: Path, arguments: Any, says: str) -> None:
    done = run("--cache-dir", "cache", *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_taken_port_is_refused(quick: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run(*quick, "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "--port 0" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.thorough
def test_real_model_and_a_second_start(start_api: Start, vault: Path, tmp_path: Path) -> None:
    arguments = ("--cache-dir", str(tmp_path / "cache"), "--vault", str(vault))
    question = "When does a chicken produce her offspring?"  # shares no word with the answer
    first_process, url = start_api(*arguments)
    body = ask(url, question)
    assert body["retrieved"][0]["rel_path"] == "birds/hen.md"
    assert 0.2 < body["retrieved"][0]["score_vector"] < 1
    assert body["index"]["embedding_model"] == "all-MiniLM-L6-v2"
    first_process.terminate()
    first_process.wait()
    second_process, url = start_api(*arguments)
    again = ask(url, question)
    assert again["retrieved"] == body["retrieved"]
    assert (tmp_path / "stderr1.txt").read_text() == ""
    maps = Path(f"/proc/{second_process.pid}/maps")
    if maps.exists():  # all vectors were kept, the question's too: torch was never needed
        assert "torch" not in maps.read_text()
        assert "numpy" in maps.read_text()
    assert again["index"] == body["index"]
