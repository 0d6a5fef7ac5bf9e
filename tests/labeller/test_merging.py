"""Others at work on the set: merging, clashes, the lock."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from labeller import edits, marks
from records.files import SetLock
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
    assert store.clashes == []


def test_different_fields_of_one_case_are_merged(files: Files) -> None:
    store, session = files.open()
    session.on_row(2, marks.toggle)
    files.write(files.LINES[0].replace("First?", "First, better?"), *files.LINES[1:])
    store.save()
    case = files.case("a")
    assert case["question"] == "First, better?"
    assert case["gold_supports"]


def backups(files: Files) -> list[str]:
    """All that backups hold."""
    return [path.read_text() for path in sorted(files.path.parent.rglob("*.bak"))]


def test_what_both_changed_stays_as_it_is_here_and_a_backup_keeps_the_other(files: Files) -> None:
    store, session = files.open()
    session.revise(edits.edit, {"question": "Mine?", "tags": ["mine"]})
    session.do(edits.note, "mine")
    files.write(files.LINES[0].replace("First?", "Theirs?"), *files.LINES[1:])
    files.judgements.mkdir(parents=True)
    (files.judgements / "gold.jsonl").write_text('{"case_id": "a", "note": "theirs"}\n')
    clash = "a: question, judgement changed here and in the file: yours stays, a backup beside"
    assert store.save().startswith(f"saved; {clash}")
    assert (files.case("a")["question"], files.case("a")["tags"]) == ("Mine?", ["mine"])
    assert session.judgement["note"] == "mine"
    old_set, old_labels = backups(files)
    assert '"Theirs?"' in old_set
    assert '"theirs"' in old_labels
    assert store.save() == "saved already", "it is said once"
    assert store.close().startswith(clash), "and at the end"


def test_a_clash_survives_a_kill(files: Files) -> None:
    store, session = files.open()
    session.revise(edits.edit, {"question": "Mine?"})
    files.write(files.LINES[0].replace("First?", "Theirs?"), *files.LINES[1:])
    files.kill(store)
    store, session = files.open()
    assert any("a: question changed here and in the file" in text for text in store.notices)
    assert session.ledger.case_of("a")["question"] == "Mine?"
    assert files.case("a")["question"] == "Theirs?", "nothing was saved yet"
    store.save()
    assert any('"Theirs?"' in text for text in backups(files))


def test_a_case_deleted_on_one_side_and_changed_on_the_other(files: Files) -> None:
    store, session = files.open()
    session.revise(edits.edit, {"tags": ["mine"]})
    session.queue.goto("b")
    session.delete_case()
    files.write(files.LINES[1].replace('"t"', '"theirs"'), files.LINES[2])
    said = store.save()
    assert "a: tags changed here" in said
    assert "b: tags changed here" in said
    assert [json.loads(x)["id"] for x in files.lines() if x] == ["a", "c"]
    assert '"theirs"' in backups(files)[0]


def test_of_two_new_cases_with_one_id_the_other_is_in_the_backup(files: Files) -> None:
    store, session = files.open()
    session.add_case("Mine?", id="new", tags=["m"])
    files.write(*files.LINES, '{"id": "new", "question": "Theirs?"}')
    assert "new: question changed here" in store.save()
    assert files.case("new") == {"id": "new", "question": "Mine?", "tags": ["m"]}
    assert '"Theirs?"' in backups(files)[0]


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
    store._reload()
    store._write(session.ledger)
    files.kill(store)
    store, session = files.open()
    session.do(edits.note, "two")
    session.revise(edits.edit, {"tags": ["two"]})
    files.kill(store)
    store, session = files.open()
    assert store.clashes == []
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


def test_the_lock_is_free_again_after_closing(tmp_path: Path) -> None:
    one, two = SetLock(tmp_path / "x"), SetLock(tmp_path / "x")
    assert one.take("a", "now")
    assert not two.take("b", "now")
    assert two.holder.startswith("a on ")
    one.release()
    assert two.take("b", "now")
    two.release()
