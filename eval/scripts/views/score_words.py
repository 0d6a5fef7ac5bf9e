"""A case's score in a few characters, and two of them in as many as show that they differ."""

from __future__ import annotations

import math


def score(value: float | None) -> str:
    """A score on at most 6 characters; a dash for none."""
    if value is None or math.isnan(value):
        return "-"
    if value == int(value) and abs(value) < 10_000:
        return str(int(value))
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.4g}"


def score_pair(before: float | None, after: float | None, most: int = 6) -> tuple[str, str]:
    """Two scores with as many decimals as show that they differ; the same text when `most` do not.

    Scores are written with six decimals: what differs by less is the same.
    """
    pair = score(before), score(after)
    if before is None or after is None or "-" in pair:
        return pair
    for digits in range(3, most + 1):
        if float(pair[0]) != float(pair[1]):
            return pair
        pair = f"{before:.{digits}f}", f"{after:.{digits}f}"
    return pair if float(pair[0]) != float(pair[1]) else (score(after), score(after))
