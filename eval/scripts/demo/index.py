"""The search index of the embedded bot: chunks with their BM25 index and their vectors, kept on
disk.

In: the notes of a vault. Out: an Index that scores every chunk for a question. The kept form lies
in ``<cache_dir>/index/<hash>``; the hash covers each chunk and every setting, so a change of the
vault, the chunk size or the model makes another folder, and a second start finds the first's.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import math
import os
import re
import shutil
import sys
import tempfile
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.embedder import Embedder
from demo.chunker import NoteChunk, chunk_notes
from demo.vault import Note
from records.errors import StorageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float32]


LAYOUT = "1"
"""Version of the folder's files and of the indexed parts of a chunk."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """Rows of all chunks, in chunk order: a long chunk has one for each window of the model."""

    rows: Scores
    first_row: NDArray[np.int64]
    """For each chunk the place of its first row."""
    embedder: Embedder

    def scores(self, question: str) -> Scores:
        """Cosine of the question and each chunk's best window, shape (chunks,), in [-1, 1]."""
        import numpy as np

        cosines = self.rows @ self.embedder.encode([question])[0]
        best: Scores = np.maximum.reduceat(cosines, self.first_row)
        return best


@dataclass(frozen=True, slots=True)
class Index:
    """Chunks in reading order and two ways to score them. ``vectors`` is None without a model."""

    chunks: tuple[NoteChunk, ...]
    lexical: LexicalIndex
    vectors: Vectors | None
    facts: dict[str, Any]
    """How it was made, for a run's configuration."""


def indexed_text(chunk: NoteChunk) -> str:
    """The searched text of a chunk: its headings, which it does not repeat, and its text."""
    return f"{chunk.heading_path}\n{chunk.text}" if chunk.heading_path else chunk.text


def build_index(
    notes: Sequence[Note],
    *,
    chunk_size: int,
    embedder: Embedder | None,
    cache_dir: Path,
    progress: Callable[[int, int], None] | None = None,
) -> Index:
    """The index of ``notes``, from ``cache_dir`` when it was made before.

    ``embedder`` None leaves vectors out; ``progress(done, all)`` counts embedded texts. Where
    ``cache_dir`` cannot be written a warning says so, and the index is made anew at each start.
    Raises StorageError when the notes hold no word, EmbeddingUnavailable when vectors cannot be
    made.
    """
    chunks = tuple(chunk_notes(notes, chunk_size))
    facts = _facts(chunks, len(notes), chunk_size, embedder)
    folder = cache_dir / "index" / facts["index_hash"]
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError):
        return Index(chunks, LexicalIndex.load(folder), _load_vectors(folder, embedder), facts)
    try:
        lexical = LexicalIndex.build([indexed_text(chunk) for chunk in chunks])
    except ValueError:
        raise StorageError(
            "The vault has no text below its headings: name a folder with notes."
        ) from None
    vectors = _embed(chunks, embedder, progress) if embedder else None
    try:
        with _replaced_folder(folder) as target:
            lexical.save(target)
            if vectors:
                _save_vectors(target, vectors)
    except OSError as error:  # a cache must never stop the work
        warnings.warn(f"{folder}: the index cannot be stored ({error.strerror}).", stacklevel=2)
    return Index(chunks, lexical, vectors, facts)


def _facts(
    chunks: Sequence[NoteChunk], notes: int, chunk_size: int, embedder: Embedder | None
) -> dict[str, Any]:
    corpus = hashlib.sha256("\n".join(chunk.chunk_id for chunk in chunks).encode()).hexdigest()
    parameters = {
        "lexical": f"bm25s {importlib.metadata.version('bm25s')} lucene k1={K1} b={B}",
        "tokenizer": TOKENIZER,
        "indexed": f"headings and text, layout {LAYOUT}",
    }
    model = embedder.identity if embedder else ""
    key = "\n".join([corpus, model, *parameters.values()])
    return {
        "vaults": sorted({chunk.vault for chunk in chunks}),
        "notes": notes,
        "chunks": len(chunks),
        "chunker": f"headings, at most {chunk_size} characters",
        "chunk_size": chunk_size,
        "embedding_model": embedder.name if embedder else None,
        "embedding_model_hash": model or None,
        "parameters": parameters,
        "corpus_hash": corpus[:32],
        "index_hash": hashlib.sha256(key.encode()).hexdigest()[:32],
    }


def _embed(
    chunks: Sequence[NoteChunk], embedder: Embedder, progress: Callable[[int, int], None] | None
) -> Vectors:
    import numpy as np

    windows = [embedder.windows(indexed_text(chunk)) for chunk in chunks]
    counts = [len(pieces) for pieces in windows]
    first_row = np.cumsum([0, *counts[:-1]], dtype=np.int64)
    texts = [text for pieces in windows for text in pieces]
    return Vectors(embedder.encode(texts, progress), first_row, embedder)


