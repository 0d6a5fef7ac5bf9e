"""Reads promptfoo's tests (variables and assertions), and the results of its evals.

Of results (``promptfoo eval --output``) each test is read once, with the answers of every provider.
JSON and JSONL hold a result an object, CSV a line for each test and a block of columns for each
provider. Repeats are further results of the same test.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
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
    joined,
    passages,
    passages_in,
)
from formats.shared.rows import Fields, SourceRow, finite, iter_rows, read_yaml, unpacked
from formats.traces.values import answer_in
from records.errors import StorageError
from records.file_access import read_whole
from records.lines import parse_json
from records.results import ErrorInfo, TestResult

NAME = "promptfoo"

ABOUT = (
    "tests (a config or list in YAML, JSON, JSONL, or CSV) and results (-o x.json, .jsonl, .csv)"
)

ONE_FILE = True

QUESTIONS = ("question", "query", "input", "prompt", "user_input", "message", "text")

CONTEXT_VARIABLES = ("context", "contexts")

EXPECT = {"contains", "icontains", "contains-all", "icontains-all"}

FORBID = {"not-contains", "not-icontains", "not-contains-any", "not-icontains-any"}

REFERENCE = {"equals", "similar", "factuality", "model-graded-factuality", "context-recall"}

TYPED = re.compile(r"((?:not-)?[a-z][a-z-]*)(?:\((\d+(?:\.\d+)?)\))?:(.*)", re.DOTALL)

BARE = re.compile(r"(?:not-)?(?:is-refusal|is-json|latency|cost)(?:\((\d+(?:\.\d+)?)\))?")

READ = (".csv", ".tsv", ".yaml", ".yml", ".json", ".jsonl")

LISTS = {"contains-all", "contains-any", "icontains-all", "icontains-any"}

VARIABLE = re.compile(r"\{\{-?\s*(\w+)\s*-?\}\}")


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each test.

    contains becomes expected_claims, not-contains forbidden_claims, equals and the like
    reference_answer, is-refusal answerable: false, latency a budget. Every other assertion is kept
    unchanged under ``metadata``, and counted. Results become runs, one for each provider and
    prompt; what promptfoo thought of them is kept under ``metadata.promptfoo``."""
    yield from joined(_items(sources, options, notes), notes)


