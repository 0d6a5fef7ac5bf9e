"""People's judgements of passages: the rows of the labelling screen, one file an annotator.

A line is one case: ``{"case_id", "rows": [{"key", "rel_path", "heading_path", "grade"}, …], …}``.
A row's ``grade`` is 1 to 3 for a passage that was marked, 0 for one that was read and not marked,
null for one that was never shown. ``part`` true: its end was never on the screen.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from records.cases import TestCase, case_from_dict, check_case
from records.editing import Document, decode, read_bytes
from records.errors import Problem, StorageError
from records.results import RetrievedChunk

SEPARATOR: Final = " > "

_SPACE = re.compile(r"\s+")

_HASHES = re.compile(r"^#+\s*|\s*#+$")

_decode_case = msgspec.json.Decoder(TestCase).decode


def norm_path(path: str) -> str:
    """NFC, forward slashes, no leading ``./``."""
    path = unicodedata.normalize("NFC", path).replace("\\", "/").strip()
    while path.startswith("./"):
        path = path[2:]
    return path


def segments(heading_path: str | Sequence[Any] | None) -> tuple[str, ...]:
    """The headings from the outside in, without ``#`` marks and doubled space, case kept."""
    if heading_path is None:
        return ()
    raw = heading_path.split(">") if isinstance(heading_path, str) else heading_path
    cleaned = (_SPACE.sub(" ", _HASHES.sub("", str(part).strip())).strip() for part in raw)
    return tuple(part for part in cleaned if part)


def heading(heading_path: str | Sequence[Any] | None) -> str:
    """The heading path in the form of the set: ``Plans > Free``."""
    return SEPARATOR.join(segments(heading_path))


def passage_key(rel_path: str, heading_path: str, text: str) -> str:
    """Twelve hex digits of path, heading and text: the same passage, the same key."""
    parts = (norm_path(rel_path), heading(heading_path), text)
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:12]


def key_of_passage(chunk: RetrievedChunk) -> str:
    """The key of a passage in the labeller's judgements."""
    path = chunk.rel_path or chunk.doc_id or chunk.chunk_id
    return passage_key(path, chunk.heading_path or "", chunk.text or "")


def identity_of(chunk: RetrievedChunk) -> str:
    """The same for the same passage, whichever search brought it: by path, heading and text, or by
    its id without a text."""
    return key_of_passage(chunk) if chunk.text else f"id {chunk.chunk_id}"


def identify_case(raw: bytes) -> tuple[str | None, str]:
    """The id of a case's line, or the fault of the line."""
    try:
        case = _decode_case(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _slowly(raw)
    findings = list(check_case(case))
    return (None, _joined_findings(findings)) if findings else (case.id, "")


def _slowly(raw: bytes) -> tuple[str | None, str]:
    """The same for a line that does not fit at first sight: null for a list, or an error."""
    try:
        record = decode(raw)
    except ValueError as error:
        return None, f"is not a JSON object ({error})"
    case, findings = case_from_dict(record)
    return (None, _joined_findings(findings)) if case is None else (case.id, "")


def _joined_findings(findings: list[tuple[str, str]]) -> str:
    return "; ".join(f"{field}: {message}" for field, message in findings)


def identify_judgement(raw: bytes) -> tuple[str | None, str]:
    """The case id of a judgement's line, or the fault of the line."""
    try:
        case_id = decode(raw).get("case_id")
    except ValueError as error:
        return None, f"is not a JSON object ({error})"
    return (case_id, "") if isinstance(case_id, str) else (None, "case_id: is missing")


USUAL_NAME: Final = "eval_set.jsonl"


def judgements_dir(eval_set: Path, labels_dir: Path) -> Path:
    """``judgements`` in the folder of labels, for a set of the usual name; else a folder in it.

    A set of another name has ``judgements/<name>/``, since several may share the folder of labels.
    Files that lie in ``judgements`` itself stay in use for it while no other set can own them: it
    has no folder yet, is the only set of its folder, and all that they judge are its cases.
    """
    shared = labels_dir / "judgements"
    if eval_set.name == USUAL_NAME:
        return shared
    own = shared / eval_set.stem
    return shared if not own.is_dir() and _alone(eval_set) and _all_of(eval_set, shared) else own


def _alone(eval_set: Path) -> bool:
    return [path.name for path in eval_set.parent.glob("*.jsonl")] == [eval_set.name]


def _all_of(eval_set: Path, shared: Path) -> bool:
    """Do the files there judge cases of this set, and nothing else?"""
    files = sorted(shared.glob("*.jsonl"))
    try:
        cases = Document(read_bytes(eval_set), identify_case, cases=True) if files else {}
        judged = [Document(read_bytes(path), identify_judgement) for path in files]
    except StorageError:
        return False
    return any(judged) and all(case_id in cases for document in judged for case_id in document)


class JudgedRow(NamedTuple):
    """A passage that an annotator read to its end, or marked."""

    key: str
    rel_path: str
    heading_path: str
    grade: float


JudgedRows = Mapping[str, Sequence[JudgedRow]]
"""By case id; of a passage that several people judged one row."""


def read_judged(eval_set: Path, labels_dir: Path | None) -> tuple[JudgedRows, str]:
    """The rows that people judged for the cases of a set, and the SHA-256 over their files.

    Rows without a grade and those of which only a part was seen are left out. ({}, "") when there
    are none. Raises StorageError, with place and remedy, for a line that is no judgement.
    """
    folder = None if labels_dir is None else judgements_dir(eval_set, labels_dir)
    files = [] if folder is None else sorted(folder.glob("*.jsonl"))
    rows: dict[str, dict[str, JudgedRow]] = {}
    problems: list[Problem] = []
    digest = hashlib.sha256()
    for path in files:
        data = read_bytes(path)
        digest.update(data)
        for number, line in enumerate(data.splitlines(), 1):
            if line.strip():
                _take(path, number, line, rows, problems)
    if problems:
        raise StorageError.from_problems(problems)
    judged = {case_id: list(of_case.values()) for case_id, of_case in rows.items() if of_case}
    return judged, digest.hexdigest() if judged else ""


class _Row(msgspec.Struct):
    key: str
    rel_path: str
    heading_path: str | None = None
    grade: float | None = None
    part: bool = False


class _JudgedLine(msgspec.Struct):
    case_id: str
    rows: list[_Row] | None = None


_decode_line = msgspec.json.Decoder(_JudgedLine).decode


def _take(
    path: Path,
    number: int,
    line: bytes,
    rows: dict[str, dict[str, JudgedRow]],
    problems: list[Problem],
) -> None:
    try:
        judged = _decode_line(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"{error}; correct the line, or restore the file from a backup"
        problems.append(Problem(str(path), number, "", message))
        return
    of_case = rows.setdefault(judged.case_id, {})
    for row in judged.rows or ():
        if row.grade is not None and not row.part:
            of_case[row.key] = JudgedRow(row.key, row.rel_path, row.heading_path or "", row.grade)
