"""A look at production as a page: the shares, what was read, the alarms."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from extras.watch.canaries import CanaryLook, sentence
from extras.watch.figures import FIGURES, TAIL_DISTORTS, date_of, shown_figures
from extras.watch.look import Watch, in_all, share_of
from extras.watch.summary import FEEDBACK, NOT_CAPTURED
from extras.watch.watched import WatchedFigure, daily_shares, not_found, verdict
from formats.traces.cases import CAPTURE
from formats.traces.feedback import NO_FEEDBACK
from terminal.page import (
    Block,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Quoted,
    TrendColumn,
    fine_percent,
    items,
    plain_table,
)
from terminal.tables import counted, plain

_NO_REFERENCE = (
    "No reference: name normal days, such as --reference 2026-03-02..2026-04-26, to get an alarm "
    "when a share rises after them."
)


def watch_page(outcome: Watch) -> Page:
    """The shares as a table, the traces read, then each figure against its reference, and the
    verdict."""
    rows = []
    for figure in shown_figures(outcome.sampling):
        bad, n = in_all(outcome.series[figure.name])
        if figure.bit == FEEDBACK and not n:
            continue
        share = share_of(outcome.series[figure.name])
        shown = "–" if share is None else fine_percent(share)
        rows.append((figure.label, shown, f"{bad:,}", f"{n:,}"))
    head = ("bad share", "in all", "bad", outcome.unit)
    blocks: list[Block] = [Prose(_title(outcome)), plain_table(head, rows)]
    blocks += map(Prose, notes(outcome))
    if outcome.reference is None:
        return Page("", [*blocks, *alarm_blocks(outcome), Prose(_NO_REFERENCE)])
    more, last = list(alarm_blocks(outcome)), canary_verdict(outcome)
    after = watch_blocks(outcome.figures, more=more, last=last)
    return Page("", [*blocks, *after])


def canary_verdict(outcome: Watch) -> str:
    """The canaries' part of the verdict; "" without an alarm of them."""
    return "ALARM of the canaries." if outcome.canaries and outcome.canaries.alarms else ""


def alarm_blocks(outcome: Watch) -> Iterator[Block]:
    """The figures that rose, three traces of each alarm, the command that draws more, and the
    canaries."""
    labels = {figure.name: figure.label for figure in outcome.alarms}
    for risen in outcome.risen:
        yield Heading(f"{labels[risen.figure]}: what rose, and three traces", tone="bad")
        slices = risen.slices or (
            "It rose everywhere: no language, word, folder or document stands out.",
        )
        yield from items([(Quoted(text),) for text in slices])
        yield from items([(Quoted(text),) for text in risen.examples], "quiet")
    if outcome.risen:
        folder = shlex.quote(str(outcome.folder))
        yield Prose(
            f"To draw 12 of these cases for labelling: watch_traces.py {folder} --cases 12 "
            "--output drawn"
        )
    if outcome.canaries is not None:
        yield from _canary_blocks(outcome.canaries)


def _canary_blocks(look: CanaryLook) -> Iterator[Block]:
    """The canaries' sentence, their alarms, and what else there is to know."""
    yield Prose(f"{'!' if look.alarms else ' '} {sentence(look)}", "bad" if look.alarms else None)
    yield from items([(Quoted(plain(text, 400)),) for text in look.alarms], "bad")
    yield from (Prose((Quoted(plain(note, 400)),), "doubt") for note in look.notes)


def _title(outcome: Watch) -> str:
    return f"{outcome.folder.name}: {_days(outcome)}" if outcome.traces else outcome.folder.name


def _days(outcome: Watch) -> str:
    days = [day.day for series in outcome.series.values() for day in series]
    return f"{date_of(min(days))} to {date_of(max(days))} (UTC)" if days else "no day"


