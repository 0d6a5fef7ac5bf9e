"""What a set holds, in figures, and its labels as TREC qrels. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from labeller.anchors import heading, norm_path
from labeller.worklist import LABELLED, STATUSES, brief_of, progress_of, tally

Record = dict[str, Any]
UNGRADED = 3
"""The gain of a support without a grade, as the retrieval metrics take it."""


def statistics_of(cases: Mapping[str, Record], judgements: Mapping[str, Record]) -> Record:
    """Counts of a set: cases by status and category, supports a labelled case, other labels."""
    records = {case_id: cases[case_id] for case_id in cases}
    briefs = {c: brief_of(record, judgements.get(c, {})) for c, record in records.items()}
    progress = progress_of(tally(briefs.values()), ())
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


def _document(place: Record, by: str) -> str:
    name = quote(norm_path(str(place["rel_path"])), safe="/-_.~")
    headings = heading(place.get("heading_path"))
    return f"{name}#{quote(headings, safe='-_.~')}" if by == "anchor" and headings else name
