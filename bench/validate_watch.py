"""How often does watching alarm falsely, how soon does it find a rise, and does it name its day?

    python bench/validate_watch.py             # some ten minutes
    python bench/validate_watch.py --tiny      # only to see that it runs; the figures mean nothing
    python bench/validate_watch.py --part rises --simulations 300

Seven figures are watched together, as watch_traces.py does, with a look at the end of every day of
a quarter. Each quarter has its own reference period, drawn like its days.

Part ``steady``: nothing rose. Traces are independent; or come in sessions whose traces resemble
each other (intraclass correlation .4), counted by session or, without ids, by trace; or the shares
of the days differ (their logits by a standard deviation of .5, each figure by itself). Printed is
the share of quarters with any alarm in any figure, for the rule of watch_traces.py and for a plain
one: the upper limit of the reference at half of alpha, and binomial likelihood ratios against it.
Part ``rises``: refusals go from 4 to 9 %, on the first day of the quarter or in its middle. Printed
are the traces from there to the end of the day of the alarm, and how often the day named is within
two days.
Ends with 1 when a promise is not kept. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from statistics import median
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measuring import SCRIPTS, print_table, say

sys.path.insert(0, str(SCRIPTS))

import numpy as np

from ragmetrics.stats.rise import ALPHA, RATIOS, DayCount, reference_share, watch_share

FIRST = date(2026, 1, 1)
LENGTH = 90
FIGURES = (
    ("refusals", 0.04, 1.0),
    ("empty retrievals", 0.02, 1.0),
    ("errors", 0.005, 1.0),
    ("slow", 0.05, 1.0),
    ("empty or over-long", 0.05, 1.0),
    ("unsupported claims", 0.10, 0.2),
    ("leaks", 0.001, 0.2),
)
"""Name, share of bad traces, and the part of the traces that is checked."""

BEFORE, AFTER = FIGURES[0][1], 0.09
ALIKE, DAYS_DIFFER = 0.4, 0.5
MEAN_SESSION = 3.0
MOST_FALSE, LEAST_NAMED = 0.05, 0.80
MOST_TRACES = {3000: 700, 10_000: 600}
"""Median of the traces until a rise is found, by the traces of the reference."""


class World(NamedTuple):
    """How traces come: how many a day, over how many days of reference."""

    name: str
    traces: int
    reference: int
    sessions: str = ""
    days_differ: float = 0.0


def day_count(
    day: date, share: float, checked: float, world: World, rng: np.random.Generator
) -> DayCount:
    """A day's units, drawn anew."""
    n = round(world.traces * checked)
    if world.days_differ:
        odds = share / (1 - share) * np.exp(world.days_differ * rng.standard_normal())
        share = float(odds / (1 + odds))
    if not world.sessions:
        return DayCount(day, int(rng.binomial(n, share)), n)
    sizes = rng.geometric(1 / MEAN_SESSION, max(1, round(n / MEAN_SESSION)))
    pairs = 1 / ALIKE - 1
    own = rng.beta(share * pairs, (1 - share) * pairs, len(sizes))
    bad = rng.binomial(sizes, own)
    if world.sessions == "by session":
        return DayCount(day, int((bad > 0).sum()), len(sizes))
    return DayCount(day, int(bad.sum()), int(sizes.sum()))


def drawn(
    begin: date, shares: Sequence[float], checked: float, world: World, rng: np.random.Generator
) -> list[DayCount]:
    return [
        day_count(begin + timedelta(place), share, checked, world, rng)
        for place, share in enumerate(shares)
    ]


def plainly(reference: Sequence[DayCount], days: Sequence[DayCount]) -> bool:
    """Whether the plain rule alarms at the end of any day."""
    upper = reference_share(plain_reference(reference), len(FIGURES)).upper
    after = np.minimum(np.array(RATIOS) * upper, (1 + upper) / 2)
    running = np.zeros(len(RATIOS))
    for place, count in enumerate(days, 1):
        gain = count.bad * np.log(after / upper)
        gain += (count.n - count.bad) * np.log((1 - after) / (1 - upper))
        running = (running + 1) * np.exp(np.minimum(gain, 600))
        if (running.mean() + LENGTH - place) / LENGTH >= 2 * len(FIGURES) / ALPHA:
            return True
    return False


def plain_reference(reference: Sequence[DayCount]) -> list[DayCount]:
    """The reference as a single count, which tells nothing of how its days differ."""
    bad, n = sum(count.bad for count in reference), sum(count.n for count in reference)
    return [DayCount(reference[0].day, bad, n)]


STEADY = (
    World("independent", 100, 30),
    World("independent", 33, 90),
    World("sessions, by session", 100, 30, "by session"),
    World("days differ", 50, 60, days_differ=DAYS_DIFFER),
    World("days differ", 100, 30, days_differ=DAYS_DIFFER),
    World("days differ", 100, 100, days_differ=DAYS_DIFFER),
    World("days differ", 1000, 14, days_differ=DAYS_DIFFER),
    World("sessions by session, days differ", 100, 30, "by session", DAYS_DIFFER),
    World("sessions without ids, by trace", 100, 30, "by trace"),
)
"""All but the last are promised: rare failures that come in bursts look like a rise where nothing
tells that they belong together."""

