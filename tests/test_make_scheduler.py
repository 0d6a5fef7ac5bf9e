"""`make scheduler` opens the scheduler to other machines only when it is told their address."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    ("words", "host"),
    [([], "127.0.0.1"), (["HOST=10.0.0.1"], "10.0.0.1"), (["HOST=a; touch x"], "a; touch x")],
)
def test_the_scheduler_listens_here_unless_a_host_is_named(words: list[str], host: str) -> None:
    """A shell's own HOST, the machine's name in some, does not count."""
    done = subprocess.run(
        ["make", "-s", "-o", "setup-cluster", "scheduler", r"DASK=printf '%s\n'", *words],
        cwd=ROOT,
        env={**os.environ, "HOST": "machine", "ARGS": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    listens = ["scheduler", "--host", host, "--dashboard-address", f"{host}:8787"]
    assert done.stdout.splitlines() == listens
