"""verdicts.jsonl of made-up runs, through the writer of the product.

A test says what its judgements hold; how a line stands in the file is known to
``records.verdict_lines`` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from records.verdict_lines import VerdictWriter

_USUAL: Mapping[str, Any] = {
    "parameters": {},
    "input": {},
    "verdicts": [],
    "extra": {},
}
"""What the writer needs of a judgement, where a test says nothing of it; readers have the rest."""


def write_verdicts(path: Path, lines: Iterable[Mapping[str, Any]]) -> bytes:
    """Write judgements over what a verdicts.jsonl held, each as judging makes it. Returns the
    bytes."""
    path.unlink(missing_ok=True)
    add_verdicts(path, lines)
    return path.read_bytes()


def add_verdicts(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Append judgements to a verdicts.jsonl."""
    with VerdictWriter(path) as writer:
        for line in lines:
            writer.write({**_USUAL, **line})
