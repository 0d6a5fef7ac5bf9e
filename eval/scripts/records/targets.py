"""Targets of metrics (eval/targets.toml): what passes, for tables, reports and gates alike."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from records.errors import Problem, StorageError
from records.files import read_toml
from records.runs import own_file

TARGETS = own_file("targets.toml")

BANDS = "diversity"
"""Table that bounds single cases: diversity_ok checks it."""

GATES = "gates"
"""Table of rules that are no targets: decisions/gate_rules.py reads it."""

DECIDE = "decide"
"""Table that declares which metrics decide: ``declared_primary`` reads it."""

CASES = "cases"
"""Table that says when one case fails: decisions/case_rules.py reads it."""

MOST_PRIMARY = 6

TARGET_FORM = 'write "> 0.7", ">= 0.7", "< 0.2" or "<= 0.2"'

_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}

_FORM = re.compile(r"(>=|<=|>|<)\s*(-?\d+(?:\.\d+)?)")


ADVISORY = "advisory "
"""The prefix of an entry that is shown beside its number and decides nothing."""


class Target(msgspec.Struct, frozen=True):
    """A bound that a mean should keep; an ``advisory`` one is shown and decides nothing."""

    sign: str
    bound: float
    advisory: bool = False

    def passed(self, mean: float | None) -> bool | None:
        """True when the mean keeps the bound; None when there is no mean, or it is advisory."""
        if mean is None or self.advisory:
            return None
        return bool(_COMPARE[self.sign](mean, self.bound))

    def __str__(self) -> str:
        return f"{ADVISORY if self.advisory else ''}{self.sign} {self.bound:g}"


Targets = dict[str, dict[str, Target]]
"""By section and metric."""


def read_targets(path: Path = TARGETS) -> Targets:
    """Targets by section and metric, those that decide; {} when there is no file.

    Tables whose name the caller does not know are kept, but for [gates], [decide] and [cases],
    which hold rules of other kinds. Raises StorageError naming every bad entry.
    """
    return _read_both(path)[0]


def read_advisory(path: Path = TARGETS) -> Targets:
    """The entries that begin with ``advisory``, by section and metric; else as read_targets."""
    return _read_both(path)[1]


def _read_both(path: Path) -> tuple[Targets, Targets]:
    try:
        raw = read_toml(path)
    except FileNotFoundError:
        return {}, {}
    deciding, advisory = dict(raw), {}
    for section, table in raw.items():
        if isinstance(table, dict):
            parts: tuple[dict[str, Any], dict[str, Any]] = {}, {}
            for name, text in table.items():
                parts[isinstance(text, str) and text.startswith(ADVISORY)][name] = text
            deciding[section] = parts[False]
            advisory[section] = {
                name: text.removeprefix(ADVISORY) for name, text in parts[True].items()
            }
    targets, problems = parse_targets(deciding, path)
    shown, more = parse_targets(advisory, path)
    if problems or more:
        raise StorageError.from_problems([*problems, *more])
    for entries in shown.values():
        for name, target in entries.items():
            entries[name] = msgspec.structs.replace(target, advisory=True)
    return targets, shown


def parse_target(text: object) -> Target | None:
    """``"> 0.7"``, ``">= 0.7"``, ``"< 0.2"`` or ``"<= 0.2"``; None for anything else."""
    match = _FORM.fullmatch(text.strip()) if isinstance(text, str) else None
    return Target(match[1], float(match[2])) if match else None


def parse_targets(
    raw: Mapping[str, Any], path: Path
) -> tuple[dict[str, dict[str, Target]], list[Problem]]:
    """Targets by section and metric, and the faults of the other entries."""
    targets: dict[str, dict[str, Target]] = {}
    problems = []
    for section, table in raw.items():
        if section in (GATES, DECIDE, CASES) and isinstance(table, dict):
            continue
        if not isinstance(table, dict):
            message = "is in no table; put it under a section such as [retrieval]"
            problems.append(Problem(str(path), None, section, message))
            continue
        for name, text in table.items():
            target = parse_target(text)
            if target is None:
                message = f"{text!r} is not a target; {TARGET_FORM}"
                problems.append(Problem(str(path), None, f"[{section}] {name}", message))
            else:
                targets.setdefault(section, {})[name] = target
    return targets, problems


def read_bands(section: str, path: Path = TARGETS) -> dict[str, tuple[float, float]]:
    """A table of bounds as closed intervals within [0, 1]: ``"<= 0.4"`` is (0, 0.4).

    Raises StorageError for ``<`` and ``>``, which no closed interval can say.
    """
    bands = {}
    for name, target in read_targets(path).get(section, {}).items():
        if target.sign not in ("<=", ">="):
            message = f'"{target}" excludes its end; write "<= {target.bound:g}" or ">= …"'
            raise StorageError.from_problems(
                [Problem(str(path), None, f"[{section}] {name}", message)]
            )
        bands[name] = (0.0, target.bound) if target.sign == "<=" else (target.bound, 1.0)
    return bands


def declared_documents(path: Path = TARGETS) -> str:
    """How ``[decide] documents`` wants documents to be taken: ``fixed`` (verdicts are about these),
    ``sampled`` (about documents like these); ``auto`` without it: fixed where they are few.

    Raises StorageError for any other value.
    """
    table = _decide(path)
    value = table.get("documents", "auto") if isinstance(table, dict) else "auto"
    if value in ("auto", "fixed", "sampled"):
        return str(value)
    message = f'{value!r}: write "fixed" (these documents) or "sampled" (documents like these)'
    raise StorageError.from_problems([Problem(str(path), None, f"[{DECIDE}] documents", message)])


def declared_lead(path: Path = TARGETS) -> str:
    """The metric that ``[decide] lead`` names, as ``section.metric``; "" without one.

    Raises StorageError for what is no such name.
    """
    table = _decide(path)
    value = table.get("lead", "") if isinstance(table, dict) else ""
    if value == "" or (isinstance(value, str) and all(value.partition("."))):
        return str(value)
    message = f'{value!r}: write the section.metric that counts most, such as "pipeline.pass"'
    raise StorageError.from_problems([Problem(str(path), None, f"[{DECIDE}] lead", message)])


def declared_pinned(path: Path = TARGETS) -> str:
    """The run id or commit that ``[decide] pinned`` names as the baseline of the history; "" if it
    names none.

    Raises StorageError for anything but a text.
    """
    table = _decide(path)
    value = table.get("pinned", "") if isinstance(table, dict) else ""
    if isinstance(value, str):
        return value
    message = f"{value!r}: write the id of a run, or a commit, in quotes"
    raise StorageError.from_problems([Problem(str(path), None, f"[{DECIDE}] pinned", message)])


def declared_matters(path: Path = TARGETS) -> float | None:
    """The share of a metric's range that matters (``[decide] matters``); None without one.

    Raises StorageError for anything but a number above 0 and below 1.
    """
    table = _decide(path)
    value = table.get("matters") if isinstance(table, dict) else None
    if value is None or (isinstance(value, float) and 0 < value < 1):
        return value
    message = f"{value!r}: write the share of a metric's range that matters, such as 0.02"
    raise StorageError.from_problems([Problem(str(path), None, f"[{DECIDE}] matters", message)])


def _decide(path: Path) -> Any:
    try:
        return read_toml(path).get(DECIDE, {})
    except FileNotFoundError:
        return {}


def declared_primary(path: Path = TARGETS) -> tuple[str, ...]:
    """The metrics that ``[decide] primary`` declares, as ``section.metric``; () without one.

    Raises StorageError for what is not a list of one to ``MOST_PRIMARY`` different names."""
    table = _decide(path)
    names: Any = table.get("primary", []) if isinstance(table, dict) else None
    field = f"[{DECIDE}] primary"
    example = 'write primary = ["retrieval.recall@5", "pipeline.pass"]'
    message = ""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        message = f"is not a list of names; {example}"
    elif odd := [name for name in names if not all(name.partition("."))]:
        message = f"{odd[0]!r} is not a section.metric; {example}"
    elif len(set(names)) < len(names):
        message = "names a metric twice; name each once"
    elif len(names) > MOST_PRIMARY:
        message = f"names {len(names)} metrics, but at most {MOST_PRIMARY} can decide; name fewer"
    elif "primary" in table and not names:
        message = f"names no metric; {example}, or delete the line for the built-in ones"
    if message:
        raise StorageError.from_problems([Problem(str(path), None, field, message)])
    if isinstance(table, dict) and (
        unknown := sorted(table.keys() - {"primary", "documents", "lead", "matters", "pinned"})
    ):
        message = "is unknown; the table has primary, lead, matters, pinned and documents"
        raise StorageError.from_problems(
            Problem(str(path), None, f"[{DECIDE}] {name}", message) for name in unknown
        )
    return tuple(names)
