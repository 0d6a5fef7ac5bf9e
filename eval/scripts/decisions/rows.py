"""What a comparison says: one row a metric, the verdicts, and the correction for many tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ragmetrics.stats.significance import ALPHA, benjamini_hochberg, holm

RowVerdict = Literal[
    "better", "worse", "differs", "no evidence", "not tested", "only in base", "only in new"
]
"""``differs``: there is evidence, but no catalogue row says which direction is the good one.
``not tested``: no case has the metric in both runs, or a number of the whole run."""

SIGNS: dict[str, str] = {"better": "▲", "worse": "▼", "differs": "≠", "no evidence": "·"}


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric in two runs.

    ``base``, ``new``, ``delta``, ``interval``: means over the ``n`` cases that are scored in both
    runs, the difference new minus base, and its 95 % interval. ``base_mean``, ``new_mean``: means
    of each run over all that it scored (``base_n``, ``new_n`` of ``base_cases``, ``new_cases``
    cases). ``lost``, ``gained``: cases scored in base only, in new only. ``p``: of ``test``;
    ``p_holm``: corrected within the declared family, None for other metrics; ``p_bh``: corrected
    (Benjamini-Hochberg) among those. ``mde``: smallest difference that this n would probably show;
    ``sd``: spread of the differences. ``rose``, ``fell``: cases whose value changed. ``units``:
    cases or clusters that were resampled.
    """

    section: str
    metric: str
    higher_is_better: bool | None
    family: bool = False
    base: float | None = None
    new: float | None = None
    delta: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    p_holm: float | None = None
    p_bh: float | None = None
    test: str | None = None
    mde: float | None = None
    sd: float | None = None
    n: int = 0
    units: int = 0
    rose: int = 0
    fell: int = 0
    lost: int = 0
    gained: int = 0
    base_mean: float | None = None
    new_mean: float | None = None
    base_n: int = 0
    new_n: int = 0
    base_cases: int = 0
    new_cases: int = 0
    verdict: RowVerdict = "not tested"
    slice: str | None = None
    """``category=factual`` for a row of a slice, else None."""

    @property
    def name(self) -> str:
        """``section.metric``, which no other row has."""
        return f"{self.section}.{self.metric}"

    @property
    def p_adjusted(self) -> float | None:
        """The p that the verdict rests on."""
        return self.p_holm if self.p_holm is not None else self.p_bh

    @property
    def base_coverage(self) -> float | None:
        """Cases that base scored / its cases; None for a number of the whole run."""
        return self.base_n / self.base_cases if self.base_cases else None

    @property
    def new_coverage(self) -> float | None:
        """Cases that new scored / its cases; None for a number of the whole run."""
        return self.new_n / self.new_cases if self.new_cases else None

    @property
    def worse_by(self) -> float | None:
        """The difference in the bad direction, above 0 when new is worse; None when unknown."""
        if self.delta is None or self.higher_is_better is None:
            return None
        return -self.delta if self.higher_is_better else self.delta

    def to_dict(self) -> dict[str, Any]:
        """As JSON data, the coverage of both runs with it."""
        coverage = {"base_coverage": self.base_coverage, "new_coverage": self.new_coverage}
        return asdict(self) | coverage


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of two runs that is not the same. ``name`` is its place, such as ``judge.model``."""

    name: str
    base: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.name}: {shown(self.base)} → {shown(self.new)}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs: ``rows`` of whole metrics, ``slices`` of parts, what they differ in, remarks.

    ``controls``: differences in what must be the same (empty unless they were ignored).
    ``varied``: the differences of configuration that are compared. ``cases``: in both runs;
    ``only_base``, ``only_new``: cases that one of them lacks.
    """

    base_id: str
    new_id: str
    rows: tuple[MetricRow, ...]
    slices: tuple[MetricRow, ...] = ()
    controls: tuple[Difference, ...] = ()
    varied: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    cases: int = 0
    only_base: int = 0
    only_new: int = 0

    def row(self, name: str) -> MetricRow | None:
        """The row of a metric, by ``metric`` or ``section.metric``."""
        return next((row for row in self.rows if name in (row.metric, row.name)), None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self) | {
            "rows": [row.to_dict() for row in self.rows],
            "slices": [row.to_dict() for row in self.slices],
        }


def shown(value: Any) -> str:
    """A value of a configuration, short; hashes to 12 characters."""
    if value is None or value == []:
        return "–"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if len(text) == 64 and all(char in "0123456789abcdef" for char in text):
        return text[:12]
    return text if len(text) <= 80 else f"{text[:79]}…"


def _with_verdict(row: MetricRow) -> MetricRow:
    """The row with the verdict that its corrected p and its direction give."""
    p = row.p_adjusted
    if p is None or row.delta is None:
        return row
    verdict: RowVerdict = "no evidence"
    if p < ALPHA and row.delta:
        verdict = "differs"
        if (worse_by := row.worse_by) is not None:
            verdict = "worse" if worse_by > 0 else "better"
    return replace(row, verdict=verdict)


def corrected(rows: Sequence[MetricRow]) -> list[MetricRow]:
    """Rows with corrected p and verdict: Holm over the family, Benjamini-Hochberg over the rest."""
    family = _adjusted([row for row in rows if row.family and row.p is not None], holm)
    others = _adjusted(
        [row for row in rows if not row.family and row.p is not None], benjamini_hochberg
    )
    holms, rates = iter(family), iter(others)
    rows_tested = []
    for row in rows:
        if row.p is not None:
            row = replace(row, p_holm=next(holms)) if row.family else replace(row, p_bh=next(rates))
        rows_tested.append(_with_verdict(row))
    return rows_tested


def _adjusted(rows: Iterable[MetricRow], correct: Any) -> list[float]:
    adjusted: list[float] = correct([row.p for row in rows])
    return adjusted
