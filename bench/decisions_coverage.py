"""Do 95 % intervals of a mean cover it in 95 %? Simulated, beside t, percentile bootstrap and BCa.

    python bench/decisions_coverage.py            # 1,000 simulations a row, 5,000 up to 100 cases
    python bench/decisions_coverage.py --tiny     # seconds; the figures mean nothing

A row a shape and size: the share of intervals that hold the true mean, and in brackets their
median width. The peers see the first ``--peers`` simulations with 1,000 resamples each; where cases
come in clusters, t is over clusters, the percentile bootstrap draws whole clusters, and BCa sees
the cases alone. Marked: the share of our intervals that carry a mark. Ends with 1 when a row
stays below what it must reach. The seed is fixed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "eval/scripts"))

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from ragmetrics.stats.intervals import ALONE, MeanOfGroup, means_of_groups

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
RESAMPLES = 1_000
SIZES = (10, 30, 100, 1000)
SMALL = 100
"""Cases up to which five times as many simulations are made: they cost nothing."""


class Shape(NamedTuple):
    """``draw``: the scores of n cases; ``mean``: the true one. ``high`` None: no upper bound.

    ``clusters``: cases of each cluster, when they are not by themselves. ``least``: the coverage
    that must be reached, from ``least_from`` cases on.
    """

    name: str
    draw: Draw
    mean: float
    high: float | None = 1.0
    sizes: tuple[int, ...] = SIZES
    clusters: tuple[int, ...] = ()
    least: float = 0.92
    least_from: int = 0


def of_values(values: Sequence[float], shares: Sequence[float]) -> tuple[Draw, float]:
    """Scores with few values, and their mean."""
    chosen = np.array(values)

    def draw(rng: np.random.Generator, n: int) -> Floats:
        return chosen[rng.choice(len(chosen), n, p=shares)]

    return draw, float(np.dot(values, shares))


def yes_or_no(p: float) -> Draw:
    return lambda rng, n: (rng.random(n) < p).astype(float)


def in_clusters(p: float, icc: float, sizes: Sequence[int]) -> Draw:
    """0 or 1 with mean ``p``; the cases of a cluster share a chance of their own."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        chances = rng.beta(p * (1 - icc) / icc, (1 - p) * (1 - icc) / icc, len(sizes))
        return (rng.random(n) < np.repeat(chances, sizes)).astype(float)

    return draw


def shapes() -> list[Shape]:
    """Every row of the table."""
    rows = [Shape(f"0/1, p {p}", yes_or_no(p), p) for p in (0.5, 0.7, 0.8, 0.9, 0.95)]
    rows.append(Shape("0/1, p 0.99", yes_or_no(0.99), 0.99, least=0.90))
    ranks = of_values([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 0], [0.45, 0.2, 0.1, 0.05, 0.05, 0.15])
    rows.append(Shape("MRR-like", *ranks))
    rows.append(Shape("beta(.5, .5)", lambda rng, n: rng.beta(0.5, 0.5, n), 0.5))
    rows.append(Shape("89 % ones", *of_values([1, 0.5, 1 / 3, 0], [0.89, 0.05, 0.03, 0.03])))
    rows.append(Shape("beta(20, 1)", lambda rng, n: rng.beta(20, 1, n), 20 / 21))
    for p, icc, sizes in (
        (0.5, 0.3, (10,) * 30),
        (0.8, 0.3, (10,) * 30),
        (0.5, 0.3, (3,) * 30),
        (0.8, 0.3, (3,) * 30),
        (0.5, 0.5, (9,) * 10),
        (0.8, 0.5, (9,) * 10),
        (0.5, 0.3, (50, *(1,) * 50)),
        (0.8, 0.3, (50, *(1,) * 50)),
    ):
        large = f"{sum(sizes)} in {len(sizes)}" if sizes[-1] > 1 else "50 in 1, 50 alone"
        name = f"0/1, p {p}, {large}, ICC {icc}"
        draw = in_clusters(p, icc, sizes)
        rows.append(Shape(name, draw, p, sizes=(sum(sizes),), clusters=sizes))
    poisson = Shape("Poisson(.2)", lambda rng, n: rng.poisson(0.2, n).astype(float), 0.2, None)
    rows.append(poisson)
    mostly_zero = Shape(
        "90 % zero, else lognormal",
        lambda rng, n: np.where(rng.random(n) < 0.1, rng.lognormal(0, 1, n), 0.0),
        0.1 * float(np.exp(0.5)),
        None,
        (10, 30, 100, 300, 1000),
        least=0.90,
        least_from=300,
    )
    lognormal = Shape(
        "lognormal(0, .5)",
        lambda rng, n: rng.lognormal(0, 0.5, n),
        float(np.exp(0.125)),
        None,
    )
    return [*rows, mostly_zero, lognormal]


