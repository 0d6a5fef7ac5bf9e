"""Which cases broke between two runs, which were fixed, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from decisions.case_lines import CommittedVerdicts
from decisions.case_rules import CaseRules, basis_of, read_case_rules
from decisions.case_verdict import CaseVerdict, Key, Ruling, RunVerdicts, read_verdicts
from decisions.change import range_of
from decisions.pairing import places_of
from decisions.same_cases import align_folders
from ragmetrics.catalogue.cases import HARM, CaseRule, harm_of
from records.id_numbers import id_number, id_of
from records.results import UNREADABLE
from records.run import Run, Runs
from records.runs import METRICS, scored_sections
from records.scores import ScoreLine
from terminal.tables import counted

if TYPE_CHECKING:
    from records.section_table import Ints

Ways = Literal["broke", "fixed", "fails still", "ok still"]

WAYS: Mapping[tuple[bool, bool], Ways] = {
    (False, True): "broke",
    (True, False): "fixed",
    (True, True): "fails still",
    (False, False): "ok still",
}
"""The ways a case can change, by whether it failed before and fails now."""


def ways_of(before: Mapping[Any, bool], after: Mapping[Any, bool]) -> dict[Any, Ways]:
    """The way each shared case changed, from the failing cases of both runs."""
    return {case: WAYS[before[case], fails] for case, fails in after.items() if case in before}


_UNREAD = "in one of the runs no answer could be read"

CHANGES: tuple[Ways, ...] = ("broke", "fixed")

MOST_READ = 2_000
"""Changed cases up to which their answers are read, to put those that are the same last."""

_WORDS = tuple(WAYS.values())

_CODES = {key: code for code, key in enumerate(WAYS)}

_ALONE, _NOT_MEASURED = len(_WORDS), len(_WORDS) + 1


@dataclass(frozen=True, slots=True)
class CaseFlip:
    """A case that broke or was fixed. ``reasons``: why it fails now, or why it failed before;
    ``fact``: the first of them in a few words."""

    case_id: str
    way: Ways
    reasons: tuple[str, ...] = ()
    fact: str = ""


class Deeper(NamedTuple):
    """Of the two runs the one that asked for more passages. ``depth``: how many. ``cases``: those
    that fail in both within the smaller number and pass in it within its own."""

    run: str
    depth: int
    cases: int


@dataclass(frozen=True, slots=True)
class CaseFlips:
    """The changes of the cases that two runs share: how many, and those that changed.

    ``depth``: the passages in which gold counted; None where no run tells, and where no case must
    have gold. ``deeper``: what that hides of the run that asked for more. ``unmeasured``: what
    could not count, in words. ``unknown``: why nothing can be told, then all counts are 0.
    ``unreadable``: shared cases that a run has no readable answer to; no count has them.
    """

    counts: Mapping[Ways, int]
    changed: tuple[CaseFlip, ...] = ()
    depth: int | None = None
    deeper: Deeper | None = None
    unmeasured: tuple[str, ...] = ()
    unknown: str = ""
    unreadable: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        if self.unknown:
            return {"unknown": self.unknown, "changed": []}
        return {
            **{way.replace(" ", "_"): count for way, count in self.counts.items()},
            "depth": self.depth,
            **({"deeper": self.deeper._asdict()} if self.deeper else {}),
            **({UNREADABLE: self.unreadable} if self.unreadable else {}),
            "unmeasured": list(self.unmeasured),
            "changed": [asdict(case) for case in self.changed],
        }

    def _depth_said(self) -> str:
        passages = "the first passage" if self.depth == 1 else f"the first {self.depth} passages"
        within = f"gold must be among {passages}"
        if self.deeper is None:
            return within
        run, depth, cases = self.deeper
        more = f"{cases:,} of those that still fail {'passes' if cases == 1 else 'pass'}"
        return f"{within} of both runs; {more} in {run} by its passages up to {depth}"

    def says(self) -> str:
        """All of it in one sentence: ``Of 146 cases 8 broke and 2 were fixed; …``."""
        if self.unknown:
            return f"Which cases broke is unknown: {self.unknown}."
        broke, fixed, fails, fine = (self.counts[way] for way in WAYS.values())
        total = counted(sum(self.counts.values()), "case")
        if self.unreadable and not any(self.counts.values()):
            return f"No case is compared: {_UNREAD}."
        text = f"Of {total} {broke:,} broke and {fixed:,} {'was' if fixed == 1 else 'were'} fixed"
        text += f"; {fails:,} still {'fails' if fails == 1 else 'fail'}, {fine:,} still ok"
        notes = [] if self.depth is None else [self._depth_said()]
        notes += self.unmeasured
        text += f" ({'; '.join(notes)})." if notes else "."
        if not self.unreadable:
            return text
        verb = "is" if self.unreadable == 1 else "are"
        return f"{text} {counted(self.unreadable, 'case')} {verb} not compared: {_UNREAD}."


class PairVerdicts:
    """Two runs by the rules that both were measured for, within the smaller of their depths.

    ``tables``: what was read of the two. ``committed``: of the base there is metrics.json alone.
    ``unknown``: why nothing can be told, in words. ``changed``: cases that are not the same in both
    runs, which count as if base lacked them. ``own``: ``base`` or ``new``, the one that asked for
    more passages, judged by all of them.
    """

    def __init__(
        self,
        base: RunVerdicts,
        new: RunVerdicts,
        tables: tuple[Run, Run],
        *,
        committed: bool = False,
        unknown: str = "",
        changed: Collection[str] = (),
        own: tuple[str, RunVerdicts] | None = None,
    ) -> None:
        self.base, self.new, self._own = base, new, own
        self._changed = frozenset(map(id_number, changed))
        self.base_table, self.new_table = tables
        self.committed, self.unknown = committed, unknown
        self.ruling = new.ruling
        self.lacking = 0
        """Cases that are compared by fewer rules, known once they are."""

    @cached_property
    def _codes(self) -> bytearray:
        """For each case of the new run the place in ``WAYS``; ``_ALONE`` where base lacks it,
        ``_NOT_MEASURED`` where a run has no answer to it that could be read."""
        import numpy as np

        runs = self.base, self.new
        before, now = (np.fromiter((v.fails for v in run.verdicts()), bool) for run in runs)
        read = [np.fromiter((v.measured for v in run.verdicts()), bool) for run in runs]
        known, ids = (np.array(run.ids, np.int64) for run in runs)
        places = places_of(ids, known)
        for case, (old, rules) in self._unknown(places).items():
            before[old] = self.base.verdict_without(old, rules).fails
            now[case] = self.new.verdict_without(case, rules).fails
        codes = np.full(len(ids), _ALONE, np.uint8)
        for (failed, fails), code in _CODES.items():
            codes[(places >= 0) & (np.append(before, False)[places] == failed) & (now == fails)] = (
                code
            )
        codes[(places >= 0) & ~(np.append(read[0], False)[places] & read[1])] = _NOT_MEASURED
        codes[np.isin(ids, np.array([*self._changed], np.int64))] = _ALONE
        return bytearray(codes)

    def _unknown(self, places: Ints) -> dict[int, tuple[int, int]]:
        """By the number of a case in the new run, its number in base, and the bits of the rules on
        what no one knows of its answers in one of the two."""
        rules = {case: bits for case, bits in self.new.unknown.items() if places[case] >= 0}
        if self.base.unknown:
            for case, old in enumerate(places.tolist()):
                if bits := self.base.unknown.get(old, 0):
                    rules[case] = rules.get(case, 0) | bits
        self.lacking = len(rules)
        return {case: (int(places[case]), bits) for case, bits in rules.items()}

    def __bool__(self) -> bool:
        """Whether the runs have any case in common."""
        return len(self._codes) > self._codes.count(_ALONE)

    def way(self, case_id: str) -> Ways | None:
        """The way a case changed; None where a run lacks it or could not be read there."""
        case = self.new.find_case(id_number(case_id))
        code = _ALONE if case is None else self._codes[case]
        return None if code >= _ALONE else _WORDS[code]

    def few_words(self, case_id: str) -> str:
        """Why a case fails now, or failed before it was fixed, for a column: ``no gold``; where the
        first gold moved, its ranks."""
        way, id_of_case = self.way(case_id), id_number(case_id)
        verdict = (self.base if way == "fixed" else self.new).verdict(case_id)
        if way is None or verdict is None or not verdict.reasons:
            return ""
        rule = verdict.reasons[0]
        before, now = (found.get(id_of_case) for found in self._first_gold)
        if rule.ranked and before != now:
            return rank_change(before, now)
        return f"was: {rule.word}" if way == "fixed" else rule.word

    @cached_property
    def _first_gold(self) -> tuple[dict[int, float], dict[int, float]]:
        """In both runs 1 / rank of the first gold passage, by the number of the case's id; 0 where
        there is none, not there where that is not known."""
        base, new = (_first_gold(table, self.ruling) for table in (self.base_table, self.new_table))
        return base, new

    def ids(self, way: Ways, most: int) -> dict[int, Ways]:
        """The numbers of the ids of cases that changed this way, the most harmful first.

        By the reason that a case fails by, then by the greatest difference of a score, then in
        set order; a case whose answer is word for word the same comes last.
        """
        code, ids = _WORDS.index(way), self.new.ids
        own = [ids[case] for case, found in enumerate(self._codes) if found == code]
        side = self.base if way == "fixed" else self.new
        keys = {
            number: (
                number in self._same_answers,
                _harm(side.verdict(id_of(number))),
                -self._differences.get(number, 0.0),
            )
            for number in own
        }
        return dict.fromkeys(sorted(own, key=keys.__getitem__)[:most], way)

    @cached_property
    def _same_answers(self) -> frozenset[int]:
        """The numbers of the ids of changed cases whose first answer is the same text in both."""
        flipped = (_WORDS.index(way) for way in CHANGES)
        codes = {*flipped}
        own = [id_of(n) for n, code in zip(self.new.ids, self._codes, strict=True) if code in codes]
        if self.committed or len(own) > MOST_READ:
            return frozenset()
        before, now = (
            {r.test_case_id: r.answer for r in table.answers_of(own) if not r.repeat}
            for table in (self.base_table, self.new_table)
        )
        same = (c for c, answer in now.items() if answer and answer == before.get(c))
        return frozenset(map(id_number, same))

    @cached_property
    def _differences(self) -> dict[int, float]:
        """By the number of a case's id, the greatest difference of a score that a rule reads, as a
        share of its range."""
        largest: dict[int, float] = {}
        for rule in self.ruling.rules:
            name, _, metric = rule.metric.partition(".")
            tables = self.base_table, self.new_table
            if self.committed or any(name not in scored_sections(t.folder) for t in tables):
                continue
            sides = [
                dict(zip(own.ids.tolist(), own.column(metric).tolist(), strict=True))
                for own in (table.section(name) for table in tables)
                if metric in own.names
            ]
            width = range_of(rule.metric) or 1.0
            for number in sides[0].keys() & sides[-1].keys() if len(sides) > 1 else ():
                size = abs(sides[1][number] - sides[0][number]) / width
                if size > largest.get(number, 0.0):
                    largest[number] = size
        return largest

    def moves(self) -> dict[int, int]:
        """Returns -1 for each compared case that broke, 1 for one that was fixed, else 0.

        By the number of the case's id.
        """
        signs = {_WORDS.index("broke"): -1, _WORDS.index("fixed"): 1}
        pairs = zip(self.new.ids, self._codes, strict=True)
        return {number: signs.get(code, 0) for number, code in pairs if code < _ALONE}

    def repeats(self, case_id: str) -> int:
        """How many answers to a case both runs have.

        0 where a run lacks it or it changed, or where there is one verdict on several answers.
        """
        if id_number(case_id) in self._changed:
            return 0
        sides = [run.verdict(case_id) for run in (self.base, self.new)]
        counts = [0 if side is None else side.answers + side.unreadable for side in sides]
        return 0 if self.committed and counts[1] > 1 else min(counts)

    def counts(self) -> dict[Ways, int]:
        """How many cases broke, were fixed, fail still and are ok still."""
        return {way: self._codes.count(code) for code, way in enumerate(_WORDS)}

    @property
    def deeper(self) -> Deeper | None:
        """The run that asked for more passages; None where both asked for as many."""
        if self._own is None:
            return None
        name, own = self._own
        fails = {number for number, v in zip(own.ids, own.verdicts(), strict=True) if v.fails}
        code = _WORDS.index("fails still")
        codes = zip(self.new.ids, self._codes, strict=True)
        cases = sum(found == code and number not in fails for number, found in codes)
        return Deeper(name, own.ruling.gold_within or 0, cases)

    @property
    def unreadable(self) -> int:
        """The shared cases without a readable answer in one of the runs."""
        return self._codes.count(_NOT_MEASURED)


def _harm(verdict: CaseVerdict | None) -> int:
    reasons = verdict.reasons if verdict else ()
    return harm_of(reasons[0].name) if reasons else len(HARM) + 1


def rank_change(before: float | None, now: float | None) -> str:
    """Change of the first gold passage's rank, from 1 / rank in both runs: ``gold 9 → none``."""
    ranks = (str(round(1 / value)) if value else "none" for value in (before, now))
    return f"gold {' → '.join(ranks)}"


