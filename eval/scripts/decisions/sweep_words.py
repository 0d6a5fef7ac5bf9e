"""A sweep in words: the rows of its table, the Pareto line, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator

from records.sweeps import SettingOutcome, Sweep
from terminal.tables import counted, printable

_STATES = {"best": "★ best", "left": "left", "worse": "worse", "broken": "limit", "racing": "…"}

COLUMNS = (
    *("setting", "state", "quality", "against best", "interval"),
    *("cases", "failing", "no answer", "p50 ms", "p95 ms", "USD a call"),
)
"""Of a sweep's table; ``interval`` is that of the difference, for all pairs and looks."""


def sentences(sweep: Sweep) -> Iterator[str]:
    """How it ended, what was saved, who is ahead of whom, and how sure that is."""
    names = " + ".join(
        name if weight == 1 else f"{weight:.2g} {name}" for name, weight in sweep.quality.items()
    )
    saved = 1 - sweep.calls / sweep.planned if sweep.planned else 0.0
    yield (
        f"Ended: {sweep.ended}: {sweep.reason}. {counted(sweep.calls, 'call')} of "
        f"{sweep.planned:,} ({saved:.0%} saved). Quality: {names}."
    )
    for outcome in sweep.settings:
        if outcome.reason:
            yield f"{outcome.name}: {outcome.state}: {outcome.reason}"
    ahead = [outcome for outcome in ranked(sweep) if outcome.pareto]
    line = " → ".join(_point(outcome) for outcome in ahead)
    yield f"Pareto (quality, median latency, cost; by what was asked of each): {line}"
    if sweep.best is not None and len(sweep.settings) > 1:
        yield (
            f"{sweep.best} was chosen for its mean, so that mean is biased upwards; --confirm N "
            "asks it and the baseline cases that the race did not see."
        )
    if sweep.confirmed:
        own = sweep.confirmed
        low, high = own["interval"] or (float("nan"), float("nan"))
        again = own.get("again", 0)
        on = f"{counted(own['cases'], 'case')}, {again} of them asked again" if again else ""
        yield (
            f"Confirmed on {on or counted(own['cases'], 'other case')}: {own['best']:.4f} against "
            f"{own['baseline']:.4f} of the baseline, {own['difference']:+.4f} "
            f"({low:+.4f} to {high:+.4f})."
        )
        if again:
            yield (
                "Asking again takes out what the bot's chance did for the winner, but not what the "
                "choice of cases did: more cases tell more."
            )
    yield from sweep.compare


def ranked(sweep: Sweep) -> list[SettingOutcome]:
    """The best first; those that were not asked last."""
    return sorted(
        sweep.settings,
        key=lambda o: (o.state == "broken", o.quality is None, -(o.quality or 0.0), o.name),
    )


def cells(outcome: SettingOutcome) -> tuple[str, ...]:
    """A setting's row of the table, by ``COLUMNS``."""
    difference = interval = ""
    if outcome.difference is not None and outcome.interval is not None:
        low, high = outcome.interval
        difference, interval = f"{outcome.difference:+.3f}", f"{low:+.3f} to {high:+.3f}"
    return (
        printable(outcome.name),
        _STATES[outcome.state] + (", baseline" if outcome.baseline else ""),
        _number(outcome.quality, ".4f"),
        difference,
        interval,
        f"{outcome.cases:,}",
        "–" if outcome.failing is None else f"{outcome.failing:,}",
        f"{outcome.failed:,}",
        _number(outcome.latency_p50_ms, ",.0f"),
        _number(outcome.latency_p95_ms, ",.0f"),
        _number(outcome.cost_usd, ".5f"),
    )


def _point(outcome: SettingOutcome) -> str:
    parts = [f"{outcome.quality:.3f}", f"{_number(outcome.latency_p50_ms, ',.0f')} ms"]
    if outcome.cost_usd is not None:
        parts.append(f"{outcome.cost_usd:.5f} USD")
    return f"{outcome.name} ({', '.join(parts)})"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
