"""The comparison of two runs, metric by metric; values alone, no files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from decisions.change import Change
from decisions.joint import Headline
from decisions.measures import FEWEST_CASES
from decisions.same_cases import CaseCounts
from records.targets import TARGETS, Target, read_decide


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of two runs that is not the same. ``name`` is its place, such as ``judge.model``."""

    name: str
    base: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.name}: {shown(self.base)} → {shown(self.new)}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs: ``headline`` in a word, ``says`` in sentences (decisions/headline.py makes both),
    ``rows`` of whole metrics, ``slices`` of parts, what they differ in, remarks.

    ``clusters``: which cases were counted together, in words. ``controls``: differences in what
    must be the same (empty unless they were ignored). ``left_out``: a sentence on each section that
    could not be compared. ``varied``: the differences of configuration
    that are compared. ``cases``: in both runs; ``only_base``, ``only_new``: cases that one of them
    lacks. ``missing``: asked cases without a result in base and in new, of ``asked``; ``rest``: the
    verdict on the ``compared`` others, None where it is not known. ``half``: primary metrics that
    one run alone has, each with whether that is base. ``missed``: metrics whose target base met
    and new misses, with the target. ``untested``: metrics that only --all compares.
    """

    base_id: str
    new_id: str
    rows: tuple[Change, ...]
    headline: Headline = "NO CLEAR DIFFERENCE"
    says: tuple[str, ...] = ()
    slices: tuple[Change, ...] = ()
    clusters: str = ""
    scope: str = ""
    """The limit of the verdicts where documents are fixed; "" elsewhere."""
    tested: int = 0
    """Primary metrics in the joint test that changed at all."""
    controls: tuple[Difference, ...] = ()
    left_out: tuple[str, ...] = ()
    varied: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    cases: int = 0
    only_base: int = 0
    only_new: int = 0
    missing: tuple[int, int] = (0, 0)
    asked: tuple[int, int] = (0, 0)
    rest: Headline | None = None
    rest_mde: float | None = None
    """The smallest change of a share that these others would show, in any primary metric."""
    rest_rows: tuple[Change, ...] = ()
    """The primary metrics of these others; not in the JSON data."""
    lead: str = ""
    """The metric that counts most; "" without one."""
    compared: int = 0
    half: tuple[tuple[str, bool], ...] = ()
    missed: tuple[tuple[str, str], ...] = ()
    set_changes: CaseCounts | None = None
    """How many cases did not change, and the others; None for one and the same set."""
    changed: str = ""
    """The settings that changed, in a sentence, and where the evidence is lost; "" if one run does
    not have its settings."""
    fell: tuple[str, ...] = ()
    """A sentence on each slice that fell by more than chance."""
    since: str = ""
    """The difference to the pinned baseline, in a sentence."""
    labels_of: str = ""
    """The git reference of base's labels, where both runs are the same answers."""
    margin: float | None = None
    untested: int = 0

    def row(self, name: str) -> Change | None:
        """The row of a metric, by ``metric`` or ``section.metric``."""
        return next((row for row in self.rows if name in (row.metric, row.name)), None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        rows = [row.to_dict() for row in self.rows]
        data = asdict(replace(self, rows=(), slices=(), rest_rows=()))
        del data["rest_rows"]
        data["set_changes"] = self.set_changes._asdict() if self.set_changes else None
        return data | {"rows": rows, "slices": [row.to_dict() for row in self.slices]}


def shown(value: Any) -> str:
    """A value of a configuration, short; hashes to 12 characters."""
    if value is None or value == []:
        return "–"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if len(text) == 64 and all(char in "0123456789abcdef" for char in text):
        return text[:12]
    return text if len(text) <= 80 else f"{text[:79]}…"


def missed_targets(
    rows: Sequence[Change], targets: Mapping[str, Mapping[str, Target]]
) -> tuple[tuple[str, str], ...]:
    """The metrics whose mean met its target in base and misses it in new, with the target.

    Not those with too few cases to say.
    """
    aimed = [(row, targets.get(row.section, {}).get(row.metric)) for row in rows]
    return tuple(
        (row.name, str(target))
        for row, target in aimed
        if target is not None and row.n >= FEWEST_CASES and target.passed(row.base_mean)
        if target.passed(row.new_mean) is False
    )


def with_targets(
    rows: Sequence[Change], targets: Mapping[str, Mapping[str, Target]]
) -> tuple[Change, ...]:
    """The rows, each with the bound of its target."""
    aims = [targets.get(row.section, {}).get(row.metric) for row in rows]
    return tuple(
        replace(row, target=aim.bound) if aim is not None else row
        for row, aim in zip(rows, aims, strict=True)
    )


def half_measured(
    rows: Sequence[Change], names: Sequence[str], targets: Path = TARGETS
) -> tuple[tuple[str, bool], ...]:
    """Primary metrics that one run alone has, each with whether that is the base: those that the
    new run lost, and those that targets.toml declares."""
    declared = read_decide(targets).primary
    by_name = {row.name: row.verdict for row in rows if row.name in names}
    lost = [(name, True) for name, verdict in by_name.items() if verdict == "only in base"]
    more = [(n, False) for n, v in by_name.items() if v == "only in new" and n in declared]
    return tuple(lost + more)
