"""The search index of the embedded bot: chunks with their BM25 index and their vectors.

In: the notes of a vault. Out: an Index that scores every chunk for a question.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from clients.embedder import Embedder
from demo.chunker import NoteChunk, chunk_notes
from documents.sections import Note
from records.errors import StorageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]

K1, B = 1.5, 0.75


@dataclass(frozen=True, slots=True)
class Index:
    """Chunks in reading order and two ways to score them. ``vectors`` is None without a model."""

    chunks: Sequence[NoteChunk]
    lexical: LexicalIndex
    vectors: VectorIndex | None
    facts: dict[str, Any]
    """How it was made, for a run's configuration."""


def indexed_text(chunk: NoteChunk) -> str:
    """The searched text of a chunk: its headings, which it does not repeat, and its text."""
    return f"{chunk.heading_path}\n{chunk.text}" if chunk.heading_path else chunk.text


def build_index(
    notes: Sequence[Note],
    chunk_size: int,
    embedder: Embedder | None = None,
) -> Index:
    """The index of ``notes``; ``embedder`` None leaves vectors out.

    Raises StorageError when the notes hold no word,
    EmbeddingUnavailable when vectors cannot be made.
    """
    chunks = chunk_notes(notes, chunk_size)
    texts = [indexed_text(chunk) for chunk in chunks]
    lexical = LexicalIndex(texts)
    vectors = VectorIndex(texts, embedder) if embedder else None
    corpus = hashlib.sha256("\n".join(chunk.chunk_id for chunk in chunks).encode()).hexdigest()
    parameters = {
        "lexical": f"bm25s {importlib.metadata.version('bm25s')} lucene k1={K1} b={B}",
        "tokenizer": TOKENIZER,
        "indexed": "headings and text, layout 1",
    }
    model = embedder.identity if embedder else ""
    key = "\n".join([corpus, model, *parameters.values()])
    facts = {
        "vaults": sorted({chunk.vault for chunk in chunks}),
        "notes": len(notes),
        "chunks": len(chunks),
        "chunker": f"headings, at most {chunk_size} characters",
        "chunk_size": chunk_size,
        "embedding_model": embedder.name if embedder else None,
        "embedding_model_hash": model or None,
        "parameters": parameters,
        "corpus_hash": corpus[:32],
        "index_hash": hashlib.sha256(key.encode()).hexdigest()[:32],
    }
    return Index(chunks, lexical, vectors, facts)


class VectorIndex:
    """Vectors of texts: a long one has a vector for each window of the model."""

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        import numpy as np

        windows = [embedder.windows(text) for text in texts]
        self._first_row = np.cumsum([0, *map(len, windows[:-1])])
        self._rows = embedder.encode([piece for pieces in windows for piece in pieces])
        self._embedder = embedder

    def scores(self, question: str) -> Scores:
        """Cosine of the question and each text's best window, shape (n,), in [-1, 1]."""
        import numpy as np

        cosines = self._rows @ self._embedder.encode([question])[0]
        return np.maximum.reduceat(cosines, self._first_row).astype(np.float64)


class LexicalIndex:
    """BM25 scores of texts, and how rare a term is in them."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Raises StorageError when no text holds a word."""
        import bm25s
        import numpy as np

        corpus = [terms(text) for text in texts]
        if not any(corpus):
            raise StorageError(
                "The vault has no text below its headings: name a folder with notes."
            )
        self._bm25 = bm25s.BM25(k1=K1, b=B, method="lucene")
        self._bm25.index(corpus, show_progress=False)
        self._size = len(texts)
        self._frequency: NDArray[np.int64] = np.diff(self._bm25.scores["indptr"])

    def scores(self, question: str, weights: Mapping[str, float]) -> Scores:
        """BM25 of each text, shape (n,), >= 0; 0 where no term is shared.

        A term counts once, however often the question repeats it, and as much as ``weights`` says,
        > 0; 1 where it says nothing.
        """
        import numpy as np

        ids = self._bm25.vocab_dict
        weight_of = {
            ids[t]: weights.get(t, 1.0) for t in dict.fromkeys(terms(question)) if t in ids
        }
        scores = np.zeros(self._size)
        for weight in dict.fromkeys(weight_of.values()):
            equal = [term_id for term_id, own in weight_of.items() if own == weight]
            scores += weight * self._bm25.get_scores(equal).astype(np.float64)
        return scores

    def rarity(self, term: str) -> float:
        """Inverse document frequency of a term, > 0 and largest for unknown terms.

        It is ``ln(1 + (N - n + 0.5) / (n + 0.5))`` with n texts that contain ``term`` (Robertson
        and Zaragoza 2009; Lucene's form).
        """
        term_id = self._bm25.vocab_dict.get(term)
        n = 0 if term_id is None else int(self._frequency[term_id])
        return math.log(1 + (self._size - n + 0.5) / (n + 0.5))


TOKENIZER = "unicode-words-1"
"""Name of these rules in a run's configuration; it changes with them."""

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Scripts that put no space between words."""

_RUNS = re.compile(f"([{_UNSPACED}]+)|([^{_UNSPACED}]+)")


def terms(text: str) -> list[str]:
    """Terms of ``text`` in order, repeats kept; [] when there is no letter or digit.

    Text is brought to one form (NFKC, casefold). A term is a run of letters, digits, marks and
    inner underscores; a name such as ``set_name`` also gives its parts. Scripts without spaces
    between words give pairs of neighbouring characters (a run of one gives that one).
    """
    result: list[str] = []
    for match in _words().findall(unicodedata.normalize("NFKC", text).casefold()):
        word = match.strip("_")
        if not word.isascii():
            for unspaced, other in _RUNS.findall(word):
                pairs = [unspaced[i : i + 2] for i in range(len(unspaced) - 1)]
                result += pairs or [unspaced or other]
        elif word:
            result += [word, *filter(None, word.split("_"))] if "_" in word else [word]
    return result


@cache
def _words() -> re.Pattern[str]:
    """``\\w`` lacks combining marks, without which Indic words fall apart: add them."""
    marks = "".join(c for c in map(chr, range(0x10000)) if unicodedata.category(c) in ("Mn", "Mc"))
    return re.compile(rf"[\w{marks}]+")
