"""A run as columns: its score lines, each section read once.

Cases are told apart by 64-bit hashes of their ids. Many answers score alike, so each combination
of scores is kept once, and long columns lie on disk: memory is about 15 bytes an answer, and 8 more
for each column that is looked at.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from math import nan
from operator import attrgetter
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any

import msgspec

from records import jsonl
from records.clusters import AUTO, Clustering, clustering_of
from records.errors import Problem, StorageError
from records.lines import Report
from records.profiles import forget_unmapped, read_maps_passages
from records.results import TestResult, read_results
from records.runs import results_file, scored_sections, scores_file
from records.scores import (
    OWN_TEXTS,
    PipelineEvidence,
    RetrievalEvidence,
    ScoreLine,
    line_type,
    raw_line,
    read_head,
    read_scores,
)
from records.shards import open_lines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

ANSWERED, PASS = "answered", "pass"

FAILED_IS_ZERO = (ANSWERED, PASS)
"""Metrics of section ``pipeline`` in which a call that failed, or has no result, counts as 0."""

MEASURED = ("latency_ms", "cost_usd", "total_tokens")
"""What section ``pipeline`` measured of a case beside its scores: total time, cost, tokens. Less is
better, and they are compared by ratios, since few cases may hold most of the sum."""

_EVIDENCE: Mapping[str, tuple[str, ...]] = {
    "retrieval": ("evidence.match", "evidence.found"),
    "pipeline": (
        "evidence.outcome",
        "evidence.latency_ms",
        "evidence.usage",
        "evidence.cost_usd",
    ),
}
"""What is read of a section's evidence."""

UNUSUAL = ("uncertain",)
"""Outcomes of a response that are kept."""

_BLOCK = 4096
"""Rows of a block: within it the values of a column stand together."""

_IN_MEMORY = 8 << 20
"""Bytes from which on columns are kept on disk."""

_MOST_KNOWN = 1 << 15
"""Combinations of scores that are recognised when they come again."""

_MARKED = 256
"""Lines from one known offset to the next."""

Scores = Mapping[str, float | None]


