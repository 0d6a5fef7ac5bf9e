"""Scoring on a Dask scheduler, each part a process of its own, as docs/scale.md starts them.

    python bench/validate_cluster.py                      # all of it: about an hour on two cores
    python bench/validate_cluster.py --only memory --ids 1000000
    python bench/validate_cluster.py --tiny

bytes: 1, 2 and 8 workers, a pool and one process give the same metrics.json and score lines, with
one file and with shards; embedding with shards, and each time without any vector from before.
kills: in each round a worker is killed (-9) at a random moment of the run and another is started;
once the scheduler. efficiency: groundedness by a pool of two processes and by two workers on the
same cores. memory: the client's peak by ids. Ends with 1 when anything is not as it should be.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
from measuring import SCRIPTS, Measured, measure, median, print_table, say

SECTIONS = (
    "retrieval",
    "groundedness",
    "context",
    "abstention",
    "pipeline",
    "searches",
    "conversations",
)
"""Those that are scored line by line; embedding has a table of its own."""
RANGES = 12
"""Ranges of a run in which somebody is killed."""
MEGABYTES = 300
EFFICIENCY = 0.85
PARTS = ("bytes", "kills", "efficiency", "memory")


class Cluster:
    """A scheduler and workers."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        file = folder / f"scheduler-{time.time_ns()}.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(file))
        self.address = ""
        while not self.address:
            time.sleep(0.05)
            with contextlib.suppress(OSError, ValueError):
                self.address = json.loads(file.read_bytes())["address"]
        self.workers = [self.worker() for _ in range(workers)]
        self.wait(workers)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--no-dashboard"],
            env=os.environ | {"PYTHONPATH": str(SCRIPTS), "OMP_NUM_THREADS": "1"},
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", self.address, "--nthreads", "1", "--no-nanny")

    def wait(self, workers: int) -> None:
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=120)

    def cpu(self) -> float:
        """CPU seconds of scheduler and workers so far."""
        import psutil

        times = [psutil.Process(p.pid).cpu_times() for p in (self.scheduler, *self.workers)]
        return sum(part.user + part.system for part in times)

    def end(self) -> None:
        for process in (self.scheduler, *self.workers):
            process.kill()
        for process in (self.scheduler, *self.workers):
            process.wait()


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    running = Cluster(folder, workers)
    try:
        yield running
    finally:
        running.end()


def write_texts(folder: Path, cases: int) -> None:
    """A set and a run whose answers make five claims over four passages each, which two searches
    brought; in the second half three cases at a time are the turns of a conversation."""
    rng = random.Random(cases)
    (folder / "texts").mkdir(parents=True)
    with (
        open(folder / "eval_set.jsonl", "wb") as eval_set,
        open(folder / "texts" / "results.jsonl", "wb") as results,
    ):
        for n in range(cases):
            path = f"d{n % (cases // 2 + 1)}.md"
            case = {"id": f"q{n:07}", "question": f"What does item {n} cost?", "answerable": True}
            if n // 3 > cases // 6:
                case |= {"conversation": f"talk {n // 3}", "turn": n % 3 + 1}
            case["gold_supports"] = [{"rel_path": path, "heading_path": "A"}]
            eval_set.write(orjson.dumps(case) + b"\n")
            facts = [
                f"Item {n} costs {rng.randrange(9)}.{m}0 euros in shop {rng.randrange(50)}."
                for m in range(8)
            ]
            chunks = [
                {"chunk_id": f"c{at}", "rel_path": path, "rank": at + 1, "heading_path": "A"}
                | {"text": text, "text_length": len(text)}
                for at, text in enumerate(" ".join(facts[at:] + facts[:at]) for at in (0, 2, 4, 6))
            ]
            answer = " ".join(f"{text[:-1]} [{m % 4 + 1}]." for m, text in enumerate(facts[:5]))
            row = {"test_case_id": case["id"], "answer": answer, "retrieved": chunks}
            halves = (chunks[:2], chunks[2:])
            row["searches"] = [
                {"query": fact, "retrieved": half}
                for fact, half in zip(facts, halves, strict=False)
            ]
            row["latency_ms"] = {"total": rng.random() * 900}
            results.write(orjson.dumps(row) + b"\n")


