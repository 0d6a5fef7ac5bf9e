"""BEIR's folder: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any

import orjson

from formats.shared.item import ImportedCase, ImportOptions, Notes
from formats.shared.ranked import (
    GRADE_FIELDS,
    Exporter,
    Groups,
    QrelsLine,
    RankingFiles,
    Topic,
    decoded,
    items,
    parse_ranked,
)
from formats.shared.rows import finite, jsonl_rows, lines_of, unpacked
from formats.shared.stored import Stored
from records.errors import StorageError

NAME = "beir"

ABOUT = "a folder with corpus.jsonl, queries.jsonl and qrels/*.tsv; TREC runs may follow it"

HEAD = ("query-id", "corpus-id", "score")

SPLIT = "split:"

SPLIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each query with its judgements; its tag ``split:test`` names the split. The corpus
    is kept unchanged beside the eval set: only an export to BEIR reads it."""
    folder = sources[0]
    queries = _there(folder, "queries.jsonl", options)
    splits = sorted((folder / "qrels").glob(f"{options.split or '*'}.tsv"))
    if options.split and not splits:
        raise StorageError(f"{folder / 'qrels' / options.split}.tsv: no such file.")
    judged = RankingFiles(queries, tag_splits=True)
    for path in splits:
        groups = Groups(path, partial(_judgement, path, notes), skip=_head_lines(path))
        judged.qrels.append((path.stem, groups))
    for source in sources[1:]:
        path = unpacked(source, options.scratch)
        tags: set[str] = set()
        judged.runs.append((path.stem, Groups(path, partial(parse_ranked, path, notes, tags))))
    only = judged.qrels[0][1] if options.split else None
    judged.topics = _topics(queries, notes, only)
    yield from items(judged, notes, options.decode_names)
    corpus = folder / "corpus.jsonl"
    if corpus.exists():
        for row in jsonl_rows(corpus, notes):
            notes.rows["documents of the corpus"] += 1
            if not isinstance(row.fields.get("_id"), str | int):
                notes.problem(corpus, row.line, "_id", "is missing; every document needs an id")


def beside(sources: Sequence[Path]) -> dict[str, Path]:
    """Files that an import puts beside the eval set as they are."""
    corpus = sources[0] / "corpus.jsonl"
    return {"corpus.jsonl": corpus} if corpus.exists() else {}


def _there(folder: Path, name: str, path: ImportOptions) -> Path:
    if not folder.is_dir():
        raise StorageError(f"{folder}: no such folder; BEIR data is a folder with {name}.")
    return unpacked(folder / name, path.scratch)


def _topics(path: Path, notes: Notes, only: Groups[QrelsLine] | None) -> Iterator[Topic]:
    for row in jsonl_rows(path, notes):
        name, text = row.fields.pop("_id", None), row.fields.pop("text", None)
        if isinstance(name, int) and not isinstance(name, bool):
            notes.changed["_id: a number, written as text"] += 1
            name = str(name)
        if not isinstance(name, str) or not isinstance(text, str):
            field = "_id" if not isinstance(name, str) else "text"
            notes.problem(path, row.line, field, "is missing or no text; write a string")
            continue
        if only is not None and name not in only:
            notes.left_out["queries that the split does not judge"] += 1
            continue
        extra = _metadata(row.fields, notes)
        yield Topic(row.line or 0, name, text, {"metadata": extra} if extra else {})


def _metadata(fields: dict[str, Any], notes: Notes) -> dict[str, Any]:
    own = fields.pop("metadata", None)
    own = own if isinstance(own, dict) else ({"metadata": own} if own else {})
    extra = own | {name: value for name, value in fields.items() if value not in (None, "")}
    notes.carried.update(list(extra))
    return extra


def _head_lines(path: Path) -> int:
    """1 when the first line names the columns, as BEIR's files do."""
    for number, line in lines_of(path):
        columns = line.split(b"\t")
        return number if finite(columns[-1].decode("utf-8", "replace")) is None else 0
    return 0


