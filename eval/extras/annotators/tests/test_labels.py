"""Labels that are kept apart from the set: their file, the set beside it, and a sample."""

from __future__ import annotations

import json
from typing import Any

from tests.labeller.conftest import Files

from extras.annotators.labels import OwnLabels, sample
from labeller import marks

Record = dict[str, Any]


def test_a_second_annotator_is_kept_apart(files: Files) -> None:
    store, session = files.open()
    session.on_row(2, marks.toggle)
    session.confirm()
    store.close()
    before = files.path.read_bytes()
    store, session = files.open(OwnLabels("maria"))
    assert session.queue.summaries["a"].status == "open", "the first labels do not show"
    assert "gold_supports" not in session.ledger.case_of("a")
    assert "answerable" not in session.ledger.case_of("a")
    session.queue.goto("a")
    session.on_row(4, marks.toggle)
    session.confirm()
    store.save()
    assert files.path.read_bytes() == before
    judgement = json.loads((files.judgements / "maria.jsonl").read_text())
    assert judgement["gold_supports"][0]["rel_path"] == "guide/roles.md"
    assert judgement["answerable"] is True
    assert (files.path.parent / "eval_set.jsonl.maria.journal").exists()
    store.close()
    _, session = files.open(OwnLabels("maria"))
    assert session.ledger.case_of("a")["gold_supports"][0]["rel_path"] == "guide/roles.md"
    assert session.queue.summaries["a"].status == "labelled"


def test_two_annotators_can_work_at_once(files: Files) -> None:
    store, _ = files.open()
    other, _ = files.open(OwnLabels("maria"))
    assert (store.read_only, other.read_only) == ("", "")


def test_a_recheck_takes_whole_conversations() -> None:
    """One in four of 8 decided cases: 2, and the other turns of their conversations."""
    cases: list[Record] = [
        {"id": f"{talk}{turn}", "question": "?", "conversation": talk, "turn": turn}
        for talk in "abcd"
        for turn in (1, 2)
    ]
    decided = {case["id"]: case | {"answerable": False} for case in cases}
    for seed in range(5):
        chosen = sample(decided, {}, 25, seed)
        assert len(chosen) in (2, 4)
        assert all({f"{name[0]}1", f"{name[0]}2"} <= chosen for name in chosen)
