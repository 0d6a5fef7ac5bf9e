"""Shared parts of the formats: rows read, places of passages, spans, what goes out."""
