"""promptfoo tests (variables and assertions), the results of an eval, and ours as tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from formats.shared.item import (
    Ids,
    ImportedCase,
    ImportOptions,
    Notes,
    SystemAnswer,
    joined,
    passages,
)
from formats.shared.promptfoo_results import answers_of, prompts_of, results_of
from formats.shared.rows import Fields, SourceRow, finite, iter_rows, read_yaml, unpacked
from formats.shared.stored import Stored, StoredCase, carried, exported_id, give_back, taken
from records.errors import StorageError
from records.file_access import read_whole
from records.lines import parse_json
from records.results import TestResult

NAME = "promptfoo"

ABOUT = (
    "tests (a config or list in YAML, JSON, JSONL, or CSV) and results (-o x.json, .jsonl, .csv)"
)

ONE_FILE = True

QUESTIONS = ("question", "query", "input", "prompt", "user_input", "message", "text")

CONTEXTS = ("context", "contexts")

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
        if (tests := results_of(path, notes)) is not None:
            prompts = prompts_of(tests)
            for done in tests:
                notes.rows["tests"] += 1
                fields = Fields(done.row, notes)
                variables = fields.take("vars")
                variables = variables if isinstance(variables, dict) else {}
                item, record = _case(done.row, variables, {}, ids, options, notes)
                contexts = item.case.pop("gold_contexts", [])
                item.answers, opinions = answers_of(done, item.case, contexts, prompts, notes)
                if any(about for rows in opinions.values() for about in rows):
                    item.case.setdefault("metadata", {})["promptfoo"] = opinions
                give_back(item, record, notes)
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
    item, record = _case(row, variables, common, ids, options, notes)
    output = row.fields.get("providerOutput")
    contexts = item.case.get("gold_contexts", [])
    if isinstance(output, str):
        item.case.pop("gold_contexts", None)
        result = TestResult(item.case["id"], item.case["question"], answer=output)
        result.retrieved = [*passages(contexts)]
        item.answers.append(SystemAnswer(row.path.stem, result))
    elif contexts:
        notes.changed["vars.context, taken as gold_contexts"] += 1
    give_back(item, record, notes)
    return item


def _case(
    row: SourceRow,
    variables: dict[str, Any],
    common: dict[str, Any],
    ids: Ids,
    options: ImportOptions,
    notes: Notes,
) -> tuple[ImportedCase, dict[str, Any] | None]:
    """The case of a test, with the passages of its variables as gold_contexts, and what an export
    of ours had put beside it."""
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
    left = {str(key): value for key, value in variables.items() if key not in (name, *CONTEXTS)}
    both = (common.get("metadata"), fields.take("metadata"))
    general, own = (table if isinstance(table, dict) else {} for table in both)
    other = case.pop("assert", None)
    own, record = taken(own)
    if record is not None:
        left.pop("reference", None)  # the export put reference_answer there, and the id
        if row.fields.get("description") == exported_id(record):
            fields.take("description")
        fields.take("options")
    notes.carried.update(f"vars.{key}" for key in left)
    extra = general | own | fields.rest()
    extra |= {"vars": left} if left else {}
    extra |= {"assert": other} if other else {}
    case |= {"metadata": extra, "gold_contexts": _contexts(variables)}
    filled = {name: value for name, value in case.items() if value not in (None, [], {})}
    return ImportedCase(filled, row.path, row.line), record


def _contexts(variables: dict[str, Any]) -> list[str]:
    value: Any = next((variables[name] for name in CONTEXTS if variables.get(name)), [])
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


_HELD = {"question", "expected_claims", "forbidden_claims"}
"""What a test of promptfoo says in words of its own, and nothing is added to."""


def write(stored: Stored, target: Path, notes: Notes) -> None:
    """A config with a test for each answer, in JSON, which promptfoo reads as a config.

    The answer is the test's providerOutput: an eval of it asks no bot. Passages stand in
    ``vars.context``, the reference in ``vars.reference``; what promptfoo has no field for travels
    in ``metadata.rag_eval`` and comes back with an import.
    """
    if target.suffix.lower() not in (".json", ".yaml", ".yml"):
        raise StorageError(f"{target}: name a file that ends in .json or .yaml.")
    head = b'{"prompts":["{{question}}"],"providers":["echo"],"tests":'
    stored.write_list(target, _tests, notes, head=head, tail=b"}")


def _tests(stored_case: StoredCase, notes: Notes) -> Iterator[dict[str, Any]]:
    case = stored_case.case
    variables: dict[str, Any] = {"question": case.question}
    if case.reference_answer is not None:
        variables["reference"] = case.reference_answer
    checks: list[dict[str, Any]] = [
        {"type": kind, "value": text}
        for kind, texts in (
            ("icontains", case.expected_claims),
            ("not-icontains", case.forbidden_claims),
        )
        for text in texts
    ]
    if case.answerable is False:
        checks.append({"type": "is-refusal"})
    for result, has_retrieved in stored_case.answers():
        held = _HELD | ({"gold_contexts"} if result is None else set())
        test: dict[str, Any] = {"description": case.id, "vars": dict(variables)}
        test["metadata"] = carried(stored_case, result, has_retrieved, held)
        if checks:
            test["assert"] = checks
        if result is None:
            texts = case.gold_contexts
        else:
            texts = StoredCase.texts_of(result, notes)
            if result.answer is not None:
                test["providerOutput"] = result.answer
        if texts:
            test["vars"]["context"] = texts
            test["options"] = {"disableVarExpansion": True}  # else: a test for each passage
        yield test
