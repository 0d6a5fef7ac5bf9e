"""The findings of a gate: one check a rule and metric, and the whole as gate.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from records.errors import StorageError
from records.results import SCHEMA

Status = Literal["failed", "accepted", "skipped", "passed"]

GUARDS = ("measured", "coverage", "failed", "calibration")

OF_CALLS = ("missing", "stopped", "failed calls", "unreadable", "baseline", "gates")
"""Built-in rules that need no baseline: nothing that the bot answered is checked by them."""

WORSE = "worse"
"""The rule of a check that tests a primary metric against the baseline."""

ORDER: tuple[Status, ...] = ("failed", "accepted", "skipped", "passed")


@dataclass(frozen=True, slots=True)
class Check:
    """One rule and the number that it bounds.

    ``section`` is ``run`` for what is no metric. ``must``: the rule in words. ``reason``: why it
    failed or was skipped, with the remedy where there is one. ``delta`` is new minus baseline and
    ``interval`` its 95 % interval, found by ``method`` over ``n`` cases; ``p`` is that of being
    worse. ``line``: of the rule in the gates file. ``accepted``: why a failure was accepted.
    """

    rule: str
    section: str
    metric: str
    status: Status
    must: str
    value: float | None = None
    baseline: float | None = None
    delta: float | None = None
    interval: tuple[float, float] | None = None
    method: str | None = None
    n: int | None = None
    reason: str = ""
    line: int | None = None
    accepted: str | None = None
    p: float | None = None

    @classmethod
    def of(
        cls, rule: str, section: str, metric: str, must: str, reason: str, **numbers: Any
    ) -> Check:
        """A check that failed for a ``reason``; one that passed without any."""
        status: Status = "failed" if reason else "passed"
        return cls(rule, section, metric, status, must, reason=reason, **numbers)

    @property
    def name(self) -> str:
        """``section.metric``, or the metric alone if it concerns the whole run.

        What guards the measuring itself has its rule behind it (``safety.auc:measured``): who
        accepts a lower number does not accept that it is no longer looked at.
        """
        name = self.metric if self.section == "run" else f"{self.section}.{self.metric}"
        return f"{name}:{self.rule}" if self.rule in GUARDS else name

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"name": self.name}


@dataclass(frozen=True)
class Accept:
    """A trade-off that a person accepts: ``needed`` is False when nothing failed."""

    name: str
    reason: str
    needed: bool = False


@dataclass(frozen=True)
class Verdict:
    """All checks of a run. ``baseline``: the run that it was compared with, or None."""

    run_id: str
    gates: str
    checks: Sequence[Check]
    baseline: str | None = None
    accepts: Sequence[Accept] = ()
    caveats: Sequence[str] = ()
    says: Sequence[str] = ()
    """The compared sides in words: the first line of the comparison, and what would have
    failed."""
    doubt: str = ""
    """Why a gate that passes says little; "" where nothing speaks against it."""
    header: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unchecked(self) -> bool:
        """Whether nothing failed and no rule says anything about the answers."""
        looked_at = [check for check in self.checks if check.status != "skipped"]
        return not self.of("failed") and all(check.rule in OF_CALLS for check in looked_at)

    @property
    def passed(self) -> bool:
        """True when answers were checked, and no failure is left that was not accepted."""
        return not (self.of("failed") or self.unchecked)

    @property
    def outcome(self) -> Literal["FAILED", "passed", "NOT CHECKED"]:
        """The verdict as the words behind ``Gate``."""
        return "passed" if self.passed else "NOT CHECKED" if self.unchecked else "FAILED"

    @property
    def title(self) -> str:
        """``Gate passed``, and any warning that a reader must not miss."""
        return f"Gate {self.outcome}{f', but {self.doubt}' if self.passed and self.doubt else ''}"

    def of(self, *statuses: Status) -> list[Check]:
        """The checks with these statuses, in their order."""
        return [check for check in self.checks if check.status in statuses]

    def counts(self) -> dict[str, int]:
        return {status: len(self.of(status)) for status in ORDER}

    def summary(self) -> str:
        """The verdict in one line."""
        order = ORDER if self.of("failed") else ("passed", *ORDER[:-1])
        parts = [(self.counts()[name], name) for name in order if self.counts()[name]]
        first = [
            f"{count} {'check' if count == 1 else 'checks'} {name}" for count, name in parts[:1]
        ]
        counts = ", ".join([*first, *(f"{count} {name}" for count, name in parts[1:])])
        return f"{self.title}{'. ' if self.doubt else ': '}{counts or 'no checks'}."

    def to_dict(self) -> dict[str, Any]:
        """The content of gate.json: no clock time, the same for the same runs and rules."""
        return {
            "schema": SCHEMA,
            "kind": "gate",
            **self.header,
            "run_id": self.run_id,
            "baseline": self.baseline,
            "gates": self.gates,
            "passed": self.passed,
            "title": self.title,
            "counts": self.counts(),
            "checks": [check.to_dict() for check in self.checks],
            "accepts": [asdict(accept) for accept in self.accepts],
            "caveats": list(self.caveats),
            "says": list(self.says),
        }


def parse_accepts(texts: Iterable[str]) -> list[Accept]:
    """``metric=reason`` each. Raises StorageError without a reason, and for a name given twice."""
    accepts: dict[str, Accept] = {}
    for text in texts:
        name, _, reason = (part.strip() for part in text.partition("="))
        if not name or not reason:
            raise StorageError(
                f"--accept {text!r}: write metric=reason; readers of the verdict need the reason."
            )
        if name in accepts:
            raise StorageError(f"--accept {name}: given twice; give one reason.")
        accepts[name] = Accept(name, reason)
    return list(accepts.values())


def with_accepts(
    checks: Sequence[Check], accepts: Sequence[Accept]
) -> tuple[list[Check], list[Accept]]:
    """The checks with failures accepted where a name fits, and whether each was needed.

    A name is that of a check (``retrieval.recall@5``, ``cost_usd``, ``safety.auc:measured``) or of
    its metric alone. Raises StorageError for names that no check has.
    """
    names = {name for check in checks for name in (check.name, check.metric)}
    if unknown := [accept.name for accept in accepts if accept.name not in names]:
        looked_at = ", ".join(sorted({check.name for check in checks})) or "none"
        raise StorageError(
            f"--accept {', '.join(unknown)}: no gate checks that. The gates check: {looked_at}."
        )
    reasons = {accept.name: accept.reason for accept in accepts}
    needed = set()
    accepted = []
    for check in checks:
        own = (check.name,) if check.rule in GUARDS else (check.name, check.metric)
        name = next((name for name in own if name in reasons), None)
        if name is not None and check.status == "failed":
            needed.add(name)
            check = replace(check, status="accepted", accepted=reasons[name])
        accepted.append(check)
    return accepted, [replace(accept, needed=accept.name in needed) for accept in accepts]
