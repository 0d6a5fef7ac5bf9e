"""Verdicts of judge and rules beside the thumbs of users: how often they agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from decisions.case_rules import read_case_rules
from decisions.case_verdict import read_verdicts
from ragmetrics.stats.calibration import MIN_CLASS
from records.feedback import rating_of, thumb_of
from records.results import read_results, tells_feedback
from records.runs import results_file
from terminal.page import Block, Heading, Prose, between, number, plain_table
from terminal.tables import counted
from validation.claims import JudgedClaim
from validation.judge import Draws, LabelledPairs, agreement_figures, confusion_counts

WHY_NO_MEAN = (
    "No mean is corrected by thumbs: raters choose themselves which answers they rate, so rated "
    "answers are no sample of all."
)

_Answer = tuple[str, int]
_FIELDS = ("test_case_id", "repeat", "feedback")
_SHOWN = {"accuracy": "same verdict as users", "kappa": "Cohen's kappa"}


def thumbs_report(run: Path, claims: Sequence[JudgedClaim], draws: Draws) -> dict[str, Any] | None:
    """How the verdicts on whole answers agree with the thumbs of users; None without any thumb.

    ``judge``: it supports every claim, or finds every fact. ``cases``: the case verdict by the
    rules, of a scored run. Answers of one user, else of one document, are drawn together for the
    intervals.
    """
    thumbs, clusters, undecided = _thumbs(run)
    if not thumbs:
        return None
    by_answer: dict[_Answer, list[JudgedClaim]] = {}
    for claim in claims:
        if not claim.run:
            by_answer.setdefault((claim.case_id, claim.repeat), []).append(claim)
            clusters.setdefault((claim.case_id, claim.repeat), claim.source)
    judged = {answer: all(c.supported for c in own) for answer, own in by_answer.items()}
    cases = read_verdicts(run, read_case_rules())

    def passes(answer: _Answer) -> bool | None:
        fails = cases.fails(answer)
        return None if fails is None else not fails

    return {
        "rated": len(thumbs) + undecided,
        "good": sum(thumbs.values()),
        "bad": len(thumbs) - sum(thumbs.values()),
        "judge": _agreement(thumbs, judged.get, clusters, draws),
        "cases": _agreement(thumbs, passes, clusters, draws),
    }


def _thumbs(run: Path) -> tuple[dict[_Answer, bool], dict[_Answer, str], int]:
    """The thumb of each rated answer, the user where there is one, and how many ratings say
    neither."""
    thumbs: dict[_Answer, bool] = {}
    users: dict[_Answer, str] = {}
    undecided = 0
    path = results_file(run)
    for _, result in read_results(path, _FIELDS) if tells_feedback(path) else ():
        rating = rating_of(ratings := result.feedback or ())
        if rating is None:
            continue
        answer = (result.test_case_id, result.repeat)
        thumb = thumb_of(rating)
        undecided += thumb is None
        if thumb is not None:
            thumbs[answer] = thumb
        names = {one.user for one in ratings}
        if len(names) == 1 and (name := names.pop()):
            users[answer] = f"user {name}"
    return thumbs, users, undecided


def _agreement(
    thumbs: Mapping[_Answer, bool],
    verdict: Callable[[_Answer], bool | None],
    clusters: Mapping[_Answer, str],
    draws: Draws,
) -> dict[str, Any]:
    """Counts of thumbs by verdicts, and the figures where there are enough of both thumbs."""
    rows = [(answer, good, verdict(answer)) for answer, good in thumbs.items()]
    known = [(answer, good, passed) for answer, good, passed in rows if passed is not None]
    answers = [
        JudgedClaim(
            *answer,
            "answer",
            "",
            "supported" if passed else "not_supported",
            source=clusters.get(answer, answer[0]),
        )
        for answer, _, passed in known
    ]
    human = [int(good) for _, good, _ in known]
    pairs = LabelledPairs(answers, human, [1.0] * len(human))
    few = min(human.count(0), human.count(1)) < MIN_CLASS
    return {
        "n": len(human),
        "confusion": confusion_counts(pairs.table()),
        "figures": None if few else agreement_figures(pairs, draws),
    }


def thumbs_blocks(report: Mapping[str, Any] | None) -> Iterator[Block]:
    """The agreement with thumbs as tables, and why nothing is corrected by them."""
    if report is None:
        return
    rated = counted(report["rated"], "answer")
    yield Heading(f"Users rated {rated}: {report['good']} good, {report['bad']} bad.")
    names = {"judge": ("judge: passes all", "judge: not all"), "cases": ("case ok", "case fails")}
    for name, head in names.items():
        part = report[name]
        cells = part["confusion"]
        if not part["n"]:
            continue
        rows = [
            ("bad", str(cells["not_supported"]), str(cells["not_not"])),
            ("good", str(cells["supported_supported"]), str(cells["supported_not"])),
        ]
        yield plain_table(("users say", *head), rows)
        figures = part["figures"]
        if figures is None:
            yield Prose(f"Below {MIN_CLASS} good and {MIN_CLASS} bad thumbs there are no figures.")
            continue
        shown = [
            (text, number(figures[key]["value"]), between(figures[key]["ci95"]))
            for key, text in _SHOWN.items()
        ]
        yield plain_table(("figure", "value", "95 % interval"), shown)
    yield Prose(WHY_NO_MEAN)
