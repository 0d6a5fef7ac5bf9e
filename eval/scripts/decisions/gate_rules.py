"""The gates file: what a run must keep beside the built-in rules. Every fault is reported at once.

A table a section holds floors, as in targets.toml. The table [gates] holds the rest:

    [gates]                      require_baseline = true, unlabelled = "skip",
                                 untested = "allow", coverage_drop = 0.02, min_compared = 0.5,
                                 made_for = "eval_set.jsonl"
    [gates.run]                  cost_usd = "<= 1", latency_p95_ms = "<= 3000", cases = ">= 90"
    [gates.coverage]             "retrieval.*" = ">= 0.5"
    [gates.failed]               "*" = "<= 0.02"
    [gates.calibration]          "judged.groundedness" = "kappa >= 0.4", files = ["a.json"]
    [gates.baseline]             "retrieval.recall@5" = "margin 0.05", "*" = "drop 10 %"
    [gates.slices]               "tag.de" = "no fall"
    [[gates.must_pass]]          cases = ["a"], tags = ["critical"], metric = "pipeline.pass"
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from ragmetrics.catalogue import DIMENSIONS
from ragmetrics.catalogue.metric import BY_DOCUMENT
from records.errors import StorageError
from records.targets import (
    BANDS,
    GATES,
    Bound,
    MetricName,
    Target,
    parse_target,
    read_sections,
)
from records.toml_files import KeyPath, Parsed, open_file

FILES = "files"
"""Key of [gates.calibration] that names no metric: where stored calibrations lie."""

STAGES = "retrieve|generate|guardrail_input|guardrail_output|total"

RUN = re.compile(
    rf"cases|errors|error_share|unreadable|cost_usd|cost_per_case_usd|tokens|tokens_per_case"
    rf"|latency_(({STAGES})_)?(p50|p95|p99|max)_ms"
)

OF_RUN = ("cases", "errors", "error_share", "unreadable")
"""Numbers in the head of metrics.json."""

RUN_NAMES = (
    "cases, errors, error_share, unreadable, cost_usd, cost_per_case_usd, tokens, "
    "tokens_per_case, latency_p95_ms, latency_generate_p95_ms"
)

WILD = set("*?[")

_Files = Annotated[
    list[str], Meta(description='write a list of files, such as ["calibration.json"]')
]

BUILT_IN_RULES = "built-in rules"
"""The name of the rules that need no file."""


Basis = Literal["floor", "run", "coverage", "failed", "calibration", "baseline"]
"""A rule is on a mean, a number of the run, the share of scored or of failed cases, the calibration
of a judge, or the change from the baseline."""


@dataclass(frozen=True, slots=True)
class GateRule:
    """One rule of a gates file. ``name``: of a metric, ``section.metric`` or a pattern of such, or
    of a number of the run. ``must``: operator and bound. ``line``: of the file."""

    basis: Basis
    name: str
    must: Target | AgainstBase | Calibrated
    line: int | None = None

    @property
    def section(self) -> str:
        """The section that it names, or a pattern of such."""
        return self.name.partition(".")[0]

    @property
    def target(self) -> Target:
        """Operator and bound of a rule on a number."""
        assert isinstance(self.must, Target)
        return self.must

    @property
    def fall(self) -> AgainstBase:
        """Operator and bound of a rule on the change from the baseline."""
        assert isinstance(self.must, AgainstBase)
        return self.must


@dataclass(frozen=True)
class GateRules:
    """All gates of a file; ``lines``: where each stands. ``calibrations``: files that hold one.

    ``path`` None: no file, only what is built in.
    """

    path: Path | None
    rules: Sequence[GateRule] = ()
    calibrations: Sequence[Path] = ()
    must_pass: Sequence[MustPass] = ()
    slices: Sequence[str] = ()
    """Slices that must not have fallen since the baseline, as ``dimension.value``."""
    coverage_drop: float | None = None
    """How much lower the share of scored cases may be; None: a change of what is not applicable is
    no failure."""
    min_compared: float = 0.5
    """The share of cases that must not have changed since the baseline."""
    require_baseline: bool = False
    skip_unlabelled: bool = False
    """Rules without labels in the set are skipped, not failed."""
    allow_untested: bool = False
    """Whether a primary metric that cannot be tested may pass."""
    made_for: str = ""
    """Path of the eval set that the rules were written for: of another set only the built-in rules
    count. "" where the file does not say."""
    allow_missing: int = 0
    """Cases that may lack a result; said on the command line, never in the file."""
    allow_stopped: bool = False
    """Whether a run that was stopped may pass; said on the command line, too."""
    lines: Mapping[KeyPath, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the file, for a reader."""
        return BUILT_IN_RULES if self.path is None else self.path.name

    @property
    def empty(self) -> bool:
        return not (self.rules or self.must_pass or self.slices)

    def on(self, *bases: Basis) -> list[GateRule]:
        """The rules on some bases, in the order of the file."""
        return [rule for basis in bases for rule in self.rules if rule.basis == basis]

    def of_baseline(self, name: str) -> GateRule | None:
        """The rule on the change of ``section.metric``: of the name itself, else of the longest
        pattern, of metrics by document none."""
        rules = {rule.name: rule for rule in self.on("baseline")}
        if name in rules or name.endswith(BY_DOCUMENT):
            return rules.get(name)
        fits = [glob for glob in rules if fnmatchcase(name, glob)]
        return rules[max(fits, key=len)] if fits else None

    def within(self, sections: set[str]) -> GateRules:
        """The rules that some sections can answer; times and cost come from the pipeline's."""

        def fits(section: str) -> bool:
            return section in {*sections, "run"} or bool(set(section) & WILD)

        def answered(rule: GateRule) -> bool:
            if rule.basis == "run":
                return rule.name in OF_RUN or fits("pipeline")
            return rule.section in sections if rule.basis == "floor" else fits(rule.section)

        must_pass = [r for r in self.must_pass if not r.metric or fits(r.metric.partition(".")[0])]
        return replace(self, rules=list(filter(answered, self.rules)), must_pass=must_pass)

    def named(self) -> Iterator[str]:
        """The sections that rules name outright."""
        for rule in self.on("floor", "coverage", "failed", "calibration", "baseline"):
            if rule.basis == "floor" or not set(rule.section) & WILD:
                yield rule.section
        yield from (rule.metric.partition(".")[0] for rule in self.must_pass if rule.metric)


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


