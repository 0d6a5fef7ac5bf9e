"""The forms of single rules: what may be written behind a name, and what it means. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from targets import Target, parse_target

Kind = Literal["drop", "margin", "regression", "none"]
DROP_FORM = '"drop 10 %", "drop 0.05", "margin 0.05", "regression" or "none"'
_DROP = re.compile(r"(drop|margin)\s+(\d+(?:\.\d+)?)\s*(%?)")
CALIBRATED_FORM = (
    '"kappa >= 0.4", several of these with commas between, or "calibrated" for no bound; there are '
    "kappa, balanced_accuracy, specificity, sensitivity, accuracy and auroc, all with > or >="
)
_FIGURE = re.compile(r"\s*(kappa|balanced_accuracy|specificity|sensitivity|accuracy|auroc)\s*(>.*)")


@dataclass(frozen=True, slots=True)
class AgainstBase:
    """How much worse than the baseline a metric may be.

    drop: its mean, by ``size`` (of the baseline when ``relative``). margin: the 95 % interval of
    the difference must rule out a loss of ``size``. regression: the interval must not lie wholly
    on the bad side. none: may do what it likes.
    """

    kind: Kind
    size: float = 0.0
    relative: bool = False

    def __str__(self) -> str:
        if self.kind in ("regression", "none"):
            return self.kind
        return (
            f"{self.kind} {100 * self.size:g} %" if self.relative else f"{self.kind} {self.size:g}"
        )


@dataclass(frozen=True, slots=True)
class MustPass:
    """Cases, by id or tag, whose every answer must keep ``target``, else the metric's good end."""

    metric: str
    cases: tuple[str, ...]
    tags: tuple[str, ...]
    target: Target | None


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A judged metric whose judge was held against people.

    ``bounds``: figures of the calibration whose 95 % interval must lie within each bound.
    """

    bounds: tuple[tuple[str, Target], ...] = ()

    def __str__(self) -> str:
        return ", ".join(f"{name} {target}" for name, target in self.bounds) or "calibrated"


def parse_against(text: object) -> AgainstBase | None:
    """A rule such as ``"drop 10 %"``, ``"margin 0.05"`` or ``"regression"``; None for others."""
    if not isinstance(text, str):
        return None
    words = text.strip().lower()
    if words == "regression":
        return AgainstBase("regression")
    if words == "none":
        return AgainstBase("none")
    found = _DROP.fullmatch(words)
    if found is None:
        return None
    kind: Kind = "drop" if found[1] == "drop" else "margin"
    size = float(found[2])
    if found[3]:
        return AgainstBase(kind, size / 100, True) if kind == "drop" else None
    return AgainstBase(kind, size)


def parse_calibrated(text: object) -> Calibrated | None:
    """``"calibrated"``, or bounds such as ``"kappa >= 0.4, auroc > 0.8"``; None for others."""
    if not isinstance(text, str):
        return None
    if text.strip().lower() == "calibrated":
        return Calibrated()
    bounds = []
    for part in text.split(","):
        found = _FIGURE.fullmatch(part)
        target = None if found is None else parse_target(found[2])
        if found is None or target is None:
            return None
        bounds.append((found[1], target))
    return Calibrated(tuple(bounds))
