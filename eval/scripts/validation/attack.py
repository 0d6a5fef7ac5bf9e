"""Attacks on a judge: the mean score of labelled answers without and with them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from clients.http import ask_all
from judging.kinds import Material
from judging.opinion import ask
from judging.selftest import ATTACKS, MOST_SHIFT_BAD, MOST_SHIFT_GOOD
from judging.types import Judge
from ragmetrics.judged import groundedness
from ragmetrics.stats.means import generator
from records.verdicts import KINDS
from validation.claims import JudgedClaim, Key

MOST_ANSWERS = 20
"""Answers that are attacked, unless fewer are labelled; five calls each, and one without attack."""

Verdicts = Mapping[str, str]


def attacked(
    claims: Sequence[JudgedClaim],
    human: Mapping[Key, int],
    judge: Judge,
    salt: bytes,
    seed: int,
    workers: int,
) -> dict[str, Any]:
    """Both shifts of the mean score, and whether they keep their limits (None: not measured).

    Answers with an unsupported claim are drawn first. ``failed`` counts opinions that could not be
    had; they count in nothing else.
    """
    chosen = _chosen(claims, human, seed)
    jobs = [
        (index, attack, material)
        for index, answer in enumerate(chosen)
        for attack, material in _materials(answer)
    ]

    async def opinion(job: tuple[int, int, Material]) -> tuple[int, int, Verdicts | None]:
        index, attack, material = job
        outcome = await ask(judge, KINDS["groundedness"], material, salt=salt)
        verdicts = {entry["id"]: entry["verdict"] for entry in outcome.entries}
        return index, attack, None if outcome.failure else verdicts

    answers = list(ask_all(jobs, opinion, max(1, min(workers, len(jobs))), threading.Event()))
    verdicts_of = {(index, attack): verdicts for index, attack, verdicts in answers}
    shifts: dict[int, list[float]] = {0: [], 1: []}
    for (index, attack), after in verdicts_of.items():
        before = verdicts_of[index, 0]
        if attack and before is not None and after is not None:
            for label, values in shifts.items():
                ids = [claim.claim_id for claim in chosen[index] if human[claim.key] == label]
                if ids:
                    values.append(_score(ids, after) - _score(ids, before))
    bad = _mean(shifts[0])
    good = _mean([abs(shift) for shift in shifts[1]])
    passed = None
    if bad is not None:
        passed = bad < MOST_SHIFT_BAD and (good is None or good < MOST_SHIFT_GOOD)
    return {
        "answers": len(chosen),
        "opinions": len(answers),
        "failed": sum(verdicts is None for verdicts in verdicts_of.values()),
        "shift_unsupported": bad,
        "shift_supported": good,
        "limit_unsupported": MOST_SHIFT_BAD,
        "limit_supported": MOST_SHIFT_GOOD,
        "passed": passed,
    }


def _chosen(
    claims: Sequence[JudgedClaim], human: Mapping[Key, int], seed: int
) -> list[list[JudgedClaim]]:
    """Labelled claims by answer: at most so many answers, those with an unsupported one first."""
    answers: dict[tuple[str, int], list[JudgedClaim]] = {}
    for claim in claims:
        if claim.key in human:
            answers.setdefault((claim.case_id, claim.repeat), []).append(claim)
    every = [answers[name] for name in sorted(answers)]
    order = generator(seed, "attack").permutation(len(every)).tolist()
    drawn = [every[index] for index in order]
    drawn.sort(key=lambda claims_of_answer: min(human[claim.key] for claim in claims_of_answer))
    return drawn[:MOST_ANSWERS]


def _materials(answer: Sequence[JudgedClaim]) -> list[tuple[int, Material]]:
    """What the judge is asked: the answer as it is (0), then with each attack behind it."""
    first = answer[0]
    plain = Material(
        question=first.question,
        answer=first.answer,
        contexts=[{"id": context.id, "text": context.text} for context in first.contexts],
        claims=[{"id": claim.claim_id, "text": claim.claim} for claim in answer],
    )
    materials = [(0, plain)]
    for number, attack in enumerate(ATTACKS, 1):
        materials.append((number, replace(plain, answer=f"{plain.answer} {attack}")))
    return materials


def _score(ids: Sequence[str], verdicts: Verdicts) -> float:
    return groundedness([verdicts.get(name, "") for name in ids]) or 0.0


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
