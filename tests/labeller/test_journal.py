"""The journal: replay after a kill, torn and malformed lines; trouble with the disk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.labeller.conftest import snapshot

from labeller import edits, marks
from records.journal import Journal

if TYPE_CHECKING:
    from tests.labeller.conftest import Files

Record = dict[str, Any]


def test_a_killed_session_is_replayed_and_says_so(files: Files) -> None:
    before = files.path.read_bytes()
    store, session = files.open()
    session.on_row(2, marks.toggle)
    session.confirm()
    session.do(edits.flag)
    wanted = snapshot(session)
    files.kill(store)
    assert files.path.read_bytes() == before
    store, session = files.open()
    assert any("2 cases brought back" in notice for notice in store.notices)
    assert snapshot(session) == wanted
    assert session.current == "b", "the case last worked on, while it is open"
    session.undo()
    session.undo()
    assert session.queue.summaries["a"].status == "open", "undo survives the kill"
    store.save()
    files.kill(store)
    store, session = files.open()
    assert store.notices == []


def test_the_case_last_worked_on_is_opened_while_it_is_open(files: Files) -> None:
    for change, opened in ((edits.flag, "c"), (edits.unanswerable, "a")):
        store, session = files.open()
        session.queue.goto("c")
        session.do(change)
        if change is edits.unanswerable:
            session.confirm()
        files.kill(store)
        store, session = files.open()
        assert session.current == opened
        store.close()


def test_a_torn_last_line_is_left_out(files: Files) -> None:
    store, session = files.open()
    session.on_row(2, marks.toggle)
    session.do(edits.flag)
    files.kill(store)
    data = files.journal.read_bytes()
    files.journal.write_bytes(data[:-20])
    store, session = files.open()
    assert any("incomplete" in notice for notice in store.notices)
    assert session.case["gold_supports"]
    assert not session.queue.summaries["a"].flagged
    session.do(edits.note, "goes on")
    events = [json.loads(line) for line in files.journal.read_bytes().splitlines()]
    assert [event["action"] for event in events] == ["toggle", "note"]


@pytest.mark.parametrize(
    "junk",
    [
        b"\x00\x00\x00",
        b"[]",
        b'{"action": 5}',
        b'{"action": "toggle", "n": 1}',
        b'{"action": "toggle", "n": 1, "case": "a", "before": 7, "after": []}',
        b'{"action": "toggle", "n": 1, "case": "a", "after": {"case": 1}}',
        b"\xff\xfe",
    ],
)
def test_malformed_journal_lines_are_passed_over(files: Files, junk: bytes) -> None:
    store, session = files.open()
    session.on_row(2, marks.toggle)
    files.kill(store)
    with open(files.journal, "ab") as file:
        file.write(junk + b"\n")
    store, session = files.open()
    assert any("1 line of the journal cannot be read" in notice for notice in store.notices)
    assert session.case["gold_supports"]
    assert files.journal.read_bytes().endswith(junk + b"\n"), "nothing is taken out"


def test_events_say_who_when_and_what(files: Files) -> None:
    _, session = files.open()
    session.on_row(2, marks.toggle)
    event = json.loads(files.journal.read_bytes())
    assert event["by"] == "gold"
    assert event["at"].endswith("Z")
    assert (event["action"], event["case"], event["n"]) == ("toggle", "a", 1)
    assert event["before"]["case"] == json.loads(files.LINES[0])
    assert event["after"]["case"]["gold_supports"]


def test_a_saved_journal_is_read_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("records.journal.TAIL", 400)
    journal = Journal(tmp_path / "j")
    entry = {"case": {"id": "a"}, "judgement": {}, "needs": None}
    for n in range(1, 51):
        event = {"n": n, "action": "flag", "case": "a", "before": entry, "after": entry}
        journal.append(event)
        if n == 48:
            journal.append({"action": "saved", "at": "x", "by": "gold"})
    saved, unsaved, bad = journal.read()
    assert [event["n"] for event in unsaved] == [49, 50]
    assert bad == 0
    assert len(saved) < 48


def test_a_read_only_set_keeps_labels_in_the_journal(files: Files) -> None:
    files.path.chmod(0o444)
    before = files.path.read_bytes()
    store, session = files.open()
    assert "read-only" in store.problem
    session.revise(edits.edit, {"tags": ["t"]})
    assert "NOT SAVED" in store.save()
    assert files.path.read_bytes() == before
    assert session.case["tags"] == ["t"]
    assert session.ledger.dirty
    files.path.chmod(0o644)
    assert store.save() == "saved"
    assert store.problem == ""
    assert files.case("a")["tags"] == ["t"]


def test_a_failed_save_leaves_the_set_and_is_made_up_for(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files.path.read_bytes()
    store, session = files.open()
    session.revise(edits.edit, {"tags": ["t"]})

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert "No space left" in store.save()
    assert files.path.read_bytes() == before
    assert session.ledger.dirty
    # Another process changes the set before the disk has room again.
    files.write(files.LINES[0], files.LINES[1].replace('"t"', '"other"'), files.LINES[2])
    assert store.save() == "saved"
    assert files.case("a")["tags"] == ["t"]
    assert files.case("b")["tags"] == ["other"]


def test_a_full_disk_for_the_journal_is_said_and_made_up_for(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, session = files.open()
    session.do(edits.flag)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        session.do(edits.note, "one")
        session.do(edits.note, "two")
        assert "No space left" in store.problem
    assert len(files.journal.read_bytes().splitlines()) == 1, "no half lines"
    session.do(edits.note, "three")
    assert store.problem == ""
    events = [json.loads(line) for line in files.journal.read_bytes().splitlines()]
    assert [event["n"] for event in events] == [1, 2, 3, 4]


@pytest.mark.parametrize("left", [None, b"", b"\n"])
def test_a_set_that_vanished_is_no_deletion_of_its_cases(files: Files, left: bytes | None) -> None:
    store, session = files.open()
    session.revise(edits.edit, {"tags": ["t"]})
    data = files.path.read_bytes()
    files.path.unlink()
    if left is not None:
        files.path.write_bytes(left)
    for _ in range(2):
        assert "the set was removed or emptied; its last state is in" in store.save()
        assert store.problem
        assert "create an empty file" not in store.problem
        assert not store.conflicts
        assert session.queue.visible == ["a", "b", "c"]
        assert (files.path.read_bytes() if files.path.exists() else None) == left
    (backup,) = files.path.parent.glob("*.bak")
    assert backup.name in store.problem
    assert backup.read_bytes() == data
    backup.replace(files.path)
    assert store.save() == "saved"
    assert files.case("a")["tags"] == ["t"]
    assert not store.problem
