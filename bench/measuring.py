"""Run commands as whole processes, in turn, and print medians as a Markdown table."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "eval" / "scripts"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""A user's second start: our modules are compiled by then, as pip compiles those of the peers."""


@dataclass
class Measured:
    """One finished process (with the children it waited for): seconds, and MB of its largest."""

    wall: float
    cpu: float
    peak_mb: float
    output: bytes


class ContestantError(Exception):
    """A contestant that ended with an error; the message is the end of what it said."""


def measure(
    command: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    allowed: Collection[int] = (0,),
) -> Measured:
    """Run a command once. Raises ContestantError when it ends with another exit code."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            env={**ENVIRONMENT, **(env or {})},
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode not in allowed:
            raise ContestantError(err.read()[-500:].decode(errors="replace").strip())
        cpu = usage.ru_utime + usage.ru_stime
        return Measured(wall, cpu, usage.ru_maxrss / 1024, out.read())


def in_turn(
    contestants: Mapping[str, Callable[[], Measured]], rounds: int
) -> dict[str, list[Measured]]:
    """A B C A B C …, so that a change of the machine's pace hits all alike.

    A contestant that fails is named on stderr and left out.
    """
    runs: dict[str, list[Measured]] = {name: [] for name in contestants}
    for number in range(1, rounds + 1):
        for name, run in contestants.items():
            if name not in runs:
                continue
            try:
                runs[name].append(run())
            except ContestantError as error:
                say(f"left out: {name}: {str(error).splitlines()[-1:]}")
                del runs[name]
            else:
                say(f"round {number}/{rounds}  {name}  {runs[name][-1].wall:.2f} s")
    return runs


def median(runs: Sequence[Measured], what: str) -> float:
    return float(statistics.median(getattr(run, what) for run in runs))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def print_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Markdown on stdout, a blank line before and after."""
    print("\n| " + " | ".join(head) + " |")
    print("|" + "---|" + "--:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print(flush=True)
