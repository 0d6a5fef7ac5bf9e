"""Judged retrieval: topics, relevance judgements and ranked lists, joined topic by topic."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from converting.grouped import Groups
from converting.item import Answer, Item
from converting.notes import Notes
from converting.sources import finite
from storage import RetrievedChunk, TestResult

MOST_SPLITS = "a topic judged in several splits: its judgements are joined"


class Topic(NamedTuple):
    """A query as its file has it; ``extra`` are further fields of the case."""

    line: int
    id: str
    text: str
    extra: dict[str, Any]


class Judgement(NamedTuple):
    """One line of qrels."""

    document: str
    grade: float


class Ranked(NamedTuple):
    """One line of a run."""

    document: str
    rank: str
    score: float


@dataclass
class Judged:
    """All files of an import. ``qrels``: split name (or "") and judgements; ``runs``: by name."""

    path: Path
    topics: Iterable[Topic] = ()
    qrels: list[tuple[str, Groups[Judgement]]] = field(default_factory=list)
    runs: list[tuple[str, Groups[Ranked]]] = field(default_factory=list)
    tag_splits: bool = False


def items(judged: Judged, notes: Notes, decode: bool) -> Iterator[Item]:
    """A case for each topic in the order of the topics, then of the qrels, then of the runs."""
    seen: set[str] = set()
    for topic in judged.topics:
        notes.rows["topics"] += 1
        if topic.id not in seen:
            seen.add(topic.id)
            yield _item(judged, topic, notes, decode)
        else:
            notes.problem(judged.path, topic.line, "id", f"topic {topic.id!r} stands there twice")
    files: list[Iterable[str]] = [groups for _, groups in judged.qrels]
    files += [groups for _, groups in judged.runs]
    for name in chain.from_iterable(files):
        if name not in seen:
            seen.add(name)
            notes.changed["question: the topic has no text, its id stands there"] += 1
            yield _item(judged, Topic(0, name, name, {}), notes, decode)
    notes.rows["judgements"] += sum(groups.lines for _, groups in judged.qrels)
    notes.rows["ranked documents"] += sum(groups.lines for _, groups in judged.runs)


def _item(judged: Judged, topic: Topic, notes: Notes, decode: bool) -> Item:
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
        Answer(name, _ranking(groups, case, topic.id, notes, decode))
        for name, groups in judged.runs
        if topic.id in groups
    ]
    relevant = any(grade > 0 for grade in grades.values())
    return Item(case, judged.path, topic.line or None, answers, asked=relevant)


def _grades(
    judged: Judged, topic: str, notes: Notes, decode: bool
) -> tuple[dict[str, float], list[str]]:
    grades: dict[str, float] = {}
    splits: list[str] = []
    for split, groups in judged.qrels:
        if topic in groups:
            splits.append(split)
        for line, (document, grade) in groups.read(topic):
            name = unquote(document) if decode else document
            number = int(grade) if grade == int(grade) else grade
            if grades.setdefault(name, number) != number:
                message = f"{document!r} of topic {topic!r} has another grade further up"
                notes.problem(groups.path, line, "relevance", message)
    return grades, splits


def _ranking(
    groups: Groups[Ranked], case: dict[str, Any], topic: str, notes: Notes, decode: bool
) -> TestResult:
    """The list of a topic in trec_eval's order: score, then document name, both downwards."""
    rows = list(groups.read(topic))
    documents: dict[str, int] = {}
    for line, row in rows:
        if documents.setdefault(row.document, line) != line:
            message = (
                f"{row.document!r} stands on line {documents[row.document]} for this topic too"
            )
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


def order_key(row: Ranked) -> tuple[float, str]:
    """What trec_eval sorts by, downwards: the score in single precision, then the name."""
    return single(row.score), row.document


def single(score: float) -> float:
    """A score as trec_eval holds it: in 32 bits."""
    try:
        value: float = struct.unpack("f", struct.pack("f", score))[0]
        return value
    except OverflowError:
        return float("inf") if score > 0 else float("-inf")


def _by_rank(row: Ranked) -> float:
    rank = finite(row.rank)
    return 0.0 if rank is None else rank
