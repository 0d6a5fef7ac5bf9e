"""Counts the cases of a set, and prints the counts as a table. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from labeller.case_state import Record
from labeller.worklist import LABELLED, STATUSES, progress_of, summary_of
from terminal.safe_text import one_line
from terminal.tables import print_columns

if TYPE_CHECKING:
    from rich.console import Console


def statistics_of(cases: Mapping[str, Record], judgements: Mapping[str, Record]) -> Record:
    """Counts of a set: cases by status and category, supports a labelled case, other labels."""
    records = {case_id: cases[case_id] for case_id in cases}
    briefs = {c: summary_of(record, judgements.get(c, {})) for c, record in records.items()}
    progress = progress_of(briefs.values(), ())
    labelled = [records[c] for c, brief in briefs.items() if brief.status == LABELLED]
    supports = [len(case.get("gold_supports") or ()) for case in labelled]
    by_category: dict[str, Counter[str]] = {}
    for brief in briefs.values():
        by_category.setdefault(brief.category or "(none)", Counter())[brief.status] += 1
    return {
        "cases": progress.total,
        "status": {status: getattr(progress, status) for status in STATUSES},
        "flagged": progress.flagged,
        "by_category": {
            name: {"cases": sum(counts.values()), **{s: counts[s] for s in STATUSES}}
            for name, counts in sorted(by_category.items())
        },
        "supports": {
            "total": sum(supports),
            "per_labelled_case": sum(supports) / len(supports) if supports else None,
            "most": max(supports, default=0),
            "labelled_without": supports.count(0),
        },
        "with_groups": sum(bool(case.get("required_support_groups")) for case in labelled),
        "with_snippets": sum(
            any(support.get("snippets") for support in case.get("gold_supports") or ())
            for case in labelled
        ),
        **{
            f"with_{name}": sum(bool(record.get(name)) for record in records.values())
            for name in ("expected_key_facts", "reference_answer", "forbidden_claims")
        },
    }


def print_statistics(console: Console, statistics: Mapping[str, Any]) -> None:
    """Cases by status and category, then supports and other labels."""
    rows = [
        (one_line(name), str(row["cases"]), *(str(row[status]) for status in STATUSES))
        for name, row in statistics["by_category"].items()
    ]
    totals = (str(statistics["status"][status]) for status in STATUSES)
    rows.append(("all", str(statistics["cases"]), *totals))
    heads = (status.replace("_", " ") for status in STATUSES)
    styles = [*[None] * (len(rows) - 1), "bold"]
    print_columns(console, ("category", "cases", *heads), rows, styles=styles)
    supports = statistics["supports"]
    mean = supports["per_labelled_case"]
    for name, value in (
        ("flagged", statistics["flagged"]),
        ("supports", supports["total"]),
        ("supports per labelled case", "–" if mean is None else f"{mean:.2f}"),
        ("most supports in a case", supports["most"]),
        ("labelled without support", supports["labelled_without"]),
        ("with groups", statistics["with_groups"]),
        ("with snippets", statistics["with_snippets"]),
        ("with key facts", statistics["with_expected_key_facts"]),
        ("with reference answer", statistics["with_reference_answer"]),
        ("with forbidden claims", statistics["with_forbidden_claims"]),
    ):
        console.print(f"{name:<28}{value:>8}")
