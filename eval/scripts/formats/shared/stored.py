"""Our side of an export: the cases of a set with their labels, and the results of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import orjson

from formats.shared.item import Notes
from records.cases import TestCase, canonical, case_from_dict
from records.errors import StorageError
from records.file_access import open_plain
from records.labels import read_labels, unknown_labels
from records.lines import iter_lines, parse_json
from records.results import TestResult, result_offsets, tells_retrieved
from records.runs import results_file

ALWAYS = {"id"}

RESULT_KEYS = {"schema", "test_case_id", "question", "status", "repeat"}
"""Fields that identify a result; they have no data of their own."""


@dataclass
class StoredCase:
    """A case with its labels, and its results by repeat.

    ``has_retrieved``: whether each result says what was retrieved, if only that it was nothing.
    """

    case: TestCase
    results: list[TestResult]
    has_retrieved: list[bool]


class Stored:
    """Reads the eval set as a stream, and the results by an index of their lines."""

    def __init__(
        self,
        eval_set: Path,
        labels_dir: Path | None,
        run: Path | None,
        notes: Notes,
        added: Mapping[str, Any] | None = None,
    ) -> None:
        """Raises StorageError when the run is incomplete or a file cannot be read.

        ``added``: values of the options that an extra adds for its formats.
        """
        self.eval_set = eval_set
        self.run = run
        self.added = added or {}
        self.run_name = run.resolve().name if run else ""
        self._notes = notes
        self._labels, self._label_places = read_labels(labels_dir, notes.report, eval_set)
        self._results = results_file(run) if run else None
        self._index = self._offsets()

    def _offsets(self) -> dict[str, tuple[int, ...]]:
        """Where the lines of each case begin in results.jsonl, by repeat; each is looked at."""
        if self._results is None:
            return {}
        if not self._results.exists():
            raise StorageError(f"{self._results}: no such file; the run is not complete.")
        offsets = result_offsets(self._results, report=self._notes.report, whole=True)
        self._notes.check()
        return offsets

    def cases(
        self, held: Set[str], held_results: Set[str] = frozenset(), repeats: bool = False
    ) -> Iterator[StoredCase]:
        """Every case with its results; counts fields with a value that are not stored.

        ``repeats``: the format has a place for more than one answer to a case.
        """
        decode = msgspec.json.Decoder(TestResult).decode
        problems = self._notes.report
        file = open_plain(self._results) if self._results else None
        asked = 0
        ids: set[str] = set()
        try:
            for number, line in iter_lines(self.eval_set, problems):
                raw = self._object(number, line)
                if raw is None:
                    continue
                case, findings = case_from_dict(raw | self._labels.get(str(raw.get("id")), {}))
                for field, message in findings:
                    self._notes.problem(self.eval_set, number, field, message)
                if case is None:
                    continue
                if case.id in ids:
                    self._notes.problem(self.eval_set, number, "id", f"{case.id!r} is there twice")
                ids.add(case.id)
                results, has_retrieved = [], []
                for offset in self._index.get(case.id, ()):
                    assert file is not None
                    file.seek(offset)
                    line = file.readline()
                    results.append(decode(line))
                    has_retrieved.append(tells_retrieved(line))
                asked += bool(results)
                stored_case = StoredCase(case, results, has_retrieved)
                self._count(stored_case, raw, held, held_results, repeats)
                yield stored_case
        finally:
            if file is not None:
                file.close()
        for problem in unknown_labels(self._labels, self._label_places, self.eval_set, ids):
            problems(problem)
        unknown = self._index.keys() - ids
        if unknown:
            name = sorted(unknown)[0]
            message = f"{len(unknown)} results have no case in {self.eval_set}, such as {name!r}; "
            message += "name the run's own --eval-set, or --run none"
            self._notes.problem(self._results or self.eval_set, None, "test_case_id", message)
        self._notes.rows["cases"] += len(ids)
        if self.run is not None:
            self._notes.rows["cases with results"] += asked

    def _object(self, number: int, line: bytes) -> dict[str, Any] | None:
        try:
            raw = parse_json(line)
        except orjson.JSONDecodeError as error:
            raw = error.msg
        if isinstance(raw, dict):
            return canonical(raw)
        self._notes.problem(self.eval_set, number, "", f"is not a JSON object ({str(raw)[:60]})")
        return None

    def _count(
        self,
        stored_case: StoredCase,
        raw: dict[str, Any],
        held: Set[str],
        held_results: Set[str],
        repeats: bool,
    ) -> None:
        left = self._notes.left_out
        own = TestCase.__struct_fields__
        for name in (name for name in own if name not in held | ALWAYS):
            if getattr(stored_case.case, name) not in (None, [], {}):
                left[f"case.{name}"] += 1
        left.update(
            f"case.{name}" for name in raw if name not in {*own, *held} if raw[name] is not None
        )
        for result in stored_case.results if repeats else stored_case.results[:1]:
            for name in TestResult.__struct_fields__:
                if name in held_results or name in RESULT_KEYS:
                    continue
                if getattr(result, name) not in (None, [], {}, msgspec.UNSET):
                    left[f"result.{name}"] += 1
        if not repeats and len(stored_case.results) > 1:
            left["results of further repeats"] += len(stored_case.results) - 1
