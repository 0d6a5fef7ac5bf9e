"""TREC's files: topics, relevance judgements (qrels) and runs, parted by blanks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO

from formats.shared.item import ImportedCase, ImportOptions, Notes
from formats.shared.ranked import (
    GRADE_FIELDS,
    Exporter,
    Groups,
    QrelsLine,
    RankedLine,
    RankingFiles,
    Topic,
    columns_of,
    decoded,
    is_markup,
    items,
    marked_up,
    parse_ranked,
)
from formats.shared.rows import finite, lines_of, unpacked
from formats.shared.stored import Stored
from records.errors import StorageError

NAME = "trec"

ABOUT = "qrels (4 columns), runs (6), topics (id, tab, text; or <top>); recognised by content"


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each topic with its judgements as grades of documents, a run for each run file."""
    topics: list[Path] = []
    judged = RankingFiles(sources[0])
    runs: list[tuple[str, Path, Groups[RankedLine]]] = []
    seconds: set[str] = set()
    for source in sources:
        path = unpacked(source, options.scratch)
        kind = _kind(path)
        if kind in ("topics", "markup"):
            topics.append(path)
        elif kind == "empty":
            notes.left_out["empty files"] += 1
        elif kind == "qrels":
            judged.qrels.append(("", Groups(path, partial(_judgement, path, notes, seconds))))
        else:
            tags: set[str] = set()
            groups = Groups(path, partial(parse_ranked, path, notes, tags))
            if len(tags) > 1:
                notes.left_out["tags of lines, where a run has several"] += groups.lines
            runs.append((tags.pop() if len(tags) == 1 else path.stem, path, groups))
    if len(topics) > 1:
        raise StorageError(f"{topics[1]}: a second file of topics; join them.")
    names = [name for name, _, _ in runs]
    judged.runs = [
        (name if names.count(name) == 1 else path.stem, groups) for name, path, groups in runs
    ]
    if topics:
        judged.path = topics[0]
        form = marked_up if _kind(topics[0]) == "markup" else _topics
        judged.topics = form(topics[0], notes)
    if seconds - {"0", "Q0"}:
        notes.left_out["iterations (second column of qrels)"] += len(seconds - {"0", "Q0"})
    yield from items(judged, notes, options.decode_names)


def _kind(path: Path) -> str:
    for number, line in lines_of(path):
        if line.count(b"\t") == 1:
            return "topics"
        if is_markup(line):
            return "markup"
        columns = len(line.split())
        if columns in (4, 6):
            return "qrels" if columns == 4 else "run"
        raise StorageError(
            f"{path}:{number}: has {columns} columns; qrels have 4 (topic, iteration, document, "
            "relevance), runs 6 (topic, Q0, document, rank, score, tag), topics 2 parted by a tab."
        )
    return "empty"


def _topics(path: Path, notes: Notes) -> Iterator[Topic]:
    for number, line in lines_of(path):
        text = decoded(path, number, line, notes)
        if text is None:
            continue
        name, document, question = text.partition("\t")
        if not document or not name.strip() or not question.strip():
            notes.problem(path, number, "", "is not a topic; write its id, a tab and its text")
        else:
            yield Topic(number, name.strip(), question, {})


def _judgement(
    path: Path, notes: Notes, seconds: set[str], number: int, line: bytes
) -> tuple[str, QrelsLine] | None:
    """A line of qrels: topic, iteration, document, relevance."""
    columns = columns_of(path, number, line, notes, 4, "qrels")
    if columns is None:
        return None
    topic, iteration, document, relevance = columns
    seconds.add(iteration)
    grade = finite(relevance)
    if grade is None:
        notes.problem(path, number, "relevance", f"{relevance[:40]!r} is not a finite number")
        return None
    return topic, QrelsLine(document, grade)


def write(stored: Stored, target: Path, notes: Notes) -> None:
    """``topics.tsv``, ``qrels.txt`` and, with a run, ``run.txt``."""
    exporter = Exporter(stored, notes)
    with ExitStack() as stack:
        topics, qrels = _opened(stack, target, "topics.tsv"), _opened(stack, target, "qrels.txt")
        run = _opened(stack, target, "run.txt") if stored.run else None
        for stored_case in stored.cases({"question"} | GRADE_FIELDS[stored.match], {"retrieved"}):
            name = exporter.one_word(stored_case.case.id)
            topics.write(f"{name}\t{exporter.one_line(stored_case.case.question)}\n")
            grades = exporter.grades(stored_case.case)
            for document, grade in grades.items():
                qrels.write(f"{name} 0 {exporter.one_word(document)} {grade}\n")
            ranking = exporter.ranking(stored_case) if run else []
            for rank, (document, score) in enumerate(ranking, 1):
                assert run is not None
                run.write(f"{name} Q0 {document} {rank} {score!r} {stored.run_name}\n")
            notes.written["topics.tsv"] += 1
            notes.written["qrels.txt"] += len(grades)
            if run is not None:
                notes.written["run.txt"] += len(ranking)


def _opened(stack: ExitStack, target: Path, name: str) -> IO[str]:
    return stack.enter_context(open(target / name, "w", encoding="utf-8", newline="\n"))
