"""Answers from retrieved chunks with their own sentences, each with the number of its source.

In: a question and retrieved chunks. Out: an answer such as ``The body runs first. [1]`` with its
references, or an abstention with its reason. Nothing is generated, so nothing is made up; what the
sentences miss or answer beside the point is the honest weakness of this bot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import fsum
from typing import TYPE_CHECKING

from demo.chunker import NoteChunk
from demo.index import terms
from demo.retriever import Hit, coverage, question_terms, relevance

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

ABSTENTION = "I cannot answer this from the documents that I have."

SOURCES = 5  # chunks, from the best on, whose sentences may enter an answer
THRESHOLD = 0.35  # confidence below which the bot does not answer
MOST_SENTENCES = 3
LEAST_GAIN = 0.1  # share of the question that a further sentence must add
RANK_DISCOUNT = 0.1  # of a sentence, for each rank of its chunk: the retriever's order counts too
HEADING_SHARE = 0.5  # weight of a term that only the heading has: the text may be about another
LONGEST_BLOCK = 12  # lines of code that are quoted; a longer block is left out rather than cut


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """``references`` are the cited chunks, [1] first. ``confidence`` lies in [0, 1].

    ``abstain_reason`` is None for an answer, else ``no_results`` (nothing was retrieved) or
    ``no_relevant_context`` (confidence below the threshold).
    """

    text: str
    references: tuple[NoteChunk, ...]
    confidence: float
    abstain_reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    sentence: ChunkSentence
    hit: Hit
    position: int
    shares: dict[str, float]
    """For each term of the question: 1 in the sentence, ``HEADING_SHARE`` in the heading only."""


def extract_answer(
    question: str,
    hits: Sequence[Hit],
    carried: Mapping[str, float],
    rarity: Callable[[str], float],
    vector_weight: float,
) -> DemoAnswer:
    """The best sentences of the first ``SOURCES`` hits; the same input, the same answer.

    ``carried`` weighs terms of ``question`` that an earlier one brought; others count 1.
    ``rarity`` weighs a term; ``vector_weight`` in [0, 1] is the retriever's.
    """
    if not hits:
        return DemoAnswer(ABSTENTION, (), 0.0, "no_results")
    weights = {term: rarity(term) * carried.get(term, 1.0) for term in question_terms(question)}
    chosen = _choose(weights, hits[:SOURCES])
    covered = {term for candidate in chosen for term in candidate.shares}
    cosine = max((candidate.hit.score_vector or 0.0 for candidate in chosen), default=0.0)
    share = coverage(weights, covered, weights.__getitem__)
    confidence = round(relevance(share, cosine, vector_weight), 4)
    if not chosen or confidence < THRESHOLD:
        return DemoAnswer(ABSTENTION, (), confidence, "no_relevant_context")
    return _compose(chosen, confidence)


def _choose(weights: Mapping[str, float], hits: Sequence[Hit]) -> list[_Candidate]:
    """Greedy cover: always the sentence that adds most, as long as it adds enough.

    ``weights`` holds the question's terms, each with what it counts.
    """
    left: list[_Candidate] = []
    for hit in hits:
        heading = set(terms(hit.chunk.heading_path))
        for position, (sentence, words) in enumerate(_read(hit.chunk.text)):
            shares = {term: HEADING_SHARE for term in weights if term in heading}
            shares |= {term: 1.0 for term in weights if term in words}
            left.append(_Candidate(sentence, hit, position, shares))
    total = fsum(weights.values()) or 1.0
    covered = dict.fromkeys(weights, 0.0)

    def gain(candidate: _Candidate) -> float:
        added = (weights[t] * max(0.0, share - covered[t]) for t, share in candidate.shares.items())
        return fsum(added) / total * (1 - RANK_DISCOUNT * (candidate.hit.rank - 1))

    chosen: list[_Candidate] = []
    while left and len(chosen) < MOST_SENTENCES:
        best = max(left, key=gain)  # the first of equals: better chunk, earlier sentence
        if chosen and gain(best) < LEAST_GAIN:
            break
        left.remove(best)
        chosen.append(best)
        for term, share in best.shares.items():
            covered[term] = max(covered[term], share)
    return chosen


def _compose(chosen: Sequence[_Candidate], confidence: float) -> DemoAnswer:
    """The sentences in reading order of the ranked chunks, references numbered as they appear."""
    ordered = sorted(chosen, key=lambda candidate: (candidate.hit.rank, candidate.position))
    references = list(dict.fromkeys(candidate.hit.chunk for candidate in ordered))
    text = ""
    for candidate in ordered:
        mark = references.index(candidate.hit.chunk) + 1
        block = f"\n\n{candidate.sentence.block}\n" if candidate.sentence.block else " "
        text += f"{candidate.sentence.text} [{mark}]{block}"
    return DemoAnswer(text.rstrip(), tuple(references), confidence)


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[tuple[ChunkSentence, frozenset[str]], ...]:
    """The sentences of a chunk, each with its terms."""
    return tuple((sentence, frozenset(terms(sentence.text))) for sentence in sentences(text))


_TABLE_ROW = re.compile(r"^ *\|.*", re.MULTILINE)
_BOLD_SENTENCES = re.compile(r"\*\*(?=[^\s*])([^*]+[.!?])\*\*")  # the marks would end up apart


@dataclass(frozen=True, slots=True)
class ChunkSentence:
    """``text`` on one line; ``block`` is the fenced code right below it, "" if there is none."""

    text: str
    block: str = ""


def sentences(markdown: str) -> list[ChunkSentence]:
    """The sentences of ``markdown``; no code, tables, headings, rules or link targets.

    A code block belongs to the last sentence of the paragraph before it if that one ends with a
    colon and the block is short.
    """
    from sentencex import segment

    result: list[ChunkSentence] = []
    in_heading = False
    for token in _parser().parse(markdown):
        if token.type == "fence":
            block = f"{token.markup}{token.info}\n{token.content}{token.markup}"
            announced = result and result[-1].text.endswith(":") and not result[-1].block
            if announced and token.content.count("\n") <= LONGEST_BLOCK:
                result[-1] = ChunkSentence(result[-1].text, block)
        elif token.type == "inline" and not in_heading:
            prose = " ".join(_TABLE_ROW.sub("", token.content).split())
            # English rules serve other languages too: they know the sentence marks of all scripts.
            for part in segment("en", _BOLD_SENTENCES.sub(r"\1", prose)):
                if any(map(str.isalpha, part)):
                    result.append(ChunkSentence(part.strip()))
        in_heading = token.type == "heading_open"
    return result


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["inline", "code"])  # prose may be indented
