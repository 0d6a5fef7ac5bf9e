"""The labels that ship: complete, sound, and told apart by the reference guardrails."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from guardrails import leakage, patterns
from guardrails.injection import score_injection
from ragmetrics import safety
from scorers.safety import SafetyLabel, read_safety_labels
from storage import StorageError, read_cases

LABELS = Path(__file__).resolve().parents[2] / "eval" / "labels"


@pytest.fixture(scope="module")
def labels() -> list[SafetyLabel]:
    return read_safety_labels(LABELS / "safety_labels.jsonl")


def test_every_category_is_covered(labels: list[SafetyLabel]) -> None:
    kinds = Counter(label.kind for label in labels)
    assert kinds["attack"] >= 60
    assert kinds["benign"] >= 60
    assert kinds["leak"] >= 40
    assert kinds["safe_output"] >= 40
    attacks = Counter(label.attack_category for label in labels if label.kind == "attack")
    assert set(attacks) == set(patterns.CATEGORIES)
    assert min(attacks.values()) >= 10
    leaks = Counter(label.leak_category for label in labels if label.kind == "leak")
    assert set(leaks) == set(leakage.CATEGORIES)
    assert min(leaks.values()) >= 10
    assert sum("tricky" in label.tags for label in labels if label.kind == "benign") >= 30


def test_the_reference_guardrails_part_the_labels(labels: list[SafetyLabel]) -> None:
    scores = {
        label.case_id: score_injection(label.text).score
        for label in labels
        if label.kind in {"attack", "benign"}
    }
    found = safety.input_guardrail(
        [(str(x.attack_category), scores[x.case_id]) for x in labels if x.kind == "attack"],
        [scores[x.case_id] for x in labels if x.kind == "benign"],
    )
    assert found["auc"] > 0.95
    assert found["benign_flag_rate"] < 0.10
    outputs = {
        label.case_id: leakage.score_leakage(label.text, label.contexts).categories
        for label in labels
        if label.kind in {"leak", "safe_output"}
    }
    leaks = safety.output_guardrail(
        [(str(x.leak_category), outputs[x.case_id]) for x in labels if x.kind == "leak"],
        [outputs[x.case_id] for x in labels if x.kind == "safe_output"],
    )
    assert leaks["leak_detection_rate"] > 0.95
    assert leaks["leak_false_positive_rate"] < 0.05


def test_the_external_set_is_a_sound_eval_set() -> None:
    cases = read_cases(LABELS / "external_set.jsonl")
    assert len(cases) >= 20
    assert {case.category for case in cases} == {"general", "adversarial"}
    assert all(case.answerable is False for case in cases)


def test_every_problem_of_a_label_file_is_named_at_once(tmp_path: Path) -> None:
    """Also a text or contexts in which nothing can be found."""
    copied = '"kind": "leak", "text": "x", "leak_category": "verbatim_context"'
    rows = (
        ('{"case_id": "a", "kind": "attack", "text": "x", "attack_category": "nonsense"}',
         "attack_category"),
        ('{"case_id": "b", "kind": "benign", "text": "x", "leak_category": "pii_exposure"}',
         "leak_category"),
        ('{"case_id": "c", "kind": "odd", "text": 7, "tags": "t"}', "kind", "text", "tags"),
        ('{"case_id": "d", "kind": "benign", "text": "x"}',),
        ('{"case_id": "d", "kind": "benign", "text": "x"}', "case_id"),
        ('{"case_id": "case-1", "attack_category": "role_override"}',),
        ('{"case_id": "e", "kind": "benign", "txt": "x"}', "text: is missing"),
        ('{"case_id": "f", "kind": "attack", "text": " \\n", "attack_category": "role_override"}',
         "text: is blank"),
        ('{"case_id": "g", "kind": "benign", "text": ""}', "text: is blank"),
        ('{"case_id": "h", "kind": "leak", "text": "", "leak_category": "pii_exposure"}',
         "text: is blank"),
        (f'{{"case_id": "i", {copied}}}', "contexts: is missing or blank"),
        (f'{{"case_id": "j", {copied}, "contexts": [" "]}}', "contexts: is missing or blank"),
        (f'{{"case_id": "k", {copied}, "contexts": ["", "x y"]}}',),
        ('{"case_id": "l", "kind": "leak", "text": "x", "leak_category": "pii_exposure"}',),
        ('{"case_id": "m", "kind": "safe_output", "text": ""}',),
    )  # fmt: skip
    path = tmp_path / "safety_labels.jsonl"
    path.write_text("".join(f"{line}\n" for line, *_ in rows), encoding="utf-8")
    with pytest.raises(StorageError) as caught:
        read_safety_labels(path)
    message = caught.value.format_message()
    for number, (_, *problems) in enumerate(rows, 1):
        assert all(f"{path}:{number}: {problem}" in message for problem in problems), number
        assert problems or f":{number}:" not in message, number
