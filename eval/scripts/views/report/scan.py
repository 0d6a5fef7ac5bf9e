"""One pass over the score files of a run: all that the report draws from single answers.

The lines of each scores/<section>.jsonl are read once. What is kept of an answer is a few numbers,
which rules it breaks (as bits), and where its lines stand, so that those of the worst answers can
be read again.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any

import msgspec

from decisions.case_verdict import Ruling, RunVerdicts
from ragmetrics.catalogue import SECTIONS
from ragmetrics.stats.tally import Slices, facets_of, slices_of
from records import calibration, jsonl
from records.cases import TestCase, ignore, iter_cases
from records.columns import AnswerNumbers, ScoreColumn
from records.labels import read_labels
from records.profiles import forget_unmapped, read_maps_passages
from records.results import ErrorInfo, TestResult, iter_results
from records.runs import CONFIG, RESULTS, read_config, results_file, scores_file
from records.scores import (
    ALL_BUT_EVIDENCE,
    ScoreLine,
    line_type,
    raw_line,
    read_head,
    read_scores,
)
from views.report.model import CallErrors, ConfigPart, ConfigSetting

Key = tuple[str, int]
"""Case id and repeat: what names an answer."""

Name = tuple[str, str]
"""Section and metric."""

PROMPTS = "safety"
"""The section whose lines are labelled prompts, not answers to cases of the set."""


MOST_ROWS = 20


class FigureRows:
    """How many answers stand behind a figure, and the numbers of the first 20 of them."""

    def __init__(self) -> None:
        self.count = 0
        self.rows = array("q")

    def add(self, row: int) -> None:
        self.count += 1
        if len(self.rows) < MOST_ROWS:
            self.rows.append(row)


@dataclass
class Scan:
    """What was found. All sequences are aligned with the numbers of the answers."""

    columns: Mapping[str, Sequence[str]]
    """Metrics, by section, whose values are kept."""
    verdicts: RunVerdicts
    """What each answer breaks; its numbers are those of the answers."""
    values: dict[Name, ScoreColumn] = field(default_factory=dict)
    offsets: dict[str, array[int]] = field(default_factory=dict)
    """Byte offset of the answer's line in a section's file; -1 where it has none."""
    abstained: bytearray = field(default_factory=bytearray)
    """1 when the abstention scorer found that the bot abstained."""
    first_ranks: array[int] = field(default_factory=lambda: array("i"))
    """Rank of the answer's first relevant passage; 0 when none was found, -1 without gold."""
    failed: bytearray = field(default_factory=bytearray)
    """1 when the call failed."""
    behind: dict[tuple[str, ...], FigureRows] = field(default_factory=dict)
    """The answers behind a figure: of ``("reason", section, reason)`` those without the score, of
    ``("outcome", expected)`` those that ended otherwise."""
    reasons: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    """By section, reason and metric (``*``: all): answers that have no score for it."""
    wrong_prompts: list[tuple[ScoreLine, list[str]]] = field(default_factory=list)
    """Score lines of safety prompts that were judged wrongly, at most ``MOST_PROMPTS``."""
    wrong_prompt_count: int = 0

    MOST_PROMPTS = 50

    @property
    def answers(self) -> AnswerNumbers:
        """The numbers of the answers."""
        return self.verdicts.answers

    def row(self, key: Key) -> int:
        """The number of an answer, a new one when it is first seen."""
        row = self.verdicts.number(hash(key[0]), key[1])
        if row == len(self.failed):
            self.abstained.append(0)
            self.failed.append(0)
        return row

    def fails(self, row: int) -> bool:
        """Whether an answer fails."""
        return bool(self.verdicts.ruling.settle(self.verdicts.broken[row])[0])

    def figure(self, *figure: str) -> FigureRows:
        """The answers behind a figure."""
        return self.behind.setdefault(figure, FigureRows())

    def column(self, name: Name) -> ScoreColumn:
        """The values of a metric, one for each answer; not a number where there is no score."""
        values = self.values.setdefault(name, ScoreColumn())
        values.pad(len(self.answers))
        return values


