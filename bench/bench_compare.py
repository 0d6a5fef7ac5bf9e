"""Significance of paired differences beside scipy and ranx, and compare_runs.py as a whole process.

    python bench/bench_compare.py --cases 1000,100000 --rounds 3

Each contestant is a process of its own, in turn with the others; what is timed is the test alone,
after a warm-up with few resamples. Values of two kinds: few (reciprocal ranks at 10), continuous.
At 100,000 cases the peers draw fewer resamples, and their time is scaled up (it grows with their
number); the table says where.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from make_retrieval_data import make_case, place_hits
from measuring import SCRIPTS, Measured, in_turn, measure, median, print_table, say

sys.path.insert(0, str(SCRIPTS))

RESAMPLES = 10_000
FEWER = 300
"""Resamples of a peer where 10,000 would take minutes."""
LARGE = 20_000
"""Cases from which they do."""
HEAD = ("test", "CPU s", "drawn", "peak MB", "p", "95 % interval")
METRICS = 38
"""Metrics of a case in the whole runs: those of score_retrieval.py with its default cut-offs."""


def values(kind: str, cases: int) -> tuple[Any, Any]:
    """Two systems' values of the same cases, about two standard errors apart."""
    import numpy as np

    rng = np.random.default_rng(0)
    shift = 2 / cases**0.5
    if kind == "few":
        ranks = np.array([0.0, *(1 / rank for rank in range(1, 11))])
        base = rng.choice(ranks, cases)
        new = np.where(rng.random(cases) < 0.5, base, rng.choice(ranks, cases))
        return base, np.where(rng.random(cases) < shift / 2, 1.0, new)
    base = rng.normal(0.6, 0.2, cases)
    return base, base + rng.normal(shift / 10, 0.1, cases)


def ours(base: Any, new: Any, resamples: int) -> dict[str, Any]:
    """compare_runs.py's test of one metric, and its interval."""
    from decisions.change import measure, plain_p

    effect, evidence = measure(base, new, None)
    p, _ = plain_p(effect, evidence, None, binary=False, name="", seed=0)
    return {"p": p, "interval": effect.interval}


def scipy_permutation(base: Any, new: Any, resamples: int) -> dict[str, Any]:
    import numpy as np
    from scipy.stats import permutation_test

    done = permutation_test(
        (new - base,),
        np.mean,
        permutation_type="samples",
        n_resamples=resamples,
        vectorized=True,
        batch=100 if len(base) > LARGE else None,
        rng=np.random.default_rng(1),
    )
    return {"p": float(done.pvalue)}


def scipy_bootstrap(base: Any, new: Any, resamples: int) -> dict[str, Any]:
    import numpy as np
    from scipy.stats import bootstrap

    done = bootstrap(
        (new - base,),
        np.mean,
        n_resamples=resamples,
        method="percentile",
        vectorized=True,
        batch=100 if len(base) > LARGE else None,
        rng=np.random.default_rng(1),
    )
    return {"interval": [float(end) for end in done.confidence_interval]}


def ranx_permutation(base: Any, new: Any, resamples: int) -> dict[str, Any]:
    from ranx.statistical_tests import fisher_randomization_test

    return {"p": float(fisher_randomization_test(new, base, resamples, 0.05, 1)[0])}


CONTESTANTS: dict[str, Callable[[Any, Any, int], dict[str, Any]]] = {
    "compare_runs: test and interval": ours,
    "scipy permutation_test": scipy_permutation,
    "scipy bootstrap (percentile)": scipy_bootstrap,
    "ranx fisher_randomization_test": ranx_permutation,
}


def contest(name: str, kind: str, cases: int, resamples: int) -> None:
    """The child: one test, timed; JSON on stdout."""
    base, new = values(kind, cases)
    run = CONTESTANTS[name]
    run(base[:100], new[:100], 200)
    begin = time.process_time()
    found = run(base, new, resamples)
    print(json.dumps(found | {"cpu": time.process_time() - begin}))


