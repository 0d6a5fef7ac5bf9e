"""How often does compare_runs.py call what is no difference, and does its MDE keep its promise?

    python bench/decisions_compare.py          # about ten minutes; the demo bot is asked first
    python bench/decisions_compare.py --tiny   # only to see that it runs

Four tables, from the engine itself (decisions/joint.py): the power at the MDE that was printed,
false verdicts on pairs of runs in which nothing changed, those of skewed times, and EVALSIG 0.1.2
on the same pairs, where a Python that has it is named by --evalsig. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measuring import SCRIPTS, print_table

sys.path.insert(0, str(SCRIPTS))

import numpy as np
from decisions_gate import ASKED, Configurations, drawn, made_up, of_the_demo
from numpy.typing import NDArray

from decisions.joint import Decision, PrimaryTable, decide
from decisions.primary import primary_names

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EVALSIG = Path("/tmp/evalsig/bin/python")
SIZES = (30, 90, 300)
NOISE = 0.2
"""Chance that a case gets another answer, and so other scores, in each of two runs."""


class Pair(NamedTuple):
    """Two runs over the same cases, a column a metric, and the cluster of each case."""

    a: Floats
    b: Floats
    clusters: Ints


def verdicts(pair: Pair, seed: int, names: Sequence[str] = ()) -> Decision:
    names = tuple(names) or tuple(f"made.metric_{at}" for at in range(pair.a.shape[1]))
    ids = [str(number) for number in range(len(pair.a))]
    return decide(PrimaryTable(names, ids, pair.clusters, pair.a, pair.b), seed=seed)


def called(decision: Decision) -> bool:
    return any(row.verdict in ("better", "worse") for row in decision.rows)


# Power at the MDE


PROMISE = {30: (0.66, 0.86), 90: (0.73, 0.86), 300: (0.73, 0.86)}


def bot(n: int, metrics: int, rng: np.random.Generator) -> Callable[[], Floats]:
    """A bot that is asked again and again: a case passes a metric by its own ease; with chance
    ``NOISE`` its answer is another one, which is scored anew."""
    ease = rng.uniform(0.4, 1.0, (n, 1))
    usual = (rng.random((n, metrics)) < ease).astype(float)

    def ask() -> Floats:
        other = (rng.random((n, metrics)) < ease).astype(float)
        again = rng.random((n, 1)) < NOISE
        return np.where(again, other, usual)

    return ask


def with_fall(values: Floats, fall: float, rng: np.random.Generator) -> Floats:
    """The first metric truly falls: so many of the cases that pass fail now, and none the other way
    round."""
    fallen = values.copy()
    lead = fallen[:, 0]
    share = min(1.0, fall / max(float(lead.mean()), 1e-9))
    lead[rng.random(len(lead)) < share] = 0.0
    return fallen


def power_at_mde(n: int, metrics: int, simulations: int, seed: int) -> tuple[float, float]:
    """The mean MDE that is printed for pairs without an effect, and how often another pair with a
    true effect of that size is called worse."""
    found, printed = 0, []
    each = np.arange(n)
    for simulation in range(simulations):
        rng = np.random.default_rng([seed, n, metrics, simulation])
        ask = bot(n, metrics, rng)
        mde = verdicts(Pair(ask(), ask(), each), simulation).rows[0].mde or 0.0
        printed.append(mde)
        pair = Pair(ask(), with_fall(ask(), mde, rng), each)
        found += verdicts(pair, simulation).rows[0].verdict == "worse"
    return float(np.mean(printed)), found / simulations


def print_power(simulations: int, seed: int) -> bool:
    rows, kept = [], True
    for n in SIZES:
        low, high = PROMISE[n]
        cells = [f"{n}"]
        for metrics in (1, 5, 11):
            mde, power = power_at_mde(n, metrics, simulations, seed)
            cells.append(f"{power:.3f} (MDE {mde:.3f})")
            kept &= low <= power <= high
        rows.append([*cells, f"{low:.2f} to {high:.2f}"])
    print(f"\nPower at the printed MDE ({simulations} simulations each; it promises .80)")
    print_table(("n", "1 metric", "5 metrics", "11 metrics", "asked for"), rows)
    return kept


# False verdicts


class Shape(NamedTuple):
    """Cases in clusters whose answers hang together (``icc``)."""

    name: str
    sizes: Sequence[int]
    icc: float

    def pair(self, metrics: int, rng: np.random.Generator) -> Pair:
        """Two runs of one bot: a case passes when what its document and itself add up to, which is
        drawn anew for each run, exceeds what the case asks for."""
        clusters = np.repeat(np.arange(len(self.sizes)), self.sizes)
        n = len(clusters)
        asks = rng.normal(-0.5, 1.0, (n, 1))

        def ask() -> Floats:
            shared = rng.normal(0, 1, (len(self.sizes), metrics))[clusters]
            own = rng.normal(0, 1, (n, metrics))
            return (self.icc**0.5 * shared + (1 - self.icc) ** 0.5 * own > asks).astype(float)

        return Pair(ask(), ask(), clusters)


SHAPES = (
    Shape("90 cases, each by itself", [1] * 90, 0.0),
    Shape("300 in 30 documents, ICC .3", [10] * 30, 0.3),
    Shape("90 in 30, ICC .3", [3] * 30, 0.3),
    Shape("90 in 10, ICC .5", [9] * 10, 0.5),
    Shape("80 in one + 20 singles, ICC .3", [80, *[1] * 20], 0.3),
    Shape("50 in one + 50 singles, ICC .3", [50, *[1] * 50], 0.3),
)


def false_calls(pairs: Iterator[Pair], names: Sequence[str] = ()) -> tuple[float, float, float]:
    """Shares of pairs with a verdict, with one if clusters are not told, and with a suspicion."""
    count = calls = alone = look = 0
    for count, pair in enumerate(pairs, 1):
        decision = verdicts(pair, count, names)
        calls += called(decision)
        look += any(row.look for row in decision.rows)
        alone += called(verdicts(pair._replace(clusters=np.arange(len(pair.a))), count, names))
    return calls / count, alone / count, look / count


def print_false_calls(demo: Configurations | None, simulations: int, seed: int) -> bool:
    rows, kept = [], True
    for n in SIZES if demo else ():
        assert demo is not None
        rng = np.random.default_rng([seed, n])
        pairs = (Pair(*drawn(demo, n, 0.0, rng), np.arange(n)) for _ in range(simulations))
        calls, _, look = false_calls(pairs, demo.names)
        rows.append([f"demo, swapped .1, n = {n}", f"{calls:.3f}", "–", f"{look:.3f}", "0.05"])
        kept &= calls <= 0.05
    for shape in SHAPES:
        rng = np.random.default_rng([seed, len(shape.sizes)])
        calls, alone, look = false_calls(shape.pair(5, rng) for _ in range(simulations))
        rows.append([shape.name, f"{calls:.3f}", f"{alone:.3f}", f"{look:.3f}", "0.06"])
        kept &= calls <= 0.06
    print(f"\nFalse better or worse, any of five metrics ({simulations} pairs of the same bot)")
    print_table(("pairs", "called", "clusters not told", "suspected", "at most"), rows)
    return kept


def print_skewed(simulations: int, seed: int) -> bool:
    """Times of the same lognormal distribution, compared as ratios."""
    rows, kept = [], True
    for n in (10, 30, 90):
        rng = np.random.default_rng([seed, n])
        calls = 0
        for simulation in range(simulations):
            a, b = rng.lognormal(5, 1, (2, n, 1))
            pair = Pair(a, b, np.arange(n))
            calls += called(verdicts(pair, simulation, ("pipeline.latency_ms",)))
        rows.append([str(n), f"{calls / simulations:.3f}", "0.06"])
        kept &= calls / simulations <= 0.06
    print(f"\nFalse verdicts on equal lognormal times ({simulations} pairs)")
    print_table(("n", "called", "at most"), rows)
    return kept


# EVALSIG


THEIRS = """
import json, sys, time
import numpy as np
from evalsig.inference.cluster_bootstrap import cluster_bootstrap_ci
from evalsig.inference.paired import paired_permutation_test
found = []
for line in sys.stdin:
    a, b, clusters = (np.array(part) for part in json.loads(line))
    begin = time.process_time()
    told = cluster_bootstrap_ci(a, b, clusters, rng=0).p_value
    middle = time.process_time()
    alone = paired_permutation_test(a, b, rng=0).p_value if len(a) < 1e4 else None
    end = time.process_time()
    found.append([float(told), alone, middle - begin, end - middle])
