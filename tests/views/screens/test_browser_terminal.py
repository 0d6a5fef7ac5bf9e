"""The real script in a pseudo-terminal: its bytes, runs in progress, labelling, ends."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.screens import OWN
from tests.views.browser.conftest import Runs

SCRIPT = Path(__file__).parents[3] / "eval" / "scripts" / "browse_runs.py"
Start = Callable[..., Any]


@pytest.fixture
def start(tmp_path: Path, pseudo_terminal: Callable[..., Any]) -> Start:
    """Starts the script on the runs in `tmp_path`."""

    def run(*options: str, columns: int = 80, rows: int = 24, env: Any = None) -> Any:
        argv = [sys.executable, str(SCRIPT), "--eval-set", str(tmp_path / "eval_set.jsonl")]
        argv += ["--results-dir", str(tmp_path / "results"), *options]
        return pseudo_terminal(argv, columns=columns, rows=rows, env=env or {}, cwd=tmp_path)

    return run


def write_run(folder: Path, name: str, texts: list[str], *, partial: bool = False) -> Path:
    """A case a text, which is its question, answer and chunk; scored: the first one fails."""
    runs, numbered = Runs(folder), [(f"q{number}", text) for number, text in enumerate(texts)]
    runs.cases(*({"id": case, "question": text, "category": "factual"} for case, text in numbered))
    results = [
        {"id": case, "question": text, "answer": text}
        | {"retrieved": [{"chunk_id": "c", "rel_path": f"{text}.md", "text": text, "rank": 1}]}
        for case, text in numbered
    ]
    scores: dict[str, Any] = {} if partial else {"pipeline": [
        {"case_id": case, "scores": {"citations_ok": float(case != "q0")}} for case, _ in numbered
    ]}  # fmt: skip
    return runs.run(name, results, partial=partial, **scores)


def test_look_through_a_run(tmp_path: Path, start: Start) -> None:
    write_run(tmp_path, "one", ["How long?", "Who owns it?"])
    with start() as terminal:
        terminal.wait_for(b"Enter shows its cases")
        terminal.write(b"\r")
        terminal.wait_for(b"1 fail")
        terminal.write(b"/failing only\r")
        terminal.wait_for(b"1 of 2 cases")
        terminal.write(b"\r")
        terminal.wait_for(b"FAILS: fewer citations")
        terminal.write(b"r")
        terminal.wait_for(b"test_case_id")
        terminal.write(b"qqq")
        assert terminal.wait() == 0
    assert b"\x1b[?1049l" in bytes(terminal.output), "the screen is given back"


def test_hostile_text_reaches_the_terminal_as_text(
    tmp_path: Path, start: Start, hostile: tuple[str, ...]
) -> None:
    texts = [" ".join(hostile[at::6]) for at in range(6)]
    write_run(tmp_path, "one", texts)
    with start("one", columns=200, rows=60) as terminal:
        terminal.wait_for(b"question")
        for _ in texts:
            terminal.write(b"\r")
            terminal.read()
            terminal.write(b"zqj")
            terminal.read()
        terminal.write(b"q")
        assert terminal.wait() == 0
    rest = OWN.sub(b"", bytes(terminal.output))
    assert b"\x1b" not in rest
    assert not set(rest.decode()) & set("\x9b\x9d\x00\x07\u202e\u2066\ufeff\u2028")


def test_a_run_in_progress_is_read_again_until_it_is_finished(tmp_path: Path, start: Start) -> None:
    run = write_run(tmp_path, "live", ["first"], partial=True)
    with start("live") as terminal:
        terminal.wait_for(b"in progress: 1 of ?")
        with open(run / "results.partial.jsonl", "ab") as file:
            file.write(b'{"test_case_id":"q7","question":"seventh')
            file.flush()
            terminal.read(1.5)
            assert b"seventh" not in bytes(terminal.output)
            file.write(b'"}\n')
        terminal.wait_for(b"seventh")
        write_run(tmp_path, "live", ["first", "second"])
        (run / "results.partial.jsonl").unlink()
        terminal.wait_for(b"second")
        terminal.write(b"q")
        assert terminal.wait() == 0


@pytest.mark.parametrize("no_color", ["1", None])
def test_colours_are_used_unless_none_are_wanted(
    tmp_path: Path, start: Start, no_color: str | None
) -> None:
    write_run(tmp_path, "one", ["How long?"])
    with start("one", env={"NO_COLOR": no_color}) as terminal:
        terminal.wait_for(b"citations")
        terminal.write(b"\r")
        terminal.wait_for(b"Answer")
        terminal.write(b"qq")
        assert terminal.wait() == 0
    colours = re.findall(rb"\x1b\[(?:[0-9;]*;)?[34]8;2;(\d+);(\d+);(\d+)", bytes(terminal.output))
    greys = [red == green == blue for red, green, blue in colours]
    assert all(greys) == (no_color is not None), "shades of grey, or more than these"


def test_labelling_takes_the_terminal_and_gives_it_back(tmp_path: Path, start: Start) -> None:
    write_run(tmp_path, "one", ["How long?", "Who owns it?"])
    with start("one") as terminal:
        terminal.wait_for(b"citations")
        terminal.write(b"L")
        terminal.wait_for(b"start it")
        terminal.write(b"\r")
        terminal.wait_for(b"lines 1-")
        terminal.write(b"1\r")
        terminal.wait_for(b"Q 2/2")
        terminal.write(b"q")
        terminal.wait_for(b"1 fail")
        terminal.write(b"q")
        assert terminal.wait() == 0
    case = json.loads((tmp_path / "eval_set.jsonl").read_bytes().splitlines()[0])
    assert case["gold_supports"][0]["rel_path"] == "How long?.md"


def test_why_the_labeller_did_not_start_can_be_read(tmp_path: Path, start: Start) -> None:
    """The case stands in the run and no more in the set."""
    write_run(tmp_path, "one", ["How long?", "Who owns it?"])
    path = tmp_path / "eval_set.jsonl"
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    with start("one") as terminal:
        terminal.wait_for(b"citations")
        terminal.write(b"jL\r")
        terminal.wait_for(b"Exit code 2. Enter goes back")
        assert b"q1" in bytes(terminal.output).rpartition(b"Error")[2]
        terminal.write(b"\r")
        terminal.wait_for(b"ended with exit code 2")
        terminal.write(b"q")
        assert terminal.wait() == 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 130), (signal.SIGHUP, 130), (signal.SIGINT, 0)]
)
def test_a_signal_ends_it_cleanly(
    tmp_path: Path, start: Start, number: signal.Signals, code: int
) -> None:
    write_run(tmp_path, "one", ["How long?"])
    with start("one") as terminal:
        terminal.wait_for(b"citations")
        if number == signal.SIGINT:
            terminal.write(b"\x03")  # as the terminal driver is off, a key like any other
        else:
            terminal.kill(number)
        assert terminal.wait() == code
        assert b"\x1b[?1049l" in bytes(terminal.output)
