"""Calls per second of the judge's client at a fixed latency, and the time of a cached rerun.

    python bench/bench_judge.py --concurrency 8,32,64,128 --rounds 3

The limit is concurrency / latency. Start and set-up are left out of calls/s: each figure is the
difference between a long run and a short one. ``judge`` sends, checks and keeps each verdict in
the cache; ``without cache`` does not keep it. Every run is checked: each task has its verdict.
The rerun is a whole process: every verdict comes from the cache, nothing is asked.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench_run_eval import HEAD, rates
from measuring import Measured, in_turn, measure, median, print_table

HERE = Path(__file__).resolve().parent


@contextmanager
def slow_judge(latency: float) -> Iterator[str]:
    """The address of a judge that answers after ``latency`` milliseconds."""
    command = [sys.executable, str(HERE / "slow_server.py"), "--latency", str(latency), "--judge"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        finally:
            server.terminate()


def ask(url: str, calls: int, concurrency: int, *words: str | Path) -> Measured:
    client = [sys.executable, HERE / "judge_client.py", url, *words]
    return measure([*client, "--calls", str(calls), "--concurrency", str(concurrency)])


def with_cache(url: str, concurrency: int, calls: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        return ask(url, calls, concurrency, "--cache", Path(folder) / "cache.jsonl")


def without_cache(url: str, concurrency: int, calls: int) -> Measured:
    return ask(url, calls, concurrency)


def bare(url: str, concurrency: int, calls: int) -> Measured:
    return ask(url, calls, concurrency, "--bare")


CLIENTS: dict[str, Callable[[str, int, int], Measured]] = {
    "judge": with_cache,
    "without cache": without_cache,
    "bare requests": bare,
}


def rerun(verdicts: int, rounds: int) -> list[str]:
    """The time of a process that finds all its verdicts in the cache."""
    with slow_judge(0) as url, tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.jsonl"
        ask(url, verdicts, 32, "--cache", cache)
        again = partial(ask, url, verdicts, 32, "--cache", cache, "--rerun")
        runs = in_turn({"rerun": again}, rounds)["rerun"]
        size = cache.stat().st_size / 1e6
    seconds = statistics.median(run.wall for run in runs)
    figures = (f"{seconds:.2f}", f"{median(runs, 'cpu'):.2f}", f"{median(runs, 'peak_mb'):.0f}")
    return [f"{verdicts:,} verdicts ({size:.0f} MB)", *figures]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--concurrency", default="8,32,64,128", help="(%(default)s)")
    parser.add_argument("--latency", type=float, default=50.0, help="milliseconds (%(default)s)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a long run (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--verdicts", type=int, default=10_000, help="of the rerun (%(default)s)")
    options = parser.parse_args()
    with slow_judge(options.latency) as url:
        clients = {name: partial(client, url) for name, client in CLIENTS.items()}
        rows = [
            [name, str(concurrency), *rate.cells()]
            for concurrency in map(int, options.concurrency.split(","))
            for name, rate in rates(
                clients, concurrency, options.latency, options.seconds, options.rounds
            ).items()
        ]
    print(f"## A judge that answers after {options.latency:g} ms, median of {options.rounds}")
    print_table(HEAD, rows)
    print(f"## A rerun from the cache, whole process, median of {options.rounds}")
    print_table(("rerun", "wall s", "CPU s", "peak MB"), [rerun(options.verdicts, options.rounds)])


if __name__ == "__main__":
    main()
