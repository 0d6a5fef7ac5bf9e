"""The score lines of a section as columns, in memory: lines that score alike are decoded once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, tee
from math import nan
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from records import jsonl
from records.errors import Problem, StorageError
from records.file_access import open_plain
from records.id_numbers import id_number, id_of
from records.lines import Report
from records.results import NO_LIST, NOT_MAPPED, UNREADABLE
from records.runs import half_scored, scores_file
from records.scores import (
    PipelineEvidence,
    RepeatNumber,
    RetrievalEvidence,
    ScoreLine,
    failed_otherwise,
    line_type,
    raw_line,
    read_head,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

T = TypeVar("T")

ANSWERED, PASS = "answered", "pass"

FAILED_IS_ZERO = (ANSWERED, PASS)
"""Metrics of section ``pipeline`` in which a call that failed, or has no result, counts as 0."""

MEASURED = ("latency_ms", "cost_usd", "total_tokens")
"""The measurements of section ``pipeline`` for a case beside its scores: total time, cost, tokens.
Less is better, and they are compared by ratios, since few cases may hold most of the sum."""

_EVIDENCE: Mapping[str, tuple[str, ...]] = {
    "retrieval": ("evidence.match", "evidence.found"),
    "pipeline": ("evidence.latency_ms", "evidence.usage", "evidence.cost_usd"),
}
"""What is read of a section's evidence."""


def _first_hit(evidence: RetrievalEvidence) -> int | None:
    return None if evidence.hits is None else next(iter(evidence.hits), 0)


_FACTS: Mapping[str, tuple[tuple[str, ...], Callable[[Any], Any] | None]] = {
    "pipeline": (("evidence.outcome", "evidence.expected"), attrgetter("outcome", "expected")),
    "retrieval": (("evidence.hits",), _first_hit),
    "abstention": (("evidence.cell",), lambda evidence: evidence.cell.startswith("abstained")),
}
"""What else a section's evidence says of an answer, see ``LineKind``: the fields, and the fact."""

_NO_REASONS = msgspec.Raw(b"{}")

_NOT_MAPPED, _NO_LIST = NOT_MAPPED.encode(), NO_LIST.encode()

Scores = Mapping[str, float | None]


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

_decode_reasons = msgspec.json.Decoder(dict[str, str]).decode


class LineKind(NamedTuple):
    """The state of a score line beside its scores.

    ``failed``: the bot's call failed, not a judge or a plugin. ``unknown``: some scores are missing
    for another failure, or because no one knows the passages. ``fact``: in section ``pipeline``
    how the response ended and how it should have; in an explained table also, in ``retrieval``, the
    rank of the first passage that is gold, 0 where none is, and in ``abstention`` whether the bot
    abstained. None where the line does not say. ``unreadable``: its answer could not be read.
    ``reasons``: in an explained table why scores are missing, by metric.
    """

    failed: bool
    fact: Any = None
    reasons: tuple[tuple[str, str], ...] = ()
    unreadable: bool = False
    unknown: bool = False


class _LineCodes:
    """The distinct lines of a section: scores and kind of each, decoded when it first comes.

    Lines that score alike and are of one kind have one code. Score lines repeat, so most are only
    recognised.
    """

    def __init__(self, folder: Path, section: str, *, explained: bool) -> None:
        self.section = section
        self.head = read_head(scores_file(folder, section))
        self.kinds: list[LineKind] = []
        """All kinds of lines, in the order in which they first come."""
        self.kind_of = array("i")
        """By code, the place of its lines' kind."""
        self.metrics = dict.fromkeys(self.head.metrics if self.head is not None else ())
        self.names = dict(self.metrics)
        self.scores: list[Scores] = []
        """By code, the scores that its lines have."""
        self._is_pipeline = section == "pipeline"
        self._known: dict[tuple[Any, ...], int] = {}
        self._numbers: dict[LineKind, int] = {}
        told = _FACTS if explained or section == "pipeline" else {}
        facts, self._fact = told.get(section, ((), None))
        fields = ("case_id", "status", *facts, "cluster", *_EVIDENCE.get(section, ()))
        raw = ("repeat", RepeatNumber, 0), ("reasons", msgspec.Raw, _NO_REASONS)
        checked = (*fields, "scores", *(("reasons",) * explained))
        self._explained = explained
        self._decode_line = msgspec.json.Decoder(raw_line(line_type(section, fields), *raw)).decode
        self._decode_whole = msgspec.json.Decoder(line_type(section, checked)).decode

    def decode(self, data: bytes) -> tuple[Any, int]:
        """A line without its scores, and its code. Raises what msgspec's decoder raises."""
        line = self._decode_line(data)
        text, why = bytes(line.scores), bytes(line.reasons) if self._explained else b""
        fact = self._fact(line.evidence) if self._fact and line.evidence is not None else None
        failed = line.status == "failed" and (
            text == b"{}" or self.section not in ("judged", "rubrics", "custom")
        )
        unknown = False
        if line.reasons is not _NO_REASONS:
            given = bytes(line.reasons)
            unknown = _NOT_MAPPED in given or _NO_LIST in given
            if failed and failed_otherwise(given):
                failed, unknown = False, True
        key = text, line.status, unknown, fact, why
        code = self._known.get(key)
        if code is None:
            try:
                scores, reasons = _decode_scores(text), _decode_reasons(why) if why else {}
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self._decode_whole(data)  # which says where the line is wrong
                raise
            if self.head is not None and why:
                reasons = self.head.reasons(scores, reasons)
            about = tuple(reasons.items()), line.status == UNREADABLE, unknown
            code = self._known[key] = self._add(scores, LineKind(failed, fact, *about))
        return line, code

    def _add(self, scores: Scores, kind: LineKind) -> int:
        """Another combination of scores; metrics that no line had before begin here."""
        code = len(self.scores)
        counted = (*FAILED_IS_ZERO[: 1 + kind.failed], *MEASURED) if self._is_pipeline else ()
        self.metrics |= dict.fromkeys(scores)
        self.names |= dict.fromkeys((*scores, *counted))
        self.scores.append(scores)
        number = self._numbers.setdefault(kind, len(self.kinds))
        if number == len(self.kinds):
            self.kinds.append(kind)
        self.kind_of.append(number)
        return code


