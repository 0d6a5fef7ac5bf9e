"""LangSmith: runs, examples with runs, tables of an experiment, by their documented shape.

Such files come from LangSmith's server; this reader follows its documentation and was tried with
files written after that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from formats.shared.item import (
    CONTEXTS,
    Ids,
    ImportedCase,
    ImportOptions,
    Notes,
    SystemAnswer,
    passages_in,
)
from formats.shared.rows import (
    JSON_ENDINGS,
    Fields,
    SourceRow,
    case_id,
    iter_rows,
    source_files,
    with_rest,
)
from formats.traces.cases import (
    TracedCase,
    as_conversations,
    case_of_trace,
    passages_kept,
    take_tool_searches,
)
from formats.traces.feedback import Ratings, rating_in
from formats.traces.private import mask_case
from formats.traces.products import runs_within, span_of_run
from formats.traces.values import rest_of, structured, words_in
from records.results import UNREADABLE, ErrorInfo, TestResult

NAME = "langsmith"

ABOUT = (
    "runs, feedback, examples with runs, experiment tables: JSON, JSONL, CSV (by the documented "
    "shape)"
)

_ENDINGS = JSON_ENDINGS | {".csv"}

_LISTS = ("results", "runs", "examples", "data")

_ANSWERS = ("actual_outputs",)

_REFERENCES = ("expected_outputs", "reference_outputs", "reference")


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each example, with the answers of its runs; for each trace where runs are alone.

    A run is named like the experiment (session_name), else like the file.
    """
    notes.changed[DOCUMENTED] += 1
    ratings = Ratings(notes)
    groups: dict[Path, dict[str, list[dict[str, Any]]]] = {}
    for path, named in source_files(sources, _ENDINGS, options.scratch, notes):
        ids = Ids()
        traces = groups.setdefault(named, {})
        for row in iter_rows(path, notes, _LISTS):
            if (told := rating_in(row.fields)) is not None:
                ratings.add(told)
            elif "run_type" in row.fields:
                for run in runs_within(row.fields):
                    notes.rows["runs"] += 1
                    trace = str(run.get("trace_id") or row.fields.get("id") or "")
                    traces.setdefault(trace, []).append(run)
            else:
                notes.rows["rows"] += 1
                yield _example(_nested(row), ids, options, notes)
    answered = [_cases_of(named, traces, options, notes) for named, traces in groups.items()]
    ratings.give(
        [traced for cases in answered for runs in cases.values() for traced in runs],
        options.key_of_ids,
    )
    for cases in answered:
        first = [runs[0] for runs in cases.values()]
        yield from as_conversations(first, options, notes)


DOCUMENTED = "read by the documented shape of the server's export, which was not seen here: files"


def _cases_of(
    path: Path, traces: dict[str, list[dict[str, Any]]], options: ImportOptions, notes: Notes
) -> dict[str, list[TracedCase]]:
    """The traces of each case: one for each question that was traced, or all runs of an example,
    whose answers belong to the first."""
    items: dict[str, list[TracedCase]] = {}
    for trace, runs in traces.items():
        notes.rows["traces"] += 1
        root = next((run for run in runs if not run.get("parent_run_id")), runs[0])
        name = options.run_id or root.get("session_name") or path.stem
        spans = [span_of_run(run, trace, options.question_field) for run in runs]
        traced = case_of_trace(path, str(name), trace, spans, notes, options.key_of_ids)
        if traced is None:
            continue
        passages_kept(traced.item, "outputs", notes)
        example = root.get("reference_example_id")
        if example:
            traced.item.case["id"] = traced.result.test_case_id = str(example)
        runs_of_case = items.setdefault(str(traced.item.case["id"]), [])
        runs_of_case.append(traced)
        earlier = runs_of_case[0]
        if earlier is not traced:
            notes.rows["further runs of an example"] += 1
            for answer in traced.item.answers:
                answer.result.repeat = sum(one.run == answer.run for one in earlier.item.answers)
                earlier.item.answers.append(answer)
    return items


