"""The comparison of two runs, metric by metric; values alone, no files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from decisions.coverage import Coverage
from decisions.effects import ALPHA, Effect
from decisions.engine import FEWEST_CLUSTERS, Headline, side_of
from ragmetrics.stats.significance import benjamini_hochberg
from records.targets import Target

RowVerdict = Literal[
    "better",
    "worse",
    "mixed",
    "differs",
    "no evidence",
    "equal",
    "too few",
    "no verdict",
    "not tested",
    "only in base",
    "only in new",
]
"""``mixed``: a ratio whose totals point the other way. ``differs``: there is evidence, but no
catalogue row says which direction is the good one. ``no verdict``: most cases lost their score in
one run. ``not tested``: no case has the metric in both runs, or a number of the whole run."""

SIGNS: dict[str, str] = {
    "better": "▲",
    "worse": "▼",
    "mixed": "◆",
    "differs": "≠",
    "equal": "=",
    "no evidence": "·",
    "too few": "·",
}


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric in two runs.

    ``base``, ``new``, ``delta``, ``interval``: means over the ``n`` cases that are scored in both
    runs, the difference new minus base, and its 95 % interval. ``base_mean``, ``new_mean``: means
    of each run over all that it scored (``base_n``, ``new_n`` of ``base_cases``, ``new_cases``
    cases). ``lost``, ``gained``: cases scored in base only, in new only. ``p``: of ``test``, by
    itself; ``p_joint``: of the joint test of all primary metrics, None for other metrics;
    ``p_worse``: that of a change for the worse, which the gate asks for; ``p_bh``: corrected
    (Benjamini-Hochberg) among the exploratory ones. ``mde``: smallest true difference that the
    verdict would find 4 times in 5, ``critical`` the statistic that it asks for; ``least_fall``:
    the smallest fall that the gate's test would find so. ``noise``: what of n times the variance of
    the difference is the bot's own, and what it would be with three answers a case, where repeats
    tell. ``rose``, ``fell``: cases whose value changed. ``units``: cases
    or clusters that were flipped. ``ratio``, ``ratio_interval``: of a typical case, new / base, for
    times, costs and tokens, whose ``interval`` is None and whose ``mde`` is a ratio;
    ``ratio_totals``: of the sums. ``look``: no evidence, but the interval lies on the bad side.
    """

    section: str
    metric: str
    higher_is_better: bool | None
    primary: bool = False
    base: float | None = None
    new: float | None = None
    delta: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    p_joint: float | None = None
    p_worse: float | None = None
    p_bh: float | None = None
    test: str | None = None
    mde: float | None = None
    critical: float = 0.0
    least_fall: float | None = None
    noise: tuple[float, float] | None = None
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
    ratio: float | None = None
    ratio_interval: tuple[float, float] | None = None
    ratio_totals: float | None = None
    target: float | None = None
    """The bound of its target; None without one."""
    verdict: RowVerdict = "not tested"
    look: bool = False
    fragile: bool = False
    """Better by small gains, which one large loss would undo."""
    slice: str | None = None
    """``category=factual`` for a row of a slice, else None."""
    coverage: Coverage | None = None
    """The cases that are left, of a primary metric and of one without a verdict; else None."""
    effect: Effect | None = None
    """The source of the numbers; not in the JSON data."""

    @property
    def name(self) -> str:
        """``section.metric``, which no other row has."""
        return f"{self.section}.{self.metric}"

    @property
    def p_adjusted(self) -> float | None:
        """The p that the verdict rests on."""
        return self.p_joint if self.p_joint is not None else self.p_bh

    @property
    def base_coverage(self) -> float | None:
        """Cases that base scored / its cases; None for a number of the whole run."""
        return self.base_n / self.base_cases if self.base_cases else None

    @property
    def new_coverage(self) -> float | None:
        """Cases that new scored / its cases; None for a number of the whole run."""
        return self.new_n / self.new_cases if self.new_cases else None

    @property
    def bad(self) -> bool:
        """Whether it is worse, by most cases or in all."""
        return self.verdict in ("worse", "mixed")

    def to_dict(self) -> dict[str, Any]:
        """As JSON data, the coverage of both runs with it."""
        data = asdict(replace(self, effect=None))
        del data["effect"]
        return data | {"base_coverage": self.base_coverage, "new_coverage": self.new_coverage}


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
    """Two runs: ``headline`` in a word, ``says`` in sentences (decisions/headline.py makes both),
    ``rows`` of whole metrics, ``slices`` of parts, what they differ in, remarks.

    ``clusters``: which cases were counted together, in words. ``controls``: differences in what
    must be the same (empty unless they were ignored). ``left_out``: a sentence on each section that
    could not be compared. ``varied``: the differences of configuration
    that are compared. ``cases``: in both runs; ``only_base``, ``only_new``: cases that one of them
    lacks. ``missing``: asked cases without a result in base and in new, of ``asked``; ``rest``: the
    verdict on the ``compared`` others, None where it is not known. ``half``: primary metrics that
    one run alone has, each with whether that is base. ``missed``: metrics whose target base met
    and new misses, with the target. ``untested``: metrics that only --all compares.
    """

    base_id: str
    new_id: str
    rows: tuple[MetricRow, ...]
    headline: Headline = "NO CLEAR DIFFERENCE"
    says: tuple[str, ...] = ()
    slices: tuple[MetricRow, ...] = ()
    clusters: str = ""
    scope: str = ""
    """The limit of the verdicts where documents are fixed; "" elsewhere."""
    tested: int = 0
    """Primary metrics in the joint test that changed at all."""
    controls: tuple[Difference, ...] = ()
    left_out: tuple[str, ...] = ()
    varied: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    cases: int = 0
    only_base: int = 0
    only_new: int = 0
    missing: tuple[int, int] = (0, 0)
    asked: tuple[int, int] = (0, 0)
    rest: Headline | None = None
    rest_mde: float | None = None
    """The smallest change of a share that these others would show, in any primary metric."""
    rest_rows: tuple[MetricRow, ...] = ()
    """The primary metrics of these others; not in the JSON data."""
    lead: str = ""
    """The metric that counts most; "" without one."""
    compared: int = 0
    half: tuple[tuple[str, bool], ...] = ()
    missed: tuple[tuple[str, str], ...] = ()
    margin: float | None = None
    untested: int = 0

    def row(self, name: str) -> MetricRow | None:
        """The row of a metric, by ``metric`` or ``section.metric``."""
        return next((row for row in self.rows if name in (row.metric, row.name)), None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        rows = [row.to_dict() for row in self.rows]
        data = asdict(replace(self, rows=(), slices=(), rest_rows=()))
        del data["rest_rows"]
        return data | {"rows": rows, "slices": [row.to_dict() for row in self.slices]}


def shown(value: Any) -> str:
    """A value of a configuration, short; hashes to 12 characters."""
    if value is None or value == []:
        return "–"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if len(text) == 64 and all(char in "0123456789abcdef" for char in text):
        return text[:12]
    return text if len(text) <= 80 else f"{text[:79]}…"


def missed_targets(
    rows: Sequence[MetricRow], targets: Mapping[str, Mapping[str, Target]]
) -> tuple[tuple[str, str], ...]:
    """The metrics whose mean met its target in base and misses it in new, with the target."""
    aimed = [(row, targets.get(row.section, {}).get(row.metric)) for row in rows]
    return tuple(
        (row.name, str(target))
        for row, target in aimed
        if target is not None and target.passed(row.base_mean)
        if target.passed(row.new_mean) is False
    )


def with_targets(
    rows: Sequence[MetricRow], targets: Mapping[str, Mapping[str, Target]]
) -> tuple[MetricRow, ...]:
    """The rows, each with the bound of its target."""
    aims = [targets.get(row.section, {}).get(row.metric) for row in rows]
    return tuple(
        replace(row, target=aim.bound) if aim is not None else row
        for row, aim in zip(rows, aims, strict=True)
    )


def explored(rows: Sequence[MetricRow]) -> list[MetricRow]:
    """Exploratory rows with p corrected (Benjamini-Hochberg over all of them) and verdict."""
    adjusted = iter(benjamini_hochberg([row.p for row in rows if row.p is not None]))
    return [row if row.p is None else _judged(replace(row, p_bh=next(adjusted))) for row in rows]


def _judged(row: MetricRow) -> MetricRow:
    """A verdict needs a corrected p and an interval that say one thing."""
    effect = row.effect
    if effect is None or row.p_bh is None:
        return row
    if effect.clusters < FEWEST_CLUSTERS:
        return replace(row, verdict="too few", p_bh=None)
    side = side_of(effect, row.higher_is_better is not False)
    if row.p_bh > ALPHA or not side:
        return replace(row, verdict="no evidence")
    if row.higher_is_better is None:
        return replace(row, verdict="differs")
    if effect.ratio is not None and effect.ratio.opposed:
        return replace(row, verdict="mixed")
    return replace(row, verdict="better" if side > 0 else "worse")
