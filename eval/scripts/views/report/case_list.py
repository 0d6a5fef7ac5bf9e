"""All answers of a run in one list: in which order, what a row says, which of them stand behind a
figure. The order is what broke and was fixed, failed calls, failing, and then that of the set."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from msgspec import UNSET, UnsetType

from decisions.case_changes import Ways
from ragmetrics.stats.tally import Slices
from records.columns import ScoreColumn
from records.metrics import ROUND
from views.report.compared import catalogue_row
from views.report.figures import SliceLinks
from views.report.model import CaseLinks, CaseRow, CaseTable, ReportMetric
from views.report.report import CaseChange
from views.report.scan import MOST_ROWS, FigureRows, Key, Name, Scan

MOST_LISTED, FEWER_LISTED = 10_000, 5_000
"""Rows of the list. A run with more answers than that lists fewer, those that come first in its
order: its memory goes into their number."""

Changes = Mapping[str, Sequence[CaseChange]]


def worst_rows(scan: Scan, count: int) -> list[int]:
    """The ``count`` answers that fail, by the most harmful reason first, then those with more
    reasons, then in set order."""
    ruling = scan.verdicts.ruling
    order: dict[int, tuple[int, int]] = {}
    for broken in set(scan.verdicts.broken):
        fails = ruling.settle(broken)[0]
        if fails:
            order[broken] = ((fails & -fails).bit_length(), -fails.bit_count())
    return heapq.nsmallest(
        count,
        (row for row, broken in enumerate(scan.verdicts.broken) if broken in order),
        key=lambda row: (*order[scan.verdicts.broken[row]], row),
    )


def worst_by(scan: Scan, name: Name, higher_is_better: bool, count: int) -> list[int]:
    """The ``count`` answers with the worst score of one metric, worst first, in set order on ties.

    Answers without a score are left out.
    """
    sign = 1.0 if higher_is_better else -1.0
    column = scan.column(name)
    rows = (row for row, value in enumerate(column) if not isnan(value))
    return heapq.nsmallest(count, rows, key=lambda row: (sign * column[row], row))


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

    def part(self, columns: Sequence[Name], questions: Mapping[str, str]) -> CaseTable:
        """The list: the metrics of its scores, the rows, and how many are left out.

        ``columns``: metrics, by section, whose scores a row has, to six places. ``questions``: by
        case id, where the run's results do not tell them.
        """
        scores = [self.scan.column(name) for name in columns]
        return CaseTable(
            [metric for _, metric in columns],
            [self._row(row, scores, questions) for row in self.order if row in self.keys],
            left_out=len(self.scan.answers) - len(self.order),
        )

    def _row(
        self, row: int, scores: Sequence[ScoreColumn], questions: Mapping[str, str]
    ) -> CaseRow:
        case_id, repeat = self.keys[row]
        category = next((v for name, v in self.slices.get(case_id, ()) if name == "category"), None)
        values = [None if isnan(column[row]) else round(column[row], ROUND) for column in scores]
        question = self.questions.get(row) or questions.get(case_id, "")
        return CaseRow(case_id, repeat, self._state(row, case_id), category, values, question)

    def _state(self, row: int, case_id: str) -> str:
        """What became of the answer: broke or fixed, and ``fails: no gold``, ``warns`` or ok."""
        words: list[str] = [self.ways[case_id]] if case_id in self.ways else []
        ruling, broken = self.scan.verdicts.ruling, self.scan.verdicts.broken[row]
        if rule := ruling.first(broken):
            words.append(f"fails: {rule.word}")
        elif ruling.settle(broken)[1]:
            words.append("warns")
        return ", ".join(words) or "ok"

    def links(
        self, rows: Iterable[int], count: int | None = None, label: str | UnsetType = UNSET
    ) -> CaseLinks:
        """Some listed answers: at most 20 of them by id and repeat, and how many there are."""
        numbers = list(rows)
        listed = [self.keys[row] for row in numbers[:MOST_ROWS] if row in self.keys]
        return CaseLinks(len(numbers) if count is None else count, listed, label)

    def links_of(self, *figure: str) -> CaseLinks:
        """The answers that the scan noted behind a figure."""
        rows = self.scan.behind.get(figure) or FigureRows()
        return self.links(rows.rows, rows.count)

    def where(self, holds: Callable[[int], bool]) -> list[int]:
        """The listed answers of which something is true, in the order of the list."""
        return [row for row in self.order if holds(row)]

    def whole(self) -> bool:
        """Whether every answer of the run is in the list."""
        return len(self.order) == len(self.scan.answers)

    def of_metric(self, metric: ReportMetric) -> CaseLinks | None:
        """The answers behind a metric: those that are not at the good end of its range, the worst
        first."""
        row, name = metric.catalogued, (metric.measure.section, metric.measure.metric)
        if row is None or name not in self.scan.values:
            return None
        good = row.high if row.higher_is_better else row.low
        if good is None:
            return None
        column = self.scan.column(name)
        count = sum(value == value and value != good for value in column)
        rows = self.where(lambda row: column[row] == column[row] and column[row] != good)
        rows.sort(key=lambda number: column[number] if row.higher_is_better else -column[number])
        return self.links(rows, count, f"not {good:g}") if count else None

    def of_slices(self) -> SliceLinks:
        """Finds the listed answers of a slice, in the order of the list.

        Of a run too large for the list the count is that of the slice, and the links are of its
        listed answers.
        """
        members: dict[tuple[str, str], list[int]] = {}
        for row in self.order:
            if row in self.keys:
                for part in self.slices.get(self.keys[row][0], ()):
                    members.setdefault(part, []).append(row)

        def links(dimension: str, value: str, n: int) -> CaseLinks | None:
            rows = members.get((dimension, value), [])
            return self.links(rows, None if self.whole() else n) if rows else None

        return links

    def of_ranks(self, start: int, end: int, count: int) -> CaseLinks:
        """The listed answers whose first relevant passage stood at some ranks."""
        first = self.scan.first_ranks
        within = [row for row in self.order if row < len(first) and start <= first[row] <= end]
        return self.links(within, count)