def _nested(row: SourceRow) -> SourceRow:
    """Columns such as ``inputs.question`` as objects, and JSON in cells opened."""
    fields: dict[str, Any] = {}
    for name, value in row.fields.items():
        head, dot, rest = name.partition(".")
        if dot and head in ("inputs", "outputs", *_ANSWERS, *_REFERENCES):
            held = fields.setdefault(head, {})
            if isinstance(held, dict):
                held[rest] = structured(value)
        else:
            fields[name] = structured(value) if head in ("inputs", "outputs") else value
    return row._replace(fields=fields)


def _example(row: SourceRow, ids: Ids, options: ImportOptions, notes: Notes) -> ImportedCase:
    """An example of a data set, with its answer where the row is one of an experiment."""
    fields = Fields(row, notes)
    inputs, outputs = fields.take("inputs", "input"), fields.take("outputs", "output")
    answered, reference = fields.take(*_ANSWERS), fields.take(*_REFERENCES)
    runs = fields.take("runs")
    in_table = reference is not None or "execution_time" in row.fields
    if answered is None and in_table:
        answered, outputs = outputs, None
    question = words_in(inputs, "in", options.question_field)
    if question is None:
        fields.name = "inputs"
        fields.wrong("contains no question; name its field with --map question=FIELD")
    name = case_id(fields, notes, ("example_id", "row_id", "id"))
    case: dict[str, Any] = {"id": name or ids.make(question or ""), "question": question or ""}
    case["reference_answer"] = _reference(reference if reference is not None else outputs, fields)
    error, seconds = fields.text("error"), fields.number("execution_time")
    if isinstance(inputs, dict):
        rest = {key: value for key, value in inputs.items() if value != question}
        notes.carried.update(f"inputs.{key}" for key in rest)
    else:
        rest = {}
    extra = fields.rest() | ({"inputs": rest} if rest else {})
    item = ImportedCase(with_rest(case, extra), row.path, row.line)
    if answered is not None or error:
        result = TestResult(case["id"], case["question"], answer=words_in(answered, "out"))
        result.retrieved = [*passages_in(structured(answered), notes)]
        extra = rest_of(answered, result.answer)
        extra = {key: value for key, value in extra.items() if key not in CONTEXTS}
        if extra:
            notes.carried.update(f"outputs.{key}" for key in extra)
            item.case.setdefault("metadata", {})["outputs"] = extra
        if seconds is not None:
            result.latency_ms = {"total": seconds * 1000}
        if result.answer is None and answered and not error:
            result.status = UNREADABLE
            result.absent = {"answer": "no field of the outputs is known as the answer"}
            notes.left_out["answers that could not be read (no field is known as the answer)"] += 1
        elif result.answer is None:
            result.status, result.retrieved = "error", []
            result.error = ErrorInfo("imported", error or "the row has no answer")
        item.answers.append(SystemAnswer(row.path.stem, result))
    for run in runs if isinstance(runs, list) else ():
        _add_run(item, run, row.path, options, notes)
    return item


def _reference(value: Any, fields: Fields) -> str | None:
    """The reference answer; an object without one text is written as JSON."""
    value = structured(value)
    if value in (None, "", {}, []):
        return None
    words = words_in(value, "out")
    return words if words is not None else orjson.dumps(value).decode()


def _add_run(
    item: ImportedCase, run: Any, path: Path, options: ImportOptions, notes: Notes
) -> None:
    if not isinstance(run, dict):
        return
    notes.rows["runs"] += 1
    trace = str(run.get("trace_id") or run.get("id") or "")
    spans = [
        span_of_run(
            {"inputs": {"question": item.case["question"]}} | one, trace, options.question_field
        )
        for one in runs_within(run)
    ]
    traced = case_of_trace(
        path, str(run.get("session_name") or path.stem), trace, spans, notes, options.key_of_ids
    )
    if traced is None:
        return
    take_tool_searches([traced], options, notes)
    passages_kept(traced.item, "outputs", notes)
    answer = mask_case(traced.item, notes).answers[0]
    answer.result.test_case_id, answer.result.question = item.case["id"], item.case["question"]
    answer.result.repeat = sum(one.run == answer.run for one in item.answers)
    about = traced.item.case.get("metadata")
    if about:
        item.case.setdefault("metadata", {}).setdefault("runs", []).append(about)
    item.answers.append(answer)
