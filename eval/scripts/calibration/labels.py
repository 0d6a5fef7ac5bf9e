"""Labels that people gave to judged claims: reading, checking, joining several annotators.

A line of ``eval/labels/verdicts/<annotator>.jsonl`` is one decision: ``{"case_id", "repeat",
"metric", "claim_id", "claim", "answer_sha256", "label", "annotator", "at"}``. The label is one of
``LABELS`` or null (taken back); of an annotator's lines for a claim whose words and answer are the
run's, the last counts. A fact has the metric correctness, and its own id (``f1``) and text under
the same names. ``sample`` tells how the claim was chosen, ``after_verdict`` that the annotator had
seen what the judge said, ``act`` that the line is an undo or a redo.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from calibration.claims import JudgedClaim, Key
from humanlabels.rows import read_rows
from ragmetrics.agreement import krippendorff_alpha
from storage import Problem, StorageError

FOLDER = "verdicts"
METRIC = "groundedness"
"""Of a line that names none."""
LABELS = {
    "groundedness": ("supported", "not_supported", "cannot_tell"),
    "correctness": ("present", "missing", "contradicted", "cannot_tell"),
}
"""What people may say, by metric: of claims, and of facts of the reference."""
Act = Literal["label", "undo", "redo"]
COUNTS = ("unknown", "stale", "cannot_tell", "disputed", "after_verdict")
"""What is counted apart when labels are joined with a run's claims."""
VALUE = {"supported": 1, "not_supported": 0, "present": 1, "missing": 0, "contradicted": 0}
_TEXTS = ("case_id", "claim_id", "annotator")


@dataclass(frozen=True, slots=True)
class Label:
    """What one annotator says of one claim; ``label`` None: taken back."""

    key: Key
    metric: str
    claim: str
    answer_sha256: str
    label: str | None
    annotator: str
    at: str = ""
    sample: str = ""
    after_verdict: bool = False
    act: Act = "label"


@dataclass(frozen=True, slots=True)
class Joined:
    """People's verdict of each claim that has one, and what was left out and why."""

    human: dict[Key, int]
    counts: dict[str, int]
    annotators: dict[str, int]
    alpha: float | None
    """Krippendorff's alpha of the annotators on claims that two or more decided."""
    random_sample: bool
    """All labels come from random draws of the judged claims."""
    by_verdict: dict[str, dict[str, int]] = field(default_factory=dict)
    """Labels of each word, by the judge's verdict of the same claim or fact."""


def label_files(folder: Path, given: Sequence[Path]) -> list[Path]:
    """The files asked for, else all of the labels' folder, by name."""
    return list(given) or sorted((folder / FOLDER).glob("*.jsonl"))


def read_labels(paths: Iterable[Path]) -> list[Label]:
    """Every decision of the files, in their order. Raises StorageError with all problems."""
    found: list[Label] = []
    problems: list[Problem] = []
    for path in paths:
        for line, row in read_rows(path):
            faults = list(_faults(row, path.stem))
            problems += [Problem(str(path), line, name, message) for name, message in faults]
            if not faults:
                found.append(_label(row, path.stem))
    if problems:
        raise StorageError.from_problems(problems)
    return found


def is_labelled_rows(path: Path) -> bool:
    """Does the file hold claims with contexts of their own (``supported``), and no run's claims?"""
    for _, row in read_rows(path):
        return "label" not in row and "supported" in row
    return False


def _faults(row: Mapping[str, Any], stem: str) -> Iterable[tuple[str, str]]:
    for name in _TEXTS:
        value = row.get(name, stem if name == "annotator" else None)
        if not isinstance(value, str) or not value:
            yield name, "must be a text; it names what was labelled"
    if not isinstance(row.get("repeat", 0), int) or isinstance(row.get("repeat"), bool):
        yield "repeat", "must be a whole number; 0 when the bot was asked once"
    known = LABELS.get(str(row.get("metric", METRIC)))
    if known is None:
        yield "metric", f"must be one of {', '.join(LABELS)}; others have no labels"
    elif "label" not in row or (row["label"] is not None and row["label"] not in known):
        yield "label", f"must be one of {', '.join(known)}, or null to take it back"
    for name in ("claim", "answer_sha256", "metric", "at", "sample"):
        if not isinstance(row.get(name, ""), str):
            yield name, "must be a text; leave it out if there is none"


