"""What it means that a case fails: it breaks a rule, or a condition that the user gives.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Collection

from views.browser.query import Query
from views.browser.rules import CUSTOM, RULES
from views.browser.table import Table


class Success:
    """Tells failing cases from the others. ``condition``: what must hold instead of the rules."""

    def __init__(self, condition: Query | None = None, metrics: Collection[str] | None = None):
        self.condition = condition
        self.metrics = metrics
        """Only rules on these metrics count, so that two runs are measured alike; None: all."""
        self._cached: tuple[Table | None, int, bytearray] = (None, -1, bytearray())

    @property
    def needs(self) -> tuple[str, ...]:
        """The metrics that it looks at."""
        if self.condition is not None:
            return tuple(self.condition.needs)
        return tuple(rule.metric for rule in RULES if rule.metric and self._counts(rule.metric))

    def _counts(self, metric: str) -> bool:
        return self.metrics is None or metric in self.metrics

    def codes(self, table: Table) -> bytearray:
        """For each row 0, or 1 + the place in RULES of the first rule that it breaks."""
        cached_table, version, codes = self._cached
        if cached_table is not table or version != table.version:
            version = table.version
            codes = self._by_condition(table) if self.condition else self._by_rules(table)
            self._cached = (table, version, codes)
        return codes

    def _by_condition(self, table: Table) -> bytearray:
        condition = self.condition
        assert condition is not None
        rows = range(table.count)
        codes = bytearray([CUSTOM]) * table.count
        for row in condition.select(table, rows):
            codes[row] = 0
        for name in condition.needs:
            column = table.numbers.get(name)
            for row in rows:
                if column is None or column[row] != column[row]:
                    codes[row] = 0  # not scored: nobody knows
        for row, status in enumerate(table.words["status"][: table.count]):
            if status == "error":
                codes[row] = 1
        return codes

    def _by_rules(self, table: Table) -> bytearray:
        count = table.count
        codes = bytearray(count)
        for code in range(len(RULES), 0, -1):
            rule = RULES[code - 1]
            if not rule.metric:
                statuses = table.words["status"]
                broken = [row for row in range(count) if statuses[row] == "error"]
            elif rule.metric in table.numbers and self._counts(rule.metric):
                column, value, compares = table.numbers[rule.metric], rule.value, rule.compares
                broken = [row for row in range(count) if compares(column[row], value)]
            else:
                continue
            for row in broken:
                codes[row] = code
        return codes

    def says(self, code: int) -> str:
        """The failing rule in words."""
        if not code:
            return ""
        if code == CUSTOM:
            return f"does not hold: {self.condition.text if self.condition else ''}"
        return RULES[code - 1].says

    def describe(self) -> str:
        """What counts as success, for a header."""
        if self.condition is not None:
            return self.condition.text
        names = [rule.word for rule in RULES if not rule.metric or self._counts(rule.metric)]
        return "none of: " + ", ".join(names)
