"""The text of each row of the lists: pure functions from values to spans.

Every foreign string passes `one_line` here. A state is never colour alone: it has a word or sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ragmetrics.catalogue import METRICS, overview
from terminal.lists import Line, Span
from terminal.plot import SHADES, loudness
from terminal.safe_text import DisplayText, cells, display, fit, fit_middle, one_line
from views.browser.answers import AnswerTable
from views.browser.failing import Group, mean_of
from views.runs import RunInfo
from views.text import score, score_pair

MAIN, RUN_MAIN = overview(of_cases=True), overview()
"""Metrics of cases, and of runs, shown where a run has them and the window is wide enough."""

HEADS = {metric.name: metric.short for metric in METRICS if metric.short}
"""Column heads for long metric names."""

LOWER_IS_BETTER = frozenset(metric.name for metric in METRICS if not metric.higher_is_better)

QUESTION_MIN = 18

SCORE_MIN, SCORE_MAX = 6, 11

LEFT = 2
"""Cells before the first column of a list of cases: the sign of the cursor, and that of a note."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the case list: what it sorts by, its head, its width, right-aligned or not."""

    name: str
    head: str
    width: int
    right: bool = True


_PAIR_DECIMALS = 3
"""Decimals of the two scores in a cell of the list of flips, which has 11 columns."""


def _metric_column(name: str) -> Column:
    """The column of a metric, with room for the arrow of the order."""
    stem, at, depth = name.partition("@")
    head = f"{HEADS.get(stem, stem)}{at}{depth}"
    return Column(name, head, max(SCORE_MIN, min(SCORE_MAX, len(head) + 1)))


def _that_fit(columns: Iterable[Column], room: int) -> list[Column]:
    """The first columns that fit into the room, with a blank behind each."""
    wanted = list(columns)
    ends = accumulate(column.width + 1 for column in wanted)
    return [column for column, end in zip(wanted, ends, strict=True) if end <= room]


