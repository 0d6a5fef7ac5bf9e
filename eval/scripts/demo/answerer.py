"""Answers from retrieved chunks with their own sentences, each with the number of its source.

In: a question and retrieved chunks. Out: an answer such as ``The body runs first. [1]`` with its
references, or an abstention with its reason. Nothing is generated, so nothing is made up; what the
sentences miss or answer beside the point is the honest weakness of this bot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum

from demo.chunker import FENCE, NoteChunk
from demo.index import terms
from demo.retriever import Hit, coverage, question_terms, relevance

ABSTENTION = "I cannot answer this from the documents that I have."

NO_RESULTS = "no_results"

NO_RELEVANT_CONTEXT = "no_relevant_context"

SOURCES = 5
"""Chunks, from the best on, whose sentences may enter an answer."""

MOST_SENTENCES = 3

LEAST_GAIN = 0.1
"""Share of the question that a further sentence must add."""

RANK_DISCOUNT = 0.1
"""The discount of a sentence for each rank of its chunk: the retriever's order counts too."""

HEADING_SHARE = 0.5
"""The weight of a term that only the heading contains: the sentence may be about something else."""


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

    @property
    def abstained(self) -> bool:
        return self.abstain_reason is not None


@dataclass(frozen=True, slots=True)
class _Candidate:
    sentence: ChunkSentence
    hit: Hit
    position: int
    covered: dict[str, float]
    """For each term of the question: 1 in the sentence, ``HEADING_SHARE`` in the heading only."""


class Answerer:
    """Extracts answers. ``rarity`` weighs a term; ``vector_weight`` in [0, 1] is the retriever's.

    ``threshold`` in [0, 1]: below this confidence it abstains; with 0 it needs just a sentence.
    """

    def __init__(
        self, rarity: Callable[[str], float], *, vector_weight: float, threshold: float
    ) -> None:
        self._rarity = rarity
        self._vector_weight = vector_weight
        self.threshold = threshold

    def answer(
        self, question: str, hits: Sequence[Hit], carried: Mapping[str, float] | None = None
    ) -> DemoAnswer:
        """The best sentences of the first ``SOURCES`` hits; the same input, the same answer.

        ``carried`` weighs terms of ``question`` that an earlier one brought; others count 1.
        """
        if not hits:
            return DemoAnswer(ABSTENTION, (), 0.0, NO_RESULTS)
        question_words = question_terms(question)
        weights = {
            term: self._rarity(term) * (carried or {}).get(term, 1.0) for term in question_words
        }
        chosen = self._choose(weights, hits[:SOURCES])
        confidence = self._confidence(weights, chosen)
        if not chosen or confidence < self.threshold:
            return DemoAnswer(ABSTENTION, (), confidence, NO_RELEVANT_CONTEXT)
        return _compose(chosen, confidence)

    def _choose(self, weights: Mapping[str, float], hits: Sequence[Hit]) -> list[_Candidate]:
        """Greedy cover: always the sentence that adds most, as long as it adds enough.

        ``weights`` holds the question's terms, each with what it counts.
        """
        question_words = frozenset(weights)
        total = fsum(weights.values()) or 1.0
        left = [
            _Candidate(sentence, hit, position, _covered(question_words, words, hit.chunk))
            for hit in hits
            for position, (sentence, words) in enumerate(_read(hit.chunk.text))
        ]
        chosen: list[_Candidate] = []
        covered = dict.fromkeys(question_words, 0.0)
        while left and len(chosen) < MOST_SENTENCES:

            def gain(candidate: _Candidate, covered: dict[str, float] = covered) -> float:
                added = fsum(
                    weights[term] * max(0.0, share - covered[term])
                    for term, share in candidate.covered.items()
                )
                return added / total * (1 - RANK_DISCOUNT * (candidate.hit.rank - 1))

            best = max(left, key=gain)  # the first of equals: better chunk, earlier sentence
            if chosen and gain(best) < LEAST_GAIN:
                break
            left.remove(best)
            chosen.append(best)
            for term, share in best.covered.items():
                covered[term] = max(covered[term], share)
        return chosen

    def _confidence(self, weights: Mapping[str, float], chosen: Sequence[_Candidate]) -> float:
        """Relevance of the answer's sentences with their headings, and of their nearest chunk."""
        covered = {term for candidate in chosen for term in candidate.covered}
        cosines = [c.hit.score_vector for c in chosen if c.hit.score_vector is not None]
        best = max(cosines) if cosines else None
        return round(
            relevance(coverage(weights, covered, weights.__getitem__), best, self._vector_weight), 4
        )


