"""A run folder as one object: configuration, set, answers beside their cases, and scores."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import orjson

from records.cases import TestCase, ignore, iter_case_blocks
from records.clusters import AUTO, Clustering, clustering_of
from records.errors import Problem
from records.jsonl import Lean, read, read_with, whole
from records.labels import read_labels, unknown_labels
from records.lines import Report, lines_from, open_lines
from records.profiles import forget_unmapped, read_maps_passages
from records.results import (
    RunConfig,
    TestResult,
    iter_result_blocks,
    iter_results,
    result_offsets,
    result_type,
    results_of,
)
from records.runs import (
    EVAL_SET,
    PARTIAL,
    SAFETY_RESULTS,
    VERDICTS,
    known_config,
    results_file,
    scored_sections,
    scores_file,
)
from records.scores import (
    ALL_BUT_EVIDENCE,
    OWN_TEXTS,
    ScoreLine,
    line_type,
    read_head,
    read_scores,
)
from records.section_table import SectionTable

if TYPE_CHECKING:
    from records.judgements import Verdicts
    from records.section_table import Floats, Ints
    from records.verdicts import VerdictLine

T = TypeVar("T")

KeepLine = Callable[["VerdictLine"], bool]
"""Whether a verdict line is read."""

Joined = tuple[list[TestCase], list[TestResult]]
"""Two lists of one length: each result with its case. Repeats of a case stand together."""

Absent = Callable[[TestCase, Collection[int]], list[TestResult]]
"""Placeholders of the results that a case should have, besides those of its present repeats."""

Brief = Callable[[TestCase, TestResult], TestResult]
"""Gives back a result, or a smaller object that reads like it."""

_REPEAT = attrgetter("repeat")


class Run:
    """A run folder and the set it was asked with, each part read when first asked for.

    ``lean``: records have only the fields that the files have, see ``Lean``; they cannot be sent
    to another process. ``explained``: as of a SectionTable. ``problems``: every fault of set and
    labels, once ``cases`` were read. ``tolerant``: also of a run in progress, and what cannot be
    read is left out and put into ``problems``, instead of raised.
    """

    def __init__(
        self,
        folder: Path,
        eval_set: Path = EVAL_SET,
        labels_dir: Path | None = None,
        *,
        lean: bool = True,
        explained: bool = False,
        tolerant: bool = False,
    ) -> None:
        self.folder, self.eval_set = folder, eval_set
        partial = folder / PARTIAL
        self.results_path = partial if tolerant and partial.exists() else results_file(folder)
        self.problems: list[Problem] = []
        self._report = self.problems.append if tolerant else None
        self._labels_dir, self._lean = labels_dir, lean
        self._explained = explained
        self._sections: dict[str, SectionTable] = {}

    @cached_property
    def config(self) -> RunConfig:
        """The configuration; of a run without one only its id is known."""
        return known_config(self.folder)

    @cached_property
    def cases(self) -> dict[str, TestCase]:
        """The cases of the set with their labels, by id, in the order of the file."""
        if self._report and not self.eval_set.exists():
            return {}
        report = self.problems.append
        labels, places = read_labels(self._labels_dir, report, self.eval_set)
        decode = Lean(TestCase) if self._lean else whole(TestCase)
        blocks = iter_case_blocks(self.eval_set, report, labels, decode)
        cases = {case.id: case for case in chain.from_iterable(blocks)}
        if labels and not self.problems:
            self.problems += unknown_labels(labels, places, self.eval_set, set(cases))
        return cases

    def iter_results(self, *fields: str) -> Iterator[TestResult]:
        """Results one by one, whole or with some fields. Raises StorageError for damaged ones."""
        if not fields:
            return iter_results(self.results_path, self._report)
        return (result for _, result in self.placed_results(*fields))

    def placed_results(self, *fields: str) -> Iterator[tuple[int, TestResult]]:
        """The same with the byte offset of each line, so that one can be read again."""
        return self._each(self.results_path, result_type(*fields), "result line")

    @cached_property
    def safety_results(self) -> list[TestResult] | None:
        """The answers to labelled prompts; None if they were not asked."""
        path = self.folder / SAFETY_RESULTS
        return list(iter_results(path)) if path.exists() else None

    def _each(self, path: Path, kind: type[T], noun: str) -> Iterator[tuple[int, T]]:
        """Offset and record of each line of a file; blank ones, and one that is still being
        written, are left out."""
        decode = msgspec.json.Decoder(kind).decode

        def sound(line: bytes) -> T | None:
            is_torn = self._report is not None and not line.endswith(b"\n")
            is_torn = is_torn and path.name in (PARTIAL, VERDICTS)
            return None if is_torn or line.isspace() else decode(line)

        lines = read_with(path, sound, noun, "make the run again", self._report)
        return ((offset, record) for _, offset, record in lines if record is not None)

    @cached_property
    def results(self) -> list[TestResult]:
        """All results, in the order of the file. Raises StorageError for a damaged line."""
        return list(self.iter_results())

    def answers(
        self, report: Report, absent: Absent | None = None, brief: Brief | None = None
    ) -> Joined:
        """Each result with its case, in the order of the set.

        ``report`` takes damaged lines, and results whose case the set does not have; ``absent``
        puts something into the place of results that should be there. ``brief`` says what is kept
        of a result; by default all of it.
        """
        decode = Lean(TestResult) if self._lean else whole(TestResult)
        cases: list[TestCase] = []
        results: list[TestResult] = []
        unknown: dict[str, None] = {}
        for result in chain.from_iterable(iter_result_blocks(self.results_path, report, decode)):
            if (case := self.cases.get(result.test_case_id)) is None:
                unknown[result.test_case_id] = None
                continue
            cases.append(case)
            results.append(brief(case, result) if brief else result)
        for case_id in unknown:
            message = (
                f"{case_id!r} is not in {self.eval_set}; name the set that the run was asked with"
            )
            report(Problem(str(self.results_path), None, "test_case_id", message))
        if absent is None and cases == list(self.cases.values()):
            return cases, results  # most runs
        of_case: dict[str, list[TestResult]] = {case_id: [] for case_id in self.cases}
        for result in results:
            of_case[result.test_case_id].append(result)
        for case_id, own in of_case.items():
            own.sort(key=_REPEAT)
            if absent is not None:
                own += absent(self.cases[case_id], {result.repeat for result in own})
        cases = [self.cases[case_id] for case_id, own in of_case.items() for _ in own]
        return cases, list(chain.from_iterable(of_case.values()))

    def section(self, name: str) -> SectionTable:
        """The score lines of a section. Raises StorageError for damaged ones."""
        if name not in self._sections:
            table = SectionTable(self.folder, name, self._report, explained=self._explained)
            deque(table.read(), maxlen=0)
            self._sections[name] = table
        return self._sections[name]

    def lines(self, section: str) -> Iterator[ScoreLine]:
        """The whole score lines of a section, with evidence of the section's own type. Raises
        StorageError for damaged ones."""
        return read_scores(self.folder, section)

    def column(self, metric: str) -> tuple[list[str], Floats]:
        """The ids of the scored cases and a metric's score of each, of repeats their mean; not a
        number where a case has none. ``metric``: with its section, such as ``retrieval.mrr``."""
        section, _, name = metric.partition(".")
        table = self.section(section)
        return list(table.case_ids().values()), table.column(name)

    def clustering(self) -> Clustering | None:
        """The clusters that the score lines name; None where they name none.

        Every section has a line for each case, so the shortest file is read.
        """
        return self._clustering

    def ids(self) -> Ints:
        """The numbers of the ids of the cases that were scored, see ``id_number``."""
        return self.section(next(iter(self._sections), self._own_sections()[0])).ids

    @cached_property
    def _clustering(self) -> Clustering | None:
        paths = [scores_file(self.folder, name) for name in self._own_sections()]
        if not paths:
            return None
        name = min(paths, key=lambda path: path.stat().st_size).stem
        table = SectionTable(self.folder, name, explained=self._explained)
        cases = (next(lines) for _, lines in groupby(table.read(), attrgetter("case_id")))
        clustering = clustering_of(((c.case_id, c.cluster) for c in cases), AUTO, required=True)
        self._sections[name] = table
        return clustering

    @property
    def sections(self) -> list[str]:
        """The sections that are scored, sorted."""
        return scored_sections(self.folder)

    def _own_sections(self) -> list[str]:
        """The scored sections whose lines are the run's own answers."""
        return [name for name in scored_sections(self.folder) if name != OWN_TEXTS]

    def result_line(self, offset: int) -> bytes:
        """The line of the results that begins at an offset; empty where the file has none now."""
        try:
            ((_, line),) = lines_from(self.results_path, (offset,))
        except OSError:
            return b""
        return line

    def find_scores(self, case_id: str, repeat: int) -> dict[str, ScoreLine]:
        """The score lines of one answer by section, without evidence; unsound ones are left out.

        The id is looked for in the bytes of the files, so that other lines need no decoding.
        """
        needle = orjson.dumps(case_id)
        decode = msgspec.json.Decoder(line_type("", ALL_BUT_EVIDENCE)).decode
        scores: dict[str, ScoreLine] = {}
        for section in scored_sections(self.folder):
            path = scores_file(self.folder, section)
            with open_lines(path) as file:
                texts = [text for text in file if needle in text]
            for text in texts:
                with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    line = decode(text)  # else the words are within a text
                    if (line.case_id, line.repeat) == (case_id, repeat):
                        if head := read_head(path):
                            head.complete(line)
                        scores[section] = line
        return scores

    def verdicts(self, keep: KeepLine = lambda line: True) -> Verdicts:
        """The verdicts of the judge that config.json names. ``keep``: only the lines that it takes.
        Raises StorageError for damaged ones."""
        return self._judged(None, keep)

    def verdict_lines(self, keep: KeepLine = lambda line: True) -> Iterator[VerdictLine]:
        """Verdict lines of any judge, see ``records.verdicts.read_lines``."""
        from records.verdicts import read_lines

        return read_lines(self.folder / VERDICTS, keep)

    def verdicts_of(self, case_id: str, repeat: int) -> Verdicts:
        """The same of one answer, read now; none where the file is gone."""
        own = self._verdict_places.get((case_id, repeat), [])
        general = self._verdict_places.get((None, 0), []) if own else []
        return self._judged(sorted([*own, *general]), lambda line: True)

    def _judged(self, at: Sequence[int] | None, keep: KeepLine) -> Verdicts:
        from records.judgements import Verdicts, read_verdicts
        from records.verdicts import judge_of

        if at == [] or not (self.folder / VERDICTS).exists():
            return Verdicts({})
        return read_verdicts(self.folder, judge_of(self.folder), keep=keep, at=at)

    @cached_property
    def _verdict_places(self) -> Mapping[tuple[str | None, int], list[int]]:
        """Where the verdicts on each answer begin; a line that names no case is on all of them."""
        from records.verdicts import VerdictPlace

        path = self.folder / VERDICTS
        lines: dict[tuple[str | None, int], list[int]] = {}
        for offset, line in self._each(path, VerdictPlace, "verdict line") if path.exists() else ():
            lines.setdefault((line.case_id, line.repeat), []).append(offset)
        return lines

    def first_answer(self, case_id: str) -> TestResult | None:
        """The result of a case, of several repeats the first; None when there is none.

        Of the file only the case's own line has to be sound. Raises StorageError when it is not.
        """
        offsets = self._offsets.get(case_id, ())[:1]
        if not offsets:
            return None
        lines = read(self.results_path, TestResult, "result line", "make the run again", at=offsets)
        ((_, _, answer),) = lines
        return answer if read_maps_passages(self.folder) else forget_unmapped(answer)

    @cached_property
    def _offsets(self) -> dict[str, tuple[int, ...]]:
        """Where the results of each case begin; lines that are no results are left out."""
        return result_offsets(self.results_path, report=ignore)

    def answers_of(self, case_ids: Collection[str]) -> list[TestResult]:
        """All results of some cases. Raises StorageError for damaged results."""
        path = self.results_path
        if not case_ids or not path.exists():
            return []
        answers = results_of(path, case_ids)
        return answers if read_maps_passages(self.folder) else list(map(forget_unmapped, answers))


class Runs:
    """Some runs, each opened once for all readers."""

    def __init__(self, *runs: Run) -> None:
        self._runs = {run.folder: run for run in runs}

    def __getitem__(self, folder: Path) -> Run:
        return self._runs.setdefault(folder, Run(folder))
