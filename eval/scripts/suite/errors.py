"""Why a perspective has no numbers."""

from __future__ import annotations

from storage import StorageError


class CannotRun(StorageError):
    """A perspective lacks what it needs (labels, a model); the message holds the remedy."""
