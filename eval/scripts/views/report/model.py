"""The typed parts of a report, from which report.json, report.md and the page are rendered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from decisions.case_verdict import Key
from decisions.measures import Measure
from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.means import UNRELIABLE_BELOW
from records.metrics import rounded

Interval = Sequence[float] | None


class ReportPart(msgspec.Struct, frozen=True):
    """A part of a report. A field that is unset is not in the JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name."""
        values = {name.rstrip("_"): getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not UNSET}


def as_json(value: Any) -> Any:
    """A report or a part of one as JSON data: rounded floats, the same for the same files."""
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return rounded(value)


class CutText(ReportPart, frozen=True):
    """A long text: its beginning, and how many more characters there are."""

    text: str
    left_out: int = 0


class CaseLinks(ReportPart, frozen=True):
    """The answers behind a figure: how many, and some by id and repeat. ``label``: which ones."""

    count: int
    listed: Sequence[Key] = ()
    label: str | UnsetType = UNSET


class MetricName(ReportPart, frozen=True):
    """A metric of a section."""

    section: str
    metric: str


class ReportMetric(ReportPart, frozen=True):
    """A metric of a perspective: what was measured, and what the catalogue says of it.

    ``summary``: shown first. ``close``: the interval holds values that meet the target and values
    that miss it. ``few``: on too few cases to tell.
    """

    measure: Measure
    words: str
    catalogued: Metric | None
    summary: bool
    close: bool
    cases: CaseLinks | None = None

    @property
    def meaning(self) -> str:
        return self.catalogued.meaning if self.catalogued else ""

    @property
    def few(self) -> bool:
        return 0 < self.measure.n < UNRELIABLE_BELOW

    @property
    def coverage(self) -> float | None:
        """Cases scored / cases there are, in [0, 1]; None when nothing was counted."""
        total = self.measure.n + self.measure.not_applicable + self.measure.failed
        return self.measure.n / total if total else None

    def to_dict(self) -> dict[str, Any]:
        """The measurement, with the metric's entry in the catalogue."""
        data = self.measure.to_dict()
        del data["section"]
        return data | {
            "words": self.words,
            "meaning": self.meaning,
            "unit": self.catalogued.unit if self.catalogued else "",
            "low": self.catalogued.low if self.catalogued else None,
            "high": self.catalogued.high if self.catalogued else None,
            "summary": self.summary,
            "coverage": self.coverage,
            "few": self.few,
            "close": self.close,
            "cases": self.cases,
        }


class Perspective(ReportPart, frozen=True):
    """A section. ``healthy``: True when all measured metrics that count meet their targets, False
    when one does not, None when none was measured."""

    name: str
    measured: bool
    healthy: bool | None
    notes: Sequence[str]
    options: Mapping[str, Any]
    metrics: Sequence[ReportMetric]


class TargetAim(ReportPart, frozen=True):
    """A target of the verdict; ``place`` counts the perspectives from 1."""

    place: int
    metric: ReportMetric

    def to_dict(self) -> dict[str, Any]:
        """The place, and the metric's fields that the verdict needs."""
        names = ("metric", "words", "mean", "target", "passed", "close", "few")
        data = self.metric.to_dict()
        own = {"place": self.place, "section": self.metric.measure.section}
        return own | {name: data[name] for name in names}


class TargetsVerdict(ReportPart, frozen=True):
    """Targets met, missed and not measured over all sections, in a sentence and by name.

    ``unsure``: met, but too close to call. ``open``: no verdict, in a perspective with any score.
    ``doubts``: how far the verdict can be trusted.
    """

    targets: int
    measured: int
    kept: int
    says: str
    doubts: Sequence[str]
    missed: Sequence[TargetAim]
    unsure: Sequence[TargetAim]
    open: Sequence[TargetAim]


class SliceCell(ReportPart, frozen=True):
    """A mean over some cases of a slice. ``unsure``: on few cases, or too near another band."""

    mean: float | None
    n: int
    band: str | None
    unsure: bool = False


class SliceRow(ReportPart, frozen=True):
    """The means of one value of a dimension."""

    value: str
    n: int
    few: bool
    cells: Sequence[SliceCell]
    cases: CaseLinks | None = None


class SliceTable(ReportPart, frozen=True):
    """Means by the values of a dimension; ``of``: cases or safety prompts."""

    dimension: str
    of: str
    columns: Sequence[MetricName]
    rows: Sequence[SliceRow]
    left_out: int


class StageLatency(ReportPart, frozen=True):
    """Percentiles of a stage in milliseconds."""

    stage: str
    p50: float
    p95: float
    p99: float
    max: float
    n: int


class RunLatency(ReportPart, frozen=True):
    """Times by stage, budgets of the run, tokens and cost. ``slowest``: id, repeat and time."""

    stages: Sequence[StageLatency]
    budgets: Sequence[Mapping[str, Any]]
    tokens: Mapping[str, int]
    cost_usd: float | None
    slowest: Sequence[tuple[str, int, float]] = ()


class OutcomeRow(ReportPart, frozen=True):
    """The real outcomes of cases by their expected one; ``cases``: those that ended otherwise."""

    expected: str
    counts: Sequence[int]
    cases: CaseLinks | None = None


class OutcomeTable(ReportPart, frozen=True):
    """How responses ended, expected outcomes in rows."""

    columns: Sequence[str]
    rows: Sequence[OutcomeRow]


