"""Our side of an export: the cases of a set with their labels, and the results of a run.

What another tool has no field for travels in its free metadata: an export writes one object under
``KEY``, and an import gives its fields back to the case and the result. What the other tool's own
fields say wins: they may have been edited there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import orjson

from formats.shared.item import ImportedCase, Notes
from records.cases import TestCase, canonical, case_from_dict
from records.errors import StorageError
from records.labels import read_labels, unknown_labels
from records.lines import iter_lines, parse_json
from records.results import RetrievedChunk, TestResult, result_offsets, tells_retrieved
from records.runs import results_file
from records.shards import open_lines

ALWAYS = {"id"}

ALL_OF_CASE = {*TestCase.__struct_fields__, "metadata"}
ALL_OF_RESULT = {*TestResult.__struct_fields__}

RESULT_KEYS = {"schema", "test_case_id", "question", "status", "repeat"}
"""Fields that identify a result; they have no data of their own."""


@dataclass
class StoredCase:
    """A case with its labels, its fields that no script reads, and its results by repeat.

    ``has_retrieved``: whether each result says what was retrieved, if only that it was nothing.
    """

    case: TestCase
    metadata: dict[str, Any]
    results: list[TestResult]
    has_retrieved: list[bool]

    def answers(self) -> Iterator[tuple[TestResult | None, bool]]:
        """Each result, and whether it has its passages; one None for a case without any."""
        if not self.results:
            yield None, False
        yield from zip(self.results, self.has_retrieved, strict=True)

    @staticmethod
    def texts_of(result: TestResult, notes: Notes) -> list[str]:
        """The texts of the retrieved passages; reports a run that has them cut or not at all."""
        chunks = result.chunks()
        if any(chunk.truncated or not chunk.text for chunk in chunks):
            notes.changed["lists of passages that are cut or without text in the run"] += 1
        return [chunk.text or "" for chunk in chunks]


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
        file = open_lines(self._results) if self._results else None
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

    def write_list(
        self,
        target: Path,
        rows_of: Callable[[StoredCase, Notes], Iterator[dict[str, Any]]],
        notes: Notes,
        held: Set[str] = ALL_OF_CASE,
        held_of_result: Set[str] = ALL_OF_RESULT,
        *,
        head: bytes = b"",
        tail: bytes = b"",
    ) -> None:
        """A file with the rows of all cases as a JSON list, a row a line, between the two."""
        with open(target, "wb") as file:
            file.write(head)
            before = b"[\n"
            for stored_case in self.cases(held, held_of_result, repeats=True):
                for row in rows_of(stored_case, notes):
                    file.write(before + orjson.dumps(row))
                    before = b",\n"
                    notes.written[target.name] += 1
            file.write((b"\n]" if before == b",\n" else b"[]") + tail + b"\n")


def own_names(chunks: Sequence[RetrievedChunk]) -> list[str] | None:
    """The ids of passages; None where these are but their ranks."""
    names = [chunk.chunk_id for chunk in chunks]
    return None if names == [str(rank) for rank in range(1, len(names) + 1)] else names


KEY = "rag_eval"
_OF_CHUNK = ("text", "text_length", "rank")
"""Of a passage, what its text and place in the other tool's list say already."""


def carried(
    stored: StoredCase, result: TestResult | None, has_retrieved: bool, held: Set[str]
) -> dict[str, Any]:
    """The metadata for the other tool: the case's own, and under ``KEY`` what it has no field for.

    ``has_retrieved``: whether the result says what was retrieved. ``held``: fields of the case that
    the other tool has a field for.
    """
    case = {
        name: value
        for name, value in msgspec.to_builtins(stored.case).items()
        if name not in held and value not in (None, [], {})
    }
    record: dict[str, Any] = {"case": case}
    if result is not None:
        fields = msgspec.to_builtins(result)
        own = {"test_case_id", "question", "answer", "retrieved", "schema"}
        record["result"] = {
            name: value
            for name, value in fields.items()
            if name not in own
            and value not in (None, [], {}, 0)
            and (name, value) != ("status", "ok")
        }
        record["answer_hash"] = _digest(result.answer)
        if has_retrieved:
            record["retrieved"] = [_without_text(chunk) for chunk in result.chunks()]
    return stored.metadata | {KEY: record}


def _digest(answer: str | None) -> str | None:
    """Twelve digits of its SHA-256: promptfoo takes a whole one for a secret and blackens it."""
    return None if answer is None else hashlib.sha256(answer.encode()).hexdigest()[:12]


def _without_text(chunk: RetrievedChunk) -> dict[str, Any]:
    """Where a passage stands; its text only when the run holds it cut."""
    fields = msgspec.to_builtins(chunk)
    left = () if chunk.truncated else _OF_CHUNK
    return {name: value for name, value in fields.items() if name not in left and value is not None}


def taken(metadata: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Another tool's metadata without our object, and that object if there is one."""
    fields = dict(metadata) if isinstance(metadata, dict) else {}
    record = fields.pop(KEY, None)
    return fields, record if isinstance(record, dict) else None


def exported_id(record: dict[str, Any] | None) -> str | None:
    """The id that the case had when it was exported."""
    case = record.get("case") if record else None
    identity = case.get("id") if isinstance(case, dict) else None
    return identity if isinstance(identity, str) else None


def give_back(item: ImportedCase, record: dict[str, Any] | None, notes: Notes) -> None:
    """Restore the fields of the case and its answers that an export had put into the metadata."""
    if record is None:
        return
    case = record.get("case")
    if isinstance(case, dict):
        item.case |= {name: value for name, value in case.items() if name not in item.case}
        item.case["id"] = exported_id(record) or item.case["id"]
    for answer in item.answers:
        answer.result.test_case_id = str(item.case["id"])
        if "answer_hash" not in record:
            continue
        if record["answer_hash"] == _digest(answer.result.answer):
            answer.has_retrieved = "retrieved" in record
            _give_back_result(answer.result, record, item, notes)
        else:
            notes.changed["answers other than the exported one, which take nothing from it"] += 1


def _give_back_result(
    result: TestResult, record: dict[str, Any], item: ImportedCase, notes: Notes
) -> None:
    extra, listed = record.get("result"), record.get("retrieved")
    try:
        result_fields = msgspec.convert({"test_case_id": "x"} | (extra or {}), TestResult)
        chunks = msgspec.convert(listed or [], list[RetrievedChunk])
    except (msgspec.ValidationError, TypeError) as error:
        notes.problem(
            item.path,
            item.line,
            f"metadata.{KEY}",
            f"is no longer a result of this toolkit ({error})",
        )
        return
    for name in extra or {}:
        if name in TestResult.__struct_fields__ and getattr(result, name) in (
            None,
            [],
            {},
            0,
            "ok",
            msgspec.UNSET,
        ):
            setattr(result, name, getattr(result_fields, name))
    passages = result.chunks()
    if len(chunks) != len(passages):
        notes.changed["lists of passages that were edited after the export: places unknown"] += 1
        return
    for passage, exported in zip(passages, chunks, strict=True):
        for name in RetrievedChunk.__struct_fields__:
            if name not in _OF_CHUNK and (value := getattr(exported, name)) not in (None, ""):
                setattr(passage, name, value)
        if exported.truncated:
            passage.text_length = exported.text_length