class MustPass(msgspec.Struct, frozen=True):
    """Cases, by id or tag, whose every answer must keep ``target``, else the metric's good end.
    Without a metric ("") they must not fail, see ``decisions/case_verdict.py``."""

    metric: MetricName = ""
    cases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    target: Bound | None = msgspec.field(default=None, name="score")

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yields the faults of a rule whose keys are right one by one, as key path and clause."""
        if not self.cases and not self.tags:
            yield ("cases",), "names no case; write cases = [ids] or tags = [tags]"
        elif self.target and not self.metric:
            yield ("score",), 'write metric = "section.metric" with it'


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A judged metric whose judge was compared with labels of people.

    ``bounds``: figures of the calibration whose 95 % interval must lie within each bound.
    """

    bounds: tuple[tuple[str, Target], ...] = ()

    def __str__(self) -> str:
        return ", ".join(f"{name} {target}" for name, target in self.bounds) or "calibrated"


def against(text: object) -> AgainstBase:
    """A rule such as ``"drop 10 %"``, ``"margin 0.05"`` or ``"regression"``; else ValueError."""
    words: Any = text.strip().lower() if isinstance(text, str) else ""
    if words in ("regression", "none"):
        return AgainstBase(words)
    match = _DROP.fullmatch(words)
    if match is None or (match[1] == "margin" and match[3]):
        raise ValueError(f"{text!r} is no rule; write {DROP_FORM}")
    kind: Kind = "drop" if match[1] == "drop" else "margin"
    return AgainstBase(kind, float(match[2]) / (100 if match[3] else 1), bool(match[3]))


