"""From the lines of a run's files to the columns of a table: only the fields that are needed.

Each reader has ``step``, which reads one block and says whether there was anything; the caller
decides when to go on. A line that cannot be read is counted, never fatal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from browse_store.feed import Feed, Line
from browser.table import NAN, Meta, Table
from storage import Labels, canonical

T = TypeVar("T")
QUESTION_LIMIT = 4096
"""Characters of a question that are kept for the list and its filter."""
ANSWERABLE = {True: "yes", False: "no", None: ""}


class _Latency(msgspec.Struct):
    total: float | None = None


class _Error(msgspec.Struct):
    kind: str = "unknown"


class _Result(msgspec.Struct):
    test_case_id: str
    question: str | None = None
    status: str = "ok"
    repeat: int = 0
    error: _Error | None = None
    abstained: bool | None = None
    confidence: float | None = None
    cost_usd: float | None = None
    latency_ms: _Latency | None = None
    policy_flags: list[str] | None = None


class Faults:
    """Lines that could not be read, by file."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, int, str]] = {}

    def add(self, path: Path, offset: int, why: str) -> None:
        count, first, said = self._found.get(path.name, (0, offset, why))
        self._found[path.name] = (count + 1, first, said)

    def sound(
        self, path: Path, lines: Iterable[Line], decode: Callable[[bytes], T]
    ) -> Iterator[tuple[int, T]]:
        """Offset and record of the lines that can be read; the others are added."""
        for offset, line in lines:
            try:
                record = decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                if not line.isspace():
                    self.add(path, offset, str(error))
            else:
                yield offset, record

    def say(self) -> list[str]:
        """A sentence a file."""
        return [
            f"{name}: {count} line{'s' * (count > 1)} cannot be read, the first at byte {first} "
            f"({why})"
            for name, (count, first, why) in self._found.items()
        ]


class ResultReader:
    """Puts results into the table."""

    def __init__(self, feed: Feed, table: Table, faults: Faults) -> None:
        self.feed = feed
        self._table = table
        self._faults = faults
        self._decode = msgspec.json.Decoder(_Result).decode
        self._same: dict[str, str] = {}

    def step(self) -> bool:
        lines = self.feed.read()
        for offset, result in self._faults.sound(self.feed.path, lines, self._decode):
            self._put(offset, result)
        return bool(lines)

    def _put(self, offset: int, result: _Result) -> None:
        error = result.error.kind if result.error is not None else ""
        same = self._same
        words = {
            "status": same.setdefault(result.status, result.status),
            "error": same.setdefault(error, error),
            "abstained": ANSWERABLE[result.abstained],
        }
        numbers = {
            "latency": result.latency_ms.total if result.latency_ms else None,
            "confidence": result.confidence,
            "cost": result.cost_usd,
        }
        self._table.put(
            result.test_case_id,
            result.repeat,
            offset,
            (result.question or "")[:QUESTION_LIMIT],
            words,
            tuple(result.policy_flags or ()),
            numbers,
        )


class _Case(msgspec.Struct):
    id: str
    category: str | None = None
    difficulty: str | None = None
    query_type: str | None = None
    answerable: bool | None = None
    tags: list[str] | None = None


class CaseReader:
    """Tells the table what the set and its label files say of each case."""

    def __init__(
        self, feed: Feed, table: Table, labels: Callable[[], Labels], faults: Faults
    ) -> None:
        self.feed = feed
        self._table = table
        self._labels = labels
        self._faults = faults
        self._plain = msgspec.json.Decoder(_Case).decode
        self._same: dict[str, str] = {}

    def step(self) -> bool:
        lines = self.feed.read()
        for offset, case in self._faults.sound(self.feed.path, lines, self._decode):
            self._table.describe(case.id, self._meta(offset, case))
        return bool(lines)

    def _decode(self, line: bytes) -> _Case:
        """A line with the usual names is read in one go, others under the names they stand for."""
        try:
            return self._plain(line)
        except msgspec.ValidationError:
            raw = msgspec.json.decode(line, type=dict[str, Any])
            return msgspec.convert(canonical(raw), _Case)

    def _meta(self, offset: int, case: _Case) -> Meta:
        more: Mapping[str, Any] = self._labels().get(case.id, {})

        def word(name: str, own: str | None) -> str:
            value = own or str(more.get(name) or "")
            return self._same.setdefault(value, value)

        answerable = case.answerable if case.answerable is not None else more.get("answerable")
        return (
            offset,
            word("category", case.category),
            word("difficulty", case.difficulty),
            word("query_type", case.query_type),
            ANSWERABLE.get(answerable, ""),
            tuple(case.tags or more.get("tags") or ()),
        )