def case_columns(width: int, metrics: Sequence[str], longest: int, *, chosen: bool) -> list[Column]:
    """The columns that fit on ``width`` cells: id, state, scores, latency, question.

    ``chosen``: the metrics are the user's choice, and the question may give way to them.
    """
    id_width = max(4, min(longest, width // 4 if width >= 120 else 16))
    columns = [Column("id", "case", id_width, right=False), Column("why", "state", 9, right=False)]
    used = LEFT + sum(column.width + 1 for column in columns)
    least = QUESTION_MIN if not chosen else 0
    wanted_columns = [_metric_column(name) for name in metrics]
    if width >= 100:
        wanted_columns.append(Column("latency", "ms", 6))
    columns += _that_fit(wanted_columns, width - used - least)
    used = LEFT + sum(column.width + 1 for column in columns)
    columns.append(Column("question", "question", max(0, width - used), right=False))
    return columns


def heading(
    columns: Sequence[Column], sort: str, reverse: bool, ascii_only: bool, left: int = LEFT
) -> Line:
    """Heads of the columns; an arrow at the one that the rows are sorted by."""
    up, down = ("^", "v") if ascii_only else ("↑", "↓")
    parts = []
    for column in columns:
        head = one_line(column.head)
        if column.name == sort:
            head = one_line((down if reverse else up) + head)
        parts.append(fit(head, column.width, right=column.right))
    return (("dim", DisplayText(" " * left + " ".join(parts))),)


def note_span(table: AnswerTable, row: int) -> Span:
    """A sign for a case with a flag (`!`) or a note (`*`)."""
    notes = table.notes.get(table.ids[row], ())
    if any(note.flag for note in notes):
        return ("bad", display("!"))
    return ("key", display("*")) if notes else ("row", display(" "))


def means_row(columns: Sequence[Column], shown: int, mean: Callable[[str], str]) -> Line:
    """The line under the heads: the mean of each column of numbers over the shown cases."""
    numbers = [column for column in columns if column.right]
    label = f"mean of {shown:,}" if numbers else ""
    head = LEFT + sum(column.width + 1 for column in columns if column.name in ("id", "why"))
    first = ("dim", fit(display(" " * LEFT + label), head))
    return _line([first], numbers, lambda name: ("key", display(mean(name))))


def _line(
    signs: Sequence[Span], columns: Iterable[Column], cell: Callable[[str], tuple[str, DisplayText]]
) -> Line:
    """A row: signs, and the style and text of each column; an id loses its middle, since turns
    differ at their ends."""
    spans = [*signs]
    for column in columns:
        style, text = cell(column.name)
        short = fit_middle(text, column.width) if column.name == "id" else text
        spans.append((style, DisplayText(fit(short, column.width, right=column.right) + " ")))
    return tuple(spans)


def group_columns(
    width: int, metrics: Sequence[str], longest: int, reasons: Sequence[str] = ()
) -> list[Column]:
    """Columns of groups: value, cases, how many and which part fail, by each reason, means."""
    name = Column("value", "group", max(8, min(longest, width // 2)), right=False)
    columns = [name, Column("cases", "cases", 7), Column("failing", "fail", 7)]
    columns.append(Column("share", "fail %", 7))
    used = 1 + sum(column.width + 1 for column in columns)
    by_reason = [Column(f"={word}", word, max(6, cells(one_line(word)))) for word in reasons]
    return [*columns, *_that_fit([*by_reason, *map(_metric_column, metrics)], width - used)]


def group_row(
    table: AnswerTable,
    group: Group,
    columns: Sequence[Column],
    sign: str,
    none: str,
    *,
    ascii_only: bool,
) -> Line:
    """One group: its value (``none`` for an empty one), counts, means of its cases.

    The shade before a count of a reason is that of its share of the group's cases.
    """
    shades = " .:%#" if ascii_only else SHADES

    def cell(name: str) -> tuple[str, DisplayText]:
        if name == "value":
            return ("row", one_line(group.value, 400)) if group.value else ("dim", display(none))
        if name == "cases":
            return "row", display(f"{len(group.rows):,}")
        if name == "failing":
            return "bad" if group.failing else "dim", display(f"{group.failing:,}")
        if name == "share":
            return "row", display(f"{100 * group.share:.0f}")
        if name.startswith("="):
            count = group.reasons.get(name[1:], 0)
            loud = loudness(count / len(group.rows))
            text = display(f"{shades[loud]} {count:,}" if count else "-")
            return "bad" if loud > 2 else "row" if count else "dim", text
        return "row", display(number_text(name, mean_of(table, name, group.rows)[0]))

    return _line([("row", display(sign))], columns, cell)


def number_text(name: str, value: float | None) -> str:
    """A number of a column as the list shows it: milliseconds whole."""
    return f"{value:.0f}" if name == "latency" and value is not None else score(value)


def case_row(
    table: AnswerTable,
    row: int,
    columns: Sequence[Column],
    sign: str,
    why: tuple[str, str],
    number: Callable[[str], tuple[str, str]],
) -> Line:
    """One case: id, its state, numbers, question. ``why`` and ``number``: style and text of the
    state, and of each column of numbers."""

    def cell(name: str) -> tuple[str, DisplayText]:
        if name == "id":
            return "row", one_line(table.ids[row], 200)
        if name == "question":
            return "dim", one_line(table.questions[row], 600)
        style, text = why if name == "why" else number(name)
        return style, display(text)

    return _line([("row", display(sign)), note_span(table, row)], columns, cell)


def gain(name: str, before: float | None, after: float | None) -> float | None:
    """How much better a number of a case became (negative: worse); None where a run lacks it."""
    if before is None or after is None:
        return None
    lower = name == "latency" or name.partition("@")[0] in LOWER_IS_BETTER
    return before - after if lower else after - before


def number_pair(name: str, before: float | None, after: float | None) -> tuple[str, str]:
    """A number in two runs, as far as a column has room; milliseconds are whole."""
    if name == "latency":
        return number_text(name, before), number_text(name, after)
    return score_pair(before, after, _PAIR_DECIMALS)


FLIP_WORDS = {
    "broke": ("BROKE", "bad"),
    "fixed": ("FIXED", "good"),
    "fails still": ("fails", "dim"),
    "ok still": ("ok", "dim"),
}
"""The change of a case in a column, with its style."""


def progress(run: RunInfo, count: int) -> str:
    """How far a run is that is not complete; empty for one that is."""
    words = {"running": "in progress", "stopped": "stopped"}
    return f"{words[run.state]}: {count} of {run.planned or '?'}" if run.state in words else ""


RUN_FIXED = (
    Column("started", "date", 16, right=False),
    Column("done", "cases", 9),
    Column("errors", "errors", 6),
)


def run_columns(runs: Sequence[RunInfo], width: int) -> list[Column]:
    """Columns of the run list: the fixed ones, and the main metrics of any run that fit."""
    longest = max((cells(one_line(run.run_id, 60)) for run in runs), default=3)
    name = Column("run_id", "run", max(3, min(longest, 28 if width >= 100 else 22)), right=False)
    fixed = [name, *RUN_FIXED]
    used = 2 + sum(column.width + 1 for column in fixed)
    names = (name for name in RUN_MAIN if any(run.mean(name) is not None for run in runs))
    return [*fixed, *_that_fit(map(_metric_column, names), width - used)]


def run_row(run: RunInfo, columns: Sequence[Column], *, sign: str, marked: bool) -> Line:
    """One run: id, date, cases (of those planned while it goes on), errors, main metrics."""
    in_progress = run.state in ("running", "stopped")

    def cell(name: str) -> tuple[str, DisplayText]:
        if name == "run_id":
            return "marked" if marked else "row", one_line(run.run_id, 200)
        if name == "started":
            return "dim", one_line(run.started[:16].replace("T", " "))
        if name == "done":
            done = "-" if run.done is None else str(run.done)
            style = "key" if in_progress else "bad" if run.missing else "row"
            return style, display(f"{done}/{run.planned or '?'}" if in_progress else done)
        if name == "errors":
            errors = "-" if run.errors is None else str(run.errors)
            return "bad" if run.errors else "row", display(errors)
        return "row", display(score(run.mean(name)))

    signs = [("row", display(sign)), ("marked", display("*" if marked else " "))]
    # without scores a word stands in place of the metrics
    spans = [*_line(signs, columns if run.sections else columns[: 1 + len(RUN_FIXED)], cell)]
    words = {"running": "running", "stopped": "stopped", "empty": "no results"}
    if run.state in words:
        spans.append(("key" if run.state == "running" else "warn", display(words[run.state])))
    elif not run.sections:
        spans.append(("dim", display("not scored")))
    if run.problem:
        spans.append(("warn", one_line(" " + run.problem)))
    return tuple(spans)
