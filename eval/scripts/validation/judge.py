"""Builds the report of a calibration as plain data, for --json and calibration.json."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from clients.http import ask_all
from judging import prompt_files
from judging.kinds import Material
from judging.opinion import Opinion, ask
from judging.types import Judge
from ragmetrics.stats import agreement as stats_agreement
from ragmetrics.stats import calibration
from ragmetrics.stats.agreement import clustered_interval, weighted_kappa
from ragmetrics.stats.arrays import Floats
from ragmetrics.stats.calibration import MIN_CLASS, Confusion, CorrectedMean
from ragmetrics.stats.means import generator
from records.claim_labels import ClaimDraw
from records.errors import StorageError
from records.rubrics import PREFIX
from records.verdicts import KINDS
from validation.claims import (
    JudgedClaim,
    JudgedClaims,
    JudgedContext,
    Key,
    claim_slices,
    support_score,
)
from validation.drawing import LabelWeights, label_weights, run_mean
from validation.human import FILE, SUPPORT, LabelledClaim, read_own
from validation.rubrics import scale_report

RESAMPLES = stats_agreement.RESAMPLES

LEAST_IN_SLICE = 10
"""Labels of either class below which a slice shows only its counts."""

SCALE = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Draws:
    """How intervals and halves are drawn: the same seed gives the same figures."""

    resamples: int = RESAMPLES
    seed: int = 0

    def interval(
        self, name: str, groups: Sequence[str], statistic: stats_agreement.Statistic
    ) -> list[float] | None:
        bounds = stats_agreement.interval(
            groups, statistic, generator(self.seed, name), self.resamples
        )
        return None if bounds is None else list(bounds)


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Labelled claims with people's verdict beside them."""

    claims: list[JudgedClaim]
    human: list[int]
    weights: list[float]
    """How many labels each counts for, by how the claims were drawn; their mean is 1."""

    @property
    def weight(self) -> Floats:
        """The weights as an array."""
        import numpy as np

        return np.asarray(self.weights, dtype=float)

    def table(self) -> Confusion:
        """The confusion of people and judge, weighted."""
        return calibration.confusion(self.human, self.judge, self.weight)

    def sizes(self) -> tuple[float, float]:
        """Effective numbers of labels of the supported and of the unsupported claims."""
        weight, label = self.weight, self.human
        return tuple(
            calibration.effective_size(weight[[human == value for human in label]])
            for value in (1, 0)
        )  # type: ignore[return-value]

    @property
    def judge(self) -> list[bool]:
        return [claim.supported for claim in self.claims]

    @property
    def sources(self) -> list[str]:
        return [claim.source for claim in self.claims]

    def scores(self) -> list[float] | None:
        """The judge's scores; None when it gives none."""
        scores = [claim.score for claim in self.claims if claim.score is not None]
        return scores if scores and len(scores) == len(self.claims) else None

    def where(self, condition: Callable[[JudgedClaim], bool]) -> LabelledPairs:
        rows = [
            row
            for row in zip(self.claims, self.human, self.weights, strict=True)
            if condition(row[0])
        ]
        return LabelledPairs(
            [claim for claim, _, _ in rows],
            [human for _, human, _ in rows],
            [weight for _, _, weight in rows],
        )


def _labelled_pairs(
    claims: Sequence[JudgedClaim], human: Mapping[Key, int], weights: Mapping[Key, float]
) -> LabelledPairs:
    """The claims that people decided, in the order of the run."""
    labelled = [claim for claim in claims if claim.key in human]
    return LabelledPairs(
        labelled,
        [human[claim.key] for claim in labelled],
        [weights[claim.key] for claim in labelled],
    )


