"""All answers of a run in one list: in which order, what a row says, which of them stand behind a
figure. The order is what broke and was fixed, failed calls, failing, and then that of the set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

from decisions.case_changes import Ways
from ragmetrics.stats.tally import Slices
from records.columns import ScoreColumn
from records.metrics import ROUND
from views.report.answers import worst_by, worst_rows
from views.report.compared import CaseChange, catalogue_row
from views.report.scan import MOST_ROWS, FigureRows, Key, Name, Scan

MOST_LISTED, FEWER_LISTED = 10_000, 5_000
"""Rows of the list. A run with more answers than that lists fewer, those that come first in its
order: its memory goes into their number."""

COLUMNS = ("case_id", "repeat", "state", "category", "values", "question")
"""What a row of the list holds."""

Part = dict[str, Any]

Changes = Mapping[str, Sequence[CaseChange]]


def order_of(scan: Scan, ways: Mapping[str, Ways], by: Name | None) -> list[int]:
    """The numbers of the answers to list. ``by``: a metric whose worst scores come first."""
    most = MOST_LISTED if len(scan.answers) <= MOST_LISTED else FEWER_LISTED
    rows: dict[int, None] = {}
    if by is not None:
        metric = catalogue_row(by[1])
        worst = worst_by(scan, by, metric is None or metric.higher_is_better, most)
        rows |= dict.fromkeys(worst)
    else:
        numbers = (scan.verdicts.find((case_id, 0)) for case_id in ways)
        rows |= dict.fromkeys(number for number in numbers if number is not None)
        rows |= dict.fromkeys(row for row, failed in enumerate(scan.failed) if failed)
        rows |= dict.fromkeys(worst_rows(scan, most))
    for row in range(len(scan.answers)):
        if len(rows) >= most:
            break
        rows.setdefault(row)
    return list(rows)[:most]


@dataclass
class CaseListing:
    """The listed answers. ``keys``: by number. ``slices``, ``questions``: by case id."""

    scan: Scan
    order: Sequence[int]
    keys: Mapping[int, Key]
    changes: Changes = field(default_factory=dict)
    ways: Mapping[str, Ways] = field(default_factory=dict)
    """The cases that broke or were fixed since the baseline."""
    slices: Mapping[str, Slices] = field(default_factory=dict)
    questions: Mapping[int, str] = field(default_factory=dict)

    def part(self, columns: Sequence[Name], questions: Mapping[str, str]) -> Part:
        """The list as JSON data: what a row holds, the metrics of its scores, the rows, and how
        many are left out.

        ``columns``: metrics, by section, whose scores a row has, to six places. ``questions``: by
        case id, where the run's results do not tell them.
        """
        scores = [self.scan.column(name) for name in columns]
        return {
            "columns": COLUMNS,
            "metrics": [metric for _, metric in columns],
            "rows": [self._row(row, scores, questions) for row in self.order if row in self.keys],
            "left_out": len(self.scan.answers) - len(self.order),
        }

    def _row(
        self, row: int, scores: Sequence[ScoreColumn], questions: Mapping[str, str]
    ) -> list[Any]:
        case_id, repeat = self.keys[row]
        category = next((v for name, v in self.slices.get(case_id, ()) if name == "category"), None)
        values = [None if isnan(column[row]) else round(column[row], ROUND) for column in scores]
        question = self.questions.get(row) or questions.get(case_id, "")
        return [case_id, repeat, self._state(row, case_id), category, values, question]

    def _state(self, row: int, case_id: str) -> str:
        """What became of the answer: broke or fixed, and ``fails: no gold``, ``warns`` or ok."""
        words: list[str] = [self.ways[case_id]] if case_id in self.ways else []
        ruling, broken = self.scan.verdicts.ruling, self.scan.verdicts.broken[row]
        if rule := ruling.first(broken):
            words.append(f"fails: {rule.word}")
        elif ruling.settle(broken)[1]:
            words.append("warns")
        return ", ".join(words) or "ok"

    def links(self, rows: Iterable[int], count: int | None = None) -> Part:
        """Some listed answers: at most 20 of them by id and repeat, and how many there are."""
        numbers = list(rows)
        listed = [list(self.keys[row]) for row in numbers[:MOST_ROWS] if row in self.keys]
        return {"count": len(numbers) if count is None else count, "listed": listed}

    def links_of(self, *figure: str) -> Part:
        """The answers that the scan noted behind a figure."""
        rows = self.scan.behind.get(figure) or FigureRows()
        return self.links(rows.rows, rows.count)

    def where(self, holds: Callable[[int], bool]) -> list[int]:
        """The listed answers of which something is true, in the order of the list."""
        return [row for row in self.order if holds(row)]

    def whole(self) -> bool:
        """Whether every answer of the run is in the list."""
        return len(self.order) == len(self.scan.answers)


def link_metrics(cases: CaseListing, perspectives: Iterable[Part]) -> None:
    """Add to each metric that single answers have the answers behind it (``cases``).

    ``label`` says which: those that are not at the good end of the metric's range, the worst first.
    """
    for part in perspectives:
        for metric in part["metrics"]:
            name = part["name"], metric["metric"]
            links = _worst(cases, name, metric) if name in cases.scan.values else None
            metric["cases"] = links if links and links["count"] else None


def _worst(cases: CaseListing, name: Name, metric: Part) -> Part | None:
    """The answers farthest from the good end, if the metric has one."""
    higher = metric["higher_is_better"]
    good = metric["high"] if higher else metric["low"]
    if good is None:
        return None
    column = cases.scan.column(name)
    count = sum(value == value and value != good for value in column)
    rows = cases.where(lambda row: column[row] == column[row] and column[row] != good)
    rows.sort(key=lambda row: -column[row] if not higher else column[row])
    return cases.links(rows, count) | {"label": f"not {good:g}"}


def link_slices(cases: CaseListing, tables: Iterable[Part]) -> None:
    """Add to each row of a table of slices the listed answers in it, in the order of the list.

    Of a run too large for the list the count is that of the slice, and the links are of its listed
    answers.
    """
    members: dict[tuple[str, str], list[int]] = {}
    for row in cases.order:
        if row in cases.keys:
            for part in cases.slices.get(cases.keys[row][0], ()):
                members.setdefault(part, []).append(row)
    for table in tables:
        for row in table["rows"]:
            rows = members.get((table["dimension"], row["value"]), [])
            links = None
            if table["of"] == "cases" and rows:
                links = cases.links(rows, None if cases.whole() else row["n"])
            row["cases"] = links


def link_ranks(cases: CaseListing, ranks: Part) -> None:
    """Add to each group of ranks its listed answers."""
    first = cases.scan.first_ranks
    for group in (*ranks["bins"], ranks["nowhere"]):
        ends = range(group["from"], group["to"] + 1)
        rows = [row for row in cases.order if row < len(first) and first[row] in ends]
        group["cases"] = cases.links(rows, group["count"])
