"""A plain data set as a run: a JSON list of {question, reference_answer, answer, contexts}."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson

from storage import EVAL_SET, RESULTS, Problem, RetrievedChunk, StorageError, TestResult

FIELDS = ("question", "reference_answer", "answer", "contexts")


def as_run(path: Path, parent: Path) -> Path:
    """Write the data set as eval set and results of a run folder in ``parent``; returns it.

    Raises StorageError naming every faulty item.
    """
    items = _read(path)
    problems = [
        Problem(str(path), None, f"[{place}]{field}", message)
        for place, item in enumerate(items)
        for field, message in _wrong(item)
    ]
    if problems:
        raise StorageError.from_problems(problems)
    folder = parent / "".join(c if c.isalnum() or c in "-_" else "-" for c in path.stem)[:80]
    folder.mkdir()
    with open(folder / EVAL_SET.name, "wb") as cases, open(folder / RESULTS, "wb") as results:
        for place, item in enumerate(items, 1):
            case = {"id": f"item-{place}", "question": item["question"]}
            if item.get("reference_answer"):
                case["reference_answer"] = item["reference_answer"]
            cases.write(orjson.dumps(case) + b"\n")
            results.write(msgspec.json.encode(_result(case["id"], item)) + b"\n")
    return folder


def _result(case_id: str, item: dict[str, Any]) -> TestResult:
    return TestResult(
        test_case_id=case_id,
        question=item["question"],
        answer=item.get("answer") or "",
        retrieved=[
            RetrievedChunk(chunk_id=str(rank), text=text, text_length=len(text), rank=rank)
            for rank, text in enumerate(item.get("contexts") or (), 1)
        ],
    )


def _read(path: Path) -> list[Any]:
    try:
        raw = orjson.loads(path.read_bytes())
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None
    except orjson.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise StorageError(f"{place}: not JSON ({error.msg}); write a list of objects.") from None
    if not isinstance(raw, list) or not raw:
        raise StorageError(
            f"{path}: is no list; write [{{{', '.join(FIELDS)}}}, …] with at least one item."
        )
    return raw


def _wrong(item: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(item, dict):
        yield "", f"is no object; write {{{', '.join(FIELDS)}}}"
        return
    question = item.get("question")
    if not isinstance(question, str) or not question.strip():
        yield ".question", "is missing or empty; write the user's question"
    for name in ("reference_answer", "answer"):
        if not isinstance(item.get(name), str | None):
            yield f".{name}", "is no text; write a string"
    contexts = item.get("contexts")
    if contexts is not None and not (
        isinstance(contexts, list) and all(isinstance(text, str) for text in contexts)
    ):
        yield ".contexts", "is no list of texts; write the retrieved passages as strings"
