"""Groundedness by Dask's workers: what share of the CPU is useful, and what a kill -9 loses.

    python eval/extras/cluster/bench/bench_cluster.py          # 60 CPU seconds, and 20 kills
    python eval/extras/cluster/bench/bench_cluster.py --tiny   # only to see that it runs

Made data: answers that make five claims over four passages each. Useful is the CPU that one process
needs to score them all, its start included; total is that of starter, scheduler and workers until
the starter ends, when their own start is over. In each round of kills a worker is killed (-9) while
it scores, and another is started. Ends with 1 when anything differs from what one process writes.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "bench"))

from measuring import SCRIPTS, measure, print_table, say

MODULES = f"{ROOT / 'eval' / 'scripts'}{os.pathsep}{ROOT / 'eval'}"
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
}
"""As in Makefile.mk."""


class Cluster:
    """A scheduler and workers on this machine, each a process.

    ``strangers``: "scheduler" or "worker", which then lack the toolkit."""

    def __init__(self, folder: Path, workers: int, strangers: str = "") -> None:
        self._folder, self._strangers = folder, strangers
        file = folder / f"scheduler-{time.time_ns()}.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(file))
        self.address = ""
        while not self.address:
            time.sleep(0.05)
            with contextlib.suppress(OSError, ValueError):
                self.address = json.loads(file.read_bytes())["address"]
        self.workers = [self.worker() for _ in range(workers)]

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        modules = "" if words[0] == self._strangers else MODULES
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--no-dashboard"],
            env=os.environ | SETTINGS | {"PYTHONPATH": modules},
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", self.address, "--nthreads", "1", "--no-nanny")

    def wait(self) -> None:
        """Until all workers are there."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(len(self.workers), timeout=120)

    def kill_one(self, number: int, busy: float, scoring: subprocess.Popen[bytes]) -> bool:
        """Kill -9 a worker once it has worked for so many CPU seconds, and start another.

        Returns whether the command ``scoring`` was still at work."""
        victim = self.workers[number]
        until = cpu_of(victim) + busy
        while cpu_of(victim) < until and scoring.poll() is None:
            time.sleep(0.005)
        victim.kill()
        victim.wait()
        in_time = scoring.poll() is None
        self.workers[number] = self.worker()
        return in_time

    def cpu(self) -> float:
        """CPU seconds of scheduler and workers so far."""
        return sum(map(cpu_of, (self.scheduler, *self.workers)))

    def end(self) -> None:
        for process in (self.scheduler, *self.workers):
            process.kill()
            process.wait()


def cpu_of(process: subprocess.Popen[bytes]) -> float:
    import psutil  # distributed brings it

    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


@contextlib.contextmanager
def cluster(folder: Path, workers: int, strangers: str = "") -> Iterator[Cluster]:
    running = Cluster(folder, workers, strangers)
    try:
        if workers:
            running.wait()
        yield running
    finally:
        running.end()


def write_run(folder: Path, cases: int) -> None:
    """A set, and a run whose answers make five claims over four passages each."""
    rng = random.Random(cases)
    run = folder / "texts"
    run.mkdir(parents=True)
    with open(folder / "eval_set.jsonl", "w") as lines, open(run / "results.jsonl", "w") as results:
        for n in range(cases):
            case = {"id": f"q{n:07}", "question": f"What does item {n} cost?", "answerable": True}
            case["gold_supports"] = [{"rel_path": f"d{n // 2}.md", "heading_path": "A"}]
            lines.write(json.dumps(case) + "\n")
            facts = [
                f"Item {n} costs {rng.randrange(9)}.{m}0 euros in shop {rng.randrange(50)}."
                for m in range(8)
            ]
            chunks = [
                {"chunk_id": f"c{at}", "rel_path": f"d{n // 2}.md", "rank": at + 1, "text": text}
                for at, text in enumerate(" ".join(facts[at:] + facts[:at]) for at in (0, 2, 4, 6))
            ]
            answer = " ".join(f"{text[:-1]} [{m % 4 + 1}]." for m, text in enumerate(facts[:5]))
            row = {"test_case_id": case["id"], "answer": answer, "retrieved": chunks}
            results.write(json.dumps(row) + "\n")


def command(folder: Path, *words: str) -> list[str | Path]:
    script = SCRIPTS / "score_groundedness.py"
    place = ("--run", folder / "texts", "--eval-set", folder / "eval_set.jsonl")
    return [sys.executable, script, *place, "--quiet", *words]


def written(folder: Path) -> dict[str, bytes]:
    """The files that scoring made, which are then gone."""
    paths = [folder / "texts" / name for name in ("metrics.json", "scores/groundedness.jsonl")]
    content = {path.name: path.read_bytes() for path in paths}
    for path in paths:
        path.unlink()
    return content


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=6000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="1,500 cases and five kills")
    parser.add_argument("--tiny", action="store_true", help="60 cases and one kill")
    asked = parser.parse_args()
    if importlib.util.find_spec("distributed") is None:
        print("Left out: Dask is not installed (pip install distributed).", file=sys.stderr)
        return 77
    cases, kills = (1500, 5) if asked.quick else (asked.cases, asked.kills)
    cases, kills = (60, 1) if asked.tiny else (cases, kills)
    rng, same, in_time = random.Random(7), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder, small = Path(name, "whole"), Path(name, "small")
        write_run(folder, cases)
        write_run(small, min(300, cases))
        with cluster(Path(name), 2) as running:
            words = ("--scheduler", running.address)
            measure(command(small, *words))  # the first imports of the workers
            written(small)
            useful = measure(command(folder))
            expected, before = written(folder), running.cpu()
            starter = measure(command(folder, *words))
            total = starter.cpu + running.cpu() - before
            alike = written(folder) == expected
            rows = [
                ("one process", f"{useful.wall:.1f}", f"{useful.cpu:.1f}", ""),
                ("2 workers", f"{starter.wall:.1f}", f"{total:.1f}", f"{useful.cpu / total:.3f}"),
                ("of it the starter", "", f"{starter.cpu:.1f}", ""),
            ]
            print_table((f"{cases:,} answers", "wall s", "CPU s", "useful"), rows)
            measure(command(small))
            expected = written(small)
            for number in range(kills):
                scoring = subprocess.Popen(command(small, *words), stdout=subprocess.DEVNULL)
                in_time += running.kill_one(rng.randrange(2), rng.uniform(0.02, 0.5), scoring)
                code = scoring.wait()
                same += code == 0 and written(small) == expected
                say(f"kill {number + 1}: exit {code}")
                running.wait()
    print(f"\n{kills} workers killed -9, {in_time} while they scored: the same bytes {same} times.")
    return 0 if alike and same == kills else 1


if __name__ == "__main__":
    sys.exit(main())
