"""The set and the judgements as the session sees them: only records that the toolkit can read."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping

from labeller.case_state import LABEL_FIELDS, Record
from records.cases import case_from_dict
from records.editing import Document

HIDDEN = (
    *LABEL_FIELDS,
    "relevant_docs",
    "relevance_grades",
    "relevant_chunks",
    "chunk_relevance_grades",
    "expected_chunks",
    "expected_citations",
    "expected_tools",
    "forbidden_tools",
)
"""Fields that would reveal the first annotator's decision to a second one."""


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


class SecondView(Mapping[str, Record]):
    """The cases as a second annotator sees them: with that person's own labels, or none.

    `only` leaves all other cases out.
    """

    def __init__(
        self, cases: Document, judgements: Document, only: Collection[str] | None = None
    ) -> None:
        self._cases, self._judgements, self._only = cases, judgements, only

    def __getitem__(self, key: str) -> Record:
        if key not in self:
            raise KeyError(key)
        case = {k: v for k, v in self._cases[key].items() if k not in HIDDEN}
        labels = self._judgements.get(key, {})
        return case | {k: labels[k] for k in LABEL_FIELDS if k in labels}

    def __contains__(self, key: object) -> bool:
        return key in self._cases and (self._only is None or key in self._only)

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._cases if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def judgement_line(case_id: str, judgement: Record, case: Record, *, second: bool) -> Record | None:
    """The line of a case in an annotator's file; it includes a second annotator's labels."""
    labels: Record = {k: case[k] for k in LABEL_FIELDS if k in case} if second else {}
    if not judgement and not labels:
        return None
    return {"case_id": case_id, **judgement, **labels}


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
