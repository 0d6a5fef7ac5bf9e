"""The report of a calibration as plain data: what --json prints and calibration.json holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from calibration.claims import JudgedClaim, Key
from calibration.rates import corrected
from ragmetrics import calibration, labelfit
from ragmetrics.agreement import clustered_interval, weighted_kappa
from ragmetrics.calibration import MIN_CLASS, Confusion
from ragmetrics.stats import generator

RESAMPLES = labelfit.RESAMPLES
LEAST_IN_SLICE = 10
"""Labels of either class below which a slice shows its counts alone."""
SCALE = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Draws:
    """How intervals and halves are drawn: the same seed gives the same figures."""

    resamples: int = RESAMPLES
    seed: int = 0

    def interval(
        self, name: str, groups: Sequence[str], statistic: labelfit.Statistic
    ) -> list[float] | None:
        found = labelfit.interval(groups, statistic, generator(self.seed, name), self.resamples)
        return None if found is None else list(found)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Labelled claims with people's verdict beside them."""

    claims: list[JudgedClaim]
    human: list[int]

    @property
    def judge(self) -> list[bool]:
        return [claim.supported for claim in self.claims]

    @property
    def sources(self) -> list[str]:
        return [claim.source for claim in self.claims]

    def scores(self) -> list[float] | None:
        """The judge's scores; None when it gives none."""
        found = [claim.score for claim in self.claims if claim.score is not None]
        return found if found and len(found) == len(self.claims) else None

    def where(self, wanted: Callable[[JudgedClaim], bool]) -> Pairs:
        kept = [pair for pair in zip(self.claims, self.human, strict=True) if wanted(pair[0])]
        return Pairs([claim for claim, _ in kept], [human for _, human in kept])


def pairs(claims: Sequence[JudgedClaim], human: Mapping[Key, int]) -> Pairs:
    """The claims that people decided, in the order of the run."""
    kept = [claim for claim in claims if claim.key in human]
    return Pairs(kept, [human[claim.key] for claim in kept])


def report(
    claims: Sequence[JudgedClaim],
    human: Mapping[Key, int],
    draws: Draws,
    worst: int,
    metric: str = "groundedness",
) -> dict[str, Any]:
    """Every figure; None for what is undefined, ``too_few`` where it says nothing yet."""
    found = pairs(claims, human)
    table = calibration.confusion(found.human, found.judge)
    few = min(table.supported, table.unsupported) < MIN_CLASS
    return {
        "n": len(found.human),
        "sources": len(set(found.sources)),
        "judged_claims": len(claims),
        "supported": int(table.supported),
        "unsupported": int(table.unsupported),
        "too_few": few,
        "confusion": confusion_counts(table),
        "prevalence": table.prevalence,
        "figures": None if few else agreement(found, draws),
        "answers": answers(found, claims, draws),
        "threshold": None if few else threshold(found, draws),
        "by": slices(found),
        "corrected": corrected(claims, human, table, metric),
        "worst": disagreements(found, worst),
    }


def confusion_counts(table: Confusion) -> dict[str, int]:
    """The four cells; people's word first, then the judge's."""
    return {
        "supported_supported": int(table.supported_supported),
        "supported_not": int(table.supported_not),
        "not_supported": int(table.not_supported),
        "not_not": int(table.not_not),
    }


def agreement(found: Pairs, draws: Draws) -> dict[str, Any]:
    """Rates, kappa and AUROC with intervals over source documents."""
    human, judge, sources = found.human, found.judge, found.sources
    table = calibration.confusion(human, judge)

    def drawn(name: str) -> list[float] | None:
        def statistic(weights: labelfit.Floats) -> float | None:
            value: float | None = getattr(calibration.confusion(human, judge, weights), name)
            return value

        return draws.interval(name, sources, statistic)

    names = ("specificity", "sensitivity", "balanced_accuracy", "kappa", "accuracy")
    rows: dict[str, Any] = {
        name: {
            "value": getattr(table, name),
            "ci95": _wider(drawn(name), calibration.interval_of_claims(table, name)),
        }
        for name in names
    }
    scores = found.scores()
    rows["auroc"] = {"value": None, "ci95": None}
    if scores is not None:
        rows["auroc"] = {
            "value": labelfit.auroc(human, scores),
            "ci95": draws.interval(
                "auroc", sources, lambda weights: labelfit.auroc(human, scores, weights)
            ),
        }
    return rows


def _wider(drawn: list[float] | None, of_claims: calibration.Interval | None) -> list[float] | None:
    """The wider ends of two intervals: draws see that sources differ, the other that n is small."""
    if drawn is None or of_claims is None:
        return drawn if of_claims is None else list(of_claims)
    return [min(of_claims[0], drawn[0]), max(of_claims[1], drawn[1])]


