"""TREC's files: topics, relevance judgements (qrels) and runs, parted by blanks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO
from urllib.parse import quote

from extras.research.ranked import (
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
    order_key,
    parse_ranked,
)
from formats.shared.item import ImportedCase, ImportOptions, Notes
from formats.shared.rows import finite, lines_of, unpacked
from formats.shared.stored import Stored, StoredCase
from ragmetrics.matching import DEFAULT_GRADE
from records.cases import TestCase
from records.errors import StorageError
from records.results import RetrievedChunk, without_answer

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
    yield from items(judged, notes, decode=options.added.get("decode_names", False))


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
        for stored_case in stored.cases({"question"} | exporter.held, {"retrieved"}):
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


BREAKS = re.compile(r"\r\n|[\t\n\r\x0b\x0c]")

GRADE_FIELDS = {
    "doc": {"relevant_docs", "relevance_grades", "gold_supports"},
    "chunk": {"relevant_chunks", "chunk_relevance_grades"},
}


class Exporter:
    """The columns of a case. Documents are names: of notes, or with --match chunk of chunks.

    ``held``: the fields of a case that become grades.
    """

    def __init__(self, stored: Stored, notes: Notes) -> None:
        match = stored.added.get("match", "doc")
        self.held = GRADE_FIELDS[match]
        self._by_doc = match == "doc"
        self._notes = notes

    def grades(self, case: TestCase) -> dict[str, int]:
        """The grade of each judged document, as the scorers count it.

        By document: relevance_grades and relevant_docs, else the paths of gold_supports. Names
        without a grade get the usual 3. qrels hold whole numbers: others are rounded, never to 0
        or below when they are above.
        """
        if self._by_doc:
            grades = dict.fromkeys(case.relevant_docs, DEFAULT_GRADE) | case.relevance_grades
            if not grades:
                for support in case.gold_supports:
                    grade = support.grade or DEFAULT_GRADE
                    grades[support.rel_path] = max(grade, grades.get(support.rel_path, 0))
                if grades:
                    self._notes.changed["cases whose gold_supports are written as whole files"] += 1
        else:
            grades = dict.fromkeys(case.relevant_chunks, DEFAULT_GRADE)
            grades |= case.chunk_relevance_grades
        return {name: self._whole(grade) for name, grade in grades.items()}

    def _whole(self, grade: float) -> int:
        if grade == int(grade):
            return int(grade)
        self._notes.changed["grades that are not whole numbers, rounded"] += 1
        return max(1, round(grade)) if grade > 0 else math.floor(grade)

    def ranking(self, stored_case: StoredCase) -> list[tuple[str, float]]:
        """The ranked documents of the first answer as words, with scores that keep the order."""
        if not stored_case.results:
            return []
        result = stored_case.results[0]
        if result.status != "ok":
            self._notes.left_out[without_answer(result)] += 1
            return []
        rows: dict[str, float | None] = {}
        for chunk in result.chunks():
            name = self._name(chunk)
            word = self.one_word(name) if name else ""
            if not name:
                self._notes.left_out["retrieved chunks without an id"] += 1
            elif word in rows:
                self._notes.left_out["further chunks of a document in one list"] += 1
            else:
                rows[word] = chunk.score_final
        return self._scored(rows)

    def _scored(self, rows: dict[str, float | None]) -> list[tuple[str, float]]:
        """The bot's own scores when trec_eval would keep the order by them, else descending ones.

        trec_eval sorts by score and then by name, both downwards, and looks at no rank.
        """
        scored = [
            RankedLine(name, "", score)
            for name, score in rows.items()
            if score is not None and math.isfinite(score)
        ]
        if len(scored) == len(rows) and scored == sorted(scored, key=order_key, reverse=True):
            return [(row.document, row.score) for row in scored]
        self._notes.changed["lists whose scores do not follow their ranks, scored n to 1"] += 1
        return [(name, float(len(rows) - index)) for index, name in enumerate(rows)]

    def _name(self, chunk: RetrievedChunk) -> str:
        if not self._by_doc:
            return chunk.chunk_id
        return (chunk.rel_path if chunk.doc_id is None else chunk.doc_id) or ""

    def one_word(self, name: str) -> str:
        """A name without blanks, which part the columns: percent-encoded where it has some."""
        if name.encode().split() == [name.encode()]:
            return name
        self._notes.changed["names with blanks, percent-encoded (import with --decode-names)"] += 1
        return quote(name, safe="/-_.~#:")

    def one_line(self, text: str) -> str:
        """A question on one line, without tabs."""
        line = BREAKS.sub(" ", text)
        if line != text:
            self._notes.changed["questions with line breaks or tabs, on one line"] += 1
        return line
