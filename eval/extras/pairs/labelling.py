"""Shows pairs of answers to people, blind, and measures how far the judge agrees.

Left and right are drawn by a hash of annotator, case and answers, so neither the run's name nor a
habit of the eye tells which answer is whose; the label names the answers by their hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from extras.pairs.deciding import bias_line, bias_of, quote_of
from extras.pairs.record import PAIR, PairFile, PairKey, PairOpinion, people_on, read_pairs
from ragmetrics.stats.agreement import clustered_interval, weighted_kappa
from ragmetrics.stats.means import generator
from records.cases import TestCase
from records.claim_labels import FOLDER, PAIR_LABELS, ClaimDraw, ClaimLabel, LabelFile
from records.errors import StorageError
from records.labels import read_cases
from records.rubrics import of_prompt
from records.verdicts import identity_of
from terminal.page import Block, Page, Prose, Quoted, between, number, percent, plain_table
from terminal.tables import counted, plain
from validation.claim_session import ClaimContext, ClaimItem, ClaimSession, LabelKind
from validation.claims import JudgedClaim
from validation.drawing import DrawnClaim
from validation.goal import name_of
from validation.labels import DecisionStore, check_seat, run_session

_GUIDE = """
How to label, so that everyone labels alike

1  left    The left answer is better for the person who asked.
2  right   The right answer is better.
0  equal   Neither is better, or the difference would not matter.
3          You cannot tell: you lack what it takes to judge.

An answer that says plainly that it cannot answer is better than one that is
wrong, and worse than one that is right. Length is no merit. Which run an
answer is from is hidden: left and right are drawn for each case.

"""

SCALE = (-1, 0, 1)
WORDS = {1: "new better", 0: "undecided", -1: "base better"}


@dataclass(frozen=True)
class JudgedPairs:
    """The pairs that a judge was asked about, by which question, and the cases by id."""

    file: PairFile
    cases: Mapping[str, TestCase]
    ask: str = "Which answer is better?"

    def opinions(self) -> Iterator[tuple[PairKey, PairOpinion]]:
        """The first opinion on each pair that was asked."""
        for opinion in self.file.verdicts:
            if opinion.orders and not opinion.opinion:
                yield (opinion.case_id, opinion.repeat), opinion


def read_judged_pairs(run: Path, base: Path, metric: str, eval_set: Path) -> JudgedPairs:
    """The judged pairs of a run and its base. Raises StorageError where there are none."""
    file = next((file for file in read_pairs(run, base) if file.metric == metric), None)
    if file is None:
        raise StorageError(
            f"{run}: has no {metric} against {base.name}; judge them with judge_pairs.py --run "
            f"{run.name} --base {base.name}."
        )
    cases = {case.id: case for case in read_cases(eval_set)}
    rubric = of_prompt(file.prompt)
    return JudgedPairs(file, cases, rubric.ask if rubric else JudgedPairs.ask)


def label_pairs(
    judged: JudgedPairs,
    labels_dir: Path,
    annotator: str,
    *,
    sample: int,
    seed: int,
    plain: bool = False,
    ascii_only: bool = False,
    theme: str | None = None,
) -> int:
    """Open the screen on pairs drawn at random, or read lines. Returns the exit code.

    Raises StorageError: no terminal, a bad name, nothing to label, or another session at work."""
    check_seat(annotator, plain)
    said = dict(judged.opinions())
    if not said:
        raise StorageError("the judge was asked about no pair of these runs.")
    keys = sorted(said, key=lambda key: _hash(seed, *key))[:sample]
    claims = {key: _claim(judged, key, annotator) for key in keys}
    draw = ClaimDraw(f"random:{seed}")
    with LabelFile(labels_dir / FOLDER / f"{annotator}.jsonl") as file:
        drawn = [DrawnClaim(claim, draw) for claim in claims.values()]
        store = DecisionStore(file, drawn, judged.file.metric, annotator)
        session = ClaimSession(
            [_item(judged, key, said[key], claim) for key, claim in claims.items()],
            store.record,
            annotator=annotator,
            decided=store.decided(),
            kind=PAIR_KIND,
        )
        return run_session(session, plain=plain, ascii_only=ascii_only, theme=theme)


def _claim(judged: JudgedPairs, key: PairKey, annotator: str) -> JudgedClaim:
    """A pair as a claim: the left answer is its answer, and the hash of the right one its text."""
    _, *texts = judged.file.texts[key]
    sides = judged.file.answers[key]
    turned = is_turned(annotator, key, sides)
    return JudgedClaim(*key, PAIR, sides[not turned], "", answer=texts[turned])


PAIR_KIND = LabelKind(
    "pair",
    PAIR_LABELS,
    "left answer",
    "text",
    "",
    letters=False,
    title="what is asked",
    guide=_GUIDE,
)


def is_turned(annotator: str, key: PairKey, answers: tuple[str, str]) -> bool:
    """Return whether the base's answer is on the left, by a hash so that it never changes."""
    return int(_hash(annotator, *key, *answers), 16) % 2 == 1


