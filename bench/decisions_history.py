"""How often does the history of steady runs alert, and how soon does it find a fall?

    python bench/decisions_history.py          # about 5 minutes
    python bench/decisions_history.py --tiny   # only to see that it runs; the figures mean nothing

Five parts, from the rules of track_metrics.py themselves: means that vary by chance, steps and
drifts of them, long lines and runs that resemble each other, whole runs with the scores of their
cases (so that the first runs are compared in pairs), and 0/1 metrics in which few cases fail. Seeds
are fixed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measuring import SCRIPTS, print_table

sys.path.insert(0, str(SCRIPTS))

import numpy as np
from numpy.typing import NDArray

from decisions.alerts import AlertRule, PointPairs, make_lines
from decisions.history import HistoryPoint, Key, MetricValue
from ragmetrics.catalogue import METRICS
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

KEYS: tuple[Key, ...] = (
    ("retrieval", "recall@5"),
    ("groundedness", "claim_support_rate"),
    ("abstention", "accuracy"),
    ("pipeline", "pass"),
    ("judged", "correctness"),
)
"""Five metrics of five sections, as primary ones are; two of them are 0/1."""


class Setting(NamedTuple):
    """How many histories are drawn of means, and of whole runs with their cases."""

    means: int = 4000
    runs: int = 400


def first(shifts: Sequence[LevelShift]) -> LevelShift | None:
    """The first change for the worse."""
    return next((shift for shift in shifts if not shift.better), None)


def watched(values: Floats) -> LevelShift | None:
    _, shifts = controlled(values.tolist(), higher_is_better=True, threshold=THRESHOLD)
    return first(shifts)


def percent(flags: Sequence[bool]) -> str:
    return f"{100 * float(np.mean(flags)):.1f} %"


def steady(setting: Setting) -> None:
    """Histories without any change: how many alert."""
    rows = []
    for spread in SPREADS:
        rng = np.random.default_rng([13, int(1000 * spread)])
        means = MEAN + spread * rng.standard_normal((setting.means, RUNS))
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
    print(f"\n{setting.means:,} steady histories of {RUNS} runs, mean {MEAN}: share that alerts")
    print_table(
        ("spread", "a metric", "any of 5", "--drop 10 alone"),
        rows,
    )


def falls(setting: Setting) -> None:
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
        means = MEAN + spread * rng.standard_normal((setting.means, len(change))) + change
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


def answers(cases: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Scores of the five metrics for two real answers to each case, cases x metrics x 2 answers."""
    right = rng.random(cases) < 0.75
    usual = np.stack(
        [
            rng.choice([0.0, 0.5, 1.0], cases, p=[0.15, 0.15, 0.7]),
            rng.beta(6, 1.5, cases).round(3),
            right * 1.0,
            (right & (rng.random(cases) < 0.7)) * 1.0,
            rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], cases, p=[0.1, 0.1, 0.2, 0.3, 0.3]),
        ],
        axis=1,
    )
    other = usual[rng.permutation(cases)]
    return usual, other


def history(cases: int, rng: np.random.Generator, fall: float, begins: int) -> list[HistoryPoint]:
    """Runs of a bot that gives another real answer to one case in ten; from run ``begins`` on a
    share ``fall`` of the cases scores 0 everywhere."""
    usual, other = answers(cases, rng)
    lost = rng.random(cases) < fall
    points = []
    for number in range(RUNS):
        scores = np.where((rng.random(cases) < 0.1)[:, None], other, usual)
        if number >= begins:
            scores = np.where(lost[:, None], 0.0, scores)
        points.append(point(number, scores))
    return points


DEFINITIONS = {
    (metric.family, metric.name.partition("@")[0]): metric.definition for metric in METRICS
}


def point(number: int, scores: Floats) -> HistoryPoint:
    values = {
        key: MetricValue(
            round(float(mean), 6),
            None,
            len(scores),
            0,
            0,
            DEFINITIONS.get((key[0], key[1].partition("@")[0]), f"{key[0]}/{key[1]}@1"),
        )
        for key, mean in zip(KEYS, scores.mean(axis=0), strict=True)
    }
    rows = {str(case): row for case, row in enumerate(scores.tolist())}
    names = tuple(map(".".join, KEYS))
    run_id = f"r{number}"
    return HistoryPoint(
        None, "", "", "", run_id, "s", len(scores), 0, values, scored=names, case_scores=rows
    )


