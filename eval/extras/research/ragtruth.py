"""RAGTruth and data like it: answers of several systems with spans that people marked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from extras.research.ranked import Groups
from formats.shared.item import ImportedCase, ImportOptions, Notes, SystemAnswer, passages
from formats.shared.rows import Fields, SourceRow, lines_of, unpacked, with_rest
from records.errors import StorageError
from records.lines import parse_json
from records.results import TestResult

NAME = "ragtruth"

ABOUT = "JSONL of answers with human spans (labels); RAGTruth's source_info.jsonl beside them"

PASSAGE = re.compile(r"(?:^|\n)\s*passage \d+:\s*")

SOURCES = ("source_id", "group", "id")

SYSTEMS = ("model", "system")

REFERENCES = ("reference_answer", "reference", "ground_truth")

SPANS = "human_spans.jsonl"

ABOUT_THE_SOURCE = ("task", "task_type", "subset", "source")

Rows = Groups[dict[str, Any]]


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each source, and a run for each system that answered it.

    The spans go into human_spans.jsonl of the run, a line an answer, as the source has them, and
    as labels of claims into labels/verdicts/, an annotator for each run. An answer with an empty
    list was read and is fine; one without a list was not read, and gets no labels.
    """
    answers: list[Rows] = []
    infos: list[Rows] = []
    for source in sources:
        path = unpacked(source, options.scratch)
        kind = infos if _is_info(path) else answers
        kind.append(Groups(path, partial(_keyed, path, notes)))
    if not answers:
        raise StorageError(f"{sources[0]}: has no answers; also name the file of responses.")
    seen: set[str] = set()
    for groups in answers:
        for key in groups:
            if key in seen:
                continue
            seen.add(key)
            rows = [
                SourceRow(block.path, line, "", fields)
                for block in answers
                for line, fields in block.read(key)
            ]
            info = [
                SourceRow(block.path, line, "", fields)
                for block in infos
                for line, fields in block.read(key)
            ]
            yield _item(key, rows, info[0] if info else None, options, notes)
    notes.rows["answers"] += sum(groups.lines for groups in answers)
    notes.left_out["sources without an answer"] += len({k for g in infos for k in g} - seen)


def _is_info(path: Path) -> bool:
    for _, line in lines_of(path):
        return b'"source_info"' in line and b'"response"' not in line
    raise StorageError(f"{path}: is empty.")


def _keyed(path: Path, notes: Notes, number: int, line: bytes) -> tuple[str, dict[str, Any]] | None:
    try:
        fields = parse_json(line)
    except orjson.JSONDecodeError as error:
        notes.problem(path, number, "", f"column {error.colno}: not JSON ({error.msg})")
        return None
    fields = fields if isinstance(fields, dict) else {}
    name = next((name for name in SOURCES if fields.get(name) is not None), SOURCES[0])
    key, question = fields.get(name), fields.get("question")
    if not isinstance(key, str | int) or isinstance(key, bool) or str(key).strip() == "":
        notes.problem(path, number, SOURCES[0], "is missing; it connects an answer with its source")
        return None
    if name == "group" and isinstance(question, str):  # such as a conversation of several questions
        digest = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return f"{key}-{digest}", fields
    return str(key), fields


def _item(
    key: str, rows: list[SourceRow], info: SourceRow | None, options: ImportOptions, notes: Notes
) -> ImportedCase:
    first = rows[0]
    case: dict[str, Any] = {"id": key}
    question, contexts, about = _source(info or first, options, notes)
    task = about.get("task_type") or about.get("task")
    if question is None:
        question = f"({task or 'no question'})"
        notes.changed["sources without a question: the task replaces it"] += 1
    case |= {"question": question, "tags": [str(task)] if task else None}
    case["reference_answer"] = Fields(first, notes).text(*REFERENCES)
    item = ImportedCase(with_rest(case, about), first.path, first.line)
    systems: set[str] = set()
    for row in rows:
        answer = _answer(row, case, contexts, notes)
        if answer is not None and answer.run in systems:
            message = f"{answer.run!r} already has an answer to {key!r} on an earlier line"
            notes.problem(row.path, row.line, "model", message)
        elif answer is not None:
            systems.add(answer.run)
            item.answers.append(answer)
    return item


