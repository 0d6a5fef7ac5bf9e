"""The page of comparisons alone, which compare_runs.py writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from decisions.compare_words import row_groups
from decisions.comparison import Comparison
from decisions.slices import Embed
from records.notes import CaseNote, read_notes
from records.run import Run, Runs
from records.targets import TARGETS
from terminal.page import Block, Page, Prose, Section, Tag
from views.case_blocks import ShownWith
from views.case_files import first_answers, read_asked
from views.report.cases import (
    FIGURE_BYTES,
    PAGE_BYTES,
    SECTIONS,
    ShownCase,
    case_section,
    numbered,
    size_of,
)
from views.report.compared import (
    BaselineComparison,
    compared_table,
    comparison_blocks,
    head_blocks,
    of_comparison,
    sentences,
)
from views.text import one_line


def comparisons_page(
    comparisons: Sequence[Comparison],
    folders: Sequence[Path],
    eval_set: Path,
    labels_dir: Path | None,
    failures: Sequence[str] = (),
    targets: Path = TARGETS,
    tables: Runs | None = None,
    embed: Embed | None = None,
) -> Page:
    """Comparisons with the same base, ``folders[0]``.

    Of a single comparison the cases that broke or were fixed are shown in full, as many as the page
    has room for. ``tables``: what was read of the runs.
    """
    names = [comparisons[0].base_id, *(comparison.new_id for comparison in comparisons)]
    title = " → ".join(names) if len(names) == 2 else ", ".join(names)
    blocks: list[Block] = [
        Prose((Tag("Failed", "bad"), f" {one_line(reason, 400)}"), look="note")
        for reason in failures
    ]
    for place, comparison in enumerate(comparisons, 1):
        if len(comparisons) > 1:
            name = f"{one_line(comparison.base_id)} → {one_line(comparison.new_id)}"
            own = _several(comparison)
            blocks.append(Section(name, own, f"run-{place}", open=True))
        else:
            tables, (base, new) = tables or Runs(), folders
            compared = of_comparison(
                comparison,
                (base, new),
                eval_set,
                targets,
                tables,
                labels_dir=labels_dir,
                embed=embed,
            )
            cases, left_out = _changed_answers(compared, tables[new], eval_set, labels_dir)
            questions = {case.case_id: case.question for _, case, _ in cases}
            blocks += head_blocks(compared, questions)
            blocks.append(
                Section("Metrics and cases", [*comparison_blocks(compared)], "changes", open=True)
            )
            if cases:
                more: list[Block] = [Prose(f"{left_out:,} more are left out.")] * bool(left_out)
                shown = [*more, *numbered(section for section, _, _ in cases)]
                title_of = "The cases that changed, in full"
                blocks.append(Section(title_of, shown, "worst", open=True))
    return Page(one_line(title), blocks)


def _several(comparison: Comparison) -> list[Block]:
    """One of several comparisons: its verdict, and the metrics that decide or differ."""
    primary, telling, _ = row_groups(comparison)
    first, *more = comparison.says or (comparison.headline,)
    return [
        Prose(first, "strong"),
        *(Prose(line, "quiet") for line in more),
        *(Prose(text, item=1, look="sentences") for text, _ in sentences(comparison).values()),
        compared_table(primary, "Primary metrics"),
        compared_table(telling, "Exploratory metrics that differ"),
    ]


def _changed_answers(
    compared: BaselineComparison, new: Run, eval_set: Path, labels_dir: Path | None
) -> tuple[list[ShownCase], int]:
    """The cases that changed, as both runs answered them, and how many found no room."""
    ids = list(compared.changes)
    cases = read_asked(eval_set, labels_dir, ids) if eval_set.exists() else {}
    before = first_answers(compared.table, ids, cases, SECTIONS)
    now = first_answers(new, ids, cases, SECTIONS)
    notes: Mapping[str, Sequence[CaseNote]] = read_notes(eval_set, labels_dir)
    room = PAGE_BYTES - FIGURE_BYTES
    shown: list[ShownCase] = []
    for case_id in (case_id for case_id in ids if case_id in now):
        view = ShownWith(
            notes=notes.get(case_id, ()),
            before=before.get(case_id),
            way=compared.ways.get(case_id, ""),
            changes=compared.changes[case_id],
            brief=True,
        )
        section = case_section(now[case_id], view)
        room -= size_of(section)
        if room < 0:
            break
        shown.append((section, now[case_id], view))
    return shown, len(ids) - len(shown)
