"""Reads cases of a run in full: one with its judgements, or some."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from decisions.case_verdict import Key
from records.cases import TestCase, iter_cases
from records.errors import StorageError
from records.labels import read_labels
from records.profiles import forget_unmapped, read_maps_passages
from records.results import TestResult
from records.run import Run
from records.scores import OWN_TEXTS, ScoreLine
from views.case import Case, case_of

NOT_FOUND = "the line is not there any more: the file was replaced; it is being read again"


def read_case(run: Run, offset: int, key: Key) -> Case:
    """One answer of a run, read now from the line that begins at an offset, with its judgements.
    What cannot be read is left out and named in ``problems``."""
    case_id, repeat = key
    problems: list[str] = []
    line = run.result_line(offset)
    result = _result(line, case_id, problems)
    result.repeat = repeat
    lines: dict[str, ScoreLine] = {}
    judged = None
    try:
        if not read_maps_passages(run.folder):
            forget_unmapped(result)
        for section in run.sections:
            for score in run.section(section).lines_of((case_id,)).get(case_id, ()):
                if score.repeat == repeat:
                    lines[section] = score
        judged = run.verdicts_of(*key)
    except StorageError as error:
        problems.append(error.message)
    return case_of(result, run.cases.get(case_id), lines, judged, raw=line, problems=problems)


def _result(line: bytes, case_id: str, problems: list[str]) -> TestResult:
    try:
        result = msgspec.json.decode(line, type=TestResult)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problems.append(f"the result cannot be read ({error})" if line else NOT_FOUND)
        return TestResult(case_id)
    if result.test_case_id != case_id:
        problems.append(NOT_FOUND)
        return TestResult(case_id)
    return result


def read_cases(
    table: Run,
    ids: Collection[str],
    asked: Mapping[str, TestCase],
    sections: Collection[str] | None = None,
) -> dict[Key, Case]:
    """All answers to some cases of a run, without a judge's verdicts.

    ``asked``: the cases, as far as the set has them. ``sections``: whose score lines are read;
    None: all that there are. Raises StorageError for damaged files.
    """
    lines: dict[Key, dict[str, ScoreLine]] = {}
    for section in table.sections:
        if section != OWN_TEXTS and (sections is None or section in sections):
            for own in table.section(section).lines_of(ids).values():
                for line in own:
                    lines.setdefault((line.case_id, line.repeat), {})[section] = line
    answers = (((one.test_case_id, one.repeat), one) for one in table.answers_of(ids))
    return {key: case_of(one, asked.get(key[0]), lines.get(key, {})) for key, one in answers}


def first_answers(
    table: Run,
    ids: Collection[str],
    asked: Mapping[str, TestCase] = MappingProxyType({}),
    sections: Collection[str] = ("retrieval",),
) -> dict[str, Case]:
    """The first answer to some cases of a run, see ``read_cases``."""
    first: dict[str, Case] = {}
    for (case_id, _), case in read_cases(table, ids, asked, sections).items():
        first.setdefault(case_id, case)
    return first


def read_asked(
    eval_set: Path, labels_dir: Path | None, ids: Collection[str]
) -> dict[str, TestCase]:
    """The cases with these ids, of a set that is there. Faulty lines were reported when the run was
    scored."""
    if not ids or not eval_set.exists():
        return {}
    labels, _ = read_labels(labels_dir, lambda problem: None, eval_set)
    cases = iter_cases(eval_set, lambda problem: None, labels)
    return {case.id: case for case in cases if case.id in ids}
