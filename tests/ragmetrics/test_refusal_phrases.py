"""The phrases of all languages are the patterns that were tuned, whatever file they stand in."""

from __future__ import annotations

import hashlib
import json

from ragmetrics.text.refusal_phrases import phrases
from ragmetrics.text.refusals import _phrases_of, _supposed

TUNED = "1d6174e605a8f98aa119954aebe0119a989e66709b087e45f4b9a3d329203ca2"
"""SHA-256 of the patterns as JSON, as they were when they still were strings of the module. Who
changes a pattern on purpose measures again (bench/research/languages.py) and puts the new hash."""


def test_the_compiled_patterns_are_the_tuned_ones() -> None:
    search, refusals, _ = _phrases_of(*phrases())
    patterns = [search._patterns, refusals, [_supposed(code).pattern for code in phrases()]]
    assert hashlib.sha256(json.dumps(patterns).encode()).hexdigest() == TUNED


def test_parts_gaps_and_broken_lines_are_put_in() -> None:
    german = phrases()["de"]
    gap = r"(?:[^\s.!?;:]+ ){0,8}?"
    negation = r"(?:nicht|nichts|kein(?:e|en|em|er|es|erlei)?|weder|niemals|nirgend\w*)"
    start = r"\bich (?:\w+ )?(?:kann|könnte|konnte|darf|möchte|werde|vermag|will) "
    assert rf"{start}{gap}{negation}\b" in german.refusal
    every = [text for own in phrases().values() for text in (*own.refusal, *own.lack, own.when)]
    assert not any("\n" in text or "{SOURCE}" in text or text != text.strip() for text in every)


def test_every_language_has_all_three_kinds() -> None:
    assert len(phrases()) == 19
    assert all(own.refusal and own.lack and own.when for own in phrases().values())
