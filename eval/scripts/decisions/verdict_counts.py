"""How many cases of a run fail, and why, as numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from terminal.tables import counted

NOT_JUDGED = "not judged by a model"
"""Why the rules that read a judge's scores decide nothing."""

BY_RULES = "judged by rules alone"
"""Why they only warn."""

_OF_JUDGES = {
    NOT_JUDGED: "Checks that need a judge model were skipped.",
    BY_RULES: "The judge has rules and no model, so its checks only warn.",
}


@dataclass(frozen=True)
class VerdictCounts:
    """How many cases fail, and by which first reason; how many have a warning but do not fail.

    ``unreadable``: those among ``cases`` of which no answer could be read."""

    cases: int = 0
    failing: int = 0
    warned: int = 0
    unstable: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    warnings: Mapping[str, int] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    depth: int | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    """The words behind a number of cases, by rule."""
    unreadable: int = 0

    def says(self, *, failing: bool = False) -> str:
        """All of it in words: ``78 of 146 cases fail: 33 ended differently than expected, …``.

        ``failing``: without cases that have a warning only, and checks that were skipped."""
        verb = "fails" if 1 in (self.failing, self.cases) else "fail"
        text = f"{self.failing:,} of {counted(self.cases, 'case')} {verb}"
        parts = [f"{n:,} {self.words.get(name, name)}" for name, n in self.reasons.items()]
        text += f": {', '.join(parts)}." if parts else "."
        if self.unreadable:
            verb = "is" if self.unreadable == 1 else "are"
            text += f" {self.unreadable:,} {verb} not measured: no answer could be read."
        if failing:
            return text
        if self.warned:
            text += f" {self.warned:,} {'has' if self.warned == 1 else 'have'} a warning only."
        if self.unstable:
            text += f" The answers to {counted(self.unstable, 'case')} differ."
        if self.unmeasured:
            missing = ", ".join(word for word in self.unmeasured if word not in _OF_JUDGES)
            if missing:
                text += f" {missing[0].upper()}{missing[1:]}: those checks were skipped."
            judges = (_OF_JUDGES[word] for word in self.unmeasured if word in _OF_JUDGES)
            text += "".join(f" {sentence}" for sentence in judges)
        return text

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        data = asdict(self) | {"unmeasured": list(self.unmeasured)}
        for name in ("words",) if self.unreadable else ("words", "unreadable"):
            del data[name]
        return data
