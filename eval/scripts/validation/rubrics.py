"""Puts rubrics before people: their cases on the labelling screen, and agreement with the judge.

A case is one answer. People give it a label of the rubric's scale, which the judge's verdict is
compared with: whether both reach the target, and how far they are apart on the scale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragmetrics.stats import calibration
from ragmetrics.stats.agreement import clustered_interval, weighted_kappa
from ragmetrics.stats.means import generator
from records.claim_labels import CANNOT_TELL
from records.rubrics import Rubric
from terminal.page import Block, Prose, between, number, plain_table
from terminal.tables import plain
from validation.claim_session import ClaimContext, ClaimItem, LabelKind
from validation.claims import JudgedClaim, Key

SCALE_TITLE = "what each label means"


def label_kind(rubric: Rubric) -> LabelKind:
    """Return the screen's labels for a rubric: its scale by digit keys, from least to most. For yes
    and no, yes is first, as everywhere."""
    labels = tuple(reversed(rubric.labels)) if rubric.yes_no else rubric.labels
    title = "How to label, so that everyone labels alike"
    return LabelKind(
        "answer",
        (*labels, CANNOT_TELL),
        "answer",
        "text",
        "",
        letters=rubric.yes_no,
        title="rubric",
        guide=f"\n{title}\n\n{rubric.ask}\n\n{_scale(rubric)}\n",
    )


def _scale(rubric: Rubric) -> str:
    labels = tuple(reversed(rubric.scale)) if rubric.yes_no else rubric.scale
    lines = [f"{number}  {label}: {text}" for number, (label, text) in enumerate(labels, 1)]
    return "\n\n".join([*lines, f"{len(lines) + 1}  cannot tell: you lack information to judge."])


def rubric_item(name: str, claim: JudgedClaim) -> ClaimItem:
    """Return an answer for the screen: above it the answer, below the scale and all texts read."""
    rubric = claim.rubric
    assert rubric is not None
    texts = [(SCALE_TITLE, _scale(rubric))]
    texts += [("earlier turns", claim.earlier)] if claim.earlier else []
    texts += [(passage.title, passage.text) for passage in claim.contexts]
    texts += [("reference answer", claim.reference)] if "reference" in rubric.reads else []
    texts += [("tool calls", claim.tools)] if claim.tools else []
    return ClaimItem(
        name,
        claim.case_id + (f" repeat {claim.repeat}" if claim.repeat else ""),
        claim.question if "question" in rubric.reads else "(the judge does not see the question)",
        claim.answer,
        claim.claim,
        tuple(ClaimContext(title, text) for title, text in texts),
        verdict=claim.verdict + (f" - {claim.reason}" if claim.reason else ""),
    )


def scale_report(
    claims: Sequence[JudgedClaim],
    words: Mapping[Key, str],
    weights: Mapping[Key, float],
    seed: int,
    resamples: int,
) -> dict[str, Any]:
    """Compare judge and people on a rubric's scale; None for undefined figures.

    ``words``: people's label of each answer that has one; ``weights``: how many labels each stands
    for. ``kappa``: linear weighted (of two labels Cohen's), over answers with a verdict on the
    scale, its interval over sources. ``confusion``: people's label first. ``mean_rank``: from 1 for
    the bad end, of the answers of this run that have a rank; ``ppi`` with the judge's errors out.
    """
    rubric = next(claim.rubric for claim in claims if claim.rubric is not None)
    labels = list(rubric.labels)
    table: dict[str, Counter[str]] = {}
    rows: dict[str, list[tuple[str, str, float]]] = {}
    for claim in claims:
        if (word := words.get(claim.key)) is None:
            continue
        table.setdefault(word, Counter())[claim.verdict] += 1
        if claim.verdict in labels:
            row = (word, claim.verdict, weights[claim.key])
            rows.setdefault(claim.source, []).append(row)

    def kappa(units: Sequence[tuple[str, str, float]]) -> float | None:
        people, judge, times = ([unit[part] for unit in units] for part in range(3))
        return weighted_kappa(people, judge, labels, "linear", times)  # type: ignore[arg-type]

    every = [row for of_source in rows.values() for row in of_source]
    units = list(rows.values()) if len(rows) > 1 else [[row] for row in every]
    interval = clustered_interval(units, kappa, generator(seed, "scale kappa"), resamples)
    return {
        "labels": labels,
        "target": rubric.target,
        "kappa": {"value": kappa(every), "ci95": None if interval is None else list(interval)},
        "confusion": {word: dict(table[word]) for word in labels if word in table},
        "mean_rank": _mean_rank(rubric, [c for c in claims if not c.run], words, weights),
    }


def _mean_rank(
    rubric: Rubric,
    claims: Sequence[JudgedClaim],
    words: Mapping[Key, str],
    weights: Mapping[Key, float],
) -> dict[str, Any]:
    ranked = [(claim, rank) for claim in claims if (rank := rubric.goodness(claim.verdict))]
    reach = len(rubric.labels) - 1
    judged = [(rank - 1) / reach for _, rank in ranked]  # within 0 and 1, as means are corrected
    total = sum(claim.weight for claim, _ in ranked)
    mean = sum(claim.weight * rank for claim, rank in ranked) / total if total else None
    said = [rubric.goodness(words.get(claim.key, "")) for claim, _ in ranked]
    labels = [None if rank is None else (rank - 1) / reach for rank in said]
    known = sum(label is not None for label in labels)
    corrected = None
    if calibration.MIN_CLASS <= known < len(labels):
        corrected = calibration.prediction_powered(
            judged,
            labels,
            [claim.source for claim, _ in ranked],
            weights=[claim.weight for claim, _ in ranked],
            draws=[weights.get(claim.key, 0.0) for claim, _ in ranked],
        )
    if corrected is None:
        return {"judge": mean, "ppi": None}
    found = (corrected.mean, corrected.low, corrected.high)
    value, *ends = (1 + reach * share for share in found)
    return {"judge": mean, "ppi": {"mean": value, "ci95": ends}}


def scale_blocks(scale: Mapping[str, Any]) -> Iterator[Block]:
    """The whole confusion, people's labels by the judge's verdicts, and the mean rank."""
    verdicts = list(scale["labels"])
    given = [word for row in scale["confusion"].values() for word in row]
    verdicts += sorted(set(given) - set(verdicts))
    rows = [
        (plain(word, 30), *(str(counts.get(verdict, 0)) for verdict in verdicts))
        for word, counts in scale["confusion"].items()
    ]
    head = ("people say", *(f"judge: {plain(v.replace('_', ' '), 20)}" for v in verdicts))
    yield from (Prose(""), plain_table(head, rows))
    rank = scale["mean_rank"]
    if len(scale["labels"]) > 2 and rank["judge"] is not None:
        said = f"Mean rank, from 1 for the bad end: {number(rank['judge'])} as judged"
        if rank["ppi"] is not None:
            said += f", {number(rank['ppi']['mean'])} ({between(rank['ppi']['ci95'])}) corrected"
        yield Prose(f"{said}.")
