"""The filter language: `failing category=factual recall@5<1 "how long"` as a selection of rows.

Terms stand beside one another and must all hold; `-` before a term negates
it. A term is a word of the question or id, one of KEYWORDS, or NAME OPERATOR VALUE.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ragmetrics.catalogue.cases import RULES
from records.results import UNREADABLE
from terminal.actions import ActionRefused
from views.browser.answers import PLAIN, SETS, WORDS, AnswerTable

KEYWORDS: Mapping[str, str] = {
    "failing": "cases that fail, by the rules below",
    "passing": "cases that do not fail",
    "failed": "calls that ended with an error",
    UNREADABLE: "answers that could not be read: they neither fail nor pass",
    "broke": "two runs: succeeded before, fails now",
    "fixed": "two runs: failed before, succeeds now",
    "noted": "it has a note (c) or a flag (f)",
    "flagged": "it has a flag (f)",
}

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

REASON = "reason"
"""The rule that a case breaks, by its word."""

NEAR = 5e-7
"""Two numbers within this are equal: scores are written with six places."""

_TERM = re.compile(
    r"""\s*(?P<not>-?)(?:
        (?P<name>[^\s"=<>!]+)\s*(?P<op>!=|<=|>=|=|<|>)\s*(?:"(?P<said>[^"]*)"|(?P<value>[^\s"]*))
      | "(?P<quoted>[^"]*)"
      | (?P<word>[^\s"]+)
    )(?=\s|$)""",
    re.VERBOSE,
)

FAILS = "fails"
"""The reason of a case that does not meet a condition of the user's."""

WORDS_OF_RULES = (*(rule.word for rule in RULES), FAILS)


RowTest = Callable[[int], bool]


class QueryError(ActionRefused):
    """A filter that cannot be understood; the message names the fault and the right form."""


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """One condition. ``kind``: word, keyword, words, set, reason or number."""

    kind: str
    name: str
    op: str = "="
    text: str = ""
    value: float | None = None
    turned: bool = False

    def test(self, table: AnswerTable, reasons: Sequence[str], flips: Flips) -> RowTest:
        """A function that says whether a row matches it."""
        test = self._test(table, reasons, flips)
        return (lambda row: not test(row)) if self.turned else test

    def _test(self, table: AnswerTable, reasons: Sequence[str], flips: Flips) -> RowTest:
        text, equal = self.text.casefold(), self.op == "="
        if self.kind == "word":
            ids, questions = table.ids, table.questions
            return lambda row: text in questions[row].casefold() or text in ids[row].casefold()
        if self.kind == "keyword":
            return self._keyword_test(table, reasons, flips)
        if self.kind == "number":
            numbers = table.column(self.name)
            return lambda row: numbers is not None and self.fits(numbers[row])
        if self.kind == "reason":
            return lambda row: (reasons[row] == text) == equal
        if self.kind == "set":
            sets = table.sets[self.name]
            return lambda row: (
                equal == (text in map(str.casefold, sets[row]) if text else not sets[row])
            )
        column = table.ids if self.name == "id" else table.words[self.name]
        return lambda row: (column[row].casefold() == text) == equal

    def _keyword_test(self, table: AnswerTable, reasons: Sequence[str], flips: Flips) -> RowTest:
        statuses, ids, notes = table.words["status"], table.ids, table.notes
        tests: Mapping[str, RowTest] = {
            "failing": lambda row: reasons[row] != "",
            "passing": lambda row: not reasons[row] and statuses[row] != UNREADABLE,
            "failed": lambda row: statuses[row] == "error",
            UNREADABLE: lambda row: statuses[row] == UNREADABLE,
            "noted": lambda row: bool(notes.get(ids[row])),
            "flagged": lambda row: any(note.flag for note in notes.get(ids[row], ())),
        }
        return tests.get(self.name, lambda row: flips.get(row) == self.name)

    def fits(self, number: float) -> bool:
        """Whether a number meets its condition (NaN: there is none)?"""
        if self.value is None:
            return (number != number) == (self.op == "=")
        if self.op in ("=", "!="):
            return number == number and (abs(number - self.value) <= NEAR) == (self.op == "=")
        return OPERATORS[self.op](number, self.value)


Flips = Mapping[int, str]
"""Row to broke or fixed, in a comparison of two runs."""


@dataclass(frozen=True, slots=True)
class Query:
    """A filter: its text, its terms, and the metrics that must be read for it."""

    text: str
    terms: tuple[QueryTerm, ...]

    @property
    def needs(self) -> list[str]:
        """Metrics whose columns it looks at."""
        names = [t.name for t in self.terms if t.kind == "number" and t.name not in PLAIN]
        return list(dict.fromkeys(names))

    def select(
        self,
        table: AnswerTable,
        rows: Sequence[int],
        reasons: Sequence[str] | None = None,
        flips: Flips | None = None,
    ) -> Sequence[int]:
        """The rows that match all terms, in their order. ``reasons``: why each row of the table
        fails, see ``Failing``."""
        reasons = [""] * table.count if reasons is None else reasons
        tests = [term.test(table, reasons, flips or {}) for term in self.terms]
        return [row for row in rows if all(test(row) for test in tests)]

    def hint(self, table: AnswerTable) -> str:
        """A suggestion when nothing was found; else empty."""
        for term in self.terms:
            if term.kind in ("words", "set") and term.op == "=":
                choices = _choices(table, term.name)
                if choices and term.text.casefold() not in map(str.casefold, choices):
                    return f"{term.name} is one of: {', '.join(choices)}"
        return ""


def _choices(table: AnswerTable, name: str) -> list[str]:
    """Some values of a column of words, for a hint."""
    sets = table.sets.get(name)
    values = set(table.words[name]) if sets is None else set(chain.from_iterable(set(sets)))
    return sorted(values - {""})[:8]


def names_in(text: str) -> list[str]:
    """The names that a filter compares with something, as they are typed."""
    return [match["name"] for match in _TERM.finditer(text) if match["name"] is not None]


def parse(text: str, metrics: Collection[str]) -> Query:
    """Read a filter. ``metrics``: the names that this run has. Raises QueryError."""
    terms: list[QueryTerm] = []
    start = 0
    stop = len(text.rstrip())
    while start < stop:
        match = _TERM.match(text, start)
        if match is None:
            rest = text[start:].strip()
            if rest.count('"') % 2:
                raise QueryError(f'{rest}: the quote is not closed; write "two words"')
            raise QueryError(f"{rest}: not understood; write NAME=VALUE, NAME<NUMBER or words")
        start = match.end()
        term = _term(match, metrics)
        only = term.kind == "word" and term.text.casefold() == "only" and not match["quoted"]
        if not (only and terms and terms[-1].kind == "keyword"):
            terms.append(term)
    return Query(text.strip(), tuple(terms))


def _term(match: re.Match[str], metrics: Collection[str]) -> QueryTerm:
    turned = bool(match["not"])
    if match["name"] is not None:
        value = match["said"] if match["said"] is not None else match["value"]
        is_quoted = match["said"] is not None
        return _comparison(match["name"], match["op"], value, metrics, turned, is_quoted)
    word = match["word"] if match["word"] is not None else match["quoted"]
    if match["word"] is not None and word.casefold() in KEYWORDS:
        return QueryTerm("keyword", word.casefold(), turned=turned)
    if match["word"] is not None and re.search(r"[=<>]", word):
        raise QueryError(f"{word}: a name must stand before the sign, as in recall@5<1")
    return QueryTerm("word", "", text=word, turned=turned)


def _comparison(
    name: str, op: str, value: str, metrics: Collection[str], turned: bool, is_quoted: bool
) -> QueryTerm:
    names = (*metrics, *PLAIN, *WORDS, *SETS, "id", REASON)
    folded = {column.casefold(): column for column in names}
    column = folded.get(name.casefold())
    if column is None:
        raise QueryError(unknown(name, list(folded.values())))
    condition = f"{name}{op}{value}"
    is_number = column in metrics or column in PLAIN
    if not value and (is_number or not is_quoted):
        example = f"{name}{op}{'0.5' if column in metrics else 'x'}"
        raise QueryError(f"{condition}: a value is missing, as in {example}")
    if is_number:
        if value.casefold() == "none" and op in ("=", "!="):
            return QueryTerm("number", column, op, turned=turned)
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if number != number:
            raise QueryError(
                f"{condition}: {column} is a number; write {column}{op}0.5, or {column}=none"
            )
        return QueryTerm("number", column, op, value=number, turned=turned)
    if op not in ("=", "!="):
        raise QueryError(f"{condition}: {column} is text; compare it with = or !=")
    if column == REASON:
        if value and value.casefold() not in {*WORDS_OF_RULES, *map(str.casefold, metrics)}:
            shown = ", ".join(f'"{word}"' if " " in word else word for word in WORDS_OF_RULES)
            raise QueryError(f"{condition}: a reason is one of: {shown}")
        return QueryTerm("reason", column, op, text=value, turned=turned)
    return QueryTerm("set" if column in SETS else "words", column, op, text=value, turned=turned)


_LAST = re.compile(
    r"""(?P<before>(?:[^\s"]*"[^"]*"|[^\s"]*\s)*)(?P<turned>-?)(?P<last>[^\s"]*(?:"[^"]*)?)$"""
)


def completions(
    text: str, table: AnswerTable, metrics: Collection[str], reasons: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """The completions of the last term of a filter: the whole line, and the name or the value with
    its number of cases. A word without a name becomes also a category or a tag that begins so."""
    match = _LAST.search(text)
    if match is None:
        return []
    head, typed = match["before"] + match["turned"], match["last"]
    name, sign, begun = typed.partition("=")

    def terms(name: str, begun: str) -> list[tuple[str, str]]:
        counts = Counter(_values(table, name.removesuffix("!").casefold(), reasons))
        return [
            (head + equals(name, value), f"{value} {count}")
            for value, count in counts.most_common()
            if '"' not in value and value.casefold().startswith(begun.casefold())
        ]

    if sign:
        return terms(name, begun.removeprefix('"'))
    columns = [*KEYWORDS, *(f"{word}=" for word in (*WORDS, *SETS, "id", REASON))]
    named, numbers = (
        [(head + name, name) for name in names if name.casefold().startswith(typed.casefold())]
        for names in (columns, (*metrics, *PLAIN))
    )
    values = [*terms("tag", typed), *terms("category", typed)] if typed else []
    return [*named, *values, *numbers]


def _values(table: AnswerTable, name: str, reasons: Sequence[str]) -> Iterable[str]:
    """The values of a column of words, one a case and value."""
    if name == REASON:
        return filter(None, reasons)
    if name in SETS:
        return chain.from_iterable(table.sets[name])
    words = table.ids if name == "id" else table.words[name] if name in WORDS else ()
    return filter(None, words)


def equals(name: str, value: str) -> str:
    """The term for cases with that value, as typed; an empty value: they have none.

    Raises QueryError for a value that a filter cannot hold.
    """
    if '"' in value:
        raise QueryError(f"{value}: a filter cannot hold a quotation mark")
    plain = value and not re.search(r"\s", value)
    return f"{name}={value}" if plain else f'{name}="{value}"'


def unknown(name: str, names: Sequence[str]) -> str:
    """That there is no such name, and which ones are near it."""
    near = difflib.get_close_matches(name.casefold(), names, n=3, cutoff=0.5)
    near = near or [other for other in names if other.startswith(name.casefold()[:3])][:3]
    shown = near or ["category", "tag", "status", "latency"]
    return f"{name}: this run has no such column; near it: {', '.join(shown)}"
