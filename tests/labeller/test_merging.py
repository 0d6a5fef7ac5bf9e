"""Others at work on the set: merging, conflicts, the lock."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from labeller import edits, marks
from labeller.supports import Needs
from terminal.actions import ActionRefused

if TYPE_CHECKING:
    from tests.labeller.conftest import Files

Record = dict[str, Any]


def test_changes_of_another_are_merged_by_case(files: Files) -> None:
    store, session = files.open()
    session.on_row(2, marks.toggle)
    other = [
        files.LINES[2],
        files.LINES[1].replace('"t"', '"other"'),
        files.LINES[0],
        '{"id": "d", "question": "4?"}',
    ]
    files.write(*other)
    assert store.save() == "saved"
    lines = files.lines()
    assert [lines[0], lines[1], lines[3]] == [other[0], other[1], other[3]]
    assert json.loads(lines[2])["gold_supports"]
    assert session.ledger.case_of("b")["tags"] == ["other"]
    assert "d" in session.queue
    assert store.conflicts == []


def test_a_conflict_is_never_overwritten(files: Files) -> None:
    store, session = files.open()
    session.revise(edits.edit, {"question": "Mine?"})
    session.queue.goto("b")
    session.revise(edits.edit, {"tags": ["mine"]})
    files.write(files.LINES[0].replace("First?", "Theirs?"), *files.LINES[1:])
    assert "1 in conflict" in store.save()
    (conflict,) = store.conflicts
    assert (conflict.case_id, conflict.fields) == ("a", ("question",))
    assert conflict.base == {"question": "First?"}
    assert conflict.mine == {"question": "Mine?"}
    assert conflict.theirs == {"question": "Theirs?"}
    assert files.case("a")["question"] == "Theirs?"
    assert files.case("b")["tags"] == ["mine"], "what is not in conflict is saved"
    assert session.ledger.case_of("a")["question"] == "Mine?", "and mine is not lost"


@pytest.mark.parametrize(("choice", "kept"), [("mine", "Mine?"), ("theirs", "Theirs?")])
def test_a_conflict_is_settled_by_choice(files: Files, choice: str, kept: str) -> None:
    store, session = files.open()
    session.revise(edits.edit, {"question": "Mine?"})
    session.revise(edits.edit, {"tags": ["also mine"]})
    files.write(files.LINES[0].replace("First?", "Theirs?"), *files.LINES[1:])
    store.save()
    store.resolve(store.conflicts[0], choice)
    assert store.conflicts == []
    store.save()
    assert files.case("a")["question"] == kept
    assert files.case("a")["tags"] == ["also mine"]
    assert session.ledger.case_of("a")["question"] == kept


def test_a_conflict_survives_a_kill(files: Files) -> None:
    store, session = files.open()
    session.revise(edits.edit, {"question": "Mine?"})
    files.write(files.LINES[0].replace("First?", "Theirs?"), *files.LINES[1:])
    store.save()
    files.kill(store)
    store, session = files.open()
    assert [conflict.case_id for conflict in store.conflicts] == ["a"]
    assert session.ledger.case_of("a")["question"] == "Mine?"
    assert files.case("a")["question"] == "Theirs?"


def test_a_case_deleted_elsewhere_and_changed_here(files: Files) -> None:
    store, session = files.open()
    session.revise(edits.edit, {"tags": ["mine"]})
    session.queue.goto("b")
    session.delete_case()
    files.write(files.LINES[1], files.LINES[2])
    store.save()
    (conflict,) = store.conflicts
    assert conflict.case_id == "a"
    assert conflict.theirs is None
    assert [json.loads(x)["id"] for x in files.lines() if x] == ["c"], "b was not changed there"
    store.resolve(conflict, "theirs")
    store.save()
    assert "a" not in session.queue
    assert [json.loads(x)["id"] for x in files.lines() if x] == ["c"]


def test_two_new_cases_with_one_id_wait_for_a_choice(files: Files) -> None:
    store, session = files.open()
    session.add_case("Mine?", id="new", tags=["m"])
    session.do(marks.add_support, "mine.md", "")
    theirs = '{"id": "new", "question": "Theirs?"}'
    files.write(*files.LINES, theirs)
    store.save()
    (conflict,) = store.conflicts
    assert (conflict.case_id, conflict.base) == ("new", None)
    assert conflict.theirs == {"question": "Theirs?"}
    assert theirs in files.lines()
    store.resolve(conflict, "theirs")
    store.save()
    assert files.case("new") == session.ledger.case_of("new") == json.loads(theirs)


def test_labels_of_the_file_come_without_the_decision_made_here(files: Files) -> None:
    """Enter would save the labels of the file as unanswerable."""
    store, session = files.open()
    session.do(edits.note, "mine")
    session.do(edits.unanswerable)
    theirs = json.loads(files.LINES[0]) | {"answerable": True, "gold_supports": [{"rel_path": "x"}]}
    files.write(json.dumps(theirs), *files.LINES[1:])
    store.save()
    store.resolve(store.conflicts[0], "theirs")
    session.queue.goto("a")
    assert session.judgement == {"note": "mine"}
    assert session.confirm().startswith("Saved as answerable.")


def test_labels_of_others_come_with_their_own_needs(files: Files) -> None:
    store, session = files.open()
    session.revise(edits.edit, {"tags": ["mine"]})
    session.open_need(0)
    theirs = json.loads(files.LINES[0]) | {"answerable": True, "gold_supports": [{"rel_path": "x"}]}
    files.write(json.dumps(theirs), *files.LINES[1:])
    store.save()
    assert (session.case["tags"], session.layout) == (["mine"], Needs(((0,),)))


def test_a_replayed_journal_is_merged_with_what_came_meanwhile(files: Files) -> None:
    store, session = files.open()
    session.on_row(2, marks.toggle)
    files.kill(store)
    files.write(files.LINES[0].replace("First?", "Better?"), *files.LINES[1:])
    store, session = files.open()
    assert session.case["question"] == "Better?"
    assert session.case["gold_supports"]
    store.save()
    assert files.case("a")["question"] == "Better?"


def test_what_a_killed_save_had_written_is_no_change_of_others(files: Files) -> None:
    # Three sessions: one is killed between writing the files and telling the journal so, the next
    # before it saves. The journal then goes from None over "one" to "two", the files hold "one".
    store, session = files.open()
    session.do(edits.note, "one")
    session.revise(edits.edit, {"tags": ["one"]})
    store._reload(session.ledger)
    store._write(session.ledger)
    files.kill(store)
    store, session = files.open()
    session.do(edits.note, "two")
    session.revise(edits.edit, {"tags": ["two"]})
    files.kill(store)
    store, session = files.open()
    assert store.conflicts == []
    assert session.judgement["note"] == "two"
    assert session.case["tags"] == ["two"]


def test_the_second_session_is_read_only_and_names_the_first(files: Files) -> None:
    _, first = files.open()
    store, second = files.open()
    assert f"process {os.getpid()}" in store.read_only
    assert store.read_only in second.ledger.read_only
    with pytest.raises(ActionRefused, match="Read-only"):
        second.do(edits.flag)
    assert "Read-only" in store.save()
    first.do(edits.flag)
    assert len(files.journal.read_bytes().splitlines()) == 1
