"""The pipeline as a whole: outcome, policy flags, citations, budgets; times, tokens, errors.

``score_case`` judges one response against what its case expects; ``ResponseTotals`` adds up a run.
Times are the bot's own, in milliseconds; waiting for a retry is not among them.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any

from ragmetrics.case_scores import CaseScores, Collector
from ragmetrics.stats import exact

OUTCOMES = ("success", "no_citation", "uncertain", "no_results", "blocked", "clarify")
_ENDED = {
    "success": "answered",
    "no_citation": "answered without citations",
    "uncertain": "flagged as unsure",
    "no_results": "nothing found",
    "blocked": "blocked",
    "clarify": "asked back",
}

_EXPECTED = {
    "success": "an answer",
    "no_citation": "an answer without citations",
    "uncertain": "an unsure answer",
    "no_results": "no result",
    "blocked": "a block",
    "clarify": "a question back",
}

UNCERTAIN_BELOW = 0.5
STAGES = ("retrieve", "generate", "guardrail_input", "guardrail_output", "total")
PERCENTILES = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
CHECKS = (
    "outcome_match",
    "required_flags_present",
    "forbidden_flags_absent",
    "latency_ok",
    "citations_ok",
)
METRICS = ("answered", *CHECKS, "pass")


def ended_words(outcome: str | None) -> str:
    """How a response ended, in words; an unknown outcome stays unchanged."""
    return _ENDED.get(outcome, outcome) if outcome else "no outcome"


def outcome_words(outcome: str | None, expected: str, why: str = "") -> str:
    """Both outcomes in words: ``flagged as unsure, though an answer was expected``."""
    return f"{ended_words(outcome)}{why}, though {_EXPECTED.get(expected, expected)} was expected"


@dataclass(frozen=True)
class ScoredResponse:
    """The scored parts of a response. ``retrieved``: how many passages, None where unknown.

    ``answered`` is False when no answer was asked for; ``asks_back`` is True when it asks what the
    user means (see ``asks_back``).
    """

    retrieved: int | None = None
    citations: int = 0
    answered: bool = True
    flags: Sequence[str] = ()
    confidence: float | None = None
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    asks_back: bool = False


@dataclass(frozen=True)
class Expected:
    """The expectations of a case; all of them are optional.

    ``budget_ms``: a number for the total, or a number for each stage. ``p50``, ``p95``, ``p99`` and
    ``max`` in it are budgets of the run (see ``ResponseTotals``), no matter of one case.
    """

    outcome: str | None = None
    required_flags: Sequence[str] = ()
    forbidden_flags: Sequence[str] = ()
    min_citations: int | None = None
    budget_ms: Mapping[str, float] | float | None = None


_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’»)\]*]*\s+|(?<=[。！？؟])\s*|\n+")

_OFFER = re.compile(
    r"(?:would you like|do you (?:want|need)|should i|shall i|is there anything|anything else"
    r"|(?:can|could|may) i (?:help|assist)|does (?:this|that) (?:help|answer))\b",
    re.IGNORECASE,
)
"""How an answer offers more, which is not a question about the user's own one (English)."""


def asks_back(answer: str) -> bool:
    """Return True when an answer ends by asking for the user's meaning.

    Its last sentence is a question, and no offer behind other sentences ("Would you like …?").
    On the open half of MTRAG-UN: 39 of 39 reference answers to underspecified questions, 2 of the
    210 others. Offers are known in English alone.
    """
    sentences = [text for part in _SENTENCE_END.split(answer) if (text := part.strip())]
    if not sentences or not sentences[-1].rstrip("\"'”’»)]*_ ").endswith(("?", "？", "؟")):
        return False
    return len(sentences) == 1 or not _OFFER.match(sentences[-1])