def write_ids(folder: Path, cases: int, *, shared: bool) -> None:
    """A set and a run of ids alone; each case has a gold chunk of its own, or (``shared``) six in
    ten have the same one as another case."""
    rng = random.Random(cases)
    (folder / "ids").mkdir(parents=True)
    with (
        open(folder / "eval_set.jsonl", "w") as eval_set,
        open(folder / "ids" / "results.jsonl", "w") as results,
    ):
        for n in range(cases):
            gold = f"c{rng.randrange(cases) if shared else n}"
            case = {"id": f"q{n:08}", "question": "made", "relevant_chunks": [gold]}
            eval_set.write(json.dumps(case) + "\n")
            listed = [f"c{rng.randrange(cases)}" for _ in range(10)]
            if rng.random() < 0.7:
                listed[rng.randrange(10)] = gold
            results.write(json.dumps({"test_case_id": case["id"], "retrieved": listed}) + "\n")


def command(section: str, run: Path, eval_set: Path, *words: str) -> list[str | Path]:
    script = SCRIPTS / f"score_{section}.py"
    return [sys.executable, script, "--run", run, "--eval-set", eval_set, "--quiet", *words]


def hashes(run: Path) -> str:
    digest = hashlib.sha256((run / "metrics.json").read_bytes())
    for path in sorted((run / "scores").iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def scored(
    data: Path, name: str, *words: str, sections: Sequence[str] = SECTIONS, shards: int = 0
) -> dict[str, str]:
    """Score these sections of a copy of the run; a hash of what came of each."""
    folder = data / name
    run, eval_set, found = folder / "texts", data / "eval_set.jsonl", {}
    shutil.copytree(data / "texts", run)
    if shards:
        script = [sys.executable, SCRIPTS / "convert_data.py", "split", "--run", run]
        cut = ["--eval-set", eval_set, "--shards", str(shards)]
        eval_set = folder / "set"
        measure([*script, *cut, "--output", eval_set])
    for section in sections:
        measure(command(section, run, eval_set, *words))
        found[section] = hashes(run)
    shutil.rmtree(folder)
    return found


def embedded(data: Path, name: str, *words: str) -> dict[str, str]:
    """The same for embedding, in parts, with no vector kept from before."""
    new = ("--cache-dir", str(data / f"cache-{name}"))
    return scored(data, name, *words, *new, sections=("embedding",), shards=5)


def bytes_alike(data: Path, cases: int) -> bool:
    write_texts(data, cases)
    found = {
        "one process": scored(data, "one", "--jobs", "1"),
        "pool of 2": scored(data, "pool", "--jobs", "2"),
        "pool of 2, 5 shards": scored(data, "pool-shards", "--jobs", "2", shards=5),
    }
    vectors = {}
    for workers in (1, 2, 8):
        with cluster(data, workers) as running:
            words = ("--scheduler", running.address)
            found[f"{workers} workers"] = scored(data, f"w{workers}", *words)
            found[f"{workers} workers, 5 shards"] = scored(data, f"s{workers}", *words, shards=5)
            vectors[f"{workers} workers, 5 shards"] = embedded(data, f"e{workers}", *words)
    for table in (found, vectors):
        sections = list(next(iter(table.values())))
        rows = [(name, *by_section.values()) for name, by_section in table.items()]
        print_table(("sha256 of all files after", *sections), rows)
    return all(len({tuple(row.values()) for row in t.values()}) == 1 for t in (found, vectors))


def finished_ranges(run: Path) -> int:
    return len(list(run.glob(".ranges.*/*.part")))


def killed(data: Path, cases: int, rounds: int) -> bool:
    write_texts(data, cases)
    run, eval_set = data / "texts", data / "eval_set.jsonl"
    measure(command("groundedness", run, eval_set, "--jobs", "1"))
    expected = hashes(run)
    rng, alike, killed_in_time = random.Random(7), 0, 0
    with cluster(data, 2) as running:
        words = ("--scheduler", running.address, "--jobs", str(RANGES))
        for number in range(rounds):
            shutil.rmtree(run / "scores")
            (run / "metrics.json").unlink()
            process = subprocess.Popen(
                command("groundedness", run, eval_set, *words), stdout=subprocess.DEVNULL
            )
            enough = rng.randint(1, RANGES - 4)
            while process.poll() is None and finished_ranges(run) < enough:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.2))
            victim = running.workers.pop(rng.randrange(2))
            victim.kill()
            victim.wait()
            done = finished_ranges(run)
            in_time = (
                process.poll() is None and enough <= done <= RANGES - 2
            )  # both workers had a range
            running.workers.append(running.worker())
            code = process.wait()
            same = code == 0 and hashes(run) == expected
            killed_in_time += in_time
            alike += same
            say(f"round {number + 1}: killed after {done} of {RANGES} ranges, exit {code}, {same}")
            running.wait(2)
    print(f"\n# a worker killed in mid-run in {killed_in_time} of {rounds} rounds")
    print(f"# the same bytes in {alike} of {rounds} rounds\n")
    sound = alike == killed_in_time == rounds
    with cluster(data, 2) as running:
        words = ("--scheduler", running.address, "--jobs", str(RANGES))
        process = subprocess.Popen(
            command("groundedness", run, eval_set, *words),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not finished_ranges(run):
            time.sleep(0.02)
        running.scheduler.kill()
        _, said = process.communicate()
        kept = finished_ranges(run)
        print(f"# the scheduler killed: exit {process.returncode}, {kept} ranges kept: {said}")
        sound &= process.returncode == 3 and said.count("\n") == 1 and kept > 0
    with cluster(data, 2) as running:
        words = ("--scheduler", running.address, "--jobs", str(RANGES))
        measure(command("groundedness", run, eval_set, *words))
        sound &= hashes(run) == expected and not list(run.glob(".*"))
    print(f"# resumed: {'the same bytes' if sound else 'NOT the same'}\n")
    return sound


def pool_and_workers(
    data: Path, cases: int, rounds: int
) -> tuple[list[Measured], list[Measured], bool]:
    """Groundedness by a pool of two processes and by two workers, with the CPU of all processes,
    and whether all files are the same."""
    write_texts(data, cases)
    run, eval_set = data / "texts", data / "eval_set.jsonl"
    pool, workers, written = [], [], set()
    with cluster(data, 2) as running:
        words = ("--scheduler", running.address)
        measure(command("groundedness", run, eval_set, *words))  # the workers' first imports
        for number in range(rounds):
            pool.append(measure(command("groundedness", run, eval_set, "--jobs", "2")))
            written.add(hashes(run))
            before = running.cpu()
            workers.append(measure(command("groundedness", run, eval_set, *words)))
            workers[-1].cpu += running.cpu() - before
            written.add(hashes(run))
            say(f"round {number + 1}: pool {pool[-1]}, workers {workers[-1]}")
    return pool, workers, len(written) == 1


def efficient(data: Path, cases: int, rounds: int) -> bool:
    pool, workers, alike = pool_and_workers(data, cases, rounds)
    rows = [
        (name, *(f"{median(runs, figure):.2f}" for figure in ("wall", "cpu", "peak_mb")))
        for name, runs in (("pool of 2", pool), ("2 workers", workers))
    ]
    print_table(("groundedness", "wall s", "CPU s in all", "peak MB of the client"), rows)
    share = median(pool, "wall") / median(workers, "wall")
    cpu = median(pool, "cpu") / median(workers, "cpu")
    print(f"# efficiency against the pool: {share:.0%} by wall, {cpu:.0%} by CPU\n")
    return alike and share >= EFFICIENCY


def small(data: Path, cases: int, shards: int) -> bool:
    rows, peaks = [], []
    for shared in (False, True):
        folder = data / f"shared-{shared}"
        write_ids(folder, cases, shared=shared)
        run, eval_set = folder / "ids", folder / "eval_set.jsonl"
        script = [sys.executable, SCRIPTS / "convert_data.py", "split", "--run", run]
        cut = ["--eval-set", eval_set, "--shards", str(shards), "--output", folder / "set"]
        measured = {"convert_data split": measure([*script, *cut])}
        with cluster(folder, 2) as running:
            words = ("--scheduler", running.address)
            measured["client"] = measure(command("retrieval", run, folder / "set", *words))
        shutil.rmtree(folder)
        gold = "shared" if shared else "of its own"
        rows += [
            (name, gold, f"{m.wall:.1f}", f"{m.cpu:.1f}", f"{m.peak_mb:.0f}")
            for name, m in measured.items()
        ]
        peaks.append(measured["client"].peak_mb)
    head = (f"{cases:,} results by ids", "gold chunk", "wall s", "CPU s", "peak MB")
    print_table(head, rows)
    return peaks[0] <= MEGABYTES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--cases", type=int, default=4000)
    parser.add_argument("--ids", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tiny", action="store_true")
    asked = parser.parse_args()
    cases, ids, rounds = (60, 2000, 1) if asked.tiny else (asked.cases, asked.ids, asked.rounds)
    checks = {
        "bytes": lambda data: bytes_alike(data, cases),
        "kills": lambda data: killed(data, cases, rounds),
        "efficiency": lambda data: efficient(data, cases, min(rounds, 5)) or asked.tiny,
        "memory": lambda data: small(data, ids, asked.shards),
    }
    sound = True
    for name in asked.only or PARTS:
        with tempfile.TemporaryDirectory(prefix="rag-eval-") as folder:
            sound &= checks[name](Path(folder))
    print("# as it should be" if sound else "# NOT as it should be")
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