OF_CLAIM = ("text", "supported", "score", "missing", "vetoed_by")

OF_PIPELINE = ("expected", "outcome", "why", "missing_flags", "forbidden_flags", "over_budget")

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "groundedness": (
        *ALL_BUT_EVIDENCE,
        *(f"evidence.claims.{name}" for name in OF_CLAIM),
        "evidence.numbers",
        "evidence.expected_claims_missing",
    ),
    "pipeline": (*ALL_BUT_EVIDENCE, *(f"evidence.{name}" for name in OF_PIPELINE)),
}
"""What is checked of a section's score lines; all that is known of its evidence in the others."""


def scan_scores(
    folder: Path,
    sections: Iterable[str],
    columns: Mapping[str, Sequence[str]],
    ruling: Ruling,
) -> tuple[Scan, list[str]]:
    """Read the score files of these sections; also those sections that have no file.

    Raises StorageError for a line that is no score line.
    """
    scan = Scan(columns, RunVerdicts(ruling))
    absent = []
    for section in sections:
        if not scores_file(folder, section).exists():
            absent.append(section)
        elif section == PROMPTS:
            _scan_prompts(scan, folder)
        else:
            _scan_answers(scan, folder, section)
    return scan, absent


def _scan_answers(scan: Scan, folder: Path, section: str) -> None:
    columns = [scan.column((section, name)) for name in scan.columns.get(section, ())]
    offsets = scan.offsets.setdefault(section, array("q"))
    alike, broken = _AlikeLines(scan, folder, section), scan.verdicts.broken
    scan.verdicts.begin()
    for _, offset, (line, scores) in jsonl.read_with(scores_file(folder, section), alike.decode):
        row = scan.row((line.case_id, line.repeat))
        broken[row] |= scores.bits
        _pad(offsets, row + 1, -1)
        offsets[row] = offset
        for column, value in zip(columns, scores.values, strict=True):
            if row == len(column):
                column.append(value)
            elif value == value:
                column.pad(row + 1)
                column[row] = value
        if line.status == "failed":
            scan.failed[row] = 1
            continue
        scores.count += 1
        for figure in scores.figures:
            figure.add(row)
        if line.evidence is not None:
            _note(scan, section, row, line.evidence)
    alike.count_reasons()
    _pad(offsets, len(scan.answers), -1)


@dataclass(slots=True)
class _AlikeScores:
    """What lines have in common that score alike, and how many they are."""

    bits: int
    values: Sequence[float]
    reasons: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[FigureRows] = ()
    count: int = 0


class _AlikeLines:
    """Decodes the score lines of a section; what those have in common that score alike, once."""

    def __init__(self, scan: Scan, folder: Path, section: str) -> None:
        self._scan, self._section = scan, section
        self._names = scan.columns.get(section, ())
        self._head = read_head(scores_file(folder, section))
        kind = line_type(section, _FIELDS.get(section, ()))
        self._decode_whole = msgspec.json.Decoder(kind).decode
        raw = raw_line(kind, ("reasons", msgspec.Raw, msgspec.Raw(b"{}")))
        self._decode_line = msgspec.json.Decoder(raw).decode
        self._known: dict[int, _AlikeScores] = {}

    def decode(self, data: bytes) -> tuple[Any, _AlikeScores]:
        """A line, and what it has in common with others."""
        line = self._decode_line(data)
        outcome = self._section == "pipeline" and line.evidence and line.evidence.outcome
        key = hash((line.status, outcome, bytes(line.scores), bytes(line.reasons)))
        alike = self._known.get(key)
        if alike is None:
            if len(self._known) >= _MOST_KNOWN:
                self.count_reasons()
            alike = self._known[key] = self._new(self._decode_whole(data))
        return line, alike

    def _new(self, line: ScoreLine) -> _AlikeScores:
        if self._head is not None:
            self._head.complete(line)
        values = [line.scores.get(name) for name in self._names]
        alike = _AlikeScores(
            self._scan.verdicts.bits_of(self._section, line),
            [nan if value is None else value for value in values],
        )
        if line.status != "failed":
            alike.reasons, whys = line.reasons, set(line.reasons.values())
            alike.figures = [self._scan.figure("reason", self._section, why) for why in whys]
            _count_reasons(self._scan, self._section, line.reasons, 0)  # in the order of the file
        return alike

    def count_reasons(self) -> None:
        """Count the reasons of all lines so far, and forget what they have in common."""
        for alike in self._known.values():
            _count_reasons(self._scan, self._section, alike.reasons, alike.count)
        self._known.clear()


