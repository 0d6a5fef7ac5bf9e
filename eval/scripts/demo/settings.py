"""The settings of the embedded bot, which ``--set KEY=VALUE`` changes, and their defaults."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from records.settings import KeyRule, from_pairs

SETTINGS = {
    "vector_weight": KeyRule("number", "Weight of the embeddings' score.", 0, 1e9),
    "lexical_weight": KeyRule("number", "Weight of BM25.", 0, 1e9),
    "lexical_only": KeyRule("yes", "Use BM25 only, without embeddings; no model is loaded."),
    "chunk_size": KeyRule("whole", "Largest size of a chunk in characters.", 100, 100_000),
    "embedding_model": KeyRule("text", "sentence-transformers model: a name or a folder."),
    "threads": KeyRule("whole", "Threads of the embedding model.", 1, 1024),
    "abstain_threshold": KeyRule("number", "Confidence below which the bot does not answer.", 0, 1),
    "history_weight": KeyRule("number", "Weight of a term of the last question.", 0, 1),
    "vault": KeyRule("text", "Folder of Markdown to serve."),
    "cache_dir": KeyRule("text", "Folder of the index and the embeddings."),
}

USUAL: dict[str, Any] = {
    "vector_weight": 0.5,
    "lexical_weight": 0.5,
    "lexical_only": False,
    "chunk_size": 1200,
    "embedding_model": None,
    "threads": 1,
    "abstain_threshold": 0.35,
    "history_weight": 0.5,
}


def demo_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Every setting, those of ``pairs`` in place of the usual. Raises StorageError."""
    chosen = from_pairs(pairs, SETTINGS)
    folders = {name: Path(chosen[name]) for name in ("vault", "cache_dir") if name in chosen}
    return USUAL | chosen | folders
