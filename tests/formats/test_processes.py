"""convert_data.py as a process: memory, kills, folders that dead processes left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import convert_data
from formats.shared.convert import _hidden_prefix


@pytest.mark.slow
def test_a_killed_import_leaves_nothing_at_its_place(tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(f'{{"id": "{n}", "question": "Q{n}?"}}\n' for n in range(60_000)))
    script = [sys.executable, convert_data.__file__]
    words = [*script, "import", "json", str(source), "-o", "out", "-q"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL)
    while process.poll() is None and not any(
        path.stat().st_size for path in tmp_path.glob(".converting.*/made/eval_set.jsonl")
    ):
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    subprocess.run(words, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert len((tmp_path / "out/eval_set.jsonl").read_bytes().splitlines()) == 60_000
    assert not any(tmp_path.glob(".converting.*"))  # the killed one's folder went at the next start


def test_folders_of_dead_processes_go_and_others_stay(desk: Any) -> None:
    """Only ours: of this machine, of a process that is dead, and without a user's old run."""
    process = subprocess.Popen(["true"])
    process.wait()
    ours = _hidden_prefix()
    names = [f"{ours}{process.pid}.a", f"{ours}{os.getpid()}.b", f".converting.x.{process.pid}.c"]
    for name in names:
        desk.file(f"{name}/made/eval_set.jsonl", "")
    desk.file(f"{ours}{process.pid}.d/old-run/results.jsonl", "{}")
    desk.take("json", desk.rows("rows.jsonl", [{"question": "Q?"}]))
    left = {path.name for path in desk.folder.glob(".converting.*")}
    assert left == {*names[1:], f"{ours}{process.pid}.d"}
