"""Every goal of speed in one table: ours, the limit of the machine, the best peer, met or missed.

    python bench/bench_goals.py                          # half an hour, 1 GB in a temporary folder
    python bench/bench_goals.py --rows score,compare     # some of the rows
    python bench/bench_goals.py --peers VENV/bin/python  # where bench/requirements.txt is installed

Each figure is of whole processes with their children: CPU seconds (user and system) and the peak MB
of the largest of them. Contestants take turns; figures are medians. A row that a peer wins says so.
Goals hold at full size on a quiet machine: the load is printed, and --part makes all sizes smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import bench_judge
import bench_run_eval
import bench_start
import make_retrieval_data
from measuring import SCRIPTS, Measured, in_turn, measure, median, print_table, say

HEAD = ("work", "figure", "ours", "limit", "best peer", "goal", "verdict", "load")
RUNS = ("a", "b")


@dataclass
class Figure:
    """One figure of ours beside others. ``worst``: the goal is to be no higher, else no lower."""

    work: str
    name: str
    ours: float
    goal: float | None = None
    peers: Mapping[str, float | None] = field(default_factory=dict)
    """By name; None for a peer that is not installed."""
    limit: tuple[str, float] | None = None
    least: bool = False
    """More is better."""

    def cells(self, judged: bool = True) -> list[str]:
        """A row of the table. ``judged``: the sizes are those that the goal is meant for."""
        better = (lambda a, b: a >= b) if self.least else (lambda a, b: a <= b)
        there = {name: value for name, value in self.peers.items() if value is not None}
        best = (max if self.least else min)(there, key=lambda name: there[name], default="")
        peer = f"{best} {number(there[best])}" if best else "; ".join(self.absent()) or "-"
        sign = "≥" if self.least else "≤"
        words = []
        if self.goal is not None and judged:
            words.append("met" if better(self.ours, self.goal) else "MISSED")
        if best and not better(self.ours, there[best]):
            words.append(f"{best} WINS")
        return [
            self.work,
            self.name,
            number(self.ours),
            f"{self.limit[0]} {number(self.limit[1])}" if self.limit else "-",
            peer,
            "-" if self.goal is None else f"{sign} {number(self.goal)}",
            ", ".join(words) or "-",
            f"{os.getloadavg()[0]:.1f}",
        ]

    def absent(self) -> list[str]:
        """The peers that could not be measured, in words."""
        return [f"{name}: not installed" for name, value in self.peers.items() if value is None]


def number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def of_runs(work: str, runs: list[Measured], cpu: float, mb: float | None, **more: object) -> list:
    """CPU seconds and peak MB of a command."""
    figures = [Figure(work, "CPU s", median(runs, "cpu"), cpu, **more)]  # type: ignore[arg-type]
    return [*figures, Figure(work, "peak MB", median(runs, "peak_mb"), mb)]


@dataclass
class Bench:
    """What all rows share. ``part``: of the full sizes, to try it out."""

    folder: Path
    rounds: int
    peers: str
    part: float = 1.0

    def size(self, cases: int) -> int:
        return max(30, int(cases * self.part))

    def has(self, package: str) -> bool:
        """Whether a peer is installed."""
        command = [self.peers, "-c", f"import {package}"]
        return subprocess.run(command, capture_output=True).returncode == 0

    def ids(self, cases: int, *, shared: bool, runs: tuple[str, ...] = RUNS) -> Path:
        """A set with one or two gold chunks a case and runs with ten ids a result. ``shared``: a
        gold document stands behind 50 to 75 cases."""
        folder = self.folder / f"{'shared' if shared else 'own'}-{cases}"
        if not folder.exists():
            write_ids(folder, cases, shared, runs)
        return folder


def write_ids(folder: Path, cases: int, shared: bool, runs: tuple[str, ...]) -> None:
    rng, pool = random.Random(cases), max(20, cases // 50)
    for run in runs:
        (folder / run).mkdir(parents=True)
        (folder / run / "config.json").write_text(f'{{"schema":1,"run_id":"{run}"}}')
    names = ("eval_set.jsonl", *(f"{run}/results.jsonl" for run in runs))
    eval_set, *results = (open(folder / name, "w", 1 << 20) for name in names)  # noqa: SIM115
    for n in range(cases):
        gold = [
            f"d{int(rng.random() * pool) if shared else n}#{k}" for k in range(1 + (n % 3 == 0))
        ]
        grades = json.dumps({chunk: grade for grade, chunk in enumerate(gold, 1)})
        category = ("factual", "reasoning", "multi_hop")[n % 3]
        head = f'"question":"What is {n}?"'
        eval_set.write(
            f'{{"id":"q{n:08}",{head},"answerable":true,"category":"{category}",'
            f'"chunk_relevance_grades":{grades}}}\n'
        )
        for file in results:
            found = [f"x{int(rng.random() * 1e6)}#{k}" for k in range(10)]
            for chunk in gold:
                if rng.random() < 0.6:
                    found[min(int(rng.expovariate(0.25)), 9)] = chunk
            ids = '","'.join(found)
            file.write(
                f'{{"schema":1,"test_case_id":"q{n:08}",{head},"status":"ok",'
                f'"retrieved":["{ids}"]}}\n'
            )
    for file in (eval_set, *results):
        file.close()


def script(name: str, *words: str | Path) -> Measured:
    return measure([sys.executable, SCRIPTS / f"{name}.py", *words], allowed=(0, 1))


def score(folder: Path, run: str, *words: str) -> Measured:
    """Score one run anew: to overwrite large files takes longer than to write them."""
    shutil.rmtree(folder / run / "scores", ignore_errors=True)
    files = ("--run", folder / run, "--eval-set", folder / "eval_set.jsonl")
    return script("score_retrieval", "--json", "--quiet", *files, *words)


def beside_peers(bench: Bench, cases: int, chunks: int, words: tuple[str, ...]) -> dict:
    """Our scoring of plain ids beside pytrec_eval with the same job, and what bounds both."""
    data = bench.folder / f"trec-{cases}"
    make_retrieval_data.write(data, cases, chunks)
    peer = (bench.peers, Path(__file__).with_name("peers.py"))
    contestants: dict[str, Callable[[], Measured]] = {
        "ours": partial(score, data, "ids", *words),
        "parse": partial(measure, [*peer, "parse", data / "ids" / "results.jsonl"]),
        "numpy": partial(measure, [bench.peers, "-c", "import numpy"]),
    }
    if bench.has("pytrec_eval"):
        contestants["pytrec_eval"] = partial(measure, [*peer, "pytrec_eval_job", data])
    return in_turn(contestants, bench.rounds)


def peers_of(runs: Mapping[str, list[Measured]], what: str = "cpu") -> dict[str, float | None]:
    there = runs.get("pytrec_eval")
    return {"pytrec_eval": median(there, what) if there else None}


def score_100k(bench: Bench) -> Iterator[Figure]:
    runs = beside_peers(bench, bench.size(100_000), 20, ())
    limit = ("orjson", median(runs["parse"], "cpu")) if "parse" in runs else None
    work = f"score {bench.size(100_000):,} × 20 by ids"
    yield Figure(work, "CPU s", median(runs["ours"], "cpu"), 1.05, peers_of(runs), limit)
    memory = peers_of(runs, "peak_mb")
    yield Figure(work, "peak MB", median(runs["ours"], "peak_mb"), None, memory)


def score_1k(bench: Bench) -> Iterator[Figure]:
    runs = beside_peers(bench, bench.size(1000), 20, ())
    limit = ("Python + numpy", median(runs["numpy"], "cpu")) if "numpy" in runs else None
    work = f"score {bench.size(1000):,} cases"
    yield Figure(work, "CPU s", median(runs["ours"], "cpu"), 0.20, peers_of(runs), limit)


def score_200k(bench: Bench) -> Iterator[Figure]:
    cases = bench.size(200_000)
    for shared in (False, True):
        folder = bench.ids(cases, shared=shared)
        runs = in_turn({"ours": partial(score, folder, "a")}, bench.rounds)["ours"]
        work = f"score {cases:,} × 10, gold {'shared' if shared else 'of its own'}"
        yield from of_runs(work, runs, 1.1, None)


def compared(bench: Bench) -> Iterator[Figure]:
    cases = bench.size(200_000)
    folder = bench.ids(cases, shared=False)
    for run in RUNS:
        score(folder, run)
    a, b, files = folder / "a", folder / "b", ("--eval-set", folder / "eval_set.jsonl")
    pair = ("--run", b, "--baseline", a)
    report = ("--output", folder / "report")
    contestants = {
        "compare": partial(script, "compare_runs", a, b, *files, "--json"),
        "gate": partial(script, "gate_run", *pair, *files, "--json"),
        "report": partial(script, "report_run", *pair, *files, *report),
    }
    runs = in_turn(contestants, bench.rounds)
    for name, goal in (("compare", 5.6), ("gate", 4.0), ("report", 9.0)):
        yield from of_runs(f"{name} {cases:,}", runs[name], goal, None)


IN_FLIGHT = {1: 0.95, 8: 0.95, 32: 0.93, 128: None, 256: 0.45}
"""The share of the limit that run_eval is to reach; None: that of bare aiohttp beside it."""


def calls(bench: Bench) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as temporary, bench_run_eval.slow_server(50) as url:
        for concurrency, goal in IN_FLIGHT.items():
            clients = {
                name: partial(client, url, Path(temporary))
                for name, client in bench_run_eval.CLIENTS.items()
                if name != "transport"
            }
            rates = bench_run_eval.rates(clients, concurrency, 50, 4 * bench.part, bench.rounds)
            ours, work = rates.pop("run_eval"), f"run_eval, {concurrency} in flight"
            shares = {name: rate.share for name, rate in rates.items()}
            aim = min(shares.get("bare aiohttp", 0.0), 1.0) if goal is None else goal
            yield Figure(work, "share of the limit", ours.share, aim, shares, least=True)
            if goal is None:
                costs = {name: rate.cpu_ms for name, rate in rates.items()}
                yield Figure(work, "CPU ms a call", ours.cpu_ms, 0.20, costs)


def judge(bench: Bench) -> Iterator[Figure]:
    with bench_judge.slow_judge(50) as url:
        clients = {name: partial(client, url) for name, client in bench_judge.CLIENTS.items()}
        rates = bench_run_eval.rates(clients, 128, 50, 4 * bench.part, bench.rounds)
    ours = rates["judge"]
    shares = {"bare requests": rates["bare requests"].share}
    costs = {"bare requests": rates["bare requests"].cpu_ms}
    yield Figure("judge, 128 in flight", "share of the limit", ours.share, 0.80, shares, least=True)
    yield Figure("judge, 128 in flight", "CPU ms a call", ours.cpu_ms, 0.25, costs)


def screens(bench: Bench) -> Iterator[Figure]:
    names = bench_start.scripts()
    shown = in_turn({name: partial(script, name, "--help") for name in names}, bench.rounds)
    each = sorted(median(runs, "cpu") for runs in shown.values())
    yield Figure("--help, median of all scripts", "CPU ms", each[len(each) // 2] * 1000, 90.0)
    for work, name, size, figure, goal in (
        ("browse", "bench_browse", ("--cases", bench.size(10_000)), "first_frame", 880.0),
        (
            "labeller",
            "bench_labeller",
            ("--questions", max(70, bench.size(10_000))),
            "start",
            450.0,
        ),
    ):
        few = ("--presses", "2", "--starts", "1") if bench.part < 1 else ()
        path = Path(__file__).with_name(f"{name}.py")
        done = measure([sys.executable, path, *map(str, size), *few, "--json"], allowed=(0, 1))
        found = json.loads(done.output)
        yield Figure(f"{work} {size[1]:,}", "first frame, CPU ms", found[figure]["cpu_ms"], goal)


ROWS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "score": score_100k,
    "small": score_1k,
    "large": score_200k,
    "compare": compared,
    "run_eval": calls,
    "judge": judge,
    "screens": screens,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    usual = list(ROWS)
    parser.add_argument("--rows", default=",".join(usual), help=f"of {', '.join(ROWS)}")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--peers", default=sys.executable, help="Python that has the peers")
    parser.add_argument("--part", type=float, default=1.0, help="of the sizes (%(default)s)")
    options = parser.parse_args()
    names = options.rows.split(",")
    if unknown := set(names) - ROWS.keys():
        parser.error(f"--rows {', '.join(sorted(unknown))}: there are {', '.join(ROWS)}")
    with tempfile.TemporaryDirectory(prefix="rag-eval-") as name:
        bench = Bench(Path(name), options.rounds, options.peers, options.part)
        rows = []
        for row in names:
            for figure in ROWS[row](bench):
                rows.append(figure.cells(bench.part == 1))
                say(" | ".join(rows[-1]))
    share = "" if options.part == 1 else f", {options.part:g} of the sizes: no goal is judged"
    print(f"## Goals of speed, median of {options.rounds}{share}")
    print_table(HEAD, rows)
    print(
        f"{sum('MISSED' in row[6] for row in rows)} missed, "
        f"{sum('WINS' in row[6] for row in rows)} won by a peer, of {len(rows)}."
    )


if __name__ == "__main__":
    main()
