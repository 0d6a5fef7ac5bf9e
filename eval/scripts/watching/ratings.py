"""What people say of watched answers: the share that is rated bad, with its interval."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ragmetrics.stats.arrays import np
from ragmetrics.stats.intervals import effective_wilson
from records.feedback import Rating, rating_of, thumb_of
from records.metrics import rounded
from watching.summary import FEEDBACK, STEPS
from watching.trace_index import TraceIndex


def rate_answers(index: TraceIndex) -> dict[str, Any]:
    """Put what people say by now into the figure of each counted answer; how many answers are
    ``rated``, how many of these ``bad``, their ``share`` and its 95 % interval.

    Answers that the same user rated, else those of one session, are a cluster of the interval.
    """
    bad: dict[int, bool] = {}
    clusters: list[int] = []
    for key, group in groupby(index.ratings(STEPS), key=lambda row: row[0].key):
        rows = list(group)
        said = (Rating(str(r.name), r.score, user=str(r.rater), at=r.at) for r, _ in rows)
        if (score := rating_of(said)) is not None:
            bad[key] = thumb_of(score) is False
            raters = {rating.rater for rating, _ in rows}
            clusters.append((len(raters) == 1 and min(raters)) or rows[0][1] or key)
    index.mark(FEEDBACK, bad)
    values = np.array([*bad.values()], dtype=float)
    interval = effective_wilson(values, 0.0, 1.0, clusters) if bad else None
    feedback: dict[str, Any] = {
        "rated": len(bad),
        "bad": sum(bad.values()),
        "share": rounded(float(values.mean())) if bad else None,
        "ci95": interval and rounded(interval.ends),
        "clusters": interval and interval.units,
    }
    return feedback
