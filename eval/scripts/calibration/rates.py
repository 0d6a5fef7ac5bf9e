"""The run's rate of supported claims, as judged and with the judge's errors taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibration.claims import JudgedClaim, Key
from ragmetrics import calibration
from ragmetrics.calibration import MIN_CLASS, Confusion, Estimate

LEAST_FOR_MEAN = 30
"""Labels below which no corrected mean of the run is given."""


def corrected(
    claims: Sequence[JudgedClaim],
    human: Mapping[Key, int],
    table: Confusion,
    metric: str = "groundedness",
) -> dict[str, Any]:
    """The run's rates as the judge sees them, and as people would (with the judge's errors out).

    ``claim_rate``: of all claims or facts. ``faithfulness``, of facts ``fact_recall``: of cases.
    """
    judged = [float(claim.supported) for claim in claims]
    labels: list[float | None] = [human.get(claim.key) for claim in claims]
    sources = [claim.source for claim in claims]
    weights = [claim.weight for claim in claims]
    rate = sum(judged) / len(judged) if judged else None
    total = sum(weights)
    mean = sum(w * one for w, one in zip(weights, judged, strict=True)) / total if total else None
    result: dict[str, Any] = {
        "claim_rate": rate,
        **_of_cases(mean, metric),
        "rogan_gladen": None,
        "ppi": None,
        "ppi_plus": None,
        "labels_only": None,
    }
    sens, spec = table.sensitivity, table.specificity
    few = min(table.supported, table.unsupported) < MIN_CLASS
    if rate is not None and sens is not None and spec is not None and not few:
        result["rogan_gladen"] = _row(
            calibration.rogan_gladen(
                rate, len(judged), sens, int(table.supported), spec, int(table.unsupported)
            )
        )
    if sum(label is not None for label in labels) >= LEAST_FOR_MEAN:
        powers = {"ppi": 1.0, "ppi_plus": None, "labels_only": 0.0}
        if None not in labels:
            powers = {"labels_only": 0.0}  # nothing is left to correct
        for name, power in powers.items():
            result[name] = _row(
                calibration.prediction_powered(
                    judged, labels, sources, weights=weights, power=power
                )
            )
    return result


def _of_cases(mean: float | None, metric: str) -> dict[str, float | None]:
    if metric == "correctness":
        return {"fact_recall": mean}
    return {"faithfulness": mean, "groundedness": None if mean is None else 5 * mean}


def _row(found: Estimate | None) -> dict[str, Any] | None:
    if found is None:
        return None
    weight = {} if found.weight is None else {"lambda": found.weight}
    return {"mean": found.mean, "ci95": [found.low, found.high]} | weight
