"""Labels that people gave to judged claims: the file of one annotator, its lines and their checks.

A line of ``eval/labels/verdicts/<annotator>.jsonl`` is one decision: ``{"case_id", "repeat",
"metric", "claim_id", "claim", "answer_sha256", "label", "annotator", "at"}``. The label is one of
``LABELS`` or null (taken back); of an annotator's lines for a claim whose words and answer are the
run's, the last counts. A fact has the metric correctness, and its own id (``f1``) and text under
the same names. ``after_verdict`` tells that the annotator had seen what the judge said, ``act``
whether the line is a label, a note, an undo or a redo. ``note`` and ``flag`` are what the annotator
noted on the claim. A line says all that holds from then on: that of a note repeats the label, that
of a label the note.

A pair of answers (metric ``pairs``, by a rubric ``pairs.NAME``) has the claim id ``pair``;
``answer_sha256`` is of the left answer and ``claim`` the hash of the right one. The label is left,
right, equal or cannot_tell.

How the claim was chosen: ``sample`` names the drawing, ``random:SEED`` (of all claims alike) or
``strata:SEED``. With strata, ``stratum`` is the claim's, ``stratum_size`` the claims in it, and
``probability`` the share of them that was drawn up to this one: the largest of a stratum is the
probability with which each of its claims was drawn. Lines without these fields count as before.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from records.errors import Problem, StorageError
from records.file_access import read_whole
from records.files import SetLock
from records.journal import Journal
from records.jsonl import read_rows
from records.rubrics import PREFIX

FOLDER = "verdicts"

METRIC = "groundedness"
"""Of a line that names none."""

CANNOT_TELL = "cannot_tell"

LABELS = {
    "groundedness": ("supported", "not_supported", CANNOT_TELL),
    "correctness": ("present", "missing", "contradicted", CANNOT_TELL),
}
"""The labels that people can choose, by metric: of claims, and of facts of the reference. Of
answers by a rubric they may say what is on its scale."""

PAIR_LABELS = ("left", "right", CANNOT_TELL, "equal")
"""The labels of two answers, in the order of their keys; equal has 0."""

Act = Literal["label", "note", "undo", "redo"]

_TEXTS = ("case_id", "claim_id", "annotator")


@dataclass(frozen=True, slots=True)
class ClaimDraw:
    """How a claim was chosen for labelling: by which drawing, from which stratum of how many."""

    sample: str = ""
    stratum: str = ""
    size: int = 0
    probability: float | None = None

    def fields(self) -> dict[str, Any]:
        """The fields of a label line."""
        if not self.stratum:
            return {"sample": self.sample}
        return {
            "sample": self.sample,
            "stratum": self.stratum,
            "stratum_size": self.size,
            "probability": self.probability,
        }


@dataclass(frozen=True, slots=True)
class ClaimLabel:
    """One annotator's label of one claim; ``label`` None: taken back."""

    key: tuple[str, int, str]
    metric: str
    claim: str
    answer_sha256: str
    label: str | None
    annotator: str
    at: str = ""
    after_verdict: bool = False
    act: Act = "label"
    draw: ClaimDraw = ClaimDraw()
    note: str = ""
    flag: bool = False


def label_files(folder: Path, named: Sequence[Path]) -> list[Path]:
    """The files asked for, else all of the labels' folder, by name."""
    return list(named) or sorted((folder / FOLDER).glob("*.jsonl"))


def read_labels(paths: Iterable[Path]) -> list[ClaimLabel]:
    """Every decision of the files, in their order. Raises StorageError with all problems."""
    labels: list[ClaimLabel] = []
    problems: list[Problem] = []
    for path in paths:
        for line, row in read_rows(path):
            faults = list(_faults(row, path.stem))
            problems += [Problem(str(path), line, name, message) for name, message in faults]
            if not faults:
                labels.append(_label(row, path.stem))
    if problems:
        raise StorageError.from_problems(problems)
    return labels


class PeopleSay:
    """People's labels of claims and facts, whatever the judge's verdicts are."""

    def __init__(self, labels: Iterable[ClaimLabel]) -> None:
        self._labels: dict[tuple[str, int, str], list[ClaimLabel]] = {}
        for label in labels:
            case_id, repeat, _ = label.key
            self._labels.setdefault((case_id, repeat, label.metric), []).append(label)

    def __bool__(self) -> bool:
        return bool(self._labels)

    def of(
        self, metric: str, case_id: str, repeat: int, answer: str, items: Mapping[str, str]
    ) -> dict[str, str]:
        """By id, the label of most annotators for each of ``items`` (texts by id) of an answer.

        Left out: undecided items, ties between annotators, and labels of another answer or other
        words. Of an annotator's labels the last one counts.
        """
        last: dict[tuple[str, str], str | None] = {}
        digest = ""
        for label in self._labels.get((case_id, repeat, metric), ()):
            digest = digest or answer_sha256(answer)
            item = label.key[2]
            same_claim = item in items and label.claim in ("", items[item])
            if same_claim and label.answer_sha256 in ("", digest):
                last[item, label.annotator] = label.label
        votes: dict[str, Counter[str]] = {}
        for (item, _), word in last.items():
            if word is not None and word != CANNOT_TELL:
                votes.setdefault(item, Counter())[word] += 1
        most = {item: counts.most_common(2) for item, counts in votes.items()}
        return {
            item: words[0][0]
            for item, words in most.items()
            if len(words) == 1 or words[0][1] > words[1][1]
        }


