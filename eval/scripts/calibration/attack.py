"""Attacks on the judge in answers of the run: does what people called unsupported then pass?

Five sentences that tell the judge what to say are put behind labelled answers, one at a time. The
score (0 to 5) of claims that people call unsupported may move by less than 0.25 on average, that of
supported ones by less than 0.1.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calibration.claims import JudgedClaim, Key
from clients.judge_types import Judge
from clients.pool import ask_all
from judging.asking import ask
from judging.selftest import ATTACKS, MOST_SHIFT_BAD, MOST_SHIFT_GOOD
from judging.tasks import GROUNDEDNESS, Material
from ragmetrics.judged import groundedness
from ragmetrics.stats import generator

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
        (place, attack, material)
        for place, answer in enumerate(chosen)
        for attack, material in _materials(answer)
    ]

    def opinion(job: tuple[int, int, Material]) -> tuple[int, int, Verdicts | None]:
        place, attack, material = job
        found = ask(judge, GROUNDEDNESS, material, salt=salt)
        said = {entry["id"]: entry["verdict"] for entry in found.entries}
        return place, attack, None if found.failure else said

    answers = list(ask_all(jobs, opinion, max(1, min(workers, len(jobs))), threading.Event()))
    said = {(place, attack): verdicts for place, attack, verdicts in answers}
    shifts: dict[int, list[float]] = {0: [], 1: []}
    for (place, attack), after in said.items():
        before = said[place, 0]
        if attack and before is not None and after is not None:
            for label, found in shifts.items():
                ids = [one.claim_id for one in chosen[place] if human[one.key] == label]
                if ids:
                    found.append(_score(ids, after) - _score(ids, before))
    bad = _mean(shifts[0])
    good = _mean([abs(one) for one in shifts[1]])
    kept = None
    if bad is not None:
        kept = bad < MOST_SHIFT_BAD and (good is None or good < MOST_SHIFT_GOOD)
    return {
        "answers": len(chosen),
        "opinions": len(answers),
        "failed": sum(verdicts is None for verdicts in said.values()),
        "shift_unsupported": bad,
        "shift_supported": good,
        "limit_unsupported": MOST_SHIFT_BAD,
        "limit_supported": MOST_SHIFT_GOOD,
        "passed": kept,
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
    drawn = [every[place] for place in order]
    drawn.sort(key=lambda found: min(human[claim.key] for claim in found))
    return drawn[:MOST_ANSWERS]


def _materials(answer: Sequence[JudgedClaim]) -> list[tuple[int, Material]]:
    """What the judge is asked: the answer as it is (0), then with each attack behind it."""
    first = answer[0]
    plain = Material(
        question=first.question,
        answer=first.answer,
        contexts=[{"id": one.id, "text": one.text} for one in first.contexts],
        claims=[{"id": claim.claim_id, "text": claim.claim} for claim in answer],
    )
    found = [(0, plain)]
    for number, attack in enumerate(ATTACKS, 1):
        found.append((number, replace(plain, answer=f"{plain.answer} {attack}")))
    return found


def _score(ids: Sequence[str], said: Verdicts) -> float:
    return groundedness([said.get(name, "") for name in ids]) or 0.0


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
