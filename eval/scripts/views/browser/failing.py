"""Which cases of a list fail, by the rules or by a condition that the user types instead.

With it: how many fail by which rule, means, and groups by a field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from decisions.case_changes import Ways, ways_of
from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import UNREADABLE_BIT, Key, Ruling, no_response
from records.results import UNREADABLE
from views.browser.answers import SETS, WORDS, AnswerTable
from views.browser.query import FAILS, Query
from views.case import Case


class Failing:
    """Separates failing cases from the others. ``condition``: the user's own rule."""

    def __init__(self, ruling: Ruling | None = None, condition: Query | None = None) -> None:
        self.ruling = ruling or Ruling(CaseRules(), Basis())
        self.condition = condition
        rules = self.ruling.rules
        self.counted = {rule.word: rule.counted for rule in rules} | {FAILS: "condition not met"}
        """Each reason in the form that follows a number of cases, in the order of the rules."""
        self.order = {"": 0} | {word: place for place, word in enumerate(self.counted, 1)}
        self._cached: dict[AnswerTable, tuple[Sequence[str], Sequence[int]]] = {}
        """By table: the reason of each row, and what it breaks."""

    def reasons(self, table: AnswerTable) -> Sequence[str]:
        """Why each row fails, in a word. "" for a row that does not fail, or whose answer could
        not be read."""
        return self._current(table)[0]

    def _current(self, table: AnswerTable) -> tuple[Sequence[str], Sequence[int]]:
        if table not in self._cached:
            if len(self._cached) > 1:
                self._cached.clear()
            if self.condition is not None:
                self._cached[table] = self._by_condition(self.condition, table), ()
            else:
                broken, first = self._broken(table), self.ruling.first
                words = {bits: rule.word if (rule := first(bits)) else "" for bits in set(broken)}
                self._cached[table] = list(map(words.__getitem__, broken)), broken
        return self._cached[table]

    def _by_condition(self, condition: Query, table: AnswerTable) -> list[str]:
        met = set(condition.select(table, range(table.count)))
        columns = [table.column(name) for name in condition.needs]

        def reason(row: int, status: str) -> str:
            if status == "error":
                return self.ruling.rules[0].word
            unscored = any(column is None or column[row] != column[row] for column in columns)
            return "" if status == UNREADABLE or row in met or unscored else FAILS

        return list(map(reason, range(table.count), table.words["status"]))

    def _broken(self, table: AnswerTable) -> Sequence[int]:
        broken = [0] * table.count
        for section in self.ruling.sections:
            if section in table.sections:
                bits = [*self.ruling.broken_of_codes(table.sections[section]), 0]  # for UNKNOWN
                for row, code in enumerate(table.codes[section]):
                    broken[row] |= bits[code]
        for row, status in enumerate(table.words["status"]):
            if status == "error":
                broken[row] = no_response(self.ruling)
            elif status == UNREADABLE:
                broken[row] = UNREADABLE_BIT
        return broken

    def state(
        self, table: AnswerTable, key: Key, detail: Case, before: Case | None = None
    ) -> tuple[bool, str]:
        """Whether a result fails, and all that its rules say, in words. ``before``: the case in the
        run that this one is compared with."""
        row = table.row_of(*key)
        reasons, broken = self._current(table)
        reason = "" if row is None else reasons[row]
        if row is not None and table.words["status"][row] == UNREADABLE:
            return False, "not measured: the answer could not be read"
        if self.condition is not None:
            if not reason:
                return False, f"ok: {self.condition.text}"
            unmet = f"does not meet: {self.condition.text}"
            return True, f"FAILS: {unmet if reason == FAILS else 'the call gave no response'}"
        if not table.metrics and not reason:
            return False, "not scored yet"
        bits = 0 if row is None else broken[row]
        said = detail.say(self.ruling, bits, before)
        text = f"FAILS: {'; '.join(said.reasons)}" if said.reasons else "ok"
        warning = f" (warning: {'; '.join(said.warnings)})" if said.warnings else ""
        return bool(said.reasons), text + warning

    def case_fails(self, table: AnswerTable) -> Iterator[tuple[Sequence[int], bool]]:
        """The rows of each case that could be read, and whether at least half of them fail."""
        reasons, status = self.reasons(table), table.words["status"]
        for rows in table.case_rows():
            known = [row for row in rows if status[row] != UNREADABLE]
            if known:
                yield known, 2 * sum(reasons[row] != "" for row in known) >= len(known)

    def counts(self, table: AnswerTable) -> tuple[int, int, int, int]:
        """Count all cases, those that fail, those with only a warning, and those not measured.

        Not measured are cases without a readable answer."""
        _, broken = self._current(table)
        warns = {bits for bits in set(broken) if self.ruling.settle(bits)[1]}
        by_case = list(self.case_fails(table))
        failing = sum(fails for _, fails in by_case)
        fine = (rows for rows, fails in by_case if broken and not fails)
        warned = sum(any(broken[row] in warns for row in rows) for rows in fine)
        cases = len(set(table.ids))
        return cases, failing, warned, cases - len(by_case)

    def ways(self, base: AnswerTable, new: AnswerTable) -> dict[str, Ways]:
        """By case id, the change of each case in both tables."""
        before, after = (
            {table.ids[rows[0]]: fails for rows, fails in self.case_fails(table)}
            for table in (base, new)
        )
        return ways_of(before, after)

    def describe(self) -> str:
        """When a case fails, for a header."""
        if self.condition is not None:
            return f"a case is fine when {self.condition.text}"
        words = [
            self.ruling.rules[place].word
            for place in sorted(self.ruling.active)
            if self.ruling.rules[place].level == "fail"
        ]
        depth = self.ruling.gold_within
        within = "" if depth is None else f" (first {depth} passages)"
        return f"Fails on: {', '.join(words)}{within}"


