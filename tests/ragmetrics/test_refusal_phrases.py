"""The phrases of all languages are the patterns that were tuned, whatever file they stand in."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tests.rows import each_row

from ragmetrics.abstention import detect
from ragmetrics.text import refusals
from ragmetrics.text.refusal_phrases import phrases
from ragmetrics.text.refusals import _phrases_of, _supposed
from records.jsonl import read_rows

TUNED = "0acda40c601f2930897e3185af15900d25ee6ce607d5ee215cfa2d17c21ae5f8"
"""SHA-256 of the patterns as JSON, as they were when they still were strings of the module. Who
changes a pattern on purpose measures again (bench/research/languages.py) and puts the new hash."""


def test_the_compiled_patterns_are_the_tuned_ones() -> None:
    search, first_lack, _ = _phrases_of(*phrases())
    patterns = [search._patterns, first_lack, [_supposed(code).pattern for code in phrases()]]
    assert hashlib.sha256(json.dumps(patterns).encode()).hexdigest() == TUNED


def test_every_language_has_all_three_kinds() -> None:
    assert len(phrases()) == 19
    assert all(own.refusal and own.lack and own.when for own in phrases().values())


@each_row(
    "answer",
    [
        "Nie znalazłem tej informacji w dokumencie The Guide and the Rules.",
        "Dazu steht nichts in den Unterlagen zu Lord of the Rings and the Hobbit.",
        "Dat staat niet in de documenten van The Game and the Box.",
        "Lo siento, no encuentro esa información en la guía This and That for You.",
    ],
)
def test_an_english_title_does_not_switch_off_the_phrases_of_the_answer_s_language(
    answer: str,
) -> None:
    assert detect(answer).abstained


def test_phrases_are_chosen_by_language_without_changing_a_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each answer of the blind lists, alone and with an English title behind it."""
    folder = Path(__file__).resolve().parents[2] / "bench" / "research" / "blind"
    rows = [row for path in sorted(folder.glob("*/*.jsonl")) for _, row in read_rows(path)]
    answers = [row["answer"] for row in rows if "answer" in row]
    answers += [f"{answer} The Guide and the Rules for You." for answer in answers]
    assert len(answers) > 1_000

    def states() -> list[str]:
        refusals.declines.cache_clear()
        return [detect(answer).state for answer in answers]

    found = states()
    monkeypatch.setattr(refusals, "_is_english", lambda folded: False)
    assert found == states()
    refusals.declines.cache_clear()


@each_row(
    ("answer", "state"),
    [
        ("Exchange rates lie outside the texts that I can open.", "abstained"),
        ("The brochure is quiet on parking.", "abstained"),
        ("I lack the price list, so could you ring the shop?", "abstained"),
        ("Does the guide not mention a price?", "answered"),
        ("Zur Gebühr trifft das Merkblatt keine Aussage.", "abstained"),
        ("Der Aufzug steht Ihnen nicht zur Verfügung.", "answered"),
        ("Maalesef bu ürün iade edilemez.", "answered"),
        ("很抱歉，本店不接受现金付款。", "answered"),
    ],
)
def test_a_lack_is_said_of_sources_and_a_question_says_none(answer: str, state: str) -> None:
    assert detect(answer).state == state
