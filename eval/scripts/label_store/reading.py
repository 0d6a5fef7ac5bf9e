"""The set and all annotators' files, read for a job that writes none of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import storage
from label_store.cases import Judgements, identify_case, identify_judgement
from label_store.disk import read_bytes
from label_store.document import Document
from label_store.plan import Plan
from labeller.entry import GOLD

if TYPE_CHECKING:
    from label_store.compare import Verdicts

Record = dict[str, Any]


def cases_of(plan: Plan) -> Document:
    """The set; lines with faults make it refused, as every other script does."""
    document = Document(read_bytes(plan.eval_set), identify_case, cases=True)
    if document.problems:
        raise storage.StorageError.from_problems(
            storage.Problem(str(plan.eval_set), n, "", text) for n, text in document.problems
        )
    return document


def annotator_files(plan: Plan) -> dict[str, Path]:
    """The file of each annotator who has one."""
    return {path.stem: path for path in sorted(plan.judgements_dir.glob("*.jsonl"))}


def decided_of(plan: Plan) -> dict[str, Document]:
    """The annotators' files as they are, labels included."""
    return {
        name: Document(read_bytes(path), identify_judgement)
        for name, path in annotator_files(plan).items()
    }


def judgements_of(plan: Plan) -> dict[str, Mapping[str, Record]]:
    """What each annotator said beside the labels."""
    return {name: Judgements(document) for name, document in decided_of(plan).items()}


def verdicts_of(plan: Plan, cases: Mapping[str, Record]) -> dict[str, Verdicts]:
    """Each annotator's verdicts, the set's own first."""
    from label_store.compare import verdicts

    known = decided_of(plan)
    found = {GOLD: verdicts(cases, known.pop(GOLD, {}), GOLD)}
    found |= {name: verdicts(cases, document, name) for name, document in known.items()}
    return {name: decided for name, decided in found.items() if decided}
