"""BEIR's folder: queries.jsonl and qrels/SPLIT.tsv."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from extras.research.ranked import (
    Groups,
    QrelsLine,
    RankingFiles,
    Topic,
    decoded,
    items,
    parse_ranked,
)
from formats.shared.item import ImportedCase, ImportOptions, Notes
from formats.shared.rows import finite, jsonl_rows, lines_of, unpacked
from records.errors import StorageError

NAME = "beir"

ABOUT = "a folder with queries.jsonl and qrels/*.tsv; TREC runs may follow it"

HEAD = ("query-id", "corpus-id", "score")


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each query with its judgements; its tag ``split:test`` names the split. The corpus
    is not read: a run names its documents."""
    folder = sources[0]
    queries = _there(folder, "queries.jsonl", options)
    split = options.added.get("split")
    splits = sorted((folder / "qrels").glob(f"{split or '*'}.tsv"))
    if split and not splits:
        raise StorageError(f"{folder / 'qrels' / split}.tsv: no such file.")
    judged = RankingFiles(queries, tag_splits=True)
    for path in splits:
        groups = Groups(path, partial(_judgement, path, notes), skip=_head_lines(path))
        judged.qrels.append((path.stem, groups))
    for source in sources[1:]:
        path = unpacked(source, options.scratch)
        tags: set[str] = set()
        judged.runs.append((path.stem, Groups(path, partial(parse_ranked, path, notes, tags))))
    only = judged.qrels[0][1] if split else None
    judged.topics = _topics(queries, notes, only)
    yield from items(judged, notes, decode=options.added.get("decode_names", False))


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