class _Rows:
    """Rows in, columns out: blocks of columns, one after another, in a file once they are many."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - lives as long as the columns
        self._blocks: list[tuple[int, int, int]] = []
        self._rows = array("d")
        self._width = self._count = 0
        self.size = 0

    def append(self, row: Sequence[float]) -> None:
        """A row; none is shorter than the one before."""
        if len(row) != self._width:
            self._flush()
            self._width = len(row)
        self._rows.extend(row)
        self._count += 1
        self.size += 1
        if self._count == _BLOCK:
            self._flush()

    def _flush(self) -> None:
        import numpy as np

        if self._count and self._width:
            block = np.frombuffer(self._rows).reshape(self._count, self._width)
            self._blocks.append((self._file.tell(), self._count, self._width))
            self._file.write(block.T.tobytes())
        self._rows, self._count = array("d"), 0

    def column(self, place: int) -> Floats:
        """The values at a place of each row, not a number where a row is too short."""
        import numpy as np

        self._flush()
        column, start = np.full(self.size, np.nan), 0
        for offset, rows, width in self._blocks:
            if place < width:
                self._file.seek(offset + 8 * rows * place)
                column[start : start + rows] = np.frombuffer(self._file.read(8 * rows))
            start += rows
        self._file.seek(0, 2)
        return column


def scores_of(section: str, scores: Scores, *, failed: bool) -> Scores:
    """The scores of a line; in section ``pipeline`` with whether there was an answer, and 0 for a
    call that failed where that counts."""
    if section != "pipeline":
        return scores
    return {**scores, ANSWERED: 0.0, PASS: 0.0} if failed else {**scores, ANSWERED: 1.0}


def _measured(evidence: PipelineEvidence) -> tuple[float, ...]:
    """The values of ``MEASURED``, not a number where one was not reported."""
    tokens = evidence.usage.get("total_tokens")
    values = (
        evidence.latency_ms.get("total"),
        evidence.cost_usd,
        float(tokens) if isinstance(tokens, int | float) else None,
    )
    return tuple(nan if value is None else value for value in values)


_decode_scores = msgspec.json.Decoder(dict[str, int | float | None]).decode


class SectionTable:
    """One section of a run, a row for each score line and for each case, in their order.

    ``ids``: the hash of each case's id. ``failed``: cases all of whose calls failed; of each line,
    ``failed_lines``. ``gold``: what the lines say of each case's gold (section ``retrieval``), a
    number for each of ``gold_kinds``, -1 where they do not say. Raises StorageError for a line that
    is no score line, and for a case whose lines do not stand together.
    """

    ids: Ints
    failed: Mask
    failed_lines: Mask
    gold: NDArray[np.int16]
    repeats: Ints
    """Of each line, the number of its repeat."""

    def __init__(self, folder: Path, section: str) -> None:
        self.folder, self.section = folder, section
        self._names: dict[str, None] = {}
        self._places: dict[str, int] = {}
        self._rows, self._measures = _Rows(), _Rows()
        self._known: dict[int, int] = {}
        self.codes = array("i")
        self.outcomes: dict[int, str] = {}
        """By line, the outcomes of section ``pipeline`` that are ``UNUSUAL``."""
        self._marks = array("q")
        self._starts: Ints | None = None
        self._head = read_head(scores_file(folder, section))
        fields = ("case_id", "status", "cluster", *_EVIDENCE.get(section, ()))
        kind = raw_line(line_type(section, fields), ("repeat", int, 0))
        self._decode_line = msgspec.json.Decoder(kind).decode
        self._decode_whole = msgspec.json.Decoder(line_type(section, (*fields, "scores"))).decode

    def read(self) -> Iterator[tuple[str, str | None]]:
        """Read the lines; gives the id and the cluster of each case on the way."""
        import numpy as np

        ids, starts, gold, repeats = array("q"), array("q"), array("h"), array("i")
        failed = bytearray()
        kinds: dict[tuple[str | None, int], int] = {}
        number, last = 0, None
        path, has_gold = scores_file(self.folder, self.section), self.section == "retrieval"
        for number, offset, (line, code) in jsonl.read_with(path, self._decode):
            if number % _MARKED == 1:
                self._marks.append(offset)
            if line.case_id != last:
                last = line.case_id
                ids.append(hash(last))
                if len(ids) != number or starts:
                    starts = starts or array("q", range(len(ids) - 1))
                    starts.append(number - 1)
                if has_gold:
                    evidence = line.evidence or RetrievalEvidence()
                    count = -1 if evidence.found is None else len(evidence.found)
                    found = kinds.setdefault((evidence.match, count), len(kinds))
                    gold.append(-1 if count < 0 else found)
                yield last, line.cluster
            if line.repeat or repeats:
                repeats = repeats or array("i", bytes(4 * (number - 1)))
                repeats.append(line.repeat)
            if self.section == "pipeline" and line.evidence and line.evidence.outcome in UNUSUAL:
                self.outcomes[number - 1] = line.evidence.outcome
            self.codes.append(code)
            failed.append(line.status == "failed")
        self._known = {}
        if starts or len(ids) != number:
            self._starts = _array(starts or array("q", range(len(ids))))
        self.ids, self.gold = _array(ids), _array(gold)
        self.repeats = _array(repeats) if repeats else np.zeros(number, np.int32)
        self.gold_kinds = tuple(kinds)
        self.failed = np.frombuffer(failed, bool) if failed else np.zeros(0, bool)
        self.failed_lines = self.failed
        if self._starts is not None:
            self.failed = np.logical_and.reduceat(self.failed, self._starts)
        self._check_together()

    def _decode(self, data: bytes) -> tuple[Any, int]:
        line = self._decode_line(data)
        if self.section == "pipeline":
            self._measures.append(_measured(line.evidence or PipelineEvidence()))
        failed = line.status == "failed"
        text = bytes(line.scores)
        key = hash((text, failed))
        code = self._known.get(key)
        if code is None:
            try:
                scores = _decode_scores(text)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self._decode_whole(data)  # which says where the line is wrong
                raise
            if self._head is not None:
                scores = dict.fromkeys(self._head.metrics) | scores
            code = self._append(scores_of(self.section, scores, failed=failed))
            if len(self._known) < _MOST_KNOWN:
                self._known[key] = code
        return line, code

    def _append(self, scores: Scores) -> int:
        """A new combination of scores; metrics that no line had before begin here."""
        if not self._places.keys() >= scores.keys():
            new = [name for name in scores if name not in self._places]
            self._places |= {name: len(self._places) + at for at, name in enumerate(new)}
            measured = MEASURED if self.section == "pipeline" else ()
            self._names |= dict.fromkeys([*new, *measured])
        row = [nan] * len(self._places)
        for name, value in scores.items():
            if value is not None:
                row[self._places[name]] = value
        self._rows.append(row)
        return self._rows.size - 1

    def _check_together(self) -> None:
        """Raises StorageError when a case has lines at two places."""
        import numpy as np

        ordered = np.sort(self.ids)
        if not (ordered[1:] == ordered[:-1]).any():
            return
        seen: set[str] = set()
        lines = read_scores(self.folder, self.section, ("case_id",))
        for case_id, group in groupby(lines, key=lambda numbered: numbered[2].case_id):
            number = next(group)[0]
            if case_id in seen:
                message = (
                    f"the lines of case {case_id!r} do not stand together; score the run again"
                )
                path = str(scores_file(self.folder, self.section))
                raise StorageError.from_problems([Problem(path, number, "case_id", message)])
            seen.add(case_id)

    @property
    def cases(self) -> int:
        return len(self.ids)

    @property
    def names(self) -> tuple[str, ...]:
        """Every metric of the lines, in their order."""
        return tuple(self._names)

    def values(self, name: str) -> Floats:
        """The scores of a metric, line by line, not a number where a line has none."""
        import numpy as np

        if name not in self._places:
            return self._measures.column(MEASURED.index(name))
        values: Floats = self.distinct(name)[np.frombuffer(self.codes, np.int32)]
        return values

    def distinct(self, name: str) -> Floats:
        """The scores of a metric by the code of a line, which stands in ``codes``: lines that score
        alike have one code. Not a number where there is none, and for what is ``MEASURED``."""
        import numpy as np

        if name not in self._places:
            return np.full(self._rows.size, np.nan)
        return self._rows.column(self._places[name])

    def column(self, name: str) -> Floats:
        """The scores of a metric, case by case: of repeats their mean."""
        import numpy as np

        values = self.values(name)
        if self._starts is None:
            return values
        means = np.full(self.cases, np.nan)
        for case, own in enumerate(np.split(values, self._starts[1:])):
            if scored := [value for value in own.tolist() if value == value]:
                means[case] = sum(scored) / len(scored)
        return means

    @property
    def line_cases(self) -> Ints:
        """Of each line, the row of its case."""
        import numpy as np

        rows = np.arange(self.cases)
        if self._starts is None:
            return rows
        return np.repeat(rows, np.diff(self._starts, append=len(self.codes)))

    def case_ids(self, rows: Collection[int] | None = None) -> dict[int, str]:
        """The ids of some cases, by default of all, by their rows."""
        if rows is None:
            lines = (line for _, _, line in read_scores(self.folder, self.section, ("case_id",)))
            return {
                row: case_id
                for row, (case_id, _) in enumerate(groupby(lines, attrgetter("case_id")))
            }
        kind = line_type(self.section, ("case_id",))
        return {row: lines[0].case_id for row, lines in self._picked(rows, kind)}

    def lines_of(
        self, case_ids: Collection[str], fields: Sequence[str] = ()
    ) -> dict[str, list[Any]]:
        """The score lines of each of some cases, as far as they have any; without ``fields`` whole
        ones."""
        kind = line_type(self.section, ("case_id", *fields) if fields else ())
        rows = self.rows_of(case_ids)
        return {lines[0].case_id: lines for _, lines in self._picked(list(rows.values()), kind)}

    def rows_of(self, case_ids: Collection[str]) -> dict[str, int]:
        """The row of each of some cases, as far as they have a line."""
        import numpy as np

        found = np.flatnonzero(np.isin(self.ids, [hash(case_id) for case_id in case_ids]))
        rows = {int(self.ids[row]): int(row) for row in found}
        return {case_id: rows[hash(case_id)] for case_id in case_ids if hash(case_id) in rows}

    def line_number(self, row: int) -> int:
        """How many lines stand before the first one of a case."""
        if self._starts is None:
            return row
        return int(self._starts[row]) if row < self.cases else len(self.codes)

    def _picked(
        self, rows: Collection[int], kind: type[ScoreLine]
    ) -> Iterator[tuple[int, list[ScoreLine]]]:
        """The score lines of each of some cases."""
        decode = msgspec.json.Decoder(kind).decode
        path, number = scores_file(self.folder, self.section), 0
        ahead = -1
        with open(path, "rb") as file:
            for row in sorted(rows):
                number = self.line_number(row)
                mark = number // _MARKED
                if ahead < mark * _MARKED:
                    file.seek(self._marks[mark])
                    ahead = mark * _MARKED
                for _ in range(number - ahead):
                    file.readline()
                ahead = self.line_number(row + 1)
                lines = [file.readline() for _ in range(ahead - number)]
                try:
                    records = list(map(decode, lines))
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    message = f"is no score line ({error}); score the run again"
                    problem = Problem(str(path), number + 1, "", message)
                    raise StorageError.from_problems([problem]) from None
                if self._head is not None and "scores" in kind.__struct_fields__:
                    for record in records:
                        self._head.complete(record)
                yield row, records


def _array(values: array[int]) -> Any:
    """The same numbers as an array of numpy."""
    import numpy as np

    return np.frombuffer(values, values.typecode) if values else np.zeros(0, values.typecode)


def result_offsets(
    path: Path,
    case_ids: Collection[str] | None = None,
    report: Report | None = None,
    *,
    whole: bool = False,
) -> dict[str, tuple[int, ...]]:
    """Where the results of each case (by default of all) begin in a file of results, by repeat.

    ``report`` takes lines that are no results, else they raise StorageError. ``whole``: each line
    is checked in full, else for what is read here.
    """
    fields = () if whole else ("test_case_id", "repeat")
    places: dict[str, tuple[tuple[int, int], ...]] = {}
    for offset, result in read_results(path, fields, report):
        case_id = result.test_case_id
        if case_ids is None or case_id in case_ids:
            places[case_id] = (*places.get(case_id, ()), (result.repeat, offset))
    return {case_id: tuple(offset for _, offset in sorted(own)) for case_id, own in places.items()}


class RunTable:
    """A run as columns; each section is read when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sections: dict[str, SectionTable] = {}
        self._clustering: tuple[Clustering | None] | None = None

    def section(self, name: str) -> SectionTable:
        """The score lines of a section. Raises StorageError for damaged ones."""
        if name not in self._sections:
            table = SectionTable(self.folder, name)
            deque(table.read(), maxlen=0)
            self._sections[name] = table
        return self._sections[name]

    def forget(self, name: str) -> None:
        """Give the memory of a section back."""
        self._sections.pop(name, None)

    def clustering(self) -> Clustering | None:
        """The clusters that the score lines name; None where they name none.

        Every section has a line for each case, so the shortest file is read.
        """
        if self._clustering is None:
            self._clustering = (self._read_clusters(),)
        return self._clustering[0]

    def _read_clusters(self) -> Clustering | None:
        paths = [scores_file(self.folder, name) for name in self._own_sections()]
        if not paths:
            return None
        name = min(paths, key=lambda path: path.stat().st_size).stem
        table = SectionTable(self.folder, name)
        clustering = clustering_of(table.read(), AUTO, required=True)
        self._sections[name] = table
        return clustering

    def _own_sections(self) -> list[str]:
        """The scored sections whose lines are the run's own answers."""
        return [name for name in scored_sections(self.folder) if name != OWN_TEXTS]

    def answers_of(self, case_ids: Collection[str]) -> list[TestResult]:
        """All results of some cases. Raises StorageError for damaged results."""
        path = results_file(self.folder)
        if not case_ids or not path.exists():
            return []
        answers = self._answers_in_place(path, case_ids)
        if answers is None:
            offsets = chain.from_iterable(result_offsets(path, case_ids).values())
            lines = jsonl.read(path, TestResult, "result line", "make the run again", at=offsets)
            answers = [result for _, _, result in lines]
        if not read_maps_passages(self.folder):
            answers = list(map(forget_unmapped, answers))
        return answers

    def _answers_in_place(self, path: Path, case_ids: Collection[str]) -> list[TestResult] | None:
        """The same where each result has the place of its score line; None where one has not."""
        table = next(
            (self._sections[name] for name in self._own_sections() if name in self._sections), None
        )
        rows = {} if table is None else table.rows_of(case_ids)
        if table is None or len(rows) < len(set(case_ids)):
            return None
        numbers = {
            number: case_id
            for case_id, row in rows.items()
            for number in range(table.line_number(row), table.line_number(row + 1))
        }
        answers = []
        with open_lines(path) as file:
            for number, line in enumerate(islice(file, max(numbers) + 1)):
                if number in numbers:
                    try:
                        result = msgspec.json.decode(line, type=TestResult)
                    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                        return None  # the one who reads all of them says what is wrong
                    if result.test_case_id != numbers[number]:
                        return None
                    answers.append(result)
        return answers


class RunTables:
    """The tables of some runs, so that all who ask about a run share what was read of it."""

    def __init__(self) -> None:
        self._tables: dict[Path, RunTable] = {}

    def __getitem__(self, folder: Path) -> RunTable:
        return self._tables.setdefault(folder, RunTable(folder))
