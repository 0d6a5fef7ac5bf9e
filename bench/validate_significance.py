"""Are the paired tests of compare_runs.py sound on the outputs of real systems?

    RAG_EVAL_DATA=FOLDER python bench/validate_significance.py --simulations 1000

Two questions. Does p equal scipy's (and McNemar and Benjamini-Hochberg statsmodels', if that is
installed), as far as two sets of 10,000 draws can? How often is a difference called where there is
none: one system, its cases split into two halves by seed, the halves paired? FOLDER holds
trec_robust03, ragtruth, xstest_refusals and mtrag_human: several systems that answered the same
questions. Power and the joint test: decisions_compare.py.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

from measuring import SCRIPTS, print_table, say

sys.path.insert(0, str(SCRIPTS))

import numpy as np

from decisions import change
from decisions.effects import ALPHA
from ragmetrics.stats import means as stats_means
from ragmetrics.stats import significance

DRAWN = 10_000

Scores = dict[str, dict[str, dict[str, float]]]
"""By measure, system and case."""


class Sample(NamedTuple):
    """The values of one measure for two systems, case by case."""

    name: str
    binary: bool
    base: Any
    new: Any


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def read(data: Path) -> Scores:
    """Every measure of every set that is there."""
    found: Scores = {}

    def add(measure: str, system: str, case: str, value: float) -> None:
        found.setdefault(measure, {}).setdefault(system, {})[case] = float(value)

    with gzip.open(data / "trec_robust03" / "reference.json.gz", "rt") as file:
        for system, parts in json.load(file).items():
            for topic, values in parts["depth100"]["per_query"].items():
                for name, value in values.items():
                    add(f"trec {name}", system, topic, value)
    for row in lines(data / "ragtruth" / "data.jsonl.gz"):
        add("ragtruth hallucinated", row["system"], row["source_id"], row["hallucinated"])
    for row in lines(data / "xstest_refusals" / "data.jsonl.gz"):
        if row["refused"] is not None:
            add("xstest refused", row["system"], row["group"], row["refused"])
    for row in lines(data / "mtrag_human" / "data.jsonl.gz"):
        if row["faithfulness"] is not None:
            add("mtrag faithfulness", row["system"], row["task"], row["faithfulness"])
    return found


def samples(scores: Scores) -> Iterator[Sample]:
    """Each two systems under each measure, over the cases that both answered."""
    for measure, systems in scores.items():
        binary = set().union(*(set(v.values()) for v in systems.values())) <= {0.0, 1.0}
        for first, second in combinations(sorted(systems), 2):
            cases = sorted(systems[first].keys() & systems[second].keys())
            base, new = (np.array([systems[s][c] for c in cases]) for s in (first, second))
            yield Sample(f"{measure}: {first}, {second}", binary, base, new)


def beside_peers(found: list[Sample]) -> bool:
    """Our numbers beside scipy's and statsmodels'; False when one is off by more than chance."""
    from scipy import stats as peer

    p_off, ours, rows = [], [], []
    for place, sample in enumerate(found):
        differences = sample.new - sample.base
        mine = p_of(sample.base, sample.new, name=sample.name)
        drawn = peer.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=DRAWN - 1, rng=place
        )
        if differences.any():
            p = float(drawn.pvalue)
            p_off.append((mine - p) / (sqrt(2 * p * (1 - p) / DRAWN) + 1 / DRAWN))
        ours.append(mine)
    size = np.abs(p_off)
    rows.append(["permutation p - scipy's", len(p_off), f"{np.mean(p_off):+.2f}"])
    rows[-1] += [f"{np.std(p_off):.2f}", f"{size.max():.1f}", f"{100 * np.mean(size > 1.96):.0f} %"]
    print(
        "## Beside scipy: differences in errors of the drawing (expected spread 1, 5 % above 1.96)"
    )
    print_table(("number", "compared", "mean", "spread", "largest", "above 1.96"), rows)
    return beside_statsmodels(found, ours) and bool(size.max() < 5)


def p_of(base: Any, new: Any, *, binary: bool = False, name: str = "", seed: int = 0) -> float:
    """The p of one metric by itself, as compare_runs.py tests it."""
    effect, evidence = change.measure(base, new, None)
    return change.plain_p(effect, evidence, None, binary=binary, name=name, seed=seed)[0]


def beside_statsmodels(found: list[Sample], p: list[float]) -> bool:
    if importlib.util.find_spec("statsmodels") is None:
        say("left out: statsmodels is not installed")
        return True
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests

    binary = [sample for sample in found if sample.binary]
    off = []
    for sample in binary:
        rose = int((sample.new > sample.base).sum())
        fell = int((sample.new < sample.base).sum())
        theirs = mcnemar([[0, rose], [fell, 0]], exact=True).pvalue
        off.append(abs(significance.mcnemar(rose, fell)[0] - theirs))
    rows = [["McNemar exact", len(binary), f"{max(off):.1e}"]]
    ours = np.array(significance.benjamini_hochberg(p))
    theirs = multipletests(p, method="fdr_bh")[1]
    rows.append(["Benjamini-Hochberg", len(p), f"{np.abs(ours - theirs).max():.1e}"])
    print("## Beside statsmodels")
    print_table(("number", "compared", "largest difference"), rows)
    return all(float(row[2]) < 1e-9 for row in rows)


def null_calls(scores: Scores, simulations: int) -> None:
    """Each system against itself: its cases in two halves by seed, paired."""
    rows: list[list[Any]] = []
    for measure, systems in scores.items():
        binary = set().union(*(set(values.values()) for values in systems.values())) <= {0.0, 1.0}
        calls = [
            self_calls(np.array([cases[case] for case in sorted(cases)]), binary, simulations)
            for cases in systems.values()
        ]
        least = min(len(cases) for cases in systems.values()) // 2
        worst = f"{100 * max(calls) / simulations:.1f} %"
        rows.append([measure, len(systems), least, *share(sum(calls), simulations * len(systems))])
        rows[-1].append(worst)
        say(f"{measure}: {calls}")
    rows.append(["any of five, Holm", 1, *family_calls(scores, simulations), ""])
    print(f"## A system against itself, {simulations} simulations each: how often is p < .05?")
    head = ("measure", "systems", "n from", "called", "95 % interval", "most for one system")
    print_table(head, rows)


def self_calls(values: Any, binary: bool, simulations: int) -> int:
    """How often two random halves of one system's cases are called different."""
    half, calls = len(values) // 2, 0
    for seed in range(simulations):
        shuffled = np.random.default_rng(seed).permutation(values)
        base, new = shuffled[:half], shuffled[half : 2 * half]
        calls += p_of(base, new, binary=binary, seed=seed) < ALPHA
    return calls