def _judgement(path: Path, notes: Notes, number: int, line: bytes) -> tuple[str, QrelsLine] | None:
    text = decoded(path, number, line, notes)
    if text is None:
        return None
    columns = next(csv.reader([text], delimiter="\t")) if '"' in text else text.split("\t")
    if len(columns) != len(HEAD):
        notes.problem(path, number, "", f"has {len(columns)} columns; write {', '.join(HEAD)}")
        return None
    grade = finite(columns[2])
    if grade is None:
        notes.problem(path, number, "score", f"{columns[2][:40]!r} is not a finite number")
        return None
    return columns[0], QrelsLine(columns[1], grade)


def write(stored: Stored, target: Path, notes: Notes) -> None:
    """corpus.jsonl, queries.jsonl and a file in qrels/ for each ``split:NAME`` tag, else test."""
    exporter = Exporter(stored, notes)
    (target / "qrels").mkdir()
    held = {"question", "metadata", "tags"} | GRADE_FIELDS[stored.match]
    with ExitStack() as stack:
        queries = stack.enter_context(open(target / "queries.jsonl", "wb"))
        corpus = _Corpus(stack.enter_context(open(target / "corpus.jsonl", "wb")), notes)
        tables: dict[str, Any] = {}
        if stored.corpus is not None:
            for row in jsonl_rows(stored.corpus, notes):
                corpus.add(str(row.fields.get("_id")), row.fields)
        for stored_case in stored.cases(held):
            case_id = exporter.one_field(stored_case.case.id)
            query = {"_id": case_id, "text": stored_case.case.question}
            _dump(
                queries,
                query | ({"metadata": stored_case.metadata} if stored_case.metadata else {}),
            )
            notes.written["queries.jsonl"] += 1
            judged = exporter.grades(stored_case.case).items()
            grades = {exporter.one_field(name): grade for name, grade in judged}
            for split in _splits(stored_case.case.tags, notes):
                if split not in tables:
                    path = target / "qrels" / f"{split}.tsv"
                    file = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115
                    table = csv.writer(stack.enter_context(file), "excel-tab", lineterminator="\n")
                    table.writerow(HEAD)
                    tables[split] = table
                tables[split].writerows((case_id, name, grades[name]) for name in grades)
                notes.written[f"qrels/{split}.tsv"] += len(grades)
            corpus.want(grades)
            for name, text in exporter.texts(stored_case):
                corpus.add_passage(exporter.one_field(name), text)
        corpus.fill()


class _Corpus:
    """corpus.jsonl in the making: each document once."""

    def __init__(self, file: IO[bytes], notes: Notes) -> None:
        self._file = file
        self._notes = notes
        self._written_ids: set[str] = set()
        self._needed_ids: dict[str, None] = {}

    def add(self, name: str, document: dict[str, Any]) -> None:
        self._written_ids.add(name)
        _dump(self._file, document)
        self._notes.written["corpus.jsonl"] += 1

    def add_passage(self, name: str, text: str) -> None:
        """A document that only a run's passage tells of."""
        if name not in self._written_ids:
            self._notes.changed["documents whose text is the retrieved passage"] += 1
            self.add(name, {"_id": name, "title": "", "text": text})

    def want(self, names: Iterable[str]) -> None:
        """Judged documents, which the corpus must have."""
        self._needed_ids.update(dict.fromkeys(names))

    def fill(self) -> None:
        """Write judged documents that nothing else tells of, without a text."""
        for name in self._needed_ids:
            if name not in self._written_ids:
                self._notes.changed["documents without a text: no corpus and no run has it"] += 1
                self.add(name, {"_id": name, "title": "", "text": ""})


def _splits(tags: Sequence[str], notes: Notes) -> list[str]:
    """The splits that the tags name, ``test`` when there is none; other tags have no place."""
    names = [tag.removeprefix(SPLIT) for tag in tags if tag.startswith(SPLIT)]
    sound = [name for name in names if SPLIT_NAME.fullmatch(name)]
    if len(tags) > len(sound):
        notes.left_out["case.tags"] += 1
    return sound or ["test"]


def _dump(file: IO[bytes], record: Any) -> None:
    file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
