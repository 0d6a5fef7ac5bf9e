"""Joins the labels of several annotators with judged claims, and takes new ones."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ragmetrics.claims import score_claim
from ragmetrics.stats.agreement import krippendorff_alpha
from ragmetrics.text.words import fold, spelled
from ragmetrics.windows import prepare
from records.claim_labels import (
    CANNOT_TELL,
    FOLDER,
    ClaimDraw,
    ClaimLabel,
    LabelFile,
    label_files,
    read_labels,
)
from records.errors import StorageError
from records.journal import ANNOTATOR_NAME
from validation.claim_session import (
    CLAIMS,
    FACTS,
    ClaimContext,
    ClaimItem,
    ClaimSession,
    LabelDecision,
)
from validation.claims import JudgedClaim, Key, items_of
from validation.drawing import DrawnClaim, drawn_claims
from validation.goal import label_goal, name_of
from validation.rubrics import label_kind, rubric_item

COUNTS = ("unknown", "stale", "cannot_tell", "disputed", "after_verdict")
"""Kinds of labels that are counted apart when labels are joined with a run's claims."""


@dataclass(frozen=True, slots=True)
class Joined:
    """People's verdict on each claim that has one, and the labels left out with the reasons."""

    human: dict[Key, int]
    counts: dict[str, int]
    annotators: dict[str, int]
    alpha: float | None
    """Krippendorff's alpha of the annotators on claims that two or more decided."""
    random_sample: bool
    """Whether all labels come from random draws of the judged claims, equally or by strata."""
    by_verdict: dict[str, dict[str, int]] = field(default_factory=dict)
    """Labels of each word, by the judge's verdict of the same claim or fact."""
    draws: dict[Key, ClaimDraw] = field(default_factory=dict)
    """How each claim that counts was drawn."""
    words: dict[Key, str] = field(default_factory=dict)
    """For a rubric, the label of each answer that counts."""


def join(labels: Iterable[ClaimLabel], claims: Iterable[JudgedClaim], metric: str) -> Joined:
    """People's verdict of the judged claims.

    Left out and counted: labels of claims that the run does not hold (``unknown``), of an answer or
    claim that has changed since (``stale``), claims that no annotator could decide
    (``cannot_tell``), and ties between annotators (``disputed``). A label of other words, from
    another run, does not replace one that fits."""
    claims_of: dict[Key, list[JudgedClaim]] = {}
    for claim in claims:
        claims_of.setdefault(claim.labelled_as, []).append(claim)
    fits: dict[tuple[Key, str], tuple[JudgedClaim, ClaimLabel]] = {}
    last: dict[str, dict[tuple[Key, str], ClaimLabel]] = {"stale": {}, "unknown": {}}
    for label in labels:
        if label.metric != metric:
            continue
        candidates = claims_of.get(label.key, [])
        claim_of_label = next((claim for claim in candidates if _fits(label, claim)), None)
        if claim_of_label is not None:
            fits[claim_of_label.key, label.annotator] = (claim_of_label, label)
        else:
            last["stale" if candidates else "unknown"][label.key, label.annotator] = label
    fitting = {(label.key, label.annotator) for _, label in fits.values()}
    counts: Counter[str] = Counter()
    for name, others in last.items():
        counts[name] = sum(
            label.label is not None for of, label in others.items() if of not in fitting
        )
    counting = [(claim, label) for claim, label in fits.values() if label.label is not None]
    by_claim: dict[Key, list[ClaimLabel]] = {}
    for claim, label in counting:
        by_claim.setdefault(claim.key, []).append(label)
    human: dict[Key, int] = {}
    words: dict[Key, str] = {}
    claim_by_key = {claim.key: claim for claim, _ in counting}
    for key, labels_of_claim in by_claim.items():
        claim = claim_by_key[key]
        said = [one for x in labels_of_claim if claim.value_of(one := x.label) is not None]
        votes = Counter(said if claim.rubric else [claim.value_of(one) for one in said])
        first = votes.most_common(2)
        if not votes:
            counts["cannot_tell"] += 1
        elif len(first) > 1 and first[0][1] == first[1][1]:
            counts["disputed"] += 1
        elif claim.rubric:
            words[key] = str(first[0][0])
            human[key] = claim.value_of(words[key]) or 0
        else:
            human[key] = int(first[0][0] or 0)
    used = [label for _, label in counting]
    counts["after_verdict"] = sum(label.after_verdict for label in used)
    votes_of: list[list[float | str | None]] = [
        [_rank(claim_by_key[key], label.label) for label in labels_of_claim]
        for key, labels_of_claim in by_claim.items()
    ]
    of_rubric = any(claim.rubric for claim in claim_by_key.values())
    return Joined(
        human,
        {name: counts[name] for name in COUNTS},
        dict(sorted(Counter(label.annotator for label in used).items())),
        krippendorff_alpha(votes_of, "ordinal" if of_rubric else "nominal"),
        bool(used) and all(label.draw.sample.startswith(_DRAWN) for label in used),
        _by_verdict(counting),
        {key: _draw(by_claim[key]) for key in human},
        words,
    )


def _rank(claim: JudgedClaim, label: str | None) -> int | None:
    """What a label counts when annotators are compared: its rank on a rubric's scale."""
    return claim.rubric.rank(label or "") if claim.rubric else claim.value_of(label)


_DRAWN = ("random:", "strata:")
"""How the names of drawings begin; how labels without one were chosen is unknown."""


def _draw(labels_of_claim: Sequence[ClaimLabel]) -> ClaimDraw:
    """The drawing that a claim came from: by strata where any annotator's was."""
    draws = [label.draw for label in labels_of_claim]
    return next((draw for draw in draws if draw.stratum), draws[0])