def alerts_of(points: Sequence[HistoryPoint]) -> dict[str, LevelShift | None]:
    """The first change for the worse of each metric, as track_metrics.py finds it."""
    names = tuple(map(".".join, KEYS))
    lines = make_lines(points, KEYS, AlertRule(names), PointPairs(points, names, {}))
    return {line.name: first(line.shifts) for line in lines}


def whole_runs(setting: Setting) -> None:
    """Histories of runs with all their cases: the first runs are compared in pairs."""
    rows = []
    for cases in SIZES:
        rng = np.random.default_rng([15, cases])
        plain, kinds = [], []
        for _ in range(setting.runs):
            points = history(cases, rng, 0.0, RUNS)
            plain.append(alerts_of(points))
            kinds += [shift.kind for shift in plain[-1].values() if shift]
        early = [alerts_of(history(cases, rng, 0.1, 4)) for _ in range(setting.runs // 4)]
        late = [alerts_of(history(cases, rng, 0.1, BEGINS)) for _ in range(setting.runs // 4)]
        every = setting.runs * len(KEYS)
        rows.append(
            [
                cases,
                percent([shift is not None for found in plain for shift in found.values()]),
                f"{100 * kinds.count('pair') / every:.1f} %",
                percent([any(found.values()) for found in plain]),
                percent([_timely(found, 4, 1) for found in early]),
                percent([_timely(found, BEGINS, 5) for found in late]),
            ]
        )
    print(f"\n{setting.runs:,} histories of {RUNS} runs of a bot that answers one case in ten in")
    print("another way; at the right one case in ten is lost from the 5th or the 15th run on")
    print_table(
        (
            "cases",
            "false: a metric",
            "of it by pairs",
            "any of 5",
            "lost at 5: any, at once",
            "lost at 15: any, within 5",
        ),
        rows,
    )


LONG = 90


def long_lines(setting: Setting) -> None:
    """Histories of 90 runs without a change, falls early and late, and runs that resemble each
    other: each run keeps half of how far the one before it was from the mean."""
    many, rows = setting.means // 4, []
    for spread in SPREADS:
        rng = np.random.default_rng([17, int(1000 * spread)])
        found = [watched(row) for row in MEAN + spread * rng.standard_normal((many, LONG))]
        kinds = [shift.kind for shift in found if shift]
        cells = (kinds.count("shift") / many, kinds.count("fall") / many, len(kinds) / many)
        rows.append([spread, *(f"{100 * share:.1f} %" for share in cells)])
    print(f"\n{many:,} steady histories of {LONG} runs: share that alerts (at most 6 %)")
    print_table(("spread", "by shifts", "by falls", "any"), rows)
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


def _timely(found: dict[str, LevelShift | None], begins: int, within: int) -> bool:
    return any(s is not None and begins <= s.found < begins + within for s in found.values())


def rare(setting: Setting) -> None:
    """0/1 metrics in which a case fails by chance: what the least spread of one case is for."""
    rows = []
    for cases in SIZES:
        for share in (0.999, 0.995, 0.99, 0.98, 0.95, 0.9):
            rng = np.random.default_rng([16, cases, int(1000 * share)])
            means = rng.binomial(cases, share, (setting.means // 2, RUNS)) / cases
            least = [1 / cases] * RUNS
            with_least = [
                first(controlled(row, higher_is_better=True, spreads=least)[1]) is not None
                for row in means.tolist()
            ]
            without = [watched(row) is not None for row in means]
            rows.append([cases, share, percent(with_least), percent(without)])
    print(f"\n{setting.means // 2:,} steady histories of a 0/1 metric: share that alerts")
    print_table(("cases", "mean", "s at least 1/n", "without"), rows)


def run(*, tiny: bool = False) -> None:
    """Print all tables."""
    setting = Setting(20, 4) if tiny else Setting()
    for part in (steady, falls, long_lines, whole_runs, rare):
        part(setting)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="smallest sizes")
    run(tiny=parser.parse_args().tiny)


if __name__ == "__main__":
    main()
