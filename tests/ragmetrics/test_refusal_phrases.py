"""The phrases of all languages are the patterns that were tuned, whatever file they stand in."""

from __future__ import annotations

import hashlib
import json

from ragmetrics.text.refusal_phrases import phrases
from ragmetrics.text.refusals import _lacks, _refusals, _supposed

TUNED = "1c0dce7cdff6895eb88d3964c80484a84e7b7919937098ec2afe0708911f8eea"
"""SHA-256 of the patterns as JSON, as they were when they still were strings of the module. Who
changes a pattern on purpose measures again (bench/research/languages.py) and puts the new hash."""


def test_the_compiled_patterns_are_the_tuned_ones() -> None:
    patterns = [_refusals()._patterns, _lacks()._patterns, _supposed().pattern]
    assert hashlib.sha256(json.dumps(patterns).encode()).hexdigest() == TUNED


def test_parts_gaps_and_broken_lines_are_put_in() -> None:
    german = phrases()["de"]
    gap = r"(?:[^\s.!?;:]+ ){0,8}?"
    negation = r"(?:nicht|nichts|kein(?:e|en|em|er|es|erlei)?|weder|niemals|nirgend\w*)"
    start = r"\bich (?:\w+ )?(?:kann|könnte|konnte|darf|möchte|werde|vermag|will) "
    assert german.refusal[3] == rf"{start}{gap}{negation}\b"
    every = [text for own in phrases().values() for text in (*own.refusal, *own.lack, own.when)]
    assert not any("\n" in text or "{SOURCE}" in text or text != text.strip() for text in every)


def test_every_language_has_all_three_kinds() -> None:
    assert len(phrases()) == 16
    assert all(own.refusal and own.lack and own.when for own in phrases().values())