def _first_gold(table: Run, ruling: Ruling) -> dict[int, float]:
    rule = next((rule for rule in ruling.rules if rule.ranked), None)
    if rule is None or rule.section not in scored_sections(table.folder):
        return {}
    lines = table.section(rule.section)
    values = lines.column(rule.metric.partition(".")[2])
    return {
        case: value
        for case, value in zip(lines.ids.tolist(), values.tolist(), strict=True)
        if value == value
    }


def read_pair(
    base: Path, new: Path, rules: CaseRules | None = None, tables: Runs | None = None
) -> PairVerdicts:
    """Two runs, each read by the rules that both can answer. ``base``: also a metrics.json by
    itself, or a report that names one; ``tables``: what was read of the runs. Raises StorageError
    for damaged files."""
    tables = tables or Runs()
    both = tables[base], tables[new]
    rules = read_case_rules() if rules is None else rules
    alone = (base / METRICS).is_file() and not scored_sections(base)
    if base.is_file() or alone:
        committed = CommittedVerdicts(base, rules)
        basis = committed.ruling.basis.shared(basis_of(new))
        unknown = committed.differs(basis)
        new_verdicts = read_verdicts(new, rules, basis, tables[new])
        verdicts = committed.by(basis), new_verdicts
        changed = align_folders(base, new, new_verdicts.ruling.sections).of_any
        return PairVerdicts(*verdicts, both, committed=True, unknown=unknown, changed=changed)
    bases = basis_of(base), basis_of(new)
    basis = bases[0].shared(bases[1])
    old, now = (read_verdicts(table.folder, rules, basis, table) for table in both)
    changed = align_folders(base, new, now.ruling.sections).of_any
    own = None
    for name, table, its in zip(("base", "new"), both, bases, strict=True):
        ruling = Ruling(rules, msgspec.structs.replace(basis, depth=its.depth))
        if its.depth is not None and ruling.gold_within != now.ruling.gold_within:
            own = name, read_verdicts(table.folder, rules, ruling.basis, table)
    return PairVerdicts(old, now, both, changed=changed, own=own)


