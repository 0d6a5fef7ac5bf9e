"""Answers that were produced elsewhere: a JSONL file instead of a bot.

A line is a line of results.jsonl, or an object with

- ``id`` (or ``test_case_id``, ``case_id``), or else ``conversation`` and ``turn``, or else
  ``question`` (``user_input``), each as in the set;
- ``answer`` (``response``);
- ``retrieved``: passages as objects or ids, or ``contexts`` (``retrieved_contexts``): as texts;
- any other field of a result;
- ``error``: a text or ``{kind, message}``, for an answer that failed;
- ``status``: ``unreadable`` for an answer that came and that is not known;
- ``repeat``: 0, 1, … when the cases were asked several times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET

from formats.shared.item import Notes
from formats.shared.rows import SourceRow, jsonl_rows
from records.cases import TestCase
from records.checked_results import RESULT_FIELDS, ResultFault, checked_result
from records.results import UNREADABLE, ErrorInfo, TestResult

IDS = ("id", "test_case_id", "case_id")

QUESTIONS = ("question", "user_input")

ANSWERS = ("answer", "response")

CONTEXTS = ("contexts", "retrieved_contexts")

SHOWS_AN_ANSWER = ("answer", "retrieved", "abstained")

Key = tuple[str, int]
"""Case id and repeat."""


def read_answers(
    path: Path, cases: Sequence[TestCase], asked: Collection[Key], kinds: Collection[str]
) -> Iterator[TestResult]:
    """One result for each case and repeat in ``asked``, in the order of the file, which is read
    twice and never kept. ``kinds``: the kinds of errors that results tell.

    Raises StorageError with every problem before the first result: lines that fit no case of the
    set, cases of the run without a line, two lines for one, wrong types.
    """
    reader = _AnswerReader(path, cases, asked, kinds)
    notes = Notes()
    for _ in reader.results(notes):
        pass
    reader.note_missing(notes)
    notes.check()
    return reader.results(notes)


class _AnswerReader:
    def __init__(
        self, path: Path, cases: Sequence[TestCase], asked: Collection[Key], kinds: Collection[str]
    ) -> None:
        self._path, self._kinds = path, kinds
        self._cases = {case.id: case for case in cases}
        self._asked = frozenset(asked)
        self._selected = {case_id for case_id, _ in asked}
        self._first_line: dict[Key, int | None] = {}
        self._by_turn = {(case.conversation, case.turn): case for case in cases}
        self._by_question: dict[str, list[TestCase]] = {}
        for case in cases:
            self._by_question.setdefault(case.question, []).append(case)

    def results(self, notes: Notes) -> Iterator[TestResult]:
        self._first_line = {}
        for row in jsonl_rows(self._path, notes):
            try:
                result = self._result(row)
            except ResultFault as fault:
                field, _, message = str(fault).partition(": ")
                notes.problem(row.path, row.line, field, message)
            except ValueError as error:
                notes.problem(row.path, row.line, "", str(error))
            else:
                if result is not None:
                    yield result

    def note_missing(self, notes: Notes) -> None:
        for case_id, repeat in sorted(self._asked - self._first_line.keys()):
            times = f" (repeat {repeat})" if repeat else ""
            remedy = "add a line, or leave the case out with --filter or --limit"
            notes.problem(self._path, None, "", f"no answer for case {case_id!r}{times}; {remedy}")

    def _result(self, row: SourceRow) -> TestResult | None:
        """The line as a result; None when its case is in the set but not in this run."""
        raw = row.fields
        case = self._case(raw)
        repeat = raw.get("repeat", 0)
        if case.id not in self._selected:
            return None
        if not isinstance(repeat, int) or (case.id, repeat) not in self._asked:
            raise ValueError(f"repeat is {repeat!r}; --repeat says how many each case has")
        first = self._first_line.setdefault((case.id, repeat), row.line)
        if raw.get("error") or raw.get("status") == "error":
            error = self._error(raw.get("error"))
            result = TestResult(case.id, case.question, "error", error=error, repeat=repeat)
        elif raw.get("status") == UNREADABLE:
            result = TestResult(case.id, case.question, UNREADABLE, repeat=repeat)
            absent = raw.get("absent")
            why = absent.get("answer") if isinstance(absent, dict) else None
            result.absent = {"answer": str(why)} if why else UNSET
        else:
            result = checked_result(_fields(raw), case.id, case.question, repeat)
        if first != row.line:
            raise ValueError(f"case {case.id!r} already has an answer on line {first}")
        return result

    def _case(self, raw: dict[str, Any]) -> TestCase:
        identity = _first(raw, IDS)
        if identity is not None:
            case = self._cases.get(identity) if isinstance(identity, str) else None
            if case is None:
                raise ValueError(f"id {identity!r} is in no line of the set")
            return case
        if raw.get("conversation") is not None:
            conversation, turn = raw["conversation"], raw.get("turn")
            case = self._by_turn.get((str(conversation), turn if isinstance(turn, int) else None))
            if case is None or not isinstance(conversation, str):
                raise ValueError(
                    f"turn {turn!r} of conversation {conversation!r} is not in the set"
                )
            return case
        question = _first(raw, QUESTIONS)
        if not isinstance(question, str):
            raise ValueError("has neither an id nor a question")
        cases = self._by_question.get(question, [])
        if len(cases) != 1:
            count = "no case" if not cases else f"{len(cases)} cases"
            asked = f"{count} of the set has the question {question[:80]!r}"
            raise ValueError(f"{asked}; give an id, or conversation and turn")
        return cases[0]

    def _error(self, value: Any) -> ErrorInfo:
        """An error of elsewhere, under our kind where it has one."""
        if not isinstance(value, dict):
            return ErrorInfo("imported", "" if value is None else str(value))
        kind, message = value.get("kind"), str(value.get("message") or "")
        attempts = value.get("attempts")
        own_kind = kind if isinstance(kind, str) and kind in self._kinds else "imported"
        if own_kind == "imported" and isinstance(kind, str):
            message = f"{kind}: {message}"
        return ErrorInfo(own_kind, message, attempts if isinstance(attempts, int) else 1)


def _fields(raw: dict[str, Any]) -> dict[str, Any]:
    """The line's fields under the names of a result."""
    fields = {name: raw[name] for name in RESULT_FIELDS if raw.get(name) is not None}
    answer = _first(raw, ANSWERS)
    if answer is not None:
        fields["answer"] = answer
    contexts = _first(raw, CONTEXTS)
    if contexts is not None and "retrieved" not in fields:
        if not isinstance(contexts, list) or not all(isinstance(text, str) for text in contexts):
            raise ValueError("contexts is not a list of texts; use retrieved for objects and ids")
        fields["retrieved"] = [{"text": text} for text in contexts]
    if not any(name in fields for name in SHOWS_AN_ANSWER):
        raise ValueError("has no answer, no retrieved passages and no error")
    for name in ("retrieved", "references", "searches"):
        if not isinstance(fields.get(name, []), list):
            raise ValueError(f"{name} is not a list")
    if "retrieved" in fields:
        fields["retrieved"] = [
            {"chunk_id": item} if isinstance(item, str) else item for item in fields["retrieved"]
        ]
    if "searches" in fields:
        fields["searches"] = [
            {"query": item} if isinstance(item, str) else item for item in fields["searches"]
        ]
        if raw.get("retrieved_from_search") is not None:
            fields["retrieved_from_search"] = raw["retrieved_from_search"]
    return fields


def _first(raw: dict[str, Any], names: Sequence[str]) -> Any:
    return next((raw[name] for name in names if raw.get(name) is not None), None)
