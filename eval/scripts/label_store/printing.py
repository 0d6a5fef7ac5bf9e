"""The tables of --stats and --agreement, drawn from the same figures that --json prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from labeller.display import one_line
from labeller.worklist import STATUSES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SHOWN = 40
"""Disagreements and questions that are listed; --json has them all."""


def number(value: float | None) -> str:
    """Three decimals; an en dash for what is undefined."""
    return "–" if value is None else f"{value:.3f}"


def print_statistics(console: Console, found: Mapping[str, Any]) -> None:
    """Cases by status and category, then supports and other labels."""
    table = _table("category", "cases", *(status.replace("_", " ") for status in STATUSES))
    for name, row in found["by_category"].items():
        table.add_row(one_line(name), str(row["cases"]), *(str(row[s]) for s in STATUSES))
    totals = (str(found["status"][status]) for status in STATUSES)
    table.add_row("all", str(found["cases"]), *totals, style="bold")
    console.print(table)
    supports = found["supports"]
    mean = supports["per_labelled_case"]
    for name, value in (
        ("flagged", found["flagged"]),
        ("supports", supports["total"]),
        ("supports per labelled case", "–" if mean is None else f"{mean:.2f}"),
        ("most supports in a case", supports["most"]),
        ("labelled without support", supports["labelled_without"]),
        ("with groups", found["with_groups"]),
        ("with snippets", found["with_snippets"]),
        ("with key facts", found["with_expected_key_facts"]),
        ("with reference answer", found["with_reference_answer"]),
        ("with forbidden claims", found["with_forbidden_claims"]),
    ):
        console.print(f"{name:<28}{value:>8}")


def print_agreement(console: Console, found: Mapping[str, Any]) -> None:
    """Each pair of annotators: overall, by question (worst first), and the disagreements."""
    people = ", ".join(f"{one_line(n)} ({c} cases)" for n, c in found["annotators"].items())
    console.print(f"annotators: {people}")
    if len(found["annotators"]) > 2:
        console.print(f"Krippendorff's alpha of all, on the state: {number(found['alpha_state'])}")
    for pair in found["pairs"]:
        _print_pair(console, pair)


def _print_pair(console: Console, pair: Mapping[str, Any]) -> None:
    console.print(
        f"\nA = {one_line(pair['a'])}, B = {one_line(pair['b'])}: {pair['cases']} cases by both"
    )
    table = _table("on", "n", "raw", "kappa", "95 % interval", "alpha", "positive", "overlap")
    for name in ("state", "marks"):
        row = pair[name]
        interval = row["kappa_ci95"]
        shown = "–" if interval is None else f"{interval[0]:.3f} – {interval[1]:.3f}"
        figures = [number(row.get(key)) for key in ("alpha", "positive", "overlap")]
        table.add_row(
            name, str(row["n"]), number(row["raw"]), number(row["kappa"]), shown, *figures
        )
    grades = pair["grades"]
    table.add_row("grades", str(grades["n"]), "–", "–", "–", number(grades["alpha"]), "–", "–")
    console.print(table)
    by_question = _table("question", "state A", "state B", "n", "raw", "kappa", "positive", text=3)
    worst = sorted(pair["questions"], key=lambda q: (q["state"][0] == q["state"][1], _low(q)))
    for row in worst[:SHOWN]:
        figures = [number(row[key]) for key in ("raw", "kappa", "positive")]
        by_question.add_row(one_line(row["id"]), *row["state"], str(row["n"]), *figures)
    console.print(by_question)
    for item in pair["disagreements"][:SHOWN]:
        what = one_line(str(item["what"]))
        console.print(
            f"{one_line(item['id'])}: {what}: A = {_said(item['a'])}, B = {_said(item['b'])}"
        )
    more = len(pair["disagreements"]) - SHOWN
    if more > 0:
        console.print(f"… and {more} more disagreements; --json has them all")


def _low(question: Mapping[str, Any]) -> float:
    value = question["positive"]
    return 1.0 if value is None else float(value)


def _said(value: object) -> str:
    if isinstance(value, float):
        return f"grade {value:g}" if value else "not marked"
    return one_line(str(value)) or "nothing"


def _table(*columns: str, text: int = 1) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place < text else "right")
    return table
