"""Finds the chunks for a question: BM25 and cosine, fused, filtered, ranked.

Fusion is a weighted mean of the two scores, each brought to [0, 1] for the question at hand: 0 is
"nothing in common" (BM25 0; cosine 0 or below), 1 the largest that a chunk of the index reached.
Such convex fusion, as in Bruch, Gai and Ingber (2023, "An Analysis of Fusion Functions for Hybrid
Retrieval"), keeps the distances between scores, which reciprocal ranks throw away.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Literal

from demo.chunker import NoteChunk
from demo.index import Index, indexed_text, terms

if TYPE_CHECKING:
    from demo.index import Scores

DIGITS = 6  # of scores, before they are compared: the order is the one that readers can check

VOTERS = 20  # chunks, from the best on, that vote for their folders
ENOUGH = 0.7  # share of the votes at which no further folder is taken
MOST_FOLDERS = 3
WEAK_SHARE = 0.3  # share of the votes below which the best folder has no clear lead
WEAK_RELEVANCE = 0.3  # below it the best chunk says little about where to look

LAST_TURNS = 3  # earlier questions that a follow-up takes terms from
HISTORY_WEIGHT = 0.5  # of a term of the last question; of an older one, to the power of its age
LEAST_RARITY = 0.25  # of such a term, as a share of an unknown term's: one passage in six at most

FolderMode = Literal["off", "on", "on_with_fallback"]


class UnknownFilter(ValueError):
    """A filter names a vault or a folder that the index lacks."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved chunk; ``rank`` counts from 1, ``score_vector`` is None without vectors."""

    chunk: NoteChunk
    score_vector: float | None
    score_lexical: float
    score_final: float
    rank: int


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """One of several searches for a question, from ``start`` to ``end`` of ``perf_counter``."""

    query: str
    start: float
    end: float
    hits: Sequence[Hit]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """``folders`` are those that were chosen, with the reason; none means all. ``searches`` is
    empty where the one search of the question brought the ``hits``."""

    hits: Sequence[Hit]
    folders: Sequence[str]
    reason: str
    searches: Sequence[IndexSearch] = ()


class Retriever:
    """Searches one index. ``vector_weight`` in [0, 1] is the share of the vectors in a score, 0 for
    an index without them; ``lexical_weight`` is the rest."""

    def __init__(self, index: Index, vector_weight: float = 0.5) -> None:
        self.index = index
        self.vector_weight = 0.0 if index.vectors is None else vector_weight
        self.lexical_weight = 1.0 - self.vector_weight

    def search(
        self,
        question: str,
        carried: Mapping[str, float],
        k: int,
        folder_mode: FolderMode = "off",
        vaults: Sequence[str] = (),
        folders: Sequence[str] = (),
    ) -> Retrieval:
        """The best ``k`` chunks, best first; fewer when fewer match, none when nothing does.

        ``carried`` weighs terms of earlier questions, > 0: with them a second search is made, and a
        chunk's scores are the means of both. ``vaults`` and ``folders`` narrow the search (a folder
        takes its subfolders along); empty means all. Equal scores keep reading order. Raises
        UnknownFilter, EmbeddingUnavailable.
        """
        import numpy as np

        allowed = self._allowed(vaults, folders)
        whole = " ".join([question, *carried])
        if not terms(whole):
            return Retrieval((), (), "the question has no word: nothing was searched")
        tables: list[Scores] = []
        searches: list[IndexSearch] = []
        for query in dict.fromkeys([question, whole]):
            start = time.perf_counter()
            tables.append(self._scores(query, carried))
            hits = self._hits(_order(tables[-1], allowed)[:k], tables[-1])
            searches.append(IndexSearch(query, start, time.perf_counter(), hits))
        scores: Scores = np.mean(tables, axis=0)
        scores[-1] = np.round(scores[-1], DIGITS)
        order = _order(scores, allowed)
        chunks = self.index.chunks
        chosen, reason = _select_folders(
            folder_mode,
            [(chunks[i].folder, float(scores[-1, i])) for i in order[:VOTERS]],
            lambda: self._relevance(whole, chunks[order[0]], float(scores[1, order[0]])),
        )
        order = [i for i in order if not chosen or chunks[i].folder in chosen]
        hits = self._hits(order[:k], scores)
        return Retrieval(hits, chosen, reason, searches if len(searches) > 1 else ())

    def _scores(self, query: str, carried: Mapping[str, float]) -> Scores:
        """BM25, cosine (0 without vectors) and the fused score of each chunk, shape (3, chunks)."""
        import numpy as np

        lexical = self.index.lexical.scores(query, carried)
        vector = np.zeros_like(lexical)
        if self.index.vectors is not None and self.vector_weight:
            vector = self.index.vectors.scores(query)
        similar = np.maximum(vector, 0.0)
        final = self.lexical_weight * lexical / (float(lexical.max()) or 1.0)
        final = final + self.vector_weight * similar / (float(similar.max()) or 1.0)
        return np.array([lexical, vector, np.round(final, DIGITS)])

    def _hits(self, order: Sequence[int], scores: Scores) -> list[Hit]:
        hits = []
        for rank, i in enumerate(order, start=1):
            lexical, vector, final = (round(score, DIGITS) for score in scores[:, i].tolist())
            cosine = vector if self.vector_weight else None
            hits.append(Hit(self.index.chunks[i], cosine, lexical, final, rank))
        return hits

    def _relevance(self, question: str, best: NoteChunk, cosine: float) -> float:
        """How well the best chunk fits the question, in [0, 1]."""
        words_of_chunk = frozenset(terms(indexed_text(best)))
        covered = coverage(question_terms(question), words_of_chunk, self.index.lexical.rarity)
        return relevance(covered, cosine, self.vector_weight)

    def _allowed(self, vaults: Sequence[str], folders: Sequence[str]) -> set[int]:
        """The chunks that the filters let through."""
        allowed = set(range(len(self.index.chunks)))
        for field, names in (("vault", vaults), ("folder", folders)):
            values = [getattr(chunk, field) for chunk in self.index.chunks]
            inside = {
                name: {i for i, value in enumerate(values) if f"{value}/".startswith(f"{name}/")}
                for name in names
            }
            if unknown := [name for name in names if not inside[name]]:
                raise UnknownFilter(f"no {field} {unknown}; there are {sorted(set(values))[:30]}")
            if names:
                allowed &= set().union(*inside.values())
        return allowed


