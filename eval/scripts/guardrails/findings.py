"""What the leakage detectors report: a masked value and where it stands."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing found in an output: `text[start:end]`, never stored in the clear.

    `weight` 0-1 is how sure the detector is that this is what `kind` says. `origin` is "context"
    when the value also stands in a retrieved context (it was leaked from there), "not in context"
    when it does not, and "unknown" when no context was given.
    """

    kind: str
    category: str
    start: int
    end: int
    weight: float
    masked: str
    origin: str = "unknown"


def mask(value: str) -> str:
    """A value made safe to store: its two first and last characters, length and hash prefix."""
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    shown = f"{value[:2]}…{value[-2:]}" if len(value) >= 8 else "…"
    return f"{shown} ({len(value)} characters, sha256 {digest})"
