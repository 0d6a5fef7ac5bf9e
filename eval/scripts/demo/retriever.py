"""Finds the chunks for a question: BM25 and cosine, fused, filtered, ranked.

Fusion is a weighted mean of the two scores, each brought to [0, 1] for the question at hand: 0 is
"nothing in common" (BM25 0; cosine 0 or below), 1 the largest that a chunk of the index reached.
Such convex fusion, as in Bruch, Gai and Ingber (2023, "An Analysis of Fusion Functions for Hybrid
Retrieval"), keeps the distances between scores, which reciprocal ranks throw away.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demo.chunker import Chunk
from demo.folders import VOTERS, FolderMode, Selection, select_folders
from demo.index import Index, indexed_text
from demo.relevance import coverage, question_terms, relevance
from demo.tokens import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

DIGITS = 6
"""Scores are rounded before they are compared, so the order is the one that readers can check."""
SHOWN = 30
"""Names that a message lists at most."""


class UnknownFilter(ValueError):
    """A filter names what the index does not have. ``field`` is ``vaults`` or ``folders``."""

    def __init__(self, field: str, names: Collection[str], known: Collection[str]) -> None:
        self.field = field
        super().__init__(f"unknown: {_listed(names)}; there are: {_listed(known)}")


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved chunk; ``rank`` counts from 1, ``score_vector`` is None without vectors."""

    chunk: Chunk
    score_vector: float | None
    score_lexical: float
    score_final: float
    rank: int


@dataclass(frozen=True, slots=True)
class Retrieval:
    hits: tuple[Hit, ...]
    selection: Selection


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
        import numpy as np

        allowed = self._allowed(vaults, folders)
        if not terms(question):
            return Retrieval((), Selection((), "the question holds no word: nothing was searched"))
        lexical = self.index.lexical.scores(question).astype(np.float64)
        vector = self._vector_scores(question)
        final = self._fuse(lexical, vector)
        by_score = np.argsort(-final, kind="stable")
        order = by_score[allowed[by_score] & (final[by_score] > 0)].tolist()
        chunks = self.index.chunks
        selection = select_folders(
            folder_mode,
            [(chunks[i].folder, float(final[i])) for i in order[:VOTERS]],
            lambda: self._relevance(question, order[0], vector),
        )
        if selection.chosen:
            order = [i for i in order if chunks[i].folder in selection.chosen]
        hits = [
            Hit(
                chunk=chunks[i],
                score_vector=None if vector is None else round(float(vector[i]), DIGITS),
                score_lexical=round(float(lexical[i]), DIGITS),
                score_final=float(final[i]),
                rank=rank,
            )
            for rank, i in enumerate(order[:k], start=1)
        ]
        return Retrieval(tuple(hits), selection)

    def _relevance(self, question: str, best: int, vector: Scores | None) -> float:
        """How well the best chunk fits the question, in [0, 1]."""
        found = frozenset(terms(indexed_text(self.index.chunks[best])))
        covered = coverage(question_terms(question), found, self.index.lexical.rarity)
        cosine = None if vector is None else float(vector[best])
        return relevance(covered, cosine, self.vector_weight)

    def _allowed(self, vaults: Collection[str], folders: Collection[str]) -> NDArray[np.bool_]:
        import numpy as np

        for field, names, known in (
            ("vaults", vaults, self.vaults),
            ("folders", folders, self.folders),
        ):
            if unknown := set(names) - known:
                raise UnknownFilter(field, unknown, known)
        if not vaults and not folders:
            return np.ones(len(self.index.chunks), dtype=np.bool_)
        wanted = frozenset(folders)
        return np.array(
            [
                (not vaults or chunk.vault in vaults)
                and (not wanted or not wanted.isdisjoint(_with_parents(chunk.folder)))
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


def _listed(names: Collection[str]) -> str:
    shown = [repr(name) for name in sorted(names)[:SHOWN]]
    return ", ".join([*shown, f"… {len(names) - SHOWN} more"] if len(names) > SHOWN else shown)


def _with_parents(folder: str) -> list[str]:
    """``a/b`` gives ``["a/b", "a"]``; the top folder gives ``[""]``."""
    parts = folder.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
