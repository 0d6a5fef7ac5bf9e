"""One look: new traces are read and counted, and each figure is compared with the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extras.watch.alarms import alarms_file, read_alarms, write_alarms
from extras.watch.counting import count_due, mark_shown
from extras.watch.figures import (
    ReferencePeriod,
    date_of,
    day_of,
    reference_of,
    series_of,
    shown_figures,
    watched,
)
from extras.watch.ratings import rate_answers
from extras.watch.reading import TraceReading, read_new
from extras.watch.span_stream import DAMAGED
from extras.watch.trace_index import DayCounts, TraceIndex, index_path
from extras.watch.watch_options import WatchOptions
from extras.watch.watched import WatchedFigure, as_dict, with_seen
from extras.watch.what_rose import RisenTraces, what_rose
from records.errors import StorageError
from records.files import locked
from records.labels import read_cases
from terminal.tables import counted

if TYPE_CHECKING:
    from extras.watch.canaries import CanaryLook
    from extras.watch.draws import Draw


@dataclass
class Watch:
    """The result of one look. ``series``: each figure by day, from the first day on. ``risen``: of
    each figure with an alarm what its traces have in common."""

    folder: Path
    index: Path
    look: TraceReading
    counts: dict[str, int]
    traces: int
    units: int
    waiting: int
    reference: ReferencePeriod | None
    series: dict[str, list[DayCounts]]
    figures: list[WatchedFigure]
    check_share: float
    feedback: dict[str, Any]
    draws: list[Draw] = field(default_factory=list)
    sampling: str = "head"
    risen: list[RisenTraces] = field(default_factory=list)
    canaries: CanaryLook | None = None

    @property
    def unit(self) -> str:
        """The unit that the shares count."""
        return "sessions" if self.units < self.traces else "traces"

    @property
    def alarms(self) -> list[WatchedFigure]:
        return [figure for figure in self.figures if figure.alarm]

    @property
    def has_alarm(self) -> bool:
        """Whether any figure has an alarm, or the canaries have."""
        return bool(self.alarms or (self.canaries and self.canaries.alarms))


def watch(options: WatchOptions, now: int) -> Watch:
    """Look at a folder of traces. ``now``: microseconds since 1970.

    Raises StorageError for what cannot be used. What was read by then stays read.
    """
    if not options.folder.exists():
        raise StorageError(f"{options.folder}: no such folder of traces.")
    path = options.index or index_path(options.folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path), TraceIndex(path) as index:
        look = read_new(index, options.folder, now)
        _check_that_any_was_read(options.folder, look, index.counts())
        look.traces = count_due(
            index,
            now,
            quiet=options.quiet,
            check_share=options.check_share,
            counts=look.counts,
        )
        reference = reference_of(
            index, options.reference, replace=options.replace_reference, now=now
        )
        feedback = rate_answers(index)
        traces, units = index.totals()
        outcome = Watch(
            options.folder,
            path,
            look,
            index.counts(),
            traces,
            units,
            index.open_traces(),
            reference,
            series_of(index, reference),
            [],
            options.check_share,
            feedback,
            sampling=options.sampling,
        )
        if reference is not None:
            _watch_on(index, options, outcome, reference, now)
        mark_shown(index)
        outcome.draws = list(_draws(index, options, outcome))
    if options.canaries is not None:
        from extras.watch.canaries import look_at_canaries  # slow to load

        outcome.canaries = look_at_canaries(options.canaries)
    return outcome


def _watch_on(
    index: TraceIndex, options: WatchOptions, outcome: Watch, reference: ReferencePeriod, now: int
) -> None:
    """Watch every figure from the alarms that are known on, and keep what is known then.

    ``--seen`` marks what earlier looks showed: a person cannot have seen what this one finds."""
    today, path = datetime.fromtimestamp(now / 1e6, UTC).date(), alarms_file(outcome.index)
    known = before = {} if options.replace_reference else read_alarms(path)
    if options.seen:
        known = {name: with_seen(rises, today) for name, rises in before.items()}
    outcome.figures = watched(index, reference, outcome.unit, options.sampling, known, today)
    found = known | {figure.name: [*figure.rises] for figure in outcome.figures}
    after = {name: rises for name, rises in found.items() if rises}
    if after != before or options.replace_reference:
        write_alarms(path, after)
    for figure in outcome.alarms:
        if figure.lasting is not None:
            outcome.risen.append(what_rose(index, figure.name, reference, figure.lasting.since))


def _check_that_any_was_read(folder: Path, look: TraceReading, counts: Mapping[str, int]) -> None:
    """Raise StorageError for a folder whose files hold something, and no spans at all."""
    if counts.get("spans") or counts.get("log records") or not look.bytes_read:
        return
    keys = f" The keys are: {', '.join(look.keys)}." if look.keys else ""
    raise StorageError(
        f"{folder}: no trace can be read: {_counted_values(counts)} in "
        f"{counted(look.files, 'file')}.{keys} Write OTLP JSON (the collector's "
        "file exporter), or JSON of Phoenix, MLflow, Langfuse, LangSmith "
        "or the OpenAI Agents SDK."
    )


def _counted_values(counts: Mapping[str, int]) -> str:
    """How many values were found that hold no spans, and how many could not be read."""
    named = ("values without spans", DAMAGED, "spans that cannot be read")
    return ", ".join(f"{counts[name]} {name}" for name in named if counts.get(name)) or "nothing"


def _draws(index: TraceIndex, options: WatchOptions, outcome: Watch) -> list[Draw]:
    draws: list[Draw] = []
    if options.output is None:
        return draws
    from extras.watch.draws import draw_cases, draw_sample

    first = day_of(options.since.date()) if options.since else 0
    if options.cases:
        cases = read_cases(options.eval_set, None) if options.eval_set.exists() else []
        began = {
            figure.name: day_of(figure.lasting.since)
            for figure in outcome.alarms
            if figure.lasting is not None
        }
        draws.append(
            draw_cases(
                index,
                options.cases,
                options.output / "cases",
                questions=[case.question for case in cases],
                reference=outcome.reference,
                since=began,
                first_day=first,
                force=options.force,
            )
        )
    if options.sample:
        target = options.output / "sample"
        draws.append(
            draw_sample(index, options.sample, target, first_day=first, force=options.force)
        )
    return draws


def in_all(days: Sequence[DayCounts]) -> tuple[int, int]:
    """Bad units and units of all days."""
    return sum(day.bad for day in days), sum(day.n for day in days)


def share_of(days: Sequence[DayCounts]) -> float | None:
    """The share of bad units of all days; None without any. Each unit is weighted by the number of
    traces that a head sampler makes it represent."""
    weight = sum(day.n if day.weight is None else day.weight for day in days)
    bad = sum(day.bad if day.bad_weight is None else day.bad_weight for day in days)
    return bad / weight if weight else None


def to_dict(outcome: Watch) -> dict[str, Any]:
    """A look as ``--json`` prints it."""
    by_name = {figure.name: figure for figure in outcome.figures}
    reference = outcome.reference
    return {
        "schema": 1,
        "folder": str(outcome.folder),
        "index": str(outcome.index),
        "read": {
            "files": outcome.look.files,
            "bytes": outcome.look.bytes_read,
            "traces": outcome.look.traces,
            "counts": _filled(outcome.look.counts),
            "problems": outcome.look.problems,
        },
        "counts": _filled(outcome.counts),
        "traces": outcome.traces,
        "units": outcome.units,
        "unit": outcome.unit,
        "waiting": outcome.waiting,
        "check_share": outcome.check_share,
        "reference": None
        if reference is None
        else {
            "from": reference.first.isoformat(),
            "to": reference.last.isoformat(),
            "traces": reference.traces,
            "units": reference.units,
            "latency_ms": None if reference.latency is None else reference.latency / 1000,
            "answer_characters": reference.length,
        },
        "feedback": outcome.feedback,
        "alarms": [figure.name for figure in outcome.alarms],
        "risen": [asdict(risen) for risen in outcome.risen],
        "canaries": None if outcome.canaries is None else asdict(outcome.canaries),
        "figures": [
            {
                "name": figure.name,
                "label": figure.label,
                "bad_when": figure.about,
                **_share(outcome.series[figure.name]),
                "watch": as_dict(by_name[figure.name]) if figure.name in by_name else None,
            }
            for figure in shown_figures(outcome.sampling)
        ],
        "draws": [draw.to_dict() for draw in outcome.draws],
    }


def _filled(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: n for name, n in sorted(counts.items()) if n}


def _share(days: Sequence[DayCounts]) -> dict[str, Any]:
    bad, n = in_all(days)
    return {
        "bad": bad,
        "n": n,
        "share": None if (share := share_of(days)) is None else round(share, 6),
        "days": [{"day": date_of(day.day).isoformat(), "bad": day.bad, "n": day.n} for day in days],
    }
