"""Do the verdicts on pairs of answers keep their level, and what do they find?

    python …/decisions_pairs.py          # about ten minutes
    python …/decisions_pairs.py --tiny   # only to see that it runs; the figures mean nothing

Three tables from deciding.py. False verdicts of a judge that takes the first answer in 80 %
of its calls, on pairs without a difference: cases by themselves, and in documents whose cases
share a leaning. Power at 62 : 38 of the decided pairs. The test of length at 40 labels. Two judges
take the first place in 80 %: ``calls`` decides each call by itself (so 64 to 68 % of the pairs go
by the order), ``pairs`` looks at no answer in 60 % of the pairs and is the same in both orders in
the others. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "eval/scripts", "eval")]

import numpy as np
from measuring import print_table
from numpy.typing import NDArray

from extras.pairs.deciding import decide_pairs, length_bias

Floats = NDArray[np.float64]

WON = 0.62
"""Share of the decided pairs that the better run wins."""

FIRST = 0.8


def by_calls(n: int, first: float, shift: Floats | float, rng: np.random.Generator) -> Floats:
    """Outcome of each pair; both orders also say which place won: first, first is 2."""
    leaning = np.log(first / (1 - first))
    one = rng.random(n) < 1 / (1 + np.exp(-(leaning + shift)))  # the run's answer, put first
    two = rng.random(n) < 1 / (1 + np.exp(-(-leaning + shift)))  # the run's answer, put second
    return np.where(one & two, 1.0, np.where(~one & ~two, -1.0, np.where(one, 2.0, 3.0)))


def by_pairs(n: int, first: float, shift: Floats | float, rng: np.random.Generator) -> Floats:
    """A judge that looks in 2 (1 - first) of the pairs, and then says the same in both orders."""
    looks = rng.random(n) < 2 * (1 - first)
    won = rng.random(n) < 1 / (1 + np.exp(-shift))
    return np.where(looks, np.where(won, 1.0, -1.0), 2.0)


def shift_of(model: str) -> float:
    """What makes the better run win 62 of 100 decided pairs: of two calls each adds it once."""
    odds = float(np.log(WON / (1 - WON)))
    return odds / 2 if model == "calls" else odds


MODELS = {"calls": by_calls, "pairs": by_pairs}


def verdicts(model: str, n: int, first: float, better: bool, size: int, icc: float, draws: int,
             seed: int) -> tuple[float, float]:  # fmt: skip
    """Share of simulations with a verdict (with ``better``: the right one), and the mean share of
    pairs that the order decided. ``size``: cases of a document; ``icc``: how far its cases lean
    together, at 0 by no more than chance."""
    rng = np.random.default_rng(seed)
    called, order = 0, 0.0
    for _ in range(draws):
        documents = np.repeat(np.arange(n // size), size) if size > 1 else None
        shift: Floats | float = shift_of(model) if better else 0.0
        if documents is not None and icc:
            spread = np.sqrt(icc / (1 - icc)) * np.pi / np.sqrt(3)
            shift = shift + rng.normal(0, spread, n // size)[documents]
        said = MODELS[model](n, first, shift, rng)
        outcomes = np.where(np.abs(said) == 1, said, 0.0)
        (found,) = decide_pairs([outcomes], documents)
        called += found.verdict == "better" if better else found.verdict in ("better", "worse")
        order += float((said >= 2).mean())
    return called / draws, order / draws


def flagged(longer: float, labels: int, draws: int, seed: int, both: bool = True) -> float:
    """Share of simulations in which a judge that takes the longer answer in ``longer`` of its calls
    is flagged. People take it in half of the pairs and call .3 of them equal. ``both``: asked in
    both orders; else one call a pair, of which .3 are ties, too."""
    rng = np.random.default_rng(seed)
    count = 0
    for _ in range(draws):
        size = np.where(rng.random(labels) < 0.5, 1, -1)
        people = np.where(rng.random(labels) < 0.3, 0, np.where(rng.random(labels) < 0.5, 1, -1))
        calls = np.where(rng.random((2, labels)) < longer, size, -size)
        judge = np.where(calls[0] == calls[1], calls[0], 0) if both else calls[0]
        judge = judge if both else np.where(rng.random(labels) < 0.3, 0, judge)
        count += length_bias(judge.tolist(), people.tolist(), size.tolist()).flagged
    return count / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    tiny = parser.parse_args().tiny
    draws, power_draws = (20, 20) if tiny else (2000, 1000)
    rows = []
    for model, n, size, icc in (
        ("calls", 100, 1, 0.0),
        ("calls", 300, 1, 0.0),
        ("calls", 300, 3, 0.3),
        ("calls", 300, 10, 0.3),
        ("pairs", 300, 10, 0.5),
    ):
        called, order = verdicts(model, n, FIRST, False, size, icc, draws, seed=n + size)
        rows.append((model, str(n), str(size), f"{icc:g}", f"{called:.3f}", f"{order:.2f}"))
    print(f"Verdicts on pairs without a difference, {draws} simulations")
    print_table(("judge", "cases", "a document", "icc", "false", "order decided"), rows)
    rows = []
    for model, n, first in (
        ("calls", 300, FIRST),
        ("calls", 400, FIRST),
        ("pairs", 300, FIRST),
        ("pairs", 400, FIRST),
        ("calls", 300, 0.5),
    ):
        called, order = verdicts(model, n, first, True, 1, 0.0, power_draws, seed=n)
        rows.append((model, str(n), f"{first:g}", f"{called:.3f}", f"{order:.2f}"))
    print(f"\n62 : 38 of the decided pairs found, {power_draws} simulations")
    print_table(("judge", "cases", "first", "found", "order decided"), rows)
    rows = [
        (name, f"{longer:g}", str(labels), f"{flagged(longer, labels, draws, labels, both):.3f}")
        for name, both in (("both orders", True), ("one call, ties .3", False))
        for longer, labels in ((0.9, 40), (0.5, 40), (0.5, 100))
    ]
    print(f"\nA judge that takes the longer answer, {draws} simulations")
    print_table(("judge", "longer", "labels", "flagged"), rows)


if __name__ == "__main__":
    main()
