"""Joins topics, relevance judgements and ranked lists, topic by topic."""

from __future__ import annotations

import html
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

from formats.shared.item import ImportedCase, Notes, SystemAnswer
from formats.shared.rows import finite
from records.file_access import open_plain, read_whole
from records.lines import BOM
from records.results import RetrievedChunk, TestResult

MOST_GRADE = 1_000_000
"""The highest grade of relevance: TREC has none above 10."""

MOST_SPLITS = "a topic judged in several splits: its judgements are joined"


class Topic(NamedTuple):
    """A query as its file has it; ``extra`` are further fields of the case."""

    line: int
    id: str
    text: str
    extra: dict[str, Any]


class QrelsLine(NamedTuple):
    """One line of qrels."""

    document: str
    grade: float


class RankedLine(NamedTuple):
    """One line of a run."""

    document: str
    rank: str
    score: float


@dataclass
class RankingFiles:
    """All files of an import. ``qrels``: split name (or "") and judgements; ``runs``: by name."""

    path: Path
    topics: Iterable[Topic] = ()
    qrels: list[tuple[str, Groups[QrelsLine]]] = field(default_factory=list)
    runs: list[tuple[str, Groups[RankedLine]]] = field(default_factory=list)
    tag_splits: bool = False


def items(judged: RankingFiles, notes: Notes, decode: bool) -> Iterator[ImportedCase]:
    """A case for each topic in the order of the topics, then of the qrels, then of the runs."""
    seen: set[str] = set()
    for topic in judged.topics:
        notes.rows["topics"] += 1
        if topic.id not in seen:
            seen.add(topic.id)
            yield _item(judged, topic, notes, decode)
        else:
            notes.problem(judged.path, topic.line, "id", f"topic {topic.id!r} is there twice")
    files: list[Iterable[str]] = [groups for _, groups in judged.qrels]
    files += [groups for _, groups in judged.runs]
    for name in chain.from_iterable(files):
        if name not in seen:
            seen.add(name)
            notes.changed["question: the topic has no text, its id replaces it"] += 1
            yield _item(judged, Topic(0, name, name, {}), notes, decode)
    notes.rows["judgements"] += sum(groups.lines for _, groups in judged.qrels)
    notes.rows["ranked documents"] += sum(groups.lines for _, groups in judged.runs)


def _item(judged: RankingFiles, topic: Topic, notes: Notes, decode: bool) -> ImportedCase:
    grades, splits = _grades(judged, topic.id, notes, decode)
    case: dict[str, Any] = {"id": topic.id, "question": topic.text} | topic.extra
    if decode:
        case["id"] = unquote(topic.id)
    if grades:
        case["relevance_grades"] = grades
    else:
        notes.rows["topics without a judgement"] += 1
    if judged.tag_splits:
        case["tags"] = [f"split:{name}" for name in splits]
        if len(splits) > 1:
            notes.changed[MOST_SPLITS] += 1
    answers = [
        SystemAnswer(name, _ranking(groups, case, topic.id, notes, decode))
        for name, groups in judged.runs
        if topic.id in groups
    ]
    relevant = any(grade > 0 for grade in grades.values())
    return ImportedCase(case, judged.path, topic.line or None, answers, asked=relevant)


def _grades(
    judged: RankingFiles, topic: str, notes: Notes, decode: bool
) -> tuple[dict[str, float], list[str]]:
    grades: dict[str, float] = {}
    splits: list[str] = []
    for split, groups in judged.qrels:
        if topic in groups:
            splits.append(split)
        for line, (document, grade) in groups.read(topic):
            name = unquote(document) if decode else document
            if abs(grade) > MOST_GRADE:
                message = f"the grade of {document!r} is too large; write a small whole number"
                notes.problem(groups.path, line, "relevance", message)
                continue
            number = int(grade) if grade == int(grade) else grade
            if grades.setdefault(name, number) != number:
                message = f"{document!r} of topic {topic!r} has another grade on an earlier line"
                notes.problem(groups.path, line, "relevance", message)
    return grades, splits


def _ranking(
    groups: Groups[RankedLine], case: dict[str, Any], topic: str, notes: Notes, decode: bool
) -> TestResult:
    """The list of a topic in trec_eval's order: score, then document name, both downwards."""
    rows = list(groups.read(topic))
    documents: dict[str, int] = {}
    for line, row in rows:
        if documents.setdefault(row.document, line) != line:
            message = f"{row.document!r} is also on line {documents[row.document]} for this topic"
            notes.problem(groups.path, line, "document", message)
    ranked = sorted((row for _, row in rows), key=order_key, reverse=True)
    by_rank = sorted((row for _, row in rows), key=_by_rank)
    if ranked != by_rank:
        notes.changed["lists whose ranks differ from the order of their scores, which counts"] += 1
    chunks = [
        RetrievedChunk(chunk_id=name, doc_id=name, score_final=row.score, rank=rank)
        for rank, row in enumerate(ranked, 1)
        for name in [unquote(row.document) if decode else row.document]
    ]
    return TestResult(case["id"], case["question"], retrieved=[*chunks])


def order_key(row: RankedLine) -> tuple[float, str]:
    """What trec_eval sorts by, downwards: the score in single precision, then the name."""
    return _single(row.score), row.document


def _single(score: float) -> float:
    """A score as trec_eval holds it: in 32 bits."""
    try:
        value: float = struct.unpack("f", struct.pack("f", score))[0]
        return value
    except OverflowError:
        return float("inf") if score > 0 else float("-inf")


