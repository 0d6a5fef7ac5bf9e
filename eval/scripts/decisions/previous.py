"""A point of the history against the one before it, case by case, as a comparison of two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from decisions.engine import Decision, decide
from decisions.history import HistoryPoint, Key
from decisions.primary import PrimaryScores, paired_table
from ragmetrics.stats.control import PairVerdict
from records.clusters import LabelsById, read_clusters
from records.files import sha256_file


class PointPairs:
    """The verdicts of neighbouring points; each pair is decided once, for all its metrics."""

    def __init__(
        self,
        points: Sequence[HistoryPoint],
        names: Sequence[str],
        clusters: Mapping[str, LabelsById],
    ) -> None:
        """``names``: the primary metrics. ``clusters``: by the SHA-256 of an eval set, the label
        of each case's cluster; cases of another set are taken one by one."""
        self._points = points
        self._names = names
        self._clusters = clusters
        self._decision = lru_cache(None)(self._decided)

    def __call__(self, before: int, now: int, key: Key) -> PairVerdict | None:
        """What the comparison says of a metric; None for no evidence, and without case scores."""
        decision = self._decision(before, now)
        row = decision.row(".".join(key)) if decision else None
        if row is None or row.p is None or row.verdict not in ("better", "worse"):
            return None
        return PairVerdict(row.verdict == "better", row.p)

    def _decided(self, before: int, now: int) -> Decision | None:
        """None where the two share no case scores by the same definitions."""
        a, b = self._points[before], self._points[now]
        table = paired_table(
            _scores(a, self._names), _scores(b, self._names), self._clusters.get(b.eval_set or "")
        )
        return decide(table) if table.names and table.case_ids else None


def clusters_of_points(eval_set: Path, points: Sequence[HistoryPoint]) -> dict[str, LabelsById]:
    """The clusters of the set on disk, by its SHA-256, where it is the set of some point."""
    if not eval_set.exists() or not any(point.case_scores for point in points):
        return {}
    sha = sha256_file(eval_set)
    if sha not in {point.eval_set for point in points}:
        return {}
    return {sha: read_clusters(eval_set).labels}


def _scores(point: HistoryPoint, names: Sequence[str]) -> PrimaryScores:
    """The primary scores that a point's metrics.json holds; empty where it holds none."""
    import numpy as np

    chosen = tuple(name for name in names if name in point.scored)
    columns = [point.scored.index(name) for name in chosen]
    rows = [[row[column] for column in columns] for row in point.case_scores.values()]
    return PrimaryScores(
        point.label,
        chosen,
        tuple(point.case_scores),
        np.array(rows, dtype=float).reshape(len(rows), len(chosen)),
        {
            f"{section}.{metric}": value.definition
            for (section, metric), value in point.values.items()
            if f"{section}.{metric}" in chosen
        },
    )
