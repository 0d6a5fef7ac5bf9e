"""A judge by its file: the same judge as by options, wherever its settings were written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.scripts.judging.conftest import CASES, RESULTS

import judge_answers
from records.verdict_lines import read_settings

SETTING = "6a53e4efcebb"
KEYS = {
    "7b11dc1cb31a544719fac8b15a1cd92dc30f23491673e3f0ccf68c4532d2c870",
    "4880ea70fcfa80c160b8df5280202eb75936bff016579c2c41cdf7ee4f57b78f",
}
"""Of this judge when each setting was an option of its own: caches and runs of then still count."""

SETTINGS = ["revision=r1", "temperature=0.5", "mode=json_schema", "thinking_tokens=100"]


def judged(run: Any, *words: str) -> tuple[dict[str, Any], set[str]]:
    """The settings of the run's verdicts, and the keys in the cache."""
    run.judge("--metrics", "groundedness", *words)
    cache = run.finished.folder / "cache" / "judge_cache.jsonl"
    keys = {json.loads(line)["key"] for line in cache.read_text().splitlines()}
    return read_settings(run.finished.run / "verdicts.jsonl"), keys


def test_the_same_judge_by_options_and_by_file(run: Any, server: Any, tmp_path: Path) -> None:
    run.write(CASES[:2], RESULTS[:2])
    cache = run.finished.folder / "cache"
    cache.mkdir()
    (cache / "judge_salt").write_bytes(bytes(32))  # of the boundaries, which the keys cover
    pairs = [word for pair in SETTINGS for word in ("--set", pair)]
    settings, keys = judged(run, "--judge", server.url, "--model", server.model, *pairs)
    assert (set(settings), keys) == ({SETTING}, KEYS)
    assert server.judgements == 2

    (run.finished.run / "verdicts.jsonl").unlink()
    file = tmp_path / "ours.toml"
    file.write_text(
        f'server = "{server.url}"\nmodel = "{server.model}"\nrevision = "r1"\ntemperature = 0.5\n'
        'mode = "json_schema"\nthinking_tokens = 100\nconcurrency = 1\ntimeout = 30\n'
    )
    assert judged(run, "--judge", str(file)) == (settings, KEYS)
    assert server.judgements == 2, "all came from the cache"

    (run.finished.run / "verdicts.jsonl").unlink()
    assert judged(run, "--judge", str(file), "--offline") == (settings, KEYS)


def call(home: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, judge_answers.__file__, *words],
        env=os.environ | {"RAG_EVAL_HOME": str(home)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_judge_is_saved_and_named(run: Any, server: Any, tmp_path: Path) -> None:
    words = ["--judge", server.url, "--model", server.model, "--set", "api_key=OUR_KEY"]
    words += ["--set", "revision=r1", "--set", "temperature=0.5", "--save-judge", "ours"]
    key = {"OUR_KEY": "sk-very-secret-value"}
    saved = call(tmp_path, *words, **key)
    path = tmp_path / "eval" / "judges" / "ours.toml"
    assert (saved.returncode, saved.stdout) == (0, f"{path}\n"), saved.stderr
    assert "--judge ours" in saved.stderr
    assert server.calls == []
    assert path.read_text().splitlines() == [
        "schema = 1",
        f'server = "{server.url}"',
        f'model = "{server.model}"',
        'api_key = "OUR_KEY"',
        'revision = "r1"',
        "temperature = 0.5",
    ]
    run.write()
    at = ["--run", str(run.finished.run), "--eval-set", str(run.finished.folder / "set.jsonl")]
    at += ["--cache-dir", str(tmp_path / "cache"), "--metrics", "groundedness"]
    done = call(tmp_path, "--judge", "ours", *at, **key)
    assert done.returncode == 0, done.stderr
    assert {line["parameters"]["temperature"] for line in run.lines() if "parameters" in line} == {
        0.5
    }
    assert server.judgements == 2
    lacking = call(tmp_path, "--judge", "ours", *at)
    assert lacking.returncode == 2
    assert "environment variable OUR_KEY is not set" in lacking.stderr
