"""Calls per second of run_eval.py against a bot with a fixed latency, beside bare clients.

    python bench/bench_run_eval.py --concurrency 1,8,32,128,256 --rounds 3

``transport`` is the toolkit's transport in its loop, with nothing around it. The limit is
concurrency / latency. Start and set-up are left out: each figure is the difference between a long
run and a short one. Each run is checked: every case has a sound answer on disk.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from measuring import SCRIPTS, Measured, in_turn, measure, print_table

HERE = Path(__file__).resolve().parent
HEAD = ("client", "in flight", "calls/s", "of the limit", "CPU ms a call", "peak MB")


@contextmanager
def slow_server(latency: float) -> Iterator[str]:
    """The address of a bot that answers after ``latency`` milliseconds."""
    command = [sys.executable, str(HERE / "slow_server.py"), "--latency", str(latency)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


def run_eval(url: str, folder: Path, concurrency: int, calls: int) -> Measured:
    eval_set = folder / f"set-{calls}.jsonl"
    if not eval_set.exists():
        cases = ({"id": f"q{n:06d}", "question": f"Question {n}?"} for n in range(calls))
        eval_set.write_text("".join(json.dumps(case) + "\n" for case in cases))
    with tempfile.TemporaryDirectory(dir=folder) as results:
        command = [sys.executable, SCRIPTS / "run_eval.py", "--api-url", url, "--quiet"]
        command += ["--eval-set", eval_set, "--results-dir", results, "--run-id", "run"]
        command += ["--set", f"concurrency={concurrency}"]
        measured = measure(command)
        with open(Path(results) / "run" / "results.jsonl", "rb") as file:
            rows = [json.loads(line) for line in file]
    sound = [row for row in rows if row["status"] == "ok" and len(row["retrieved"]) == 10]
    if len(sound) != calls or len({row["test_case_id"] for row in sound}) != calls:
        raise SystemExit(f"run_eval: {len(sound)} sound answers of {calls}")
    return measured


def bare(library: str, url: str, folder: Path, concurrency: int, calls: int) -> Measured:
    words = [url, "--calls", str(calls), "--concurrency", str(concurrency), "--library", library]
    return measure([sys.executable, HERE / "bare_client.py", *words])


CLIENTS: dict[str, Callable[[str, Path, int, int], Measured]] = {
    "run_eval": run_eval,
    "transport": partial(bare, "transport"),
    "bare requests": partial(bare, "requests"),
    "bare aiohttp": partial(bare, "aiohttp"),
}


class Rate(NamedTuple):
    """Marginal figures of one client: medians over the rounds of a long run minus a short one."""

    calls_s: float
    share: float
    """Of the limit."""
    cpu_ms: float
    peak_mb: float

    def cells(self) -> list[str]:
        figures = f"{self.calls_s:.0f}", f"{self.share:.0%}", f"{self.cpu_ms:.2f}"
        return [*figures, f"{self.peak_mb:.0f}"]


def rates(
    clients: Mapping[str, Callable[[int, int], Measured]],
    concurrency: int,
    latency: float,
    seconds: float,
    rounds: int,
) -> dict[str, Rate]:
    """The rate of each client, which takes how many calls are in flight, and how many to make."""
    limit = concurrency / latency * 1000
    less, more = concurrency * 2, concurrency * 2 + max(1, int(limit * seconds))
    runs = {
        f"{name}|{calls}": partial(client, concurrency, calls)
        for name, client in clients.items()
        for calls in (less, more)
    }
    found, measured = in_turn(runs, rounds), {}
    for name in clients:
        if not {f"{name}|{less}", f"{name}|{more}"} <= found.keys():
            continue
        pairs = list(zip(found[f"{name}|{less}"], found[f"{name}|{more}"], strict=True))
        wall = statistics.median(max(long.wall - short.wall, 1e-9) for short, long in pairs)
        cpu = statistics.median(long.cpu - short.cpu for short, long in pairs) / (more - less)
        rate, peak = (more - less) / wall, statistics.median(long.peak_mb for _, long in pairs)
        measured[name] = Rate(rate, rate / limit, cpu * 1000, peak)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--concurrency", default="1,8,32,128,256", help="(%(default)s)")
    parser.add_argument("--latency", type=float, default=50.0, help="milliseconds (%(default)s)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a long run (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary, slow_server(options.latency) as url:
        for concurrency in map(int, options.concurrency.split(",")):
            clients = {name: partial(f, url, Path(temporary)) for name, f in CLIENTS.items()}
            found = rates(clients, concurrency, options.latency, options.seconds, options.rounds)
            rows += [[name, str(concurrency), *rate.cells()] for name, rate in found.items()]
    print(f"## A bot that answers after {options.latency:g} ms, median of {options.rounds}")
    print_table(HEAD, rows)


if __name__ == "__main__":
    main()
