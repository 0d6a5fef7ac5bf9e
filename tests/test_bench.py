"""Every benchmark runs, at sizes at which its figures mean nothing, and finds what it measures."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
NAMES = [
    *sorted(path.stem for path in BENCH.glob("bench_*.py")),
    "crash_replay",
    "validate_claims",
    "validate_decisions",
    "validate_turns",
    *sorted(path.stem for path in BENCH.parent.glob("eval/extras/*/bench/*.py")),
]
PEERS = {
    "ir_measures": "bench_score_retrieval",
    "ranx": "bench_score_retrieval",
    "ranx fisher_randomization_test": "bench_compare",
}
"""Contestants that are not among the test tools, and where they are measured."""
pytestmark = [pytest.mark.slow, pytest.mark.thorough]
_done: dict[str, subprocess.CompletedProcess[str]] = {}


def tiny(name: str) -> subprocess.CompletedProcess[str]:
    """Run one benchmark; what it printed is kept for the tests of its rows."""
    if name not in _done:
        words = [sys.executable, str(BENCH / "run_all.py"), "--tiny", "--only", name]
        _done[name] = subprocess.run(words, capture_output=True, text=True)
    return _done[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_ends_with_numbers(name: str) -> None:
    if name == "crash_replay" and shutil.which("strace") is None:
        pytest.skip("strace is not installed, and without it there is nothing to replay")
    done = tiny(name)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    # two of them hold budgets of CPU, which a crowded machine may miss
    over = done.returncode == 1 and " ms CPU" in done.stdout
    assert done.returncode == 0 or over, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert any(character.isdigit() for character in done.stdout.partition("\n#")[2])


@pytest.mark.parametrize("contestant", PEERS)
def test_a_peer_that_is_installed_is_measured(contestant: str) -> None:
    package = contestant.split()[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed (pip install -r bench/requirements.txt)")
    done = tiny(PEERS[contestant])
    assert f"left out: {contestant}" not in done.stderr
    assert f"\n| {contestant} |" in done.stdout
