"""The gates file: what a run must keep beside the built-in rules. Every fault is reported at once.

A table a section holds floors, as in targets.toml. The table [gates] holds the rest:

    [gates]                      require_baseline = true, unlabelled = "skip",
                                 untested = "allow", coverage_drop = 0.02,
                                 made_for = "eval_set.jsonl"
    [gates.run]                  cost_usd = "<= 1", latency_p95_ms = "<= 3000", cases = ">= 90"
    [gates.coverage]             "retrieval.*" = ">= 0.5"
    [gates.failed]               "*" = "<= 0.02"
    [gates.calibration]          "judged.groundedness" = "kappa >= 0.4", files = ["a.json"]
    [gates.baseline]             "retrieval.recall@5" = "margin 0.05", "*" = "drop 10 %"
    [[gates.must_pass]]          cases = ["a"], tags = ["critical"], metric = "pipeline.pass"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from ragmetrics.catalogue.metric import BY_DOCUMENT
from records.errors import Problem, StorageError
from records.file_access import MAX_SETTINGS, read_whole
from records.files import read_toml
from records.settings import KeyPath, key_lines
from records.targets import BANDS, GATES, TARGET_FORM, Target, parse_target, parse_targets

PARTS = (
    "run",
    "coverage",
    "failed",
    "calibration",
    "baseline",
    "must_pass",
    "coverage_drop",
    "require_baseline",
    "unlabelled",
    "untested",
    "made_for",
)

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
    coverage_drop: float | None = None
    """How much lower the share of scored cases may be; None: a change of what is not applicable is
    no failure."""
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
        return not (self.rules or self.must_pass)

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


def read_rules(path: Path) -> GateRules:
    """Read a gates file. Raises StorageError naming every fault, its line and the remedy."""
    try:
        raw = read_toml(path)
    except FileNotFoundError:
        raise StorageError(f"{path}: no such file; eval/gates.toml is an example.") from None
    lines = key_lines(read_whole(path, MAX_SETTINGS).decode())
    floors, problems = parse_targets(raw, path)
    floors.pop(BANDS, None)
    table = raw.get(GATES, {})
    reader = _RulesReader(path, lines)
    rules = reader.read(table if isinstance(table, dict) else {}, floors)
    faults = [*(reader.placed(problem) for problem in problems), *reader.problems]
    if faults:
        raise StorageError.from_problems(sorted(faults, key=lambda problem: problem.line or 0))
    if rules.empty and GATES not in raw:
        raise StorageError(
            f'{path}: holds no gate; write [retrieval] "recall@5" = "> 0.7", or [gates] alone for '
            "the built-in rules."
        )
    return rules


class _RulesReader:
    """Reads [gates]; collects what is wrong with it."""

    def __init__(self, path: Path, lines: Mapping[KeyPath, int]) -> None:
        self.path = path
        self.lines = lines
        self.problems: list[Problem] = []

    def wrong(self, key_path: KeyPath, message: str) -> None:
        """One fault, under ``[table] key``."""
        shown = (
            f"[{'.'.join(key_path[:-1])}] {key_path[-1]}"
            if len(key_path) > 1
            else f"[{key_path[0]}]"
        )
        line = self.lines.get(key_path) or self.lines.get(key_path[:-1])
        self.problems.append(Problem(str(self.path), line, shown, message))

    def placed(self, problem: Problem) -> Problem:
        """A problem of a floor, with its line."""
        section, _, name = problem.field.removeprefix("[").partition("] ")
        line = self.lines.get((section, name) if name else (section,))
        return Problem(problem.path, line, problem.field, problem.message)

    def read(
        self, table: Mapping[str, Any], floors: Mapping[str, Mapping[str, Target]]
    ) -> GateRules:
        for name in (name for name in table if name not in PARTS):
            self.wrong((GATES, name), f"is unknown; the parts are: {', '.join(PARTS)}")
        rules = [
            GateRule("floor", f"{section}.{name}", target, self.lines.get((section, name)))
            for section, own in floors.items()
            for name, target in own.items()
        ]
        for basis in _FORMS:
            rules += self._rules(table, basis)
        return GateRules(
            path=self.path,
            rules=rules,
            calibrations=self._files(table),
            must_pass=list(self._must_pass(table.get("must_pass", []))),
            coverage_drop=self._share(table, "coverage_drop"),
            require_baseline=self._flag(table, "require_baseline"),
            skip_unlabelled=self._choice(table, "unlabelled", ("fail", "skip")) == "skip",
            allow_untested=self._choice(table, "untested", ("fail", "allow")) == "allow",
            made_for=self._text(table, "made_for"),
            lines=self.lines,
        )

    def _table(self, table: Mapping[str, Any], part: str) -> Mapping[str, Any]:
        value = table.get(part, {})
        if isinstance(value, dict):
            return value
        self.wrong((GATES, part), f"is no table; write [gates.{part}] and rules under it")
        return {}

    def _rules(self, table: Mapping[str, Any], basis: Basis) -> Iterator[GateRule]:
        """The rules of one table."""
        parse, fault = _FORMS[basis]
        for name, text in self._table(table, basis).items():
            must, key_path = parse(text), (GATES, basis, name)
            if basis == "calibration" and name == FILES:
                continue
            if must is None:
                self.wrong(key_path, f"{text!r} is {fault}")
            elif basis == "run" and not RUN.fullmatch(name):
                self.wrong(key_path, f"is unknown; there are: {RUN_NAMES}")
            else:
                yield GateRule(basis, name, must, self.lines.get(key_path))

    def _files(self, table: Mapping[str, Any]) -> list[Path]:
        """Paths as the gates file means them: from its own folder."""
        named = self._table(table, "calibration").get(FILES, [])
        if isinstance(named, list) and all(isinstance(path, str) for path in named):
            return [self.path.parent / path for path in named]
        message = f'{named!r}: write a list of files, such as ["calibration.json"]'
        self.wrong((GATES, "calibration", FILES), message)
        return []

    def _must_pass(self, tables: object) -> Iterator[MustPass]:
        key_path = (GATES, "must_pass")
        if not isinstance(tables, list) or not all(isinstance(item, dict) for item in tables):
            self.wrong(key_path, "is no list of tables; write [[gates.must_pass]]")
            return
        for number, item in enumerate(tables, 1):
            where = f"item {number}: "
            if unknown := sorted(item.keys() - {"metric", "cases", "tags", "score"}):
                message = f"{', '.join(unknown)}: unknown; write metric, cases, tags and score"
                self.wrong(key_path, where + message)
            metric = item.get("metric", "")
            named = "metric" in item
            if not isinstance(metric, str) or (named and not all(metric.partition("."))):
                self.wrong(key_path, f'{where}metric: {metric!r}: write "section.metric"')
                continue
            lists = [item.get(name, []) for name in ("cases", "tags")]
            if not all(isinstance(x, list) and all(isinstance(y, str) for y in x) for x in lists):
                self.wrong(
                    key_path, f'{where}cases and tags are lists of texts, such as ["a", "b"]'
                )
                continue
            if not any(lists):
                self.wrong(key_path, f"{where}names no case; write cases = [ids] or tags = [tags]")
                continue
            target = parse_target(item.get("score"))
            if "score" in item and target is None:
                self.wrong(key_path, f"{where}score: {item['score']!r} is no bound; {TARGET_FORM}")
                continue
            if target is not None and not named:
                self.wrong(key_path, f'{where}score: write metric = "section.metric" with it')
                continue
            yield MustPass(metric, tuple(lists[0]), tuple(lists[1]), target)

    def _choice(self, table: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str:
        value = table.get(name, choices[0])
        if value not in choices:
            self.wrong((GATES, name), f"{value!r}: write {' or '.join(map(repr, choices))}")
            return choices[0]
        return str(value)

    def _text(self, table: Mapping[str, Any], name: str) -> str:
        value = table.get(name, "")
        if not isinstance(value, str):
            self.wrong((GATES, name), f"{value!r} is no text")
            return ""
        return value

    def _share(self, table: Mapping[str, Any], name: str) -> float | None:
        if name not in table:
            return None
        value = table[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self.wrong((GATES, name), f"{value!r} is no share; write a number from 0 to 1")
            return 0.0
        return float(value)

    def _flag(self, table: Mapping[str, Any], name: str) -> bool:
        value = table.get(name, False)
        if not isinstance(value, bool):
            self.wrong((GATES, name), f"{value!r}: write true or false")
        return value is True


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
    """Cases, by id or tag, whose every answer must keep ``target``, else the metric's good end.
    Without a metric ("") they must not fail, see ``decisions/case_verdict.py``."""

    metric: str
    cases: tuple[str, ...]
    tags: tuple[str, ...]
    target: Target | None


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A judged metric whose judge was compared with labels of people.

    ``bounds``: figures of the calibration whose 95 % interval must lie within each bound.
    """

    bounds: tuple[tuple[str, Target], ...] = ()

    def __str__(self) -> str:
        return ", ".join(f"{name} {target}" for name, target in self.bounds) or "calibrated"


