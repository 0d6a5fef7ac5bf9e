"""The label files that are joined to the eval set by case_id, and the whole set with its labels."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from records.cases import SET_ONLY, Labels, TestCase, case_from_dict, ignore, iter_cases
from records.errors import Problem, StorageError
from records.file_access import open_plain, read_whole
from records.lines import Report, iter_lines, parse_object
from records.runs import EVAL_SET, LABELS_DIR

LABEL_FILES = (
    "cases",
    "retrieval_labels",
    "context_labels",
    "groundedness_labels",
    "pipeline_labels",
    "safety_labels",
)

SAFETY_LABELS = "safety_labels.jsonl"
"""Labelled texts, which are no cases of the set; lines without a text are labels of cases."""

LABEL_FIELDS = frozenset(TestCase.__struct_fields__) - {"id", "question", *SET_ONLY}


def own_labels(eval_set: Path) -> Path:
    """The folder of labels that belongs to a set: eval/labels for the usual set, ``labels`` beside
    any other."""
    return LABELS_DIR if eval_set.resolve() == EVAL_SET.resolve() else eval_set.parent / "labels"


def label_files(folder: Path | None, eval_set: Path | None = None) -> dict[str, Path]:
    """The label files of a set, by name: those in a folder of labels.

    If the folder is the set's own, a file ``*_labels.jsonl`` beside the set counts, too, where the
    folder has none of that name. The set itself, which may be in the folder, is no label file.
    """
    if folder is None:
        return {}
    found: dict[str, Path] = {}
    for name in LABEL_FILES:
        path = next((path for path in label_places(name, folder, eval_set) if path.exists()), None)
        if path is not None and not (eval_set and path.resolve() == eval_set.resolve()):
            found[name] = path
    return found


def label_places(name: str, folder: Path, eval_set: Path | None) -> list[Path]:
    """Where a label file of a set may be, the one that counts first."""
    own = eval_set is not None and folder.resolve() == own_labels(eval_set).resolve()
    return [folder / f"{name}.jsonl", *(_beside(eval_set, name) if own and eval_set else ())]


def _beside(eval_set: Path, name: str) -> list[Path]:
    """Where a label file beside a set would be; nowhere for ``cases``, which is a set there."""
    return [eval_set.parent / f"{name}.jsonl"] if name.endswith("_labels") else []


def passed_over(eval_set: Path) -> list[str]:
    """A sentence for each label file beside a set that does not count, since the set's own folder
    of labels has one of its name."""
    folder = own_labels(eval_set)
    pairs = [(folder / path.name, path) for name in LABEL_FILES for path in _beside(eval_set, name)]
    return [
        f"{path} counts, and {beside} does not: merge them and remove one."
        for path, beside in pairs
        if path.exists() and beside.exists()
    ]


def read_labels(
    folder: Path | None, report: Report, eval_set: Path | None = None
) -> tuple[Labels, dict[str, tuple[Path, int]]]:
    """All labels of a set by case id, and where each id was first labelled; see ``label_files``.

    A case may have one line in each file; a field may come from one file only. Lines of
    safety_labels.jsonl that bring a ``text`` of their own are prompts, not labels of cases.
    """
    labels: Labels = {}
    locations: dict[str, tuple[Path, int]] = {}
    for name, path in label_files(folder, eval_set).items():
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
                message = f"{case_id!r} is also labelled on line {in_file[case_id]}; merge them"
                report(Problem(str(path), number, "case_id", message))
                continue
            in_file[case_id] = number
            locations.setdefault(case_id, (path, number))
            _check_labels(path, number, case_id, raw, labels, report)
    return labels, locations


def _check_labels(
    path: Path, number: int, case_id: str, raw: dict[str, Any], labels: Labels, report: Report
) -> None:
    """Type-check the label fields by themselves and add them to what the case has so far."""
    findings = [
        (
            field,
            "belongs in the set, on the line of its case; move it"
            if field in SET_ONLY
            else "a label line cannot have it; its fields are those of a case except id and "
            "question",
        )
        for field in raw
        if field not in LABEL_FIELDS
    ]
    labelled = {name: value for name, value in raw.items() if name not in SET_ONLY}
    _, of_fields = case_from_dict({"question": "?"} | labelled | {"id": case_id})
    # what a group of supports means depends on the supports, which may stand in the set
    findings += [pair for pair in of_fields if not pair[0].startswith("required_support_groups")]
    of_case = labels.setdefault(case_id, {})
    findings += [
        (field, f"{case_id!r} also has it in another label file")
        for field in raw
        if field in of_case
    ]
    for field, message in findings:
        report(Problem(str(path), number, field, message))
    if not findings:  # a faulty line would give its case faults of its own
        of_case.update(raw)


def read_cases(path: Path, labels_dir: Path | None = None) -> list[TestCase]:
    """The whole set with its labels joined.

    Raises StorageError naming every problem in all files as ``file:line: field: …``.
    """
    problems: list[Problem] = []
    labels, locations = read_labels(labels_dir, problems.append, path)
    before = len(problems)
    cases = list(iter_cases(path, problems.append, labels))
    problems[before:] = sorted(problems[before:], key=lambda problem: problem.line or 0)
    if len(problems) == before:  # an unsound set would make its own labels look unknown
        problems.extend(unknown_labels(labels, locations, path, {case.id for case in cases}))
    if problems:
        raise StorageError.from_problems(problems)
    return cases


def unknown_labels(
    labels: Labels, locations: dict[str, tuple[Path, int]], eval_set: Path, ids: set[str]
) -> Iterator[Problem]:
    """A problem for each label of a case that is not in the set.

    ``ids`` are cases known to be in the set; only labels of others are looked up in the file.
    """
    missing = labels.keys() - ids
    if missing:
        missing -= {case.id for case in iter_cases(eval_set, ignore)}
    for case_id in sorted(missing):
        path, line = locations[case_id]
        message = f"{case_id!r} is not in {eval_set}; correct it or remove the line"
        yield Problem(str(path), line, "case_id", message)


def labels_sha256(folder: Path | None, eval_set: Path | None = None) -> str | None:
    """SHA-256 over the bytes of the label files of a set, one behind the other in the order of
    LABEL_FILES; None when there are none.

    It says which labels a run had and is no part of ``config_hash``: labels grow with every
    session of labelling, and runs stay comparable. What of them reaches a request (``user_roles``,
    ``vaults``, ``folders``) is best written into the set itself, whose SHA-256 counts.
    """
    paths = label_files(folder, eval_set).values()
    digest = hashlib.sha256()
    for path in paths:
        digest.update(read_whole(path))
    return digest.hexdigest() if paths else None


class _Before(msgspec.Struct):
    """What of a case says that something came before its question, or after it."""

    conversation: Any = None
    history: Any = None


def has_turns(eval_set: Path) -> bool:
    """True when a case of the set is a turn of a conversation, or has a history of its own."""
    decode = msgspec.json.Decoder(_Before).decode
    with open_plain(eval_set) as lines:
        for line in lines:
            if b'"conversation"' in line or b'"history"' in line:
                with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    case = decode(line)
                    if case.conversation is not None or case.history is not None:
                        return True
    return False


def labelled_texts(labels_dir: Path | None, eval_set: Path | None = None) -> Path | None:
    """The file of labelled texts of a set; None where there is none."""
    return label_files(labels_dir, eval_set).get("safety_labels")
