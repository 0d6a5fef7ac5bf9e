"""promptfoo tests: variables and assertions, from YAML, JSON, JSONL or CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from formats.shared.item import Ids, ImportedCase, ImportOptions, Notes, SystemAnswer, passages
from formats.shared.rows import Fields, SourceRow, finite, iter_rows, read_yaml, unpacked
from records.errors import StorageError
from records.results import TestResult

NAME = "promptfoo"

ABOUT = "tests with vars and assert: a config or a list in YAML, JSON or JSONL, or CSV (__expected)"

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
    under ``metadata`` as it is, and counted.
    """
    for source in sources:
        path = unpacked(source, options.scratch)
        ids = Ids()
        common = _defaults(path)
        others = common.keys() - {"vars", "assert", "metadata"}
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
        message = f"{text!r} is not read; name a file that is there and ends in {', '.join(READ)}"
        notes.problem(path, None, f"tests{where}", message)


def _defaults(path: Path) -> dict[str, Any]:
    """The config's defaultTest, which holds for every test."""
    if path.suffix.lower() in (".yaml", ".yml"):
        value = read_yaml(path)
    elif path.suffix.lower() == ".json":
        try:
            value = orjson.loads(path.read_bytes())
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
        fields.wrong("is no map of variables; a file of them is not read")
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
    fields = Fields(row, notes)
    name = _question_name(variables, options)
    question = variables.get(name) if name else None
    if not isinstance(question, str) or not question.strip():
        fields.name = f"vars.{name or QUESTIONS[0]}"
        fields.wrong("is no question; say which variable holds it with --question-field")
        question = ""
    case: dict[str, Any] = {"id": ids.make(question), "question": question}
    notes.changed["tests, which have no id, named by a hash of the question"] += 1
    for asserts in (common.get("assert"), fields.take("assert")):
        _apply(asserts, case, variables, fields, notes)
    case["tags"] = fields.texts("tags")
    output = fields.take("providerOutput")
    fields.take("vars")
    left = {str(key): value for key, value in variables.items() if key not in (name, *CONTEXTS)}
    notes.carried.update(f"vars.{key}" for key in left)
    both = (common.get("metadata"), fields.take("metadata"))
    general, own = (table if isinstance(table, dict) else {} for table in both)
    other = case.pop("assert", None)
    extra = general | own | fields.rest()
    extra |= {"vars": left} if left else {}
    extra |= {"assert": other} if other else {}
    contexts = _contexts(variables)
    case |= {"metadata": extra}
    item = ImportedCase(
        {k: v for k, v in case.items() if v not in (None, [], {})}, row.path, row.line
    )
    if isinstance(output, str):
        chunks = passages(contexts)
        result = TestResult(case["id"], question, answer=output, retrieved=[*chunks])
        item.answers.append(SystemAnswer(row.path.stem, result))
    elif contexts:
        item.case["gold_contexts"] = contexts
        notes.changed["vars.context, taken as gold_contexts"] += 1
    return item


def _contexts(variables: dict[str, Any]) -> list[str]:
    value: Any = next((variables[name] for name in CONTEXTS if variables.get(name)), [])
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


def _apply(
    asserts: Any, case: dict[str, Any], variables: dict[str, Any], fields: Fields, notes: Notes
) -> None:
    """Put what each assertion wants into the case; what no field can say is kept as it is."""
    if asserts is None:
        return
    if not isinstance(asserts, list):
        fields.name = "assert"
        fields.wrong("is no list of assertions")
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
            more = check.keys() - {
                "type",
                "value",
                "threshold" if check["type"] == "latency" else "",
            }
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
