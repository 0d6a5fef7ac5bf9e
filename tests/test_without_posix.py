"""Asking, scoring and comparing load where a system has no fcntl, as Windows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1] / "eval" / "scripts"

LOADING = """
import sys, types
sys.path.insert(0, sys.argv[1])
# what others wrote is loaded first, as this system really is
import asyncio, concurrent.futures.process, multiprocessing.connection, socket, subprocess, tempfile
import click, jmespath, msgspec, numpy, orjson, rapidfuzz, requests, rich.console, scipy.stats
sys.platform = "win32"
sys.modules["fcntl"] = None
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
import compare_runs, connect_bot, eval_suite, gate_run, report_run, run_eval, score_retrieval
import clients.run, decisions.compare, records.files, scorers.loop, scorers.retrieval
assert records.files.msvcrt is sys.modules["msvcrt"]
"""


def test_what_asks_scores_and_compares_needs_no_fcntl() -> None:
    words = [sys.executable, "-c", LOADING, str(SCRIPTS)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