class SectionTable:
    """One section of a run, a row for each score line and for each case, in their order.

    ``report`` takes lines that are no score lines; without it they raise StorageError, as does a
    case whose lines do not stand together. ``explained``: lines say more, see ``LineKind``. What is
    said of all lines is known once they are read.
    """

    def __init__(
        self,
        folder: Path,
        section: str,
        report: Report | None = None,
        *,
        explained: bool = False,
    ) -> None:
        self.folder, self.section = folder, section
        self.is_read = False
        self.codes = array("i")
        """By line: lines that score alike and are of one kind have one code."""
        self._lines = _LineCodes(folder, section, explained=explained)
        self.head = self._lines.head
        self.kinds, self.kind_of = self._lines.kinds, self._lines.kind_of
        self._columns: dict[str, array[float]] = {}
        self.gold: list[tuple[str | None, int] | None] = []
        """Of each case in section ``retrieval``, how its gold was matched and how many supports
        there are; None where its line does not say."""
        self._report = report
        self._measures = {name: array("d") for name in MEASURED}
        self._case_ids: dict[str, int] = {}
        """The row of each case."""
        self._numbers, self._first_lines = array("q"), array("q")
        self._repeats, self._offsets = array("i"), array("q")

    def read(self) -> Iterator[ScoreLine]:
        """Read the lines, and give each of them on the way, without its scores."""
        if (problem := half_scored(self.folder, self.section)) is not None:
            if self._report is None:
                raise StorageError.from_problems([problem])
            self._report(problem)
        last = None
        path = scores_file(self.folder, self.section)
        lines = jsonl.read_with(path, self._lines.decode, report=self._report)
        for number, offset, (line, code) in lines:
            self._offsets.append(offset)
            if line.case_id != last:
                last = line.case_id
                self._add_case(number, line)
            self._repeats.append(line.repeat)
            if self.section == "pipeline":
                measured = _measured(line.evidence or PipelineEvidence())
                for column, value in zip(self._measures.values(), measured, strict=True):
                    column.append(value)
            self.codes.append(code)
            yield line
        self.is_read = True

    def _add_case(self, number: int, line: Any) -> None:
        """Begin the lines of another case."""
        if line.case_id in self._case_ids and self._report is None:
            message = f"the lines of case {line.case_id!r} are not consecutive; score the run again"
            path = str(scores_file(self.folder, self.section))
            raise StorageError.from_problems([Problem(path, number, "case_id", message)])
        self._case_ids.setdefault(line.case_id, len(self._numbers))
        self._numbers.append(id_number(line.case_id))
        self._first_lines.append(len(self.codes))
        if self.section == "retrieval":
            evidence = line.evidence
            known = evidence is not None and evidence.found is not None
            self.gold.append((evidence.match, len(evidence.found)) if known else None)

    @cached_property
    def ids(self) -> Ints:
        """The number of each case's id, see ``id_number``."""
        ids: Ints = _array(self._numbers)
        return ids

    @cached_property
    def repeats(self) -> Ints:
        """Of each line, the number of its repeat."""
        repeats: Ints = _array(self._repeats)
        return repeats

    @property
    def line_kinds(self) -> Ints:
        """Of each line, the place of its kind among ``kinds``."""
        kinds: Ints = _array(self.kind_of)[_array(self.codes)]
        return kinds

    def of_codes(self, say: Callable[[LineKind], T]) -> Iterator[T]:
        """The kind of each code's lines."""
        return map([say(kind) for kind in self.kinds].__getitem__, self.kind_of)

    @cached_property
    def failed_lines(self) -> Mask:
        """Of each line, whether the call failed."""
        import numpy as np

        return np.array([kind.failed for kind in self.kinds], bool)[self.line_kinds]

    @property
    def cases(self) -> int:
        return len(self._numbers)

    @property
    def metrics(self) -> list[str]:
        """The metrics that the lines name, in their order."""
        return list(self._lines.metrics)

    def keys(self) -> Iterator[tuple[str, int]]:
        """Case id and repeat of each line."""
        ids = self.case_ids()
        return zip(map(ids.__getitem__, self.line_cases.tolist()), self._repeats, strict=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Every metric of the lines, in their order."""
        return tuple(self._lines.names)

    def values(self, name: str) -> Floats:
        """The scores of a metric, line by line, not a number where a line has none. In section
        ``pipeline`` with whether there was an answer, and 0 for a call that failed where that
        counts."""
        import numpy as np

        if name in self._measures and name not in self._lines.metrics:
            return np.array(self._measures[name])
        values = self.raw_scores(name)
        if self.section == "pipeline" and name in FAILED_IS_ZERO:
            if name == ANSWERED:
                values[:] = [nan if bad else 1.0 for bad in self.of_codes(attrgetter("unreadable"))]
            values[np.fromiter(self.of_codes(attrgetter("failed")), bool)] = 0.0
        of_lines: Floats = values[_array(self.codes)]
        return of_lines

    def raw_scores(self, name: str) -> Floats:
        """The scores of a metric by the code of a line, as the lines give them; not a number where
        there is none."""
        import numpy as np

        scores: Floats = np.array(self.raw(name))
        return scores

    def raw(self, name: str) -> array[float]:
        """The same as an array of Python."""
        if (column := self._columns.get(name)) is None:
            given = (scores.get(name) for scores in self._lines.scores)
            column = array("d", [nan if score is None else score for score in given])
            self._columns[name] = column
        return column

    def column(self, name: str) -> Floats:
        """The scores of a metric, case by case: of repeats their mean."""
        import numpy as np

        values = self.values(name)
        if self.cases == len(values):
            return values
        means = np.full(self.cases, np.nan)
        for case, own in enumerate(np.split(values, self._first_lines[1:])):
            if scored := [value for value in own.tolist() if value == value]:
                means[case] = sum(scored) / len(scored)
        return means

    @property
    def line_cases(self) -> Ints:
        """Of each line, the row of its case."""
        import numpy as np

        lengths = np.diff(_array(self._first_lines), append=len(self.codes))
        return np.repeat(np.arange(self.cases), lengths)

    def case_ids(self, rows: Collection[int] | None = None) -> dict[int, str]:
        """The ids of some cases, by default of all, by their rows."""
        chosen = range(self.cases) if rows is None else sorted(rows)
        return {row: id_of(self._numbers[row]) for row in chosen}

    def lines_of(
        self, case_ids: Collection[str], fields: Sequence[str] = ()
    ) -> dict[str, list[ScoreLine]]:
        """The score lines of each of some cases, as far as they have any; without ``fields`` whole
        ones."""
        found: dict[str, list[ScoreLine]] = {}
        rows = sorted(self.rows_of(case_ids).values())
        own = (range(self.line_number(row), self.line_number(row + 1)) for row in rows)
        for line in self.lines(chain.from_iterable(own), ("case_id", *fields) if fields else ()):
            found.setdefault(line.case_id, []).append(line)
        return found

    def rows_of(self, case_ids: Collection[str]) -> dict[str, int]:
        """The row of each of some cases, as far as they have a line."""
        rows = self._case_ids
        return {case_id: rows[case_id] for case_id in case_ids if case_id in rows}

    def line_number(self, row: int) -> int:
        """The number of lines before the first one of a case."""
        return self._first_lines[row] if row < self.cases else len(self.codes)

    def lines(self, numbers: Iterable[int], fields: Sequence[str] = ()) -> Iterator[ScoreLine]:
        """Score lines by the number of lines before them, without ``fields`` whole
        ones. Raises StorageError for one that is none by now."""
        kind = line_type(self.section, fields)
        decode = msgspec.json.Decoder(kind).decode
        places, again = tee(numbers)
        for number, text in zip(places, self._texts(again), strict=True):
            try:
                line = decode(text)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                message = f"is not a score line ({error}); score the run again"
                path = str(scores_file(self.folder, self.section))
                problem = Problem(path, number + 1, "", message)
                raise StorageError.from_problems([problem]) from None
            if self.head is not None and "scores" in kind.__struct_fields__:
                self.head.complete(line)
            yield line

    def _texts(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """Lines by how many stand before them."""
        with open_plain(scores_file(self.folder, self.section)) as file:
            for number in numbers:
                file.seek(self._offsets[number])
                yield file.readline()


def _array(values: array[Any]) -> Any:
    """The same numbers as an array of numpy."""
    import numpy as np

    return np.frombuffer(values, values.typecode) if values else np.zeros(0, values.typecode)
