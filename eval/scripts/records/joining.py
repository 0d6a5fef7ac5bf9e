"""Cases and their results side by side, as a stream: neither file is ever whole in memory.

Results of a finished run stand in the order of the eval set: one pass over both files joins them.
Ranges of bytes, cut between two cases, let several processes share the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

import msgspec

from records.case_file import Labels, Report, iter_cases
from records.cases import TestCase
from records.errors import Problem
from records.results import TestResult

Joined = tuple[TestCase, list[TestResult]]
ReadResults = Callable[..., Iterator[TestResult]]


@dataclass(frozen=True, slots=True)
class Work:
    """A byte range of results.jsonl and the range of the eval set that holds its cases."""

    results: Path
    eval_set: Path
    start: int = 0
    end: int | None = None
    cases_start: int = 0
    cases_end: int | None = None


class OutOfOrderError(Exception):
    """The results do not follow the order of the cases: a stream cannot join them."""


def join_stream(
    work: Work, labels: Labels, report: Report, read_results: ReadResults
) -> Iterator[Joined]:
    """Each case that has results, with its repeats, in order.

    Cases without results are passed over (a run may ask a part of the set), but every line of both
    files is checked. Raises OutOfOrderError when a result's case does not come later in the set.
    """
    results = read_results(work.results, report, work.start, work.end)
    waiting = next(results, None)
    for case in iter_cases(work.eval_set, report, labels, work.cases_start, work.cases_end):
        if waiting is None or waiting.test_case_id != case.id:
            continue
        repeats = [waiting]
        waiting = None
        for result in results:
            if result.test_case_id != case.id:
                waiting = result
                break
            repeats.append(result)
        yield case, repeats
    if waiting is not None:
        raise OutOfOrderError(waiting.test_case_id)


def join_indexed(
    work: Work, labels: Labels, report: Report, read_results: ReadResults
) -> Iterator[Joined]:
    """The same for results in any order; holds the cases and the results in memory.

    A result whose case the set does not have is reported.
    """
    cases = {case.id: case for case in iter_cases(work.eval_set, report, labels)}
    found: dict[str, list[TestResult]] = {}
    for result in read_results(work.results, report):
        found.setdefault(result.test_case_id, []).append(result)
    for case_id in found.keys() - cases.keys():
        message = f"{case_id!r} is not in {work.eval_set}; give the set that the run was asked with"
        report(Problem(str(work.results), None, "test_case_id", message))
    for case_id, case in cases.items():
        if case_id in found:
            yield case, sorted(found[case_id], key=attrgetter("repeat"))


class _CaseId(msgspec.Struct):
    id: str


class _ResultId(msgspec.Struct):
    test_case_id: str


def split(whole: Work, parts: int) -> list[Work]:
    """Up to ``parts`` ranges that together are the whole; [whole] when it cannot be cut safely."""
    try:
        cuts = _result_cuts(whole.results, parts)
        places = _case_places(whole.eval_set, set(cuts.values()))
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError):
        return [whole]
    if places is None or len(places) != len(cuts):
        return [whole]
    works, start, cases_start = [], 0, 0
    for cut, case_id in cuts.items():
        if places[case_id] <= cases_start:
            return [whole]
        works.append(replace(whole, start=start, end=cut, cases_start=cases_start))
        works[-1] = replace(works[-1], cases_end=places[case_id])
        start, cases_start = cut, places[case_id]
    return [*works, replace(whole, start=start, cases_start=cases_start)]


def _result_cuts(results: Path, parts: int) -> dict[int, str]:
    """Offsets where a new case's results begin, near the even cuts, with that case's id."""
    decode = msgspec.json.Decoder(_ResultId).decode
    size = results.stat().st_size
    cuts: dict[int, str] = {}
    with open(results, "rb") as file:
        for part in range(1, parts):
            file.seek(size * part // parts)
            file.readline()
            line = file.readline()
            if not line:
                break
            before = decode(line).test_case_id
            offset = file.tell()
            while (line := file.readline()) and decode(line).test_case_id == before:
                offset = file.tell()
            if line:
                cuts[offset] = decode(line).test_case_id
    return cuts


def _case_places(eval_set: Path, wanted: set[str]) -> dict[str, int] | None:
    """Offsets of the wanted cases' lines; None when two cases share an id."""
    decode = msgspec.json.Decoder(_CaseId).decode
    seen: set[str] = set()
    places: dict[str, int] = {}
    with open(eval_set, "rb") as file:
        offset = 0
        for line in file:
            if not line.isspace():
                case_id = decode(line).id
                if case_id in seen:
                    return None
                seen.add(case_id)
                if case_id in wanted:
                    places[case_id] = offset
            offset += len(line)
    return places
