"""What a report uses of a score line's evidence, section by section, with its types.

A line is checked against these while it is read; the parts that a report does not draw may be
anything. What a judge said of an answer is not taken from here: see `run_files.read_judged`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

Rank = Annotated[int, msgspec.Meta(ge=1)]
Scores = dict[str, float | None]


class _Retrieval(msgspec.Struct):
    match: str = ""
    found: list[Rank | None] = []
    hits: list[Rank] | msgspec.UnsetType = msgspec.UNSET


class _Claim(msgspec.Struct):
    text: str
    supported: bool | None = None
    score: float | None = None
    missing: list[str] = []
    vetoed_by: list[str | float] = []


class _Numbers(msgspec.Struct):
    fabricated: list[str | float] = []


class _Groundedness(msgspec.Struct):
    claims: list[_Claim] = []
    numbers: _Numbers = msgspec.field(default_factory=_Numbers)
    expected_claims_missing: list[str] = []


class _Over(msgspec.Struct):
    ms: float
    budget_ms: float


class _Pipeline(msgspec.Struct):
    expected: str | None = None
    outcome: str | None = None
    why: str | None = None
    missing_flags: list[str] = []
    forbidden_flags: list[str] = []
    over_budget: dict[str, _Over] = {}


class _Abstention(msgspec.Struct):
    cell: str = ""


class _Prompt(msgspec.Struct):
    kind: str | None = None
    category: str | None = None
    score: float | None = None
    text: str | None = None


class Line(msgspec.Struct, omit_defaults=True):
    """A score line; ``evidence`` is of its section's type."""

    case_id: str
    repeat: int
    status: str
    scores: Scores
    reasons: dict[str, str] = {}
    evidence: Any = None


_KINDS = {
    "retrieval": _Retrieval,
    "groundedness": _Groundedness,
    "pipeline": _Pipeline,
    "abstention": _Abstention,
    "safety": _Prompt,
}
_LINES: dict[str, Any] = {
    section: msgspec.defstruct(
        f"_{section.title()}Line", [("evidence", kind | None, None)], bases=(Line,)
    )
    for section, kind in _KINDS.items()
}


def line_type(section: str) -> type[Line]:
    """The type of a section's score lines."""
    kind: type[Line] = _LINES.get(section, Line)
    return kind
