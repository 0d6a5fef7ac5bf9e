"""The worst cases of a section on a terminal: question, score, and what explains it.

The score scripts hand this to ``scorers/show.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragmetrics.catalogue.metric import Metric
from records.run import Run
from terminal.tables import plain

if TYPE_CHECKING:
    from rich.console import Console

    from terminal.page import Block
    from views.case import Case


def worst_cases(
    folder: Path, section: str, metric: Metric, count: int, eval_set: Path, labels_dir: Path | None
) -> list[tuple[float, Case]]:
    """The ``count`` answers with the worst score of one metric, worst first, in set order on ties.

    Unscored answers, failed calls and those with the best score that the metric can have are left
    out. Raises StorageError for damaged files.
    """
    import numpy as np

    from views.case_files import read_asked, read_cases

    table = Run(folder)
    lines = table.section(section)
    if metric.name not in lines.names:
        return []
    scores = lines.values(metric.name)
    best = metric.high if metric.higher_is_better else metric.low
    bad = ~np.isnan(scores) & ~lines.failed_lines & (scores != best)
    sign = 1 if metric.higher_is_better else -1
    chosen = np.flatnonzero(bad)
    chosen = chosen[np.argsort(sign * scores[chosen], kind="stable")][:count]
    ids = lines.case_ids(set(lines.line_cases[chosen].tolist()))
    asked = read_asked(eval_set, labels_dir, set(ids.values()))
    answers = read_cases(table, asked, asked, [section])
    keys = [(ids[lines.line_cases[line]], int(lines.repeats[line])) for line in chosen]
    return [(float(scores[line]), answers[key]) for line, key in zip(chosen, keys, strict=True)]


_FEW = 3
"""Cases that are named when no number of them is asked for."""


def print_worst(
    console: Console,
    folder: Path,
    section: str,
    metric: Metric,
    count: int,
    eval_set: Path,
    labels_dir: Path | None,
    scored: int = 1,
) -> None:
    """Each of the worst cases with its question and score, then its explanation. ``scored``: how
    many cases have a score. ``count`` 0: three of them on a line each."""
    from terminal.print_page import print_blocks

    bad = worst_cases(folder, section, metric, count or _FEW, eval_set, labels_dir)
    if not count:
        if bad:
            console.print(f"\nWorst by {metric.name} (--worst {_FEW} explains them):")
        for score, case in bad:
            question = case.asked.question if case.asked else case.question
            console.print(f"  {score:.3f}  {plain(case.case_id, 60)}  {plain(question)}")
        return
    if not bad:
        none = f"No case has a score of {metric.name}; see the column n/a."
        perfect = f"No case is bad: all {scored} have the best score that {metric.name} can have."
        console.print(perfect if scored else none)
        return
    which = "worst case" if len(bad) == 1 else f"{len(bad)} worst cases"
    console.print(f"The {which} by {metric.name}:")
    for score, case in bad:
        title = f"{plain(case.case_id, 60)}  {metric.name} {score:.3f}"
        question = case.asked.question if case.asked else case.question
        console.print(f"\n{title}  {plain(question)}")
        print_blocks(console, explanation(case, section))


_PARTS = {
    "retrieval": ("gold", "passages"),
    "groundedness": ("claims", "why"),
    "pipeline": ("why",),
    "searches": ("history", "searches", "why"),
    "tools": ("tools",),
    "conversations": ("history", "why"),
    "context": (),
    "embedding": (),
    "judged": (),
    "rubrics": (),
}
"""By section, the parts of a case that explain a bad score; of others the answer."""

_WHOLE = {"retrieval", "pipeline", "searches", "tools", "conversations"}
"""Sections whose evidence is in these parts."""


def explanation(case: Case, section: str) -> list[Block]:
    """The blocks that explain the scores of a case in a section."""
    from views.case_blocks import ShownWith, case_blocks, evidence_blocks

    view = ShownWith(brief=section != "groundedness")
    blocks = case_blocks(case, _PARTS.get(section, ("answer",)), view)
    if section in _WHOLE:
        return blocks
    shown = ("claims", "citations", "numbers", "expected_claims_missing")
    but = shown if section == "groundedness" else ()
    return [*blocks, *evidence_blocks(case, section, but)]
