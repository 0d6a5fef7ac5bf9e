"""Cases that changed, in full: what two runs answered and retrieved, one beside the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from decisions.rows import Comparison
from records.cases import TestCase
from records.run_table import RunTable, RunTables
from records.runs import VERSION
from records.targets import TARGETS
from views.case import Said
from views.case_files import first_answers, read_asked
from views.report.compared import (
    BaselineComparison,
    CaseChange,
    comparison_part,
    explain_changes,
    of_comparison,
)
from views.report.described import describe
from views.report.page import comparison_page
from views.report.text import page_bytes

PAGE_BYTES = 5_000_000
"""What a page may take. Rows of the list and figures come first; answers in full fill the rest."""

FIGURE_BYTES = 700_000
"""What all figures may take."""

MARKUP_BYTES = 250
"""What the page adds to each passage, claim and the like of an answer."""

SHOWN_BEFORE = (
    "answer",
    "error",
    "abstained",
    "abstain_reason",
    "confidence",
    "because",
    "gold",
    "claims",
    "retrieved",
    "retrieved_more",
)

Part = dict[str, Any]


def bytes_of(answer: Mapping[str, Any]) -> int:
    """What an answer in full takes on the page, roughly: its texts, and the markup around them."""
    sides = [answer, answer["before"] or {}]
    parts = ("retrieved", "gold", "claims", "verdicts", "fails", "warnings", "because")
    items = sum(len(side.get(name, ())) for side in sides for name in parts)
    # Marks on the words that differ take about as much as short answers themselves.
    marked = sum(page_bytes(side.get("answer")) for side in sides if answer["before"])
    return page_bytes(answer) + marked + MARKUP_BYTES * (4 + items)


def sides_before(
    table: RunTable, ids: Collection[str], cases: Mapping[str, TestCase]
) -> dict[str, Part]:
    """What another run answered and retrieved in some cases, by case id."""
    sides = {}
    for case_id, case in first_answers(table, ids, cases, _SECTIONS).items():
        side = describe(case, Said())
        sides[case_id] = {name: side[name] for name in SHOWN_BEFORE}
    return sides


_SECTIONS = ("retrieval", "groundedness", "pipeline")
"""The sections that explain an answer beside another one."""


def with_changes(
    answer: Part, changes: Sequence[CaseChange], before: Part | None, way: str = ""
) -> Part:
    """An answer in full with what changed since the other run, and what that one said. ``way``:
    broke or fixed, else empty."""
    return answer | {
        "changes": [asdict(change) for change in changes],
        "way": way,
        "before": before if changes or way else None,
    }


def page_of_comparisons(
    comparisons: Sequence[Comparison],
    folders: Sequence[Path],
    eval_set: Path,
    labels_dir: Path | None,
    failures: Sequence[str] = (),
    targets: Path = TARGETS,
    tables: RunTables | None = None,
) -> bytes:
    """One self-contained HTML page of comparisons with the same base, ``folders[0]``.

    Of a single comparison the cases that broke or were fixed are shown in full, as many as the page
    has room for. ``tables``: what was read of the runs.
    """
    answers: list[Part] = []
    left_out = 0
    if len(comparisons) == 1:
        tables, (base, new) = tables or RunTables(), folders
        compared = of_comparison(comparisons[0], base, new, eval_set, targets, tables=tables)
        answers, left_out = _answers(compared, tables[new], eval_set, labels_dir)
        explain_changes(compared.part, answers)
        parts = [compared.part]
    else:
        parts = [comparison_part(comparison) for comparison in comparisons]
    names = [comparisons[0].base_id, *(comparison.new_id for comparison in comparisons)]
    return comparison_page(
        {
            "title": " → ".join(names) if len(names) == 2 else ", ".join(names),
            "comparisons": parts,
            "answers": answers,
            "left_out": left_out,
            "failures": list(failures),
            "tool_version": VERSION,
        }
    )


def _answers(
    compared: BaselineComparison, new: RunTable, eval_set: Path, labels_dir: Path | None
) -> tuple[list[Part], int]:
    """The cases that changed, as both runs answered them, and how many found no room."""
    ids = list(compared.changes)
    cases = read_asked(eval_set, labels_dir, ids) if eval_set.exists() else {}
    before = sides_before(compared.table, ids, cases)
    now = first_answers(new, ids, cases, _SECTIONS)
    room = PAGE_BYTES - FIGURE_BYTES
    answers: list[Part] = []
    for case_id in ids:
        if case_id not in now:
            continue
        described = describe(now[case_id], Said())
        way = compared.ways.get(case_id, "")
        answer = with_changes(described, compared.changes[case_id], before.get(case_id), way)
        room -= bytes_of(answer)
        if room < 0:
            break
        answers.append(answer)
    return answers, len(ids) - len(answers)
