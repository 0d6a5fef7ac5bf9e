"""How often does compare_runs.py call what is no difference, when the cases are turns?

    python bench/decisions_turns.py            # 4,000 pairs of each shape, about ten minutes
    python bench/decisions_turns.py --tiny     # only to see that it runs

Pairs of runs of one bot over sets of conversations. Turns of one conversation hang together (ICC
.3 to .5), and in half of the shapes a bad turn spoils the ones behind it, as a bad answer does that
enters the history. The clusters are read from the set, by its field `conversation`. Ends with 1
when more than 6 % of the pairs are called better or worse in any of five metrics.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measuring import SCRIPTS, print_table

sys.path.insert(0, str(SCRIPTS))

import numpy as np
from decisions_compare import Floats, Ints, Pair, called, verdicts

from decisions.effects import compact
from decisions.pairing import ClusterCodes
from records.clusters import read_clusters
from records.id_numbers import id_number

METRICS = 5

MOST = 0.06


class Talks(NamedTuple):
    """Conversations by their numbers of turns, and how the scores of a run come about."""

    name: str
    turns: Sequence[int]
    icc: float
    spoils: float = 0.0
    """The chance that the turn behind a bad one is bad for that reason."""

    def clusters(self, folder: Path) -> Ints:
        """The conversation of each case, as a comparison reads it from a set."""
        path = folder / "set.jsonl"
        ids = [
            (f"c{n}", turn) for n, turns in enumerate(self.turns) for turn in range(1, turns + 1)
        ]
        lines = [
            {"id": f"{name}-{turn}", "question": "?", "conversation": name, "turn": turn}
            for name, turn in ids
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        clustering = read_clusters(path)
        if clustering.by != "conversation":
            raise SystemExit(f"counted together by {clustering.by}, not by conversation")
        numbers = np.array([id_number(f"{name}-{turn}") for name, turn in ids], np.int64)
        codes = compact(ClusterCodes(clustering).of(numbers))
        assert codes is not None
        return codes

    def run(self, asks: Floats, clusters: Ints, rng: np.random.Generator) -> Floats:
        """The scores of one run, 0 or 1, a column a metric."""
        shared = rng.normal(0, 1, (len(self.turns), METRICS))[clusters]
        own = rng.normal(0, 1, (len(clusters), METRICS))
        scores = (self.icc**0.5 * shared + (1 - self.icc) ** 0.5 * own > asks).astype(float)
        later = np.flatnonzero(clusters[1:] == clusters[:-1]) + 1
        spoilt = rng.random((len(clusters), METRICS)) < self.spoils
        for at in later if self.spoils else ():
            scores[at] = np.where(spoilt[at] & (scores[at - 1] == 0), 0.0, scores[at])
        return scores

    def pair(self, clusters: Ints, rng: np.random.Generator) -> Pair:
        """Two runs of one bot over the same turns."""
        asks = rng.normal(-0.5, 1.0, (len(clusters), 1))
        return Pair(self.run(asks, clusters, rng), self.run(asks, clusters, rng), clusters)


SHAPES = (
    Talks("9 conversations of 8 turns, ICC .3", [8] * 9, 0.3),
    Talks("9 conversations of 8 turns, ICC .5", [8] * 9, 0.5),
    Talks("12 of 3 to 5, ICC .5", [3, 4, 5] * 4, 0.5),
    Talks("30 of 4, ICC .3, bad turns spoil the next", [4] * 30, 0.3, 0.7),
    Talks("30 of 4, ICC .5, bad turns spoil the next", [4] * 30, 0.5, 0.7),
    Talks("60 of 2 to 8, ICC .4, bad turns spoil the next", [2, 3, 5, 8] * 15, 0.4, 0.7),
    Talks("one of 40, 30 of 2, ICC .5", [40, *[2] * 30], 0.5),
)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiny", action="store_true", help="4 pairs of each shape")
    options = parser.parse_args(words)
    simulations = 4 if options.tiny else options.simulations
    rows, most = [], 0.0
    for place, shape in enumerate(SHAPES):
        with tempfile.TemporaryDirectory() as folder:
            clusters = shape.clusters(Path(folder))
        rng = np.random.default_rng([options.seed, place])
        calls = alone = 0
        for number in range(simulations):
            pair = shape.pair(clusters, rng)
            calls += called(verdicts(pair, number))
            alone += called(verdicts(pair._replace(clusters=np.arange(len(clusters))), number))
        most = max(most, calls / simulations)
        shares = [f"{count / simulations:.3f}" for count in (calls, alone)]
        rows.append([shape.name, *shares, f"{MOST}"])
    print(f"\nFalse better or worse, any of {METRICS} metrics ({simulations} pairs of one bot)")
    print_table(("turns", "called", "each turn by itself", "at most"), rows)
    return 0 if most <= MOST or options.tiny else 1


if __name__ == "__main__":
    sys.exit(main())