def bench_tests(kind: str, cases: int, names: list[str], rounds: int) -> None:
    drawn = {
        name: FEWER if cases > LARGE and not name.startswith("compare_runs") else RESAMPLES
        for name in names
    }
    one = [sys.executable, __file__, "--kind", kind, "--cases", str(cases), "--contestant"]
    runs: dict[str, Callable[[], Measured]] = {
        name: partial(measure, [*one, name, "--resamples", str(drawn[name])]) for name in names
    }
    rows = []
    for name, measured in in_turn(runs, rounds).items():
        found = [json.loads(run.output) for run in measured]
        cpu = statistics.median(one["cpu"] for one in found) * RESAMPLES / drawn[name]
        interval = found[0].get("interval")
        rows.append(
            [
                name,
                f"{cpu:.3f}" if drawn[name] == RESAMPLES else f"{cpu:.0f} (scaled)",
                f"{drawn[name]:,}",
                f"{median(measured, 'peak_mb'):.0f}",
                f"{found[0]['p']:.4f}" if "p" in found[0] else "",
                "{:.5f} to {:.5f}".format(*interval) if interval else "",
            ]
        )
    print(f"## {cases:,} cases, {kind} values, median of {rounds}")
    print_table(HEAD, rows)


def make_run(folder: Path, cases: int, seed: int) -> None:
    """A scored run of made-up retrieval results; another seed finds other chunks."""
    import orjson

    rng, hits = random.Random(1), random.Random(seed)
    folder.mkdir(parents=True)
    eval_set = folder.parent / "set.jsonl"
    with open(eval_set, "wb") as questions, open(folder / "results.jsonl", "wb") as results:
        for number in range(cases):
            case, ids = make_case(number, rng)
            found = place_hits(case["chunk_relevance_grades"], ids, 20, hits)
            line = {"test_case_id": case["id"], "question": case["question"], "retrieved": found}
            questions.write(orjson.dumps(case) + b"\n")
            results.write(orjson.dumps({"schema": 1, "status": "ok"} | line) + b"\n")
    words = [sys.executable, SCRIPTS / "score_retrieval.py", "--run", folder, "-q", "--json"]
    measure([*words, "--eval-set", eval_set])


def bench_runs(cases: int, rounds: int) -> None:
    """Two whole runs: every metric tested; CPU and memory of the process."""
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Path(temporary) / name for name in ("base", "new")]
        for seed, folder in enumerate(folders):
            make_run(folder, cases, seed)
            say(f"made {folder.name}")
        words = [sys.executable, SCRIPTS / "compare_runs.py", *folders, "--json", "-q"]
        words += ["--eval-set", Path(temporary) / "set.jsonl"]
        runs = {
            f"compare_runs --json {' '.join(more)}".strip(): partial(measure, [*words, *more])
            for more in ((), ("--set", "flips=0"), ("--set", "flips=0", "--by", "category"))
        }
        found = in_turn(runs, rounds)
    print(f"## Two runs of {cases:,} cases, {METRICS} metrics, median of {rounds}")
    print_table(
        ("process", "CPU s", "wall s", "peak MB"),
        [
            [name, *(f"{median(measured, what):.1f}" for what in ("cpu", "wall", "peak_mb"))]
            for name, measured in found.items()
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", default="1000,100000", help="sizes (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--contestant", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--kind", default="few", help=argparse.SUPPRESS)
    parser.add_argument("--resamples", type=int, default=RESAMPLES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        contest(options.contestant, options.kind, int(options.cases), options.resamples)
        return
    names = []
    for name in CONTESTANTS:
        package = name.split()[0]
        if package in ("scipy", "ranx") and importlib.util.find_spec(package) is None:
            say(f"left out: {package} is not installed (pip install -r bench/requirements.txt)")
        else:
            names.append(name)
    for cases in map(int, options.cases.split(",")):
        for kind in ("few", "continuous"):
            bench_tests(kind, cases, names, options.rounds)
        bench_runs(cases, options.rounds)


if __name__ == "__main__":
    main()