class RankGroup(ReportPart, frozen=True):
    """Answers whose first relevant passage had one of some ranks, and the number that succeeded."""

    from_: int
    to: int
    count: int
    known: int
    success: float | None
    ci95: Interval
    rank: str | UnsetType = UNSET
    cases: CaseLinks | None = None


class FirstRanks(ReportPart, frozen=True):
    """Answers by the rank of their first relevant passage. ``says``: which are a success."""

    n: int
    bins: Sequence[RankGroup]
    not_found: int
    nowhere: RankGroup
    says: str | None = None


class ConfidenceBin(ReportPart, frozen=True):
    """Answers of similar confidence."""

    from_: float
    to: float
    n: int
    confidence: float
    success: float
    ci95: Sequence[float]
    cases: CaseLinks | None = None


class Reliability(ReportPart, frozen=True):
    """Confidence against success; see ``figures.reliability``."""

    n: int
    ece: float | None
    brier: float | None
    bias: float | None
    bins: Sequence[ConfidenceBin]
    success: str = ""
    left_out: Mapping[str, int] = {}


class NoReliability(ReportPart, frozen=True):
    """Why confidence was not compared with success."""

    reason: str


class NamedFigure(ReportPart, frozen=True):
    """A value with its interval."""

    name: str
    value: float | None
    ci95: Interval


class CountTable(ReportPart, frozen=True):
    """Labels by verdicts."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]


class JudgeSlice(ReportPart, frozen=True):
    """How the judge agrees with people in a slice."""

    dimension: str
    value: str
    n: int
    unsupported: int
    agree: int
    specificity: float | None
    sensitivity: float | None
    kappa: float | None


class JudgeDisagreement(ReportPart, frozen=True):
    """A claim or fact on which the judge and people differ."""

    case_id: str
    claim_id: str
    verdict: str | None
    reason: str | None
    claim: CutText | None
    human: str


class CalibrationPart(ReportPart, frozen=True):
    """A judge against people. Figures are empty when too few claims are labelled; ``too_few`` then
    tells how many are."""

    judge: str
    prompt: str | None
    metric: str
    items: str
    good: str
    bad: str
    groups: str
    n: int
    sources: int
    supported: int
    unsupported: int
    too_few: str | None
    annotators: Sequence[str]
    alpha: float | None
    confusion: Mapping[str, int] | None
    tables: Sequence[CountTable]
    figures: Sequence[NamedFigure]
    shares: Sequence[NamedFigure]
    slices: Sequence[JudgeSlice]
    worst: Sequence[JudgeDisagreement]


class CorrelationMatrix(ReportPart, frozen=True):
    """Correlations of metrics over the answers that have both."""

    method: str
    metrics: Sequence[MetricName]
    left_out: Sequence[str]
    r: Sequence[Sequence[float | None]]
    n: Sequence[Sequence[int]]


class WrongPrompt(ReportPart, frozen=True):
    """A labelled text that the guardrails judged wrongly."""

    id: str
    kind: str | None
    category: str | None
    score: Any
    misses: Sequence[str]
    text: CutText | None


class WrongPrompts(ReportPart, frozen=True):
    """How many labelled texts were judged wrongly, and some of them."""

    wrong: int
    listed: Sequence[WrongPrompt]


class CallErrors(ReportPart, frozen=True):
    """The failed calls of a kind."""

    kind: str
    count: int
    example: str
    cases: Sequence[str]


class MissingScores(ReportPart, frozen=True):
    """Why a section gives some answers no score."""

    section: str
    reason: str
    answers: int
    cases: CaseLinks | None
    metrics: Sequence[str]


class ConfigSetting(ReportPart, frozen=True):
    """A setting of config.json by its dotted name."""

    name: str
    value: str


class ConfigPart(ReportPart, frozen=True):
    """The settings of a part of config.json."""

    part: str
    rows: Sequence[ConfigSetting]


class TrendPoint(ReportPart, frozen=True):
    """A commit or a run of the history; ``this``: the reported run."""

    label: str
    title: str
    day: str
    run_id: str | None
    this: bool


class TrendValue(ReportPart, frozen=True):
    """A mean at a point with its interval, and the band in which chance keeps it."""

    point: int
    mean: float
    band: tuple[float | None, float | None]
    alert: str | bool | None
    ci95: Sequence[float] | None = None


class TrendLine(ReportPart, frozen=True):
    """A primary metric over the points of the history."""

    section: str
    metric: str
    words: str
    meaning: str
    low: float | None
    high: float | None
    alerts: Sequence[str]
    values: Sequence[TrendValue]


class TrendChange(ReportPart, frozen=True):
    """The changes at a point besides the numbers."""

    point: int
    text: str


class ReportTrend(ReportPart, frozen=True):
    """The history of the primary metrics, oldest point first."""

    points: Sequence[TrendPoint]
    left_out: int
    lines: Sequence[TrendLine]
    changes: Sequence[TrendChange]
    notes: Sequence[str]


class CaseRow(NamedTuple):
    """A row of the list of cases, as the JSON has it."""

    case_id: str
    repeat: int
    state: str
    why: str
    category: str | None
    values: Sequence[float | None]
    question: str


class CaseTable(ReportPart, frozen=True):
    """All answers in short rows: what a row holds, the metrics of its scores."""

    metrics: Sequence[str]
    rows: Sequence[CaseRow]
    left_out: int
    columns: Sequence[str] = CaseRow._fields
