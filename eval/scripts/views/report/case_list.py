"""All answers of a run in one list: in which order, what a row says, which of them stand behind a
figure. The order is what broke and was fixed, failed calls, failing, and then that of the set."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, repeat
from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

from decisions.case_changes import CHANGES, PairVerdicts, Ways
from decisions.case_verdict import UNREADABLE_BIT, Key, RunVerdicts
from decisions.metric_words import catalogue_row
from ragmetrics.stats.tally import Slices
from records.metrics import ROUND
from records.results import UNREADABLE
from terminal.page import CaseLinks
from views.report.answers import MOST_ROWS, FigureRows, Name, RunAnswers
from views.report.metrics import ReportMetric, SliceLinks

if TYPE_CHECKING:
    from records.section_table import Floats

MOST_LISTED, FEWER_LISTED = 10_000, 5_000
"""Rows of the list. A run with more answers than that lists fewer, those that come first in its
order: its memory goes into their number."""

STATES = ("broke", "fails", "fixed", "warns", UNREADABLE, "ok")
"""The states of an answer, the worst first."""


class CaseRow(NamedTuple):
    """An answer in the list; ``values``: its primary scores."""

    case_id: str
    repeat: int
    state: str
    why: str
    category: str | None
    values: Sequence[float | None]
    question: str


@dataclass(frozen=True, slots=True)
class CaseTable:
    """All answers in short rows. ``metrics``: of their scores. ``in_full``: keys of the answers
    that the document shows in full."""

    metrics: Sequence[str]
    rows: Sequence[CaseRow]
    left_out: int
    in_full: Sequence[Key] = ()

    def says(self) -> str:
        """The content of the list, and the part that is left out."""
        if not self.rows:
            return "No scores of single answers are there."
        unread = f" {UNREADABLE}," if any(row.state == UNREADABLE for row in self.rows) else ""
        text = (
            f"{len(self.rows):,} answers, the worst first: broke, fails, fixed, warns,{unread} ok."
        )
        if self.left_out:
            text += f" {self.left_out:,} more are left out; browse_runs.py shows all of them."
        return text


def worst_rows(verdicts: RunVerdicts, count: int) -> list[int]:
    """The ``count`` answers that fail, by the most harmful reason first, then those with more
    reasons, then in set order."""
    ruling = verdicts.ruling
    order: dict[int, tuple[int, int]] = {}
    for broken in set(verdicts.broken):
        fails = ruling.settle(broken)[0]
        if fails:
            order[broken] = (ruling.harm(broken), -fails.bit_count())
    return heapq.nsmallest(
        count,
        (row for row, broken in enumerate(verdicts.broken) if broken in order),
        key=lambda row: (*order[verdicts.broken[row]], row),
    )


def worst_by(column: Floats, higher_is_better: bool, count: int) -> list[int]:
    """The ``count`` answers with the worst score of one metric, worst first, in set order on ties.

    Answers without a score are left out.
    """
    worst = (column if higher_is_better else -column).argsort(kind="stable")  # NaN comes last
    rows: list[int] = worst[: min(count, int((column == column).sum()))].tolist()
    return rows


def order_of(answers: RunAnswers, ways: Mapping[str, Ways], by: Name | None) -> list[int]:
    """The numbers of the answers to list. ``by``: a metric whose worst scores come first."""
    most = MOST_LISTED if len(answers) <= MOST_LISTED else FEWER_LISTED
    rows: dict[int, None] = {}
    if by is not None:
        metric = catalogue_row(by[1])
        higher = metric is None or metric.higher_is_better
        rows |= dict.fromkeys(worst_by(answers.column(by), higher, most))
    else:
        numbers = (answers.verdicts.find((case_id, 0)) for case_id in ways)
        rows |= dict.fromkeys(number for number in numbers if number is not None)
        rows |= dict.fromkeys(answers.failed.nonzero()[0].tolist())
        rows |= dict.fromkeys(worst_rows(answers.verdicts, most))
    for row in range(len(answers)):
        if len(rows) >= most:
            break
        rows.setdefault(row)
    return list(rows)[:most]


@dataclass
class CaseListing:
    """The listed answers. ``keys``: by number. ``slices``, ``questions``: by case id. ``pair``: the
    run beside its baseline. ``by_harm``: whether the worst states come first in the list."""

    answers: RunAnswers
    order: Sequence[int]
    keys: Mapping[int, Key]
    ways: Mapping[str, Ways] = field(default_factory=dict)
    """The cases that broke or were fixed since the baseline."""
    slices: Mapping[str, Slices] = field(default_factory=dict)
    questions: Mapping[int, str] = field(default_factory=dict)
    pair: PairVerdicts | None = None
    by_harm: bool = True

    def part(self, columns: Sequence[Name], questions: Mapping[str, str]) -> CaseTable:
        """The list: the metrics of its scores, the rows, and how many are left out.

        ``columns``: metrics, by section, whose scores a row has, to six places. ``questions``: by
        case id, where the run's results do not tell them.
        """
        scores = [self.answers.column(name)[list(self.order)].tolist() for name in columns]
        own = zip(self.order, zip(*scores, strict=True) if scores else repeat(()), strict=False)
        rows = [(row, self._row(row, values, questions)) for row, values in own if row in self.keys]
        if self.by_harm:
            rows.sort(key=lambda one: (STATES.index(one[1].state), self._harm(one[0])))
        return CaseTable(
            [metric for _, metric in columns],
            [row for _, row in rows],
            left_out=len(self.answers) - len(self.order),
        )

    def _row(self, row: int, scores: Sequence[float], questions: Mapping[str, str]) -> CaseRow:
        case_id, repeat = self.keys[row]
        category = next((v for name, v in self.slices.get(case_id, ()) if name == "category"), None)
        values = [None if isnan(score) else round(score, ROUND) for score in scores]
        question = self.questions.get(row) or questions.get(case_id, "")
        return CaseRow(case_id, repeat, *self._state(row, case_id), category, values, question)

    def _harm(self, row: int) -> int:
        """The place of the rule by which an answer fails, the most harmful first."""
        fails = self.answers.verdicts.ruling.settle(self.answers.verdicts.broken[row])[0]
        return (fails & -fails).bit_length()

    def _state(self, row: int, case_id: str) -> tuple[str, str]:
        """What became of the answer, one of ``STATES``, and why in a few words."""
        ruling, broken = self.answers.verdicts.ruling, self.answers.verdicts.broken[row]
        way = self.pair.way(case_id) if self.pair else self.ways.get(case_id)
        if broken & UNREADABLE_BIT:
            return UNREADABLE, ""
        rule, warns = ruling.first(broken), ruling.rules_of(ruling.settle(broken)[1])
        word = rule.word if rule else warns[0].word if warns else ""
        if way in CHANGES:
            return way, (self.pair.few_words(case_id) if self.pair else "") or word
        return "fails" if rule else "warns" if warns else "ok", word

    def links(self, rows: Iterable[int], count: int | None = None, label: str = "") -> CaseLinks:
        """Some listed answers: at most 20 of them by id and repeat, and how many there are."""
        numbers = list(rows)
        listed = [self.keys[row] for row in numbers[:MOST_ROWS] if row in self.keys]
        return CaseLinks(len(numbers) if count is None else count, listed, label)

    def links_of(self, *figure: str) -> CaseLinks:
        """The answers behind a figure, see ``RunAnswers.behind``."""
        rows = self.answers.behind.get(figure) or FigureRows()
        return self.links(rows.rows, rows.count)

    def whole(self) -> bool:
        """Whether every answer of the run is in the list."""
        return len(self.order) == len(self.answers)

    def of_metric(self, metric: ReportMetric) -> CaseLinks | None:
        """The answers behind a metric: those that are not at the good end of its range, the worst
        first."""
        row, name = metric.catalogued, (metric.measure.section, metric.measure.metric)
        if row is None or not self.answers.shows(name):
            return None
        good = row.high if row.higher_is_better else row.low
        if good is None:
            return None
        column = self.answers.column(name)
        count = int(((column == column) & (column != good)).sum())
        listed = column[list(self.order)]
        listed[listed == good] = nan
        rows = [self.order[at] for at in worst_by(listed, row.higher_is_better, MOST_ROWS)]
        return (
            self.links(
                rows, count, f"cases {'below' if row.higher_is_better else 'above'} {good:g}"
            )
            if count
            else None
        )

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
        """The listed answers whose first relevant passage had one of some ranks."""
        first = self._first_ranks
        within = (row for row, rank in zip(self.order, first, strict=True) if start <= rank <= end)
        return self.links(islice(within, MOST_ROWS), count)

    @cached_property
    def _first_ranks(self) -> list[int]:
        ranks: list[int] = self.answers.first_ranks[list(self.order)].tolist()
        return ranks