def answer_sha256(answer: str) -> str:
    """The hash by which a label names the answer, of its text as the judge saw it."""
    return hashlib.sha256(answer.encode("utf-8", "surrogatepass")).hexdigest()


def is_labelled_rows(path: Path) -> bool:
    """Whether a file has claims with contexts of their own (``supported``) and no run's claims."""
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
    metric = str(row.get("metric", METRIC))
    allowed = PAIR_LABELS if metric.partition(".")[0] == "pairs" else LABELS.get(metric)
    if metric.startswith(PREFIX):
        if not isinstance(row.get("label", ""), str | None) or "label" not in row:
            yield "label", "must be a label of the rubric's scale, or null to take it back"
    elif allowed is None:
        yield "metric", f"must be one of {', '.join(LABELS)}; others have no labels"
    elif "label" not in row or (row["label"] is not None and row["label"] not in allowed):
        yield "label", f"must be one of {', '.join(allowed)}, or null to take it back"
    for name in ("claim", "answer_sha256", "metric", "at", "sample", "stratum", "note"):
        if not isinstance(row.get(name, ""), str):
            yield name, "must be a text; leave it out if there is none"
    if not isinstance(row.get("flag", False), bool):
        yield "flag", "must be true or false; leave it out if there is none"
    if row.get("stratum"):
        yield from _draw_faults(row)


def _draw_faults(row: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    size, probability = row.get("stratum_size"), row.get("probability")
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        yield "stratum_size", "must be the number of claims in the stratum, 1 or more"
    if isinstance(probability, bool) or not isinstance(probability, int | float):
        yield "probability", "must be a number; the share of the stratum that was drawn"
    elif not 0 < probability <= 1:
        yield "probability", "must be above 0 and at most 1"


def _label(row: Mapping[str, Any], stem: str) -> ClaimLabel:
    return ClaimLabel(
        (row["case_id"], row.get("repeat", 0), row["claim_id"]),
        row.get("metric", METRIC),
        row.get("claim", ""),
        row.get("answer_sha256", ""),
        row["label"],
        row.get("annotator", stem),
        row.get("at", ""),
        row.get("after_verdict") is True,
        act if (act := row.get("act")) in ("note", "undo", "redo") else "label",
        ClaimDraw(
            row.get("sample", ""),
            row.get("stratum", ""),
            row["stratum_size"] if row.get("stratum") else 0,
            row.get("probability"),
        ),
        row.get("note", ""),
        row.get("flag", False),
    )


def labels_sha256(paths: Iterable[Path]) -> str:
    """One hash over the bytes of all files, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(paths, key=lambda file: file.name):
        try:
            digest.update(read_whole(path))
        except OSError as error:
            raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error
    return digest.hexdigest()


class LabelFile:
    """One annotator's file, locked for this session; every line is on disk when it is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = Journal(path)
        self._lock = SetLock(path)

    def __enter__(self) -> LabelFile:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self._lock.take(self.path.stem, _now()):
                raise StorageError(
                    f"{self.path}: {self._lock.holder} is labelling into it now; wait, or choose "
                    "another --annotator name."
                )
            self._journal.open()
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be written ({error.strerror}).") from error
        return self

    def __exit__(self, *error: object) -> None:
        self._journal.close()
        self._lock.release()

    def append(self, label: ClaimLabel) -> None:
        """Write a decision, with the time of now.

        Raises OSError when the disk refuses; the file is then as before.
        """
        case_id, repeat, claim_id = label.key
        line: dict[str, Any] = {
            "case_id": case_id,
            "repeat": repeat,
            "metric": label.metric,
            "claim_id": claim_id,
            "claim": label.claim,
            "answer_sha256": label.answer_sha256,
            "label": label.label,
            "annotator": label.annotator,
            "at": _now(),
            **label.draw.fields(),
            "act": label.act,
        }
        if label.after_verdict:
            line["after_verdict"] = True
        if label.note:
            line["note"] = label.note
        if label.flag:
            line["flag"] = True
        self._journal.append(line)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