def _covered(
    question_words: frozenset[str], words: frozenset[str], chunk: NoteChunk
) -> dict[str, float]:
    in_heading = question_words.intersection(terms(chunk.heading_path))
    covered = dict.fromkeys(sorted(in_heading), HEADING_SHARE)
    covered.update(dict.fromkeys(sorted(question_words & words), 1.0))
    return covered


def _compose(chosen: Sequence[_Candidate], confidence: float) -> DemoAnswer:
    """The sentences in reading order of the ranked chunks, references numbered as they appear."""
    ordered = sorted(chosen, key=lambda candidate: (candidate.hit.rank, candidate.position))
    references: list[NoteChunk] = []
    lines: list[str] = []
    for candidate in ordered:
        if candidate.hit.chunk not in references:
            references.append(candidate.hit.chunk)
        mark = references.index(candidate.hit.chunk) + 1
        block = f"\n\n{candidate.sentence.block}\n" if candidate.sentence.block else ""
        lines.append(f"{candidate.sentence.text} [{mark}]{block}")
    text = "".join(line if line.endswith("\n") else f"{line} " for line in lines).rstrip()
    return DemoAnswer(text, tuple(references), confidence)


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[tuple[ChunkSentence, frozenset[str]], ...]:
    """The sentences of a chunk, each with its terms."""
    return tuple((sentence, frozenset(terms(sentence.text))) for sentence in sentences(text))


_LIST_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")

_QUOTE = re.compile(r"^\s*(?:> ?)+")

_NOT_PROSE = re.compile(r"\s*(?:\||#{1,6} |<!--|[-=*_]{3,}\s*$|\[[^\]]+\]: )")

_BOLD_SENTENCES = re.compile(r"\*\*(?=[^\s*])([^*]+[.!?])\*\*")  # the marks would end up apart

_SPACE = re.compile(r"\s+")

_LETTER = re.compile(r"[^\W\d_]")

LONGEST_BLOCK = 12
"""Lines of code that are quoted; a longer block is left out rather than cut."""


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
    for kind, block in _blocks(markdown):
        if kind == "code":
            announced = result and result[-1].text.endswith(":") and not result[-1].block
            if announced and block.count("\n") <= LONGEST_BLOCK + 1:
                result[-1] = ChunkSentence(result[-1].text, block)
            continue
        # English rules serve other languages too: they know the sentence marks of all scripts.
        for part in segment("en", _BOLD_SENTENCES.sub(r"\1", block)):
            if _LETTER.search(part):
                result.append(ChunkSentence(part.strip()))
    return result


def _blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """("prose", one line) for paragraphs and list items, ("code", lines) for fenced blocks."""
    prose: list[str] = []
    code: list[str] = []
    fence = ""
    for line in [*markdown.split("\n"), ""]:
        if fence:
            code.append(line)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                yield "code", "\n".join(code)
                code, fence = [], ""
            continue
        opening = FENCE.match(line)
        starts_anew = not line.strip() or opening or _NOT_PROSE.match(line)
        if prose and (starts_anew or _LIST_ITEM.match(line)):
            yield "prose", _SPACE.sub(" ", " ".join(prose)).strip()
            prose = []
        if opening:
            code, fence = [line], opening[1]
        elif not starts_anew:
            prose.append(_QUOTE.sub("", _LIST_ITEM.sub("", line, count=1)))