def answers(found: Pairs, claims: Sequence[JudgedClaim], draws: Draws) -> dict[str, Any] | None:
    """Whole answers on the scale 0 to 5, quadratic weighted kappa: where every claim is labelled.

    None when no answer is, and when no answer has two claims: then it is the kappa of the claims.
    """
    size: dict[tuple[str, int], int] = {}
    for claim in claims:
        size[claim.case_id, claim.repeat] = size.get((claim.case_id, claim.repeat), 0) + 1
    rows: dict[tuple[str, int], list[tuple[int, bool, str]]] = {}
    for claim, human in zip(found.claims, found.human, strict=True):
        row = (human, claim.supported, claim.source)
        rows.setdefault((claim.case_id, claim.repeat), []).append(row)
    whole = [row for answer, row in rows.items() if len(row) == size[answer]]
    if not whole or max(size.values()) < 2:
        return None
    clusters: dict[str, list[tuple[int, int]]] = {}
    for one in whole:
        people = _grade(sum(human for human, _, _ in one), len(one))
        judge = _grade(sum(said for _, said, _ in one), len(one))
        clusters.setdefault(one[0][2], []).append((people, judge))

    def kappa(units: list[tuple[int, int]]) -> float | None:
        return weighted_kappa([a for a, _ in units], [b for _, b in units], SCALE)

    interval = clustered_interval(
        list(clusters.values()), kappa, generator(draws.seed, "answers"), draws.resamples
    )
    return {
        "n": len(whole),
        "weighted_kappa": kappa([unit for units in clusters.values() for unit in units]),
        "ci95": None if interval is None else list(interval),
        "too_few": len(whole) < MIN_CLASS,
    }


def _grade(supported: int, claims: int) -> int:
    """5 x share, rounded half up to a whole grade."""
    return (10 * supported + claims) // (2 * claims)


def threshold(found: Pairs, draws: Draws) -> dict[str, Any] | None:
    """The cut that fits best on half of the sources, and what it does on the other half.

    None without scores, with one source, or when a half lacks a class.
    """
    scores = found.scores()
    if scores is None:
        return None
    fit = calibration.halves(found.sources, generator(draws.seed, "halves"))
    rows = list(zip(found.human, scores, found.judge, fit, strict=True))
    tested = [(human, score, said) for human, score, said, first in rows if not first]
    cut = calibration.best_threshold(
        [human for human, _, _, first in rows if first],
        [score for _, score, _, first in rows if first],
    )
    labels = [human for human, _, _ in tested]
    if cut is None or len(set(labels)) < 2:
        return None
    there = labelfit.balanced_accuracy(labels, [score >= cut for _, score, _ in tested])
    now = labelfit.balanced_accuracy(labels, [said for _, _, said in tested])
    return {
        "cut": cut,
        "fit_n": len(rows) - len(tested),
        "test_n": len(tested),
        "test_balanced_accuracy": there,
        "present_balanced_accuracy": now,
    }


def slices(found: Pairs) -> dict[str, dict[str, Any]]:
    """The same table for each value of each dimension."""
    named = sorted({name for claim in found.claims for name in claim.slices})
    result: dict[str, dict[str, Any]] = {}
    for name in named:
        values = sorted({claim.slices[name] for claim in found.claims if name in claim.slices})
        result[name] = {value: _slice(found.where(partial(_has, name, value))) for value in values}
    return result


def _has(name: str, value: str, claim: JudgedClaim) -> bool:
    return claim.slices.get(name) == value


def _slice(found: Pairs) -> dict[str, Any]:
    table = calibration.confusion(found.human, found.judge)
    enough = min(table.supported, table.unsupported) >= LEAST_IN_SLICE
    names = ("specificity", "sensitivity", "balanced_accuracy", "kappa")
    figures = {name: getattr(table, name) if enough else None for name in names}
    return {
        "n": len(found.human),
        "unsupported": int(table.unsupported),
        "agree": int(table.supported_supported + table.not_not),
    } | figures


def disagreements(found: Pairs, limit: int) -> list[dict[str, Any]]:
    """Where the judge is wrong: passed though unsupported first, the surest first."""
    wrong = [
        (claim, human)
        for claim, human in zip(found.claims, found.human, strict=True)
        if bool(human) != claim.supported
    ]

    def badness(pair: tuple[JudgedClaim, int]) -> tuple[int, float, Key]:
        claim, human = pair
        sure = 0.5 if claim.score is None else claim.score
        return human, sure if human else -sure, claim.key

    return [
        {
            "case_id": claim.case_id,
            "repeat": claim.repeat,
            "claim_id": claim.claim_id,
            "question": claim.question,
            "claim": claim.claim,
            "human": "supported" if human else "not_supported",
            "verdict": claim.verdict,
            "score": claim.score,
            "quote": claim.quote,
            "reason": claim.reason,
        }
        for claim, human in sorted(wrong, key=badness)[:limit]
    ]