def report(
    claims: Sequence[JudgedClaim],
    human: Mapping[Key, int],
    draws: Draws,
    worst: int,
    metric: str = "groundedness",
    drawn: Mapping[Key, ClaimDraw] | None = None,
    words: Mapping[Key, str] | None = None,
) -> dict[str, Any]:
    """Compute every figure; None where undefined, ``too_few`` where it is not yet meaningful.

    ``claims`` may be those of several runs: judge and people are compared on all, and the corrected
    means are of the run that names no other. ``drawn``: how the labelled claims were chosen; by
    that every figure but the counts is weighted. ``words``: of a rubric, people's labels of its
    scale; ``MIN_CLASS`` of them are enough, whatever they say.
    """
    labelled = [claim.key for claim in claims if claim.key in human]
    design = label_weights(claims, labelled, drawn or {})
    pairs = _labelled_pairs(claims, human, design.weights)
    table = calibration.confusion(pairs.human, pairs.judge)
    scale = None
    if words:
        scale = scale_report(claims, words, design.weights, draws.seed, draws.resamples)
    rarer = min(table.supported, table.unsupported)
    few = (len(pairs.human) if metric.startswith(PREFIX) else rarer) < MIN_CLASS
    figures = None if few else agreement_figures(pairs, draws)
    if figures is not None and scale is not None and len(scale["labels"]) > 2:
        figures["kappa"] = scale["kappa"]
    own = [claim for claim in claims if not claim.run]
    return {
        "n": len(pairs.human),
        "sources": len(set(pairs.sources)),
        "cases": len({claim.key[0] for claim in pairs.claims}),
        "judged_claims": len(claims),
        "weighted": not design.equal,
        "supported": int(table.supported),
        "unsupported": int(table.unsupported),
        "too_few": few,
        "confusion": confusion_counts(table),
        "prevalence": pairs.table().prevalence,
        "figures": figures,
        **({"scale": scale} if scale else {}),
        "answers": _answers(pairs, claims, draws) if design.equal else None,
        "threshold": None if few else _threshold(pairs, draws),
        "by": _slices(pairs),
        "corrected": corrected_mean(own, human, None if few else pairs, design, metric),
        "worst": _disagreements(pairs, worst),
    }


def confusion_counts(table: Confusion) -> dict[str, int]:
    """The four cells; people's word first, then the judge's."""
    return {
        "supported_supported": int(table.true_positive),
        "supported_not": int(table.false_negative),
        "not_supported": int(table.false_positive),
        "not_not": int(table.true_negative),
    }


def agreement_figures(pairs: LabelledPairs, draws: Draws) -> dict[str, Any]:
    """Rates, kappa and AUROC with intervals over source documents."""
    human, judge, sources, counts = pairs.human, pairs.judge, pairs.sources, pairs.weight
    table, sizes = pairs.table(), pairs.sizes()

    def drawn(name: str) -> list[float] | None:
        def statistic(times: Floats) -> float | None:
            resampled = calibration.confusion(human, judge, times * counts)
            value: float | None = getattr(resampled, name)
            return value

        return draws.interval(name, sources, statistic)

    names = ("specificity", "sensitivity", "balanced_accuracy", "kappa", "accuracy")
    rows: dict[str, Any] = {
        name: {
            "value": getattr(table, name),
            "ci95": _wider(drawn(name), calibration.interval_of_claims(table, name, sizes)),
        }
        for name in names
    }
    scores = pairs.scores()
    rows["auroc"] = {"value": None, "ci95": None}
    if scores is not None:
        rows["auroc"] = {
            "value": stats_agreement.auroc(human, scores, counts),
            "ci95": draws.interval(
                "auroc",
                sources,
                lambda times: stats_agreement.auroc(human, scores, times * counts),
            ),
        }
    return rows


def _wider(drawn: list[float] | None, of_claims: calibration.Interval | None) -> list[float] | None:
    """The wider ends of two intervals: draws see that sources differ, the other that n is small."""
    if drawn is None or of_claims is None:
        return drawn if of_claims is None else list(of_claims)
    return [min(of_claims[0], drawn[0]), max(of_claims[1], drawn[1])]


def _answers(
    pairs: LabelledPairs, claims: Sequence[JudgedClaim], draws: Draws
) -> dict[str, Any] | None:
    """Whole answers on the scale 0 to 5, quadratic weighted kappa: where every claim is labelled.

    None when no answer is, and when no answer has two claims: then it is the kappa of the claims.
    """
    size: dict[tuple[str, int], int] = {}
    for claim in claims:
        size[claim.case_id, claim.repeat] = size.get((claim.case_id, claim.repeat), 0) + 1
    rows: dict[tuple[str, int], list[tuple[int, bool, str]]] = {}
    for claim, human in zip(pairs.claims, pairs.human, strict=True):
        row = (human, claim.supported, claim.source)
        rows.setdefault((claim.case_id, claim.repeat), []).append(row)
    whole = [row for answer, row in rows.items() if len(row) == size[answer]]
    if not whole or max(size.values()) < 2:
        return None
    clusters: dict[str, list[tuple[int, int]]] = {}
    for labels_of_answer in whole:
        people = _grade(sum(human for human, _, _ in labels_of_answer), len(labels_of_answer))
        judge = _grade(
            sum(supported for _, supported, _ in labels_of_answer), len(labels_of_answer)
        )
        clusters.setdefault(labels_of_answer[0][2], []).append((people, judge))

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


