"""Which folder holds the judgements of a set, so that two sets beside each other do not mix."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path
from typing import Final

from label_store.cases import identify_case, identify_judgement
from label_store.disk import read_bytes
from label_store.document import Document
from records.errors import StorageError

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


def foreign_words(judged: Iterable[str], cases: Container[str]) -> str:
    """What to say of judgements that are of no case of the set; ``""`` when there are none."""
    foreign = [case_id for case_id in judged if case_id not in cases]
    if not foreign:
        return ""
    first = ", ".join(map(repr, foreign[:3])) + (", …" if len(foreign) > 3 else "")
    are = "one judgement is" if len(foreign) == 1 else f"{len(foreign)} judgements are"
    return (
        f"{are} of no case of the set ({first}); if another set's, give each set a folder of its "
        "own with --labels-dir, else delete these lines"
    )