def calibrated(text: object) -> Calibrated:
    """``"calibrated"``, or bounds such as ``"kappa >= 0.4, auroc > 0.8"``; else ValueError."""
    if isinstance(text, str) and text.strip().lower() == "calibrated":
        return Calibrated()
    parts = text.split(",") if isinstance(text, str) else [""]
    bounds = []
    for match in map(_FIGURE.fullmatch, parts):
        target = None if match is None else parse_target(match[2])
        if match is None or target is None:
            raise ValueError(f"{text!r} is no rule; write {CALIBRATED_FORM}")
        bounds.append((match[1], target))
    return Calibrated(tuple(bounds))


def _run_name(name: str) -> str:
    if RUN.fullmatch(name):
        return name
    raise ValueError(f"is unknown; there are: {RUN_NAMES}")


def _slice_name(name: str) -> str:
    dimension, dot, value = name.partition(".")
    if dot and value and dimension in DIMENSIONS:
        return name
    raise ValueError(f"is no slice; write one as {DIMENSIONS[3]}.VALUE, of {', '.join(DIMENSIONS)}")


class _Gates(msgspec.Struct):
    """The table [gates], as the file has it."""

    run: dict[Annotated[str, Parsed(_run_name)], Bound] = {}
    coverage: dict[str, Bound] = {}
    failed: dict[str, Bound] = {}
    calibration: dict[str, Annotated[Calibrated, Parsed(calibrated)]] = {}
    baseline: dict[str, Annotated[AgainstBase, Parsed(against)]] = {}
    slices: dict[Annotated[str, Parsed(_slice_name)], Literal["no fall"]] = {}
    must_pass: list[MustPass] = []
    coverage_drop: Annotated[float, Meta(ge=0, le=1)] | None = None
    min_compared: Annotated[float, Meta(ge=0, le=1)] = GateRules.min_compared
    require_baseline: bool = False
    unlabelled: Literal["fail", "skip"] = "fail"
    untested: Literal["fail", "allow"] = "fail"
    made_for: str = ""


def read_rules(path: Path) -> GateRules:
    """Read a gates file. Raises StorageError naming every fault, its line and the remedy."""
    raw, reader = open_file(path, "eval/gates.toml is an example")
    table = raw.get(GATES, {})
    calibration = table.get("calibration") if isinstance(table, dict) else None
    named = calibration.pop(FILES, []) if isinstance(calibration, dict) else []
    floors = read_sections(reader, raw)
    files = reader.read(named, _Files, (GATES, "calibration", FILES))
    if isinstance(table, dict):
        gates = reader.read(table, _Gates, (GATES,))
    reader.end()
    lines = reader.lines
    rules = [
        GateRule("floor", f"{section}.{name}", target, lines.get((section, name)))
        for section, targets in floors.items()
        for name, target in (targets.items() if section != BANDS else ())
    ]
    for basis in get_args(Basis)[1:]:
        rules += [
            GateRule(basis, name, must, lines.get((GATES, basis, name)))
            for name, must in getattr(gates, basis).items()
        ]
    if not rules and not gates.must_pass and not gates.slices and GATES not in raw:
        raise StorageError(
            f'{path}: holds no gate; write [retrieval] "recall@5" = "> 0.7", or [gates] alone for '
            "the built-in rules."
        )
    return GateRules(
        path=path,
        rules=rules,
        calibrations=[path.parent / file for file in files],
        must_pass=gates.must_pass,
        slices=list(gates.slices),
        coverage_drop=gates.coverage_drop,
        min_compared=gates.min_compared,
        require_baseline=gates.require_baseline,
        skip_unlabelled=gates.unlabelled == "skip",
        allow_untested=gates.untested == "allow",
        made_for=gates.made_for,
        lines=lines,
    )
