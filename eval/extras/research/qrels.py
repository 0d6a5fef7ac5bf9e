"""The labels of a set as TREC qrels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import click

from labeller.case_state import Record
from labeller.jobs import cases_of, gold_judgements
from labeller.label_options import LabelOptions
from records.errors import StorageError
from records.judged import heading, norm_path

UNGRADED = 3
"""The gain of a support without a grade, as the retrieval metrics take it."""


def export(
    own: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    asked: LabelOptions,
    talk: Callable[[str], None],
    show: Callable[..., None],
) -> int:
    """Print the labels as TREC qrels. Raises StorageError beside an option that asks for more."""
    if asked.jobs:
        raise StorageError(f"choose one of {asked.jobs[0]} and --export-qrels.")
    for line in qrels(cases_of(asked), gold_judgements(asked), own["export_qrels"]):
        click.echo(line)
    return 0


def qrels(cases: Mapping[str, Record], judgements: Mapping[str, Record], by: str) -> Iterator[str]:
    """TREC qrels lines ``case 0 document grade``, by ``doc`` (file) or ``anchor`` (file#heading).

    Names are percent-encoded, since qrels are parted by spaces. The highest grade of a document
    counts; passages that were read and not marked stand with 0. Unanswerable cases have no lines.
    """
    for case_id in cases:
        grades: dict[str, int] = {}
        for row in judgements.get(case_id, {}).get("rows") or ():
            if row.get("grade") == 0:
                grades[_document(row, by)] = 0
        for support in cases[case_id].get("gold_supports") or ():
            name = _document(support, by)
            grade = max(1, round(float(support.get("grade") or UNGRADED)))
            grades[name] = max(grade, grades.get(name, 0))
        if any(grades.values()):
            for name, grade in grades.items():
                yield f"{quote(case_id, safe='-_.~')} 0 {name} {grade}"


def _document(passage: Record, by: str) -> str:
    name = quote(norm_path(str(passage["rel_path"])), safe="/-_.~")
    headings = heading(passage.get("heading_path"))
    return f"{name}#{quote(headings, safe='-_.~')}" if by == "anchor" and headings else name
