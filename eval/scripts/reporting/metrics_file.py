"""What a section of metrics.json must hold for a report of it."""

from __future__ import annotations

import msgspec

from comparing.metrics_file import Counts, Numbers, Section


class Point(msgspec.Struct):
    """Whether enough texts stand behind a number."""

    estimable: bool
    note: str | None


class Stage(msgspec.Struct):
    """Percentiles of a stage's time, in milliseconds."""

    n: int
    p50: float
    p95: float
    p99: float
    max: float


class Budget(msgspec.Struct):
    """A limit of time for the whole run."""

    percentile: str
    budget_ms: float
    ms: float
    n: int
    kept: bool


class Drawn(Section, msgspec.Struct, kw_only=True):
    """A section with means, with all that a report draws of it."""

    mean: Numbers
    n: Counts
    ci95: dict[str, tuple[float, float] | None]
    definitions: dict[str, str]
    not_applicable: Counts
    failed: Counts
    guardrails: dict[str, str] = {}
    operating_points: dict[str, Point | None] = {}
    latency_ms: dict[str, Stage] = {}
    run_budgets: list[Budget] = []
    usage: Counts = {}
    cost_usd: float | None = None
    outcomes: dict[str, Counts] = {}
