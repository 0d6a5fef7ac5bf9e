"""A sweep as a page: the rows of its table, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from extras.sweep.matrix import ON_PAGE, ON_SCREEN, matrix_blocks
from extras.sweep.record import SettingOutcome, Sweep, read_sweep, sweep_file
from records.run import Run
from records.runs import scored_sections
from terminal.page import (
    Block,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Quoted,
    items,
    number,
    percent,
    signed,
    signed_between,
)
from terminal.tables import counted, plain, printable

_STATES = {"best": "★ best", "left": "still in", "worse": "worse", "broken": "limit", "racing": "…"}


def _difference(outcome: SettingOutcome) -> str:
    return (
        "" if outcome.difference is None or outcome.interval is None else signed(outcome.difference)
    )


COLUMNS: tuple[DataColumn[SettingOutcome], ...] = (
    DataColumn("setting", lambda o: "◆ " * o.pareto + o.name, words=True, foreign=True),
    DataColumn(
        "state", lambda o: _STATES[o.state] + (", baseline" if o.baseline else ""), words=True
    ),
    DataColumn("quality", lambda outcome: _number(outcome.quality, ".4f")),
    DataColumn("against best", _difference),
    DataColumn(
        "interval",
        lambda outcome: signed_between(outcome.interval) if _difference(outcome) else "",
        drop=4,
    ),
    DataColumn("cases", lambda outcome: f"{outcome.cases:,}", drop=2),
    DataColumn(
        "failing", lambda outcome: "–" if outcome.failing is None else f"{outcome.failing:,}"
    ),
    DataColumn("no answer", lambda outcome: f"{outcome.failed:,}"),
    DataColumn("p50 ms", lambda outcome: _number(outcome.latency_p50_ms, ",.0f"), drop=1),
    DataColumn("p95 ms", lambda outcome: _number(outcome.latency_p95_ms, ",.0f")),
    DataColumn("USD a call", lambda outcome: _number(outcome.cost_usd, ".5f"), drop=3),
)
"""Columns of a sweep's table. ``interval`` is that of the difference, for all pairs and looks; ◆
marks settings that no other one beats in quality, median latency and cost."""


def sweep_page(sweep: Sweep, results_dir: Path) -> Page:
    """The table, the questions on which its settings disagree, then its meaning, a sentence a line.

    ``results_dir``: where its runs are.
    """
    lines = (Prose(printable(line)) for line in sentences(sweep))
    title = ("Sweep ", Quoted(sweep.sweep_id))
    table = DataTable(COLUMNS, ranked(sweep))
    disagreeing = matrix_blocks(_folders(sweep, results_dir), ON_SCREEN)
    return Page("", [Prose(title), table, Prose(""), *disagreeing, Prose(""), *lines])


def _folders(sweep: Sweep, results_dir: Path) -> dict[str, Path]:
    """The runs that were scored, by setting, the best first."""
    folders = {outcome.name: results_dir / outcome.run for outcome in ranked(sweep)}
    return {name: folder for name, folder in folders.items() if scored_sections(folder)}


def lead(sweep: Sweep) -> str:
    """Which setting of a sweep to take; "" while it goes on."""
    baseline = next((outcome for outcome in sweep.settings if outcome.baseline), None)
    best = next((outcome for outcome in sweep.settings if outcome.name == sweep.best), None)
    if not sweep.ended or baseline is None:
        return ""
    name = plain(baseline.name, 80)
    if best is None:
        return "NONE: no setting keeps the limits."
    if best.name == baseline.name:
        return f"KEEP {name}: nothing beat it."
    ahead = f"{plain(best.name, 80)} has {number(best.quality)}, {name} {number(baseline.quality)}"
    if baseline.state == "broken":
        return f"TAKE {plain(best.name, 80)}: {name} breaks a limit ({ahead})."
    if baseline.state == "worse":
        return f"TAKE {plain(best.name, 80)}: it beat {name} ({ahead})."
    return f"KEEP {name}: nothing is proven better ({ahead}, which may be chance)."


def sentences(sweep: Sweep) -> Iterator[str]:
    """How it ended, the saved questions, the lead of each setting, and its certainty."""
    names = " + ".join(
        name if weight == 1 else f"{weight:.2g} {name}" for name, weight in sweep.quality.items()
    )
    saved = 1 - sweep.calls / sweep.planned if sweep.planned else 0.0
    if first := lead(sweep):
        yield first
    yield (
        f"Ended: {sweep.reason}. {counted(sweep.calls, 'call')} of "
        f"{sweep.planned:,} ({percent(saved)} saved). Quality: {names}."
    )
    for outcome in sweep.settings:
        if outcome.reason:
            yield f"{outcome.name}: {outcome.state}: {outcome.reason}"
    baseline = next((outcome.name for outcome in sweep.settings if outcome.baseline), None)
    if sweep.best not in (None, baseline) and not sweep.confirmed:
        yield (
            f"{sweep.best} was chosen for its mean, so that mean is biased upwards; --confirm N "
            "asks both it and the baseline cases that the race did not use."
        )
    if sweep.confirmed:
        own = sweep.confirmed
        again = own.get("again", 0)
        on = f"{counted(own['cases'], 'case')}, {again} of them asked again" if again else ""
        yield (
            f"Confirmed on {on or counted(own['cases'], 'other case')}: {own['best']:.4f} against "
            f"{own['baseline']:.4f} of the baseline, {signed(own['difference'])} "
            f"({signed_between(own['interval'])})."
        )
        if again:
            yield (
                "Asking the same cases again removes the winner's luck in its answers, but not in "
                "the choice of cases; more cases would."
            )
    yield from sweep.compare


def ranked(sweep: Sweep) -> list[SettingOutcome]:
    """The best first; those that were not asked last."""
    return sorted(
        sweep.settings,
        key=lambda o: (o.state == "broken", o.quality is None, -(o.quality or 0.0), o.name),
    )


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def report_blocks(runs: Sequence[Run]) -> Iterator[Block]:
    """The table of the sweep that the last run was asked in, with that run marked.

    None for other runs, and without the sweep's file. Raises StorageError for a damaged one.
    """
    folder = runs[-1].folder
    pace = runs[-1].config.run.get("pace")
    sweep_id = pace.get("sweep") if isinstance(pace, Mapping) else None
    if not isinstance(sweep_id, str) or not (path := sweep_file(folder.parent, sweep_id)).exists():
        return
    sweep = read_sweep(path)
    yield Heading(f"Sweep {printable(sweep.sweep_id)}")
    yield from items(printable(line) for line in sentences(sweep))
    setting, *others = COLUMNS

    def name(outcome: SettingOutcome) -> str:
        return setting.cell(outcome) + " (this run)" * (outcome.run == folder.name)

    caption = (
        "The settings, the best first; ◆ no other one beats in quality, median latency and cost"
    )
    yield DataTable((replace(setting, cell=name), *others), ranked(sweep), caption=caption)
    yield from matrix_blocks(_folders(sweep, folder.parent), ON_PAGE)