def outcome(
    response: ScoredResponse, uncertain_below: float = UNCERTAIN_BELOW
) -> tuple[str | None, str]:
    """The first outcome that fits, and why: blocked, clarify, no_results, uncertain, success,
    no_citation.

    None when no answer was asked for and nothing before ``success`` fits.
    """
    sure = response.confidence
    if "guardrail_blocked" in response.flags:
        return "blocked", "flag guardrail_blocked"
    if response.asks_back:
        return "clarify", "asks back"
    if "no_context" in response.flags:
        return "no_results", "flag no_context"
    if response.retrieved == 0:
        return "no_results", "nothing retrieved"
    if "uncertain" in response.flags:
        shown = "" if sure is None else f", confidence {sure:.2f}"
        return "uncertain", f"flag uncertain{shown}"
    if sure is not None and sure < uncertain_below:
        return "uncertain", f"confidence {sure:.2f} < {uncertain_below:g}"
    if not response.answered:
        return None, "no answer"
    if response.citations:
        return "success", f"citations: {response.citations}"
    return "no_citation", "no citation"


def stage_budgets(budget: Mapping[str, float] | float | None) -> dict[str, float]:
    """The budgets of single responses, by stage; a bare number is one for ``total``."""
    if budget is None:
        return {}
    if isinstance(budget, Mapping):
        return {name: float(bound) for name, bound in budget.items() if name not in PERCENTILES}
    return {"total": float(budget)}


def run_budgets(budget: Mapping[str, float] | float | None) -> dict[str, float]:
    """The budgets of percentiles of ``total`` over the run."""
    if not isinstance(budget, Mapping):
        return {}
    return {name: float(bound) for name, bound in budget.items() if name in PERCENTILES}


def score_case(
    response: ScoredResponse, expected: Expected, uncertain_below: float = UNCERTAIN_BELOW
) -> CaseScores:
    """Compute five checks of one response (1.0 or 0.0) and ``pass``, 1.0 when all that apply pass.

    A check without its label is not applicable; so is ``pass`` when no check applies. ``answered``
    is 1.0: what gave no response does not come here.
    """
    scores = Collector(METRICS)
    scores.set("answered", 1.0, "")
    actual, why = outcome(response, uncertain_below)
    scores.evidence |= {"outcome": actual, "why": why}
    _outcome(scores, actual, why, expected.outcome)
    _flags(scores, set(response.flags), expected)
    _latency(scores, response.latency_ms, expected)
    _citations(scores, response, expected.min_citations)
    applicable = [scores.values[name] for name in CHECKS if scores.values[name] is not None]
    scores.set("pass", float(all(applicable)) if applicable else None, "no check applies")
    return scores.result()


def is_checked(expected: Expected) -> bool:
    """Return True when any check of a response applies to the case."""
    labels = (expected.outcome, expected.required_flags or None, expected.forbidden_flags or None)
    budgets = stage_budgets(expected.budget_ms)
    return any(label is not None for label in (*labels, expected.min_citations)) or bool(budgets)


def _outcome(scores: Collector, actual: str | None, why: str, expected: str | None) -> None:
    if expected is None:
        scores.nothing(["outcome_match"], "no expected_outcome")
        return
    scores.evidence["expected"] = expected
    scores.set("outcome_match", None if actual is None else float(actual == expected), why)


def _flags(scores: Collector, flags: set[str], expected: Expected) -> None:
    missing = [flag for flag in expected.required_flags if flag not in flags]
    present = [flag for flag in expected.forbidden_flags if flag in flags]
    required = float(not missing) if expected.required_flags else None
    forbidden = float(not present) if expected.forbidden_flags else None
    scores.set("required_flags_present", required, "no required_flags")
    scores.set("forbidden_flags_absent", forbidden, "no forbidden_flags")
    named = {"flags": sorted(flags), "missing_flags": missing, "forbidden_flags": present}
    scores.evidence |= {name: names for name, names in named.items() if names}


def _latency(scores: Collector, times: Mapping[str, float], expected: Expected) -> None:
    budgets = stage_budgets(expected.budget_ms)
    unknown = [stage for stage in budgets if stage not in times]
    over = {
        stage: {"ms": times[stage], "budget_ms": bound}
        for stage, bound in budgets.items()
        if stage in times and times[stage] > bound
    }
    if over:
        scores.evidence["over_budget"] = over
    if not budgets:
        scores.nothing(["latency_ok"], "no budget for one response")
    elif unknown and not over:
        scores.nothing(["latency_ok"], f"no latency of {', '.join(unknown)}")
    else:
        scores.set("latency_ok", float(not over), "")