def ours(scores: Floats, numbers: NDArray[np.int64], high: float | None) -> list[MeanOfGroup]:
    """The intervals of all simulations (a row of ``scores`` each) at once."""
    simulations, n = scores.shape
    return means_of_groups(
        scores.ravel(),
        np.ones(simulations * n, dtype=np.int64),
        np.repeat(np.arange(simulations), n),
        np.tile(numbers, simulations),
        0.0,
        high,
    )


def by_t(scores: Floats, sizes: Sequence[int]) -> tuple[float, float]:
    """Student's t; over the deviations of clusters where there are any."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    sums, mean = np.add.reduceat(scores - scores.mean(), starts), scores.mean()
    k = len(sizes)
    error = np.sqrt((sums**2).sum() * k / (k - 1)) / len(scores)
    half = float(student.ppf(0.975, k - 1)) * error
    return float(mean - half), float(mean + half)


def resampled(scores: Floats, sizes: Sequence[int], rng: np.random.Generator) -> Floats:
    """Means of resamples of whole clusters."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    sums, counts = np.add.reduceat(scores, starts), np.array(sizes)
    picks = rng.integers(0, len(sizes), (RESAMPLES, len(sizes)))
    means: Floats = sums[picks].sum(axis=1) / counts[picks].sum(axis=1)
    return means


def by_bca(scores: Floats, means: Floats) -> tuple[float, float]:
    """Bias-corrected and accelerated (Efron 1987); a point where no score differs."""
    mean = scores.mean()
    below = ((means < mean).mean() + (means <= mean).mean()) / 2
    deviations = scores - mean
    spread = (deviations**2).sum()
    if spread == 0 or not 0 < below < 1:
        return float(means.min()), float(means.max())
    bias = norm.ppf(below)
    acceleration = (deviations**3).sum() / (6 * spread**1.5)
    ends = []
    for quantile in norm.ppf([0.025, 0.975]):
        shifted = bias + quantile
        share = norm.cdf(bias + shifted / (1 - acceleration * shifted))
        ends.append(float(np.quantile(means, share)))
    return ends[0], ends[1]


def cell(intervals: Sequence[tuple[float, float]], mean: float) -> str:
    """Coverage and median width, such as ``.951 (.212)``."""
    share = np.mean([low <= mean <= high for low, high in intervals])
    width = np.median([high - low for low, high in intervals])
    return f"{share:.3f} ({width:.3f})"


def row(shape: Shape, n: int, simulations: int, peers: int, seed: int) -> tuple[list[str], bool]:
    """The cells of a row, and whether the coverage is what it must be."""
    rng = np.random.default_rng([seed, n, *shape.name.encode()])
    simulations *= 5 if n <= SMALL else 1
    scores = np.stack([shape.draw(rng, n) for _ in range(simulations)])
    sizes = shape.clusters or (1,) * n
    numbers = np.repeat(np.arange(1, len(sizes) + 1), sizes) if shape.clusters else [ALONE] * n
    found = [each.interval for each in ours(scores, np.array(numbers), shape.high)]
    ends = [(each.low or 0.0, each.high or 0.0) for each in found]
    coverage = float(np.mean([low <= shape.mean <= high for low, high in ends]))
    enough = n < shape.least_from or coverage >= shape.least
    others: dict[str, list[tuple[float, float]]] = {"t": [], "percentile": [], "BCa": []}
    for sample in scores[:peers]:
        means = resampled(sample, sizes, rng)
        others["t"].append(by_t(sample, sizes))
        low, high = np.quantile(means, [0.025, 0.975])
        others["percentile"].append((float(low), float(high)))
        alone = means if not shape.clusters else resampled(sample, (1,) * n, rng)
        others["BCa"].append(by_bca(sample, alone))
    marked = float(np.mean([bool(each.mark) for each in found]))
    cells = [shape.name, str(n), cell(ends, shape.mean) + ("" if enough else " TOO LOW")]
    return [
        *cells,
        f"{marked:.2f}",
        *(cell(other, shape.mean) for other in others.values()),
    ], enough


HEAD = ("scores", "n", "ours", "marked", "t", "percentile bootstrap", "BCa")


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 1 when a row stays below what it must reach."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_AS_WRITTEN)
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--peers", type=int, default=300, help="simulations that the peers see")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiny", action="store_true", help="only to see that it runs")
    options = parser.parse_args(words)
    simulations, peers = (20, 3) if options.tiny else (options.simulations, options.peers)
    print("\n## Coverage of 95 % intervals of a mean (median width)\n")
    print("| " + " | ".join(HEAD) + " |")
    print("|---|" + "---:|" * (len(HEAD) - 1), flush=True)
    everything = True
    for shape in shapes():
        for n in shape.sizes:
            cells, enough = row(shape, n, simulations, peers, options.seed)
            everything &= enough
            print("| " + " | ".join(cells) + " |", flush=True)
    return 0 if everything or options.tiny else 1


_AS_WRITTEN: Any = argparse.RawDescriptionHelpFormatter

if __name__ == "__main__":
    sys.exit(main())