def notes(outcome: Watch) -> Iterator[str]:
    """The traces read, checked and drawn, a sentence each."""
    look = outcome.look
    sessions = f" in {counted(outcome.units, 'session')}" if outcome.unit == "sessions" else ""
    waiting = f", {outcome.waiting:,} waiting for their end" if outcome.waiting else ""
    yield (
        f"{counted(look.traces, 'new trace')} from {look.bytes_read / 1e6:,.1f} MB; "
        f"{counted(outcome.traces, 'trace')}{sessions} in all{waiting}."
    )
    yield from look.problems
    checked = outcome.counts.get("traces checked for claims and leaks", 0)
    yield (
        f"Checked for unsupported claims and leaks: {counted(checked, 'trace')} "
        f"(--check-share {outcome.check_share:g})."
    )
    yield from _feedback(outcome)
    if missing := outcome.counts.get(NOT_CAPTURED, 0):
        yield f"{counted(missing, 'trace')} without contents: {CAPTURE}"
    weighted = any(d.effective is not None for days in outcome.series.values() for d in days)
    if weighted:
        yield "Shares are weighted by the sampling rate in the traces (tracestate ot=th)."
    if outcome.sampling == "tail":
        names = " and ".join(f.label.lower() for f in FIGURES if f.name in TAIL_DISTORTS)
        yield (
            f"Left out: {names}. A tail sampler chose the traces (--sampling), and it keeps these "
            "more often."
        )
    for draw in outcome.draws:
        yield f"Drawn ({draw.kind}): {counted(draw.cases, 'case')}: {draw.paths[0]}"
        blotted = ", ".join(f"{kind} {n}" for kind, n in sorted(draw.blotted.items()))
        if blotted:
            yield f"Blotted before writing: {blotted}."


def _feedback(outcome: Watch) -> Iterator[str]:
    """The share of rated answers that are rated bad, and what was no rating by people."""
    feedback, counts = outcome.feedback, outcome.counts
    if feedback["rated"]:
        low, high = map(fine_percent, feedback["ci95"] or (0.0, 1.0))
        yield (
            f"People rated {counted(feedback['rated'], 'answer')} of {outcome.traces:,}, "
            f"{feedback['bad']:,} of them bad: {fine_percent(feedback['share'])} (95 % interval "
            f"{low} to {high}). Raters choose what they rate: this is no share of all answers."
        )
    yield from (
        f"Not counted: {n:,} {name}." for name in NO_FEEDBACK.values() if (n := counts.get(name))
    )


def watch_blocks(
    figures: Sequence[WatchedFigure],
    *,
    more: Sequence[Block] = (),
    last: str = "",
) -> Iterator[Block]:
    """A sentence for each lasting rise, and one on rises that cannot be found. Then ``more``
    blocks, the days of the figures with an alarm, and the verdict, after ``last``, another alarm.
    """
    for figure in figures:
        if figure.lasting:
            mark = "!" if figure.alarm else " "
            yield Prose(f"{mark} {figure.sentence}", "bad" if figure.alarm else None)
    yield from (Prose(line, "doubt") for line in limits(figures))
    quiet = [figure for figure in figures if not figure.lasting]
    if quiet and (text := not_found(quiet)):
        yield Prose(text, "quiet")
    yield from more
    if alarmed := [figure for figure in figures if figure.alarm and daily_shares(figure)]:
        yield _by_day(alarmed)
    is_bad = bool(last) or any(figure.alarm for figure in figures)
    yield Conclusion(f"{verdict(figures)} {last}".strip(), "bad" if is_bad else None)


def limits(figures: Sequence[WatchedFigure]) -> list[str]:
    """The limits of the answers, each note once; with the figures where not all have it."""
    notes = dict.fromkeys(note for figure in figures for note in figure.notes)
    lines = []
    for note in notes:
        names = [figure.label for figure in figures if note in figure.notes]
        lines.append(note if len(names) == len(figures) else f"{', '.join(names)}: {note}")
    return lines


def _by_day(figures: Sequence[WatchedFigure]) -> DataTable[WatchedFigure]:
    """The daily shares as sparklines, the reference's share, and the least one that alarms."""

    def reference(figure: WatchedFigure) -> str:
        return fine_percent(figure.reference.share)

    def limit(figure: WatchedFigure) -> str:
        return fine_percent(figure.reference.limit)

    return DataTable(
        (
            DataColumn("figure", lambda figure: figure.label, words=True),
            TrendColumn("by day", lambda figure: ([s for _, s in daily_shares(figure)], ())),
            DataColumn("reference", reference),
            DataColumn("alarm when four weeks reach", limit),
        ),
        figures,
    )
