"""No difference is called where there is none, and a true one is found."""

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
from tests.rows import each_row

from decisions.change import measure as measured
from decisions.change import plain_p
from decisions.joint import PrimaryTable, decide, joint_p

DATA = os.environ.get("RAG_EVAL_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="RAG_EVAL_DATA names no folder of real outputs")
CASES = 40
METRICS = ("recall@5", "ndcg@5", "recall_any@5")


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


def calls(simulations: int, drop: float = 0.0) -> int:
    """In how many comparisons of two seeds any of the metrics gets a verdict."""
    names = tuple(f"retrieval.{name}" for name in METRICS)
    found = 0
    for seed in range(simulations):
        a, b = (
            np.array([scores[name] for name in METRICS], dtype=float).T
            for scores in (asked(2 * seed), asked(2 * seed + 1, drop))
        )
        ids = [str(number) for number in range(CASES)]
        rows = decide(PrimaryTable(names, ids, np.arange(CASES), a, b), seed=seed).rows
        found += any(row.verdict in ("better", "worse") for row in rows)
    return found


def test_a_system_against_itself() -> None:
    """100 comparisons in one joint test of three metrics: 5 % are 5; chance adds up to 4 * 2.2."""
    assert calls(100) <= 5 + 4 * sqrt(100 * 0.05 * 0.95)


def test_a_system_that_broke() -> None:
    """The same test sees a loss of .4 nearly always: it is not blind."""
    assert calls(20, drop=0.4) >= 18


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
@each_row("measure", ["P_10", "map"])
def test_real_systems_get_scipys_numbers(measure: str) -> None:
    values = per_query(Path(DATA or ""), measure)
    base = np.array(values.pop("uic0301"))
    for name, other in values.items():
        new = np.array(other)
        effect, evidence = measured(base, new, None)
        mine, test = plain_p(effect, evidence, None, binary=False, name=name, seed=0)
        p = peer.permutation_test(
            (new - base,), np.mean, permutation_type="samples", n_resamples=9999, rng=1
        ).pvalue
        assert test == "sign-flip"
        assert mine == pytest.approx(p, abs=6.5 * sqrt(p * (1 - p) / 10_000) + 2e-4)
        # half of the ties, and no more than them, separates the joint test of one metric
        joint = joint_p((new - base)[:, None])[0]
        assert joint == pytest.approx(p, abs=6.5 * sqrt(p * (1 - p) / 10_000) + 3e-4)


@needs_data
def test_a_real_system_against_itself() -> None:
    """The topics of one system in two halves by seed: 300 simulations, 5 % are 15."""
    values = np.array(per_query(Path(DATA or ""), "map")["uic0301"])
    found = 0
    for seed in range(300):
        order = np.random.default_rng(seed).permutation(values)
        found += joint_p((order[50:] - order[:50])[:, None], seed=seed, draws=2000)[0] < 0.05
    assert found <= 15 + 4 * sqrt(300 * 0.05 * 0.95)