def changes_of(pair: PairVerdicts, most: int) -> CaseFlips | None:
    """The counts of a pair, and its first ``most`` cases each way with their reasons, the most
    harmful first. None if the runs share no case. Raises StorageError for damaged files."""
    if pair.unknown:
        return CaseFlips(dict.fromkeys(_WORDS, 0), unknown=pair.unknown)
    if not pair:
        return None
    changed = list(_changed(pair, most))
    changed.sort(key=lambda case: CHANGES.index(case.way))
    unmeasured = list(pair.ruling.unmeasured)
    if pair.lacking:
        fewer = counted(pair.lacking, "case")
        unmeasured.append(f"{fewer} by fewer rules, since one run lacks what the others read")
    return CaseFlips(
        pair.counts(),
        tuple(changed),
        pair.ruling.gold_within,
        pair.deeper,
        tuple(unmeasured),
        unreadable=pair.unreadable,
    )


def _changed(pair: PairVerdicts, most: int) -> Iterator[CaseFlip]:
    wanted: dict[int, Ways] = {}
    for way in CHANGES:
        wanted |= pair.ids(way, most)
    for number, way in wanted.items():
        case_id = id_of(number)
        broke = way == "broke"
        fails, table = (pair.new, pair.new_table) if broke else (pair.base, pair.base_table)
        verdict = fails.verdict(case_id)
        assert verdict is not None
        key = failing_answer(fails, case_id, verdict)
        first = (case_id, 0)
        before = scores_of(lines_of(pair.base_table, pair.ruling, first)) if broke else None
        lines = lines_of(table, pair.ruling, key)
        yield CaseFlip(
            case_id,
            way,
            reasons_in_words(pair.ruling, verdict, lines, before),
            _fact(pair.ruling, verdict, lines, before),
        )


