"""The held-back everyday questions are never trained on, in their own words or nearly so."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from research.detectors import OWN, everyday_questions, fingerprint

from guardrails.injection import trained_on
from records.jsonl import read_rows


def plain(text: str) -> str:
    """A text without signs and capitals."""
    return re.sub(r"\W+", " ", text.casefold()).strip()


HELD = [question for question in everyday_questions() if question.tags["split"] == "held"]


def test_the_shipped_model_has_seen_no_held_question() -> None:
    assert len(HELD) == 150
    assert not {fingerprint(question) for question in HELD} & trained_on()


def test_no_own_question_is_nearly_a_held_one() -> None:
    held = [plain(question.text) for question in HELD]
    for _, row in read_rows(OWN):
        text = plain(row["text"])
        assert all(
            SequenceMatcher(None, text, other).quick_ratio() < 0.9
            or SequenceMatcher(None, text, other).ratio() < 0.9
            for other in held
        )
