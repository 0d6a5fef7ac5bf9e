"""Does a case fail, and why? The one answer for every screen and file.

An answer fails by the first rule that it breaks (``decisions/case_rules.py``); a case fails when at
least half of those that could be read do. What was not measured gives no reason; a case of which no
answer could be read is neither ok nor fails. Two runs are compared by the rules that both were
measured for, of each case, within the smaller of their depths.
"""

from __future__ import annotations

import operator
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from decisions.case_rules import Basis, CaseRules, basis_of, read_case_rules
from decisions.verdict_counts import BY_RULES, NOT_JUDGED, VerdictCounts
from ragmetrics.catalogue.cases import HARM, OF_SOME_RUNS, RIGHT, UNCERTAIN, CaseRule, harm_of
from ragmetrics.pipeline import ended_words, outcome_words
from records.id_numbers import id_number
from records.run import Run
from records.runs import scored_sections
from records.section_table import SectionTable
from records.targets import Target

if TYPE_CHECKING:
    from records.section_table import Ints

_BREAKS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.lt,
    "<=": operator.gt,
    ">": operator.le,
    "<": operator.ge,
}

UNREADABLE_BIT = 1 << 63
"""Set in what an answer breaks when it could not be read: nothing else counts then."""

_JUDGED_BIT, _UNCERTAIN_BIT = 1 << 62, 1 << 61

NOT_MEASURED = "not measured"
"""The word for a case of which no answer could be read."""


class _Check(NamedTuple):
    """One rule on the values of a section: the places of what it reads, and its bit."""

    column: int
    breaks: Callable[[float, float], bool]
    bound: float
    bit: int
    sets: int
    """Bits that a value sets: that the answer can be called right, that other rules say nothing."""
    also: int
    of: Callable[[float, float], float] | None