def _save_vectors(folder: Path, vectors: Vectors) -> None:
    import numpy as np

    np.save(folder / "rows.npy", vectors.rows)
    np.save(folder / "first_row.npy", vectors.first_row)


def _load_vectors(folder: Path, embedder: Embedder | None) -> Vectors | None:
    import numpy as np

    if embedder is None:
        return None
    return Vectors(np.load(folder / "rows.npy"), np.load(folder / "first_row.npy"), embedder)


@contextlib.contextmanager
def _replaced_folder(folder: Path) -> Iterator[Path]:
    """A new folder that takes the name ``folder`` once it is filled; no reader sees half of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        yield scratch
        shutil.rmtree(folder, ignore_errors=True)  # a damaged one
        with contextlib.suppress(OSError):  # another process was first: its folder is as good
            os.rename(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


K1 = 1.5

B = 0.75


class LexicalIndex:
    """Scores and document frequencies. Made by ``build`` or ``load``; never changed after that."""

    def __init__(self, bm25: Any) -> None:
        import numpy as np

        self._bm25 = bm25
        self._size = int(bm25.scores["num_docs"])
        self._frequency: NDArray[np.int64] = np.diff(bm25.scores["indptr"])

    @classmethod
    def build(cls, texts: Sequence[str]) -> LexicalIndex:
        """Index ``texts``, at least one of them with a term; ValueError otherwise."""
        import bm25s

        corpus = [terms(text) for text in texts]
        if not any(corpus):
            raise ValueError("no text holds a word")
        bm25 = bm25s.BM25(k1=K1, b=B, method="lucene")
        bm25.index(corpus, show_progress=False)
        return cls(bm25)

    @classmethod
    def load(cls, folder: Path) -> LexicalIndex:
        """Read an index that ``save`` wrote; raises OSError, ValueError or KeyError when it is not
        whole."""
        import bm25s

        return cls(bm25s.BM25.load(str(folder), load_corpus=False))

    def save(self, folder: Path) -> None:
        """Write into ``folder``, which need not exist."""
        self._bm25.save(str(folder), show_progress=False)

    def scores(
        self, question: str, weights: Mapping[str, float] | None = None
    ) -> NDArray[np.float64]:
        """BM25 of each text, shape (n,), >= 0; 0 where no term is shared.

        A term counts once, however often the question repeats it, and as much as ``weights`` says,
        > 0; 1 where it says nothing.
        """
        import numpy as np

        vocabulary = self._bm25.vocab_dict
        ids_of_weight: defaultdict[float, list[int]] = defaultdict(list)
        for term in dict.fromkeys(terms(question)):
            if term in vocabulary:
                ids_of_weight[(weights or {}).get(term, 1.0)].append(vocabulary[term])
        scores = np.zeros(self._size, dtype=np.float64)
        for weight, term_ids in ids_of_weight.items():
            scores += weight * self._bm25.get_scores(term_ids).astype(np.float64)
        return scores

    def rarity(self, term: str) -> float:
        """Inverse document frequency, ``ln(1 + (N - n + 0.5) / (n + 0.5))`` with n texts that
        contain ``term`` (Robertson and Zaragoza 2009; Lucene's form): > 0, largest for unknown
        terms.
        """
        term_id = self._bm25.vocab_dict.get(term)
        n = 0 if term_id is None else int(self._frequency[term_id])
        return math.log(1 + (self._size - n + 0.5) / (n + 0.5))


TOKENIZER = "unicode-words-1"
"""Name of these rules; it enters the key of a cached index, so change it with them."""

_UNSPACED = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "]+"
)
"""Runs in scripts that put no space between words."""


def terms(text: str) -> list[str]:
    """Terms of ``text`` in order, repeats kept; [] when there is no letter or digit.

    Text is brought to one form (NFKC, casefold). A term is a run of letters, digits, marks and
    inner underscores; a name such as ``set_name`` also gives its parts. Scripts without spaces
    between words give pairs of neighbouring characters (a run of one gives that one).
    """
    result: list[str] = []
    for run in _words().findall(unicodedata.normalize("NFKC", text).casefold()):
        word = run.strip("_")
        if not word:
            continue
        if word.isascii():
            result.append(word)
            if "_" in word:
                result += [part for part in word.split("_") if part]
        else:
            result += _unspaced(word)
    return result


def _unspaced(word: str) -> list[str]:
    """``word`` with its runs of unspaced script as pairs of characters."""
    result: list[str] = []
    at = 0
    for match in _UNSPACED.finditer(word):
        result += [word[at : match.start()]] if match.start() > at else []
        run = match[0]
        result += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        at = match.end()
    return result + ([word[at:]] if at < len(word) else [])


@cache
def _words() -> re.Pattern[str]:
    """``\\w`` lacks combining marks, without which Indic words fall apart: add them."""
    marks = [
        char
        for char in map(chr, range(min(sys.maxunicode, 0xFFFF)))
        if unicodedata.category(char) in ("Mn", "Mc")
    ]
    return re.compile(rf"[\w{''.join(marks)}]+")
