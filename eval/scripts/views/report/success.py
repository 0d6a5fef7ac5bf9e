"""Right answers of a run, beside the bot's confidence and the rank of the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

from decisions.case_verdict import Ruling
from ragmetrics.catalogue import right_metrics
from records import calibration
from records.targets import Target
from terminal.page import Block, Heading, Prose
from views.report import figures
from views.report.answers import Name, ResultsRead, RunAnswers
from views.report.case_list import CaseListing
from views.report.judge import judge_blocks
from views.report.metrics import rows_of


def right_metric(sections: Mapping[str, Any]) -> Name | None:
    """The metric of the run that says best whether an answer is right."""
    return next((metric for metric in right_metrics() if _has(sections, metric)), None)


def passing_metric(sections: Mapping[str, Any]) -> Name | None:
    """Whether an answer passed all checks of the pipeline; None when that was not scored."""
    section = sections.get("pipeline", {"n": {}})
    return ("pipeline", "pass") if section["n"].get("pass") else None


def _has(sections: Mapping[str, Any], name: Name) -> bool:
    """True when the run has the metric, and not from the embedded judge, which counts words."""
    section = sections.get(name[0])
    if section is None or not section["n"].get(name[1]):
        return False
    judge = section.get("options", {}).get("judge") or {}
    return (judge.get("identity") or {}).get("provider") != "local"


class Success:
    """A metric, and the value that makes an answer of a run a success."""

    def __init__(self, sections: Mapping[str, Any], ruling: Ruling, name: Name | None) -> None:
        self.name = name
        self.good = None if name is None else _good(sections, ruling, name)
        """What a rule for single cases asks of the metric, else the good end of its range."""
        rule = name is not None and ruling.keeps(".".join(name)) is not None
        self.words = ""
        """When an answer is right: ``correctness > 2``, or ``pass = 1`` at the end of a range."""
        if name is not None and self.good is not None:
            self.words = f"{name[1]} {self.good if rule else f'= {self.good.bound:g}'}"

    def outcomes(self, answers: RunAnswers) -> Iterator[bool | None]:
        """By answer whether it is a success; None where no one knows."""
        if self.name is not None and self.good is not None:
            for score in answers.column(self.name).data:
                yield None if isnan(score) else self.good.passed(score)


def _good(sections: Mapping[str, Any], ruling: Ruling, name: Name) -> Target | None:
    metric = rows_of(sections[name[0]]).get(name[1])
    end = None if metric is None else metric.high if metric.higher_is_better else metric.low
    rule = ruling.keeps(".".join(name))
    if rule is not None or metric is None or end is None:
        return rule
    return Target(">=" if metric.higher_is_better else "<=", end)


def first_relevant(cases: CaseListing, success: Success) -> figures.FirstRanks:
    """Where the first relevant passage was, and how often the answer was a success then."""
    ranks, outcomes = cases.answers.first_ranks.data, success.outcomes(cases.answers)
    return figures.ranks(ranks, outcomes, success.words, cases.of_ranks)


def calibration_blocks(
    folder: Path, cases: CaseListing, back: ResultsRead, success: Success, *, judged: bool
) -> Iterator[Block]:
    """The bot's confidence against success, and the judge against people."""
    yield Heading("The bot's confidence", 3)
    found = _confidence(cases, back, success)
    if isinstance(found, str):
        yield Prose(f"Not shown: {found}.")
    else:
        yield from figures.reliability_blocks(found)
    stored = [calibration.read(path) for path in calibration.files_of(folder)]
    if not stored:
        text = "No judge was asked (judge_answers.py does that)."
        if judged:
            text = "The judge of this run was not compared with people (calibrate_judge.py "
            text += "does that)."
        yield from (Heading("The judge", 3), Prose(text))
    for record in stored:
        yield from judge_blocks(record)


def _confidence(
    cases: CaseListing, back: ResultsRead, success: Success
) -> figures.Reliability | str:
    """Reliability of the confidences of answers given, or why there is none."""
    if success.name is None:
        return "nothing says which answers are right (no labels, no judge)"
    if success.good is None:
        return f"{success.name[1]} has no range, so nothing says from where it is a success"
    abstained = cases.answers.abstained
    left_out = {"abstained": 0, "not scored": 0, "no confidence from 0 to 1": 0}
    wrong: dict[int, list[int]] = {}

    def pairs() -> Iterator[tuple[float, bool]]:
        outcomes = list(success.outcomes(cases.answers))
        for row, confidence in enumerate(back.confidences):
            if not back.answered[row]:
                continue
            if abstained[row]:
                left_out["abstained"] += 1
            elif not 0 <= confidence <= 1:
                left_out["no confidence from 0 to 1"] += 1
            elif (right := outcomes[row]) is None:
                left_out["not scored"] += 1
            else:
                if not right:
                    wrong.setdefault(figures.bin_of(confidence), []).append(row)
                yield confidence, right

    reliability = figures.reliability(pairs())
    if not reliability.n:
        counts = ", ".join(f"{count} {why}" for why, count in left_out.items() if count)
        return f"no answer counts ({counts or 'none was read'})"
    found = figures.with_cases(reliability, lambda n: cases.links(wrong.get(n, ())))
    kept = {why: count for why, count in left_out.items() if count}
    return replace(found, success=success.words, left_out=kept)