class Ruling:
    """Rules, as far as a run (or two) was measured for them.

    What an answer breaks is a number with a bit for each rule, ``broken``; ``settle`` says which of
    them fail it and which warn.
    """

    def __init__(self, rules: CaseRules, basis: Basis) -> None:
        self.case_rules = rules
        self.rules = rules.rules
        self.basis = basis
        self.depth = min(filter(None, (rules.depth, basis.depth)), default=None)
        self.sha256 = rules.sha256
        self._fails = self._warns = self._tells = 0
        self._softened: dict[str, int] = {RIGHT: 0, UNCERTAIN: 0}
        self._overruled: dict[int, int] = {}  # by flag, the bits of the rules that it silences
        self._flags: dict[int, int] = {}
        for place, rule in enumerate(self.rules):
            bit = 1 << place
            by_rules_alone = rule.judged and not basis.trusted
            if rule.level == "warn" or by_rules_alone:
                self._warns |= bit
            else:
                self._fails |= bit
            if rule.softened:
                self._softened[rule.softened] |= bit
            if rule.tells_right and (basis.trusted or not rule.judged):
                self._tells |= bit
            if rule.overrules:
                flag = self._flags[place] = _UNCERTAIN_BIT >> len(self._overruled) + 1
                others = [at for at, other in enumerate(self.rules) if other.name in rule.overrules]
                self._overruled[flag] = sum(1 << other for other in others)
        self._settled: dict[int, tuple[int, int]] = {}

    @cached_property
    def active(self) -> frozenset[int]:
        """The places of the rules whose metrics were measured; all where that is not known."""
        known = self.basis.definitions
        return frozenset(
            place
            for place, rule in enumerate(self.rules)
            if known is None
            or rule.name == "no_response"
            or all(metric in known for metric in rule.metrics)
        )

    @property
    def deciding(self) -> tuple[int, int]:
        """The bits of the rules that can fail a case, and of those that can call it right."""
        active = sum(1 << place for place in self.active)
        return self._fails & active, self._tells & active

    @property
    def gold_within(self) -> int | None:
        """The passages in which a case must have gold; None where all count, and where no rule
        that can fail a case asks for gold."""
        asks = any(rule.ranked for rule in self.rules_of(self.deciding[0]))
        return self.depth if asks else None

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """The unmeasured inputs of the rules, in words: ``not judged by a model``."""
        sections = dict.fromkeys(
            self.rules[place].section
            for place in range(len(self.rules))
            if place not in self.active and self.rules[place].level == "fail"
        )
        known = self.basis.definitions or {}
        scored = {name.partition(".")[0] for name in known}
        scored |= {"judged", *OF_SOME_RUNS}
        words = [f"no {name} scores" for name in sections if name not in scored]
        judged = {place for place, rule in enumerate(self.rules) if rule.judged}
        if judged and not self.basis.trusted:
            words.append(BY_RULES if known and judged & self.active else NOT_JUDGED)
        return tuple(words)

    @property
    def needs(self) -> tuple[str, ...]:
        """The metrics that it reads, as ``section.metric``."""
        return tuple(
            dict.fromkeys(name for place in self.active for name in self.rules[place].metrics)
        )

    @property
    def reads_outcome(self) -> bool:
        """Whether the outcome of a response matters besides the scores."""
        return bool(self._tells and self._softened[UNCERTAIN])

    @cached_property
    def _sections(self) -> dict[str, tuple[tuple[str, ...], tuple[_Check, ...]]]:
        """By section, the metrics to read and the checks on them."""
        sections: dict[str, tuple[list[str], list[_Check]]] = {}
        for place in sorted(self.active):
            rule = self.rules[place]
            names, checks = sections.setdefault(rule.section, ([], []))
            wanted = [metric.partition(".")[2] for metric in rule.metrics]
            names += [name for name in wanted if name not in names]
            told = _JUDGED_BIT if self._tells >> place & 1 else 0
            told |= self._flags.get(place, 0)
            at = [names.index(name) for name in wanted]
            breaks, bound = self._condition(rule)
            checks.append(_Check(at[0], breaks, bound, 1 << place, told, at[-1], rule.of))
        return {name: (tuple(names), tuple(checks)) for name, (names, checks) in sections.items()}

    def _condition(self, rule: CaseRule) -> tuple[Callable[[float, float], bool], float]:
        if rule.ranked and self.depth is not None:
            return operator.lt, (1 - 1e-6) / self.depth  # a score is 1 / rank
        return _BREAKS[rule.sign], rule.bound

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections whose score lines it reads."""
        return tuple(self._sections)

    def names(self, section: str) -> tuple[str, ...]:
        """The metrics of a section whose values ``broken_by`` takes, in this order."""
        return self._sections.get(section, ((), ()))[0]

    def broken_by(self, section: str, values: Sequence[float | None]) -> int:
        """The bits of the rules that the values of one section break."""
        bits = 0
        for place, breaks, bound, bit, told, also, of in self._sections[section][1]:
            value = values[place]
            if value is None:
                continue
            if of is not None:
                other = values[also]
                if other is None:
                    continue
                value = of(value, other)
            bits |= told
            if breaks(value, bound):
                bits |= bit
        return bits

    def broken(self, scores: Answer, *, failed: bool = False, uncertain: bool = False) -> int:
        """The bits of the rules that an answer breaks, from all its scores."""
        if failed:
            return no_response(self)
        bits = _UNCERTAIN_BIT if uncertain else 0
        for section, (names, _) in self._sections.items():
            bits |= self.broken_by(section, [scores.get(f"{section}.{name}") for name in names])
        return bits

    def broken_of_codes(self, table: SectionTable) -> list[int]:
        """The bits of the rules that each code of a section's score lines breaks (see
        ``SectionTable.codes``), as far as they are read. Empty for a section without rules."""
        columns = [table.raw(name) for name in self.names(table.section)]
        rows = zip(*([None if v != v else v for v in column] for column in columns), strict=True)
        bits = [self.broken_by(table.section, values) for values in rows]
        if self.reads_outcome and table.section == "pipeline":
            uncertain = table.of_codes(lambda kind: bool(kind.fact) and kind.fact[0] == UNCERTAIN)
            flags = map(_UNCERTAIN_BIT.__mul__, uncertain)
            bits = list(map(operator.or_, bits, flags))
        return bits

    def missing_of_codes(self, table: SectionTable) -> Ints:
        """The bits of the rules that each code of a section's score lines has no value for."""
        import numpy as np

        names, checks = self._sections.get(table.section, ((), ()))
        without = [np.isnan(np.array(table.raw(name))) for name in names]
        bits = np.zeros(len(table.kind_of), np.int64)
        for check in checks:
            bits[without[check.column] | without[check.also]] |= check.bit
        return bits

    def settle(self, broken: int) -> tuple[int, int]:
        """The bits that fail an answer, and those that warn; none of one that was not read."""
        if broken & UNREADABLE_BIT:
            return 0, 0
        if (settled := self._settled.get(broken)) is None:
            silent = sum(others for flag, others in self._overruled.items() if broken & flag)
            counted = broken & ~silent
            fails, warns = counted & self._fails, counted & self._warns
            if counted & _JUDGED_BIT and not counted & self._tells:
                soft = self._softened[RIGHT]
                if counted & _UNCERTAIN_BIT:
                    soft |= self._softened[UNCERTAIN]
                fails, warns = fails & ~soft, warns | fails & soft
            settled = self._settled[broken] = fails, warns
        return settled

    def keeps(self, metric: str) -> Target | None:
        """The condition of a rule on a metric (``section.metric``); None without a rule."""
        rules = (rule for rule in self.rules if rule.metric == metric and not rule.ranked)
        return next((Target(rule.sign, rule.bound) for rule in rules), None)

    def rules_of(self, bits: int) -> tuple[CaseRule, ...]:
        """The rules of some bits, in their order."""
        return tuple(rule for place, rule in enumerate(self.rules) if bits >> place & 1)

    def harm(self, broken: int) -> int:
        """The place of an answer in the order of harm, by the reason that lists show."""
        reason = self.first(broken)
        return len(HARM) + 1 if reason is None else harm_of(reason.name)

    def first(self, broken: int) -> CaseRule | None:
        """The rule by which an answer fails; None when it does not."""
        fails = self.settle(broken)[0]
        return self.rules[(fails & -fails).bit_length() - 1] if fails else None

    def sentence(
        self,
        rule: CaseRule,
        values: Mapping[str, float | None],
        evidence: Mapping[str, Any] | None = None,
        before: Mapping[str, float | None] | None = None,
    ) -> str:
        """Why an answer breaks a rule. ``values``: by ``section.metric``, ``before``: those of
        another run; ``evidence``: of the score line of the rule's section, as plain data."""
        given = [values.get(name) for name in rule.metrics]
        value = given[0]
        if rule.of is not None and value is not None and given[1] is not None:
            value = rule.of(value, given[1])
        if rule.ranked and (old := (before or {}).get(rule.metric)):
            now = f"is now at rank {round(1 / value)}" if value else "is now missing"
            return f"the right passage was at rank {round(1 / old)} and {now}"
        text = rule.says
        if value is None:
            text = text.replace("{value} ", "a ")
        depth = "was retrieved" if self.depth is None else f"within the first {self.depth}"
        text = text.replace("{value}", "–" if value is None else f"{value:.3g}").replace(
            "{depth}", depth
        )
        text = text.replace("{s}", "" if value in (None, 1) else "s")
        if rule.ranked and value and self.depth is not None:
            text += f", the first one is at rank {round(1 / value)}"
        if details := _details(rule, evidence or {}):
            text = details if rule.evidence == "outcome" else f"{text}: {details}"
        return text

    def fact(
        self,
        rule: CaseRule,
        values: Mapping[str, float | None],
        evidence: Mapping[str, Any],
        before: Mapping[str, float | None] | None = None,
    ) -> str:
        """The same in a few words: ``gold 9 → none``, ``flagged as unsure, not answered``."""
        if rule.ranked and (old := (before or {}).get(rule.metric)):
            value = values.get(rule.metric)
            return f"gold {round(1 / old)} → {round(1 / value) if value else 'none'}"
        if rule.evidence == "outcome" and evidence.get("expected"):
            ended = ended_words(evidence.get("outcome"))
            return f"{ended}, not {ended_words(evidence['expected'])}"
        return rule.word


