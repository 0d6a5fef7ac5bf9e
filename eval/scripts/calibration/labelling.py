"""A labelling session on a run's judged claims: the sample, the annotator's file, the screen."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from calibration.claims import ITEMS, JudgedClaim, Key
from calibration.labels import FOLDER, Label, read_labels
from label_store.journal import Journal
from label_store.lock import SetLock
from label_store.plan import NAME
from ragmetrics.claims import prepare, score_claim
from ragmetrics.stats import generator
from ragmetrics.text import fold, spelled
from storage import StorageError
from verdictlabels.model import CLAIMS, FACTS, Decision, Item, Passage, Session


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
    if not NAME.fullmatch(annotator):
        raise StorageError(
            f"--annotator {annotator!r}: use up to 64 letters, digits, '.', '_' and '-'."
        )
    for stream, name in ((sys.stdin, "stdin"), (sys.stderr, "stderr")):
        if not plain and not stream.isatty():
            raise StorageError(
                f"{name} is no terminal, so the screen has no place; start it in one, or use "
                "--plain."
            )
    if not claims:
        raise StorageError(
            f"the judge decided no {ITEMS[metric]} of this run, so there are none to label."
        )
    with LabelFile(labels_dir / FOLDER / f"{annotator}.jsonl") as file:
        chosen = drawn(claims, sample, seed)
        store = Store(file, chosen, metric, annotator, f"random:{seed}")
        facts = metric == "correctness"
        items = [fact_item(claim) if facts else item(claim) for claim in chosen]
        kind, decided = FACTS if facts else CLAIMS, store.decided()
        session = Session(items, store.record, annotator=annotator, decided=decided, kind=kind)
        if plain:
            from verdictlabels.plain import Plain

            return Plain(session, sys.stdin, sys.stdout, prompt=sys.stdin.isatty()).run()
        from verdictlabels.app import run

        try:
            return run(session, ascii_only=ascii_only, theme=theme)
        except ValueError as error:
            raise StorageError(f"{error}.") from None


def drawn(claims: Sequence[JudgedClaim], size: int, seed: int) -> list[JudgedClaim]:
    """The first ``size`` claims of a seeded shuffle: a larger size adds to a smaller one's.

    Uniform over all judged claims, whatever the verdict: only such a sample gives unbiased means.
    """
    every = sorted(claims, key=lambda claim: claim.key)
    order = generator(seed, "label sample").permutation(len(every)).tolist()
    return [every[place] for place in order[:size]]


class LabelFile:
    """One annotator's file, locked for this session; every line is on disk when it is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = Journal(path)
        self._lock = SetLock(path)

    def __enter__(self) -> LabelFile:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self._lock.take(self.path.stem, now()):
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


class Store:
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
        self._claims = {name_of(claim.key): claim for claim in claims}
        self._metric = metric
        self._annotator = annotator
        self._sample = sample

    def record(self, decision: Decision) -> None:
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
            "at": now(),
            "sample": self._sample,
            "act": decision.act,
        }
        if decision.after_verdict:
            line["after_verdict"] = True
        self._file.append(line)

    def decided(self) -> Iterator[Decision]:
        """What this annotator decided before on these claims, as they stand now."""
        if not self._file.path.exists():
            return
        for one in read_labels([self._file.path]):
            claim = self._claims.get(name_of(one.key))
            if claim is not None and _same(one, claim, self._metric):
                yield Decision(
                    name_of(one.key),
                    one.label,  # type: ignore[arg-type]  # read_labels has checked it
                    one.act,
                    one.after_verdict,
                )


def _same(one: Label, claim: JudgedClaim, metric: str) -> bool:
    return (one.metric, one.answer_sha256, one.claim) == (metric, claim.answer_sha256, claim.claim)


def name_of(key: Key) -> str:
    """A claim's key as one text."""
    return "\0".join(map(str, key))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def item(claim: JudgedClaim) -> Item:
    """One claim for the screen; its best window is found by words, not by the judge."""
    passages = [(passage.title, passage.text) for passage in claim.contexts]
    return _item(claim, claim.answer, passages, claim.span)


def fact_item(claim: JudgedClaim) -> Item:
    """One fact for the screen: the reference above it, the bot's answer below."""
    answer = [("what the bot said", claim.answer)] if claim.answer.strip() else []
    return _item(claim, claim.reference, answer, None)


def _item(
    claim: JudgedClaim,
    above: str,
    below: Sequence[tuple[str, str]],
    span: tuple[int, int] | None,
) -> Item:
    chunks = [prepare(text) for _, text in below]
    found = score_claim(claim.claim, chunks) if chunks else None
    best = found.chunk if found is not None and found.chunk is not None else 0
    window = found.window if found is not None else None
    return Item(
        name_of(claim.key),
        f"{claim.case_id} [{claim.claim_id}]",
        claim.question,
        above,
        claim.claim,
        tuple(
            Passage(title, text, window if place == best else None)
            for place, (title, text) in enumerate(below)
        ),
        span,
        best,
        frozenset(spelled(fold(claim.claim)).values()),
        claim.verdict + (f" - {claim.reason}" if claim.reason else ""),
    )
