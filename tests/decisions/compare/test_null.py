"""No difference is called where there is none, and a true one is found as often as --power says."""

from __future__ import annotations

import gzip
import json
import os
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as peer

from decisions.compare import CompareOptions, compare
from ragmetrics.stats.significance import paired_test

Runs = Any
DATA = os.environ.get("RAG_EVAL_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="RAG_EVAL_DATA names no folder of real outputs")
CASES = 40
FAMILY = ("recall@5", "ndcg@5", "recall_any@5")


def asked(seed: int, drop: float = 0.0) -> dict[str, list[float | None]]:
    """One made-up system asked once: each case has its own chance to go well, less ``drop``."""
    easy = np.random.default_rng(0).random(CASES)
    draw = np.random.default_rng(seed)
    found: Any = draw.random((3, CASES)) < easy - drop
    return {
        "recall@5": [float(v) for v in found.mean(axis=0)],
        "ndcg@5": [float(v) for v in found[:2].mean(axis=0)],
        "recall_any@5": [float(v) for v in found.any(axis=0)],
    }


def calls(runs: Runs, simulations: int, drop: float = 0.0) -> int:
    """In how many comparisons of two seeds any of the family gets a verdict."""
    wanted = CompareOptions(metrics=FAMILY, resamples=1000)
    found = 0
    for seed in range(simulations):
        base = runs.make("base", asked(2 * seed))
        new = runs.make("new", asked(2 * seed + 1, drop))
        rows = compare(base, new, wanted).rows
        found += any(row.verdict in ("better", "worse") for row in rows)
    return found


def test_a_system_against_itself(runs: Runs) -> None:
    """200 comparisons, Holm over three metrics: 5 % are 10; chance adds up to 4 * 3.1."""
    assert calls(runs, 200) <= 10 + 4 * sqrt(200 * 0.05 * 0.95)


def test_a_system_that_broke(runs: Runs) -> None:
    """The same test sees a loss of .4 nearly always: it is not blind."""
    assert calls(runs, 20, drop=0.4) >= 18


def per_query(data: Path, measure: str) -> dict[str, list[float]]:
    """Six TREC systems on the same 100 topics."""
    with gzip.open(data / "trec_robust03" / "reference.json.gz", "rt") as file:
        raw = json.load(file)
    return {
        name: [parts["depth100"]["per_query"][topic][measure] for topic in sorted(topics)]
        for name, parts in raw.items()
        if (topics := parts["depth100"]["per_query"])
    }


@needs_data
@pytest.mark.parametrize("measure", ["P_10", "map"])
def test_real_systems_get_scipys_numbers(measure: str) -> None:
    values = per_query(Path(DATA or ""), measure)
    base = np.array(values.pop("uic0301"))
    for name, other in values.items():
        new = np.array(other)
        mine = paired_test(base, new, name=name)
        p = peer.permutation_test(
            (new - base,), np.mean, permutation_type="samples", n_resamples=9999, rng=1
        ).pvalue
        assert mine.p == pytest.approx(p, abs=6.5 * sqrt(p * (1 - p) / 10_000) + 2e-4)
        theirs = peer.bootstrap(
            (new - base,), np.mean, n_resamples=10_000, method="percentile", rng=1
        ).confidence_interval
        assert mine.interval == pytest.approx(tuple(theirs), abs=0.19 * mine.sd / 10)


@needs_data
def test_a_real_system_against_itself() -> None:
    """The topics of one system in two halves by seed: 300 simulations, 5 % are 15."""
    values = np.array(per_query(Path(DATA or ""), "map")["uic0301"])
    found = 0
    for seed in range(300):
        order = np.random.default_rng(seed).permutation(values)
        found += paired_test(order[:50], order[50:], seed=seed).p < 0.05
    assert found <= 15 + 4 * sqrt(300 * 0.05 * 0.95)
