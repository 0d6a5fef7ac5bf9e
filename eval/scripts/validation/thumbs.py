"""Compares verdicts of judge and rules with the thumbs of users: how often they agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from decisions.case_rules import read_case_rules
from decisions.case_verdict import read_verdicts
from ragmetrics.stats.calibration import MIN_CLASS
from records.feedback import rating_of, thumb_of
from records.results import tells_feedback
from records.run import Run
from records.runs import results_file
from terminal.page import Block, Heading, Prose, between, number, plain_table
from validation.claims import JudgedClaim
from validation.judge import Draws, LabelledPairs, agreement_figures, confusion_counts

WHY_NO_MEAN = (
    "Thumbs correct no mean: users choose which answers they rate, so rated answers are not a "
    "sample of all answers."
)

_Answer = tuple[str, int]
_CELLS = ("supported_supported", "supported_not", "not_supported", "not_not")


def thumbs_report(run: Path, claims: Sequence[JudgedClaim], draws: Draws) -> dict[str, Any] | None:
    """Report how verdicts on whole answers agree with users' thumbs; None without any thumb.

    ``judge`` passes an answer whose every claim it supports, or every fact of which it finds;
    ``cases``: the case verdict by the rules, of a scored run. Answers of one user, else of one
    document, are drawn together for the intervals.
    """
    thumbs, clusters = _thumbs(run)
    if not thumbs:
        return None
    judged: dict[_Answer, bool] = {}
    for claim in claims:
        if not claim.run:
            answer = (claim.case_id, claim.repeat)
            judged[answer] = judged.get(answer, True) and claim.supported
            clusters.setdefault(answer, claim.source)
    fails = read_verdicts(run, read_case_rules()).fails
    cases = {answer: not fails(answer) for answer in thumbs if fails(answer) is not None}
    good = sum(thumbs.values())
    return {
        "good": good,
        "bad": len(thumbs) - good,
        "judge": _agreement(thumbs, judged, clusters, draws),
        "cases": _agreement(thumbs, cases, clusters, draws),
    }


def _thumbs(run: Path) -> tuple[dict[_Answer, bool], dict[_Answer, str]]:
    """The thumb of each answer that is rated good or bad, and its user where one alone rated it."""
    thumbs: dict[_Answer, bool] = {}
    users: dict[_Answer, str] = {}
    path, fields = results_file(run), ("test_case_id", "repeat", "feedback")
    for result in Run(run).iter_results(*fields) if tells_feedback(path) else ():
        rating = rating_of(result.feedback or ())
        if rating is not None and (thumb := thumb_of(rating)) is not None:
            answer = (result.test_case_id, result.repeat)
            thumbs[answer] = thumb
            names = {rating.user for rating in result.feedback or ()}
            if len(names) == 1 and (name := names.pop()):
                users[answer] = f"user {name}"
    return thumbs, users


def _agreement(
    thumbs: Mapping[_Answer, bool],
    passes: Mapping[_Answer, bool],
    clusters: Mapping[_Answer, str],
    draws: Draws,
) -> dict[str, Any]:
    """Counts of thumbs by verdicts, and the figures where there are enough of both thumbs."""
    words = {True: "supported", False: "not_supported"}
    answers = [
        JudgedClaim(*a, "answer", "", words[passes[a]], source=clusters.get(a, a[0]))
        for a in thumbs
        if a in passes
    ]
    human = [int(thumbs[answer.case_id, answer.repeat]) for answer in answers]
    pairs = LabelledPairs(answers, human, [1.0] * len(human))
    few = min(human.count(0), human.count(1)) < MIN_CLASS
    figures = None if few else agreement_figures(pairs, draws)
    return {"n": len(human), "confusion": confusion_counts(pairs.table()), "figures": figures}


def thumbs_blocks(report: Mapping[str, Any] | None) -> Iterator[Block]:
    """The agreement with thumbs as a table, and why nothing is corrected by them."""
    if report is None:
        return
    yield Heading(f"Thumbs of users: {report['good']} good, {report['bad']} bad.")
    rows = []
    for name, words in (("judge", "judge passes all claims"), ("cases", "case is ok")):
        part = report[name]
        kappa = (part["figures"] or {}).get("kappa", {"value": None, "ci95": None})
        counts = (str(part["confusion"][cell]) for cell in _CELLS)
        if part["n"]:
            rows.append((words, *counts, number(kappa["value"]), between(kappa["ci95"])))
    head = ("verdict", "good, yes", "good, no", "bad, yes", "bad, no", "kappa", "95 % interval")
    yield plain_table(head, rows)
    yield Prose(WHY_NO_MEAN)