def family_calls(scores: Scores, simulations: int) -> list[Any]:
    """Five measures of one system at once, corrected: any of them called?"""
    measures = [name for name in scores if name.startswith("trec ")]
    system = min(scores[measures[0]])
    topics = sorted(scores[measures[0]][system])
    table = np.array([[scores[m][system][topic] for topic in topics] for m in measures])
    half, calls = len(topics) // 2, 0
    for seed in range(simulations):
        order = np.random.default_rng(seed).permutation(len(topics))
        p = [
            p_of(row[order[:half]], row[order[half : 2 * half]], name=name, seed=seed)
            for name, row in zip(measures, table, strict=True)
        ]
        calls += len(p) * min(p) < ALPHA  # Holm calls one of them then
    return [half, *share(calls, simulations)]


def share(calls: int, simulations: int) -> list[str]:
    low, high = stats_means.wilson(calls, simulations)
    return [f"{100 * calls / simulations:.1f} %", f"{100 * low:.1f} to {100 * high:.1f} %"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("RAG_EVAL_DATA"))
    parser.add_argument("--simulations", type=int, default=1000, help="(%(default)s)")
    options = parser.parse_args()
    if options.data is None or not Path(options.data).is_dir():
        sys.exit("Where are the sets? Give --data FOLDER or set RAG_EVAL_DATA.")
    scores = read(options.data)
    found = list(samples(scores))
    say(f"{len(found)} pairs of systems under {len(scores)} measures")
    sound = beside_peers(found)
    null_calls(scores, options.simulations)
    if not sound:
        sys.exit("A number is off by more than chance: see the tables.")


if __name__ == "__main__":
    main()