FIELDS = (*WORDS, *SETS, "reason")
"""The fields that can group cases; ``reason`` is the rule that they break."""


def _reason_counts(failing: Failing, table: AnswerTable, rows: Iterable[int]) -> dict[str, int]:
    """How many rows fail for each reason, the most frequent first."""
    reasons = failing.reasons(table)
    counts = Counter(reasons[row] for row in rows)
    counts.pop("", None)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], failing.order[item[0]])))


def reasons_text(failing: Failing, table: AnswerTable, rows: Iterable[int], room: int = 999) -> str:
    """``31 failing: 14 without a gold passage, 9 declined an answerable question``; empty for none.

    In the short words of the list where the whole takes more than ``room`` letters.
    """
    counts = _reason_counts(failing, table, rows)
    if not counts:
        return ""
    total = f"{sum(counts.values()):,} failing: "
    text = total + ", ".join(f"{n:,} {failing.counted[word]}" for word, n in counts.items())
    if len(text) <= room:
        return text
    return total + ", ".join(f"{n:,} {word}" for word, n in counts.items())


def mean_of(table: AnswerTable, name: str, rows: Sequence[int]) -> tuple[float | None, int]:
    """The mean of a column over the rows that have a value, and how many these are."""
    column = table.column(name)
    if column is None:
        return None, 0
    values = [column[row] for row in rows if column[row] == column[row]]
    return (sum(values) / len(values) if values else None), len(values)


@dataclass(frozen=True, slots=True)
class Group:
    """The cases that share a value of a field; an empty value means that they have none."""

    value: str
    rows: Sequence[int]
    failing: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many fail by each rule, by its word."""

    @property
    def share(self) -> float:
        """The part of the group's cases that fail, from 0 to 1."""
        return self.failing / len(self.rows)


def group_rows(table: AnswerTable, by: str, rows: Iterable[int], failing: Failing) -> list[Group]:
    """Rows by a field ``by`` of FIELDS, those with the most failing cases first.

    A case with several tags, flags or documents is in each of their groups. Raises KeyError for
    another field.
    """
    by_value: dict[str, list[int]] = {}
    column = failing.reasons(table) if by == "reason" else table.sets.get(by) or table.words[by]
    for row in rows:
        values = column[row]
        for value in (values,) if isinstance(values, str) else values or ("",):
            by_value.setdefault(value, []).append(row)
    groups = []
    for value, members in by_value.items():
        counts = _reason_counts(failing, table, members)
        groups.append(Group(value, members, sum(counts.values()), counts))
    return sorted(groups, key=lambda group: (-group.failing, -len(group.rows), group.value))