def _threshold(pairs: LabelledPairs, draws: Draws) -> dict[str, Any] | None:
    """The cut that fits best on half of the sources, and what it does on the other half.

    None without scores, with one source, or when a half lacks a class.
    """
    scores = pairs.scores()
    if scores is None:
        return None
    fit = calibration.halves(pairs.sources, generator(draws.seed, "halves"))
    rows = list(zip(pairs.human, scores, pairs.judge, fit, strict=True))
    tested = [(human, score, decided) for human, score, decided, first in rows if not first]
    counts = pairs.weight
    cut = calibration.best_threshold(
        [human for human, _, _, first in rows if first],
        [score for _, score, _, first in rows if first],
        counts[fit],
    )
    labels = [human for human, _, _ in tested]
    if cut is None or len(set(labels)) < 2:
        return None
    times = counts[[not first for first in fit]]
    there = stats_agreement.balanced_accuracy(
        labels, [score >= cut for _, score, _ in tested], times
    )
    now = stats_agreement.balanced_accuracy(labels, [decided for _, _, decided in tested], times)
    return {
        "cut": cut,
        "fit_n": len(rows) - len(tested),
        "test_n": len(tested),
        "test_balanced_accuracy": there,
        "present_balanced_accuracy": now,
    }


def _slices(pairs: LabelledPairs) -> dict[str, dict[str, Any]]:
    """The same table for each value of each dimension."""
    named = sorted({name for claim in pairs.claims for name in claim.slices})
    result: dict[str, dict[str, Any]] = {}
    for name in named:
        values = sorted({claim.slices[name] for claim in pairs.claims if name in claim.slices})
        result[name] = {value: _slice(pairs.where(partial(_has, name, value))) for value in values}
    return result


def _has(name: str, value: str, claim: JudgedClaim) -> bool:
    return claim.slices.get(name) == value


def _slice(pairs: LabelledPairs) -> dict[str, Any]:
    table = calibration.confusion(pairs.human, pairs.judge)
    enough = min(table.supported, table.unsupported) >= LEAST_IN_SLICE
    names = ("specificity", "sensitivity", "balanced_accuracy", "kappa")
    figures = {name: getattr(pairs.table(), name) if enough else None for name in names}
    return {
        "n": len(pairs.human),
        "unsupported": int(table.unsupported),
        "agree": int(table.true_positive + table.true_negative),
    } | figures


def _disagreements(pairs: LabelledPairs, limit: int) -> list[dict[str, Any]]:
    """Where the judge is wrong: passed though unsupported first, the surest first."""
    wrong = [
        (claim, human)
        for claim, human in zip(pairs.claims, pairs.human, strict=True)
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
            "claim": claim.answer if claim.rubric else claim.claim,
            "human": "supported" if human else "not_supported",
            "verdict": claim.verdict,
            "score": claim.score,
            "quote": claim.quote,
            "reason": claim.reason,
        }
        for claim, human in sorted(wrong, key=badness)[:limit]
    ]


LEAST_FOR_MEAN = 30
"""Labels below which no corrected mean of the run is given."""


def corrected_mean(
    claims: Sequence[JudgedClaim],
    human: Mapping[Key, int],
    pairs: LabelledPairs | None,
    design: LabelWeights,
    metric: str = "groundedness",
) -> dict[str, Any]:
    """The run's rates as the judge sees them, and as people would (with the judge's errors out).

    ``claim_rate``: of all claims or facts. ``faithfulness``, of facts ``fact_recall``: of cases.
    ``stratified`` is the mean of this run's cases alone, the others allow for its cases being a
    sample. ``pairs``: where the judge's errors are known from, None for too few.
    """
    judged = [float(claim.supported) for claim in claims]
    labels: list[float | None] = [human.get(claim.key) for claim in claims]
    sources = [claim.source for claim in claims]
    weights = [claim.weight for claim in claims]
    rate = sum(judged) / len(judged) if judged else None
    total = sum(weights)
    mean = (
        sum(w * judged_value for w, judged_value in zip(weights, judged, strict=True)) / total
        if total
        else None
    )
    result: dict[str, Any] = {
        "claim_rate": rate,
        **_of_cases(mean, metric),
        "stratified": None,
        "rogan_gladen": None,
        "ppi": None,
        "ppi_plus": None,
        "labels_only": None,
    }
    table = None if pairs is None else pairs.table()
    sens, spec = (None, None) if table is None else (table.sensitivity, table.specificity)
    if rate is not None and pairs is not None and sens is not None and spec is not None:
        supported, unsupported = pairs.sizes()
        result["rogan_gladen"] = _row(
            calibration.rogan_gladen(rate, len(judged), sens, supported, spec, unsupported)
        )
    if sum(label is not None for label in labels) >= LEAST_FOR_MEAN:
        powers = {"ppi": 1.0, "ppi_plus": None, "labels_only": 0.0}
        if None not in labels:
            powers = {"labels_only": 0.0}  # nothing is left to correct
        elif design.strata is not None and (exact := run_mean(claims, human, design.strata)):
            result["stratified"] = {
                "mean": exact.mean,
                "ci95": [exact.low, exact.high],
                "lambda": exact.slope,
            }
        draws = [design.weights.get(claim.key, 0.0) for claim in claims]
        for name, power in powers.items():
            result[name] = _row(
                calibration.prediction_powered(
                    judged, labels, sources, weights=weights, draws=draws, power=power
                )
            )
    return result


