"""Cases that changed, in full: what two runs answered and retrieved, one beside the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from decisions.case_verdict import Ways
from decisions.rows import Comparison
from records.cases import TestCase
from records.run_table import RunTable
from records.targets import TARGETS
from views.case import Said
from views.case_files import first_answers, read_asked
from views.report.compared import (
    BaselineComparison,
    comparison_part,
    explain_changes,
    of_comparison,
)
from views.report.described import describe
from views.report.page import comparison_page
from views.report.report import AnswerSide, CaseChange, ReportAnswer
from views.report.text import page_bytes

PAGE_BYTES = 5_000_000
"""What a page may take. Rows of the list and figures come first; answers in full fill the rest."""

FIGURE_BYTES = 700_000
"""What all figures may take."""

MARKUP_BYTES = 250
"""What the page adds to each passage, claim and the like of an answer."""


def bytes_of(answer: ReportAnswer) -> int:
    """What an answer in full takes on the page, roughly: its texts, and the markup around them."""
    sides = [answer, *([answer.before] if answer.before else [])]
    items = len(answer.verdicts) + len(answer.fails) + len(answer.warnings)
    for side in sides:
        items += len(side.retrieved) + len(side.gold) + len(side.claims) + len(side.because)
    # Marks on the words that differ take about as much as short answers themselves.
    marked = sum(page_bytes(side.answer) for side in sides if answer.before)
    return page_bytes(answer) + marked + MARKUP_BYTES * (4 + items)


def sides_before(
    folder: Path, ids: Collection[str], cases: Mapping[str, TestCase]
) -> dict[str, AnswerSide]:
    """What another run answered and retrieved in some cases, by case id."""
    sides = {}
    for case_id, case in first_answers(RunTable(folder), ids, cases, _SECTIONS).items():
        answer = describe(case, Said())
        sides[case_id] = AnswerSide(*(getattr(answer, n) for n in AnswerSide.__struct_fields__))
    return sides


_SECTIONS = ("retrieval", "groundedness", "pipeline")
"""The sections that explain an answer beside another one."""


def with_changes(
    answer: ReportAnswer,
    changes: Sequence[CaseChange],
    before: AnswerSide | None,
    way: Ways | None = None,
) -> ReportAnswer:
    """An answer in full with what changed since the other run, and what that one said. ``way``:
    broke or fixed."""
    shown = before if changes or way else None
    return replace(answer, changes=list(changes), way=way or "", before=shown)


def page_of_comparisons(
    comparisons: Sequence[Comparison],
    folders: Sequence[Path],
    eval_set: Path,
    labels_dir: Path | None,
    failures: Sequence[str] = (),
    targets: Path = TARGETS,
) -> bytes:
    """One self-contained HTML page of comparisons with the same base, ``folders[0]``.

    Of a single comparison the cases that broke or were fixed are shown in full, as many as the page
    has room for.
    """
    answers: Sequence[ReportAnswer] = ()
    left_out = 0
    if len(comparisons) == 1:
        compared = of_comparison(comparisons[0], folders[0], folders[1], eval_set, targets)
        answers, left_out = _answers(compared, folders[1], eval_set, labels_dir)
        parts = [explain_changes(compared.part, answers)]
    else:
        parts = [comparison_part(comparison) for comparison in comparisons]
    names = [comparisons[0].base_id, *(comparison.new_id for comparison in comparisons)]
    title = " → ".join(names) if len(names) == 2 else ", ".join(names)
    return comparison_page(title, parts, answers, left_out, failures)


def _answers(
    compared: BaselineComparison, new: Path, eval_set: Path, labels_dir: Path | None
) -> tuple[list[ReportAnswer], int]:
    """The cases that changed, as both runs answered them, and how many found no room."""
    ids = list(compared.changes)
    cases = read_asked(eval_set, labels_dir, ids) if eval_set.exists() else {}
    before = sides_before(compared.folder, ids, cases)
    now = first_answers(RunTable(new), ids, cases, _SECTIONS)
    room = PAGE_BYTES - FIGURE_BYTES
    answers: list[ReportAnswer] = []
    for case_id in ids:
        if case_id not in now:
            continue
        described = describe(now[case_id], Said())
        way = compared.ways.get(case_id)
        answer = with_changes(described, compared.changes[case_id], before.get(case_id), way)
        room -= bytes_of(answer)
        if room < 0:
            break
        answers.append(answer)
    return answers, len(ids) - len(answers)
