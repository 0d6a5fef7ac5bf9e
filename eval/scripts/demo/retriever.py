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
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]


DIGITS = 6
"""Scores are rounded before they are compared, so the order is the one that readers can check."""

SHOWN = 30
"""Names that a message lists at most."""


class UnknownFilter(ValueError):
    """A filter names a value that the index lacks. ``field`` is ``vaults`` or ``folders``."""

    def __init__(self, field: str, names: Collection[str], present: Collection[str]) -> None:
        self.field = field
        super().__init__(f"unknown: {_listed(names)}; known are: {_listed(present)}")


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
    """One of several searches for a question. ``start`` is a reading of ``time.perf_counter``."""

    query: str
    start: float
    seconds: float
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """``searches`` is empty where the one search of the question brought the ``hits``."""

    hits: tuple[Hit, ...]
    selection: Selection
    searches: tuple[IndexSearch, ...] = ()


@dataclass(frozen=True, slots=True)
class _ChunkScores:
    """The scores of all chunks for one query; ``vector`` is None without vectors."""

    lexical: Scores
    vector: Scores | None
    final: Scores


class Retriever:
    """Searches one index. The weights are >= 0; only their proportion counts.

    Without vectors in the index, or with ``vector_weight`` 0, BM25 alone decides.
    """

    def __init__(
        self, index: Index, *, vector_weight: float = 0.5, lexical_weight: float = 0.5
    ) -> None:
        """Raises ValueError for a negative weight or when no usable weight is above 0."""
        vector_weight = vector_weight if index.vectors else 0.0
        if min(vector_weight, lexical_weight) < 0 or vector_weight + lexical_weight <= 0:
            raise ValueError("weights must be 0 or more, and one that is in use above 0")
        self.index = index
        self.vector_weight = vector_weight / (vector_weight + lexical_weight)
        self.lexical_weight = lexical_weight / (vector_weight + lexical_weight)
        self.vaults = frozenset(chunk.vault for chunk in index.chunks)
        self.folders = frozenset(
            part for chunk in index.chunks for part in _with_parents(chunk.folder)
        )

    def search(
        self,
        question: str,
        k: int,
        *,
        vaults: Collection[str] = (),
        folders: Collection[str] = (),
        folder_mode: FolderMode = "off",
    ) -> Retrieval:
        """The best ``k`` chunks, best first; fewer when fewer match, none when nothing does.

        ``vaults`` and ``folders`` narrow the search (a folder takes its subfolders along); empty
        means all. Equal scores keep reading order. Raises UnknownFilter, EmbeddingUnavailable.
        """
        allowed = self._allowed(vaults, folders)
        if not terms(question):
            return Retrieval((), Selection((), "the question has no word: nothing was searched"))
        scored = self._score(question)
        order = _order(scored.final, allowed)
        selection, order = self._narrow(folder_mode, question, scored, order)
        return Retrieval(self._hits(order[:k], scored), selection)

    def search_again(
        self,
        question: str,
        rewritten: str,
        carried: Mapping[str, float],
        share: float,
        k: int,
        *,
        vaults: Collection[str] = (),
        folders: Collection[str] = (),
        folder_mode: FolderMode = "off",
    ) -> Retrieval:
        """The best ``k`` chunks of two searches: for the question as it stands and ``rewritten``.

        ``carried`` weighs the terms that only the second one has, > 0; ``share`` in [0, 1] is what
        the second search counts in the scores, the first counts the rest. Otherwise as ``search``.
        """
        allowed = self._allowed(vaults, folders)
        scored: list[_ChunkScores] = []
        searches: list[IndexSearch] = []
        for query, extra in ((question, {}), (rewritten, carried)):
            start = time.perf_counter()
            scored.append(self._score(query, extra))
            hits = self._hits(_order(scored[-1].final, allowed)[:k], scored[-1])
            searches.append(IndexSearch(query, start, time.perf_counter() - start, hits))
        both = _mixed(scored[0], scored[1], share)
        order = _order(both.final, allowed)
        selection, order = self._narrow(folder_mode, rewritten, both, order)
        return Retrieval(self._hits(order[:k], both), selection, tuple(searches))

    def _score(self, query: str, carried: Mapping[str, float] | None = None) -> _ChunkScores:
        """How well each chunk fits ``query``, in whose words ``carried`` weighs some terms."""
        lexical = self.index.lexical.scores(query, carried)
        vector = self._vector_scores(query)
        return _ChunkScores(lexical, vector, self._fuse(lexical, vector))

    def _narrow(
        self, mode: FolderMode, question: str, scored: _ChunkScores, order: list[int]
    ) -> tuple[Selection, list[int]]:
        """The folders that are searched, and ``order`` without chunks of others."""
        chunks = self.index.chunks
        selection = _select_folders(
            mode,
            [(chunks[i].folder, float(scored.final[i])) for i in order[:VOTERS]],
            lambda: self._relevance(question, order[0], scored.vector),
        )
        if selection.chosen:
            order = [i for i in order if chunks[i].folder in selection.chosen]
        return selection, order

    def _hits(self, order: Sequence[int], scored: _ChunkScores) -> tuple[Hit, ...]:
        return tuple(
            Hit(
                chunk=self.index.chunks[i],
                score_vector=None
                if scored.vector is None
                else round(float(scored.vector[i]), DIGITS),
                score_lexical=round(float(scored.lexical[i]), DIGITS),
                score_final=float(scored.final[i]),
                rank=rank,
            )
            for rank, i in enumerate(order, start=1)
        )

    def _relevance(self, question: str, best: int, vector: Scores | None) -> float:
        """How well the best chunk fits the question, in [0, 1]."""
        words_of_chunk = frozenset(terms(indexed_text(self.index.chunks[best])))
        covered = coverage(question_terms(question), words_of_chunk, self.index.lexical.rarity)
        cosine = None if vector is None else float(vector[best])
        return relevance(covered, cosine, self.vector_weight)

    def _allowed(self, vaults: Collection[str], folders: Collection[str]) -> NDArray[np.bool_]:
        import numpy as np

        for field, names, present in (
            ("vaults", vaults, self.vaults),
            ("folders", folders, self.folders),
        ):
            if unknown := set(names) - present:
                raise UnknownFilter(field, unknown, present)
        if not vaults and not folders:
            return np.ones(len(self.index.chunks), dtype=np.bool_)
        selected = frozenset(folders)
        return np.array(
            [
                (not vaults or chunk.vault in vaults)
                and (not selected or not selected.isdisjoint(_with_parents(chunk.folder)))
                for chunk in self.index.chunks
            ],
            dtype=np.bool_,
        )

    def _vector_scores(self, question: str) -> Scores | None:
        import numpy as np

        if not self.vector_weight or self.index.vectors is None:
            return None
        return self.index.vectors.scores(question).astype(np.float64)

    def _fuse(self, lexical: Scores, vector: Scores | None) -> Scores:
        import numpy as np

        final = self.lexical_weight * lexical / (float(lexical.max()) or 1.0)
        if vector is not None:
            similar = np.maximum(vector, 0.0)
            final = final + self.vector_weight * similar / (float(similar.max()) or 1.0)
        return np.round(final, DIGITS)


