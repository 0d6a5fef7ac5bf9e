"""Our side of an export: the cases of a set with their labels, and the results of a run."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import orjson

from formats.shared.item import Notes
from records.cases import TestCase, canonical, case_from_dict, iter_lines
from records.errors import StorageError
from records.labels import read_labels, unknown_labels
from records.results import TestResult, read_results, tells_retrieved
from records.runs import RESULTS

ALWAYS = {"id"}

RESULT_KEYS = {"schema", "test_case_id", "question", "status", "repeat"}
"""Fields of a result that say which one it is; they hold no data of their own."""


@dataclass
class StoredCase:
    """A case with its labels, what no script reads of it, and its results by repeat.

    ``has_retrieved``: whether each result says what was retrieved, if only that it was nothing.
    """

    case: TestCase
    metadata: dict[str, Any]
    results: list[TestResult]
    has_retrieved: list[bool]

    def answers(self) -> Iterator[tuple[TestResult | None, bool]]:
        """Each result with whether it says what was retrieved; one None for a case without any."""
        if not self.results:
            yield None, False
        yield from zip(self.results, self.has_retrieved, strict=True)


class Stored:
    """Reads the eval set as a stream, and the results by an index of their lines."""

    def __init__(
        self,
        eval_set: Path,
        labels_dir: Path | None,
        run: Path | None,
        notes: Notes,
        match: str = "doc",
    ) -> None:
        """Raises StorageError when the run is incomplete or a file cannot be read.

        ``match``: whether documents or chunks are exported where a format has only one of them.
        """
        self.eval_set = eval_set
        self.run = run
        self.match = match
        self.run_name = run.resolve().name if run else ""
        corpus = eval_set.parent / "corpus.jsonl"
        self.corpus = corpus if corpus.is_file() else None
        self._notes = notes
        self._labels, self._label_places = read_labels(labels_dir, notes.report)
        self._results = run / RESULTS if run else None
        self._index = self._offsets()

    def _offsets(self) -> dict[str, list[int]]:
        """Where the lines of each case begin in results.jsonl, by repeat; each is looked at."""
        offsets: dict[str, list[tuple[int, int]]] = {}
        if self._results is None:
            return {}
        if not self._results.is_file():
            raise StorageError(f"{self._results}: no such file; the run is not complete.")
        report = self._notes.report
        for offset, result in read_results(self._results, report=report):
            offsets.setdefault(result.test_case_id, []).append((result.repeat, offset))
        self._notes.check()
        return {name: [at for _, at in sorted(positions)] for name, positions in offsets.items()}

    def cases(
        self, held: Set[str], held_results: Set[str] = frozenset(), repeats: bool = False
    ) -> Iterator[StoredCase]:
        """Every case with its results; fields with a value that are not held are counted.

        ``repeats``: the format has a place for more than one answer to a case.
        """
        decode = msgspec.json.Decoder(TestResult).decode
        problems = self._notes.report
        file = open(self._results, "rb") if self._results else None  # noqa: SIM115
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
                metadata = raw.get("metadata")
                stored_case = StoredCase(
                    case, metadata if isinstance(metadata, dict) else {}, results, has_retrieved
                )
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
            message = (
                f"{len(unknown)} results are of no case of {self.eval_set}, such as {name!r}; "
            )
            message += "name the run's own --eval-set, or --no-run"
            self._notes.problem(self._results or self.eval_set, None, "test_case_id", message)
        self._notes.rows["cases"] += len(ids)
        if self.run is not None:
            self._notes.rows["cases with results"] += asked

    def _object(self, number: int, line: bytes) -> dict[str, Any] | None:
        try:
            raw = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raw = error.msg
        if isinstance(raw, dict):
            return canonical(raw)
        self._notes.problem(self.eval_set, number, "", f"is no JSON object ({str(raw)[:60]})")
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
        own = set(TestCase.__struct_fields__)
        for name in own - held - ALWAYS:
            if getattr(stored_case.case, name) not in (None, [], {}):
                left[f"case.{name}"] += 1
        left.update(f"case.{name}" for name in raw.keys() - own - held if raw[name] is not None)
        for result in stored_case.results if repeats else stored_case.results[:1]:
            for name in set(TestResult.__struct_fields__) - held_results - RESULT_KEYS:
                if getattr(result, name) not in (None, [], {}):
                    left[f"result.{name}"] += 1
        if not repeats and len(stored_case.results) > 1:
            left["results of further repeats"] += len(stored_case.results) - 1
