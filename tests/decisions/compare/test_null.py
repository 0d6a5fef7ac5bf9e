"""No difference is called where there is none, and a true one is found."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from decisions.joint import PrimaryTable, decide

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
