"""The rules by which a case fails, as a project sets them: [cases] of targets.toml.

[cases]
depth = 5                          passages in which gold counts, at most
number = "warn"                    a rule of the catalogue: "fail", "warn" or "off"
wrong = "> 3"                      another bound for a rule
"custom.tone" = ">= 0.5"           what else an answer must keep, or "warn >= 0.5"
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from ragmetrics import catalogue
from ragmetrics.catalogue.cases import OF_SOME_RUNS, RULES, CaseRule, Level
from records.metrics import read_sections
from records.runs import METRICS, known_config
from records.targets import CASES, TARGETS, parse_target
from records.toml_files import open_file

LOCAL = "local"
"""The provider of the judge that compares words: what it says only warns."""

LEVELS: tuple[Level, ...] = get_args(Level)

FORM = 'write "fail", "warn", "off", or what an answer must keep, such as "> 3" or "warn > 3"'


_Depth = Annotated[int, Meta(ge=1, description="passages, such as 5")] | None


@dataclass(frozen=True)
class CaseRules:
    """The rules in their order, without those that are off. ``depth``: passages in which gold
    counts, at most; None: all that were retrieved."""

    rules: tuple[CaseRule, ...] = RULES
    depth: int | None = None

    @cached_property
    def sha256(self) -> str:
        """A hash of everything that decides, so that two files can be compared by it."""
        rows = [
            [rule.name, *rule.metrics, rule.sign, rule.bound, rule.level]
            for rule in self.rules
            if rule.section not in OF_SOME_RUNS or rule not in RULES
        ]
        return hashlib.sha256(msgspec.json.encode([rows, self.depth])).hexdigest()


def read_case_rules(path: Path = TARGETS) -> CaseRules:
    """The rules of a targets file; those of the catalogue where it has no [cases], or is missing.

    Raises StorageError that names every entry that cannot be used, with its line.
    """
    if not path.exists():
        return CaseRules()
    raw, reader = open_file(path)
    table = reader.read(raw.get(CASES, {}), dict[str, Any], (CASES,)) or {}
    depth = reader.read(table.pop("depth", None), _Depth, (CASES, "depth"))
    rules = {rule.name: rule for rule in RULES}
    for name, value in table.items():
        try:
            rules[name] = _changed(rules.get(name) or _own(name), value)
        except ValueError as error:
            reader.wrong((CASES, name), str(error))
    reader.end()
    return CaseRules(tuple(rule for rule in rules.values() if rule.level != "off"), depth)


def _own(name: str) -> CaseRule:
    """A rule on a metric that the catalogue has no rule for, not yet with a bound. Raises
    ValueError for a name that is neither a rule nor a metric."""
    section, _, metric = name.partition(".")
    if section in catalogue.SECTIONS and metric:
        try:
            if catalogue.SECTIONS[section].metrics:
                catalogue.find(metric, catalogue.SECTIONS[section].metrics)
        except KeyError:
            raise ValueError(f"section {section} has no such metric") from None
        says = f"{metric} is {{value}}"
        return CaseRule(name, metric, f"with another {metric}", says, name, ">=", float("nan"))
    names = ", ".join(rule.name for rule in RULES)
    raise ValueError(f"is no rule; write depth, section.metric, or one of: {names}")


def _changed(rule: CaseRule, value: Any) -> CaseRule:
    """A rule as an entry sets it. Raises ValueError for a value that is not understood."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text; {FORM}")
    word, _, rest = value.partition(" ")
    if value in LEVELS and rule.bound == rule.bound:
        return replace(rule, level=value)
    level, text = (word, rest) if word in LEVELS else (rule.level, value)
    target = parse_target(text)
    if target is None or level == "off":
        raise ValueError(f"{value!r} is not understood; {FORM}")
    if rule.ranked or rule.of:
        raise ValueError('takes no bound; write "fail", "warn" or "off"')
    says = rule.says if rule.name != rule.metric else f"{rule.says}, must be {target}"
    sign: Any = target.sign
    return replace(rule, level=level, sign=sign, bound=target.bound, says=says)


class Basis(msgspec.Struct, frozen=True):
    """The basis of the verdicts of a run.

    ``depth``: passages that were asked for; None where that is not known. ``judge``: who judged, as
    JSON; "" without a judge. ``definitions``: of each scored metric, by ``section.metric``; None
    where metrics.json lacks them.
    """

    depth: int | None = None
    judge: str = ""
    trusted: bool = False
    definitions: Mapping[str, str] | None = None

    def shared(self, other: Basis) -> Basis:
        """The common basis of two runs: verdicts that rest on it can be compared."""
        depths = [depth for depth in (self.depth, other.depth) if depth is not None]
        both = self.definitions
        if both is None or other.definitions is None:
            both = other.definitions if both is None else both
        else:
            both = {
                name: text for name, text in both.items() if other.definitions.get(name) == text
            }
        if self.judge != other.judge and both is not None:
            both = {name: text for name, text in both.items() if not name.startswith("judged.")}
        same = self.judge == other.judge
        return Basis(
            min(depths, default=None),
            self.judge if same else "",
            self.trusted and other.trusted and same,
            both,
        )


def basis_of(folder: Path) -> Basis:
    """The basis in a run's config.json and metrics.json. Raises StorageError for damaged files."""
    path = folder / METRICS
    sections = read_sections(path, slices=False).get("sections", {}) if path.exists() else None
    return basis_from(folder, sections)


def basis_from(folder: Path, sections: Mapping[str, Any] | None) -> Basis:
    """The same from sections of metrics.json that are read already."""
    retriever = known_config(folder).retriever
    requested = retriever.get("requested") or {}
    depths = (requested.get("k") if isinstance(requested, dict) else None, retriever.get("k"))
    depth = next((k for k in depths if isinstance(k, int) and k > 0), None)
    return Basis(depth) if sections is None else basis_of_sections(sections, depth)


def basis_of_sections(sections: Mapping[str, Any], depth: int | None) -> Basis:
    """The same for a run with nothing but its metrics.json."""
    judge = (sections.get("judged", {}).get("options") or {}).get("judge") or {}
    identity = judge.get("identity") or {}
    told = [judge.get(name) for name in ("identity", "prompts", "parameters")]
    return Basis(
        depth,
        msgspec.json.encode(told, order="sorted").decode() if any(told) else "",
        bool(identity) and identity.get("provider") != LOCAL,
        {
            f"{section}.{metric}": text
            for section, part in sections.items()
            for metric, text in part.get("definitions", {}).items()
        },
    )
