"""People's ratings of answers: those in the index, and their share as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from extras.watch.summary import FEEDBACK, STEPS
from extras.watch.trace_index import RatingRow, TraceIndex, marks
from ragmetrics.stats.arrays import np
from ragmetrics.stats.intervals import effective_wilson
from records.feedback import Rating, rating_of, thumb_of
from records.metrics import rounded


def rate_answers(index: TraceIndex) -> dict[str, Any]:
    """Put people's ratings so far into the figure of each counted answer. Return how many answers
    are ``rated``, how many of these ``bad``, their ``share`` and its 95 % interval.

    Answers that the same user rated, else those of one session, are a cluster of the interval.
    """
    bad: dict[int, bool] = {}
    clusters: list[int] = []
    for key, group in groupby(_ratings(index), key=lambda row: row[0].key):
        rows = list(group)
        said = (Rating(str(r.name), r.score, user=str(r.rater), at=r.at) for r, _ in rows)
        if (score := rating_of(said)) is not None:
            bad[key] = thumb_of(score) is False
            raters = {rating.rater for rating, _ in rows}
            clusters.append((len(raters) == 1 and min(raters)) or rows[0][1] or key)
    _mark(index, bad)
    feedback: dict[str, Any] = {"rated": len(bad), "bad": sum(bad.values())}
    feedback |= dict.fromkeys(("share", "ci95", "clusters"))
    if bad:
        values = np.array([*bad.values()], dtype=float)
        interval = effective_wilson(values, 0.0, 1.0, clusters)
        feedback |= {"share": rounded(float(values.mean())), "ci95": rounded(interval.ends)}
        feedback["clusters"] = interval.units
    return feedback


def _ratings(index: TraceIndex) -> list[tuple[RatingRow, int | None]]:
    """The ratings of counted answers, those of a trace together, in the order in which they were
    read, each with the session of its trace. Left out: what is on no known scale, or rates a step
    on the way to the answer."""
    if index.database.execute("SELECT 1 FROM ratings WHERE key = 0").fetchone():
        with index.transaction():  # Phoenix names a span and no trace
            index.database.execute(
                "UPDATE OR REPLACE ratings SET key = s.key FROM (SELECT key, span FROM spans "
                "WHERE span IN (SELECT span FROM ratings WHERE key = 0)) s "
                "WHERE ratings.key = 0 AND ratings.span = s.span"
            )
    query = (
        "SELECT r.*, t.session FROM ratings r JOIN traces t ON t.key = r.key WHERE t.day >= 0 "
        "AND r.score IS NOT NULL AND (r.bare IS NULL OR r.name NOT IN "
        "(SELECT name FROM ratings WHERE bare NOT IN (0, 1))) AND NOT EXISTS (SELECT 1 FROM "
        f"spans s WHERE s.key = r.key AND s.span = r.span AND s.kind IN ({marks(STEPS)})) "
        "ORDER BY r.key, r.rowid"
    )
    return [(RatingRow(*row[:-1]), row[-1]) for row in index.database.execute(query, STEPS)]


def _mark(index: TraceIndex, bad: Mapping[int, bool]) -> None:
    """Set the figure of exactly these counted traces, by key."""
    with index.transaction():
        index.database.execute(
            "UPDATE traces SET applies = applies & ~?1, bad = bad & ~?1 WHERE applies & ?1",
            (FEEDBACK,),
        )
        index.database.executemany(
            "UPDATE traces SET applies = applies | ?1, bad = bad | ?2 WHERE key = ?3",
            [(FEEDBACK, FEEDBACK if is_bad else 0, key) for key, is_bad in bad.items()],
        )
