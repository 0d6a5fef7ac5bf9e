"""Reads cases in full: one from its lines, which the browser knows, or some of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec
import orjson

from decisions.case_verdict import Key
from records.cases import Labels, TestCase, canonical, case_from_dict, iter_cases
from records.errors import StorageError
from records.judgements import Verdicts
from records.labels import read_labels
from records.profiles import forget_unmapped
from records.results import TestResult
from records.run import Run
from records.runs import SCORES, scored_sections
from records.scores import OWN_TEXTS, ScoreHead, ScoreLine, line_type
from views.case import Case, case_of

NOT_FOUND = "the line is not there any more: the file was replaced; it is being read again"


def read_case(
    result_line: bytes,
    case_line: bytes,
    labels: Labels,
    score_lines: Mapping[str, bytes],
    verdicts: Callable[[], Verdicts],
    key: Key,
    heads: Mapping[str, ScoreHead | None] = MappingProxyType({}),
    *,
    maps_passages: bool = True,
) -> Case:
    """A case from its lines. What cannot be read is left out and named in ``problems``.

    ``verdicts`` reads what the run's judge said of it; it may raise StorageError. ``heads``: of the
    files that the score lines come from. ``maps_passages``: whether an empty list says anything.
    """
    case_id, repeat = key
    problems: list[str] = []
    result = _result(result_line, case_id, problems)
    result.repeat = repeat
    if not maps_passages:
        forget_unmapped(result)
    lines = _scores(score_lines, case_id, problems)
    for section, line in lines.items():
        if head := heads.get(section):
            head.complete(line)
    asked = _asked(case_line, labels, case_id, problems)
    judged = None
    try:
        judged = verdicts()
    except StorageError as error:
        problems.append(error.message)
    return case_of(result, asked, lines, judged, raw=result_line, problems=problems)


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


def _scores(lines: Mapping[str, bytes], case_id: str, problems: list[str]) -> dict[str, ScoreLine]:
    readable: dict[str, ScoreLine] = {}
    for section, line in lines.items():
        try:
            score = msgspec.json.decode(line, type=line_type(section))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            problems.append(f"{SCORES}/{section}.jsonl: the line cannot be read ({error})")
            continue
        if score.case_id == case_id:
            readable[section] = score
    return readable


def _asked(line: bytes, labels: Labels, case_id: str, problems: list[str]) -> TestCase | None:
    if not line:
        return None
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError:
        raw = None
    raw = canonical(raw) if isinstance(raw, dict) else {}
    if raw.get("id") != case_id:
        problems.append("the case in the eval set was changed since it was read")
        return None
    case, findings = case_from_dict(raw | labels.get(case_id, {}))
    problems += [f"eval set: {field}: {fault}" for field, fault in findings]
    return case


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
    for section in scored_sections(table.folder):
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
    """The cases with these ids. Faulty lines were reported when the run was scored."""
    labels, _ = read_labels(labels_dir, lambda problem: None, eval_set)
    cases = iter_cases(eval_set, lambda problem: None, labels)
    return {case.id: case for case in cases if case.id in ids}