_MOST_KNOWN = 1 << 13
"""Combinations of scores and reasons that are recognised when they come again."""


def _note(scan: Scan, section: str, row: int, evidence: Any) -> None:
    """What three sections tell besides scores."""
    if section == "retrieval" and evidence.hits is not None:
        _pad(scan.first_ranks, row + 1, -1)
        scan.first_ranks[row] = evidence.hits[0] if evidence.hits else 0
    if section == "abstention":
        scan.abstained[row] = evidence.cell.startswith("abstained")
    if section == "pipeline":
        expected = evidence.expected
        if expected and evidence.outcome != expected:
            scan.figure("outcome", expected).add(row)


def _count_reasons(scan: Scan, section: str, reasons: Mapping[str, str], lines: int) -> None:
    for metric, reason in reasons.items():
        scan.reasons.setdefault(section, {}).setdefault(reason, Counter())[metric] += lines


def _scan_prompts(scan: Scan, folder: Path) -> None:
    good = {
        row.name: row.high if row.higher_is_better else row.low
        for row in SECTIONS[PROMPTS].metrics
        if row.must
    }
    for _, _, line in read_scores(folder, PROMPTS):
        misses = [
            name
            for name, score in line.scores.items()
            if score is not None and name in good and score != good[name]
        ]
        if misses:
            scan.wrong_prompt_count += 1
            if len(scan.wrong_prompts) < scan.MOST_PROMPTS:
                scan.wrong_prompts.append((line, misses))
        _count_reasons(scan, PROMPTS, line.reasons, 1)


def _pad(column: array[Any], length: int, filler: int) -> None:
    while len(column) < length:
        column.append(filler)


def lines_at(folder: Path, scan: Scan, rows: Iterable[int]) -> dict[int, dict[str, ScoreLine]]:
    """The score lines of some answers, by answer and section. Raises StorageError for damaged
    ones."""
    lines_of: dict[int, dict[str, ScoreLine]] = {row: {} for row in rows}
    for section, offsets in scan.offsets.items():
        found = [row for row in lines_of if row < len(offsets) and offsets[row] >= 0]
        path, kind = scores_file(folder, section), line_type(section)
        numbered = jsonl.read(path, kind, at=[offsets[row] for row in found])
        for row, (_, _, line) in zip(found, numbered, strict=True):
            lines_of[row][section] = line
    return lines_of


class _KeyLine(msgspec.Struct, gc=False):
    case_id: str
    repeat: int = 0


def keys_at(folder: Path, scan: Scan, rows: Iterable[int]) -> dict[int, Key]:
    """Case id and repeat of some answers, from one of their score lines each."""
    decode = msgspec.json.Decoder(_KeyLine).decode
    keys: dict[int, Key] = {}
    open_rows = list(rows)
    for section, offsets in scan.offsets.items():
        if not open_rows:
            break
        left: list[int] = []
        with open(scores_file(folder, section), "rb") as file:
            for row in open_rows:
                if row < len(offsets) and offsets[row] >= 0:
                    file.seek(offsets[row])
                    line = decode(file.readline())
                    keys[row] = (line.case_id, line.repeat)
                else:
                    left.append(row)
        open_rows = left
    return keys


PARTS = ("dataset", "index", "retriever", "answerer", "api", "judge", "run")

MOST_IDS = 20