def _by_rank(row: RankedLine) -> float:
    rank = finite(row.rank)
    return 0.0 if rank is None else rank


T = TypeVar("T")

Parse = Callable[[int, bytes], "tuple[str, T] | None"]
"""From a line's number and bytes to its key and value; None for a line that was refused."""


class Groups(Generic[T]):
    """The values of a file by key. ``parse`` is called for every line once while indexing, and
    again when a group is read. Memory: about 200 bytes a key."""

    def __init__(self, path: Path, parse: Parse[T], skip: int = 0) -> None:
        """Index the file; its first ``skip`` lines are a head."""
        self.path = path
        self._parse = parse
        self._ranges: dict[str, list[tuple[int, int, int]]] = {}
        self.lines = 0
        self._file: IO[bytes] | None = None
        last, position = "", 0
        with open_plain(path) as file:
            for number, line in enumerate(file, 1):
                start, position = position, position + len(line)
                entry = parse(number, _clean(line, number)) if _counts(line, number, skip) else None
                if entry is None:
                    last = ""
                    continue
                self.lines += 1
                key = entry[0]
                ranges = self._ranges.setdefault(key, [])
                if ranges and key == last:
                    ranges[-1] = (ranges[-1][0], position, ranges[-1][2])
                else:
                    ranges.append((start, position, number))
                last = key

    def __iter__(self) -> Iterator[str]:
        """The keys in the order of the file."""
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __contains__(self, key: str) -> bool:
        return key in self._ranges

    def read(self, key: str) -> Iterator[tuple[int, T]]:
        """Line number and value of each line of a key, in the order of the file."""
        ranges = self._ranges.get(key, ())
        if self._file is None and ranges:
            self._file = open_plain(self.path)  # read until the import ends
        for start, end, number in ranges:
            assert self._file is not None
            self._file.seek(start)
            lines = self._file.read(end - start).removesuffix(b"\n").split(b"\n")
            for position, line in enumerate(lines, number):
                entry = self._parse(position, _clean(line, position))
                if entry is not None:
                    yield position, entry[1]


def _clean(line: bytes, number: int) -> bytes:
    return (line.removeprefix(BOM) if number == 1 else line).rstrip(b"\r\n")


def _counts(line: bytes, number: int, skip: int) -> bool:
    return number > skip and bool(line.strip())


MARKUP = re.compile(rb"<(?:top|topics|topic|\?xml)\b[^>]*>", re.IGNORECASE)

BLOCK = re.compile(r"<top>(.*?)</top>|<topic\b([^>]*>.*?)</topic>", re.DOTALL | re.IGNORECASE)

FIELD = re.compile(
    r"<(num|title|query|question|desc|description|narr|narrative)>([^<]*)", re.IGNORECASE
)

NUMBER = re.compile(r"\b(?:number|id)\s*=\s*[\"']([^\"']+)")

LABEL = re.compile(r"^\s*(?:Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)

QUESTION = ("title", "query", "question", "desc", "description")

NAMES = {"desc": "description", "narr": "narrative"}


def is_markup(line: bytes) -> bool:
    """Whether a file that begins with this line has topics in markup."""
    return MARKUP.match(line.strip()) is not None


def marked_up(path: Path, notes: Notes) -> Iterator[Topic]:
    """The topics of a file: the title is the question, the rest goes to metadata."""
    text = read_whole(path).decode("utf-8", "replace")
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        inner = block[1] if block[1] is not None else block[2]
        tags = {
            field.lower(): " ".join(html.unescape(LABEL.sub("", value)).split())
            for field, value in FIELD.findall(inner)
        }
        attribute = NUMBER.match(inner.strip()) if block[1] is None else None
        name = tags.pop("num", "") or (attribute[1].strip() if attribute else "")
        kind = next((name for name in QUESTION if tags.get(name)), None)
        if not name or kind is None:
            message = "is not a topic; write its number in <num> and its text in <title>"
            notes.problem(path, line, "", message)
            continue
        question = tags.pop(kind)
        extra = {NAMES.get(field, field): value for field, value in tags.items() if value}
        notes.carried.update(list(extra))
        yield Topic(line, name, question, {"metadata": extra} if extra else {})


def decoded(path: Path, number: int, line: bytes, notes: Notes) -> str | None:
    """The line as text; None after reporting that it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        notes.problem(path, number, "", f"is not UTF-8 ({error.reason} at byte {error.start})")
        return None


def parse_ranked(
    path: Path, notes: Notes, tags: set[str], number: int, line: bytes
) -> tuple[str, RankedLine] | None:
    """A line of a run: topic, Q0, document, rank, score, tag."""
    columns = columns_of(path, number, line, notes, 6, "runs")
    if columns is None:
        return None
    topic, _, document, rank, score_text, tag = columns
    score = finite(score_text)
    if score is None:
        notes.problem(path, number, "score", f"{score_text[:40]!r} is not a finite number")
        return None
    if len(tags) < 2:
        tags.add(tag)
    return topic, RankedLine(document, rank, score)


def columns_of(
    path: Path, number: int, line: bytes, notes: Notes, count: int, noun: str
) -> list[str] | None:
    """The columns of a line, split at ASCII blanks alone, as trec_eval does. None after reporting a
    number of columns that such files do not have."""
    text = decoded(path, number, b"\n".join(line.split()), notes)
    columns = None if text is None else text.split("\n")
    if columns is None or len(columns) == count:
        return columns
    notes.problem(path, number, "", f"has {len(columns)} columns; {noun} have {count}")
    return None
