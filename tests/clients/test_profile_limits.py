"""[limits] of a profile: what they mean, what is refused, and that they change no answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.rows import each_row

import run_eval
from clients.profile import load_profile
from records.errors import StorageError

SMALLEST = """\
[request]
path = "/ask"
body = { question = "{question}" }
[response]
answer = "answer"
"""


def write(folder: Path, more: str = "") -> Path:
    path = folder / "slow.toml"
    path.write_text(SMALLEST + more)
    return path


def test_limits_do_not_make_another_profile(tmp_path: Path) -> None:
    """Two runs are as comparable as before, wherever a limit was written."""
    plain = load_profile(str(write(tmp_path)), tmp_path)
    slow = load_profile(str(write(tmp_path, "[limits]\nrpm = 30\nretries = 0\n")), tmp_path)
    assert slow.limits == {"rpm": 30, "retries": 0}
    assert (slow.sha256, slow.turns_sha256) == (plain.sha256, plain.turns_sha256)


@each_row(
    ("line", "told"),
    [
        ("retry = 1", "limits.retry: is unknown; write retries"),
        ("timeout = 0", "limits.timeout: must be a number above 0, up to 86400"),
        ("concurrency = true", "limits.concurrency: must be a whole number from 1 up to 512"),
        ("max_mb = inf", "limits.max_mb: must be a number"),
    ],
)
def test_a_bad_limit_is_a_sentence_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    path = write(tmp_path, f"[limits]\nbackoff = 0.1\n{line}\n")
    with pytest.raises(StorageError) as caught:
        load_profile(str(path), tmp_path)
    assert f"{path}:8: {told}" in caught.value.message


def test_the_option_counts_more_than_the_profile(tmp_path: Path, fake_bot: Any) -> None:
    path = write(tmp_path, "[limits]\nconcurrency = 3\nretries = 1\n")
    eval_set = tmp_path / "set.jsonl"
    eval_set.write_text(json.dumps({"id": "a", "question": "question 0"}) + "\n")
    words = ["--api-url", fake_bot.url, "--profile", str(path), "--eval-set", str(eval_set)]
    words += ["--results-dir", str(tmp_path / "results"), "--run-id", "r", "--set", "retries=2"]
    CliRunner().invoke(run_eval.main, words)
    run = json.loads((tmp_path / "results" / "r" / "config.json").read_text())["run"]
    assert (run["concurrency"], run["retries"], run["timeout_s"]) == (3, 2, 60.0)