def _items(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    for source in sources:
        path = unpacked(source, options.scratch)
        ids = Ids()
        if (tests := _results_of(path, notes)) is not None:
            prompts = _prompts_of(tests)
            for done in tests:
                notes.rows["tests"] += 1
                fields = Fields(done.row, notes)
                variables = fields.take("vars")
                variables = variables if isinstance(variables, dict) else {}
                item = _case(done.row, variables, {}, ids, options, notes)
                contexts = item.case.pop("gold_contexts", [])
                item.answers, opinions = _answers_of(done, item.case, contexts, prompts, notes)
                if any(about for rows in opinions.values() for about in rows):
                    item.case.setdefault("metadata", {})["promptfoo"] = opinions
                yield item
            continue
        common = _defaults(path)
        others = [name for name in common if name not in ("vars", "assert", "metadata")]
        notes.left_out.update(f"defaultTest.{name}" for name in others)
        for row in iter_rows(path, notes, ("tests",), partial(_linked, notes)):
            notes.rows["tests"] += 1
            test = _from_csv(row) if row.path.suffix.lower() in (".csv", ".tsv") else row
            for variables in _expanded(test, common, options, notes):
                yield _item(test, variables, common, ids, options, notes)


def _linked(notes: Notes, path: Path, where: str, text: str) -> Iterator[SourceRow]:
    """The tests of the file that a config names, relative to the config."""
    target = path.parent / text.removeprefix("file://")
    if target.suffix.lower() in READ and target.is_file():
        yield from iter_rows(target, notes, ("tests",))
    else:
        message = f"{text!r} cannot be read; name an existing file that ends in {', '.join(READ)}"
        notes.problem(path, None, f"tests{where}", message)


def _defaults(path: Path) -> dict[str, Any]:
    """The config's defaultTest, which holds for every test."""
    if path.suffix.lower() in (".yaml", ".yml"):
        value = read_yaml(path)
    elif path.suffix.lower() == ".json":
        try:
            value = parse_json(read_whole(path))
        except (OSError, orjson.JSONDecodeError):
            return {}
    else:
        return {}
    default = value.get("defaultTest") if isinstance(value, dict) else None
    if isinstance(default, str):
        raise StorageError(
            f"{path}: defaultTest: {default!r} is not read; write its content there."
        )
    return default if isinstance(default, dict) else {}


def _from_csv(row: SourceRow) -> SourceRow:
    """A line of CSV as a test: columns with two underscores are special, all others variables."""
    test: dict[str, Any] = {"vars": {}, "assert": []}
    for name, cell in row.fields.items():
        if name.startswith("__expected"):
            if cell:
                test["assert"].append(_assertion(cell))
        elif name.startswith("__"):
            special = name.removeprefix("__")
            if special.startswith("metadata:"):
                key, many, _ = special.removeprefix("metadata:").partition("[]")
                value = [part.strip() for part in cell.split(",")] if many and cell else cell
                test.setdefault("metadata", {}).update({key: value} if cell else {})
            elif cell:
                test[special] = finite(cell) if special == "threshold" else cell
        else:
            test["vars"][name] = cell
    return row._replace(fields=test)


def _assertion(text: str) -> dict[str, Any]:
    """An assertion from the short form of a CSV cell: ``type:value``, ``type(0.8):value``."""
    typed, bare = TYPED.fullmatch(text.strip()), BARE.fullmatch(text.strip())
    if bare:
        check: dict[str, Any] = {"type": text.strip().partition("(")[0]}
        return check | ({"threshold": float(bare[1])} if bare[1] else {})
    if not typed or typed[3].startswith("//"):
        return {"type": "equals", "value": text}
    kind, threshold, value = typed.groups()
    parts = [part.strip() for part in value.split(",")]
    check = {"type": kind, "value": parts if kind.removeprefix("not-") in LISTS else value.strip()}
    return check | ({"threshold": float(threshold)} if threshold else {})


def _expanded(
    row: SourceRow, common: dict[str, Any], options: ImportOptions, notes: Notes
) -> Iterator[dict[str, Any]]:
    """The variables of a test; a list of questions makes a test of each."""
    fields = Fields(row, notes)
    own, general = fields.take("vars") or {}, common.get("vars") or {}
    if not isinstance(own, dict) or not isinstance(general, dict):
        fields.name = "vars"
        fields.wrong("is not a map of variables; a file of variables is not supported")
        return
    variables = general | own
    name = _question_name(variables, options)
    question = variables.get(name) if name else None
    if isinstance(question, list):
        yield from (variables | {name: text} for text in question)
    else:
        yield variables


def _question_name(variables: dict[str, Any], options: ImportOptions) -> str | None:
    if options.question_field:
        return options.question_field
    usual = next((name for name in QUESTIONS if name in variables), None)
    return str(next(iter(variables))) if usual is None and len(variables) == 1 else usual


def _item(
    row: SourceRow,
    variables: dict[str, Any],
    common: dict[str, Any],
    ids: Ids,
    options: ImportOptions,
    notes: Notes,
) -> ImportedCase:
    """A case with the answer that the test may hold (providerOutput)."""
    item = _case(row, variables, common, ids, options, notes)
    output = row.fields.get("providerOutput")
    contexts = item.case.get("gold_contexts", [])
    if isinstance(output, str):
        item.case.pop("gold_contexts", None)
        result = TestResult(item.case["id"], item.case["question"], answer=output)
        result.retrieved = [*passages(contexts)]
        item.answers.append(SystemAnswer(row.path.stem, result))
    elif contexts:
        notes.changed["vars.context, taken as gold_contexts"] += 1
    return item


def _case(
    row: SourceRow,
    variables: dict[str, Any],
    common: dict[str, Any],
    ids: Ids,
    options: ImportOptions,
    notes: Notes,
) -> ImportedCase:
    """The case of a test, with the passages of its variables as gold_contexts."""
    fields = Fields(row, notes)
    name = _question_name(variables, options)
    question = variables.get(name) if name else None
    if not isinstance(question, str) or not question.strip():
        fields.name = f"vars.{name or QUESTIONS[0]}"
        fields.wrong("is not a question; name its variable with --map question=NAME")
        question = ""
    case: dict[str, Any] = {"id": ids.make(question), "question": question}
    notes.changed["tests without an id, named by a hash of the question"] += 1
    for asserts in (common.get("assert"), fields.take("assert")):
        _apply(asserts, case, variables, fields, notes)
    case["tags"] = fields.texts("tags")
    fields.take("providerOutput")
    fields.take("vars")
    left = {
        str(key): value for key, value in variables.items() if key not in (name, *CONTEXT_VARIABLES)
    }
    both = (common.get("metadata"), fields.take("metadata"))
    general, own = (table if isinstance(table, dict) else {} for table in both)
    other = case.pop("assert", None)
    notes.carried.update(f"vars.{key}" for key in left)
    extra = general | own | fields.rest()
    extra |= {"vars": left} if left else {}
    extra |= {"assert": other} if other else {}
    case |= {"metadata": extra, "gold_contexts": _contexts(variables)}
    filled = {name: value for name, value in case.items() if value not in (None, [], {})}
    return ImportedCase(filled, row.path, row.line)


def _contexts(variables: dict[str, Any]) -> list[str]:
    value: Any = next((variables[name] for name in CONTEXT_VARIABLES if variables.get(name)), [])
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


def _apply(
    asserts: Any, case: dict[str, Any], variables: dict[str, Any], fields: Fields, notes: Notes
) -> None:
    """Put each assertion into the case's fields; others are kept unchanged."""
    if asserts is None:
        return
    if not isinstance(asserts, list):
        fields.name = "assert"
        fields.wrong("is not a list of assertions")
        return
    for check in asserts:
        if (
            isinstance(check, dict)
            and check.get("type") == "assert-set"
            and "threshold" not in check
        ):
            _apply(check.get("assert"), case, variables, fields, notes)
        elif not isinstance(check, dict) or not _understood(check, case, variables):
            kind = check.get("type") if isinstance(check, dict) else type(check).__name__
            notes.left_out[f"assertions of the type {kind}, kept under metadata"] += 1
            case.setdefault("assert", []).append(check)
        else:
            taken = ("type", "value", "threshold" if check["type"] == "latency" else "")
            more = [name for name in check if name not in taken]
            notes.left_out.update(
                f"assert.{name} of assertions that became fields" for name in more
            )


def _understood(check: dict[str, Any], case: dict[str, Any], variables: dict[str, Any]) -> bool:
    kind = check.get("type")
    if kind == "is-refusal":
        case["answerable"] = False
        return True
    if kind == "latency":
        value = check.get("threshold")
        budget = finite(str(value)) if value is not None else None
        if budget is None or budget <= 0:
            return False
        case["latency_budget_ms"] = {"total": budget}
        return True
    values = check.get("value")
    texts = [
        _filled(text, variables) for text in (values if isinstance(values, list) else [values])
    ]
    if not texts or any(text is None or not text.strip() for text in texts) or "transform" in check:
        return False
    if kind in EXPECT or kind in FORBID:
        name = "expected_claims" if kind in EXPECT else "forbidden_claims"
        case.setdefault(name, []).extend(texts)
        return True
    if kind in REFERENCE and len(texts) == 1 and "reference_answer" not in case:
        case["reference_answer"] = texts[0]
        return True
    return False


def _filled(text: Any, variables: dict[str, Any]) -> str | None:
    """The text with plain ``{{name}}`` filled in; None for files, code and other templates."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return str(text)
    if not isinstance(text, str) or text.startswith("file://"):
        return None
    texts = {str(k): str(v) for k, v in variables.items() if isinstance(v, str | int | float)}
    filled = VARIABLE.sub(lambda match: texts.get(match[1], match[0]), text)
    return None if "{{" in filled or "{%" in filled else filled


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


def _results_of(path: Path, notes: Notes) -> list[_TestWithResults] | None:
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


def _prompts_of(tests: list[_TestWithResults]) -> dict[str, list[str]]:
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


def _answers_of(
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
