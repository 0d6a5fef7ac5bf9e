"""Fingerprints of a case: what was asked in it, and what was labelled for a section.

Two runs are compared in a case whose fingerprints are the same in both, whatever else changed in
the set. They are 16 hex digits of SHA-256 over canonical JSON. The bot's answers and settings of a
run are no part of them.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from string import hexdigits
from typing import Any

import msgspec
import orjson

from records import jsonl
from records.cases import TestCase, ignore
from records.results import TestResult
from records.runs import results_file, scores_file
from records.scores import ScoreLine, line_type

ASKED = ("question", "question_alone", "history", "vaults", "folders", "user_roles")
"""Fields of a case that are asked, beside the earlier questions of its conversation."""

_LABELS = tuple(
    name
    for name in TestCase.__struct_fields__
    if name not in (*ASKED, "id", "conversation", "turn", "standalone")
)
"""What a section may read that does not say what it reads, such as one of a plugin."""

DIGITS, SHORT = 16, 8
"""Hex digits of a fingerprint, and of each of the two that a committed line has."""

_DEFAULTS: Mapping[str, Any] = {
    field.name: [] if field.default is msgspec.NODEFAULT else field.default
    for field in msgspec.structs.fields(TestCase)
    if not field.required
} | {field.name: {} for field in msgspec.structs.fields(TestCase) if field.default_factory is dict}


def digest(value: Any) -> str:
    """Returns 16 hex digits that are the same for the same JSON data, whatever the order of keys
    and however its characters are composed."""
    text = orjson.dumps(value, default=msgspec.to_builtins, option=orjson.OPT_SORT_KEYS)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.decode()).encode()
    return hashlib.sha256(text).hexdigest()[:DIGITS]


def _fields(case: TestCase, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields that a case has, so that a field that a later version knows changes nothing.

    Lists of texts have no order.
    """
    present = _present(type(case), names)
    values = [(name, getattr(case, name), default) for name, default in present]
    return {
        name: sorted(value) if isinstance(value, list) and set(map(type, value)) == {str} else value
        for name, value, default in values
        if value != default
    }


@lru_cache(maxsize=256)
def _present(kind: type[TestCase], names: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Those of the fields that cases of a type have, with their defaults: fewer where a file has
    few, see ``jsonl.Lean``."""
    return [(name, _DEFAULTS.get(name)) for name in names if name in kind.__struct_fields__]


def asked_digests(cases: Iterable[TestCase]) -> dict[str, str]:
    """Computes for each case the fingerprint of its question.

    ``cases``: conversations with all turns.
    """
    cases = list(cases)
    turns: dict[str, list[TestCase]] = {}
    for case in cases:
        if case.conversation is not None:
            turns.setdefault(case.conversation, []).append(case)
    digests = {}
    for case in cases:
        values = _fields(case, ASKED)
        before = [
            (other.turn or 0, other.question)
            for other in turns.get(case.conversation or "", ())
            if (other.turn or 0) < (case.turn or 0)
        ]
        if before:
            values["earlier"] = [question for _, question in sorted(before)]
        digests[case.id] = digest(values)
    return digests


def labelled_digests(cases: Iterable[TestCase], names: tuple[str, ...]) -> dict[str, str]:
    """Computes for each case the fingerprint of its labels.

    ``names``: the fields that a section reads; without any all labels count.
    """
    by_id = {case.id: case for case in cases}
    return {case_id: digest(_fields(case, names or _LABELS)) for case_id, case in by_id.items()}


def read_asked(folder: Path) -> dict[str, str]:
    """Reads the fingerprints of a run's questions from its result lines, by case id.

    {} where a line does not say. Damaged lines are passed over.
    """
    path = results_file(folder)
    if not path.exists():
        return {}
    kind = jsonl.project(TestResult, ("test_case_id", "asked"))
    asked: dict[str, str] = {}
    for _, _, line in jsonl.read(path, kind, "result line", report=ignore):
        if line.asked is msgspec.UNSET:
            return {}
        asked[line.test_case_id] = line.asked
    return asked


def read_labelled(folder: Path, section: str, unknown: str | None = None) -> dict[str, str]:
    """Reads the fingerprints of a section's labels from its score lines, by case id.

    {} where a line does not say, unless ``unknown`` is what it then says. Raises StorageError for
    damaged lines.
    """
    kind: type[ScoreLine] = line_type(section, ("case_id", "labelled"))
    labelled: dict[str, str] = {}
    for _, _, line in jsonl.read(scores_file(folder, section), kind):
        own = line.labelled or unknown
        if own is None:
            return {}
        labelled[line.case_id] = own
    return labelled


def short(asked: str, labelled: Sequence[str]) -> str:
    """Both in one string for a committed file: 8 digits each. ``labelled``: one a section, in the
    order of their names."""
    return asked[:SHORT] + digest(labelled)[:SHORT]


def is_short(text: object) -> bool:
    """Whether the end of a committed line is such a string."""
    return isinstance(text, str) and len(text) == 2 * SHORT and not set(text) - set(hexdigits)


def read_short(folder: Path, sections: Iterable[str]) -> dict[str, str]:
    """By case id, ``short`` over some sections of a run; {} where its files do not say it."""
    if not (asked := read_asked(folder)):
        return {}
    labelled = [read_labelled(folder, section) for section in sorted(sections)]
    return {
        case_id: short(mark, [own[case_id] for own in labelled])
        for case_id, mark in asked.items()
        if all(case_id in own for own in labelled)
    }
