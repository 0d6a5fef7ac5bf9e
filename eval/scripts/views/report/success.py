"""Right answers beside the confidence and the rank of the evidence; the judge beside people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

from decisions.case_verdict import Ruling
from decisions.judge_calibration import (
    figure_names,
    judge_name,
    labelled,
    people_say,
    share_names,
    verdict_tables,
    words_of,
)
from ragmetrics.catalogue import right_metrics
from records import calibration
from records.targets import Target
from terminal.page import Block, Heading, Prose, between, number, plain_table
from views.report import figures
from views.report.answers import CaseListing, Name, ResultsRead, RunAnswers
from views.report.metrics import rows_of
from views.text import one_line


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


MOST_DISAGREEMENTS = 10

_COUNTS, _FIGURES = ("n", "unsupported", "agree"), ("specificity", "sensitivity", "kappa")


def judge_blocks(stored: Mapping[str, Any]) -> Iterator[Block]:
    """Who judged, against whose labels, how far both agree, and where they do not.

    ``stored``: a calibration as calibrate_judge.py writes it.
    """
    words = words_of(stored)
    items = words["items"]
    yield Heading(f"The judge of {one_line(stored['metric'], 80)}", 3)
    yield from (Prose(one_line(line, 400)) for line in _who(stored, words))
    for head, rows in verdict_tables(stored):
        caption = f"{items.capitalize()}: what people say in rows, what the judge says in columns"
        yield plain_table(head, [list(map(str, row)) for row in rows], caption=caption)
    figures = stored.get("figures") or {}
    agreement = [
        (text, row.get("value"), row.get("ci95"))
        for name, text in figure_names(stored).items()
        if (row := figures.get(name)) is not None
    ]
    yield _figures("figure", agreement, "How the judge agrees with people")
    caption = f"Share of {words['good']} {items} in this run, with the judge's errors taken out "
    caption += "where there are labels enough"
    yield _figures(f"share {words['good']}", list(_shares(stored)), caption)
    slices = [
        (f"{dimension.replace('_', ' ')}: {one_line(value, 60)}", part)
        for dimension, values in (stored.get("by") or {}).items()
        for value, part in values.items()
    ]
    if slices:
        caption = f"Labelled {items} by slice; figures where each class has claims enough"
        head = ("slice", "n", words["bad"], "agree", *_FIGURES)
        cells = (
            [name, *(f"{part[n]:,}" for n in _COUNTS), *(number(part.get(n)) for n in _FIGURES)]
            for name, part in slices
        )
        yield plain_table(head, cells, caption=caption, folded="The judge by slice")
    worst = (stored.get("worst") or ())[:MOST_DISAGREEMENTS]
    if worst:
        yield Heading("Where the judge and people disagree most", 4)
    yield from (Prose(_disagreement(stored, row), item=1) for row in worst)


def _who(stored: Mapping[str, Any], words: Mapping[str, str]) -> Iterator[str]:
    labels = stored.get("labels") or {}
    prompt = stored["prompt"]
    asked = f", prompt {prompt.get('name')}@{prompt.get('version')}" if prompt else ""
    who = ", ".join(sorted(labels.get("annotators") or {})) or "no annotator"
    yield (
        f"{stored['metric']} by {judge_name(stored['judge'])}{asked}, against "
        f"{stored.get('n', 0):,} {words['items']} of {stored.get('sources', 0):,} "
        f"{words['sources']}, labelled by {who}."
    )
    if labels.get("alpha") is not None:
        yield f"People among themselves: Krippendorff's alpha {number(labels['alpha'])}."
    if stored["too_few"]:
        yield f"Too few to tell: {labelled(stored)} are labelled."


Figure = tuple[str, float | None, Sequence[float] | None]
"""Name, value and interval."""


def _shares(stored: Mapping[str, Any]) -> Iterator[Figure]:
    corrected = stored.get("corrected") or {}
    for name, text in share_names(stored).items():
        row = corrected.get(name)
        mean, ends = (row["mean"], row["ci95"]) if isinstance(row, dict) else (row, None)
        if mean is not None:
            yield text, mean, ends


def _figures(head: str, rows: Sequence[Figure], caption: str) -> Block:
    cells = ((name, number(value), between(ends)) for name, value, ends in rows)
    return plain_table((head, "value", "95 % interval"), cells, caption=caption)


def _disagreement(stored: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    case = one_line(f"{row.get('case_id')} {row.get('claim_id')}")
    verdict = (row.get("verdict") or "").replace("_", " ")
    who = f"people {people_say(stored, row['human'])}, judge {verdict}"
    why = f" ({one_line(row['reason'], 300)})" if row.get("reason") else ""
    return f"{case}: {who}: {one_line(row.get('claim') or '', 400)}{why}"
