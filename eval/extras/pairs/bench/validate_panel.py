"""Does the corrected mean of a panel's verdicts cover what people say? A simulation.

Three judges err in a fifth of the verdicts, each by itself or in part together; the majority votes.
People label 30, 50 or 100 of 300 cases, drawn as calibrate_judge.py draws them, and the mean over
all cases is corrected as it does. Printed: the share of the 95 % intervals that cover the truth.

    nice python …/validate_panel.py [--runs 1000]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / folder) for folder in ("eval/scripts", "eval")]

from extras.pairs.votes import vote
from validation.claims import JudgedClaim
from validation.drawing import drawn_claims, label_weights
from validation.judge import corrected_mean

CASES, ERROR = 300, 0.2
TRUTHS, LABELS = (0.5, 0.8, 0.95), (30, 50, 100)
CORRELATIONS = (0.0, 0.5)


def errors(rng: np.random.Generator, correlation: float) -> np.ndarray:
    """Cases x judges: does the judge err? Each in a fifth; two of them correlate as asked: with the
    chance sqrt(correlation) a judge takes the error of a common draw."""
    common = rng.random((CASES, 1)) < ERROR
    alone = rng.random((CASES, 3)) < ERROR
    follows = rng.random((CASES, 3)) < np.sqrt(correlation)
    return np.where(follows, common, alone)


def covered(
    rng: np.random.Generator, truth: float, correlation: float, seed: int
) -> list[dict[str, tuple[bool, float]]]:
    """One panel and its labels: for each number of labels, by estimate, whether the interval covers
    the share that the cases are drawn from, and its width. The stratified mean is held to the
    share among these cases, which it is about."""
    good = rng.random(CASES) < truth
    said = good[:, None] ^ errors(rng, correlation)
    claims = []
    for number, votes in enumerate(said):
        word = vote(["supported" if v else "not_found" for v in votes])
        claims.append(
            JudgedClaim(
                f"q{number}", 0, "1", "", word or "", source=f"q{number}", split=len({*votes}) > 1
            )
        )
    rows = []
    for size in LABELS:
        chosen = drawn_claims(claims, size, seed)
        draws = {one.claim.key: one.draw for one in chosen}
        human = {key: int(good[int(key[0][1:])]) for key in draws}
        design = label_weights(claims, list(human), draws)
        found = corrected_mean(claims, human, None, design)
        row = {}
        for name in ("stratified", "ppi", "ppi_plus"):
            if (part := found[name]) is not None:
                low, high = part["ci95"]
                right = float(good.mean()) if name == "stratified" else truth
                row[name] = (low <= right <= high, high - low)
        rows.append(row)
    return rows


def main() -> None:
    """Print the coverage of every cell; exit code 1 when one is below .93."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--tiny", action="store_true", help="two runs a cell, to see that it runs")
    options = parser.parse_args()
    runs = 2 if options.tiny else options.runs
    worst = 1.0
    for correlation in CORRELATIONS:
        for truth in TRUTHS:
            cells: dict[tuple[int, str], list[tuple[bool, float]]] = {}
            for run in range(runs):
                rng = np.random.default_rng([29, run, int(100 * truth), int(10 * correlation)])
                for size, row in zip(LABELS, covered(rng, truth, correlation, run), strict=True):
                    for name, cell in row.items():
                        cells.setdefault((size, name), []).append(cell)
            for (size, name), found in cells.items():
                share = float(np.mean([hit for hit, _ in found]))
                width = float(np.mean([width for _, width in found]))
                worst = min(worst, share)
                print(
                    f"errors correlate {correlation:.1f}  truth {truth:.2f}  labels {size:3}  "
                    f"{name:10}  covers {share:.3f}  width {width:.3f}  of {len(found)}"
                )
    print(f"lowest coverage {worst:.3f}")
    raise SystemExit(worst < 0.93 and not options.tiny)


if __name__ == "__main__":
    main()