class ScoreReader:
    """Fills the columns of some metrics of one section, and where each row's score line stands.

    A column is seen by others once ``begin`` has given it to the table; rows not reached yet have
    no value in it.
    """

    def __init__(
        self, feed: Feed, section: str, metrics: Iterable[str], table: Table, faults: Faults
    ) -> None:
        self.feed = feed
        self.section = section
        self.metrics = tuple(metrics)
        self._table = table
        self._faults = faults
        self._next = 0
        fields = [(f"m{n}", float | None, None) for n in range(len(self.metrics))]
        names = {f"m{n}": name for n, name in enumerate(self.metrics)}
        scores = msgspec.defstruct("_Scores", fields, rename=names)
        line = msgspec.defstruct(
            "_Line", [("case_id", str), ("repeat", int, 0), ("scores", scores | None, None)]
        )
        self._decode: Any = msgspec.json.Decoder(line).decode
        self._fields = tuple(field for field, *_ in fields)
        self.begun = False
        table.places.setdefault(section, table.new_places())
        for name in self.metrics:
            table.numbers[name] = table.new_numbers()

    def step(self, *, complete: bool) -> bool:
        """Read a block. ``complete``: all results are known, so a line without one has none."""
        lines = self.feed.read()
        if not lines:
            return False
        self.begun = True
        table = self._table
        places = table.places[self.section]
        columns = [
            (table.numbers[name], field)
            for name, field in zip(self.metrics, self._fields, strict=True)
        ]
        for offset, found in self._faults.sound(self.feed.path, lines, self._decode):
            row = self._row(found.case_id, found.repeat)
            if row is None:
                if complete:
                    continue
                self.feed.offset, self.feed.ended = offset, False
                break
            places[row] = offset
            if found.scores is not None:
                for column, field in columns:
                    value = getattr(found.scores, field)
                    column[row] = NAN if value is None else value
        table.version += 1
        return True

    def _row(self, case_id: str, repeat: int) -> int | None:
        table, row = self._table, self._next
        same = row < table.count and table.ids[row] == case_id
        if not (same and table.numbers["repeat"][row] == repeat):
            known = table.row_of(case_id, repeat)
            if known is None:
                return None
            row = known
        self._next = row + 1
        return row


class VerdictIndex:
    """Where the lines on each case stand in verdicts.jsonl: an index for the one who reads them.

    A line that names no case belongs to all of them.
    """

    def __init__(self, feed: Feed, faults: Faults) -> None:
        self.feed = feed
        self._faults = faults
        self._decode = msgspec.json.Decoder(_VerdictKey).decode
        self._places: dict[tuple[str | None, int], tuple[int, ...]] = {}

    def step(self) -> bool:
        lines = self.feed.read()
        for offset, found in self._faults.sound(self.feed.path, lines, self._decode):
            key = (found.case_id, found.repeat)
            self._places[key] = (*self._places.get(key, ()), offset)
        return bool(lines)

    def of(self, case_id: str, repeat: int) -> tuple[int, ...]:
        """Offsets of a result's verdicts, in the order of the file."""
        own, general = self._places.get((case_id, repeat), ()), self._places.get((None, 0), ())
        return tuple(sorted((*own, *general))) if own else ()


class _VerdictKey(msgspec.Struct):
    case_id: str | None = None
    repeat: int = 0


class _FirstLine(msgspec.Struct):
    scores: dict[str, float | None] | None = None


def metrics_of(path: Path) -> list[str]:
    """The metrics that a score file holds, by its first line; [] when that cannot be read."""
    try:
        with open(path, "rb") as file:
            scores = msgspec.json.decode(file.readline(), type=_FirstLine).scores
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []
    return list(scores or ())
