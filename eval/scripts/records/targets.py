"""Targets of metrics (eval/targets.toml): what passes, for tables, reports and gates alike."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from records.runs import own_file
from records.toml_files import Parsed, TomlReader, open_file

TARGETS = own_file("targets.toml")

BANDS = "diversity"
"""Table that bounds single cases: diversity_ok checks it."""

GATES = "gates"
"""Table of rules that are no targets: decisions/gate_rules.py reads it."""

DECIDE = "decide"
"""Table that declares which metrics decide: ``read_decide`` reads it."""

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


def parse_target(text: object) -> Target | None:
    """``"> 0.7"``, ``">= 0.7"``, ``"< 0.2"`` or ``"<= 0.2"``; None for anything else."""
    match = _FORM.fullmatch(text.strip()) if isinstance(text, str) else None
    return Target(match[1], float(match[2])) if match else None


def _bound(text: object) -> Target:
    if (target := parse_target(text)) is None:
        raise ValueError(f"{text!r} is no bound; {TARGET_FORM}")
    return target


def _aim(text: object) -> Target:
    advisory = isinstance(text, str) and text.startswith(ADVISORY)
    target = parse_target(str(text).removeprefix(ADVISORY)) if advisory else _bound(text)
    if target is None:
        raise ValueError(f"{text!r} is no bound; {TARGET_FORM} after the word")
    return msgspec.structs.replace(target, advisory=advisory)


Bound = Annotated[Target, Parsed(_bound)]
"""A target that a file holds as text."""

_Aim = Annotated[Target, Parsed(_aim)]

MetricName = Annotated[
    str, Meta(pattern=r"^[^.]+\..+$", description='write section.metric, such as "pipeline.pass"')
]


Targets = dict[str, dict[str, Target]]
"""By section and metric."""


def read_targets(path: Path = TARGETS) -> Targets:
    """Targets by section and metric, those that decide; {} when there is no file.

    Tables whose name the caller does not know are kept, but for [gates], [decide] and [cases],
    which hold rules of other kinds. Raises StorageError naming every bad entry.
    """
    return _read(path, advisory=False)


def read_advisory(path: Path = TARGETS) -> Targets:
    """The entries that begin with ``advisory``, by section and metric; else as read_targets."""
    return _read(path, advisory=True)


def _read(path: Path, *, advisory: bool) -> Targets:
    if not path.exists():
        return {}
    raw, reader = open_file(path)
    sections: Targets = read_sections(reader, raw, _Aim)
    reader.end()
    chosen = {
        section: {name: aim for name, aim in aims.items() if aim.advisory is advisory}
        for section, aims in sections.items()
    }
    return {section: aims for section, aims in chosen.items() if aims}


def read_sections(reader: TomlReader, raw: Mapping[str, Any], form: Any = Bound) -> Any:
    """Bounds by section and metric, of all tables but [gates], [decide] and [cases]."""
    sections = {}
    for section, table in raw.items():
        if not isinstance(table, dict):
            reader.wrong((section,), "is in no table; put it under a section such as [retrieval]")
        elif section not in (GATES, DECIDE, CASES):
            sections[section] = reader.read(table, dict[str, form], (section,))
    return sections


def read_bands(section: str, path: Path = TARGETS) -> dict[str, tuple[float, float]]:
    """A table of bounds as closed intervals within [0, 1]: ``"<= 0.4"`` is (0, 0.4).

    Raises StorageError for ``<`` and ``>``, which no closed interval can say.
    """
    reader = TomlReader(str(path), path)
    bands = {}
    for name, target in read_targets(path).get(section, {}).items():
        if target.sign not in ("<=", ">="):
            clause = f'"{target}" excludes its end; write "<= {target.bound:g}" or ">= …"'
            reader.wrong((section, name), clause)
        bands[name] = (0.0, target.bound) if target.sign == "<=" else (target.bound, 1.0)
    reader.end()
    return bands


def _primary(names: Any) -> tuple[str, ...]:
    """The metrics that decide: one to ``MOST_PRIMARY`` different names."""
    example = 'write primary = ["retrieval.recall@5", "pipeline.pass"]'
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"is not a list of names; {example}")
    if odd := [name for name in names if not all(name.partition("."))]:
        raise ValueError(f"{odd[0]!r} is not a section.metric; {example}")
    if len(set(names)) < len(names):
        raise ValueError("names a metric twice; name each once")
    if not names:
        raise ValueError(f"names no metric; {example}, or delete the line for the built-in ones")
    if len(names) > MOST_PRIMARY:
        raise ValueError(f"names {len(names)} metrics, but at most {MOST_PRIMARY} can decide")
    return tuple(names)


_SHARE = "write the share of a metric's range that matters, such as 0.02"

_HOW = "fixed: about these documents, sampled: about documents like these"


class Decide(msgspec.Struct, frozen=True):
    """The table [decide]: which metrics decide, and how.

    ``documents``: whether verdicts are about these documents (fixed), or about documents like these
    (sampled); auto: fixed where they are few. ``lead``: the metric that gives the word, "" for the
    built-in one. ``matters``: the share of a metric's range that matters. ``pinned``: run id or
    commit of the history's baseline, or "".
    """

    primary: Annotated[tuple[str, ...], Parsed(_primary)] = ()
    documents: Annotated[Literal["auto", "fixed", "sampled"], Meta(description=_HOW)] = "auto"
    lead: MetricName = ""
    matters: Annotated[float, Meta(gt=0, lt=1, description=_SHARE)] | None = None
    pinned: Annotated[str, Meta(description="write the id of a run, or a commit, in quotes")] = ""


def read_decide(path: Path = TARGETS) -> Decide:
    """The table [decide] of a targets file; its defaults where it has none, or is missing.

    Raises StorageError naming every bad entry.
    """
    if not path.exists():
        return Decide()
    raw, reader = open_file(path)
    decide: Decide = reader.read(raw.get(DECIDE, {}), Decide, (DECIDE,))
    reader.end()
    return decide
