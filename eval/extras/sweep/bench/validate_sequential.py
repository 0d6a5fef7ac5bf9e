"""What looking early costs and saves: runs that stop when decided, and races of settings.

    RAG_EVAL_DATA=FOLDER python …/validate_sequential.py     # some ten minutes
    python …/validate_sequential.py --tiny                   # on made-up differences
    RAG_EVAL_DATA=FOLDER python …/validate_sequential.py --part stop --simulations 500
    python …/validate_sequential.py --part limit             # needs no data

FOLDER holds trec_robust03 and ragtruth: what real systems scored on the same questions.

Part ``stop``: sizes of real differences between two systems are drawn for each case, their signs
so that the mean is a true drop: none, one MDE (what the full run finds 4 times in 5), two MDEs.
Printed are the share of runs that call a difference, and the mean share of cases asked, for one
test at the end, for z looked at after every case from the 20th (as no one should), and for the
planned looks of run_eval.
Part ``race``: settings whose true means spread normally by .06, and whose cases differ as those of
real systems do (the rest that no topic and no system explains, scaled to sd .30 of a difference).
They end as those of sweep_runs do: one setting left, all cases asked, or futile.
Part ``limit``: settings whose calls take log-normal times, held to a 95th percentile. Half of them
keep it by nothing (exactly 5 in 100 calls are beyond), the worst case of a false drop; of the
others 10 in 100 are.
Ends with 1 when a promise is not kept. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "eval/scripts", "eval")]

import numpy as np
from measuring import print_table, say
from numpy.typing import NDArray

from decisions.change import measure
from decisions.stopping import look_at
from extras.sweep import race
from ragmetrics.stats.sequential import PLANNED_LOOKS

Floats = NDArray[np.float64]
Z = NormalDist().inv_cdf
CASES = 1000
P10 = "P@10, TREC 2003"


def systems(folder: Path, measure_name: str) -> Floats:
    """The values of six TREC systems, a row a topic."""
    with gzip.open(folder / "trec_robust03" / "reference.json.gz", "rt") as file:
        raw = json.load(file)
    runs = [parts["depth100"]["per_query"] for parts in raw.values()]
    return np.array([[run[topic][measure_name] for run in runs] for topic in sorted(runs[0])])


def hallucinated(folder: Path) -> Floats:
    """Whether the answers of six models to the same source are free of hallucinations."""
    rows: dict[str, list[float]] = defaultdict(list)
    with gzip.open(folder / "ragtruth" / "data.jsonl.gz", "rt") as file:
        for line in file:
            item = json.loads(line)
            rows[item["source_id"]].append(1.0 - item["hallucinated"])
    width = max(map(len, rows.values()))
    return np.array([row for row in rows.values() if len(row) == width])


def made_up() -> Floats:
    rng = np.random.default_rng(0)
    ease = rng.beta(1.5, 1.5, (100, 1))
    return rng.binomial(10, ease, (100, 6)) / 10


def differences(values: Floats) -> Floats:
    """The differences of every two systems, of all topics."""
    pairs = combinations(range(values.shape[1]), 2)
    return np.concatenate([values[:, b] - values[:, a] for a, b in pairs])


# Stopping when decided


class Outcome(NamedTuple):
    """Share of simulations with a call, and mean share of the cases asked."""

    called: float
    asked: float


def drawn(sizes: Floats, drop: float, rng: np.random.Generator) -> Floats:
    """Differences of these sizes whose mean is ``-drop`` on average."""
    own = rng.choice(sizes, CASES)
    worse = 0.5 + drop / (2 * sizes.mean())
    return np.where(rng.random(CASES) < worse, -own, own)


def peeked(values: Floats, first: int) -> float | None:
    """The share at which z passes 1.96, looked at after every case from the ``first`` on."""
    n = np.arange(1, len(values) + 1)
    means = values.cumsum() / n
    squares = np.maximum((values**2).cumsum() - n * means**2, 0.0)
    passed = (np.abs(means) > Z(0.975) * np.sqrt(squares / n / np.maximum(n - 1, 1)))[first - 1 :]
    return float((first + passed.argmax()) / len(values)) if passed.any() else None


def looks(values: Floats) -> float | None:
    """The share at which a difference is called."""
    zero = np.zeros(len(values))
    for number in range(1, PLANNED_LOOKS + 1):
        end = len(values) * number // PLANNED_LOOKS
        effect, _ = measure(zero[:end], values[:end], None, largest=1.0)
        seen = look_at(effect, end / len(values))
        if seen is not None and seen.side:
            return end / len(values)
    return None


def simulated(sizes: Floats, drop: float, simulations: int, seed: int) -> dict[str, Outcome]:
    ways = ("full run", "peeking with z", "planned")
    stops: dict[str, list[float | None]] = {name: [] for name in ways}
    for number in range(simulations):
        values = drawn(sizes, drop, np.random.default_rng([seed, number]))
        stops["full run"].append(peeked(values, CASES))
        stops["peeking with z"].append(peeked(values, 20))
        stops["planned"].append(looks(values))
    return {
        name: Outcome(
            sum(stop is not None for stop in own) / simulations,
            sum(1.0 if stop is None else stop for stop in own) / simulations,
        )
        for name, own in stops.items()
    }


def mde(sizes: Floats) -> float:
    """The drop that a full run finds 4 times in 5, by the normal distribution: the root D of
    D² = (z + z)² (Σd²/n - D²) / n."""
    reach = (Z(0.975) + Z(0.8)) ** 2 / CASES
    return sqrt(reach * float((sizes**2).mean()) / (1 + reach))


def stop_when_decided(data: Mapping[str, Floats], simulations: int) -> Iterator[str]:
    """Print the table; yield what is not as promised."""
    rows = []
    chance = 3 * sqrt(0.05 * 0.95 / simulations)
    for number, (name, values) in enumerate(data.items()):
        sizes = np.abs(differences(values))
        sd, step = sqrt(float((sizes**2).mean())), mde(sizes)
        for factor in (0, 1, 2):
            found = simulated(sizes, factor * step, simulations, 10 * number + factor)
            say(f"{name}, {factor} MDE: {found}")
            cells = [f"{o.called:.3f} / {o.asked:.2f}" for o in found.values()]
            rows.append((f"{name} (sd {sd:.2f})", f"{factor} ({factor * step:.3f})", *cells))
            if factor == 0 and found["planned"].called > 0.05 + chance:
                yield f"{name}: planned looks call {found['planned'].called:.3f} of nothing"
            lost = found["full run"].called - found["planned"].called
            if factor == 1 and lost > 0.02 + chance / 3:
                yield f"{name}: planned looks lose {lost:.3f} of the power"
            if factor == 2 and name == P10 and found["planned"].asked > 0.50:
                yield f"{name}: planned looks ask {found['planned'].asked:.2f} at two MDEs"
    print(f"\nShare called / share of {CASES:,} cases asked, {simulations:,} simulations a row.")
    head = ("metric", "true drop in MDEs", "full run", "peeking with z", "planned")
    print_table(head, rows)


# Races


SPREAD, SD = 0.06, 0.30
MOST_CALLS = {(24, 1000): 0.35, (24, 200): 0.65, (12, 1000): 0.40, (12, 200): 0.65}


class Raced(NamedTuple):
    """``kept``: the truly best setting was in at the end. ``false``: a setting was dropped for one
    that is not truly better. ``calls``: of all that there could be."""

    kept: bool
    false: bool
    calls: float
    left: int


def rest_of(values: Floats) -> Floats:
    """What neither the topic nor the system explains, a row a topic, scaled so that differences of
    two draws of a topic vary by ``SD``."""
    rest = values - values.mean(axis=1, keepdims=True)
    rest -= rest.mean(axis=0, keepdims=True)
    return rest * (SD / sqrt(2) / rest.std())


def one_race(rest: Floats, settings: int, cases: int, spread: float, seed: int) -> Raced:
    rng = np.random.default_rng([settings, cases, seed])
    truth = rng.normal(0, spread, settings)
    topics = rng.integers(0, len(rest), cases)
    columns = rng.integers(0, rest.shape[1], (cases, settings))
    signs = rng.choice([-1.0, 1.0], (cases, settings))
    values = truth + rest[topics[:, None], columns] * signs
    return raced(truth, values)


def raced(truth: Floats, values: Floats, largest: float | None = None) -> Raced:
    """A race of settings (columns) with these true means, over these values of cases (rows)."""
    cases, settings = values.shape
    names = [f"s{number}" for number in range(settings)]
    rules = race.Rules(tuple(names), largest=largest)
    still, calls, false = list(names), 0, False
    for look in range(1, race.LOOKS + 1):
        begin, end = (cases * number // race.LOOKS for number in (look - 1, look))
        calls += len(still) * (end - begin)
        seen = {name: values[:end, names.index(name)] for name in still}
        for drop in race.dropped(seen, None, rules, still):
            better, worse = names.index(drop.better), names.index(drop.setting)
            false |= bool(truth[better] <= truth[worse])
            still.remove(drop.setting)
        seen = {name: seen[name] for name in still}
        if len(still) == 1 or race.futile(seen, None, rules, still, end / cases):
            break
    best = names[int(truth.argmax())]
    return Raced(best in still, false, calls / settings / cases, len(still))


def races(values: Floats, simulations: int) -> Iterator[str]:
    """Print the table; yield what is not as promised."""
    rest = rest_of(values)
    rows = []
    for settings, cases in MOST_CALLS:
        for spread in (0.0, SPREAD):
            done = [one_race(rest, settings, cases, spread, seed) for seed in range(simulations)]
            kept = sum(outcome.kept for outcome in done) / simulations
            calls = sum(outcome.calls for outcome in done) / simulations
            left = sum(outcome.left for outcome in done) / simulations
            false = sum(outcome.false for outcome in done) / simulations
            say(f"{settings} settings, {cases} cases, spread {spread}: {kept} {calls} {left}")
            rows.append(
                (
                    settings,
                    cases,
                    spread,
                    f"{kept:.3f}",
                    f"{false:.3f}",
                    f"{calls:.3f}",
                    f"{left:.1f}",
                )
            )
            if kept < 0.95:
                yield f"{settings} settings, {cases} cases: the best is kept in {kept:.3f}"
            if spread and calls > MOST_CALLS[settings, cases]:
                yield f"{settings} settings, {cases} cases: {calls:.3f} of the calls"
            if false > 0.05 + 3 * sqrt(0.05 * 0.95 / simulations):
                yield f"{settings} settings, {cases} cases: {false:.3f} of races drop one falsely"
    print(f"\nRaces, sd {SD} of a difference, {simulations:,} simulations a row.")
    head = ("settings", "cases", "spread", "best kept", "any false drop", "calls", "left")
    print_table(head, rows)


# Qualities of other shapes


def right_or_wrong(truth: Floats, cases: int, rng: np.random.Generator) -> Floats:
    """0 or 1, by an ease of each case that the setting shifts."""
    ease = rng.uniform(0.3, 0.9, (cases, 1))
    return (rng.random((cases, len(truth))) < np.clip(ease + truth, 0, 1)).astype(float)


def skewed(truth: Floats, cases: int, rng: np.random.Generator) -> Floats:
    """Mostly near 1, rarely 0: a case loses all with a chance that the setting shifts."""
    lost = rng.random((cases, len(truth))) < np.clip(0.2 - truth, 0, 1)
    return np.where(lost, 0.0, rng.beta(20, 1, (cases, len(truth))))


def shapes(simulations: int) -> Iterator[str]:
    """Print what races cost, and what planned looks call falsely, where values are not Gaussian."""
    rows = []
    for name, make in (("0/1", right_or_wrong), ("skewed", skewed)):
        for settings, cases in MOST_CALLS:
            done = []
            for seed in range(simulations):
                rng = np.random.default_rng([settings, cases, seed, 7])
                truth = rng.normal(0, SPREAD, settings)
                done.append(raced(truth, make(truth, cases, rng), 1.0))
            shares = (sum(map(float, column)) / simulations for column in zip(*done, strict=True))
            kept, false, calls, left = shares
            cells = f"{kept:.3f}", f"{false:.3f}", f"{calls:.2f}", f"{left:.1f}"
            rows.append((name, settings, cases, *cells))
            if kept < 0.95:
                yield f"{name}, {settings} settings, {cases} cases: the best is kept in {kept:.3f}"
    print(f"\nRaces with other values, spread {SPREAD}, {simulations:,} simulations a row.")
    head = ("quality", "settings", "cases", "best kept", "any false drop", "calls", "left")
    print_table(head, rows)
    rows = []
    for name, values in (
        ("5 % lose 1, 20 % gain .25", np.repeat([-1.0, 0.25, 0.0], [5, 20, 75])),
        ("5 % lose .95, the others gain .05", np.repeat([-0.95, 0.05], [5, 95])),
    ):
        for cases in (100, 300, 1000):
            found = 0
            for seed in range(simulations):
                rng = np.random.default_rng([cases, seed, 8])
                found += looks(rng.choice(values, cases)) is not None
            rows.append((name, cases, f"{found / simulations:.3f}"))
    print(f"\nPlanned looks at skewed differences of mean 0, {simulations:,} simulations a row.")
    print_table(("differences", "cases", "called"), rows)


# Limits


BROKEN_SHARE = 0.10


def one_limit(settings: int, cases: int, seed: int) -> tuple[bool, float, float]:
    """Whether a setting that keeps the limit was dropped, the share of the others that was, and
    the share of the cases that those were asked."""
    rng = np.random.default_rng([settings, cases, seed, 95])
    limit = race.limit_of("p95_latency_ms <= 1000")
    rules = race.Rules(tuple(f"s{number}" for number in range(settings)), limits=(limit,))
    kept = settings // 2
    # so much beyond the bound of a log-normal with sigma .5
    spots = [Z(1 - 0.05)] * kept + [Z(1 - BROKEN_SHARE)] * (settings - kept)
    times = 1000 * np.exp(0.5 * (rng.normal(0, 1, (cases, settings)) - np.array(spots)))
    out = [cases] * settings
    for look in range(1, race.LOOKS + 1):
        end = cases * look // race.LOOKS
        for at in range(settings):
            if out[at] == cases and race.broken(limit, times[:end, at], None, rules):
                out[at] = end if end < cases else cases - 1
    broken = out[kept:]
    dropped = sum(end < cases for end in broken) / len(broken)
    return any(end < cases for end in out[:kept]), dropped, sum(broken) / len(broken) / cases


def limits(simulations: int) -> Iterator[str]:
    """Print the table; yield what is not as promised."""
    rows = []
    for settings, cases in ((12, 200), (12, 1000), (24, 1000)):
        done = [one_limit(settings, cases, seed) for seed in range(simulations)]
        false, dropped, asked = (sum(column) / simulations for column in zip(*done, strict=True))
        rows.append((settings, cases, f"{false:.3f}", f"{dropped:.3f}", f"{asked:.2f}"))
        if false > 0.05 + 3 * sqrt(0.05 * 0.95 / simulations):
            yield f"{settings} settings, {cases} cases: {false:.3f} of races drop one that keeps"
    print(f"\np95 <= bound; half of the settings keep it by nothing, {simulations:,} simulations.")
    head = ("settings", "cases", "any that keeps it dropped", "others dropped", "asked of those")
    print_table(head, rows)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--part", choices=("stop", "race", "shapes", "limit"), action="append", help="only this one"
    )
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--tiny", action="store_true", help="few simulations of made-up data")
    options = parser.parse_args(words)
    folder = os.environ.get("RAG_EVAL_DATA")
    parts = options.part or ["stop", "race", "shapes", "limit"]
    if not (folder or options.tiny or {*parts} <= {"shapes", "limit"}):
        parser.error("set RAG_EVAL_DATA to the folder that holds trec_robust03 and ragtruth")
    simulations = 2 if options.tiny else options.simulations
    data = {"made up": made_up()}
    if folder and not options.tiny:
        data = {
            P10: systems(Path(folder), "P_10"),
            "reciprocal rank, TREC 2003": systems(Path(folder), "recip_rank"),
            "no hallucination, RAGTruth": hallucinated(Path(folder)),
        }
    broken: list[str] = []
    if "stop" in parts:
        broken += stop_when_decided(data, simulations)
    if "race" in parts:
        broken += races(next(iter(data.values())), simulations)
    if "shapes" in parts:
        broken += shapes(simulations)
    if "limit" in parts:
        broken += limits(simulations)
    if options.tiny:
        return 0
    print("\n".join(["Not as promised:", *broken] if broken else ["All as promised."]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
