"""The shape between the formats: a case with its answers, and what the user asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storage import RetrievedChunk, TestResult

TEXTS = ("text", "content", "page_content", "document")
NAMES = ("id", "chunk_id", "doc_id", "document_id", "source")
PATHS = ("rel_path", "source")


@dataclass(frozen=True)
class Wanted:
    """What the user asked of an import, as far as a format may care."""

    run_id: str | None = None
    split: str | None = None
    question_field: str | None = None
    delimiter: str | None = None
    decode_names: bool = False
    scratch: Path = Path()
    """A folder for temporary files, such as unpacked sources."""


@dataclass
class Answer:
    """What one system answered. ``run`` names the run; ``spans`` are people's marks in the answer,
    as the source has them."""

    run: str
    result: TestResult
    spans: list[dict[str, Any]] | None = None


@dataclass
class Item:
    """A case as a line of the eval set, labels included, and the answers to it.

    ``path`` and ``line`` tell where it was read, for messages. ``asked``: every run should answer
    the case; else only those were asked it that did.
    """

    case: dict[str, Any]
    path: Path
    line: int | None = None
    answers: list[Answer] = field(default_factory=list)
    asked: bool = True


class Ids:
    """Gives cases without a valid id a stable one: a hash of the question.

    The same question again gets ``-2``, ``-3``, … in the order of the source, so that another
    file of the same questions (another system's answers) gets the same ids.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def make(self, question: str) -> str:
        digest = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        times = self._seen[digest] = self._seen.get(digest, 0) + 1
        return f"q-{digest}" if times == 1 else f"q-{digest}-{times}"


def passages(texts: Iterable[str], ids: Iterable[str] | None = None) -> list[RetrievedChunk]:
    """Texts in rank order as retrieved chunks; without ids they are named by their rank."""
    texts = list(texts)
    names = list(ids) if ids is not None else [str(rank) for rank in range(1, len(texts) + 1)]
    return [
        RetrievedChunk(chunk_id=name, text=text, text_length=len(text), rank=rank)
        for rank, (name, text) in enumerate(zip(names, texts, strict=True), 1)
    ]


def chunk_of(row: Mapping[str, Any], rank: int) -> RetrievedChunk:
    """A retrieved chunk from an object with a text, an id, a score and the like.

    Its document is the path or source that the object or its ``metadata`` tells, else its id;
    without any of them it is named by its rank and has no document.
    """
    text = next((row[name] for name in TEXTS if isinstance(row.get(name), str)), None)
    found = next((row[name] for name in NAMES if isinstance(row.get(name), str | int)), None)
    score = row.get("score")
    metadata = row.get("metadata")
    places = [one for one in (metadata, row) if isinstance(one, dict)]
    path = next((one[name] for one in places for name in PATHS if one.get(name)), None)
    document = path if isinstance(path, str) else row.get("doc_id", found)
    return RetrievedChunk(
        chunk_id=str(rank) if found is None else str(found),
        doc_id=None if document is None else str(document),
        score_final=float(score) if isinstance(score, int | float) else None,
        text=text,
        text_length=None if text is None else len(text),
        rank=rank,
    )
