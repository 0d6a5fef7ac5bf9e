"""Each screen ends when its terminal goes, also where no signal tells it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from tests.labeller.screen.conftest import write_data
from tests.labeller.screen.test_terminal import TEXTS, read_set, simple_cases
from tests.rows import each_row
from tests.validation.judge.judged_run import JudgedRun, mixed

SCRIPTS = Path(__file__).parents[2] / "eval" / "scripts"
LIMIT = 60.0


def _end_of(argv: list[str], shown: bytes, keys: bytes, answer: bytes) -> int:
    """The exit code of a screen whose terminal goes once `answer` to `keys` was drawn."""
    ours, its = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", "PYTHONUNBUFFERED": ""}
    words = [sys.executable, str(SCRIPTS / argv[0]), *argv[1:]]
    process = subprocess.Popen(words, stdin=its, stdout=its, stderr=its, env=env)
    os.close(its)
    try:
        _wait_for(ours, shown)
        os.write(ours, keys)
        _wait_for(ours, answer)
        os.close(ours)
        return process.wait(LIMIT)
    finally:
        process.kill()
        process.wait()


def _wait_for(terminal: int, text: bytes) -> None:
    drawn, end = b"", time.monotonic() + LIMIT
    while text not in drawn:
        assert select.select([terminal], [], [], end - time.monotonic())[0], drawn[-2000:]
        drawn += os.read(terminal, 1 << 16)


def _options_of(folder: Path) -> list[str]:
    """A set and a run of it in a folder."""
    write_data(folder, simple_cases(), TEXTS)
    return [
        *("--eval-set", str(folder / "eval_set.jsonl")),
        *("--results-dir", str(folder / "results")),
    ]


def test_the_labeller(tmp_path: Path) -> None:
    options = ["--labels-dir", str(tmp_path), "--from-run", "latest", *_options_of(tmp_path)]
    assert _end_of(["label_eval.py", *options], b"lines 1-", b"2", b"row 2 meets") == 130
    assert read_set(tmp_path)[0]["gold_supports"], "the label was saved"


@each_row(("keys", "shown"), [(b"j", b"q-1"), (b"\r", b"Log number 1")])
def test_the_browser(tmp_path: Path, keys: bytes, shown: bytes) -> None:
    argv = ["browse_runs.py", "latest", *_options_of(tmp_path)]
    assert _end_of(argv, b"q-5", keys, shown) == 130


def test_the_claims(tmp_path: Path) -> None:
    judged = JudgedRun(tmp_path)
    judged.write(mixed(6)[0])
    argv = ["calibrate_judge.py", *judged.options(), "--label", "--annotator", "maria"]
    assert _end_of(argv, b"Press any key to continue", b"\r", b"judge hidden") == 130