def _order(scores: Scores, allowed: Collection[int]) -> list[int]:
    """The chunks with a final score above 0, best first; equal scores keep reading order."""
    final = scores[-1].tolist()
    order = (-scores[-1]).argsort(kind="stable").tolist()
    return [i for i in order if final[i] > 0 and i in allowed]


def _select_folders(
    mode: FolderMode, votes: Sequence[tuple[str, float]], relevance: Callable[[], float]
) -> tuple[list[str], str]:
    """Folders by the summed scores of their chunks, and the reason; none of them means all.

    ``votes`` holds (folder, score > 0) of the best chunks, best first; ``relevance()`` in [0, 1]
    tells how well the first of them fits the question. Folders are taken from the strongest on
    until they hold ``ENOUGH`` of all votes, at most ``MOST_FOLDERS``. With ``on_with_fallback`` all
    folders are searched when the relevance or the strongest folder's share is weak.
    """
    if mode == "off":
        return [], "folder selection is off: all folders were searched"
    if not votes:
        return [], "no chunk matched: all folders were searched"
    sums: defaultdict[str, float] = defaultdict(float)
    for folder, score in votes:
        sums[folder] += score
    total = sum(sums.values())
    names = {folder: folder or "(top folder)" for folder in sums}
    ranked = sorted(sums, key=lambda folder: -sums[folder])
    of_votes = f"of the scores of the top {len(votes)} chunks"
    if mode == "on_with_fallback":
        fallback = "fallback to all folders: the best"
        if (fit := relevance()) < WEAK_RELEVANCE:
            least = f"(least: {WEAK_RELEVANCE:.2f})"
            return [], f"{fallback} chunk matches the question only with {fit:.2f} {least}"
        if (share := sums[ranked[0]] / total) < WEAK_SHARE:
            return [], f"{fallback} one, {names[ranked[0]]}, has only {share:.0%} {of_votes}"
    chosen: list[str] = []
    held = 0.0
    for folder in ranked[:MOST_FOLDERS]:
        if held >= ENOUGH * total:
            break
        chosen.append(folder)
        held += sums[folder]
    return chosen, f"{', '.join(names[folder] for folder in chosen)}: {held / total:.0%} {of_votes}"


_FORM = (
    "can could did do does explain give how i me my our please shall should tell us we what when "
    "where which who whom whose why will would you your"
)
QUESTION_WORDS = frozenset(_FORM.split())
"""English words that make a question's form. They are rare in the texts that answer, so rarity
alone would take them for content; other small words (the, with, is) are common everywhere."""


def question_terms(question: str) -> frozenset[str]:
    """The terms of ``question`` that carry its topic; all of its terms if none does."""
    words_of_question = frozenset(terms(question))
    return words_of_question - QUESTION_WORDS or words_of_question


def carried_terms(
    question: str, earlier: Sequence[str], rarity: Callable[[str], float]
) -> dict[str, float]:
    """The terms that a follow-up takes from ``earlier`` questions, oldest first, with weights.

    ``And after a return?`` says nothing to a search by itself. It takes the terms of the last
    ``LAST_TURNS`` questions that it lacks, newest first, with a weight in (0, 1), but no words that
    make a question's form, and none that many passages hold. Answers are not read.
    """
    own = set(terms(question))
    least = LEAST_RARITY * rarity(" ")  # no term has a space: an unknown one
    carried: dict[str, float] = {}
    for age, text in enumerate(reversed(earlier[-LAST_TURNS:]), start=1):
        for term in terms(text):
            if term not in own | QUESTION_WORDS and rarity(term) >= least:
                carried.setdefault(term, HISTORY_WEIGHT**age)
    return carried


def coverage(
    question_words: Collection[str], text_words: Collection[str], rarity: Callable[[str], float]
) -> float:
    """Share of the question's rarity that a text covers, in [0, 1]; 0 for a question without words.

    ``rarity`` weighs a term, > 0.
    """
    total = fsum(rarity(term) for term in question_words)
    return fsum(rarity(term) for term in question_words if term in text_words) / (total or 1.0)


def relevance(coverage: float, cosine: float, vector_weight: float) -> float:
    """Weighted mean of coverage and cosine (below 0 counts as 0), in [0, 1]."""
    return (1 - vector_weight) * coverage + vector_weight * min(1.0, max(0.0, cosine))
