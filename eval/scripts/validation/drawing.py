"""Draws the claims that people should label, in order, and weights their labels.

Claims are drawn by strata of the judge's verdict and score: half of the labels go to the claims
that the judge calls not supported, so that a calibration gets both classes, and among those of a
verdict more go to where the judge is unsure; of a panel, to those on which its judges differ, which
come first in every ten. Within a stratum the draw is random, so every label
stands for a known number of claims. Nothing depends on the labels that were given before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from ragmetrics.stats.means import generator
from ragmetrics.stats.stratified import StratifiedMean, stratified_mean
from records.claim_labels import ClaimDraw
from validation.claims import JudgedClaim, Key

_PER_VERDICT = 2
"""Strata by score within a verdict: with more, each has too few labels to show its errors."""

_LEAST_IN_STRATUM = 12
"""Claims below which a stratum is not split."""

_FIRST = 2
"""Labels that every stratum gets before any gets more."""

_BLOCK = 10
"""Claims whose order is shuffled, so that the place of a claim does not tell the verdict."""

_UNSURE = (0.05, 0.95)
"""Bounds of the score by which labels are shared out: no judge is without error."""


def strata_of(claims: Sequence[JudgedClaim]) -> dict[Key, str]:
    """The stratum of each claim: the judge's verdict, in parts by its score or by its word."""
    strata: dict[Key, str] = {}
    for supported in (False, True):
        group = [claim for claim in claims if claim.supported == supported]
        name = "passed" if supported else "doubted"
        if any(claim.split is not None for claim in group):
            strata |= {c.key: f"{name}: {'split' if c.split else 'agreed'}" for c in group}
            continue
        scores = [claim.score for claim in group if claim.score is not None]
        if len(scores) < len(group):
            words = Counter(claim.verdict for claim in group)
            for claim in group:
                rare = words[claim.verdict] < _LEAST_IN_STRATUM
                strata[claim.key] = name if supported or rare else f"{name}: {claim.verdict}"
            continue
        parts = min(_PER_VERDICT, len(group) // _LEAST_IN_STRATUM) or 1
        cuts = [sorted(scores)[len(group) * part // parts] for part in range(1, parts)]
        for claim, score in zip(group, scores, strict=True):
            part = 1 + sum(score >= cut for cut in cuts)
            strata[claim.key] = name if parts == 1 else f"{name} {part}/{parts}"
    return strata


@dataclass(frozen=True, slots=True)
class DrawnClaim:
    """A claim to label, and how it was drawn."""

    claim: JudgedClaim
    draw: ClaimDraw


def drawn_claims(claims: Sequence[JudgedClaim], size: int, seed: int) -> list[DrawnClaim]:
    """The claims to label, in order; a larger ``size`` adds to a smaller one's.

    Half of the labels go to either verdict as long as it has claims; within a verdict a stratum
    gets in proportion to its claims times sqrt(p (1 - p)) of its mean score p (Neyman); p is .5
    where the judges of a panel differ, and .05 where they agree. Each
    stratum first gets two.
    """
    strata = strata_of(claims)
    waiting: dict[str, list[JudgedClaim]] = {}
    for claim in sorted(claims, key=lambda claim: claim.key):
        waiting.setdefault(strata[claim.key], []).append(claim)
    shares = _shares(waiting)
    orders = {
        name: generator(seed, f"stratum {name}").permutation(len(group)).tolist()
        for name, group in waiting.items()
    }
    turns = _turns(shares, {name: len(group) for name, group in waiting.items()})
    shuffle = generator(seed, "label order")
    chosen: list[DrawnClaim] = []
    taken: Counter[str] = Counter()
    for start in range(0, min(size, len(turns)), _BLOCK):
        block = turns[start : start + _BLOCK]
        order = [block[place] for place in shuffle.permutation(len(block)).tolist()]
        for name in sorted(order, key=lambda name: not waiting[name][0].split):
            group = waiting[name]
            claim = group[orders[name][taken[name]]]
            taken[name] += 1
            share = taken[name] / len(group)
            chosen.append(DrawnClaim(claim, ClaimDraw(f"strata:{seed}", name, len(group), share)))
    return chosen[:size]


def _shares(strata: Mapping[str, Sequence[JudgedClaim]]) -> dict[str, float]:
    """Of the labels, by stratum: half for either verdict."""
    unsure: dict[str, float] = {}
    for name, group in strata.items():
        scores = [claim.score for claim in group if claim.score is not None]
        low, high = _UNSURE
        mean = min(high, max(low, sum(scores) / len(scores))) if scores else 0.5
        if group[0].split is not None:
            mean = 0.5 if group[0].split else low
        unsure[name] = len(group) * sqrt(mean * (1 - mean))
    of_verdict = {True: 0.0, False: 0.0}
    for name, group in strata.items():
        of_verdict[group[0].supported] += unsure[name]
    return {name: unsure[name] / of_verdict[group[0].supported] for name, group in strata.items()}


def _turns(shares: Mapping[str, float], sizes: Mapping[str, int]) -> list[str]:
    """The stratum of each label in turn: whose share is furthest ahead of its labels.

    By the divisors 1, 3, 5, … (Sainte-Laguë), so every beginning is shared out like the whole.
    """
    given = dict.fromkeys(sorted(shares), 0)
    turns: list[str] = []
    while given:
        name = max(
            given,
            key=lambda name: (given[name] < _FIRST, shares[name] / (2 * given[name] + 1)),
        )
        turns.append(name)
        given[name] += 1
        if given[name] == sizes[name]:
            del given[name]
    return turns


@dataclass(frozen=True, slots=True)
class LabelWeights:
    """How many claims each label represents, and the strata within which labels are random."""

    weights: dict[Key, float]
    """Weights of the labelled claims, with a mean of 1."""
    strata: dict[Key, str] | None
    """Strata of all claims; None when another judge's verdicts drew the labels."""
    equal: bool
    """Whether every label counts the same."""


def label_weights(
    claims: Sequence[JudgedClaim], labelled: Sequence[Key], draws: Mapping[Key, ClaimDraw]
) -> LabelWeights:
    """Weight the labels of a run, by how they were drawn.

    ``draws``: of the labelled claims; those without a stratum were drawn from all claims alike, and
    are as random within each stratum as those drawn from it. A label counts claims of its stratum
    / labels of its stratum, the inverse of the probability with which it was drawn. Where the
    strata are not those of the run's present verdicts (another judge drew them), the stored ones
    count.
    """
    present = strata_of(claims)
    sizes = Counter(present.values())
    by_strata = [key for key in labelled if key in draws and draws[key].stratum]
    if not by_strata:
        full = set(sizes) == {present[key] for key in labelled}
        whole = present if full else dict.fromkeys(present, "all")
        return LabelWeights(dict.fromkeys(labelled, 1.0), whole, equal=True)
    same = all(
        (draws[key].stratum, draws[key].size) == (present[key], sizes[present[key]])
        for key in by_strata
    )
    names = {key: present[key] if same else _stored(draws.get(key)) for key in labelled}
    counts = Counter(names.values())
    of_all = len(claims)
    stands_for = {
        key: (sizes[name] if same else (draws[key].size if key in draws else 0) or of_all)
        / counts[name]
        for key, name in names.items()
    }
    scale = len(stands_for) / sum(stands_for.values())
    weights = {key: value * scale for key, value in stands_for.items()}
    equal = max(weights.values()) - min(weights.values()) < 1e-9
    return LabelWeights(weights, present if same else None, equal)


def _stored(draw: ClaimDraw | None) -> str:
    return f"{draw.stratum}\0{draw.size}" if draw is not None else ""


def run_mean(
    claims: Sequence[JudgedClaim], human: Mapping[Key, int], strata: Mapping[Key, str]
) -> StratifiedMean | None:
    """The run's mean over cases as people would give it, from the labels so far."""
    return stratified_mean(
        [float(claim.supported) if claim.score is None else claim.score for claim in claims],
        [human.get(claim.key) for claim in claims],
        [strata[claim.key] for claim in claims],
        weights=[claim.weight for claim in claims],
    )


@dataclass(frozen=True, slots=True)
class ClassSupply:
    """How many claims of each class a run can supply, as far as is known.

    What people would find among all claims: the labels so far, and of the rest what the judge says.
    """

    supported: int
    unsupported: int

    def runs_needed(self, least: int, runs: int) -> int | None:
        """Runs like these ``runs`` until both classes have ``least``; None when one has none."""
        rarer = min(self.supported, self.unsupported)
        return None if not rarer else ceil(least * runs / rarer)


def class_supply(claims: Sequence[JudgedClaim], human: Mapping[Key, int]) -> ClassSupply:
    """Count the claims of each class that a run can supply, before and while it is labelled."""
    supported = sum(bool(human.get(claim.key, claim.supported)) for claim in claims)
    return ClassSupply(supported, len(claims) - supported)
