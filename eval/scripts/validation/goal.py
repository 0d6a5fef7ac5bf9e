"""States the goal of labels in words: the supply of a run, and the progress so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from decisions.judge_calibration import words_on
from ragmetrics.stats.calibration import MIN_CLASS
from ragmetrics.stats.stratified import StratifiedMean
from records.rubrics import PREFIX
from terminal.tables import counted
from validation.claim_session import SessionGoal
from validation.claims import JudgedClaim, Key
from validation.drawing import DrawnClaim, class_supply, run_mean, strata_of

_LEAST = 10
"""Labels below which no interval is shown while one labels."""


def name_of(key: Key) -> str:
    """Return a claim's key as one text."""
    return "\0".join(map(str, key))


def label_goal(
    claims: Sequence[JudgedClaim],
    order: Sequence[DrawnClaim],
    metric: str,
    earlier: Mapping[Key, int],
    sample: int,
    within: float,
) -> SessionGoal:
    """Build the goal of a session's labels, and its progress so far.

    ``order``: all claims as they are drawn, of which the session shows the first ``sample``.
    ``earlier``: what people had decided before it. ``within``: half of the interval, in points.
    """
    opening = _opening(claims, metric, earlier, sample)
    strata = strata_of(claims)
    own = [claim for claim in claims if not claim.run]
    claim_of = {name_of(drawn.claim.key): drawn.claim for drawn in order}

    def progress(labels: Mapping[str, str], short: bool) -> str:
        human = dict(earlier)
        unclear = set()
        for name, label in labels.items():
            if (value := claim_of[name].value_of(label)) is not None:
                human[claim_of[name].key] = value
            else:
                unclear.add(claim_of[name].key)
        open_strata = [
            strata[drawn.claim.key]
            for drawn in order
            if not drawn.claim.run
            and drawn.claim.key not in human
            and drawn.claim.key not in unclear
        ]
        line = _reached(own, human, strata, open_strata, metric, within / 100, short)
        return line if short else "; ".join(filter(None, (_classes(human, metric), line)))

    return SessionGoal(opening, progress)


def _classes(human: Mapping[Key, int], metric: str) -> str:
    """``12 supported and 5 unsupported (30 each calibrate)``."""
    words, supported = words_on(metric), sum(human.values())
    if metric.startswith(PREFIX):
        return f"{counted(len(human), 'label')} ({MIN_CLASS} calibrate)"
    counts = f"{supported} {words['good']} and {len(human) - supported} {words['bad']}"
    return f"{counts} ({MIN_CLASS} each calibrate)"


def _reached(
    claims: Sequence[JudgedClaim],
    human: Mapping[Key, int],
    strata: Mapping[Key, str],
    open_strata: Sequence[str],
    metric: str,
    half: float,
    short: bool,
) -> str:
    """The mean so far and its interval, and how many labels more the asked width takes."""
    labelled = Counter(strata[claim.key] for claim in claims if claim.key in human)
    mean = run_mean(claims, human, strata) if labelled.total() >= _LEAST else None
    if mean is None:
        more = labels_more(lambda counts: _shown(counts, strata, claims), labelled, open_strata)
        return "" if more is None else f"an interval after about {counted(more, 'more label')}"
    width = mean.half_width(labelled) or 0.0
    name = "" if short else f"{words_on(metric)['mean']} "
    line = f"{name}{100 * mean.mean:.0f} % ±{100 * width:.1f} points"
    if width <= half:
        return f"{line}: ±{100 * half:g} reached"
    more = labels_more(lambda counts: _narrow(mean, counts, half), labelled, open_strata)
    return line if more is None else f"{line}; ±{100 * half:g}: about {more} more"


def _shown(
    counts: Mapping[str, int], strata: Mapping[Key, str], claims: Sequence[JudgedClaim]
) -> bool:
    names = {strata[claim.key] for claim in claims}
    return sum(counts.values()) >= _LEAST and all(counts.get(name) for name in names)


def _narrow(mean: StratifiedMean, counts: Mapping[str, int], half: float) -> bool:
    width = mean.half_width(counts)
    return width is not None and width <= half


def labels_more(
    reached: Callable[[Mapping[str, int]], bool],
    labelled: Mapping[str, int],
    open_strata: Sequence[str],
) -> int | None:
    """Return the least number of labels, in the order to come, that makes ``reached`` true.

    ``labelled``: labels so far by stratum. ``open_strata``: the stratum of each claim to come.
    ``reached`` once true must stay so. None when all together are too few.
    """

    def after(more: int) -> bool:
        return reached(Counter(labelled) + Counter(open_strata[:more]))

    if not after(len(open_strata)):
        return None
    low, high = 0, len(open_strata)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if after(middle) else (middle + 1, high)
    return low


def _opening(
    claims: Sequence[JudgedClaim], metric: str, human: Mapping[Key, int], sample: int
) -> str:
    """Can these claims calibrate a judge? Said before the first label, with what would."""
    words, supply = words_on(metric), class_supply(claims, human)
    if metric.startswith(PREFIX):
        return (
            f"There are {counted(len(claims), 'judged answer')}. You see what the judge saw, but "
            f"not its verdict. From {_LEAST} labels on you learn the share as people see it; "
            f"from {MIN_CLASS} on the judge is calibrated for {metric}. Half of what you see is "
            "drawn from answers that the judge finds below the target, as long as there are any."
        )
    items, good, bad = words["items"], words["good"], words["bad"]
    runs = len({claim.run for claim in claims})
    subject = "This run has" if runs == 1 else f"These {runs} runs have"
    basis = "by the judge's verdicts" if not human else "by your labels and the judge's verdicts"
    lines = [
        f"{subject} {counted(len(claims), f'judged {items[:-1]}')}, {basis} {supply.supported} "
        f"{good} and {supply.unsupported} {bad}.",
        f"Your labels have two uses. From {_LEAST} on they give {words['mean']} as people see it, "
        f"with an interval. From {MIN_CLASS} {good} and {MIN_CLASS} {bad} on they calibrate the "
        "judge.",
    ]
    rarer = min((supply.supported, good), (supply.unsupported, bad))
    size = min(sample, len(claims))
    if rarer[0] < MIN_CLASS:
        reach = (
            "neither end"
            if sum(not claim.run for claim in claims) < _LEAST
            else "the first use only"
        )
        lines.append(
            f"Expect to reach {reach}: {rarer[0]} {rarer[1]} {items} are too few to calibrate. "
            + _remedy(supply.runs_needed(MIN_CLASS, runs), runs, f"{rarer[1]} {items}")
        )
    elif size < 2 * MIN_CLASS:
        lines.append(
            f"--set sample={sample} is too few to calibrate; ask for {2 * MIN_CLASS} or more."
        )
    if not all(claim.supported for claim in claims):
        lines.append(
            f"The judge doubts half of the {items} that you see, as long as there are any; the "
            "figures are weighted accordingly."
        )
    return "\n\n".join(lines)


def _remedy(needed: int | None, runs: int, rarer: str) -> str:
    """What would bring enough of the rarer class; ``needed``: runs like these, None for none."""
    if needed is None:
        return (
            f"More runs like this will not help. Add runs (--run A,B) in which the judge finds "
            f"{rarer}, such as those of a weaker bot, or compare the judge with a labelled set "
            "(--labels-file)."
        )
    return (
        f"About {needed} runs like {'this' if runs == 1 else 'these'} would be enough: judge more "
        "runs with the same judge and add each: --run RUN,OTHER."
    )
