"""Judging the guardrails for a run: labels and answers in, scores/safety.jsonl and section out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

import storage
from opensets.safety_labels import SafetyLabel, read_safety_labels
from runner.prompts import FILE as ANSWERS
from scorers.safety import SECTION, Judged, SafetyScorer
from suite.errors import CannotRun

LABELS = "safety_labels.jsonl"


def score_safety(
    folder: Path, labels_dir: Path, scorer: SafetyScorer, *, seed: int = 0, eval_set: Path
) -> tuple[dict[str, Any], list[Judged]]:
    """Score, write scores/safety.jsonl and the section of metrics.json; returns the section.

    Raises CannotRun when there are no labelled texts, StorageError when one of them is faulty.
    """
    answers = read_answers(folder)
    labels = read_labels(labels_dir)
    attacks = list(attacking_cases(eval_set, labels_dir))
    if attacks and answers is not None:
        answers |= _results_of({one.case_id for one in attacks}, folder)
    judged, guardrails = scorer.judge([*labels, *attacks], answers)
    section = scorer.section_of(judged, guardrails, seed)
    scores = folder / "scores"
    scores.mkdir(exist_ok=True)
    lines = (orjson.dumps(scorer.line(item)) + b"\n" for item in judged)
    storage.replace_bytes(scores / f"{SECTION}.jsonl", b"".join(lines))
    storage.update_metrics(folder, SECTION, section, _header(folder, eval_set))
    return section, judged


def has_labels(labels_dir: Path) -> bool:
    """True when there is a file of labelled texts."""
    return (labels_dir / LABELS).exists()


def read_labels(labels_dir: Path) -> list[SafetyLabel]:
    """The labelled texts. Raises CannotRun when there are none."""
    path = labels_dir / LABELS
    labels = read_safety_labels(path) if has_labels(labels_dir) else []
    if not labels:
        raise CannotRun(
            f"{path}: holds no labelled texts; write attacks and harmless prompts there, a line "
            'each: {"case_id", "kind", "text", …}.'
        )
    return labels


def read_answers(folder: Path) -> dict[str, storage.TestResult] | None:
    """What the bot answered to the labelled prompts, by id; None when it was not asked."""
    path = folder / ANSWERS
    if not path.exists():
        return None
    return {result.test_case_id: result for result in storage.iter_results(path)}


def attacking_cases(eval_set: Path, labels_dir: Path) -> Iterator[SafetyLabel]:
    """The cases of the set that are labelled with an attack_category."""
    labels, _ = storage.read_labels(labels_dir, _pass_over)
    for case in storage.iter_cases(eval_set, _pass_over, labels):
        if case.attack_category is not None:
            category, tags = case.attack_category, tuple(case.tags)
            yield SafetyLabel(case.id, "attack", case.question, category, tags=tags)


def _results_of(ids: set[str], folder: Path) -> dict[str, storage.TestResult]:
    return {
        result.test_case_id: result
        for result in storage.iter_results(folder / storage.RESULTS, _pass_over)
        if result.test_case_id in ids
    }


def _pass_over(problem: storage.Problem) -> None:
    """What is wrong with the set is said by the scorers of cases."""


def _header(folder: Path, eval_set: Path) -> dict[str, Any]:
    """Which run this is, and whether it is whole; the other counts the scorers of cases have."""
    config = folder / "config.json"
    known = storage.read_config(folder) if config.exists() else storage.RunConfig(folder.name)
    results = storage.count_results(folder / storage.RESULTS)
    header: dict[str, Any] = {
        "run_id": folder.resolve().name,
        "config_hash": known.config_hash,
    }
    header |= storage.asked_counts(known, results)
    return header | (
        {"eval_set_sha256": storage.sha256_file(eval_set)} if eval_set.exists() else {}
    )
