"""Cases and their results side by side, as a stream: neither file is ever whole in memory.

Results of a finished run stand in the order of the eval set: one pass over both files joins them.
Ranges of bytes, cut between two cases, let several processes share the work.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import chain, groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

import msgspec
import orjson

from records.cases import HashOf, Labels, TestCase, iter_case_blocks, iter_cases
from records.errors import Problem
from records.file_access import open_plain
from records.jsonl import Lean
from records.lines import Report
from records.results import TestResult, iter_result_blocks, iter_results
from records.shards import Part, is_sharded, open_address, parts_of

_ID, _CASE_OF = attrgetter("id"), attrgetter("test_case_id")

Joined = tuple[list[TestCase], list[TestResult]]
"""Two lists of one length: each result with its case. Repeats of a case stand together."""

Absent = Callable[[TestCase, Collection[int]], list[TestResult]]
"""Placeholder of the results that a case should have, besides those of its present repeats."""


class Work(msgspec.Struct, frozen=True):
    """A byte range of results.jsonl and the range of the eval set with its cases."""

    results: Path
    eval_set: Path
    start: int = 0
    end: int | None = None
    cases_start: int = 0
    cases_end: int | None = None


class OutOfOrderError(Exception):
    """The results do not follow the order of the cases: a stream cannot join them."""


def join_stream(
    work: Work,
    labels: Labels,
    report: Report,
    hashes: array[int] | None = None,
    absent: Absent | None = None,
    hash_of: HashOf = hash,
) -> Iterator[Joined]:
    """Blocks of results with their cases, in order; no case is split between two blocks.

    Cases without results are passed over (a run may ask a part of the set), but every line of both
    files is checked. ``hashes`` takes a hash of each case id, which ``hash_of`` makes. ``absent``
    puts something into the place of results that should be there. Raises OutOfOrderError when a
    result's case does not come later in the set.
    """
    hashes = array("q") if hashes is None else hashes
    part = (work.cases_start, work.cases_end, Lean(TestCase), hashes, hash_of)
    cases = chain.from_iterable(iter_case_blocks(work.eval_set, report, labels, *part))
    blocks = iter_result_blocks(work.results, report, work.start, work.end, Lean(TestResult))
    read: list[TestCase] = []
    for results in _whole_cases(blocks):
        case_ids = list(map(_CASE_OF, results))
        read += islice(cases, max(0, len(case_ids) - len(read)))
        matches, rest = read[: len(case_ids)], read[len(case_ids) :]
        if list(map(_ID, matches)) != case_ids:
            matches, rest, passed = _pass_over(read, cases, case_ids)
            if absent is not None:
                matches, results = _filled(matches, results, passed, absent)
        elif absent is not None and absent(matches[0], {results[0].repeat}):
            matches, results = _filled(matches, results, {}, absent)  # several repeats were asked
        yield matches, results
        read = rest
    none_of = absent or (lambda case, repeats: [])
    tail = [(case, result) for case in chain(read, cases) for result in none_of(case, ())]
    if tail:  # what no result asks for is checked as well
        yield [case for case, _ in tail], [result for _, result in tail]


def _filled(
    cases: list[TestCase],
    results: list[TestResult],
    passed: Mapping[int, list[TestCase]],
    absent: Absent,
) -> Joined:
    """The same with what stands for absent results. ``passed``: the cases without any result before
    the case at each place."""
    filled: list[tuple[TestCase, TestResult]] = []
    place = 0
    for _, group in groupby(zip(cases, results, strict=True), key=lambda pair: pair[0].id):
        for case in passed.get(place, ()):
            filled += [(case, result) for result in absent(case, ())]
        pairs = list(group)
        case = pairs[0][0]
        filled += pairs
        filled += [(case, result) for result in absent(case, {r.repeat for _, r in pairs})]
        place += len(pairs)
    return [case for case, _ in filled], [result for _, result in filled]


def _pass_over(
    read: list[TestCase], cases: Iterator[TestCase], case_ids: Iterable[str]
) -> tuple[list[TestCase], list[TestCase], dict[int, list[TestCase]]]:
    """The case of each wanted id in turn, what was read and comes behind them, and the cases that
    were passed over, by the place of the next match."""
    rest = iter(read)
    source = chain(rest, cases)
    matches: list[TestCase] = []
    passed: dict[int, list[TestCase]] = {}
    for case_id in case_ids:
        case = matches[-1] if matches else next(source, None)
        while case is not None and case.id != case_id:
            if not matches or case is not matches[-1]:
                passed.setdefault(len(matches), []).append(case)
            case = next(source, None)
        if case is None:
            raise OutOfOrderError(case_id)
        matches.append(case)
    return matches, list(rest), passed


def _whole_cases(blocks: Iterable[list[TestResult]]) -> Iterator[list[TestResult]]:
    """The same results, cut so that the repeats of a case stay together."""
    held: list[TestResult] = []
    for block in blocks:
        results = held + block
        cut = len(results)
        while cut and results[cut - 1].test_case_id == results[-1].test_case_id:
            cut -= 1
        held = results[cut:]
        if cut:
            yield results[:cut]
    if held:
        yield held


def join_indexed(
    work: Work, labels: Labels, report: Report, absent: Absent | None = None
) -> Iterator[Joined]:
    """The same for results in any order; keeps the cases and the results in memory.

    A result whose case the set does not have is reported.
    """
    cases = {case.id: case for case in iter_cases(work.eval_set, report, labels)}
    by_case: dict[str, list[TestResult]] = {}
    for result in iter_results(work.results, report):
        by_case.setdefault(result.test_case_id, []).append(result)
    for case_id in (case_id for case_id in by_case if case_id not in cases):
        message = f"{case_id!r} is not in {work.eval_set}; name the set that the run was asked with"
        report(Problem(str(work.results), None, "test_case_id", message))
    for case_id, case in cases.items():
        repeats = sorted(by_case.get(case_id, ()), key=attrgetter("repeat"))
        if absent is not None:
            repeats += absent(case, {result.repeat for result in repeats})
        if repeats:
            yield [case] * len(repeats), repeats


class _CasePlace(msgspec.Struct):
    id: str
    turn: int | None = None


class _ResultId(msgspec.Struct):
    test_case_id: str


def split(whole: Work, parts: int) -> list[Work]:
    """Up to ``parts`` ranges that together are the whole; [whole] when it cannot be cut.

    Results in parts are one range a part. No conversation is cut. Whether two ranges of the set
    share a case id, the hashes of ``join_stream`` tell.
    """
    try:
        sharded = is_sharded(whole.results)
        cuts = _shard_cuts(whole) if sharded else _cuts(whole, parts)
    except (msgspec.MsgspecError, ValueError, OSError):
        return [whole]
    works, start, cases_start = [], 0, 0
    for cut, offset in cuts.items():
        if offset is None or offset <= cases_start:
            return [whole]
        works.append(Work(whole.results, whole.eval_set, start, cut, cases_start, offset))
        start, cases_start = cut, offset
    return [*works, msgspec.structs.replace(whole, start=start, cases_start=cases_start)]


def _cuts(whole: Work, parts: int) -> dict[int, int | None]:
    """Offsets in the results, near the even cuts, where the results of a case begin that is no
    later turn, with the offset of that case's line; None when its id is not spelled plainly."""
    size = whole.results.stat().st_size
    cuts: dict[int, int | None] = {}
    with open_plain(whole.results) as results, _finder(whole.eval_set) as find:
        for part in range(1, parts):
            for cut, case_id in _next_cases(results, size * part // parts):
                offset, turn = find(case_id)
                if turn is None or turn <= 1:
                    cuts[cut] = offset
                    break
    return cuts


def _next_cases(results: BinaryIO, position: int) -> Iterator[tuple[int, str]]:
    """Offsets behind a position where a new case's results begin, with that case's id."""
    decode = msgspec.json.Decoder(_ResultId).decode
    results.seek(position)
    results.readline()
    offset, before = results.tell(), None
    while line := results.readline():
        case_id = decode(line).test_case_id
        if before is not None and case_id != before:
            yield offset, case_id
        before = case_id
        offset += len(line)


def _shard_cuts(whole: Work) -> dict[int, int | None]:
    """The same where each part of the results begins, but the first.

    A set that was cut with them has as many parts; those are taken for a pair, and the join tells
    if they are none.
    """
    results, cases = parts_of(whole.results), parts_of(whole.eval_set)
    cuts: dict[int, int | None] = {}
    if len(results) == len(cases):
        first = msgspec.json.Decoder(_CasePlace).decode
        for part, of_set in zip(results[1:], cases[1:], strict=True):
            turn = first(_first_line(of_set)).turn
            if turn is None or turn <= 1:
                cuts[part.start] = of_set.start
        return cuts
    decode = msgspec.json.Decoder(_ResultId).decode
    with _finder(whole.eval_set) as find:
        for part in results[1:]:
            offset, turn = find(decode(_first_line(part)).test_case_id)
            if turn is None or turn <= 1:
                cuts[part.start] = offset
    return cuts


def _first_line(part: Part) -> bytes:
    with open_address(part.address) as file:
        return file.readline()


_Find = Callable[[str], tuple[int | None, int | None]]
"""The offset of a case's line, and which turn it is; None for what is not there."""


@contextmanager
def _finder(eval_set: Path) -> Iterator[_Find]:
    """Looks cases up in the set, each behind the one before; in its parts as far as they lie on
    this machine."""
    decode = msgspec.json.Decoder(_CasePlace).decode
    parts = [part for part in parts_of(eval_set) if isinstance(part.address, Path)]
    lines = _portions(parts)
    start, text = 0, b""

    def find(case_id: str) -> tuple[int | None, int | None]:
        nonlocal start, text
        spelled = orjson.dumps(case_id)
        at = -1
        while True:
            while (at := text.find(spelled, at + 1)) >= 0:
                begin = text.rfind(b"\n", 0, at) + 1
                case = decode(text[begin : text.find(b"\n", at) + 1 or None])
                if case.id == case_id:
                    return start + begin, case.turn
            start, text = next(lines, (start, b""))
            if not text:
                return None, None

    with closing(lines):
        yield find


def _portions(parts: Iterable[Part]) -> Generator[tuple[int, bytes], None, None]:
    """Whole lines of files, a megabyte or so at a time, with where they begin in the whole."""
    for part in parts:
        offset = part.start
        with open_address(part.address) as file:
            while text := file.read(_PORTION) + file.readline():
                yield offset, text
                offset += len(text)


_PORTION = 1 << 20
