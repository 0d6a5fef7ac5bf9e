"""Answers that were produced elsewhere: a JSONL file instead of a bot.

A line is a line of results.jsonl, or an object with

- ``id`` (or ``test_case_id``, ``case_id``), or else ``conversation`` and ``turn``, or else
  ``question`` (``user_input``), each as in the set;
- ``answer`` (``response``);
- ``retrieved``: passages as objects or ids, or ``contexts`` (``retrieved_contexts``): as texts;
- any other field of a result;
- ``error``: a text or ``{kind, message}``, for an answer that failed;
- ``repeat``: 0, 1, … when the cases were asked several times.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from clients.http import KINDS, CallError
from clients.mapping import RESULT_FIELDS, build_result
from clients.run_plan import Job
from records.cases import TestCase
from records.errors import Problem, StorageError
from records.lines import iter_lines, parse_json
from records.results import ErrorInfo, TestResult
from terminal.tables import printable

IDS = ("id", "test_case_id", "case_id")

QUESTIONS = ("question", "user_input")

ANSWERS = ("answer", "response")

CONTEXTS = ("contexts", "retrieved_contexts")

SHOWS_AN_ANSWER = ("answer", "retrieved", "abstained")

Report = Callable[[Problem], None]


def read_answers(
    path: Path, cases: Sequence[TestCase], jobs: Sequence[Job]
) -> Generator[TestResult]:
    """One result for each job, in the order of the file. The file is read twice, never kept.

    Raises StorageError with every problem before the first result: lines that fit no case of the
    set, cases of the run without a line, two lines for one, wrong types.
    """
    importer = _Importer(path, cases, jobs)
    problems: list[Problem] = []
    for _ in importer.results(problems.append):
        pass
    problems.extend(importer.missing())
    if problems:
        raise StorageError.from_problems(problems)
    return importer.results(problems.append)


class _Importer:
    def __init__(self, path: Path, cases: Sequence[TestCase], jobs: Sequence[Job]) -> None:
        self._path = path
        self._cases = {case.id: case for case in cases}
        self._expected = {job.key for job in jobs}
        self._selected = {job.case.id for job in jobs}
        self._first_line: dict[tuple[str, int], int] = {}
        self._by_turn = {(case.conversation, case.turn): case for case in cases}
        self._by_question: dict[str, list[TestCase]] = {}
        for case in cases:
            self._by_question.setdefault(case.question, []).append(case)

    def results(self, report: Report) -> Generator[TestResult]:
        self._first_line = {}
        for number, line in iter_lines(self._path, report, limit=None):
            try:
                raw = parse_json(line)
                if not isinstance(raw, dict):
                    raise ValueError("is no JSON object")
                result = self._result(raw, number)
            except orjson.JSONDecodeError as error:
                report(self._problem(number, "", f"not JSON ({error.msg})"))
            except ValueError as error:
                report(self._problem(number, "", str(error)))
            except CallError as error:
                field, _, message = error.message.partition(": ")
                report(self._problem(number, field, message))
            else:
                if result is not None:
                    yield result

    def missing(self) -> Iterator[Problem]:
        for case_id, repeat in sorted(self._expected - self._first_line.keys()):
            times = f" (repeat {repeat})" if repeat else ""
            yield self._problem(
                None,
                "",
                f"no answer for case {case_id!r}{times}; add a line, or leave the case out "
                "with --filter or --limit",
            )

    def _result(self, raw: dict[str, Any], number: int) -> TestResult | None:
        """The line as a result; None when its case is in the set but not in this run."""
        case = self._case(raw)
        repeat = raw.get("repeat", 0)
        key = (case.id, repeat)
        if case.id not in self._selected:
            return None
        if not isinstance(repeat, int) or key not in self._expected:
            raise ValueError(f"repeat is {repeat!r}; --repeat says how many each case has")
        first = self._first_line.setdefault(key, number)
        if raw.get("error") or raw.get("status") == "error":
            error = _error(raw.get("error"))
            result = TestResult(case.id, case.question, "error", error=error, repeat=repeat)
        else:
            result = build_result(_fields(raw), case.id, case.question, repeat)
        if first != number:
            raise ValueError(f"case {case.id!r} has an answer on line {first} already")
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

    def _problem(self, line: int | None, field: str, message: str) -> Problem:
        return Problem(str(self._path), line, printable(field), printable(message))


def _fields(raw: dict[str, Any]) -> dict[str, Any]:
    """The line's fields under the names of a result."""
    fields = {name: raw[name] for name in RESULT_FIELDS if raw.get(name) is not None}
    answer = _first(raw, ANSWERS)
    if answer is not None:
        fields["answer"] = answer
    contexts = _first(raw, CONTEXTS)
    if contexts is not None and "retrieved" not in fields:
        if not isinstance(contexts, list) or not all(isinstance(text, str) for text in contexts):
            raise ValueError("contexts is no list of texts; use retrieved for objects and ids")
        fields["retrieved"] = [{"text": text} for text in contexts]
    if not any(name in fields for name in SHOWS_AN_ANSWER):
        raise ValueError("holds no answer, no retrieved passages and no error")
    for name in ("retrieved", "references", "searches"):
        if not isinstance(fields.get(name, []), list):
            raise ValueError(f"{name} is no list")
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


def _error(value: Any) -> ErrorInfo:
    """An error of elsewhere, under our kind where it has one."""
    if isinstance(value, dict):
        kind, message = value.get("kind"), str(value.get("message") or "")
        attempts = value.get("attempts")
        own_kind = kind if isinstance(kind, str) and kind in KINDS else "imported"
        if own_kind == "imported" and isinstance(kind, str):
            message = f"{kind}: {message}"
        return ErrorInfo(own_kind, message, attempts if isinstance(attempts, int) else 1)
    return ErrorInfo("imported", "" if value is None else str(value))


def _first(raw: dict[str, Any], names: Sequence[str]) -> Any:
    return next((raw[name] for name in names if raw.get(name) is not None), None)