def _fact(
    ruling: Ruling,
    verdict: CaseVerdict,
    lines: Lines,
    before: Mapping[str, float | None] | None,
) -> str:
    if not verdict.reasons:
        return ""
    rule = verdict.reasons[0]
    return ruling.fact(rule, scores_of(lines), _evidence(lines, rule.section), before)


def failing_answer(run: RunVerdicts, case_id: str, verdict: CaseVerdict) -> Key:
    """The first answer of a case that fails."""
    keys = ((case_id, repeat) for repeat in range(verdict.answers + verdict.unreadable))
    return next((key for key in keys if run.ruling.settle(run.broken_of(key))[0]), (case_id, 0))


Lines = Mapping[str, ScoreLine]
"""Score lines of one answer by section."""


def lines_of(table: Run, ruling: Ruling, key: Key) -> Lines:
    """The score lines of one answer that its verdict rests on, with their evidence."""
    scored = set(scored_sections(table.folder)) if table.folder.is_dir() else set()
    lines = [
        (section, line)
        for section in ruling.sections
        if section in scored
        for line in table.section(section).lines_of([key[0]]).get(key[0], ())
    ]
    return {section: line for section, line in lines if line.repeat == key[1]}


def scores_of(lines: Lines) -> dict[str, float | None]:
    """The scores of one answer by ``section.metric``."""
    return {
        f"{section}.{name}": value
        for section, line in lines.items()
        for name, value in line.scores.items()
    }


def reasons_in_words(
    ruling: Ruling,
    verdict: CaseVerdict,
    lines: Lines,
    before: Mapping[str, float | None] | None = None,
) -> tuple[str, ...]:
    """Why a case fails, a sentence a rule, the most harmful first."""
    return rules_in_words(ruling, verdict.reasons, lines, before)


def rules_in_words(
    ruling: Ruling,
    rules: Iterable[CaseRule],
    lines: Lines,
    before: Mapping[str, float | None] | None = None,
) -> tuple[str, ...]:
    """A sentence for each rule that an answer breaks; ``before``: its scores in another run."""
    values = scores_of(lines)
    return tuple(
        ruling.sentence(rule, values, _evidence(lines, rule.section), before) for rule in rules
    )


def _evidence(lines: Lines, section: str) -> Mapping[str, Any]:
    evidence = lines[section].evidence if section in lines else None
    return msgspec.to_builtins(evidence) or {}