def _hash(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()


def _item(judged: JudgedPairs, key: PairKey, opinion: PairOpinion, claim: JudgedClaim) -> ClaimItem:
    question, *texts = judged.file.texts[key]
    turned = claim.claim == judged.file.answers[key][0]
    case = judged.cases.get(key[0])
    reference = case.reference_text() if case else ""
    outcome = -opinion.outcome if turned else opinion.outcome
    said = {1: "left", -1: "right", 0: "undecided"}[outcome]
    below = [ClaimContext("right answer", texts[not turned])]
    below += [ClaimContext("reference answer", reference)] if reference else []
    return ClaimItem(
        name_of(claim.key),
        key[0] + (f" repeat {key[1]}" if key[1] else ""),
        question or (case.question if case else ""),
        claim.answer,
        judged.ask,
        tuple(below),
        verdict=f"{said}: {quote_of(opinion)}",
    )


def agreement(
    judged: JudgedPairs, labels: Iterable[ClaimLabel], *, seed: int = 0
) -> dict[str, Any]:
    """Measure how far judge and people agree on pairs, as plain data.

    ``kappa``: linear weighted, of base better, undecided, new better; its interval by drawing whole
    cases. ``people`` and ``judge``: counts of each verdict. None for what is undefined.
    """
    people = people_on(labels, judged.file)
    rows = [
        (key[0], people[key], opinion.outcome)
        for key, opinion in judged.opinions()
        if key in people
    ]
    by_case: dict[str, list[tuple[int, int]]] = {}
    for case_id, human, verdict in rows:
        by_case.setdefault(case_id, []).append((human, verdict))

    def kappa(units: list[tuple[int, int]]) -> float | None:
        return weighted_kappa([a for a, _ in units], [b for _, b in units], SCALE, "linear")

    interval = clustered_interval(list(by_case.values()), kappa, generator(seed, "pairs"))
    both = [(human, verdict) for _, human, verdict in rows]
    return {
        "pairs": True,
        "metric": judged.file.metric,
        "judge": dict(judged.file.judge),
        "n": len(rows),
        "judged": len(list(judged.opinions())),
        "confusion": {
            WORDS[human]: {WORDS[verdict]: both.count((human, verdict)) for verdict in SCALE}
            for human in SCALE
        },
        "agreement": sum(human == verdict for human, verdict in both) / len(both) if both else None,
        "opposite": sum(human * verdict < 0 for human, verdict in both),
        "kappa": kappa(both) if both else None,
        "kappa_ci95": None if interval is None else list(interval),
        "length": asdict(bias := bias_of(judged.file, people)) | {"says": bias_line(bias)},
    }


def agreement_page(report: Mapping[str, Any]) -> Page:
    """The agreement as a page, the table first."""
    judge = plain(str(identity_of(report["judge"])))
    head = ("people \\ judge", *(WORDS[value] for value in SCALE))
    rows = [
        (word, *(str(counts[WORDS[value]]) for value in SCALE))
        for word, counts in report["confusion"].items()
    ]
    ends = between(report["kappa_ci95"])
    blocks: list[Block] = [
        Prose((f"{report['metric']}: ", Quoted(judge), " against people")),
        Prose(f"{report['n']} of {counted(report['judged'], 'judged pair')} are labelled."),
        plain_table(head, rows),
        Prose(
            f"They agree on {percent(report['agreement'])}, and contradict each other on "
            f"{counted(report['opposite'], 'pair')}; linear weighted kappa "
            f"{number(report['kappa'])} (95 % interval {ends})."
        ),
        Prose(report["length"]["says"]),
    ]
    return Page("", blocks)
