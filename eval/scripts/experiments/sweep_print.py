"""A sweep on the terminal: a table of its settings, the Pareto line, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from records.sweeps import SettingOutcome, Sweep
from terminal.tables import counted, printable

if TYPE_CHECKING:
    from rich.console import Console

_STATES = {"best": "★ best", "left": "left", "worse": "worse", "broken": "limit", "racing": "…"}


def print_sweep(console: Console, sweep: Sweep) -> None:
    """The table, then what it means, a sentence a line."""
    from rich.table import Table
    from rich.text import Text

    title = f"Sweep {sweep.sweep_id}"
    table = Table(title=Text(title), title_justify="left", min_width=len(title))
    table.add_column("setting", overflow="fold")
    table.add_column("state", no_wrap=True)
    columns = ("quality", "against the best", "cases", "failed", "p50 / p95 ms", "USD a call")
    for name in columns:
        table.add_column(name, justify="right")
    for outcome in _sorted(sweep):
        table.add_row(*(Text(printable(cell)) for cell in _cells(outcome)))
    console.print(table)
    for line in sentences(sweep):
        console.print(Text(printable(line)), soft_wrap=True)


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
    ahead = [outcome for outcome in _sorted(sweep) if outcome.pareto]
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
        yield (
            f"Confirmed on {counted(own['cases'], 'other case')}: {own['best']:.4f} against "
            f"{own['baseline']:.4f} of the baseline, {own['difference']:+.4f} "
            f"({low:+.4f} to {high:+.4f})."
        )
    yield from sweep.compare


def _sorted(sweep: Sweep) -> list[SettingOutcome]:
    """The best first; those that were not asked last."""
    return sorted(
        sweep.settings,
        key=lambda o: (o.state == "broken", o.quality is None, -(o.quality or 0.0), o.name),
    )


def _cells(outcome: SettingOutcome) -> tuple[str, ...]:
    against = ""
    if outcome.difference is not None and outcome.interval is not None:
        low, high = outcome.interval
        against = f"{outcome.difference:+.3f} ({low:+.3f} to {high:+.3f})"
    state = _STATES[outcome.state] + (", baseline" if outcome.baseline else "")
    latency = (
        f"{_number(outcome.latency_p50_ms, ',.0f')} / {_number(outcome.latency_p95_ms, ',.0f')}"
    )
    return (
        outcome.name,
        state,
        _number(outcome.quality, ".4f"),
        against,
        f"{outcome.cases:,}",
        f"{outcome.failed:,}",
        latency,
        _number(outcome.cost_usd, ".5f"),
    )


def _point(outcome: SettingOutcome) -> str:
    parts = [f"{outcome.quality:.3f}", f"{_number(outcome.latency_p50_ms, ',.0f')} ms"]
    if outcome.cost_usd is not None:
        parts.append(f"{outcome.cost_usd:.5f} USD")
    return f"{outcome.name} ({', '.join(parts)})"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
