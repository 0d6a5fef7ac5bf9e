"""The set and the judgements as the session sees them: only records that the toolkit can read."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from labeller.case_state import GOLD, LABEL_FIELDS, CaseState, Record
from records.cases import case_from_dict
from records.editing import Document, read_bytes
from records.judged import identify_judgement


def validate(case: Record) -> list[str]:
    """The reasons why the toolkit would refuse a record, a sentence each; [] for a good one."""
    try:
        json.dumps(case, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return ["The text holds half of a character (a lone surrogate); the set cannot keep it."]
    return [f"{field}: {message}" for field, message in case_from_dict(case)[1]]


class Judgements(Mapping[str, Record]):
    """An annotator's judgements by case id, without the key itself."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def __getitem__(self, key: str) -> Record:
        return {k: v for k, v in self.document[key].items() if k not in ("case_id", *LABEL_FIELDS)}

    def __contains__(self, key: object) -> bool:
        return key in self.document

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __len__(self) -> int:
        return len(self.document)


@dataclass(frozen=True)
class LabelTarget:
    """Whose labels a session gives and where they go: here those of the set, into the set.

    An extra can hand in labels that are kept apart. Then `fixed` says why the set is not changed,
    and they are in the lines of the judgements. `next_command` is what makes use of them.
    """

    annotator: str = GOLD
    fixed: str = ""
    next_command: str = ""

    def records(self, cases: Document, judged: Document) -> Mapping[str, Record]:
        """The cases as the session sees them."""
        return cases

    def line(self, case_id: str, state: CaseState) -> Record | None:
        """The line of a case in the judgements; None for a case without any."""
        return {"case_id": case_id, **state.judgement} if state.judgement else None


SET_LABELS = LabelTarget()
"""The labels of the set itself."""


def read_judgements(folder: Path) -> dict[str, Document]:
    """The judgements in a folder, labels included, by whose they are (the name of the file)."""
    paths = sorted(folder.glob("*.jsonl"))
    return {path.stem: Document(read_bytes(path), identify_judgement) for path in paths}


def foreign_words(judged: Iterable[str], cases: Container[str]) -> str:
    """The message about judgements that are of no case of the set; ``""`` when there are none."""
    foreign = [case_id for case_id in judged if case_id not in cases]
    if not foreign:
        return ""
    first = ", ".join(map(repr, foreign[:3])) + (", …" if len(foreign) > 3 else "")
    are = "one judgement is" if len(foreign) == 1 else f"{len(foreign)} judgements are"
    return (
        f"{are} about no case of the set ({first}); if they belong to another set, give each set "
        "its own folder with --labels-dir, else delete these lines"
    )