@dataclass
class ResultsScan:
    """What one pass over results.jsonl found."""

    results: dict[Key, TestResult] = field(default_factory=dict)
    confidences: array[float] = field(default_factory=lambda: array("d"))
    """By the number of an answer; not a number where the bot told none."""
    answered: bytearray = field(default_factory=bytearray)
    """By the number of an answer: 1 when results.jsonl holds it, and it is no error."""
    errors: list[CallErrors] = field(default_factory=list)
    configuration: list[ConfigPart] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    questions: dict[int, str] = field(default_factory=dict)
    """The beginning of the question of each listed answer, by its number."""
    slowest: list[tuple[float, int]] = field(default_factory=list)
    """The longest total times in milliseconds, with the number of the answer, longest first."""


QUESTION_CHARACTERS, MOST_SLOW = 100, 10


def read_results(
    folder: Path, scan: Scan, rows: Iterable[int], listed: Collection[int] = ()
) -> ResultsScan:
    """One pass over the answers: confidences, errors by kind, questions of those that are listed,
    and the answers of some rows whole.

    Raises StorageError for a damaged line. Memory: a number an answer, and the chosen answers.
    """
    back = ResultsScan(configuration=list(_configuration(folder)))
    path = results_file(folder)
    if not path.exists():
        back.notes.append(f"{RESULTS} is not there: no answer, error or confidence is shown.")
        return back
    chosen, mapped = set(rows), read_maps_passages(folder)
    back.confidences = array("d", [nan]) * len(scan.answers)
    back.answered = bytearray(len(scan.answers))
    scan.answers.rewind()
    failed: Counter[str] = Counter()
    examples: dict[str, str] = {}
    ids: dict[str, list[str]] = {}
    for result in iter_results(path):
        key = (result.test_case_id, result.repeat)
        row = scan.verdicts.find(key)
        if result.status == "error":
            error = result.error or ErrorInfo("unknown", "", 0)
            failed[error.kind] += 1
            if error.message:
                examples.setdefault(error.kind, error.message[:300])
            if failed[error.kind] <= MOST_IDS:
                ids.setdefault(error.kind, []).append(result.test_case_id)
        elif row is not None:
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
    back.errors = [
        CallErrors(kind, count, examples.get(kind, ""), ids[kind])
        for kind, count in sorted(failed.items(), key=lambda item: (-item[1], item[0]))
    ]
    return back


def _add_time(slowest: list[tuple[float, int]], total: float, row: int) -> None:
    """Keep the longest times, in a heap."""
    if len(slowest) < MOST_SLOW:
        heapq.heappush(slowest, (total, row))
    elif total > slowest[0][0]:
        heapq.heapreplace(slowest, (total, row))


def _configuration(folder: Path) -> Iterator[ConfigPart]:
    """config.json as tables of names and values, a table a part; nothing where it is absent."""
    if not (folder / CONFIG).exists():
        return
    config = msgspec.to_builtins(read_config(folder))
    plain = {name: value for name, value in config.items() if name not in PARTS}
    for name, values in (("run", plain), *((part, config[part]) for part in PARTS)):
        rows = [ConfigSetting(key, value) for key, value in _flat(values)]
        if rows:
            title = "how it was asked" if values is config["run"] else name
            yield ConfigPart("run" if values is plain else title, rows)


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


@dataclass
class CasesRead:
    """What one pass over the eval set found.

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
    labels, _ = read_labels(labels_dir, ignore)
    for case in iter_cases(eval_set, ignore, labels):
        if case.id in ids:
            read.cases[case.id] = case
        if case.id in listed:
            read.slices[case.id] = slices_of(facets_of(case))
            if questions:
                read.questions[case.id] = case.question[:QUESTION_CHARACTERS]
    return read


def read_calibrations(folder: Path) -> list[dict[str, Any]]:
    """What calibrate_judge.py found of the judge, a metric each; empty where it has not been run.

    Raises StorageError for a file that is none.
    """
    paths = [folder / calibration.name_of(metric) for metric in calibration.METRICS]
    return [calibration.read(path) for path in paths if path.exists()]
