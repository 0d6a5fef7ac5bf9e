"""A point of the history against the one before it, case by case, as a comparison of two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from decisions.engine import Decision, PrimaryTable, decide
from decisions.history import HistoryPoint, Key
from ragmetrics.stats.control import PairVerdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PointPairs:
    """The verdicts of neighbouring points; each pair is decided once, for all its metrics."""

    def __init__(
        self,
        points: Sequence[HistoryPoint],
        names: Sequence[str],
        clusters: Mapping[str, Mapping[str, str]],
    ) -> None:
        """``names``: the primary metrics. ``clusters``: by the SHA-256 of an eval set, the label
        of each case's cluster; cases of another set are clusters of their own."""
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
        import numpy as np

        a, b = self._points[before], self._points[now]
        names = tuple(name for name in self._names if _same_metric(name, a, b))
        case_ids = [case_id for case_id in a.case_scores if case_id in b.case_scores]
        if not names or not case_ids:
            return None
        labels = self._clusters.get(b.eval_set or "", {})
        own = [labels.get(case_id) or f"case: {case_id}" for case_id in case_ids]
        clusters = np.unique(np.array(own), return_inverse=True)[1]
        a_scores, b_scores = _columns(a, names, case_ids), _columns(b, names, case_ids)
        return decide(PrimaryTable(names, case_ids, clusters, a_scores, b_scores))


def _same_metric(name: str, a: HistoryPoint, b: HistoryPoint) -> bool:
    section, _, metric = name.partition(".")
    values = a.values.get((section, metric)), b.values.get((section, metric))
    if name not in a.scored or name not in b.scored or None in values:
        return False
    definitions = {value.definition for value in values if value is not None}
    return len(definitions) == 1


def _columns(
    point: HistoryPoint, names: Sequence[str], case_ids: Sequence[str]
) -> NDArray[np.float64]:
    """The scores of some metrics and cases; not a number where a case has none."""
    import numpy as np

    columns = [point.scored.index(name) for name in names]
    rows = [point.case_scores[case_id] for case_id in case_ids]
    return np.array([[row[column] for column in columns] for row in rows], dtype=float)
