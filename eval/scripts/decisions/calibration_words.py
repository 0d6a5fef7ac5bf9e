"""The words in which a judge's calibration is shown, on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from terminal.tables import plain

Calibration = Mapping[str, Any]
"""What calibration.json holds."""

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Heads and rows."""

FIGURES = {
    "specificity": "finds {bad} {items} (specificity)",
    "sensitivity": "passes {good} {items} (sensitivity)",
    "balanced_accuracy": "balanced accuracy",
    "kappa": "Cohen's kappa",
    "auroc": "AUROC of its score",
    "accuracy": "same verdict as people",
}

RATES = {
    "rogan_gladen": "{items}, corrected for its errors (Rogan-Gladen)",
    "ppi": "cases, prediction-powered (PPI)",
    "ppi_plus": "cases, prediction-powered, best lambda (PPI++)",
    "labels_only": "cases, from the labels alone",
}

WORDS = {
    "groundedness": {
        "items": "claims",
        "good": "supported",
        "bad": "unsupported",
        "not": "not supported",
        "mean": "faithfulness",
        "sources": "documents",
    },
    "correctness": {
        "items": "facts",
        "good": "present",
        "bad": "absent",
        "not": "not present",
        "mean": "fact_recall",
        "sources": "cases",
    },
}
"""The words for each metric's verdicts."""


def words_of(calibration: Calibration) -> dict[str, str]:
    """The words for the verdicts that a calibration is about."""
    return WORDS.get(str(calibration.get("metric")), WORDS["groundedness"])


def figure_names(calibration: Calibration) -> dict[str, str]:
    """``FIGURES`` in the words of a calibration's metric."""
    return {name: text.format(**words_of(calibration)) for name, text in FIGURES.items()}


def share_names(calibration: Calibration) -> dict[str, str]:
    """The shares that ``corrected`` has, by key, in the words of the metric: as judged first."""
    words = words_of(calibration)
    judged = {
        "claim_rate": f"{words['items']}, as judged",
        words["mean"]: f"cases, as judged ({words['mean']})",
    }
    return judged | {name: text.format(**words) for name, text in RATES.items()}


def verdict_tables(calibration: Calibration) -> list[Table]:
    """Counts of people's labels (rows) by the judge's verdict (columns).

    The confusion table; for facts before it the same by each side's own words: a fact that is
    missed and one that is denied differ.
    """
    cells, words = calibration.get("confusion"), words_of(calibration)
    if not cells:
        return []
    rows: list[tuple[str, ...]] = [
        (words["not"], str(cells["not_supported"]), str(cells["not_not"])),
        (words["good"], str(cells["supported_supported"]), str(cells["supported_not"])),
    ]
    head = ("people say", f"judge: {words['good']}", f"judge: {words['not']}")
    return [*_by_word(calibration), (head, rows)]


def _by_word(calibration: Calibration) -> list[Table]:
    table = calibration["labels"].get("by_verdict")
    if calibration["metric"] != "correctness" or not table:
        return []
    verdicts = sorted({verdict for counts in table.values() for verdict in counts})
    rows = [
        (_spaced(label), *(str(counts.get(verdict, 0)) for verdict in verdicts))
        for label, counts in table.items()
    ]
    return [(("people say", *(f"judge: {_spaced(verdict)}" for verdict in verdicts)), rows)]


def _spaced(verdict: str) -> str:
    return plain(verdict.replace("_", " "), 30)


def people_say(calibration: Calibration, human: str) -> str:
    """A label of ``worst`` in the words of the metric: "present", "not present"."""
    words = words_of(calibration)
    return words["good" if human == "supported" else "not"]


def judge_name(judge: Mapping[str, Any]) -> str:
    """``provider/model@digest``, short."""
    mark = judge.get("digest") or judge.get("build") or judge.get("revision")
    name = f"{judge.get('provider', '?')}/{judge.get('model', '?')}"
    return plain(name + (f"@{str(mark)[:19]}" if mark else ""), 80)