print(json.dumps(found))
"""


def evalsig(python: Path, pairs: Sequence[Pair]) -> list[list[Any]]:
    """What EVALSIG says of the first metric: p told of clusters, p without, CPU seconds of both."""
    lines = "\n".join(
        json.dumps([pair.a[:, 0].tolist(), pair.b[:, 0].tolist(), pair.clusters.tolist()])
        for pair in pairs
    )
    done = subprocess.run(
        [str(python), "-c", THEIRS], input=lines, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found: list[list[Any]] = json.loads(done.stdout)
    return found


def print_evalsig(python: Path, simulations: int, large: int, seed: int) -> None:
    print(f"\nBeside EVALSIG 0.1.2: false calls of one metric ({simulations} pairs)")
    if not python.exists():
        print("not installed: pip install evalsig==0.1.2 elsewhere, and name its Python: --evalsig")
        return
    rows = []
    for shape in SHAPES:
        rng = np.random.default_rng([seed, len(shape.sizes)])
        pairs = [shape.pair(1, rng) for _ in range(simulations)]
        ours = sum(called(verdicts(pair, at)) for at, pair in enumerate(pairs))
        theirs = evalsig(python, pairs)
        told, alone = (sum(found[at] < 0.05 for found in theirs) for at in (0, 1))
        shares = [f"{calls / simulations:.3f}" for calls in (ours, told, alone)]
        rows.append([shape.name, *shares])
    print_table(("pairs", "ours", "EVALSIG told of clusters", "EVALSIG not told"), rows)
    pair = Shape("", [10] * (large // 10), 0.3).pair(1, np.random.default_rng(seed))
    begin = time.process_time()
    verdicts(pair, 0)
    ours_cpu = time.process_time() - begin
    print(f"\n{large:,} pairs in {large // 10:,} clusters, CPU s of the test alone")
    print_table(("ours", "EVALSIG"), [[f"{ours_cpu:.2f}", f"{evalsig(python, [pair])[0][2]:.1f}"]])


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=ASKED, help="where the demo's runs are kept")
    parser.add_argument("--evalsig", type=Path, default=EVALSIG, help="a Python that has EVALSIG")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this table")
    parser.add_argument("--tiny", action="store_true", help="made-up scores, few simulations")
    options = parser.parse_args(words)
    parts = options.part or PARTS
    simulations = 4 if options.tiny else options.simulations
    kept = True
    if "power" in parts:
        kept &= print_power(simulations, options.seed)
    if "false" in parts:
        names = primary_names()
        if options.tiny:
            demo = made_up(names[:3], np.random.default_rng(0))
        else:
            options.cache.mkdir(parents=True, exist_ok=True)
            demo = of_the_demo(options.cache, names)
        kept &= print_false_calls(demo, simulations, options.seed)
    if "skewed" in parts:
        kept &= print_skewed(simulations, options.seed)
    if "evalsig" in parts:
        large = 1000 if options.tiny else 100_000
        print_evalsig(options.evalsig, min(simulations, 200), large, options.seed)
    return 0 if kept or options.tiny else 1


PARTS = ["power", "false", "skewed", "evalsig"]

if __name__ == "__main__":
    sys.exit(main())
