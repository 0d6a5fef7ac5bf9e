"""JSON that is nested without end: parsers take about 1,000 levels, writers and walkers fewer."""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 100
"""Levels of lists and objects in an answer. No bot needs them."""


def too_deep(text: bytes, value: Any, limit: int = MAX_DEPTH) -> bool:
    """True when lists and objects of ``value``, parsed from ``text``, nest deeper than ``limit``.

    Counting brackets first costs nothing; walking over every answer would.
    """
    return text.count(b"{") + text.count(b"[") > limit and _deeper(value, limit)


def _deeper(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [
            item
            for box in level
            if isinstance(box, (dict, list))
            for item in (box.values() if isinstance(box, dict) else box)
        ]
    return bool(level)