def _citations(scores: Collector, response: ScoredResponse, least: int | None) -> None:
    if least is None:
        scores.nothing(["citations_ok"], "no min_citations")
    elif not response.answered:
        scores.nothing(["citations_ok"], "no answer")
    else:
        scores.set("citations_ok", float(response.citations >= least), "")
        if response.citations < least:
            scores.evidence["citations"] = {"found": response.citations, "min": least}


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest value that at least ``percent`` % of all do not exceed (nearest rank).

    ``ordered`` is ascending; 100 gives the largest. Raises ValueError without values.
    """
    if not ordered:
        raise ValueError("a percentile needs at least one value")
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def is_largest(mark: str, n: int) -> bool:
    """True when p50, p95 or p99 of n values is their largest one: p99 below 100, p95 below 20."""
    return mark != "max" and -(-n * PERCENTILES[mark] // 100) >= n


def spread(values: Sequence[float]) -> dict[str, float]:
    """n, mean, p50, p95, p99 and max of some numbers. Raises ValueError without any."""
    if not values:
        raise ValueError("a spread needs at least one value")
    ordered = sorted(values)
    marks = {name: percentile(ordered, percent) for name, percent in PERCENTILES.items()}
    return {"n": len(ordered), "mean": fsum(ordered) / len(ordered)} | marks


class ResponseTotals:
    """A run's totals, added up by response. Memory: eight bytes per stage and response."""

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.tokens: Counter[str] = Counter()
        self._cost: int | None = None
        """In units of ``exact.py``."""
        self._times: dict[str, array[float]] = {}
        self._budgets: dict[tuple[str, float], array[float]] = {}

    def add_error(self, kind: str) -> None:
        """A call that failed: it has neither outcome nor times."""
        self.errors[kind] += 1

    def add(
        self,
        actual: str | None,
        expected: str | None,
        times: Mapping[str, float],
        usage: Mapping[str, Any],
        cost: float | None,
        budgets: Mapping[str, float],
    ) -> None:
        """Add one response; ``budgets`` are its case's budgets of the run (``run_budgets``)."""
        self.outcomes[expected or "", actual or ""] += 1
        for stage, time in times.items():
            self._times.setdefault(stage, array("d")).append(time)
        for name, count in usage.items():
            if isinstance(count, int) and not isinstance(count, bool):
                self.tokens[name] += count
        if cost is not None:
            self._cost = (self._cost or 0) + exact.units(cost)
        if "total" in times:
            for name, bound in budgets.items():
                self._budgets.setdefault((name, bound), array("d")).append(times["total"])

    @property
    def cost(self) -> float | None:
        """The cost of all responses together, in US dollars; None when none reports it."""
        return None if self._cost is None else exact.rounded(self._cost)

    def latency(self) -> dict[str, dict[str, float]]:
        """p50, p95, p99 and max in ms and n of each stage, known stages first."""
        order = {stage: position for position, stage in enumerate(STAGES)}
        stages = sorted(self._times, key=lambda stage: (order.get(stage, len(order)), stage))
        summary = {}
        for stage in stages:
            ordered = sorted(self._times[stage])
            marks = {name: percentile(ordered, percent) for name, percent in PERCENTILES.items()}
            summary[stage] = {"n": len(ordered)} | marks
        return summary

    def budgets(self) -> list[dict[str, Any]]:
        """Each budget of the run, checked on the cases that name it."""
        rows = []
        for (name, bound), times in sorted(self._budgets.items()):
            value = percentile(sorted(times), PERCENTILES[name])
            row = {"percentile": name, "budget_ms": bound, "ms": value, "n": len(times)}
            rows.append(row | {"kept": value <= bound})
        return rows

    @property
    def budgets_kept(self) -> float | None:
        """The share of the run's budgets that are kept; None without any."""
        kept = [row["kept"] for row in self.budgets()]
        return sum(kept) / len(kept) if kept else None
