"""The shapes that all labelled sets are read into, and how their files are opened."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from records.errors import Problem, StorageError


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim, what it was checked against, and people's verdict: 1 fully supported, 0 not."""

    claim: str
    contexts: tuple[str, ...]
    supported: int
    group: str
    question: str = ""
    lead: str = ""


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """An answer whose faithfulness people rated on a scale."""

    answer: str
    contexts: tuple[str, ...]
    rating: float
    group: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """Two answers to one question; ``preference`` is above 0 when people prefer the second."""

    first: str
    second: str
    reference: str
    preference: float
    group: str


@dataclass(frozen=True, slots=True)
class LabelledAbstention:
    """An answer and whether people call it an abstention or refusal (1) or an answer (0)."""

    answer: str
    abstained: int
    group: str


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of each non-empty line of a JSONL file, gzipped when it ends with .gz.

    Raises:
        StorageError: the file cannot be read or a line is no JSON object.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, _parsed(path, number, line)
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        raise StorageError(f"{path}: cannot be read: {error}") from error


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        message = f"is not JSON ({error}); write one object a line"
        raise StorageError.from_problems([Problem(str(path), number, "", message)]) from error
    if not isinstance(row, dict):
        message = f"expected an object, found {type(row).__name__}"
        raise StorageError.from_problems([Problem(str(path), number, "", message)])
    return row
