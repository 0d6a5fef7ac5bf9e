"""A list of cases as values: which of a run (or of two) are in it, in which order, and what is said
of them. The screens of `lists` draw it; the pages walk through it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from decisions.case_changes import CHANGES, Ways, rank_change
from decisions.case_verdict import Ruling
from decisions.committed import ComparedPair
from ragmetrics.catalogue.cases import RULES
from records.id_numbers import id_number
from records.results import UNREADABLE
from terminal.frame import Look, cut
from terminal.lists import Line, Span
from terminal.safe_text import display, one_line
from terminal.tables import counted
from views.browser import rows
from views.browser.answers import SETS
from views.browser.failing import FIELDS, Failing, Group, group_rows, mean_of, reasons_text
from views.browser.query import Query, QueryError, equals, parse, unknown
from views.browser.rows import Column
from views.library import RunReader

NO_GOLD = next(rule.word for rule in RULES if rule.name == "no_gold")

ROOMY, WIDE = 80, 100
"""Cells from which a comparison says in its row why a case flipped, and why any case fails."""

SCORE_PAIR = 11

WHY_PAIR = 24
"""Cells with the change of a case and its reason, if there is room."""

HARM: Mapping[str, int] = {"broke": 0, "fails still": 1, "fixed": 2, "ok still": 3}
"""The order of a comparison: what people should look at first."""


class CaseList:
    """The cases of one run, as the user filters and orders them. `listed` holds rows of the table.

    The setters take what the user typed and raise `QueryError`, with nothing changed; `update`
    works out the list again.
    """

    where, verb = "cases", "fail"

    def __init__(self, run: RunReader) -> None:
        self.run = run
        self.condition: Query | None = None
        self.filter: Query | None = None
        self.sort, self.reverse = "order", False
        self.metrics: list[str] | None = None
        """The metrics that the user wants to see; None: the main ones."""
        self.listed: Sequence[int] = ()
        self.table = run.table
        """The cases when the list was worked out last."""
        self._of: tuple[object, ...] = ()
        self.failing = self._rule()
        """The rule that separates failing cases from others, by the run's measurements."""
        self.grouped_by = "reason"
        """The field that groups were made of last."""

    def _rule(self) -> Failing:
        return Failing(Ruling(self.run.rules, self.run.basis), self.condition)

    # -- what is in the list --------------------------------------------------------------------

    def candidates(self) -> Sequence[int]:
        """The rows that there are before any filter."""
        return range(self.table.count)

    def select(self, query: Query, candidates: Sequence[int]) -> Sequence[int]:
        """The rows that a filter lets through."""
        return query.select(self.table, candidates, self.failing.reasons(self.table))

    def update(self, cursor: int) -> int:
        """Work out the list again. Returns where the case that stood at `cursor` stands now."""
        key = self.table.keys[self.listed[cursor]] if cursor < len(self.listed) else None
        self._of = self._versions()
        self.table = self.run.table
        self.failing = self._rule()
        listed = self.candidates()
        if self.filter is not None:
            listed = self.select(self.filter, listed)
        if (self.sort, self.reverse) != ("order", False):
            listed = self._ordered(listed)
        self.listed = listed
        row = None if key is None else self.table.row_of(*key)
        return 0 if row is None else self.index_of(row, cursor)

    def _ordered(self, listed: Sequence[int]) -> Sequence[int]:
        """Rows in the chosen order; a column that is gone leaves them as they are."""
        if self.sort == "why":
            reasons, order = self.failing.reasons(self.table), self.failing.order
            return sorted(listed, key=lambda row: order[reasons[row]], reverse=not self.reverse)
        if self.sort not in self.sort_names().values():
            return listed
        return self.table.ordered(listed, self.sort, self.reverse)

    def index_of(self, row: int, otherwise: int) -> int:
        """The position of a table row in the list; `otherwise` when it is not in it."""
        return self.listed.index(row) if row in self.listed else otherwise

    def _versions(self) -> tuple[object, ...]:
        return self.run.table, self.run.table.version

    def outdated(self) -> bool:
        """Must the list be worked out again, since the files are others?"""
        return self._of != self._versions()

    def fails(self, row: int) -> bool:
        """Does a row count as failing, for n and p?"""
        return self.failing.reasons(self.table)[row] != ""

    # -- what they amount to --------------------------------------------------------------------

    def reasons(self, room: int) -> str:
        """How many of the listed cases fail for which reason."""
        return reasons_text(self.failing, self.table, self.listed, room)

    def reason(self, row: int) -> str:
        """Why a case fails, in a word; empty when it does not."""
        return self.failing.reasons(self.table)[row]

    def mean(self, name: str, look: Look) -> str:
        """The mean of a column of numbers over the listed cases."""
        return rows.number_text(name, mean_of(self.table, name, self.listed)[0])

    def groups(self, field: str) -> list[Group]:
        """The listed cases by a field. Raises QueryError for one that there is not."""
        typed = field.strip().casefold()
        matches = [name for name in FIELDS if name == typed]
        matches = matches or [name for name in FIELDS if name.startswith(typed)]
        if len(matches) != 1:
            raise QueryError(f"{field.strip()}: group by one of {', '.join(FIELDS)}")
        self.grouped_by = matches[0]
        return group_rows(self.table, self.grouped_by, self.listed, self.failing)

    def marks(self) -> dict[int, bool]:
        """By the number of each case's id, whether it fails."""
        ids, verdicts = self.table.ids, self.failing.case_fails(self.table)
        return {id_number(ids[rows[0]]): fails for rows, fails in verdicts}

    def slices(self) -> tuple[list[str], list[Group]]:
        """The slices in which more cases fail than chance explains, in words and as groups, the
        surest first; of none, why. They become values of ``slice``."""
        tried, table = self.run.slices(self.marks()), self.table
        if not (found := tried.significant):
            reason = f"no slice in which more cases {self.verb} than chance explains"
            return [f"{reason} ({len(tried.tried)} tried)"], []
        groups = []
        table.sets["slice"][:] = [()] * table.count
        for part in found:
            ids = set(part.case_ids)
            own = [row for row, case_id in enumerate(table.ids) if case_id in ids]
            for row in own:
                table.sets["slice"][row] += (part.phrase,)
            groups.append(Group(part.phrase, own, sum(map(self.fails, own))))
        table.changed()
        self.grouped_by = "slice"
        return [part.says(self.verb) for part in found], groups

    def narrow(self, group: Group) -> None:
        """Filter by a group as well. Raises QueryError for a value that a filter cannot hold."""
        before = self.filter.text if self.filter else ""
        self.set_filter(f"{before} {equals(self.grouped_by, group.value)}".strip())

    def export_name(self, form: str) -> str:
        """A name for a file with the listed cases."""
        return f"{self.run.run_id}-cases.{'jsonl' if form == 'set' else form}"

    # -- columns of metrics ---------------------------------------------------------------------

    def available_metrics(self) -> Collection[str]:
        """Names of metrics that may be asked for."""
        return self.table.metrics

    def shown_metrics(self) -> list[str]:
        """The metrics with a column: the user's, else the main ones that the run has."""
        if self.metrics is not None:
            return self.metrics
        return [name for name in rows.MAIN if name in self.table.metrics]

    # -- what the user chooses ------------------------------------------------------------------

    def set_filter(self, text: str) -> None:
        """Filter by `text`."""
        query = parse(text, self.available_metrics())
        self.filter = query if query.terms else None

    def filter_message(self) -> str:
        """The number of cases that match the filter, and suggestions when none does."""
        if self.filter is None:
            return ""
        hint = "" if self.listed else self.filter.hint(self.table)
        count = f"{len(self.listed)} of {counted(self.table.count, 'case')}"
        return count + (f"; {hint}" if hint else "")

    def sort_names(self) -> dict[str, str]:
        """The sort keys, by name in small letters; `state` means the reason."""
        table = self.table
        names = ["order", "id", "question", *table.words, *table.known_numbers()]
        return {name.casefold(): name for name in names} | {"state": "why", "case": "id"}

    def set_sort(self, text: str) -> None:
        """Sort by a column, `-` before it for the largest first."""
        text = text.strip()
        name = text.removeprefix("-").casefold() or "order"
        columns = self.sort_names()
        if name in SETS:
            raise QueryError(f"{name}: a case has several; filter by it instead")
        if name not in columns:
            raise QueryError(unknown(name, list(columns)))
        self.sort, self.reverse = columns[name], text.startswith("-")

    def sort_by(self, name: str) -> None:
        """Sort by a column, or the other way round when it is sorted by it."""
        self.reverse = self.sort == name and not self.reverse
        self.sort = name

    @property
    def sort_text(self) -> str:
        """The order as `set_sort` takes it."""
        if (self.sort, self.reverse) == ("order", False):
            return ""
        return (("-" if self.reverse else "") + self.sort).replace("why", "state")

    def set_columns(self, text: str) -> None:
        """Show these metrics; nothing means the main ones."""
        columns = {name.casefold(): name for name in self.table.known_numbers()}
        names = []
        for word in text.replace(",", " ").split():
            if word.casefold() not in columns:
                raise QueryError(unknown(word, list(columns.values())))
            names.append(columns[word.casefold()])
        self.metrics = names or None

    def set_success(self, text: str) -> None:
        """Define success by a condition on scores; an empty one restores the rules."""
        query = parse(text, self.available_metrics())
        for term in query.terms:
            if term.kind in ("keyword", "word"):
                raise QueryError("write a condition on a score, such as recall@5>0 or pass=1")
        self.condition = query if query.terms else None

    # -- what is said of them -------------------------------------------------------------------

    def columns(self, width: int) -> list[Column]:
        """The columns that fit on `width` cells."""
        longest = max((len(name) for name in self.table.ids[:500]), default=4)
        chosen = self.metrics is not None
        return rows.case_columns(width, self.shown_metrics(), longest, chosen=chosen)

    def row_line(self, row: int, columns: Sequence[Column], sign: str, look: Look) -> Line:
        """One case."""
        table, reason = self.table, self.failing.reasons(self.table)[row]
        fine = "ok" if table.metrics else "-"
        fine = "not read" if table.words["status"][row] == UNREADABLE else fine

        def number(name: str) -> tuple[str, str]:
            text = rows.number_text(name, table.number(name, row))
            return "dim" if text == "-" else "row", text

        why = ("bad", reason) if reason else ("dim", fine)
        return rows.case_row(table, row, columns, sign, why, number)

    def title(self, look: Look) -> list[Span]:
        """The run, its state, and the counts."""
        total, failing, warned, unread = self.failing.counts(self.table)
        spans: list[Span] = [("term", one_line(f" {self.run.run_id}", 60))]
        if progress := rows.progress(self.run.info, self.table.count):
            spans.append(("key", display(f"  {progress}")))
        spans.append(("row", display(f"  {counted(total, 'case')}, ")))
        verb = "fails" if failing == 1 else "fail"
        spans.append(("bad" if failing else "good", display(f"{failing} {verb}")))
        if warned:
            spans.append(("warn", display(f", {warned} with a warning")))
        if unread:
            spans.append(("warn", display(f", {unread} not measured")))
        if not self.table.metrics:
            spans.append(("warn", display("  not scored yet")))
        if len(self.listed) != self.table.count:
            spans.append(("key", display(f"  showing {len(self.listed)}")))
        return spans

    def second_line(self, width: int) -> list[Span]:
        """The filter; or a message for the user; or advice on filters."""
        if self.filter is not None:
            text = self.filter.text
            reasons = self.reasons(max(24, width - len(text) - 12))
            return [
                ("key", display(" filter: ")),
                *cut([("row", one_line(text, 300))], max(12, width - len(reasons) - 12)),
                ("bad", display(f"  {reasons}" if reasons else "")),
            ]
        if notices := self.run.notices:
            more = f" (and {len(notices) - 1} more)" if len(notices) > 1 else ""
            first = cut([("warn", one_line(f" {notices[0]}", 300))], width - len(more))
            return [*first, ("warn", display(more))]
        reasons = self.reasons(width - 2)
        hint = "/ filters, such as: failing category=factual recall@5<1 words"
        if not reasons:
            return [("dim", display(f" {hint}"))]
        tail = f"   {hint}" if len(reasons) + len(hint) + 4 <= width else ""
        return [("bad", display(f" {reasons}")), ("dim", display(tail))]


