"""How often does the history of steady runs alert, and how soon does it find a fall?

    python bench/decisions_history.py          # about 5 minutes
    python bench/decisions_history.py --tiny   # only to see that it runs; the figures mean nothing

Four parts, from the rule ``shift`` of track_metrics.py itself: means that vary by chance, steps
and drifts of them, long lines and runs that resemble each other, and 0/1 metrics in which few cases
fail. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measuring import SCRIPTS, print_table

sys.path.insert(0, str(SCRIPTS))

import numpy as np
from numpy.typing import NDArray

from ragmetrics.stats.control import (
    ALIKE_ABOVE,
    THRESHOLD,
    LevelShift,
    controlled,
    lag_correlation,
    relative_drop,
)

Floats = NDArray[np.float64]

RUNS, MEAN = 30, 0.7
BEGINS = 14
"""The place, from 0, of the run that a step begins in: the 15th."""

SPREADS = (0.012, 0.02, 0.04)
SIZES = (30, 90, 300)
FAMILY = 5


def first(shifts: Sequence[LevelShift]) -> LevelShift | None:
    """The first change for the worse."""
    return next((shift for shift in shifts if not shift.better), None)


def watched(values: Floats) -> LevelShift | None:
    _, shifts = controlled(values.tolist(), higher_is_better=True, threshold=THRESHOLD)
    return first(shifts)


def percent(flags: Sequence[bool]) -> str:
    return f"{100 * float(np.mean(flags)):.1f} %"


def steady(histories: int) -> None:
    """Histories without any change: how many alert."""
    rows = []
    for spread in SPREADS:
        rng = np.random.default_rng([13, int(1000 * spread)])
        means = MEAN + spread * rng.standard_normal((histories, RUNS))
        alerts = [watched(row) is not None for row in means]
        whole = alerts[: len(alerts) // FAMILY * FAMILY]
        fives = np.array(whole).reshape(-1, FAMILY).any(axis=1)
        ten = [
            any(
                relative_drop(float(np.median(row[:place])), row[place], True) > 0.1
                for place in range(1, RUNS)
            )
            for row in means
        ]
        rows.append([spread, *map(percent, (alerts, fives.tolist(), ten))])
    print(f"\n{histories:,} steady histories of {RUNS} runs, mean {MEAN}: share that alerts")
    print_table(
        ("spread", "a metric", "any of 5", "--drop 10 alone"),
        rows,
    )


def falls(histories: int) -> None:
    """Steps and drifts: how many are found in time, and is the run named where they began."""
    rows = []
    changes: list[tuple[str, float, Floats, int]] = [
        ("-5 points", 0.02, -0.05 * (np.arange(RUNS) >= BEGINS), 5),
        ("-7 points", 0.02, -0.07 * (np.arange(RUNS) >= BEGINS), 3),
        ("-5 points", 0.012, -0.05 * (np.arange(RUNS) >= BEGINS), 3),
        ("-10 points", 0.04, -0.10 * (np.arange(RUNS) >= BEGINS), 5),
        ("-0.15 points a run", 0.02, -0.0015 * np.arange(40), 40),
    ]
    for number, (title, spread, change, within) in enumerate(changes):
        rng = np.random.default_rng([14, number])
        means = MEAN + spread * rng.standard_normal((histories, len(change))) + change
        shifts = [watched(row) for row in means]
        begins = BEGINS if within < 40 else 0
        timely = [s for s in shifts if s and begins <= s.found < begins + within]
        cells = [f"{100 * len(timely) / len(means):.1f} %", "", ""]
        if begins:
            near = [abs(shift.began - begins) for shift in timely]
            cells[1:] = [percent([d <= 2 for d in near]), percent([d == 0 for d in near])]
        rows.append([title, spread, within, *cells])
    print(
        f"\nA fall at run {BEGINS + 1}, or a drift over 40 runs: found within so many runs, and of"
    )
    print("those found how many name the run within two runs, and exactly")
    print_table(
        ("fall", "spread", "within", "found", "+-2", "exact"),
        rows,
    )


LONG = 90


def long_lines(histories: int) -> None:
    """Histories of 90 runs without a change, falls early and late, and runs that resemble each
    other: each run keeps half of how far the one before it was from the mean."""
    many, rows = histories // 4, []
    for spread in SPREADS:
        rng = np.random.default_rng([17, int(1000 * spread)])
        found = [watched(row) for row in MEAN + spread * rng.standard_normal((many, LONG))]
        rows.append([spread, percent([shift is not None for shift in found])])
    print(f"\n{many:,} steady histories of {LONG} runs: share that alerts (at most 6 %)")
    print_table(("spread", "share"), rows)
    rows = []
    for begins in (BEGINS, 59):
        rng = np.random.default_rng([18, begins])
        means = MEAN + 0.02 * rng.standard_normal((many, begins + 6))
        means[:, begins:] -= 0.05
        found = [watched(row) for row in means]
        quiet = [shift for shift in found if shift is None or shift.found >= begins]
        soon = [
            percent([s is not None and s.found < begins + within for s in quiet])
            for within in (5, 6)
        ]
        rows.append([begins + 1, f"{100 * (1 - len(quiet) / many):.1f} %", *soon])
    print("\nA fall by 5 points, spread 0.02: found in so many runs (85 % within 5)")
    print_table(("begins at run", "an alert before", "the first 5", "the first 6"), rows)
    rows = []
    for runs in (20, RUNS, LONG):
        rng = np.random.default_rng([19, runs])
        steps = rng.standard_normal((many, runs))
        alike = steps.copy()
        for at in range(1, runs):
            alike[:, at] = 0.5 * alike[:, at - 1] + np.sqrt(0.75) * steps[:, at]
        cells = []
        for own in (alike, steps):
            means = MEAN + 0.02 * own
            marked = [(lag_correlation(row.tolist()) or 0.0) > ALIKE_ABOVE for row in means]
            cells += [percent(marked), percent([watched(row) is not None for row in means])]
        rows.append([runs, *cells])
    print("\nRuns that resemble each other (correlation .5), and runs that do not")
    print_table(("runs", "marked (half)", "alert", "independent: marked", "alert"), rows)


def rare(histories: int) -> None:
    """0/1 metrics in which a case fails by chance: what the least spread of one case is for."""
    rows = []
    for cases in SIZES:
        for share in (0.999, 0.995, 0.99, 0.98, 0.95, 0.9):
            rng = np.random.default_rng([16, cases, int(1000 * share)])
            means = rng.binomial(cases, share, (histories // 2, RUNS)) / cases
            least = [1 / cases] * RUNS
            with_least = [
                first(controlled(row, higher_is_better=True, spreads=least)[1]) is not None
                for row in means.tolist()
            ]
            without = [watched(row) is not None for row in means]
            rows.append([cases, share, percent(with_least), percent(without)])
    print(f"\n{histories // 2:,} steady histories of a 0/1 metric: share that alerts")
    print_table(("cases", "mean", "s at least 1/n", "without"), rows)


def run(*, tiny: bool = False) -> None:
    """Print all tables."""
    histories = 20 if tiny else 4000
    for part in (steady, falls, long_lines, rare):
        part(histories)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="smallest sizes")
    run(tiny=parser.parse_args().tiny)


if __name__ == "__main__":
    main()
