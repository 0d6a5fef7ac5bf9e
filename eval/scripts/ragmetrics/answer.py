"""An answer taken apart once, for every metric that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics import citations, numbercheck
from ragmetrics.casescores import Cited, Passage
from ragmetrics.citations import Citation, Resolver
from ragmetrics.claimfilter import Extraction, extract
from ragmetrics.claims import Chunk, merged, prepare
from ragmetrics.numbercheck import NumberIndex
from ragmetrics.text import clean


@dataclass(frozen=True)
class Answer:
    """An answer taken apart once: its claims, the chunks made ready, its citations."""

    text: str
    extraction: Extraction
    chunks: tuple[Chunk, ...]
    known: NumberIndex
    question: NumberIndex
    cited: tuple[Citation, ...]
    listed: tuple[int | None, ...]


def prepare_answer(
    answer: str,
    chunks: Sequence[Passage],
    question: str = "",
    references: Sequence[Cited] = (),
    first_index: int = 1,
) -> Answer:
    """Take an answer apart.

    ``first_index``: the number of the first chunk in the bot's own marks.
    """
    text = clean(answer)
    extraction = extract(text)
    ready = tuple(prepare(chunk.text or "") for chunk in chunks)
    resolver = Resolver(chunks, references, first_index)
    return Answer(
        text,
        extraction,
        ready,
        merged(ready),
        numbercheck.index(question),
        tuple(citations.attach(text, extraction.claims, resolver)),
        tuple(resolver.reference(reference) for reference in references),
    )
