"""The settings of the embedded bot, which ``--set KEY=VALUE`` changes, and their defaults."""

from __future__ import annotations

from records.settings import KeyRule

SETTINGS = {
    "lexical_only": KeyRule("yes", "Use BM25 only, without embeddings; no model is loaded."),
    "vector_weight": KeyRule("number", "Share of the embeddings; BM25 has the rest.", 0, 1),
    "chunk_size": KeyRule("whole", "Most characters of a chunk.", 100, 100_000),
    "vault": KeyRule("text", "Folder of documents to serve."),
    "cache_dir": KeyRule("text", "Folder of the embeddings."),
}

USUAL = {"lexical_only": False, "vector_weight": 0.5, "chunk_size": 1200}
