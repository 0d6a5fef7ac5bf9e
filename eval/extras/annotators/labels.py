"""Labels that are kept apart from the set: another person's, or the same person's second ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from extras.annotators.agreement import labels_of
from labeller.case_state import GOLD, LABEL_FIELDS, CaseState, LabelTarget, Record
from labeller.worklist import shuffle_key
from records.editing import Document

RECHECK: Final = "recheck"
"""The file of labels that were given a second time by the same person."""

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


@dataclass(frozen=True)
class OwnLabels(LabelTarget):
    """Labels in a file of their own, for the cases of `only` if it is given.

    The set is not changed, and its labels are not shown.
    """

    fixed: str = "A second annotator only labels; the first pass changes the set itself."
    next_command: str = "label_eval.py --agreement"
    only: Collection[str] | None = None

    def records(self, cases: Document, judged: Document) -> Mapping[str, Record]:
        return SecondView(cases, judged, self.only)

    def line(self, case_id: str, state: CaseState) -> Record | None:
        labels: Record = {k: state.case[k] for k in LABEL_FIELDS if k in state.case}
        if not state.judgement and not labels:
            return None
        return {"case_id": case_id, **state.judgement, **labels}


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


def sample(
    cases: Mapping[str, Record], judgements: Mapping[str, Record], percent: int, seed: int
) -> set[str]:
    """A share of the decided cases, the same for the same seed; of a conversation all turns.

    A later turn cannot be read without those before it. Empty where nothing is decided.
    """
    decided = labels_of(cases, judgements, GOLD)
    order = sorted(decided, key=lambda case_id: shuffle_key(str(seed), RECHECK, case_id))
    chosen = set(order[: math.ceil(len(order) * percent / 100)])
    talks = {cases[case_id].get("conversation") for case_id in chosen} - {None}
    if not talks:
        return chosen
    return chosen | {name for name in cases if cases[name].get("conversation") in talks}
