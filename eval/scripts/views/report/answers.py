"""The answers of a run in a report: scores and verdicts from its columns, what the results say of
those that are shown, and all of them in one list: what broke and was fixed comes first, then failed
calls, what fails, and then the order of the set."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, repeat
from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

from decisions.case_changes import CHANGES, PairVerdicts, Ways
from decisions.case_verdict import UNREADABLE_BIT, Key, Ruling, RunVerdicts
from decisions.first_look import worst_rows
from decisions.metric_words import catalogue_row
from ragmetrics.catalogue import SECTIONS
from ragmetrics.stats.tally import Slices
from records.metrics import ROUND
from records.profiles import forget_unmapped, read_maps_passages
from records.results import UNREADABLE, ErrorInfo, TestResult
from records.run import Run
from records.runs import RESULTS, results_file, scored_sections
from records.scores import OWN_TEXTS, ScoreLine
from records.section_table import LineKind
from terminal.page import CaseLinks
from terminal.tables import counted
from views.report.metrics import ReportMetric, SliceLinks

if TYPE_CHECKING:
    from records.section_table import Floats, Ints, Mask
if TYPE_CHECKING:
    from records.section_table import Floats


Name = tuple[str, str]
"""Section and metric."""

MOST_ROWS, MOST_PROMPTS = 20, 50


@dataclass
class FigureRows:
    """The number of answers behind a figure, and the numbers of the first 20 of them."""

    count: int = 0
    rows: Sequence[int] = ()


class RunAnswers:
    """The answers of a run by their numbers, from the columns of its score lines.

    ``table``: an explained one. ``sections``: those that are read, but for ``absent`` ones, which
    have no score lines. ``columns``: the metrics, by section, that are shown. ``ruling``: by which
    an answer fails. Raises StorageError for a damaged line.
    """

    def __init__(
        self,
        table: Run,
        sections: Collection[str],
        columns: Mapping[str, Sequence[str]],
        ruling: Ruling,
    ) -> None:
        import numpy as np

        self.table, self.verdicts, self._columns = table, RunVerdicts(ruling), columns
        self.behind: dict[tuple[str, ...], FigureRows] = {}
        """The answers behind a figure: of ``("reason", section, reason)`` those without the score,
        of ``("outcome", expected)`` those that ended otherwise."""
        self.reasons: dict[str, dict[str, Counter[str]]] = {}
        """By section, reason and metric (``*``: all): answers that have no score for it."""
        scored, self.absent = set(scored_sections(table.folder)), list[str]()
        self._numbers: dict[str, Ints | slice] = {}
        self._has_prompts = OWN_TEXTS in scored and OWN_TEXTS in sections
        for section in sections:
            if section not in scored:
                self.absent.append(section)
            elif section == OWN_TEXTS:
                table.section(section)
            else:
                self._numbers[section] = self.verdicts.take_table(table.section(section))
        self.failed: Mask = np.zeros(len(self), bool)
        """Whether the call failed."""
        for section, numbers in self._numbers.items():
            self.failed[numbers] |= table.section(section).failed_lines
            self._count_kinds(section)
        if self._has_prompts:
            self._count_kinds(OWN_TEXTS)

    def __len__(self) -> int:
        return len(self.verdicts.broken)

    def _count_kinds(self, section: str) -> None:
        """Note why scores are missing, and which responses ended otherwise than expected."""
        import numpy as np

        table = self.table.section(section)
        kinds = table.line_kinds
        counts = np.bincount(kinds, minlength=len(table.kinds)).tolist()
        order = np.argsort(kinds, kind="stable")
        firsts: dict[tuple[str, ...], list[int]] = {}
        end = 0
        for kind, count in zip(table.kinds, counts, strict=True):
            begin, end = end, end + count
            if kind.failed and section != OWN_TEXTS:
                continue
            for metric, reason in kind.reasons:
                by_metric = self.reasons.setdefault(section, {}).setdefault(reason, Counter())
                by_metric[metric] += count
            for figure in _figures_of(section, kind):
                self.behind.setdefault(figure, FigureRows()).count += count
                firsts.setdefault(figure, []).extend(order[begin:end][:MOST_ROWS].tolist())
        for figure, lines in firsts.items():
            first = sorted(lines)[:MOST_ROWS]
            self.behind[figure].rows = [self._number(section, line) for line in first]

    def _number(self, section: str, line: int) -> int:
        numbers = self._numbers.get(section, slice(0))
        return line if isinstance(numbers, slice) else int(numbers[line])

    def column(self, name: Name) -> Floats:
        """The scores of a metric, not a number where an answer has none."""
        import numpy as np

        section, metric = name
        values = np.full(len(self), np.nan)
        if section in self._numbers:
            table = self.table.section(section)
            values[self._numbers[section]] = table.raw_scores(metric)[table.codes]
        return values

    def shows(self, name: Name) -> bool:
        """Whether the scores of a metric are shown, if any answer has one."""
        return name[0] in self._numbers and name[1] in self._columns[name[0]]

    def measured(self) -> Iterator[tuple[int, Name]]:
        """The metrics of ``columns`` that any answer has a score of, each after its place."""
        for section in self._numbers:
            for place, metric in enumerate(self._columns[section]):
                values = self.table.section(section).raw_scores(metric)
                if (values == values).any():
                    yield place, (section, metric)

    @property
    def first_ranks(self) -> Ints:
        """Rank of the first relevant passage; 0 when none was found, -1 without gold."""
        return self._facts("retrieval", -1)

    @property
    def abstained(self) -> Mask:
        """Whether the abstention scorer found that the bot abstained."""
        return self._facts("abstention", False) > 0

    def _facts(self, section: str, unknown: int) -> Ints:
        import numpy as np

        facts: Ints = np.full(len(self), unknown, np.int32)
        if section in self._numbers:
            table = self.table.section(section)
            of_kinds = [
                unknown if kind.failed or kind.fact is None else kind.fact for kind in table.kinds
            ]
            facts[self._numbers[section]] = np.array(of_kinds, np.int32)[table.line_kinds]
        return facts

    def lines(self, rows: Collection[int]) -> dict[int, dict[str, ScoreLine]]:
        """The score lines of some answers, by answer and section. Raises StorageError for damaged
        ones."""
        lines_of: dict[int, dict[str, ScoreLine]] = {row: {} for row in rows}
        for section in self._numbers:
            places = self._places(section, rows)
            lines = self.table.section(section).lines(places)
            for row, line in zip(places.values(), lines, strict=True):
                lines_of[row][section] = line
        return lines_of

    def keys(self, rows: Collection[int]) -> dict[int, Key]:
        """Case id and repeat of some answers, from one of their score lines each."""
        keys: dict[int, Key] = {}
        for section in self._numbers:
            places = self._places(section, [row for row in rows if row not in keys])
            table = self.table.section(section)
            lines = table.lines(places, ("case_id",))
            for (place, row), line in zip(places.items(), lines, strict=True):
                keys[row] = line.case_id, int(table.repeats[place])
        return keys

    def _places(self, section: str, rows: Collection[int]) -> dict[int, int]:
        """The lines of some answers, by how many stand before each, in their order."""
        import numpy as np

        numbers = self._numbers[section]
        if isinstance(numbers, slice):
            return {row: row for row in sorted(rows) if row < numbers.stop}
        places = np.flatnonzero(np.isin(numbers, list(rows)))
        return dict(zip(places.tolist(), numbers[places].tolist(), strict=True))

    def wrong_prompts(self) -> tuple[int, list[tuple[ScoreLine, list[str]]]]:
        """How many labelled prompts were judged wrongly, and the first of them with the metrics
        that say so."""
        import numpy as np

        if not self._has_prompts:
            return 0, []
        table, good = self.table.section(OWN_TEXTS), dict[str, float | None]()
        wrong = np.zeros(len(table.kind_of), bool)
        for row in SECTIONS[OWN_TEXTS].metrics:
            if row.must:
                good[row.name] = row.high if row.higher_is_better else row.low
                values = table.raw_scores(row.name)
                wrong |= (values == values) & (values != good[row.name])
        places = np.flatnonzero(wrong[table.codes])
        listed = []
        for line in table.lines(places[:MOST_PROMPTS].tolist()):
            scores = ((n, score) for n, score in line.scores.items() if score is not None)
            listed.append((line, [n for n, score in scores if n in good and score != good[n]]))
        return len(places), listed


def _figures_of(section: str, kind: LineKind) -> Iterator[tuple[str, ...]]:
    """The figures that lines of a kind stand behind."""
    for reason in dict.fromkeys(reason for _, reason in kind.reasons):
        yield "reason", section, reason
    if section == "pipeline" and kind.fact is not None:
        outcome, expected = kind.fact
        if expected and outcome != expected:
            yield "outcome", expected


MOST_IDS = 20


@dataclass
class CallErrors:
    """The failed calls of a kind: how many, the first message, some case ids."""

    count: int = 0
    example: str = ""
    cases: list[str] = field(default_factory=list)


@dataclass
class ResultsRead:
    """The result of one pass over results.jsonl."""

    results: dict[Key, TestResult] = field(default_factory=dict)
    confidences: array[float] = field(default_factory=lambda: array("d"))
    """By the number of an answer; NaN where the bot reported none."""
    answered: bytearray = field(default_factory=bytearray)
    """By the number of an answer: 1 when results.jsonl holds it, and it could be read."""
    errors: dict[str, CallErrors] = field(default_factory=dict)
    """By kind, the most frequent first."""
    notes: list[str] = field(default_factory=list)
    questions: dict[int, str] = field(default_factory=dict)
    """The beginning of the question of each listed answer, by its number."""
    slowest: list[tuple[float, int]] = field(default_factory=list)
    """The longest total times in milliseconds, with the number of the answer, longest first."""


QUESTION_CHARACTERS, MOST_SLOW = 100, 10


def differing_answers(before: Run, now: Run) -> set[Key]:
    """The answers of a run that are another text than in its baseline; calls that failed have none.

    Empty where one of the two has no results. Raises StorageError for a damaged line.
    """
    fields = ("test_case_id", "repeat", "answer")
    if not (results_file(before.folder).exists() and results_file(now.folder).exists()):
        return set()
    known, new = (
        {(r.test_case_id, r.repeat): hash(r.answer) for r in run.iter_results(*fields) if r.answer}
        for run in (before, now)
    )
    return {key for key, answer in new.items() if known.get(key, answer) != answer}


def read_results(
    answers: RunAnswers, rows: Iterable[int], listed: Collection[int] = ()
) -> ResultsRead:
    """One pass over the answers: confidences, errors by kind, questions of those that are listed,
    and the answers of some rows whole.

    Raises StorageError for a damaged line. Memory: a number an answer, and the chosen answers.
    """
    folder, verdicts = answers.table.folder, answers.verdicts
    back = ResultsRead()
    path = results_file(folder)
    if not path.exists():
        back.notes.append(f"{RESULTS} is not there: no answer, error or confidence is shown.")
        return back
    chosen, mapped = set(rows), read_maps_passages(folder)
    back.confidences = array("d", [nan]) * len(answers)
    back.answered = bytearray(len(answers))
    failed: dict[str, CallErrors] = {}
    for result in answers.table.iter_results():
        key = (result.test_case_id, result.repeat)
        row = verdicts.find(key)
        if result.status == "error":
            error = result.error or ErrorInfo("unknown", "", 0)
            own = failed.setdefault(error.kind, CallErrors())
            own.count += 1
            own.example = own.example or error.message[:300]
            if own.count <= MOST_IDS:
                own.cases.append(result.test_case_id)
        elif row is not None and result.status != UNREADABLE:
            back.answered[row] = 1
            if result.confidence is not None:
                back.confidences[row] = result.confidence
            if (total := result.latency_ms.get("total")) is not None:
                _add_time(back.slowest, total, row)
        if row in chosen:
            back.results[key] = result if mapped else forget_unmapped(result)
        if row is not None and row in listed:
            back.questions[row] = (result.question or "")[:QUESTION_CHARACTERS]
    back.slowest.sort(reverse=True)
    back.errors = dict(sorted(failed.items(), key=lambda item: (-item[1].count, item[0])))
    return back


def _add_time(slowest: list[tuple[float, int]], total: float, row: int) -> None:
    """Keep the longest times, in a heap."""
    if len(slowest) < MOST_SLOW:
        heapq.heappush(slowest, (total, row))
    elif total > slowest[0][0]:
        heapq.heapreplace(slowest, (total, row))


MOST_LISTED, FEWER_LISTED = 10_000, 5_000
"""Rows of the list. A run with more answers than that lists fewer, those that come first in its
order: its memory goes into their number."""

STATES = ("broke", "fails", "fixed", "warns", UNREADABLE, "ok")
"""The states of an answer, the worst first."""


class CaseRow(NamedTuple):
    """An answer in the list; ``values``: its primary scores. ``marks``: "d" where the baseline
    answered otherwise, "n" where the case has a note."""

    case_id: str
    repeat: int
    state: str
    why: str
    category: str | None
    values: Sequence[float | None]
    question: str
    marks: str = ""


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
        seen = {row.state for row in self.rows}
        order = ", ".join(state for state in STATES if state in seen)
        text = (
            counted(len(self.rows), "answer")
            + ", the worst first" * (len(seen) > 1)
            + f": {order}."
        )
        if self.left_out:
            text += f" {self.left_out:,} more are left out; browse_runs.py shows all of them."
        return text


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
    differing: Collection[Key] = ()
    """Answers that are another text than in the baseline."""
    noted: Collection[str] = ()
    """Cases with a note."""

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
        marks = "d" * ((case_id, repeat) in self.differing) + "n" * (case_id in self.noted)
        state = self._state(row, case_id)
        return CaseRow(case_id, repeat, *state, category, values, question, marks)

    def _harm(self, row: int) -> int:
        """The place of an answer's reason in the order of harm."""
        return self.answers.verdicts.ruling.harm(self.answers.verdicts.broken[row])

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