def _order(final: Scores, allowed: NDArray[np.bool_]) -> list[int]:
    """The chunks with a score above 0, best first; equal scores keep reading order."""
    import numpy as np

    by_score = np.argsort(-final, kind="stable")
    order: list[int] = by_score[allowed[by_score] & (final[by_score] > 0)].tolist()
    return order


def _mixed(first: _ChunkScores, second: _ChunkScores, share: float) -> _ChunkScores:
    """The mean of two searches' scores, the second counting ``share`` and the first the rest."""
    import numpy as np

    def mean(left: Scores, right: Scores) -> Scores:
        return (1 - share) * left + share * right

    vector = None
    if first.vector is not None and second.vector is not None:
        vector = mean(first.vector, second.vector)
    final = np.round(mean(first.final, second.final), DIGITS)
    return _ChunkScores(mean(first.lexical, second.lexical), vector, final)


def _listed(names: Collection[str]) -> str:
    shown = [repr(name) for name in sorted(names)[:SHOWN]]
    return ", ".join([*shown, f"… {len(names) - SHOWN} more"] if len(names) > SHOWN else shown)


def _with_parents(folder: str) -> list[str]:
    """``a/b`` gives ``["a/b", "a"]``; the top folder gives ``[""]``."""
    parts = folder.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]


