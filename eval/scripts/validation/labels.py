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
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ragmetrics.claims import prepare, score_claim
from ragmetrics.stats.agreement import krippendorff_alpha
from ragmetrics.stats.means import generator
from ragmetrics.text.words import fold, spelled
from records.errors import Problem, StorageError
from records.files import SetLock
from records.journal import ANNOTATOR_NAME, Journal
from records.jsonl import read_rows
from validation.claim_session import (
    CLAIMS,
    FACTS,
    ClaimContext,
    ClaimItem,
    ClaimSession,
    LabelDecision,
)
from validation.claims import ITEMS, JudgedClaim, Key

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
class ClaimLabel:
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
    allowed = LABELS.get(str(row.get("metric", METRIC)))
    if allowed is None:
        yield "metric", f"must be one of {', '.join(LABELS)}; others have no labels"
    elif "label" not in row or (row["label"] is not None and row["label"] not in allowed):
        yield "label", f"must be one of {', '.join(allowed)}, or null to take it back"
    for name in ("claim", "answer_sha256", "metric", "at", "sample"):
        if not isinstance(row.get(name, ""), str):
            yield name, "must be a text; leave it out if there is none"


def _label(row: Mapping[str, Any], stem: str) -> ClaimLabel:
    return ClaimLabel(
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
    for path in sorted(paths, key=lambda file: file.name):
        try:
            digest.update(path.read_bytes())
        except OSError as error:
            raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error
    return digest.hexdigest()


def join(labels: Iterable[ClaimLabel], claims: Iterable[JudgedClaim], metric: str) -> Joined:
    """People's verdict of the judged claims.

    Left out and counted: labels of claims that the run does not hold (``unknown``), of an answer or
    claim that has changed since (``stale``), claims that nobody could decide (``cannot_tell``), and
    those on which as many annotators say yes as no (``disputed``). A label of other words, from
    another run, takes nothing from one that fits.
    """
    claim_of = {claim.key: claim for claim in claims}
    last: dict[str, dict[tuple[Key, str], ClaimLabel]] = {"fits": {}, "stale": {}, "unknown": {}}
    for label in labels:
        if label.metric == metric:
            last[_fit(label, claim_of.get(label.key))][label.key, label.annotator] = label
    fits = last.pop("fits")
    counts: Counter[str] = Counter()
    for name, others in last.items():
        counts[name] = sum(
            label.label is not None for of, label in others.items() if of not in fits
        )
    by_claim: dict[Key, list[ClaimLabel]] = {}
    for label in fits.values():
        if label.label is not None:
            by_claim.setdefault(label.key, []).append(label)
    human: dict[Key, int] = {}
    for key, labels_of_claim in by_claim.items():
        votes = [VALUE[label.label] for label in labels_of_claim if label.label in VALUE]
        if not votes:
            counts["cannot_tell"] += 1
        elif 2 * sum(votes) == len(votes):
            counts["disputed"] += 1
        else:
            human[key] = int(2 * sum(votes) > len(votes))
    used = [label for labels_of_claim in by_claim.values() for label in labels_of_claim]
    counts["after_verdict"] = sum(label.after_verdict for label in used)
    votes_of = [
        [VALUE.get(label.label or "") for label in labels_of_claim]
        for labels_of_claim in by_claim.values()
    ]
    return Joined(
        human,
        {name: counts[name] for name in COUNTS},
        dict(sorted(Counter(label.annotator for label in used).items())),
        krippendorff_alpha(votes_of),
        bool(used) and all(label.sample.startswith("random") for label in used),
        _by_verdict(used, claim_of),
    )


def _by_verdict(
    used: Iterable[ClaimLabel], claims: Mapping[Key, JudgedClaim]
) -> dict[str, dict[str, int]]:
    table: dict[str, Counter[str]] = {}
    for label in used:
        table.setdefault(label.label or "", Counter())[claims[label.key].verdict] += 1
    return {word: dict(sorted(counts.items())) for word, counts in sorted(table.items())}


def _fit(label: ClaimLabel, claim: JudgedClaim | None) -> str:
    """Does a label fit the claim of its key? Fields that the file leaves out are not compared."""
    if claim is None:
        return "unknown"
    other_answer = label.answer_sha256 and label.answer_sha256 != claim.answer_sha256
    return "stale" if other_answer or (label.claim and label.claim != claim.claim) else "fits"


def label(
    claims: Sequence[JudgedClaim],
    metric: str,
    labels_dir: Path,
    annotator: str,
    *,
    sample: int,
    seed: int,
    ascii_only: bool = False,
    theme: str | None = None,
    plain: bool = False,
) -> int:
    """Open the screen on a random sample of the claims, or read lines. Returns the exit code.

    Raises StorageError: no terminal, a bad name, nothing to label, or another session at work.
    """
    if not ANNOTATOR_NAME.fullmatch(annotator):
        raise StorageError(
            f"--annotator {annotator!r}: use up to 64 letters, digits, '.', '_' and '-'."
        )
    for stream, name in ((sys.stdin, "stdin"), (sys.stderr, "stderr")):
        if not plain and not stream.isatty():
            raise StorageError(
                f"{name} is not a terminal, so the full-screen view cannot start. Use --plain."
            )
    if not claims:
        raise StorageError(
            f"the judge decided no {ITEMS[metric]} of this run, so there are none to label."
        )
    with LabelFile(labels_dir / FOLDER / f"{annotator}.jsonl") as file:
        chosen = _drawn(claims, sample, seed)
        store = DecisionStore(file, chosen, metric, annotator, f"random:{seed}")
        facts = metric == "correctness"
        items = [_fact_item(claim) if facts else _labelled_item(claim) for claim in chosen]
        kind, decided = FACTS if facts else CLAIMS, store.decided()
        session = ClaimSession(items, store.record, annotator=annotator, decided=decided, kind=kind)
        if plain:
            from validation.claim_session import ClaimLines

            return ClaimLines(session, sys.stdin, sys.stdout, prompt=sys.stdin.isatty()).run()
        from validation.claim_screen import run

        try:
            return run(session, ascii_only=ascii_only, theme=theme)
        except ValueError as error:
            raise StorageError(f"{error}.") from None


def _drawn(claims: Sequence[JudgedClaim], size: int, seed: int) -> list[JudgedClaim]:
    """The first ``size`` claims of a seeded shuffle: a larger size adds to a smaller one's.

    Uniform over all judged claims, whatever the verdict: only such a sample gives unbiased means.
    """
    every = sorted(claims, key=lambda claim: claim.key)
    order = generator(seed, "label sample").permutation(len(every)).tolist()
    return [every[index] for index in order[:size]]


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
                    f"{self.path}: {self._lock.holder} labels into it now; wait, or take another "
                    "--annotator name."
                )
            self._journal.open()
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be written ({error.strerror}).") from error
        return self

    def __exit__(self, *error: object) -> None:
        self._journal.close()
        self._lock.release()

    def append(self, line: dict[str, Any]) -> None:
        """Raises OSError when the disk refuses; the file is then as before."""
        self._journal.append(line)


