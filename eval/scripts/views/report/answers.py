"""Collects the report's facts about single answers: scores and verdicts from the columns of the
run, and what results.jsonl and the eval set say of those that it shows."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from decisions.case_verdict import Key, Ruling, RunVerdicts
from ragmetrics.catalogue import SECTIONS
from ragmetrics.stats.tally import Slices, facets_of, slices_of
from records.cases import TestCase, ignore, iter_cases
from records.labels import read_labels
from records.profiles import forget_unmapped, read_maps_passages
from records.results import UNREADABLE, ErrorInfo, TestResult
from records.run import Run
from records.runs import RESULTS, results_file, scored_sections
from records.scores import OWN_TEXTS, ScoreLine
from records.section_table import LineKind

if TYPE_CHECKING:
    from records.section_table import Floats, Ints, Mask

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


@dataclass
class CasesRead:
    """The result of one pass over the eval set.

    ``cases``: those that are shown in full. ``slices``: of the listed cases, with ``questions``.
    """

    cases: dict[str, TestCase] = field(default_factory=dict)
    slices: dict[str, Slices] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)


def read_cases(
    eval_set: Path,
    labels_dir: Path | None,
    ids: set[str],
    listed: Collection[str] = (),
    *,
    questions: bool = False,
) -> CasesRead:
    """The cases with these ids, and the slices of those that are listed, with the questions of
    these if asked. Faulty lines were reported when the run was scored."""
    read = CasesRead()
    if not (ids or listed) or not eval_set.exists():
        return read
    labels, _ = read_labels(labels_dir, ignore, eval_set)
    for case in iter_cases(eval_set, ignore, labels):
        if case.id in ids:
            read.cases[case.id] = case
        if case.id in listed:
            read.slices[case.id] = slices_of(facets_of(case))
            if questions:
                read.questions[case.id] = case.question[:QUESTION_CHARACTERS]
    return read