FolderMode = Literal["off", "on", "on_with_fallback"]

FOLDER_MODES: tuple[FolderMode, ...] = ("off", "on", "on_with_fallback")

VOTERS = 20
"""How many of the best chunks vote."""

ENOUGH = 0.7
"""Share of the votes at which no further folder is taken."""

MOST_FOLDERS = 3

WEAK_SHARE = 0.3
"""Share of the votes below which the best folder has no clear lead."""

WEAK_RELEVANCE = 0.3
"""Below this relevance the best chunk says little about where to look."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Folders that are searched; an empty ``chosen`` means all of them."""

    chosen: tuple[str, ...]
    reason: str


def _select_folders(
    mode: FolderMode, votes: Sequence[tuple[str, float]], relevance: Callable[[], float]
) -> Selection:
    """Folders by the summed scores of their chunks.

    ``votes`` holds (folder, score >= 0) of the best chunks, best first; ``relevance()`` in [0, 1]
    tells how well the first of them fits the question, and is asked only when it matters. Folders
    are taken from the strongest on until they hold ``ENOUGH`` of all votes, at most
    ``MOST_FOLDERS``; equal ones keep the order of their best chunks. With ``on_with_fallback`` all
    folders are searched when the relevance is below ``WEAK_RELEVANCE`` or the strongest folder
    holds less than ``WEAK_SHARE``.
    """
    if mode == "off":
        return Selection((), "folder selection is off: all folders were searched")
    sums: defaultdict[str, float] = defaultdict(float)
    for folder, score in votes:
        sums[folder] += score
    total = sum(sums.values())
    if total <= 0:
        return Selection((), "no chunk matched: all folders were searched")
    ranked = sorted(sums, key=lambda folder: -sums[folder])
    best_share = sums[ranked[0]] / total
    if mode == "on_with_fallback" and (fit := relevance()) < WEAK_RELEVANCE:
        return Selection(
            (),
            f"fallback to all folders: the best chunk matches the question only with {fit:.2f} "
            f"(least: {WEAK_RELEVANCE:.2f})",
        )
    if mode == "on_with_fallback" and best_share < WEAK_SHARE:
        return Selection(
            (),
            f"fallback to all folders: the best one, {_name(ranked[0])}, has only {best_share:.0%} "
            f"of the scores of the top {len(votes)} chunks",
        )
    chosen: list[str] = []
    held = 0.0
    for folder in ranked[:MOST_FOLDERS]:
        chosen.append(folder)
        held += sums[folder]
        if held >= ENOUGH * total:
            break
    names = ", ".join(_name(folder) for folder in chosen)
    return Selection(
        tuple(chosen),
        f"{names}: {held / total:.0%} of the scores of the top {len(votes)} chunks",
    )


def _name(folder: str) -> str:
    return folder or "(top folder)"


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


def coverage(
    question_words: Collection[str], text_words: Collection[str], rarity: Callable[[str], float]
) -> float:
    """Share of the question's rarity that a text covers, in [0, 1]; 0 for a question without words.

    ``rarity`` weighs a term, > 0.
    """
    total = fsum(rarity(term) for term in question_words)
    if total <= 0:
        return 0.0
    return fsum(rarity(term) for term in question_words if term in text_words) / total


def relevance(coverage: float, cosine: float | None, vector_weight: float) -> float:
    """Weighted mean of coverage and cosine (below 0 counts as 0), in [0, 1].

    ``vector_weight`` in [0, 1] is the retriever's; without a cosine the coverage stands alone.
    """
    if cosine is None:
        return coverage
    return (1 - vector_weight) * coverage + vector_weight * min(1.0, max(0.0, cosine))