class DecisionStore:
    """Turns decisions into lines of the file, and the file's lines back into decisions."""

    def __init__(
        self,
        file: LabelFile,
        claims: Sequence[JudgedClaim],
        metric: str,
        annotator: str,
        sample: str,
    ) -> None:
        self._file = file
        self._claims = {_name_of(claim.key): claim for claim in claims}
        self._metric = metric
        self._annotator = annotator
        self._sample = sample

    def record(self, decision: LabelDecision) -> None:
        """Append one decision. Raises OSError."""
        claim = self._claims[decision.key]
        line: dict[str, Any] = {
            "case_id": claim.case_id,
            "repeat": claim.repeat,
            "metric": self._metric,
            "claim_id": claim.claim_id,
            "claim": claim.claim,
            "answer_sha256": claim.answer_sha256,
            "label": decision.label,
            "annotator": self._annotator,
            "at": _now(),
            "sample": self._sample,
            "act": decision.act,
        }
        if decision.after_verdict:
            line["after_verdict"] = True
        self._file.append(line)

    def decided(self) -> Iterator[LabelDecision]:
        """What this annotator decided before on these claims, as they stand now."""
        if not self._file.path.exists():
            return
        for label in read_labels([self._file.path]):
            claim = self._claims.get(_name_of(label.key))
            if claim is not None and _same(label, claim, self._metric):
                yield LabelDecision(
                    _name_of(label.key),
                    label.label,  # type: ignore[arg-type]  # read_labels has checked it
                    label.act,
                    label.after_verdict,
                )


def _same(label: ClaimLabel, claim: JudgedClaim, metric: str) -> bool:
    return (label.metric, label.answer_sha256, label.claim) == (
        metric,
        claim.answer_sha256,
        claim.claim,
    )


def _name_of(key: Key) -> str:
    """A claim's key as one text."""
    return "\0".join(map(str, key))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _labelled_item(claim: JudgedClaim) -> ClaimItem:
    """One claim for the screen; its best window is found by words, not by the judge."""
    passages = [(passage.title, passage.text) for passage in claim.contexts]
    return _item(claim, claim.answer, passages, claim.span)


def _fact_item(claim: JudgedClaim) -> ClaimItem:
    """One fact for the screen: the reference above it, the bot's answer below."""
    answer = [("what the bot said", claim.answer)] if claim.answer.strip() else []
    return _item(claim, claim.reference, answer, None)


def _item(
    claim: JudgedClaim,
    above: str,
    below: Sequence[tuple[str, str]],
    span: tuple[int, int] | None,
) -> ClaimItem:
    chunks = [prepare(text) for _, text in below]
    support = score_claim(claim.claim, chunks) if chunks else None
    best = support.chunk if support is not None and support.chunk is not None else 0
    window = support.window if support is not None else None
    return ClaimItem(
        _name_of(claim.key),
        f"{claim.case_id} [{claim.claim_id}]",
        claim.question,
        above,
        claim.claim,
        tuple(
            ClaimContext(title, text, window if index == best else None)
            for index, (title, text) in enumerate(below)
        ),
        span,
        best,
        frozenset(spelled(fold(claim.claim)).values()),
        claim.verdict + (f" - {claim.reason}" if claim.reason else ""),
    )
