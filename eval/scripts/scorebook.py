"""From the rows of a scorer to score lines and counts; what recurs is encoded and counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import Any, NamedTuple

import orjson

from ragmetrics.tally import (
    FAILED,
    Facets,
    Slices,
    Tally,
    Value,
    Values,
    average,
    facets_of,
    slices_of,
)
from storage import TestCase, TestResult

Reasons = tuple[tuple[str, str], ...]
Evidence = Mapping[str, Any] | bytes
"""What the scores of one result rest on, as JSON; bytes are JSON that is encoded already."""
NOTHING: Mapping[str, Any] = {}
MOST_ROWS = 8192
MOST_WAITING = 1 << 18
"""Distinct rows, and cases, that are kept in memory before they are handed over to the tally."""


class Row(NamedTuple):
    """What a scorer says of one result: a score for each of its metrics, in their order.

    ``reasons``: (metric, why) for metrics without a score, ``*`` for all. ``slices``: slices that
    the result belongs to besides its case's. A scorer may hand out the same Row object again for
    an equal outcome; it is then encoded and counted once.
    """

    values: Values
    reasons: Reasons = ()
    slices: Slices = ()


Outcome = tuple[Row, Evidence]
_CASE_ID, _REPEAT = attrgetter("id"), attrgetter("repeat")


class Book:
    """Takes the outcomes of blocks of results, in order."""

    def __init__(self, names: Sequence[str], tally: Tally) -> None:
        self._names = names
        self._tally = tally
        self._rows: dict[int, tuple[Row, bytes]] = {}
        """By a row's identity, which no other object can take while the row stands here."""
        self._members: dict[Facets, list[int]] = defaultdict(list)
        """The rows of the cases that wait to be counted, by their identity."""
        self._waiting = 0
        self._failures: dict[str, Row] = {}

    def failure(self, result: TestResult) -> Outcome:
        """The outcome of a call that failed: no metric has a score."""
        kind = result.error.kind if result.error else "unknown"
        if kind not in self._failures:
            no_score: Value = FAILED
            reasons = (("*", f"call failed: {kind}"),)
            self._failures[kind] = Row((no_score,) * len(self._names), reasons)
        return self._failures[kind], NOTHING

    def enter(
        self, cases: Sequence[TestCase], results: Sequence[TestResult], outcomes: Sequence[Outcome]
    ) -> bytes:
        """Count a block and return its score lines.

        ``{"case_id", "repeat", "status", "scores", "reasons", "evidence"}`` and a newline each.
        ``status``: scored when any metric has a score, failed when the bot's call failed, else
        not_applicable. A score that is null is explained in ``reasons``. Repeats of a case stand
        together and have the same case object; it is counted once, with the mean of each metric.
        """
        rows = self._rows
        for row, _ in outcomes:
            if id(row) not in rows:
                rows[id(row)] = (row, _encode(row, self._names))
        keys = [id(row) for row, _ in outcomes]
        pieces = zip(
            repeat(b'{"case_id":'),
            map(orjson.dumps, map(_CASE_ID, cases)),
            map(_told_repeat, map(_REPEAT, results)),
            [rows[key][1] for key in keys],
            [_told_evidence(evidence) if evidence else b"}\n" for _, evidence in outcomes],
        )
        text = b"".join(chain.from_iterable(pieces))
        if len(set(map(id, cases))) < len(cases):
            cases, keys = self._averages(cases, [outcome[0] for outcome in outcomes])
        for facets, key in zip(map(facets_of, cases), keys, strict=True):
            self._members[facets].append(key)
        self._waiting += len(cases)
        if len(self._rows) >= MOST_ROWS or self._waiting >= MOST_WAITING:
            self.close()
        return text

    def _averages(
        self, cases: Sequence[TestCase], rows: Sequence[Row]
    ) -> tuple[list[TestCase], list[int]]:
        """Each case once, with the key of the mean of its repeats."""
        once, keys = [], []
        for _, group in groupby(zip(cases, rows, strict=True), key=lambda pair: id(pair[0])):
            pairs = list(group)
            case, row = pairs[0]
            if len(pairs) > 1:
                row = row._replace(values=average([repeat.values for _, repeat in pairs]))
                self._rows[id(row)] = (row, b"")
            once.append(case)
            keys.append(id(row))
        return once, keys

    def close(self) -> None:
        """Hand the counts over to the tally."""
        handles = {key: self._tally.new_row(row.values) for key, (row, _) in self._rows.items()}
        for facets, keys in self._members.items():
            counts: dict[Slices, dict[int, int]] = defaultdict(dict)
            for key, times in Counter(keys).items():
                counts[self._rows[key][0].slices][handles[key]] = times
            for slices, known in counts.items():
                self._tally.add_counts(known, slices_of(facets) + slices)
        self._tally.fold()
        self._rows.clear()
        self._members.clear()
        self._waiting = 0


@lru_cache(maxsize=1024)
def _told_repeat(repeat: int) -> bytes:
    return b',"repeat":%d,' % repeat


def _told_evidence(evidence: Evidence) -> bytes:
    text = evidence if isinstance(evidence, bytes) else orjson.dumps(evidence)
    return b',"evidence":' + text + b"}\n"


def _encode(row: Row, names: Sequence[str]) -> bytes:
    """Status, scores and reasons as the middle of a JSON object."""
    values = row.values
    if FAILED in values:
        values = tuple(None if value == FAILED else value for value in values)
    status = "scored"
    if values.count(None) == len(values):
        status = "failed" if FAILED in row.values else "not_applicable"
    record: dict[str, Any] = {"status": status, "scores": dict(zip(names, values, strict=True))}
    if row.reasons:
        record["reasons"] = dict(row.reasons)
    return orjson.dumps(record)[1:-1]
