"""Reads the output of ``promptfoo eval --output``: each test once, with what every provider
answered to it.

JSON and JSONL hold a result an object, CSV a line for each test and a block of columns for each
provider. Repeats are further results of the same test.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from formats.shared.item import CONTEXTS, Notes, SystemAnswer, passages, passages_in
from formats.shared.rows import Fields, SourceRow, iter_rows
from formats.traces.values import answer_in
from records.errors import StorageError
from records.file_access import read_whole
from records.lines import parse_json
from records.results import ErrorInfo, TestResult

_OUTPUT = re.compile(r"\[(.+?)\] (.*)", re.DOTALL)
"""The head of a column of answers: the provider and the prompt."""

_ERROR = 2
"""failureReason of a call that failed; 1 is an answer that missed an assertion."""


@dataclass
class _TestWithResults:
    """A test as its config had it, and the results of all providers as objects of the JSON form."""

    __test__ = False  # pytest: not a test class

    row: SourceRow
    results: list[SourceRow] = field(default_factory=list)


def results_of(path: Path, notes: Notes) -> list[_TestWithResults] | None:
    """The tests of a file of results; None when the file has tests alone."""
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        rows = _csv_results(path, notes)
    elif kind in (".yaml", ".yml"):
        return None
    elif kind in (".jsonl", ".ndjson"):
        rows = iter_rows(path, notes)
    else:
        rows = _json_results(path, notes)
    tests: dict[bytes, _TestWithResults] = {}
    for row in rows or ():
        if not {"testCase", "vars"} & row.fields.keys() or not _RESULT & row.fields.keys():
            return None
        test = _test_of(row)
        key = orjson.dumps(test, option=orjson.OPT_SORT_KEYS)
        tests.setdefault(key, _TestWithResults(row._replace(fields=test))).results.append(row)
    return list(tests.values()) or None


_RESULT = {"response", "success", "gradingResult", "failureReason"}


def _test_of(row: SourceRow) -> dict[str, Any]:
    test = row.fields.get("testCase")
    fields = dict(test) if isinstance(test, dict) else {}
    fields.setdefault("vars", row.fields.get("vars"))
    return {name: value for name, value in fields.items() if value not in (None, [], {}, "")}


def _json_results(path: Path, notes: Notes) -> Iterator[SourceRow] | None:
    try:
        document = parse_json(read_whole(path))
    except (OSError, orjson.JSONDecodeError):
        return None
    inner = document.get("results") if isinstance(document, dict) else None
    listed = inner.get("results") if isinstance(inner, dict) else inner
    if not isinstance(listed, list):
        return None
    about = dict.fromkeys((*document, *(inner if isinstance(inner, dict) else ())))
    notes.left_out.update(f"{name} of the whole file" for name in about if name != "results")
    return (
        SourceRow(path, None, f"results[{index}]", item)
        for index, item in enumerate(listed)
        if isinstance(item, dict)
    )


def _csv_results(path: Path, notes: Notes) -> Iterator[SourceRow] | None:
    """The lines of a table of results as objects of the JSON form; None for a table of tests."""
    csv.field_size_limit(sys.maxsize)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = list(csv.reader(file, delimiter=delimiter))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StorageError(f"{path}: cannot be read as UTF-8 CSV ({error}).") from None
    head = lines[0] if lines else []
    blocks = [n for n, name in enumerate(head) if _OUTPUT.fullmatch(name)]
    if not blocks or "Status" not in head:
        return None
    return _csv_rows(path, head, blocks, lines[1:], notes)


def _csv_rows(
    path: Path, head: list[str], blocks: list[int], lines: list[list[str]], notes: Notes
) -> Iterator[SourceRow]:
    ends = [*blocks[1:], len(head)]
    for number, cells in enumerate(lines, 2):
        if len(cells) != len(head):
            notes.problem(path, number, "", f"has {len(cells)} cells, the head line {len(head)}")
            continue
        own = dict(zip(head[: blocks[0]], cells, strict=False))
        description = own.pop("Description", "")
        test: dict[str, Any] = {"vars": {name: cell for name, cell in own.items() if cell}}
        test |= {"description": description} if description else {}
        for index, (start, end) in enumerate(zip(blocks, ends, strict=True)):
            match = _OUTPUT.fullmatch(head[start])
            assert match is not None
            judged = dict(zip(head[start + 1 : end], cells[start + 1 : end], strict=True))
            failed = judged.get("Status") == "ERROR"
            fields = {
                "testCase": test,
                "provider": {"id": match[1]},
                "prompt": {"label": match[2]},
                "promptIdx": index,
                "response": {"error" if failed else "output": cells[start]},
                "failureReason": _ERROR if failed else 0,
            }
            fields |= {name: cell for name, cell in judged.items() if cell}
            yield SourceRow(path, number, "", fields)


def prompts_of(tests: list[_TestWithResults]) -> dict[str, list[str]]:
    """The prompts that each provider got, in their order: a run is one provider with one prompt."""
    prompts: dict[str, list[str]] = {}
    for test in tests:
        for row in test.results:
            provider, prompt = _system(row.fields)
            listed = prompts.setdefault(provider, [])
            if prompt not in listed:
                listed.append(prompt)
    return prompts


def _system(fields: dict[str, Any]) -> tuple[str, str]:
    """Provider and prompt of a result, as texts."""
    provider, prompt = fields.get("provider"), fields.get("prompt")
    if isinstance(provider, dict):
        provider = provider.get("label") or provider.get("id")
    label = prompt.get("label") if isinstance(prompt, dict) else prompt
    return str(provider or "promptfoo"), str(label or "")


def answers_of(
    test: _TestWithResults,
    case: dict[str, Any],
    contexts: list[str],
    prompts: dict[str, list[str]],
    notes: Notes,
) -> tuple[list[SystemAnswer], dict[str, list[dict[str, Any]]]]:
    """The answers to a test, and promptfoo's verdicts by run: scores, reasons and the like.

    ``contexts``: the passages of the test's variables, which stand for what was retrieved when the
    provider does not say it.
    """
    answers: list[SystemAnswer] = []
    opinions: dict[str, list[dict[str, Any]]] = {}
    for row in test.results:
        notes.rows["results"] += 1
        provider, prompt = _system(row.fields)
        run = provider
        if len(prompts[provider]) > 1:
            run = f"{provider}-prompt-{prompts[provider].index(prompt) + 1}"
        result = TestResult(case["id"], case["question"])
        result.repeat = sum(answer.run == run for answer in answers)
        fields = Fields(row, notes)
        has_retrieved = _fill(result, fields, contexts, notes)
        for name in (
            "testCase",
            "vars",
            "provider",
            "prompt",
            "promptIdx",
            "testIdx",
            "failureReason",
        ):
            fields.take(name)
        for name in ("id", "promptId", "tokenUsage"):
            fields.left_out(name)
        own = fields.take("metadata")
        known = {*_names(row.fields.get("response")), *_names(row.fields.get("testCase"))}
        left = {name: value for name, value in _object(own).items() if name not in known}
        about = fields.rest() | ({"metadata": left} if any(left.values()) else {})
        opinions.setdefault(run, []).append(about)
        answers.append(SystemAnswer(run, result, has_retrieved=has_retrieved))
    return answers, opinions


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _names(holder: Any) -> list[str]:
    """The names in the metadata of a test or a response: a result repeats them."""
    return [*_object(_object(holder).get("metadata"))]


def _fill(result: TestResult, fields: Fields, contexts: list[str], notes: Notes) -> bool:
    """Read one result; returns whether it is known what was retrieved."""
    response = fields.take("response")
    response = dict(response) if isinstance(response, dict) else {"output": response}
    error, latency, cost = fields.take("error"), fields.number("latencyMs"), fields.number("cost")
    usage = response.pop("tokenUsage", None) or fields.row.fields.get("tokenUsage")
    result.usage = _tokens(usage)
    result.cost_usd = cost or None
    if latency is not None:
        result.latency_ms = {"total": latency}
    about = _object(response.pop("metadata", None))
    output, failure = response.pop("output", None), response.pop("error", None)
    if failure or fields.row.fields.get("failureReason") == _ERROR or output is None:
        result.status = "error"
        result.error = ErrorInfo("imported", str(failure or error or "the file gives no reason"))
        return True
    if error:
        notes.carried["error: the assertion that failed, in gradingResult"] += 1
    result.answer = _text(output, notes)
    listed = [*passages_in(about, notes), *passages_in(output, notes)]
    result.retrieved = [*(listed or passages(contexts))]
    if contexts and not listed:
        notes.changed["vars.context, taken as what was retrieved"] += 1
    ignored = {"raw", "cost", "cached", "isRefusal", "latencyMs"}
    notes.left_out.update(
        f"response.{name}"
        for name, value in response.items()
        if value not in (None, "", [], {}, False, 0) and (name not in ignored or name == "cached")
    )
    notes.left_out.update(
        f"response.metadata.{name}"
        for name, value in about.items()
        if name not in CONTEXTS and value not in (None, "", [], {})
    )
    return bool(listed or contexts)


def _text(output: Any, notes: Notes) -> str:
    """The words of an answer: an object holds them under its name, or is written as JSON."""
    if isinstance(output, str):
        return output
    words = answer_in(output)
    if words is None:
        notes.changed["outputs that are objects, written as JSON"] += 1
        return orjson.dumps(output).decode()
    notes.changed["outputs that are objects; their answer was taken"] += 1
    return words


def _tokens(usage: Any) -> dict[str, Any]:
    counts = usage if isinstance(usage, dict) else {}
    names = {"input_tokens": "prompt", "output_tokens": "completion"}
    found = {ours: counts.get(theirs) for ours, theirs in names.items()}
    return {name: n for name, n in found.items() if type(n) is int and n > 0}
