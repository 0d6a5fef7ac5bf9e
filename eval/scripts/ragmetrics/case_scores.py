"""The scores of one case by a family of metrics, and the parts of a result that these read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

NO_CONTEXTS = "no contexts"

NO_QUESTION = "the question cannot be read alone; write question_alone"

_NO_TEXTS = "no chunk texts"

_TRUNCATED = "text was truncated"

LANGUAGE = "language"
"""The phrase lists do not cover the answer's language, or the contexts are in another one."""


class RetrievedText(Protocol):
    """A retrieved chunk; ``text`` is None when the bot sends none."""

    @property
    def chunk_id(self) -> str: ...
    @property
    def doc_id(self) -> str | None: ...
    @property
    def rel_path(self) -> str | None: ...
    @property
    def text(self) -> str | None: ...
    @property
    def truncated(self) -> bool: ...


class Cited(Protocol):
    """A source that the bot lists with its answer; ``index`` is the n of its ``[n]`` mark."""

    @property
    def index(self) -> int | None: ...
    @property
    def chunk_id(self) -> str | None: ...
    @property
    def doc_id(self) -> str | None: ...
    @property
    def rel_path(self) -> str | None: ...


@dataclass(frozen=True)
class CaseScores:
    """Scores of one case by metric: a float, or None with a reason. Evidence is plain JSON data."""

    values: Mapping[str, float | None]
    reasons: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)


def not_applicable(names: Sequence[str], reason: str) -> CaseScores:
    """Give none of the metrics a score, all for one reason."""
    return CaseScores(dict.fromkeys(names), dict.fromkeys(names, reason))


def unusable(chunks: Sequence[RetrievedText]) -> str | None:
    """Return why the chunks' texts cannot be scored; None when they can, or without chunks."""
    if any(chunk.truncated for chunk in chunks):
        return _TRUNCATED
    if chunks and not any((chunk.text or "").strip() for chunk in chunks):
        return _NO_TEXTS
    return None


class Collector:
    """Gathers the values, reasons and evidence of one case."""

    def __init__(self, names: Sequence[str]) -> None:
        self.values: dict[str, float | None] = dict.fromkeys(names)
        self.reasons: dict[str, str] = {}
        self.evidence: dict[str, Any] = {}

    def nothing(self, names: Sequence[str], reason: str) -> None:
        """Record that these metrics have no score, and why."""
        for name in names:
            self.values[name] = None
            self.reasons[name] = reason

    def set(self, name: str, value: float | None, reason: str) -> None:
        """Record a value, or the reason why there is none."""
        if value is None:
            self.nothing([name], reason)
        else:
            self.values[name] = float(value)

    def result(self) -> CaseScores:
        """The values, reasons and evidence gathered so far."""
        return CaseScores(self.values, self.reasons, self.evidence)
