"""Fits the claim support model on the open sets, and measures it with each family left out.

The three parts of RAGTruth are one family: its answers share their sources and their writers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragmetrics import abstention
from ragmetrics.claims import extract, score_claim
from ragmetrics.stats import agreement
from ragmetrics.support import BINS, FEATURES, UNSURE, features, is_denied, unknown_names
from ragmetrics.support_model import THRESHOLD
from ragmetrics.text import numbers
from ragmetrics.windows import prepare
from records.jsonl import read_rows
from research import metrics
from validation.human import FILE, SUPPORT, LabelledClaim

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STRENGTH = 0.006
"""Inverse of the regularisation of the logistic regression, over standardised features."""

_DIGITS = 4
"""Decimals that are kept: rounding makes the file the same wherever it is made."""

_GRID = tuple(round(0.4 + 0.01 * step, 2) for step in range(31))


@dataclass(frozen=True, slots=True)
class LabelledSetFeatures:
    """Features and labels of one set; ``vetoed`` marks rows that a number vetoes."""

    key: str
    family: str
    values: NDArray[np.float64]
    labels: NDArray[np.int64]
    vetoed: NDArray[np.bool_]


def _row_features(row: LabelledClaim) -> tuple[tuple[float, ...], bool] | None:
    chunks = [prepare(text) for text in row.contexts]
    asked = numbers.index(row.question) if row.question else None
    # The model learns from words as they stand: the few amounts in other words would only move it
    # by chance.
    words = score_claim(row.claim, chunks, question=asked, lead=row.lead, restated=False)
    if words is None:
        return None
    names = unknown_names(row.claim, chunks)
    values = features(row.claim, chunks, words, question=asked, lead=row.lead, names=names)
    if words.chunk is None or words.vetoing:
        return values, True
    return values, is_denied(row.claim, chunks[words.chunk], words, row.lead)


def read_sets(data: Path) -> list[LabelledSetFeatures]:
    """The open sets that are there, as features."""
    import numpy as np

    sets = []
    for labelled in SUPPORT:
        if not labelled.present(data):
            continue
        rows = [(row, made) for row in labelled.load(data) if (made := _row_features(row))]
        sets.append(
            LabelledSetFeatures(
                labelled.key,
                labelled.folder,
                np.array([made[0] for _, made in rows], dtype=np.float64),
                np.array([row.supported for row, _ in rows], dtype=np.int64),
                np.array([made[1] for _, made in rows], dtype=np.bool_),
            )
        )
    return sets


def fit(sets: Sequence[LabelledSetFeatures]) -> tuple[dict[str, float], float]:
    """Coefficients by feature and the intercept, rounded.

    Every set weighs the same, and so do the supported and the unsupported claims of a set. Rows
    under a veto are left out: the veto decides them.
    """
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    values = np.vstack([item.values[~item.vetoed] for item in sets])
    labels = np.concatenate([item.labels[~item.vetoed] for item in sets])
    weights = np.concatenate([_weights(item.labels[~item.vetoed]) for item in sets])
    weights *= len(labels) / weights.sum()
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-9
    model = LogisticRegression(C=_STRENGTH, max_iter=1000, tol=1e-8)
    model.fit((values - mean) / spread, labels, sample_weight=weights)
    slopes = model.coef_[0] / spread
    coefficients = {
        name: round(float(slope), _DIGITS) for name, slope in zip(FEATURES, slopes, strict=True)
    }
    return coefficients, round(float(model.intercept_[0] - slopes @ mean), _DIGITS)


def _weights(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    import numpy as np

    held = np.maximum(1, (labels == 1).sum())
    failed = np.maximum(1, (labels == 0).sum())
    weights: NDArray[np.float64] = np.where(labels == 1, 0.5 / held, 0.5 / failed)
    return weights


def probabilities(
    item: LabelledSetFeatures, coefficients: Mapping[str, float], intercept: float
) -> NDArray[np.float64]:
    """What the model ranks by: its probability, 0 under a veto."""
    import numpy as np

    slopes = np.array([coefficients[name] for name in FEATURES])
    result: NDArray[np.float64] = 1 / (1 + np.exp(-(item.values @ slopes + intercept)))
    result[item.vetoed] = 0.0
    return result


def strengths(
    sets: Sequence[LabelledSetFeatures], coefficients: Mapping[str, float], intercept: float
) -> dict[str, list[float]]:
    """Of each set, by title: the shares of its claims below .1, .2, ... .9."""
    import numpy as np

    titles = {labelled.key: labelled.title for labelled in SUPPORT}
    edges = np.arange(1, BINS) / BINS
    return {
        titles[item.key]: [
            round(float((probabilities(item, coefficients, intercept) < edge).mean()), 3)
            for edge in edges
        ]
        for item in sets
    }


def left_out(sets: Sequence[LabelledSetFeatures]) -> dict[str, NDArray[np.float64]]:
    """The probabilities of each set by a model that never saw its family, by key."""
    result = {}
    for family in sorted({item.family for item in sets}):
        coefficients, intercept = fit([item for item in sets if item.family != family])
        for item in sets:
            if item.family == family:
                result[item.key] = probabilities(item, coefficients, intercept)
    return result


def figures(
    sets: Sequence[LabelledSetFeatures], ranked: Mapping[str, Any], threshold: float
) -> dict[str, dict[str, float | None]]:
    """AUROC and balanced accuracy by set."""
    return {
        item.key: {
            "auroc": agreement.auroc(item.labels.tolist(), ranked[item.key].tolist()),
            "balanced_accuracy": agreement.balanced_accuracy(
                item.labels.tolist(), (ranked[item.key] >= threshold).tolist()
            ),
        }
        for item in sets
    }


def left_out_figures(data: Path) -> dict[str, dict[str, float | None]]:
    """Figures of each set by a model that never saw its family, at the threshold that ships.

    Empty for fewer than two families.
    """
    sets = read_sets(data)
    if len({item.family for item in sets}) < 2:
        return {}
    return figures(sets, left_out(sets), THRESHOLD)


def ragtruth_answers(data: Path, draws: metrics.Resampling) -> dict[str, Any]:
    """Whether the answers of RAGTruth hold a hallucination, by a model that never saw them.

    An answer is flagged when a claim surely lacks support, as ``answer_supported`` says; beside it
    when any claim is not supported. Abstentions are not flagged. Empty without the set, or
    without others.
    """
    import numpy as np

    others = [item for item in read_sets(data) if item.family != "ragtruth"]
    path = data / "ragtruth" / FILE
    if not others or not path.is_file():
        return {}
    coefficients, intercept = fit(others)
    labels, lowest, groups = [], [], []
    for _, row in read_rows(path):
        made = [
            made
            for claim in extract(row["answer"]).claims
            if claim.type != "general"
            and (made := _row_features(_as_claim(row, claim.text, claim.lead))) is not None
        ]
        item = LabelledSetFeatures(
            "answer",
            "ragtruth",
            np.array([values for values, _ in made]).reshape(-1, len(FEATURES)),
            np.zeros(len(made), dtype=np.int64),
            np.array([vetoed for _, vetoed in made], dtype=np.bool_),
        )
        silent = not made or abstention.detect(row["answer"]).abstained
        strengths = probabilities(item, coefficients, intercept)
        lowest.append(1.0 if silent else float(strengths.min()))
        labels.append(int(row["hallucinated"]))
        groups.append(str(row["group"]))
    return {"n": len(labels), "hallucinated": sum(labels)} | {
        name: metrics.detection(labels, [value < limit for value in lowest], groups, draws)
        for name, limit in (("surely", UNSURE[0]), ("any", THRESHOLD))
    }


def _as_claim(row: Mapping[str, Any], text: str, lead: str) -> LabelledClaim:
    contexts = tuple(row["contexts"])
    return LabelledClaim(text, contexts, 0, str(row["group"]), row.get("question") or "", lead)


def mean(rows: Mapping[str, Mapping[str, float | None]], name: str) -> float:
    """The mean over sets of a figure that all of them have."""
    values = [row[name] or 0.0 for row in rows.values()]
    return sum(values) / len(values)


def best_threshold(sets: Sequence[LabelledSetFeatures], ranked: Mapping[str, Any]) -> float:
    """The threshold with the best mean balanced accuracy of the left-out probabilities."""
    return max(_GRID, key=lambda t: mean(figures(sets, ranked, t), "balanced_accuracy"))