UNPROMISED = 1


def steady(simulations: int) -> Iterator[str]:
    """Print the table; yield what is not as promised."""
    rows = []
    for number, world in enumerate(STEADY):
        alarms = np.zeros((simulations, len(FIGURES)), dtype=bool)
        plain = np.zeros_like(alarms)
        for simulation in range(simulations):
            rng = np.random.default_rng([1, number, simulation])
            for place, (_, share, checked) in enumerate(FIGURES):
                begin = FIRST - timedelta(world.reference)
                reference = drawn(begin, [share] * world.reference, checked, world, rng)
                days = drawn(FIRST, [share] * LENGTH, checked, world, rng)
                (quarter,) = watch_share(reference, days, len(FIGURES))
                alarms[simulation, place] = quarter.alarm
                plain[simulation, place] = plainly(reference, days)
        false = float(alarms.any(axis=1).mean())
        say(f"{world}: {false}, by figure {alarms.mean(axis=0)}")
        rows.append(
            (
                world.name,
                world.traces,
                world.reference,
                f"{false:.3f}",
                f"{alarms.mean(axis=0).max():.3f}",
                f"{plain.any(axis=1).mean():.3f}",
            )
        )
        if false > MOST_FALSE and number < len(STEADY) - UNPROMISED:
            yield f"{world.name}, {world.traces} a day: {false:.3f} of steady quarters alarm"
    print(f"\nNothing rose: quarters with any alarm, {simulations:,} quarters a row.")
    print_table(
        (
            "traces",
            "a day",
            "reference days",
            f"any of {len(FIGURES)} figures",
            "the worst figure",
            f"any of {len(FIGURES)}, plain rule",
        ),
        rows,
    )


RISES = (
    World("independent", 100, 30),
    World("independent", 100, 100),
    World("independent", 50, 60),
    World("independent", 50, 200),
    World("independent", 200, 15),
    World("independent", 200, 50),
    World("sessions, by session", 100, 30, "by session"),
    World("days differ", 100, 100, days_differ=DAYS_DIFFER),
)
"""The first two are promised; the others tell how it goes elsewhere."""

PROMISED = 2


def rises(simulations: int) -> Iterator[str]:
    """Print the table; yield what is not as promised."""
    rows = []
    for number, world in enumerate(RISES):
        for start in (0, LENGTH // 2):
            delays, named = [], []
            for simulation in range(simulations):
                rng = np.random.default_rng([2, number, start, simulation])
                begin = FIRST - timedelta(world.reference)
                reference = drawn(begin, [BEFORE] * world.reference, 1.0, world, rng)
                shares = [BEFORE] * start + [AFTER] * (LENGTH - start)
                days = drawn(FIRST, shares, 1.0, world, rng)
                delay, error = found(reference, days, start)
                delays.append(delay * world.traces)
                if error is not None:
                    named.append(error <= 2)
            size = world.traces * world.reference
            middle, right = median(delays), sum(named) / max(1, len(named))
            say(f"{world}, day {start}: {middle} traces, day named {right}")
            missed = delays.count(float("inf")) / simulations
            when = "mid-quarter" if start else "first day"
            cells = (f"{middle:,.0f}", f"{missed:.3f}", f"{right:.3f}")
            rows.append((world.name, world.traces, f"{size:,}", when, *cells))
            if number < PROMISED and middle > MOST_TRACES[size]:
                yield f"{size:,} in the reference, {when}: {middle:,.0f} traces until it is found"
            if number < PROMISED and right < LEAST_NAMED:
                yield f"{size:,} in the reference, {when}: the day is right in {right:.3f}"
    print(f"\nRefusals rise from {BEFORE:.0%} to {AFTER:.0%}, {simulations:,} quarters a row.")
    head = ("traces", "a day", "reference", "begins", "median traces", "missed", "day within two")
    print_table(head, rows)


def found(
    reference: Sequence[DayCount], days: Sequence[DayCount], start: int
) -> tuple[float, int | None]:
    """Days until the first alarm from the rise on, and by how many days the one named then is off.

    Infinite days and None when nothing alarms by the quarter's end; an alarm before the rise is
    none, and the quarter is as good as missed.
    """
    (whole,) = watch_share(reference, days, len(FIGURES))
    if whole.sounded is None or (place := (whole.sounded - FIRST).days) < start:
        return float("inf"), None
    (then,) = watch_share(reference, days[: place + 1], len(FIGURES))
    assert then.since is not None
    return place - start + 1, abs((then.since - FIRST).days - start)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=("steady", "rises"), action="append", help="only this")
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--tiny", action="store_true", help="two simulations a row")
    options = parser.parse_args(words)
    simulations = 2 if options.tiny else options.simulations
    broken: list[str] = []
    for part, run in (("steady", steady), ("rises", rises)):
        if part in (options.part or [part]):
            broken += run(simulations)
    if options.tiny:
        return 0
    print("\n".join(["Not as promised:", *broken] if broken else ["All as promised."]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
