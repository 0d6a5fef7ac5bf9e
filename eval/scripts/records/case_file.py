"""Reading eval_set.jsonl and the label files that are joined to it, with every problem at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson

from records.cases import TestCase, case_from_dict, check_case
from records.errors import Problem, StorageError

MAX_LINE = 4 * 1024 * 1024
"""Bytes of one line. A case is a question with its labels; more is a mistake or an attack."""
LABEL_FILES = (
    "cases",
    "retrieval_labels",
    "context_labels",
    "groundedness_labels",
    "pipeline_labels",
    "safety_labels",
)
BOM = b"\xef\xbb\xbf"

Report = Callable[[Problem], None]
Labels = dict[str, dict[str, Any]]
"""Fields from label files, by case id."""


def iter_lines(
    path: Path,
    report: Report,
    start: int = 0,
    end: int | None = None,
    limit: int | None = MAX_LINE,
) -> Iterator[tuple[int, bytes]]:
    """Non-blank lines of a JSONL file between two byte offsets, numbered from 1 at ``start``.

    Byte order mark, CRLF and lines over ``limit`` bytes are reported: the first two would give the
    same cases another hash on another machine.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the with below
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error
    name = str(path)
    crlf = False
    with file:
        file.seek(start)
        number, place = 0, start
        while (end is None or place < end) and (
            line := file.readline(-1 if limit is None else limit + 1)
        ):
            number += 1
            place += len(line)
            if limit is not None and len(line) > limit:
                place += _skip_line(file, line)
                report(Problem(name, number, "", f"line is longer than {limit} bytes; split it"))
                continue
            if number == 1 and start == 0 and line.startswith(BOM):
                message = "starts with a byte order mark; save as UTF-8 without BOM"
                report(Problem(name, 1, "", message))
                line = line[len(BOM) :]
            if line.endswith(b"\r\n") and not crlf:
                crlf = True
                message = "line ends with CRLF; save with LF line ends (dos2unix)"
                report(Problem(name, number, "", message))
            if not line.isspace():
                yield number, line


def _skip_line(file: Any, line: bytes) -> int:
    """Read on to the end of an overlong line without keeping it."""
    skipped = 0
    while line and not line.endswith(b"\n"):
        line = file.readline(MAX_LINE)
        skipped += len(line)
    return skipped


def parse_object(path: Path, number: int, line: bytes, report: Report) -> dict[str, Any] | None:
    """The line's JSON object, or None after reporting what is wrong with it."""
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        what = "holds NUL bytes" if b"\x00" in line else f"not JSON ({error.msg})"
        message = f"column {error.colno}: {what}; a line is one JSON object"
        report(Problem(str(path), number, "", message))
        return None
    if not isinstance(raw, dict):
        report(Problem(str(path), number, "", "is no JSON object; a line is one case in {…}"))
        return None
    return raw


def iter_cases(
    path: Path,
    report: Report,
    labels: Labels | None = None,
    start: int = 0,
    end: int | None = None,
) -> Iterator[TestCase]:
    """The cases of a set, one at a time; lines with problems are reported and left out.

    Memory grows with the number of ids only (they are kept to find duplicates).
    """
    decode = msgspec.json.Decoder(TestCase).decode
    seen: dict[str, int] = {}
    for number, line in iter_lines(path, report, start, end):
        case: TestCase | None = None
        if not labels:
            try:
                case = decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                case = None
        findings = list(check_case(case)) if case else []
        if case is None or findings:
            raw = parse_object(path, number, line, report)
            if raw is None:
                continue
            if labels:
                raw = _join(raw, labels)
            case, findings = case_from_dict(raw)
            for field, message in findings:
                report(Problem(str(path), number, field, message))
            identity = raw.get("id")
        else:
            identity = case.id
        if isinstance(identity, str):
            first = seen.setdefault(identity, number)
            if first != number:
                message = f"{identity!r} is also the id of line {first}; give it another"
                report(Problem(str(path), number, "id", message))
                continue
        if case is not None:
            yield case
    if not seen and start == 0 and end is None:
        report(Problem(str(path), None, "", "holds no cases; write one JSON object a line"))


def _join(raw: dict[str, Any], labels: Labels) -> dict[str, Any]:
    extra = labels.get(raw["id"]) if isinstance(raw.get("id"), str) else None
    return raw | extra if extra else raw


def read_labels(folder: Path | None, report: Report) -> tuple[Labels, dict[str, tuple[Path, int]]]:
    """All label files of a folder by case id, and where each id was first labelled.

    A case may have one line in each file; a field may come from one file only. Lines of
    safety_labels.jsonl that bring a ``text`` of their own are prompts, not labels of cases.
    """
    labels: Labels = {}
    places: dict[str, tuple[Path, int]] = {}
    for name in LABEL_FILES if folder is not None else ():
        path = Path(folder or ".") / f"{name}.jsonl"
        if not path.exists():
            continue
        in_file: dict[str, int] = {}
        for number, line in iter_lines(path, report):
            raw = parse_object(path, number, line, report)
            if raw is None or (name == "safety_labels" and "text" in raw):
                continue
            case_id = raw.pop("case_id", None)
            if not isinstance(case_id, str):
                report(Problem(str(path), number, "case_id", "is missing; name the labelled case"))
                continue
            if case_id in in_file:
                message = f"{case_id!r} is also labelled on line {in_file[case_id]}; join them"
                report(Problem(str(path), number, "case_id", message))
                continue
            in_file[case_id] = number
            places.setdefault(case_id, (path, number))
            _check_labels(path, number, case_id, raw, labels, report)
    return labels, places


def _check_labels(
    path: Path, number: int, case_id: str, raw: dict[str, Any], labels: Labels, report: Report
) -> None:
    """Type-check the label fields by themselves and add them to what the case has so far."""
    known = labels.setdefault(case_id, {})
    _, findings = case_from_dict({"question": "?"} | raw | {"id": case_id})
    for field, message in findings:
        if not field.startswith("required_support_groups"):  # needs the case's own supports
            report(Problem(str(path), number, field, message))
    for field in raw.keys() & known.keys():
        report(Problem(str(path), number, field, f"{case_id!r} has it from another label file too"))
    known.update(raw)


def read_cases(path: Path, labels_dir: Path | None = None) -> list[TestCase]:
    """The whole set with its labels joined.

    Raises StorageError naming every problem in all files as ``file:line: field: …``.
    """
    problems: list[Problem] = []
    labels, places = read_labels(labels_dir, problems.append)
    before = len(problems)
    cases = list(iter_cases(path, problems.append, labels))
    if len(problems) == before:  # an unsound set would make its own labels look unknown
        problems.extend(unknown_labels(labels, places, path, {case.id for case in cases}))
    if problems:
        raise StorageError.from_problems(problems)
    return cases


def unknown_labels(
    labels: Labels, places: dict[str, tuple[Path, int]], eval_set: Path, ids: set[str]
) -> Iterator[Problem]:
    """A problem for each label of a case that the set does not hold.

    ``ids`` are cases known to be in the set; only labels of others are looked up in the file.
    """
    missing = labels.keys() - ids
    if missing:
        missing -= {case.id for case in iter_cases(eval_set, lambda problem: None)}
    for case_id in sorted(missing):
        path, line = places[case_id]
        message = f"{case_id!r} is not in {eval_set}; correct it or remove the line"
        yield Problem(str(path), line, "case_id", message)
