"""Why a perspective has no numbers."""

from __future__ import annotations

from records.errors import StorageError


class CannotRun(StorageError):
    """A perspective lacks what it needs (labels, a model); the message holds the remedy."""
