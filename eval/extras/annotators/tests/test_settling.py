"""Labels of a second annotator, and settling the differences: choices, refusals, the set."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.labeller.conftest import FakeStore, Files, Lines
from tests.labeller.conftest import lines as lines

from extras.annotators.labels import OwnLabels, sample
from extras.annotators.settling import Settling
from labeller import marks
from labeller.session import Session
from records.errors import StorageError
from terminal.actions import ActionRefused

OURS, OWNER = 2, 4


def settling_of(session: Session, theirs: dict[str, Any]) -> Settling:
    """The session beside the labels of b."""
    store = FakeStore()
    store.others = {"b": theirs}
    return Settling(session, store)


def test_adjudication(session: Session) -> None:
    session.on_row(OURS, marks.toggle)
    session.on_row(OURS, marks.grade, 3)
    theirs = {
        "answerable": True,
        "gold_supports": [
            {"rel_path": "guide/retention.md", "heading_path": "Plans > Free", "grade": 1},
            {"rel_path": "guide/roles.md", "heading_path": "Roles > Owners"},
        ],
        "required_support_groups": [[0], [1]],
    }
    settling = settling_of(session, {"q-0001": theirs})
    first, second = settling.disagreements("b")
    assert (first.a, first.b) == ("need 1, grade 3", "need 1, grade 1")
    assert (second.a, second.b) == ("not marked", "need 1")
    assert second.row is not None
    assert second.row.number == OWNER
    with pytest.raises(ActionRefused, match="2 not chosen"):
        settling.adjudicated("b")
    settling.adjudicate("b", 0, "union")
    settling.adjudicate("b", 1, "b")
    assert [item.choice for item in settling.disagreements("b")] == ["union", "b"]
    supports = session.case["gold_supports"]
    assert [support.get("grade") for support in supports] == [3, None]
    assert session.case["required_support_groups"] == [[0], [1]]
    settling.adjudicate("b", 1, "neither")
    assert len(session.case["gold_supports"]) == 1
    settling.adjudicated("b")
    assert session.queue.summaries["q-0001"].status == "labelled"
    session.queue.goto("q-0002")
    with pytest.raises(ActionRefused, match="has not labelled"):
        settling.disagreements("b")


def test_line_mode_lists_chooses_and_confirms(lines: Lines) -> None:
    lines.store.others = {"b": {"q-0001": {"gold_supports": [{"rel_path": "faq.md"}]}}}
    said = lines.do("D", "D b", "D b x b", "D b 1 b", "D b done", "D c")
    assert "annotators: b" in said
    assert "1 faq.md: A not marked, B need 1; ?" in said
    assert "Write the number of the disagreement." in said
    assert "q-0001 is settled with b" in said
    assert "There are no labels of c here." in said
    assert lines.session.ledger.case_of("q-0001")["gold_supports"] == [{"rel_path": "faq.md"}]
    assert "D NAME [N CHOICE|done]" in lines.do("?")


def test_a_pool_of_judged_rows_and_what_is_put_off_are_no_labels(session: Session) -> None:
    pool = {"q-0001": {"case_id": "q-0001", "rows": [{"key": "k", "grade": 0}]}}
    assert settling_of(session, pool).others == {}
    later = {"q-0001": {"decision": "skipped", "confirmed": False}}
    assert settling_of(session, later).others == {}


def test_a_file_that_cannot_be_read_refuses(session: Session) -> None:
    class Store:
        @property
        def others(self) -> dict[str, Any]:
            raise StorageError("b.jsonl: cannot be read.")

    with pytest.raises(ActionRefused, match=r"b\.jsonl: cannot be read\."):
        Settling(session, Store())  # type: ignore[arg-type]


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