def _by_verdict(counting: Iterable[tuple[JudgedClaim, ClaimLabel]]) -> dict[str, dict[str, int]]:
    table: dict[str, Counter[str]] = {}
    for claim, label in counting:
        table.setdefault(label.label or "", Counter())[claim.verdict] += 1
    return {word: dict(sorted(counts.items())) for word, counts in sorted(table.items())}


def _fits(label: ClaimLabel, claim: JudgedClaim) -> bool:
    """Does a label fit a claim of its key? Fields that the file leaves out are not compared."""
    same_answer = label.answer_sha256 in ("", claim.answer_sha256)
    on_scale = claim.rubric is None or label.label in (None, CANNOT_TELL, *claim.rubric.labels)
    return same_answer and on_scale and label.claim in ("", claim.claim)


def label(
    claims: Sequence[JudgedClaim],
    metric: str,
    labels_dir: Path,
    annotator: str,
    *,
    sample: int,
    seed: int,
    within: float = 5.0,
    ascii_only: bool = False,
    theme: str | None = None,
    plain: bool = False,
) -> int:
    """Open the screen on claims drawn by strata, or read lines. Returns the exit code.

    ``within``: half of the interval, in points, at which the screen says that it is reached.
    Raises StorageError: no terminal, a bad name, nothing to label, or another session at work.
    """
    check_seat(annotator, plain)
    if not claims:
        raise StorageError(
            f"the judge decided no {items_of(metric)} of this run, so there are none to label."
        )
    with LabelFile(labels_dir / FOLDER / f"{annotator}.jsonl") as file:
        order = drawn_claims(claims, len(claims), seed)
        store = DecisionStore(file, order[:sample], metric, annotator)
        rubric, facts = claims[0].rubric, metric == "correctness"
        item_of = _rubric_item if rubric else _fact_item if facts else _labelled_item
        session = ClaimSession(
            [item_of(drawn.claim) for drawn in order[:sample]],
            store.record,
            annotator=annotator,
            decided=store.decided(),
            kind=label_kind(rubric) if rubric else FACTS if facts else CLAIMS,
            goal=label_goal(
                claims, order, metric, _of_all(labels_dir, claims, metric), sample, within
            ),
        )
        return run_session(session, plain=plain, ascii_only=ascii_only, theme=theme)


def check_seat(annotator: str, plain: bool) -> None:
    """Raise StorageError for a bad name, and without a terminal for the screen."""
    if not ANNOTATOR_NAME.fullmatch(annotator):
        raise StorageError(
            f"--annotator {annotator!r}: use up to 64 letters, digits, '.', '_' and '-'."
        )
    for stream, name in ((sys.stdin, "stdin"), (sys.stderr, "stderr")):
        if not plain and not stream.isatty():
            raise StorageError(
                f"{name} is not a terminal, so the full-screen view cannot start. Use --plain."
            )


def run_session(
    session: ClaimSession, *, plain: bool, ascii_only: bool = False, theme: str | None = None
) -> int:
    """Label on the screen, or by lines. Returns the exit code."""
    if plain:
        from validation.claim_session import ClaimLines

        return ClaimLines(session, sys.stdin, sys.stdout, prompt=sys.stdin.isatty()).run()
    from validation.claim_screen import run

    try:
        return run(session, ascii_only=ascii_only, theme=theme)
    except ValueError as error:
        raise StorageError(f"{error}.") from None


def _of_all(labels_dir: Path, claims: Sequence[JudgedClaim], metric: str) -> dict[Key, int]:
    """What all annotators have decided so far."""
    return join(read_labels(label_files(labels_dir, [])), claims, metric).human


class DecisionStore:
    """Turns decisions into lines of the file, and the file's lines back into decisions."""

    def __init__(
        self,
        file: LabelFile,
        drawn: Sequence[DrawnClaim],
        metric: str,
        annotator: str,
    ) -> None:
        self._file = file
        self._drawn = {name_of(item.claim.key): item for item in drawn}
        self._metric = metric
        self._annotator = annotator

    def record(self, decision: LabelDecision) -> None:
        """Append one decision. Raises OSError."""
        drawn = self._drawn[decision.key]
        label = ClaimLabel(
            drawn.claim.labelled_as,
            self._metric,
            drawn.claim.claim,
            drawn.claim.answer_sha256,
            decision.label,
            self._annotator,
            after_verdict=decision.after_verdict,
            act=decision.act,
            draw=drawn.draw,
            note=decision.note,
            flag=decision.flag,
        )
        self._file.append(label)

    def decided(self) -> Iterator[LabelDecision]:
        """Yield this annotator's earlier decisions on these claims in their present form."""
        if not self._file.path.exists():
            return
        by_texts = {
            (self._metric, item.claim.labelled_as, item.claim.answer_sha256, item.claim.claim): name
            for name, item in self._drawn.items()
        }
        for label in read_labels([self._file.path]):
            name = by_texts.get((label.metric, label.key, label.answer_sha256, label.claim))
            if name is not None and _fits(label, self._drawn[name].claim):
                yield LabelDecision(
                    name,
                    label.label,
                    label.act,
                    label.after_verdict,
                    label.note,
                    label.flag,
                )


def _labelled_item(claim: JudgedClaim) -> ClaimItem:
    """One claim for the screen; its best window is found by words, not by the judge."""
    passages = [(passage.title, passage.text) for passage in claim.contexts]
    return _item(claim, claim.answer, passages, claim.span)


def _rubric_item(claim: JudgedClaim) -> ClaimItem:
    """One answer for the screen."""
    return rubric_item(name_of(claim.key), claim)


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
        name_of(claim.key),
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
