"""How many labels does it save to draw claims by strata, and does the interval keep its word?

    RAG_EVAL_DATA=FOLDER python bench/validate_claims.py          # 1,000 simulations, minutes
    python bench/validate_claims.py --tiny                        # made claims, a few simulations

FOLDER holds ragtruth, attributionbench and factscore: claims with people's labels. The local judge
scores every claim; then, again and again, a number of them is "labelled", once uniformly (mean of
the labels, with the correction for a finite run) and once as calibrate_judge.py --label draws them,
with the mean that it shows. Labels saved: 1 - (width by strata / uniform width)^2, since a width
goes with 1 / sqrt(labels). Ends with 1 when a set saves less than it should, or when fewer than
94 % of the intervals hold the share of supported claims of the whole set.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import NamedTuple

from measuring import SCRIPTS, print_table, say

sys.path.insert(0, str(SCRIPTS))

import numpy as np

from ragmetrics.stats.calibration import confusion
from ragmetrics.stats.means import Z95, generator
from ragmetrics.stats.stratified import stratified_mean
from ragmetrics.support_model import THRESHOLD
from validation.claims import JudgedClaim, support_score
from validation.drawing import drawn_claims, label_weights, strata_of
from validation.human import SUPPORT

SAVED = {"ragtruth_qa": 0.22, "attributionbench": 0.25, "factscore": 0.38}
"""Least share of labels saved, by set."""

COVERAGE = 0.94

Intervals = list[tuple[float, float]]


class Set(NamedTuple):
    """Claims with the judge's verdict and score, and people's label of each."""

    title: str
    least: float | None
    claims: list[JudgedClaim]
    human: list[int]


def read(data: Path) -> list[Set]:
    """The sets that are there, scored by the local judge."""
    sets = []
    for labelled in SUPPORT:
        if labelled.key not in SAVED or not labelled.present(data):
            continue
        rows = list(labelled.load(data))
        say(f"{labelled.title}: {len(rows)} claims are judged")
        scores = [
            support_score(row.claim, list(row.contexts), row.question, row.lead) for row in rows
        ]
        claims = [judged(place, score) for place, score in enumerate(scores)]
        human = [row.supported for row in rows]
        sets.append(Set(labelled.title, SAVED[labelled.key], claims, human))
    return sets


def judged(place: int, score: float) -> JudgedClaim:
    verdict = "supported" if score >= THRESHOLD else "not_found"
    return JudgedClaim(f"{place:06d}", 0, "1", "", verdict, score)


def made(size: int) -> Set:
    """Claims that are supported as often as their score says."""
    rng = generator(0, "made claims")
    scores = rng.beta(2, 1, size)
    human = (rng.random(size) < scores).astype(int).tolist()
    return Set("made", None, [judged(place, float(s)) for place, s in enumerate(scores)], human)


def uniform(cases: Set, labels: int, rng: np.random.Generator) -> tuple[float, float]:
    """Mean of labels drawn from all claims alike, with its interval for this finite set.

    With Wilson's term for what no label has shown, as all intervals of calibrate_judge.py have it.
    """
    human = np.asarray(cases.human, dtype=float)
    chosen = human[rng.permutation(len(human))[:labels]]
    unlabelled = 1 - labels / len(human)
    variance = (chosen.var(ddof=1) / labels + (Z95 / (2 * labels)) ** 2) * unlabelled
    mean, half = float(chosen.mean()), Z95 * sqrt(float(variance))
    return max(0.0, mean - half), min(1.0, mean + half)


def by_strata(cases: Set, labels: int, rng: np.random.Generator) -> tuple[float, float]:
    """The same from labels drawn by strata: as many of each stratum as the drawing gives it."""
    strata = strata_of(cases.claims)
    names = np.array([strata[claim.key] for claim in cases.claims])
    drawn = drawn_claims(cases.claims, labels, int(rng.integers(2**31)))
    human: list[float | None] = [None] * len(names)
    for item in drawn:
        place = int(item.claim.case_id)
        human[place] = float(cases.human[place])
    scores = [float(claim.score or 0.0) for claim in cases.claims]
    mean = stratified_mean(scores, human, names.tolist())
    if mean is None:
        raise RuntimeError("a stratum has no label")
    return mean.low, mean.high


def saved(sets: Sequence[Set], labels: int, simulations: int) -> bool:
    """The table of widths, labels saved and coverage; False when one is not as promised."""
    rows, kept = [], True
    for cases in sets:
        truth = sum(cases.human) / len(cases.human)
        rng = generator(20, cases.title)
        width, covered = {}, {}
        for name, draw in (("uniform", uniform), ("strata", by_strata)):
            intervals: Intervals = [draw(cases, labels, rng) for _ in range(simulations)]
            width[name] = float(np.mean([high - low for low, high in intervals]))
            covered[name] = float(np.mean([low <= truth <= high for low, high in intervals]))
        share = 1 - (width["strata"] / width["uniform"]) ** 2
        if cases.least is not None:
            kept &= share >= cases.least and covered["strata"] >= COVERAGE
        rows.append(
            [
                cases.title,
                len(cases.human),
                f"{truth:.3f}",
                f"{width['uniform']:.4f} ({covered['uniform']:.3f})",
                f"{width['strata']:.4f} ({covered['strata']:.3f})",
                f"{100 * share:.1f} %",
                "–" if cases.least is None else f"{100 * cases.least:.0f} %",
            ]
        )
        say(f"{cases.title}: done")
    print(f"## Labels saved at the same width, {labels} labels, {simulations} simulations")
    head = ("set", "claims", "supported", "uniform width (coverage)", "strata width (coverage)")
    print_table((*head, "labels saved", "at least"), rows)
    return kept


def unbiased(sets: Sequence[Set], labels: int, simulations: int) -> bool:
    """The judge's figures from weighted labels beside those of all labels; False when off."""
    rows, kept = [], True
    names = ("sensitivity", "specificity", "balanced_accuracy", "kappa")
    for cases in sets:
        keys = [claim.key for claim in cases.claims]
        everyone = dict(zip(keys, cases.human, strict=True))
        verdicts = {claim.key: claim.supported for claim in cases.claims}
        truth = confusion(cases.human, list(verdicts.values()))
        estimates: dict[str, list[float]] = {name: [] for name in names}
        raw: dict[str, list[float]] = {name: [] for name in names}
        rng = generator(21, cases.title)
        for _ in range(simulations):
            drawn = drawn_claims(cases.claims, labels, int(rng.integers(2**31)))
            human = {item.claim.key: everyone[item.claim.key] for item in drawn}
            draws = {item.claim.key: item.draw for item in drawn}
            judge = [verdicts[key] for key in human]
            weights = label_weights(cases.claims, list(human), draws).weights
            weighted = np.array([weights[key] for key in human])
            for of, times in ((estimates, weighted), (raw, None)):
                table = confusion(list(human.values()), judge, times)
                for name in names:
                    of[name].append(getattr(table, name))
        for name in names:
            exact = getattr(truth, name)
            spread = float(np.std(estimates[name])) / sqrt(len(estimates[name])) + 1e-9
            off = float(np.mean(estimates[name])) - exact
            kept &= abs(off) <= max(0.02, 4 * spread)  # a ratio has a bias of the order 1 / labels
            row = [cases.title, name, f"{exact:.3f}", f"{off:+.3f}"]
            rows.append([*row, f"{float(np.mean(raw[name])) - exact:+.3f}"])
    print(f"## Figures of the judge, {labels} labels by strata, {simulations} simulations")
    print_table(("set", "figure", "of all labels", "weighted: off by", "unweighted: off by"), rows)
    return kept


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, default=200, help="labels of a simulation")
    parser.add_argument("--simulations", type=int, default=1000, help="of the widths")
    parser.add_argument("--tiny", action="store_true", help="made claims, few simulations")
    options = parser.parse_args(words)
    if options.tiny:
        sets, options.labels, options.simulations = [made(300)], 80, 5
    elif "RAG_EVAL_DATA" in os.environ:
        sets = read(Path(os.environ["RAG_EVAL_DATA"]))
    else:
        print("left out: set RAG_EVAL_DATA to the folder that holds the labelled sets")
        return 0
    kept = saved(sets, options.labels, options.simulations)
    kept &= unbiased(sets, options.labels, max(5, options.simulations // 5))
    print("\nAll as promised." if kept else "\nNot as promised.")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
