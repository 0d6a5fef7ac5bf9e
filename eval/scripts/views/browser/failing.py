"""Which cases of a list fail: by the rules of ``decisions/case_verdict.py``, or by a condition that
the user types instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisions.case_changes import Ways, ways_of
from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Key, Ruling
from views.browser.query import FAILS, Query
from views.browser.table import Table
from views.case import Case


class Failing:
    """Tells failing cases from the others. ``condition``: what must hold instead of the rules."""

    def __init__(self, ruling: Ruling | None = None, condition: Query | None = None) -> None:
        self.ruling = ruling or Ruling(CaseRules(), Basis())
        self.condition = condition
        self.custom = len(self.ruling.rules) + 1
        """The code of a case that does not meet the condition."""
        self._cached: dict[int, tuple[Table, int, bytearray, Sequence[int]]] = {}
        """By table, at one version of it: the code of each row, and what it breaks."""
        self._counts: tuple[Table | None, int, tuple[int, int, int]] = (None, -1, (0, 0, 0))

    @property
    def needs(self) -> tuple[str, ...]:
        """The metrics that it looks at."""
        if self.condition is not None:
            return tuple(self.condition.needs)
        return tuple(name.partition(".")[2] for name in self.ruling.needs)

    def codes(self, table: Table) -> bytearray:
        """For each row 0, or 1 + the place of the rule by which it fails."""
        return self._found(table)[2]

    def _found(self, table: Table) -> tuple[Table, int, bytearray, Sequence[int]]:
        found = self._cached.get(id(table))
        if found is None or found[0] is not table or found[1] != table.version:
            version = table.version
            broken = () if self.condition else self._broken(table)
            codes = self._by_condition(table) if self.condition else self._by_rules(broken)
            if len(self._cached) > 1:
                self._cached.clear()
            found = self._cached[id(table)] = (table, version, codes, broken)
        return found

    def _by_condition(self, table: Table) -> bytearray:
        condition = self.condition
        assert condition is not None
        rows = range(table.count)
        codes = bytearray([self.custom]) * table.count
        for row in condition.select(table, rows):
            codes[row] = 0
        for name in condition.needs:
            column = table.numbers.get(name)
            for row in rows:
                if column is None or column[row] != column[row]:
                    codes[row] = 0  # not scored: nobody knows
        for row in _errors(table):
            codes[row] = 1
        return codes

    def _by_rules(self, broken: Sequence[int]) -> bytearray:
        ruling = self.ruling
        code_of: dict[int, int] = {}
        codes = bytearray(len(broken))
        for row, bits in enumerate(broken):
            if bits:
                code = code_of.get(bits)
                if code is None:
                    rule = ruling.first(bits)
                    code = code_of[bits] = 0 if rule is None else ruling.rules.index(rule) + 1
                codes[row] = code
        return codes

    def _broken(self, table: Table) -> Sequence[int]:
        columns = {
            name: table.numbers[metric]
            for name in self.ruling.needs
            for section, _, metric in [name.partition(".")]
            if metric in table.numbers and table.metrics.get(metric) == section
        }
        return self.ruling.broken_of_columns(
            columns, table.uncertain, table.count, failed=_errors(table)
        )

    def word(self, code: int) -> str:
        """The reason in a word; empty for 0, which is success."""
        if not code:
            return ""
        return FAILS if code == self.custom else self.ruling.rules[code - 1].word

    def counted_word(self, code: int) -> str:
        """The reason as it is written behind a number of cases."""
        if code == self.custom:
            return "condition not met"
        return self.ruling.rules[code - 1].counted

    def state(
        self, table: Table, key: Key, detail: Case, before: Case | None = None
    ) -> tuple[bool, str]:
        """Whether a result fails, and all that its rules say, in words. ``before``: the case in the
        run that this one is compared with."""
        row = table.row_of(*key)
        _, _, codes, broken = self._found(table)
        fails = row is not None and row < len(codes) and bool(codes[row])
        if self.condition is not None:
            if not fails:
                return False, f"ok: {self.condition.text}"
            failed = row is not None and codes[row] != self.custom
            why = "the call gave no response" if failed else f"does not meet: {self.condition.text}"
            return True, f"FAILS: {why}"
        if not table.metrics and not fails:
            return False, "not scored yet"
        bits = broken[row] if row is not None and row < len(broken) else 0
        said = detail.say(self.ruling, bits, before)
        text = f"FAILS: {'; '.join(said.reasons)}" if said.reasons else "ok"
        warning = f" (warning: {'; '.join(said.warnings)})" if said.warnings else ""
        return bool(said.reasons), text + warning

    def case_fails(self, table: Table) -> Iterator[tuple[Sequence[int], bool]]:
        """The rows of each case, and whether at least half of them fail."""
        codes = self.codes(table)
        for rows in table.case_rows():
            known = [row for row in rows if row < len(codes)]
            if known:
                yield known, 2 * sum(codes[row] > 0 for row in known) >= len(known)

    def counts(self, table: Table) -> tuple[int, int, int]:
        """The cases of a table, how many of them fail, and how many only have a warning."""
        if self._counts[0] is not table or self._counts[1] != table.version:
            broken, warns = self._found(table)[3], self.ruling.settle
            cases = failing = warned = 0
            for rows, fails in self.case_fails(table):
                cases += 1
                failing += fails
                warned += bool(broken) and not fails and any(warns(broken[row])[1] for row in rows)
            self._counts = (table, table.version, (cases, failing, warned))
        return self._counts[2]

    def ways(self, base: Table, new: Table) -> dict[str, Ways]:
        """By case id, what became of each case that both tables have."""
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
        depth = "" if self.ruling.depth is None else f" (first {self.ruling.depth} passages)"
        return f"a case fails by: {', '.join(words)}{depth}"


def _errors(table: Table) -> list[int]:
    statuses = table.words["status"]
    return [row for row in range(table.count) if statuses[row] == "error"]