def _of_cases(mean: float | None, metric: str) -> dict[str, float | None]:
    if metric == "correctness":
        return {"fact_recall": mean}
    if metric.startswith(PREFIX):
        return {metric.removeprefix(PREFIX): mean}
    return {"faithfulness": mean, "groundedness": None if mean is None else 5 * mean}


def _row(estimate: CorrectedMean | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    weight = {} if estimate.weight is None else {"lambda": estimate.weight}
    return {"mean": estimate.mean, "ci95": [estimate.low, estimate.high]} | weight


SETS = {labelled_set.key: labelled_set for labelled_set in SUPPORT}


DATA_VARIABLE = "RAG_EVAL_DATA"
"""The environment variable that names the folder of the known sets."""


def load(path: Path, name: str | None) -> tuple[list[LabelledClaim], Path]:
    """The rows of a file, or of the known set ``name``, and the file behind them.

    Raises StorageError.
    """
    if name is None:
        return read_own(path), path
    if not (data := os.environ.get(DATA_VARIABLE)):
        raise StorageError(
            f"--labels-file {name}: a known set; {DATA_VARIABLE} must name the folder of the sets."
        )
    labelled_set = SETS[name]
    folder = Path(data) / labelled_set.folder
    if not labelled_set.present(Path(data)):
        raise StorageError(f"{folder}: no such folder; {labelled_set.title} belongs there.")
    return list(labelled_set.load(Path(data))), folder / FILE


def drawn(rows: list[LabelledClaim], limit: int | None, seed: int) -> list[LabelledClaim]:
    """At most ``limit`` rows, drawn at random, in their order; all for None."""
    if limit is None or limit >= len(rows):
        return rows
    chosen = generator(seed, "rows").permutation(len(rows))[:limit]
    return [rows[index] for index in sorted(chosen.tolist())]


def judged_rows(
    rows: Iterable[LabelledClaim], judge: Judge, salt: bytes, workers: int
) -> tuple[JudgedClaims, dict[Key, int]]:
    """Every row with the judge's verdict, and people's label of it.

    A row that the judge fails on is counted and left out. A row is a question of its own: a judge
    never sees two of them at once.
    """
    numbered = list(enumerate(rows, 1))

    async def opinion(job: tuple[int, LabelledClaim]) -> tuple[int, LabelledClaim, Opinion]:
        number, row = job
        answer = await ask(judge, KINDS["groundedness"], _material(row), salt=salt)
        return number, row, answer

    answers = ask_all(numbered, opinion, workers, threading.Event())
    opinions = sorted(answers, key=lambda answer: answer[0])
    local = judge.identity.provider == "local"
    claims = [
        _claim(number, row, opinion_of_row, local=local)
        for number, row, opinion_of_row in opinions
        if not opinion_of_row.failure
    ]
    decided = {claim.case_id for claim in claims}
    human = {
        (f"row {number}", 0, "1"): row.supported
        for number, row, _ in opinions
        if f"row {number}" in decided
    }
    prompt = prompt_files.load(KINDS["groundedness"].prompt).id
    prompt_identity = {"name": prompt.name, "version": prompt.version, "sha256": prompt.sha256}
    failed = len(opinions) - len(claims)
    return JudgedClaims(claims, [judge.identity.to_dict()], [prompt_identity], failed), human


def _material(row: LabelledClaim) -> Material:
    contexts = [{"id": f"c{number}", "text": text} for number, text in enumerate(row.contexts, 1)]
    lead = {"lead": row.lead} if row.lead else {}
    return Material(
        question=row.question, contexts=contexts, claims=[{"id": "1", "text": row.claim} | lead]
    )


def _claim(number: int, row: LabelledClaim, opinion: Opinion, *, local: bool) -> JudgedClaim:
    """A row as a claim of a run: its number names the case, its group is the source."""
    (entry,) = opinion.entries
    return JudgedClaim(
        f"row {number}",
        0,
        "1",
        row.claim,
        entry["verdict"],
        support_score(row.claim, list(row.contexts), row.question, row.lead) if local else None,
        question=row.question,
        contexts=tuple(JudgedContext(f"c{n}", "", text) for n, text in enumerate(row.contexts, 1)),
        quote=entry.get("quote") or "",
        reason=entry.get("reason") or "",
        source=row.group,
        slices=claim_slices(None, row.claim),
    )
