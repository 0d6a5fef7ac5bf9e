"""The retrieved chunks of a result: in which order, and what of them is compared with the gold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ragmetrics import matching
from ragmetrics.matching import Anchor, Mode
from storage import Reference, RetrievedChunk, TestResult

_IN_ORDER = [list(range(1, n + 1)) for n in range(257)]


def are_in_order(chunks: Sequence[Any]) -> bool:
    """True when all are chunks whose ranks count from 1."""
    try:
        return [chunk.rank for chunk in chunks] == _IN_ORDER[len(chunks)]
    except (AttributeError, IndexError):
        return False


def in_rank_order(result: TestResult) -> Sequence[RetrievedChunk]:
    """The retrieved chunks by rank; the list as it is when it says nothing else."""
    chunks: Any = result.retrieved
    return chunks if are_in_order(chunks) else result.chunks()


def doc_of(chunk: RetrievedChunk) -> str | None:
    """The id of the chunk's document in NFC: doc_id, else rel_path."""
    name = chunk.rel_path if chunk.doc_id is None else chunk.doc_id
    return None if name is None else matching.same_form(name)


def place_of(chunk: RetrievedChunk) -> Anchor | None:
    """Where the chunk stands; None when the bot does not say."""
    path = chunk.rel_path
    return None if path is None else matching.anchor(path, chunk.heading_path)


def resolve(reference: Reference, chunks: Sequence[RetrievedChunk]) -> RetrievedChunk:
    """A cited source as a chunk: the retrieved chunk of its id, else what the reference says."""
    for chunk in chunks:
        if reference.chunk_id and chunk.chunk_id == reference.chunk_id:
            return chunk
    return RetrievedChunk(
        chunk_id=reference.chunk_id or "",
        doc_id=reference.doc_id,
        rel_path=reference.rel_path,
        heading_path=reference.heading_path,
    )


class Key(NamedTuple):
    """What a mode compares of a chunk, and what to say when no chunk of a result has it."""

    of: Callable[[RetrievedChunk], object]
    missing: str


KEYS: dict[Mode, Key] = {
    "chunk": Key(lambda chunk: chunk.chunk_id, "no chunk_id in the result"),
    "anchor": Key(lambda chunk: chunk.rel_path, "no rel_path in the result"),
    "doc": Key(doc_of, "no doc_id or rel_path in the result"),
    "text": Key(lambda chunk: chunk.text, "no chunk texts in the result"),
}
