"""Drafted conversations: follow-ups that need what came before, each with its whole question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demo.draft_templates import question_on
from demo.drafts import DraftOptions, write_drafts
from judging.connect import JudgeOptions
from labeller.session import Session
from labeller.worklist import is_draft
from records.labels import read_cases
from storage import StorageError

CRANE = """# Crane

A crane is a kind of machine that people rent. It is used to lift very heavy things.

## Winch

A winch is a kind of drum that winds up a rope.
"""
MIXER = """# Mixer

A mixer is a kind of machine that stirs concrete. A mixer contains a drum with some blades. The
price of a mixer is about 300 euros in most shops.
"""


def draft(tmp_path: Path, *, judge: str = "local", count: int = 10) -> list[dict[str, Any]]:
    vault = tmp_path / "vault"
    vault.mkdir(exist_ok=True)
    (vault / "crane.md").write_text(CRANE)
    (vault / "mixer.md").write_text(MIXER)
    target = tmp_path / "talks.jsonl"
    options = DraftOptions(
        str(vault), None, count, target, None, 0, JudgeOptions(judge=judge), conversations=True
    )
    return write_drafts(options).cases


def test_a_sentence_on_it_gives_a_question_with_a_pronoun_and_a_whole_one() -> None:
    use = "It is used to lift very heavy things."
    whole = ("use", "What is it used for?", "What is a crane used for?")
    assert question_on(use, "a crane", by_pronoun=True) == whole
    assert question_on(use, "a crane", by_pronoun=False) is None, "who knows what it is"
    named = "A crane is used to lift very heavy things."
    assert question_on(named, "a crane", by_pronoun=False) == whole
    many = "They are used to lift very heavy things."
    assert question_on(many, "cranes", by_pronoun=True) == (
        "use",
        "What are they used for?",
        "What are cranes used for?",
    )
    assert question_on("A mixer contains a drum.", "a crane", by_pronoun=True) is None


def test_a_conversation_has_a_pronoun_an_ellipsis_and_an_open_end(tmp_path: Path) -> None:
    draft(tmp_path)
    cases = read_cases(tmp_path / "talks.jsonl", None)
    talks: dict[str | None, list[tuple[str, str | None]]] = {}
    for case in cases:
        talks.setdefault(case.conversation, []).append((case.question, case.question_alone))
    (turns,) = (turns for turns in talks.values() if turns[0][0] == "What is a mixer?")
    # the sentence behind the first one begins with the subject; the notes on mixers tell a price
    assert turns[:2] == [
        ("What is a mixer?", None),
        ("What does it contain?", "What does a mixer contain?"),
    ]
    texts = [question for turns in talks.values() for question, _ in turns]
    assert any(question.startswith("And a ") for question in texts)
    last = [turns[-1] for turns in talks.values()]
    assert all(("it" in question) for question, _ in last)
    assert ("What does it cost?", "What does a mixer cost?") not in last
    for case in cases:
        assert case.tags == ["draft"]
        assert (case.standalone is False) == (case.turn != 1) == bool(case.question_alone)
        assert bool(case.gold_supports) == bool(case.answerable)
    unanswerable = [case for case in cases if case.answerable is False]
    assert {case.turn for case in unanswerable} <= {3, 4}
    assert len(unanswerable) == len(talks)


def test_drafted_turns_are_accepted_by_the_key_of_other_drafts(tmp_path: Path) -> None:
    records = {record["id"]: record for record in draft(tmp_path)}
    session = Session(records, {}, record=lambda event: None, now=lambda: 0.0)
    for case_id in list(records):
        session.goto(case_id)
        assert is_draft(session.case)
        assert session.confirm().done
        assert not is_draft(session.case_of(case_id))


def test_conversations_are_drafted_without_a_judge(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="leave --judge out"):
        draft(tmp_path, judge="http://127.0.0.1:9")
    assert not (tmp_path / "talks.jsonl").exists()