def _label(row: Mapping[str, Any], stem: str) -> Label:
    return Label(
        (row["case_id"], row.get("repeat", 0), row["claim_id"]),
        row.get("metric", METRIC),
        row.get("claim", ""),
        row.get("answer_sha256", ""),
        row["label"],
        row.get("annotator", stem),
        row.get("at", ""),
        row.get("sample", ""),
        row.get("after_verdict") is True,
        act if (act := row.get("act")) in ("undo", "redo") else "label",
    )


def labels_sha256(paths: Iterable[Path]) -> str:
    """One hash over the bytes of all files, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda one: one.name):
        try:
            digest.update(path.read_bytes())
        except OSError as error:
            raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error
    return digest.hexdigest()


def join(labels: Iterable[Label], claims: Iterable[JudgedClaim], metric: str) -> Joined:
    """People's verdict of the judged claims.

    Left out and counted: labels of claims that the run does not hold (``unknown``), of an answer or
    claim that has changed since (``stale``), claims that nobody could decide (``cannot_tell``), and
    those on which as many annotators say yes as no (``disputed``). A label of other words, from
    another run, takes nothing from one that fits.
    """
    known = {claim.key: claim for claim in claims}
    last: dict[str, dict[tuple[Key, str], Label]] = {"fits": {}, "stale": {}, "unknown": {}}
    for label in labels:
        if label.metric == metric:
            last[_place(label, known.get(label.key))][label.key, label.annotator] = label
    fits = last.pop("fits")
    counts: Counter[str] = Counter()
    for name, others in last.items():
        counts[name] = sum(one.label is not None for of, one in others.items() if of not in fits)
    by_claim: dict[Key, list[Label]] = {}
    for label in fits.values():
        if label.label is not None:
            by_claim.setdefault(label.key, []).append(label)
    human: dict[Key, int] = {}
    for key, given in by_claim.items():
        votes = [VALUE[one.label] for one in given if one.label in VALUE]
        if not votes:
            counts["cannot_tell"] += 1
        elif 2 * sum(votes) == len(votes):
            counts["disputed"] += 1
        else:
            human[key] = int(2 * sum(votes) > len(votes))
    used = [one for given in by_claim.values() for one in given]
    counts["after_verdict"] = sum(one.after_verdict for one in used)
    votes_of = [[VALUE.get(one.label or "") for one in given] for given in by_claim.values()]
    return Joined(
        human,
        {name: counts[name] for name in COUNTS},
        dict(sorted(Counter(one.annotator for one in used).items())),
        krippendorff_alpha(votes_of),
        bool(used) and all(one.sample.startswith("random") for one in used),
        _by_verdict(used, known),
    )


def _by_verdict(
    used: Iterable[Label], claims: Mapping[Key, JudgedClaim]
) -> dict[str, dict[str, int]]:
    table: dict[str, Counter[str]] = {}
    for one in used:
        table.setdefault(one.label or "", Counter())[claims[one.key].verdict] += 1
    return {label: dict(sorted(counts.items())) for label, counts in sorted(table.items())}


def _place(label: Label, claim: JudgedClaim | None) -> str:
    """Does a label fit the claim of its key? Fields that the file leaves out are not compared."""
    if claim is None:
        return "unknown"
    other_answer = label.answer_sha256 and label.answer_sha256 != claim.answer_sha256
    return "stale" if other_answer or (label.claim and label.claim != claim.claim) else "fits"
