"""What people say of watched answers: the share that is rated bad, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ragmetrics.stats.intervals import Interval, effective_wilson
from records.feedback import Rating, rating_of, thumb_of
from records.metrics import rounded
from watching.summary import FEEDBACK, STEPS
from watching.trace_index import TraceIndex


@dataclass(frozen=True, slots=True)
class Feedback:
    """How many answers are rated, how many of them bad, and the 95 % interval of that share.

    Answers that the same user rated, else those of one session, are one cluster. ``interval``: None
    where no answer is rated.
    """

    rated: int
    bad: int
    interval: Interval | None

    @property
    def share(self) -> float | None:
        return self.bad / self.rated if self.rated else None

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        interval = self.interval
        return {
            "rated": self.rated,
            "bad": self.bad,
            "share": rounded(self.share),
            "ci95": None if interval is None else rounded(interval.ends),
            "clusters": None if interval is None else interval.units,
        }


def rate_answers(index: TraceIndex) -> Feedback:
    """Put what people say by now into the figure of each counted answer, and sum it up."""
    bad: dict[int, bool] = {}
    clusters: list[int] = []
    for key, group in groupby(index.ratings(STEPS), key=lambda row: row[0].key):
        rows = list(group)
        score = rating_of(
            Rating(str(row.name), row.score, user=str(row.rater or ""), at=row.at)
            for row, _ in rows
        )
        if score is not None:
            bad[key] = thumb_of(score) is False
            raters, session = {row.rater for row, _ in rows}, rows[0][1]
            clusters.append((len(raters) == 1 and min(raters)) or session or key)
    index.mark(FEEDBACK, bad)
    values = [float(value) for value in bad.values()]
    if not values:
        return Feedback(0, 0, None)
    from ragmetrics.stats.arrays import np

    interval = effective_wilson(np.array(values), 0.0, 1.0, clusters)
    return Feedback(len(bad), sum(bad.values()), interval)