class PairList(CaseList):
    """The cases of two runs whose success changed, or all that both have.

    `run` is the new one, and rows are rows of its table.
    """

    where, verb = "flips", "broke"

    def __init__(self, base: RunReader, new: RunReader) -> None:
        self.base, self.base_table = base, base.table
        self.only_flips = True
        self.flips: dict[int, str] = {}
        self._pairs: dict[int, int] = {}
        """New row to base row."""
        self._places: dict[str, int] = {}
        """By case id, the place in the order of harm."""
        self.says: Sequence[str] = ()
        """The first line of the comparison, once it is known."""
        self._outcome: Mapping[str, Ways] = {}
        """The cases that broke or were fixed, most harmful first, as the comparison has them."""
        self._outcome_of: tuple[object, ...] = ()
        self._ways: dict[str, Ways] = {}
        self._why_width = WHY_PAIR
        super().__init__(new)

    def take(self, outcome: ComparedPair) -> None:
        """Show the result of the comparison of both runs."""
        self.says, self._outcome, self._outcome_of = outcome.says, outcome.flips, self._versions()
        self._of = ()

    def _versions(self) -> tuple[object, ...]:
        return self.base.table, self.base.table.version, *super()._versions()

    def _rule(self) -> Failing:
        """The rule by the measurements of both runs, within the smaller depth."""
        shared = self.base.basis.shared(self.run.basis)
        if shared.definitions is None:
            both = self.base.table.metrics.items() & self.run.table.metrics.items()
            known = {f"{section}.{name}": "" for name, section in both}
            shared = structs.replace(shared, definitions=known)
        return Failing(Ruling(self.run.rules, shared), self.condition)

    def available_metrics(self) -> Collection[str]:
        """Metrics that both runs have: only these can be compared."""
        return [name for name in self.table.metrics if name in self.base_table.metrics]

    def shown_metrics(self) -> list[str]:
        shared = set(self.available_metrics())
        condition = self.condition
        names = [*(condition.needs if condition and self.metrics is None else ())]
        return [name for name in dict.fromkeys(names + super().shown_metrics()) if name in shared]

    def candidates(self) -> Sequence[int]:
        self._pair()
        return sorted(self.flips if self.only_flips else self._pairs, key=self._harm)

    def _pair(self) -> None:
        """Match the rows of both tables, and find the flips."""
        self.base_table = self.base.table
        base, new = self.base_table, self.table
        self._pairs = {
            row: base_row
            for row in range(new.count)
            if (base_row := base.row_of(*new.keys[row])) is not None
        }
        self._ways = self.failing.ways(base, new)
        self._places = {}
        if self._outcome and self._outcome_of == self._versions() and self.condition is None:
            ways = {c: w for c, w in self._ways.items() if w not in CHANGES}
            self._ways = ways | dict(self._outcome)
            self._places = {case_id: at for at, case_id in enumerate(self._outcome)}
        self.flips = {
            row: way for row in self._pairs if (way := self.way(row)) in ("broke", "fixed")
        }
        whys = (len(f"{way} {self._why(row)}") for row, way in self.flips.items())
        self._why_width = min(WHY_PAIR, max(whys, default=WHY_PAIR))

    def marks(self) -> dict[int, bool]:
        """Of the cases that were ok in the base run, which broke."""
        ways = {case_id: way for case_id, way in self._ways.items() if way in ("broke", "ok still")}
        return {id_number(case_id): way == "broke" for case_id, way in ways.items()}

    def _harm(self, row: int) -> tuple[int, float, int]:
        """Sorts the worst change first: by what became of the case, then by its greatest loss."""
        way = HARM.get(self.way(row), len(HARM))
        if (place := self._places.get(self.table.ids[row])) is not None:
            return way, place, row
        gains = [gain for name in self.shown_metrics() if (gain := self._gain(name, row))]
        return way, min(gains, default=0.0), row

    def _gain(self, name: str, row: int) -> float | None:
        before = self.base_table.number(name, self._pairs[row])
        return rows.gain(name, before, self.table.number(name, row))

    def _ordered(self, listed: Sequence[int]) -> Sequence[int]:
        """By a number: by how much it changed, the greatest loss first."""
        if self.sort == "order":
            return [*reversed(listed)]
        if self.table.column(self.sort) is None:
            return super()._ordered(listed)
        gains = {row: self._gain(self.sort, row) for row in listed}
        known = {row: gain for row, gain in gains.items() if gain is not None}
        ordered = sorted(known, key=known.__getitem__, reverse=self.reverse)
        return ordered + [row for row in listed if row not in known]

    def _why(self, row: int) -> str:
        """Why the case fails now; of gold that is lost, the ranks."""
        reason = CaseList.reason(self, row)
        if reason == NO_GOLD and (found := self.base_table.number("mrr", self._pairs[row])):
            return rank_change(found, self.table.number("mrr", row))
        return reason

    def select(self, query: Query, candidates: Sequence[int]) -> Sequence[int]:
        return query.select(self.table, candidates, self.failing.reasons(self.table), self.flips)

    def reason(self, row: int) -> str:
        """The change of the case, and its reason to fail in the new run."""
        return ": ".join(filter(None, (self.flips.get(row, ""), super().reason(row))))

    def mean(self, name: str, look: Look) -> str:
        base_rows = [self._pairs[row] for row in self.listed if row in self._pairs]
        before = mean_of(self.base_table, name, base_rows)[0]
        return _change(name, before, mean_of(self.table, name, self.listed)[0], look)[1]

    def way(self, row: int) -> str:
        """The change of a row's case: broke, fixed, fails still or ok still."""
        return self._ways.get(self.table.ids[row], "")

    def export_name(self, form: str) -> str:
        return f"{self.base.run_id}-{super().export_name(form)}"

    def fails(self, row: int) -> bool:
        return self.flips.get(row) == "broke" if not self.only_flips else row in self.flips

    def columns(self, width: int) -> list[Column]:
        """Score columns with two numbers each; columns that no longer fit are left out."""
        columns = super().columns(width)
        wide, used = [], rows.LEFT
        for column in columns[:-1]:
            if column.name == "why" and width >= ROOMY:
                most = WHY_PAIR if width >= WIDE else 0
                least = self._why_width if self.only_flips else most
                column = replace(column, width=max(column.width, least))
            if column.right:
                column = replace(column, width=SCORE_PAIR)
                if used + SCORE_PAIR + 1 + rows.QUESTION_MIN > width:
                    break
            wide.append(column)
            used += column.width + 1
        return [*wide, replace(columns[-1], width=max(0, width - used))]

    def row_line(self, row: int, columns: Sequence[Column], sign: str, look: Look) -> Line:
        arrow = "->" if look.ascii else "→"
        word, style = rows.FLIP_WORDS.get(self.way(row), ("-", "dim"))
        why = style, f"{word} {self._why(row).replace('→', arrow)}".rstrip()
        base_row = self._pairs.get(row, 0)

        def number(name: str) -> tuple[str, str]:
            before = self.base_table.number(name, base_row)
            return _change(name, before, self.table.number(name, row), look)

        return rows.case_row(self.table, row, columns, sign, why, number)

    def title(self, look: Look) -> list[Span]:
        arrow = "->" if look.ascii else "→"
        counts = Counter(self._ways.values())
        broke, fixed = counts["broke"], counts["fixed"]
        names = f" {one_line(self.base.run_id, 40)} {arrow} {one_line(self.run.run_id, 40)}"
        spans: list[Span] = [
            ("term", display(names)),
            ("row", display(f"  {counted(len(self._ways), 'case')} in both  ")),
            ("bad" if broke else "dim", display(f"{broke} broke")),
            ("row", display("  ")),
            ("good" if fixed else "dim", display(f"{fixed} fixed")),
            ("dim", display("  flips only" if self.only_flips else "  all cases")),
        ]
        return spans

    def second_line(self, width: int) -> list[Span]:
        if self.filter is None and self.says:
            return [("row", one_line(f" {self.says[0]}", 1000))]
        if self.filter is None:
            return [("dim", one_line(f" {self.failing.describe()} (! changes it)", 300))]
        return super().second_line(width)


def _change(name: str, before: float | None, after: float | None, look: Look) -> tuple[str, str]:
    """A number of two runs with its style; one number where they do not differ."""
    base, new = rows.number_pair(name, before, after)
    return ("dim", new) if base == new else ("key", f"{base}{'>' if look.ascii else '→'}{new}")