def _source(
    row: SourceRow, options: ImportOptions, notes: Notes
) -> tuple[str | None, list[str] | None, dict[str, Any]]:
    """Question, contexts and what else is said of the source."""
    fields = Fields(row, notes)
    about = {name: fields.take(name) for name in ABOUT_THE_SOURCE if row.fields.get(name)}
    notes.carried.update(list(about))
    info = fields.take("source_info")
    if isinstance(info, dict) and isinstance(info.get("passages"), str):
        texts = [text.strip() for text in PASSAGE.split(info["passages"]) if text.strip()]
        question = info.get("question")
        return question if isinstance(question, str) else None, texts, about
    if info is not None:
        text = info if isinstance(info, str) else orjson.dumps(info).decode()
        return fields.text(options.question_field or "question"), [text], about
    question = fields.text(options.question_field or "question")
    return question, fields.texts("contexts", "context"), about


def _answer(
    row: SourceRow, case: dict[str, Any], contexts: list[str] | None, notes: Notes
) -> SystemAnswer | None:
    fields = Fields(row, notes)
    text = fields.text("response", "answer")
    system = fields.text(*SYSTEMS) or row.path.stem
    own = fields.texts("contexts", "context")
    if text is None:
        fields.name = "response"
        fields.wrong("is missing; write the answer's text")
        return None
    marked = fields.take("labels", "spans")
    spans = marked or []
    if not isinstance(spans, list) or not all(_sound(span, text) for span in spans):
        fields.wrong("is not a list of {start, end, …} within the answer")
        return None
    if marked is None:
        notes.rows["answers without marks"] += 1
    moved = [s for s in spans if s.get("text") not in (None, text[s["start"] : s["end"]])]
    notes.changed["spans whose own text differs from the answer at their place"] += len(moved)
    notes.rows["spans"] += len(spans)
    for name in ("question", "source_info", *REFERENCES, *ABOUT_THE_SOURCE):
        fields.take(name)
    fields.take(*SOURCES)
    fields.left_out(*row.fields)
    result = TestResult(case["id"], case["question"], answer=text)
    chunks = passages(own if own is not None else contexts or ())
    for chunk in chunks:
        chunk.doc_id = case["id"]  # answers to one source hang together: intervals are drawn by it
    result.retrieved = [*chunks]
    beside = None if marked is None else partial(_labels, result, spans)
    return SystemAnswer(system, result, beside=beside)


def _labels(
    result: TestResult, spans: list[dict[str, Any]], run: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What people marked in an answer, as the source has it, and a label for each of its claims.

    The claims are cut out as for the judge. One that a marked span touches is not_supported, every
    other one supported: the people who marked spans read the whole answer.
    """
    from ragmetrics.claims import extract

    answer = {"case_id": result.test_case_id, "repeat": result.repeat}
    yield f"results/{run}/{SPANS}", answer | {"spans": spans}
    text, annotator = result.answer or "", f"people-{run}"
    marked = [(span["start"], span["end"]) for span in spans]
    for number, claim in enumerate(extract(text).claims, start=1):
        hit = any(start < claim.end and claim.start < end for start, end in marked)
        yield (
            f"labels/verdicts/{annotator}.jsonl",
            answer
            | {
                "metric": "groundedness",
                "claim_id": str(number),
                "claim": claim.text,
                "answer_sha256": hashlib.sha256(text.encode()).hexdigest(),
                "label": "not_supported" if hit else "supported",
                "annotator": annotator,
                "at": "",
            },
        )


def _sound(span: Any, text: str) -> bool:
    if not isinstance(span, dict):
        return False
    start, end = span.get("start"), span.get("end")
    return type(start) is int and type(end) is int and 0 <= start < end <= len(text)
