"""Smaller sections of a report: correlations, prompts, missing scores, configuration, history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from decisions.alerts import AlertRule, changes, make_lines
from decisions.history import read_history
from decisions.history_print import as_dict
from decisions.metric_words import catalogue_row
from records.runs import CONFIG, read_config
from records.scores import OWN_TEXTS
from terminal.page import (
    AnyColumn,
    Block,
    CasesColumn,
    Chart,
    DataColumn,
    DataTable,
    Heading,
    Prose,
    between,
    items,
    number,
    plain_table,
)
from views.report import figures
from views.report.answers import CaseListing, RunAnswers
from views.report.charts import TrendLine, TrendValue
from views.text import one_line

MOST_CORRELATED = 20

NO_SCORES = "No scores of single answers are there."


def correlations(answers: RunAnswers) -> Iterator[Block]:
    """Correlations of the main metrics of each section that any answer has.

    Of too many, each section keeps its first ones.
    """
    placed = list(answers.measured())
    chosen = {name for _, name in sorted(placed, key=lambda entry: entry[0])[:MOST_CORRELATED]}
    shown = [name for _, name in placed if name in chosen]
    left_out = [name[1] for _, name in placed if name not in chosen]
    found = figures.matrix(map(answers.column, shown))
    return figures.correlation_blocks([name[1] for name in shown], found, left_out)


def prompts(answers: RunAnswers) -> Iterator[Block]:
    """Labelled prompts and texts that the guardrails judged wrongly."""
    count, wrong = answers.wrong_prompts()
    if not count:
        return
    yield Prose(f"{count:,} labelled texts; {len(wrong)} are listed.")
    rows = []
    for line, _ in wrong:
        evidence = msgspec.to_builtins(line.evidence) or {}
        kind, category = ((evidence.get(n) or "").replace("_", " ") for n in ("kind", "category"))
        score, text = _value(evidence.get("score")), one_line(evidence.get("text") or "", 600)
        rows.append((one_line(line.case_id, 60), kind, category, score, text))
    caption = "Attacks and leaks that passed, harmless texts that were stopped"
    yield plain_table(("id", "kind", "category", "score", "text"), rows, words=5, caption=caption)


def _value(value: Any) -> str:
    """A value of a foreign JSON object in a cell: numbers rounded, lists joined."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return number(value) if isinstance(value, float) else str(value)


def not_applicable(cases: CaseListing) -> Iterator[Block]:
    """Why scores are missing: a row for each section and reason."""
    rows = []
    for section, reasons in cases.answers.reasons.items():
        for reason, by_metric in reasons.items():
            stems = dict.fromkeys(name.partition("@")[0] for name in sorted(by_metric))
            names = ", ".join("all" if stem == "*" else stem for stem in stems)
            links = cases.links_of("reason", section, reason) if section != OWN_TEXTS else None
            rows.append((section, reason, max(by_metric.values()), names, links))
    rows.sort(key=lambda row: (row[0], -row[2], row[1]))
    if not rows:
        yield Prose("Every answer has every score." if len(cases.answers) else NO_SCORES)
        return
    yield Prose("These scores are missing: they are no zeros, and they count in no mean.")
    columns: list[AnyColumn[Any]] = [
        DataColumn("section", lambda row: row[0], words=True),
        DataColumn("reason", lambda row: one_line(row[1]), words=True),
        DataColumn("answers", lambda row: f"{row[2]:,}"),
        DataColumn("metrics", lambda row: one_line(row[3], 800), words=True),
        CasesColumn("cases", lambda row: row[4]),
    ]
    yield DataTable(columns, rows, caption="Why scores are missing")


# Configuration

_PARTS = ("dataset", "index", "retriever", "answerer", "api", "judge", "run")


def configuration(folder: Path) -> Iterator[Block]:
    """config.json as tables of names and values, a table a part."""
    parts = list(settings(folder))
    if not parts:
        yield Prose("config.json is not there.")
    for at, (part, own) in enumerate(parts):
        rows = ((one_line(name), one_line(value, 600)) for name, value in own)
        title, caption = part.capitalize(), f"config.json: {part}"
        if not at:
            yield Heading(title, 3)
        folded = title if at else ""
        yield plain_table(("setting", "value"), rows, words=2, caption=caption, folded=folded)


