"""The judge of a run against people, as blocks of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from decisions.judge_calibration import (
    figure_names,
    judge_name,
    labelled,
    people_say,
    share_names,
    verdict_tables,
    words_of,
)
from terminal.page import Block, Heading, Prose, between, number, plain_table
from views.text import one_line

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
