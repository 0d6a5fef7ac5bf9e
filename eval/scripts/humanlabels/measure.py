"""Runs the metrics over labelled rows and says how far they agree with people. No files here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from humanlabels.rows import AnswerPair, LabelledAbstention, LabelledClaim, RatedAnswer
from ragmetrics import abstention, answermatch, groundedness, labelfit, numbercheck
from ragmetrics.casescores import Passage
from ragmetrics.claims import Support, prepare, score_claim

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmetrics.labelfit import Statistic

    Encode = Callable[[Sequence[str]], NDArray[np.float32]]

NAIVE_THRESHOLD = 0.4
MIN_CLASS = 30
"""Rows of either class below which a figure is printed with a warning."""


@dataclass(frozen=True, slots=True)
class Draws:
    """How intervals are drawn: the same seed gives the same interval."""

    resamples: int = labelfit.RESAMPLES
    seed: int = 0

    def interval(self, groups: Sequence[str], statistic: Statistic) -> list[float] | None:
        """The interval of a statistic over groups, as a list for JSON."""
        import numpy as np

        found = labelfit.interval(
            groups, statistic, np.random.default_rng(self.seed), self.resamples
        )
        return None if found is None else list(found)


@dataclass(frozen=True, slots=True)
class _Text:
    """A context as a retrieved chunk."""

    chunk_id: str
    text: str
    doc_id: str | None = None
    rel_path: str | None = None
    truncated: bool = False


def score_row(row: LabelledClaim) -> Support | None:
    """The support scorer on one row; None for a claim without a content word."""
    return score_claim(
        row.claim,
        [prepare(text) for text in row.contexts],
        question=numbercheck.index(row.question) if row.question else None,
        lead=row.lead,
    )


def measure_support(
    rows: Iterable[LabelledClaim],
    draws: Draws,
    encode: Encode | None = None,
    naive_rows: int = 0,
) -> dict[str, Any]:
    """AUROC and balanced accuracy of the support scorer, precision of its number flags.

    AUROC ranks by score (0 when a number vetoes), the positive class being "supported"; balanced
    accuracy is that of the scorer's own verdicts. With ``encode`` the rule "cosine of the claim and
    a whole chunk >= 0.4" is measured beside it on the first ``naive_rows`` rows of a seeded shuffle
    of the groups.
    """
    every = list(rows)
    kept = [(row, found) for row in every if (found := score_row(row)) is not None]
    labels = [row.supported for row, _ in kept]
    groups = [row.group for row, _ in kept]
    result: dict[str, Any] = {
        "n": len(kept),
        "skipped": len(every) - len(kept),
        "groups": len(set(groups)),
        "unsupported": labels.count(0),
    }
    strengths = [found.strength for _, found in kept]
    verdicts = [found.supported for _, found in kept]
    result |= _fit(labels, strengths, verdicts, groups, draws)
    flagged = [row.supported for row, found in kept if found.vetoing]
    result["number_flags"] = len(flagged)
    result["number_flag_precision"] = flagged.count(0) / len(flagged) if flagged else None
    if encode is not None:
        sample = _sample([row for row, _ in kept], naive_rows, draws.seed)
        result["naive"] = _naive(sample, encode, draws)
    return result


def _fit(
    labels: Sequence[int],
    scores: Sequence[float],
    verdicts: Sequence[bool],
    groups: Sequence[str],
    draws: Draws,
) -> dict[str, Any]:
    return {
        "auroc": labelfit.auroc(labels, scores),
        "auroc_ci95": draws.interval(groups, lambda w: labelfit.auroc(labels, scores, w)),
        "balanced_accuracy": labelfit.balanced_accuracy(labels, verdicts),
        "balanced_accuracy_ci95": draws.interval(
            groups, lambda w: labelfit.balanced_accuracy(labels, verdicts, w)
        ),
        "too_few": min(labels.count(0), labels.count(1)) < MIN_CLASS,
    }


def _sample(rows: Sequence[LabelledClaim], size: int, seed: int) -> list[LabelledClaim]:
    """Whole groups in a seeded order until ``size`` rows are reached; all rows for size 0."""
    import numpy as np

    if not size or len(rows) <= size:
        return list(rows)
    order = {
        name: place
        for place, name in enumerate(
            np.random.default_rng(seed).permutation(sorted({row.group for row in rows})).tolist()
        )
    }
    return sorted(rows, key=lambda row: order[row.group])[:size]


def _naive(rows: Sequence[LabelledClaim], encode: Encode, draws: Draws) -> dict[str, Any]:
    texts = list(dict.fromkeys(text for row in rows for text in (row.claim, *row.contexts)))
    vectors = encode(texts)
    place = {text: number for number, text in enumerate(texts)}
    best = [
        max(
            (float(vectors[place[row.claim]] @ vectors[place[text]]) for text in row.contexts),
            default=0.0,
        )
        for row in rows
    ]
    labels, groups = [row.supported for row in rows], [row.group for row in rows]
    verdicts = [cosine >= NAIVE_THRESHOLD for cosine in best]
    return {"n": len(rows)} | _fit(labels, best, verdicts, groups, draws)


def measure_ratings(rows: Iterable[RatedAnswer], draws: Draws) -> dict[str, Any]:
    """Spearman correlation of mean_claim_support and of claim_support_rate with people's ratings.

    Answers that abstain or claim nothing have no score and are counted apart.
    """
    every = list(rows)
    found: list[tuple[float, float, float, str]] = []
    for row in every:
        chunks: list[Passage] = [_Text(str(n), text) for n, text in enumerate(row.contexts)]
        scores = groundedness.score_case(
            row.answer,
            chunks,
            question=row.question,
            abstained=abstention.detect(row.answer).abstained,
        ).values
        mean, rate = scores["mean_claim_support"], scores["claim_support_rate"]
        if mean is not None and rate is not None:
            found.append((mean, rate, row.rating, row.group))
    means = [mean for mean, _, _, _ in found]
    rates = [rate for _, rate, _, _ in found]
    ratings = [rating for _, _, rating, _ in found]
    groups = [group for _, _, _, group in found]
    return {
        "n": len(found),
        "not_applicable": len(every) - len(found),
        "spearman_mean_claim_support": labelfit.spearman(means, ratings),
        "spearman_mean_claim_support_ci95": draws.interval(
            groups, lambda w: labelfit.spearman(means, ratings, w)
        ),
        "spearman_claim_support_rate": labelfit.spearman(rates, ratings),
    }


def measure_pairs(rows: Iterable[AnswerPair], draws: Draws) -> dict[str, Any]:
    """Pearson correlation of the difference in answer_overlap with people's overall preference."""
    found: list[tuple[float, float, str]] = []
    for row in rows:
        first = answermatch.overlap(row.first, row.reference)
        second = answermatch.overlap(row.second, row.reference)
        if first is not None and second is not None:
            found.append((second[0] - first[0], row.preference, row.group))
    gains = [gain for gain, _, _ in found]
    wanted = [preference for _, preference, _ in found]
    groups = [group for _, _, group in found]
    return {
        "n": len(found),
        "pearson_answer_overlap": labelfit.pearson(gains, wanted),
        "pearson_answer_overlap_ci95": draws.interval(
            groups, lambda w: labelfit.pearson(gains, wanted, w)
        ),
    }


def measure_abstention(rows: Iterable[LabelledAbstention], draws: Draws) -> dict[str, Any]:
    """Precision, recall and F1 of the phrase detector, the positive class being "abstained"."""
    every = list(rows)
    labels = [row.abstained for row in every]
    verdicts = [abstention.detect(row.answer).abstained for row in every]
    precision, recall, f1 = labelfit.precision_recall_f1(labels, verdicts)
    return {
        "n": len(every),
        "abstained": labels.count(1),
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "f1_ci95": draws.interval(
            [row.group for row in every],
            lambda w: labelfit.precision_recall_f1(labels, verdicts, w)[2],
        ),
    }