Settings = list[tuple[str, str]]
"""Dotted names and values."""


def settings(folder: Path) -> Iterator[tuple[str, Settings]]:
    """The settings of config.json by part; nothing where it is absent."""
    if not (folder / CONFIG).exists():
        return
    config = msgspec.to_builtins(read_config(folder))
    plain = {name: value for name, value in config.items() if name not in _PARTS}
    for name, values in (("run", plain), *((part, config[part]) for part in _PARTS)):
        if rows := list(_flat(values)):
            yield "how it was asked" if values is config["run"] else name, rows


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Nested values as dotted names and text; what is empty is left out."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, list):
            if value:
                yield before + name, ", ".join(map(str, value))
        elif value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield before + name, text


def moment(written: str) -> str:
    """A time of config.json to the minute; other text unchanged."""
    utc = len(written) == 25 and written.endswith("+00:00")
    return f"{written[:16].replace('T', ' ')} UTC" if utc else written


MOST_POINTS = 40
"""The newest points that are drawn; alerts rest on all of them."""


def history_blocks(folder: Path, primary: Sequence[str]) -> Iterator[Block]:
    """The history of the primary metrics in the folder of this run, newest point last.

    The same lines, bands and alerts as track_metrics.py gives them. Raises StorageError outside a
    folder with any metrics.json.
    """
    history = read_history((folder.resolve().parent,))
    points = history.points
    scored = {key for point in points for key in point.values}
    names = [(section, metric) for section, _, metric in (n.partition(".") for n in primary)]
    lines = make_lines(points, [name for name in names if name in scored], AlertRule(primary))
    whole = as_dict(history, lines, changes(points, lines))
    first = max(0, len(points) - MOST_POINTS)
    shown = points[first:]
    if len(shown) < 2:
        text = "The history has one point. Commit the run's metrics.json, or score a second run, "
        yield Prose(f"{text}to see a trend.")
    text = "Dots are committed versions and runs, oldest first, with the 95 % interval; a ring is "
    text += (
        "an alert; the shaded band is where chance keeps the number. track_metrics.py gives the "
    )
    text += "same verdicts."
    if first:
        text += f" {first:,} older points are left out of the pictures."
    drawn = [_line(line, first) for line in whole["metrics"]]
    yield Chart("trends", {"lines": drawn, "points": len(shown)}, text)
    yield from items(alert["text"] for line in whole["metrics"] for alert in line["alerts"])
    for change in whole["changes"]:
        if change["place"] >= first:
            label = one_line(points[change["place"]].label)
            yield Prose(f"At {label}: {one_line(change['what'], 300)}.", "quiet")
    yield from (Prose(one_line(note, 400), "quiet") for note in whole["notes"])
    run_id, by_point = folder.resolve().name, [{v.point: v for v in line.values} for line in drawn]
    rows = (
        [
            one_line(point.label, 60) + (" (this run)" if point.run_id == run_id else ""),
            point.date[:10],
            *(_mean(line.get(at)) for line in by_point),
        ]
        for at, point in enumerate(shown)
    )
    head = ("point", "day", *(line.metric for line in drawn))
    caption = "Primary metrics by point of the history, oldest first, with the 95 % interval"
    yield plain_table(head, rows, words=2, caption=caption, folded="The points as a table")


def _line(line: Mapping[str, Any], first: int) -> TrendLine:
    metric = catalogue_row(line["metric"])
    values = [
        TrendValue(
            value["point"] - first,
            value["mean"],
            (value["band_low"], value["band_high"]),
            value["alert"],
            _interval(value),
        )
        for value in line["values"]
        if value["point"] >= first
    ]
    words = metric.in_words(line["metric"]) if metric else ""
    span = (metric.high or 0.0) - (metric.low or 0.0) if metric else 0.0
    return TrendLine(line["metric"], words, span, values)


def _interval(value: Mapping[str, Any]) -> tuple[float, float] | None:
    low, high = value["ci95_low"], value["ci95_high"]
    return None if low is None else (low, high)


def _mean(value: TrendValue | None) -> str:
    interval = f" ({between(value.ci95)})" if value and value.ci95 else ""
    return number(value.mean if value else None) + interval
