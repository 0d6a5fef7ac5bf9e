"""Labels outlive another size of chunks: the same text in coarser pieces is found as well."""

from __future__ import annotations

from functools import cache
from itertools import takewhile
from statistics import mean
from typing import NamedTuple

from tests.rows import each_row

from demo.chunker import chunk_notes
from demo.index import LexicalIndex
from demo.vault import python_reference
from ragmetrics import retrieval
from ragmetrics.gold import gold_of
from ragmetrics.matching import Passage, anchor, heading_segments, match_anchors
from ragmetrics.retrieval import ranking
from records.cases import TestCase
from records.labels import read_cases
from records.runs import EVAL_SET

SIZES = (400, 1200, 4000)


class Piece(NamedTuple):
    path: str
    heading: tuple[str, ...]
    text: str
    parts: tuple[int, ...]
    """The finest pieces that it is made of."""


def joined(pieces: list[Piece], size: int) -> list[Piece]:
    """Neighbours of one file put together up to so many characters, under their common heading."""
    out: list[Piece] = []
    for piece in pieces:
        last = out[-1] if out else None
        if last and last.path == piece.path and len(last.text) + 2 + len(piece.text) <= size:
            pairs = zip(last.heading, piece.heading, strict=False)
            common = tuple(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            text = f"{last.text}\n\n{piece.text}"
            out[-1] = Piece(piece.path, common, text, last.parts + piece.parts)
        else:
            out.append(piece)
    return out


@cache
def vault() -> dict[int, list[Piece]]:
    """The embedded vault in pieces of three sizes; each larger one is made of smaller ones."""
    notes = chunk_notes(python_reference(), SIZES[0])
    finest = [
        Piece(chunk.rel_path, heading_segments(chunk.heading_path), chunk.text, (number,))
        for number, chunk in enumerate(notes)
    ]
    sizes = {SIZES[0]: finest}
    for size in SIZES[1:]:
        sizes[size] = joined(list(sizes.values())[-1], size)
    return sizes


def evidence_recall(case: TestCase, pieces: list[Piece], texts: bool) -> float:
    """As the scorer has it, without the other metrics."""
    gold = gold_of(case, "anchor")
    assert gold is not None
    passages = [
        Passage(anchor(piece.path, " > ".join(piece.heading)), piece.text if texts else None)
        for piece in pieces
    ]
    matches = match_anchors(gold.keys, passages, gold.quotes)
    found = ranking(matches, gold.grades, gold.groups)
    return retrieval.evidence_recall(found, len(pieces))


@each_row("texts", [True, False])
def test_the_same_text_in_coarser_chunks_keeps_its_evidence_recall(texts: bool) -> None:
    """Two chunks of 4,000 characters, and the same text in chunks of 1,200 and 400.

    A support without a snippet in the part that was retrieved may be lost: at most 2 %. Without
    texts nothing tells, and coarse chunks then find much less.
    """
    coarse = vault()[SIZES[-1]]
    index = LexicalIndex([piece.text for piece in coarse])
    found: dict[int, list[float]] = {size: [] for size in SIZES}
    alone = (case for case in read_cases(EVAL_SET) if case.conversation is None)
    cases = [case for case in alone if case.gold_supports]
    for case in cases:
        best = index.scores(case.question, {}).argsort(kind="stable")[::-1][:2]
        parts = {part for number in best for part in coarse[number].parts}
        for size, pieces in vault().items():
            listed = [piece for piece in pieces if parts.issuperset(piece.parts)]
            found[size].append(evidence_recall(case, listed, texts))
    assert len(cases) == 75
    means = [mean(values) for values in found.values()]
    assert means[0] > 0.5
    if texts:
        assert max(means) - min(means) <= 0.02
    else:
        assert means[0] - means[2] > 0.1