def _details(rule: CaseRule, evidence: Mapping[str, Any]) -> str:
    """The facts behind a broken rule, as the score line names them; "" without any."""
    if rule.evidence == "outcome" and evidence.get("expected"):
        return outcome_words(evidence.get("outcome"), evidence["expected"])
    found = evidence.get(rule.evidence) if rule.evidence else None
    if isinstance(found, Mapping):
        found = found.get("fabricated")
    return ", ".join(map(str, found)) if isinstance(found, list) else ""


# -- one case -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """Whether a case fails, and why. ``reasons``: the rules that fail its first failing answer, the
    most harmful first; ``warnings``: those that only warn. ``unstable``: its answers differ.
    ``answers``: those that could be read; ``unreadable``: the others."""

    answers: int
    failing: int
    reasons: tuple[CaseRule, ...] = ()
    warnings: tuple[CaseRule, ...] = ()
    unreadable: int = 0

    @property
    def measured(self) -> bool:
        """False when none of its answers could be read."""
        return bool(self.answers)

    @property
    def fails(self) -> bool:
        """True when at least half of its answers fail."""
        return bool(self.failing) and 2 * self.failing >= self.answers

    @property
    def unstable(self) -> bool:
        return 0 < self.failing < self.answers

    @property
    def word(self) -> str:
        """``ok``, ``fails: no gold``, or with ``unstable`` behind it; ``not measured``."""
        if not self.measured:
            return NOT_MEASURED
        text = f"fails: {self.reasons[0].word}" if self.fails else "ok"
        return f"{text}, unstable" if self.unstable else text


Key = tuple[str, int]
"""Case id and repeat: what names an answer."""

Answer = Mapping[str, float | None]
"""The scores of one answer by ``section.metric``; an unmeasured score is None or missing."""


def judge_case(
    answers: Sequence[Answer],
    ruling: Ruling,
    *,
    failed: Collection[int] = (),
    uncertain: Collection[int] = (),
) -> CaseVerdict:
    """The verdict on one case from the scores of its answers (repeats).

    ``failed``: places of the answers whose call failed; ``uncertain``: of those with the outcome
    ``uncertain``.
    """
    broken = [
        ruling.broken(scores, failed=place in failed, uncertain=place in uncertain)
        for place, scores in enumerate(answers)
    ]
    return _verdict(broken, ruling)


def no_response(ruling: Ruling) -> int:
    """The bit of the rule that a failed call breaks; 0 where that rule is off."""
    return sum(1 << at for at, rule in enumerate(ruling.rules) if rule.name == "no_response")


def _verdict(broken: Sequence[int], ruling: Ruling) -> CaseVerdict:
    settled = [ruling.settle(bits) for bits in broken if not bits & UNREADABLE_BIT]
    failing = [fails for fails, _ in settled if fails]
    warns = 0
    for _, bits in settled:
        warns |= bits
    return CaseVerdict(
        len(settled),
        len(failing),
        ruling.rules_of(failing[0]) if failing else (),
        ruling.rules_of(warns),
        len(broken) - len(settled),
    )


# -- a run --------------------------------------------------------------------------------------


class RunVerdicts:
    """The verdict on every case of a run, in a few bytes an answer.

    Score lines are taken section by section; within a section the lines of a case stand together.
    """

    def __init__(self, ruling: Ruling) -> None:
        self.ruling = ruling
        self.broken = array("Q")
        """By answer, what it breaks: ``Ruling.settle`` says which of it fails."""
        self._answers: dict[tuple[int, int], int] = {}
        """The number of each answer, by the number of its case's id and its repeat."""
        self._cases: dict[int, int] = {}
        """The number of each case, by the hash of its id."""
        self._case_of = array("i")
        self._failed_bit = no_response(ruling)
        self.unknown: dict[int, int] = {}
        """By the number of a case, the bits of the rules on what no one knows of its answers."""
        self._reads_outcome = ruling.reads_outcome
        self._has_repeats = False

    def number(self, case: int, repeat: int) -> int:
        """The number of an answer by the number of its case's id and the number of its repeat; an
        unseen answer gets a new one."""
        answer = self._answers.setdefault((case, repeat), len(self.broken))
        if answer == len(self.broken):
            self._case_of.append(self._cases.setdefault(case, len(self._cases)))
            self.broken.append(0)
            self._has_repeats = self._has_repeats or repeat > 0
        return answer

    def find(self, key: Key) -> int | None:
        """The number of an answer; None for one that is not known."""
        return self._answers.get((id_number(key[0]), key[1]))

    def key_of(self, answer: int) -> tuple[int, int]:
        """The number of the case's id and the number of the repeat of an answer."""
        return self._keys[answer]

    @cached_property
    def _keys(self) -> Sequence[tuple[int, int]]:
        return list(self._answers)  # an answer's number is its place

    def take_table(self, table: SectionTable) -> Ints | slice:
        """The lines of a section. Returns the numbers of their answers, or what they are among the
        numbers of all."""
        import numpy as np

        failed = np.fromiter(table.of_codes(operator.attrgetter("failed")), bool)
        bits = np.zeros(len(failed), "Q")
        bits[:] = self.ruling.broken_of_codes(table) or 0
        bits[failed] = self._failed_bit
        bits[np.fromiter(table.of_codes(operator.attrgetter("unreadable")), bool)] = UNREADABLE_BIT
        answers = self._answers_of(table)
        lacking = np.fromiter(table.of_codes(operator.attrgetter("unknown")), bool)
        if lacking.any():
            unknown = np.where(lacking, self.ruling.missing_of_codes(table), 0)[table.codes]
            numbers = np.arange(len(self.broken))[answers][unknown > 0].tolist()
            for number, rules in zip(numbers, unknown[unknown > 0].tolist(), strict=True):
                case = self._case_of[number]
                self.unknown[case] = self.unknown.get(case, 0) | rules
        broken = np.frombuffer(self.broken, "Q")
        if isinstance(answers, slice):
            broken[answers] |= bits[table.codes]
        else:
            np.bitwise_or.at(broken, answers, bits[table.codes])
        return answers

    def _answers_of(self, table: SectionTable) -> Ints | slice:
        """The number of the answer of each line, new ones where they are first seen."""
        import numpy as np

        cases = table.ids[table.line_cases]
        if len(cases) == table.cases and not table.repeats.any() and not self._has_repeats:
            if np.array_equal(cases, np.fromiter(self._cases, np.int64, len(self._cases))):
                return slice(len(cases))  # the usual: a section of the same answers
            if not len(self._cases):
                self._cases = {case: number for number, case in enumerate(cases.tolist())}
                self._answers = {(case, 0): number for case, number in self._cases.items()}
                self._case_of.extend(range(len(cases)))
                self.broken.frombytes(bytes(8 * len(cases)))
                return slice(len(cases))
        pairs = zip(cases.tolist(), table.repeats.tolist(), strict=True)
        return np.array([self.number(case, repeat) for case, repeat in pairs], np.int32)

    @property
    def cases(self) -> int:
        """How many cases there are."""
        return len(self._cases)

    @property
    def ids(self) -> Sequence[int]:
        """The number of each case's id, in the order of the files."""
        return list(self._cases)

    def find_case(self, case: int) -> int | None:
        """The number of a case by that of its id."""
        return self._cases.get(case)

    def broken_of(self, key: Key) -> int:
        """The rules that one answer breaks; 0 for an unknown one."""
        answer = self.find(key)
        return 0 if answer is None else self.broken[answer]

    def fails(self, key: Key) -> bool | None:
        """Whether one answer fails; None for one that the run does not have or that could not be
        read."""
        answer = self.find(key)
        if answer is None or self.broken[answer] & UNREADABLE_BIT:
            return None
        return bool(self.ruling.settle(self.broken[answer])[0])

    def by_case(self) -> Iterator[Sequence[int]]:
        """The rules that the answers of each case break, case by case in their order."""
        if len(self._cases) == len(self.broken):
            return ((bits,) for bits in self.broken)
        return iter(self._groups)

    @cached_property
    def _groups(self) -> Sequence[Sequence[int]]:
        """The same for repeats, to look up by the number of a case."""
        groups: list[list[int]] = [[] for _ in range(len(self._cases))]
        for case, bits in zip(self._case_of, self.broken, strict=True):
            groups[case].append(bits)
        return groups

    def verdicts(self) -> Iterator[CaseVerdict]:
        """The verdict on each case, in the order of the files."""
        known = {
            broken: _verdict(broken, self.ruling) for broken in set(map(tuple, self.by_case()))
        }
        return (known[tuple(broken)] for broken in self.by_case())

    def measured(self) -> Iterator[tuple[int, CaseVerdict]]:
        """The number of the id and the verdict of each case that has a readable answer."""
        cases = zip(self.ids, self.verdicts(), strict=True)
        return ((case, verdict) for case, verdict in cases if verdict.measured)

    def verdict(self, case_id: str) -> CaseVerdict | None:
        """The verdict on one case; None for one that the run has no score line of."""
        case = self.find_case(id_number(case_id))
        return None if case is None else self.verdict_without(case, 0)

    def verdict_without(self, case: int, rules: int) -> CaseVerdict:
        """The verdict on one case, by its number, as if some rules did not exist."""
        single = len(self._cases) == len(self.broken)
        broken = (self.broken[case],) if single else self._groups[case]
        return _verdict([bits & ~rules for bits in broken], self.ruling)

    def counts(self) -> VerdictCounts:
        """How many cases fail, and why."""
        times: Counter[CaseVerdict] = Counter()
        for broken, n in Counter(map(tuple, self.by_case())).items():
            times[_verdict(broken, self.ruling)] += n
        failing = {verdict: n for verdict, n in times.items() if verdict.fails}
        reasons: Counter[str] = Counter()
        warnings: Counter[str] = Counter()
        for verdict, n in times.items():
            if verdict.fails:
                reasons[verdict.reasons[0].name] += n
            for rule in verdict.warnings:
                warnings[rule.name] += n
        return VerdictCounts(
            self.cases,
            sum(failing.values()),
            sum(n for verdict, n in times.items() if verdict.warnings and not verdict.fails),
            sum(n for verdict, n in times.items() if verdict.unstable),
            dict(reasons.most_common()),
            dict(warnings.most_common()),
            self.ruling.unmeasured,
            self.ruling.depth,
            {rule.name: rule.counted for rule in self.ruling.rules},
            sum(n for verdict, n in times.items() if not verdict.measured),
        )


def read_verdicts(
    folder: Path,
    rules: CaseRules | None = None,
    basis: Basis | None = None,
    table: Run | None = None,
) -> RunVerdicts:
    """The verdicts of a run, from its score lines. ``basis``: what it shares with another run;
    ``table``: what was read of it.

    Raises StorageError for damaged files.
    """
    ruling = Ruling(rules or read_case_rules(), basis or basis_of(folder))
    run, table = RunVerdicts(ruling), table or Run(folder)
    scored = set(scored_sections(folder))
    for section in ruling.sections:
        if section in scored:
            run.take_table(table.section(section))
    return run