def _parse_against(text: object) -> AgainstBase | None:
    """A rule such as ``"drop 10 %"``, ``"margin 0.05"`` or ``"regression"``; None for others."""
    if not isinstance(text, str):
        return None
    words = text.strip().lower()
    if words == "regression":
        return AgainstBase("regression")
    if words == "none":
        return AgainstBase("none")
    match = _DROP.fullmatch(words)
    if match is None:
        return None
    kind: Kind = "drop" if match[1] == "drop" else "margin"
    size = float(match[2])
    if match[3]:
        return AgainstBase(kind, size / 100, True) if kind == "drop" else None
    return AgainstBase(kind, size)


def _parse_calibrated(text: object) -> Calibrated | None:
    """``"calibrated"``, or bounds such as ``"kappa >= 0.4, auroc > 0.8"``; None for others."""
    if not isinstance(text, str):
        return None
    if text.strip().lower() == "calibrated":
        return Calibrated()
    bounds = []
    for part in text.split(","):
        match = _FIGURE.fullmatch(part)
        target = None if match is None else parse_target(match[2])
        if match is None or target is None:
            return None
        bounds.append((match[1], target))
    return Calibrated(tuple(bounds))


_FORMS: dict[Basis, tuple[Callable[[object], Target | AgainstBase | Calibrated | None], str]] = {
    "run": (parse_target, f"no bound; {TARGET_FORM}"),
    "coverage": (parse_target, f"no bound; {TARGET_FORM}"),
    "failed": (parse_target, f"no bound; {TARGET_FORM}"),
    "calibration": (_parse_calibrated, f"no rule; write {CALIBRATED_FORM}"),
    "baseline": (_parse_against, f"no rule; write {DROP_FORM}"),
}
"""By table of [gates]: how a rule is read, and what is said of what is none."""
