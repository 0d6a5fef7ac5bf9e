"""The agreement report as Markdown, and its place between the markers of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

START = "<!-- generated: agreement -->"
END = "<!-- end -->"
CAVEAT = (
    "The rules and thresholds were settled while reading these sets, so expect 0.01 to 0.02\n"
    "less on other data. Where a claim contradicts its source in one detail (ExpertQA,\n"
    "data-to-text), word overlap sees little: read a verdict as a hint, and compare means."
)


def _number(value: float | None, interval: Sequence[float] | None = None) -> str:
    """``.812 (.780-.841)``; a dash for what is undefined."""
    if value is None:
        return "-"
    shown = f"{value:.3f}"
    return shown if interval is None else f"{shown} ({interval[0]:.3f}-{interval[1]:.3f})"


def _rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    line = "| " + " | ".join(header) + " |"
    rule = "|---" + "|---:" * (len(header) - 1) + "|"
    return [line, rule, *("| " + " | ".join(row) + " |" for row in rows)]


def _safe(title: str) -> str:
    return title.replace("|", "\\|").replace("\n", " ")


def _support(report: Mapping[str, Any]) -> list[str]:
    naive = any("naive" in row for row in report["support"].values())
    header = [
        "set",
        "claims",
        "unsupported",
        "AUROC",
        "balanced accuracy",
        "number flags: precision",
    ]
    header += ["cosine >= 0.4: claims", "AUROC", "balanced accuracy"] if naive else []
    rows: list[list[str]] = []
    for row in report["support"].values():
        flags = f"{row['number_flags']}: {_number(row['number_flag_precision'])}"
        cells = [
            _safe(row["title"]) + (" (too few rows)" if row["too_few"] else ""),
            str(row["n"]),
            str(row["unsupported"]),
            _number(row["auroc"], row["auroc_ci95"]),
            _number(row["balanced_accuracy"], row["balanced_accuracy_ci95"]),
            flags,
        ]
        if naive:
            other = row.get("naive", {})
            cells += [
                str(other.get("n", "-")),
                _number(other.get("auroc"), other.get("auroc_ci95")),
                _number(other.get("balanced_accuracy"), other.get("balanced_accuracy_ci95")),
            ]
        rows.append(cells)
    mean = report["mean"]
    last = ["mean", "", "", _number(mean["auroc"]), _number(mean["balanced_accuracy"]), ""]
    last += (
        ["", _number(mean["naive_auroc"]), _number(mean["naive_balanced_accuracy"])]
        if naive
        else []
    )
    return _rows(header, [*rows, last])


def markdown(report: Mapping[str, Any]) -> str:
    """The whole report; a part without a set is left out."""
    parts: list[str] = []
    if report["support"]:
        parts += ["Support scorer against people's verdicts (95 % intervals over sources):", ""]
        parts += [*_support(report), ""]
        parts += [CAVEAT, ""] if set(report["support"]) != {"own"} else []
    if report["abstention"]:
        rows = [
            [
                _safe(row["title"]),
                str(row["n"]),
                str(row["abstained"]),
                _number(row["precision"]),
                _number(row["recall"]),
                _number(row["f1"], row["f1_ci95"]),
            ]
            for row in report["abstention"].values()
        ]
        header = ["set", "answers", "abstained", "precision", "recall", "F1"]
        parts += ["Abstention by phrases:", "", *_rows(header, rows), ""]
    rows = [
        [
            _safe(row["title"]),
            "mean_claim_support, human faithfulness (Spearman)",
            str(row["n"]),
            _number(row["spearman_mean_claim_support"], row["spearman_mean_claim_support_ci95"]),
        ]
        for row in report["ratings"].values()
    ]
    rows += [
        [
            _safe(row["title"]),
            "answer_overlap, preferred answer (Pearson)",
            str(row["n"]),
            _number(row["pearson_answer_overlap"], row["pearson_answer_overlap_ci95"]),
        ]
        for row in report["pairs"].values()
    ]
    if rows:
        header = ["set", "what is compared", "n", "correlation"]
        parts += ["Whole answers:", "", *_rows(header, rows), ""]
    if report["absent"]:
        parts += [f"Not measured, for want of data: {', '.join(map(_safe, report['absent']))}.", ""]
    return "\n".join(parts).strip() + "\n"


def replace_block(document: str, block: str) -> str | None:
    """The document with what stands between the markers replaced; None when it lacks them."""
    head, start, rest = document.partition(START)
    _, end, tail = rest.partition(END)
    if not start or not end:
        return None
    return f"{head}{START}\n{block}{END}{tail}"
