"""Files of a session: untouched bytes, journal, replay, merge, lock, trouble with the disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import storage
from label_store.cases import identify_case
from label_store.document import Document
from label_store.journal import Journal
from label_store.lock import SetLock
from label_store.merge import merge
from label_store.store import LabelStore
from labeller.model import Chunk, Refused, Session

Record = dict[str, Any]
LINES = (
    '{"id": "a", "question": "First?", "x_owner": {"z": 1, "a": [1.50, 2e3]}, "answerable": null}',
    '{"id":"b","question":"Zweite \\u00fc?","tags":["t"]}',
    '{ "id" : "c",  "question": "Third \\u2028 line?" }',
)


class Files:
    """A folder with a set, and the sessions on it."""

    def __init__(self, folder: Path, clock: Callable[[], float], chunks: tuple[Chunk, ...]) -> None:
        self.path = folder / "eval_set.jsonl"
        self.judgements = folder / "labels" / "judgements"
        self.journal = folder / "eval_set.jsonl.journal"
        self._clock, self._chunks = clock, chunks
        self._open: list[LabelStore] = []

    def write(self, *lines: str, end: str = "\n") -> bytes:
        data = "".join(line + end for line in lines).encode()
        self.path.write_bytes(data)
        return data

    def open(self, annotator: str | None = None, **options: Any) -> tuple[LabelStore, Session]:
        store = LabelStore(
            self.path,
            self.judgements,
            now=self._clock,
            annotator=annotator or "gold",
            second=annotator is not None,
            **options,
        )
        self._open.append(store)
        session = Session(store.records, store.judgements, **store.session_options())
        for brief in session.briefs():
            session.set_chunks(brief.id, self._chunks)
        store.attach(session)
        session.set_row_order("path")
        return store, session

    def kill(self, store: LabelStore) -> None:
        """What a killed process leaves: no save, the lock let go of by the system."""
        store._lock.release()
        store._journal.close()
        self._open.remove(store)

    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").split("\n")

    def case(self, case_id: str) -> Record:
        found = {json.loads(x)["id"]: json.loads(x) for x in self.lines() if x.strip()}
        record: Record = found[case_id]
        return record

    def close(self) -> None:
        for store in self._open:
            self.kill(store) if store._session is None else store.close()


@pytest.fixture
def files(tmp_path: Path, clock: Callable[[], float], chunks: tuple[Chunk, ...]) -> Iterator[Files]:
    made = Files(tmp_path, clock, chunks)
    made.write(*LINES)
    yield made
    made.close()


# -- bytes -------------------------------------------------------------------------------------


def test_only_the_touched_line_changes(files: Files) -> None:
    store, session = files.open()
    session.goto("b")
    session.toggle(2)
    assert store.save() == "saved"
    lines = files.lines()
    assert lines[0] == LINES[0]
    assert lines[2] == LINES[2]
    assert lines[1].startswith(
        '{"id":"b","question":"Zweite \\u00fc?","tags":["t"],"gold_supports":['
    )
    storage.read_cases(files.path)


def test_bom_crlf_blank_and_broken_lines_stay(files: Files) -> None:
    data = (
        b"\xef\xbb\xbf"
        + "\r\n".join(
            [LINES[0], "", "not json", '{"id": "a", "question": "twice"}', "   ", LINES[1]]
        ).encode()
    )
    files.path.write_bytes(data)
    store, session = files.open()
    assert [brief.id for brief in session.briefs()] == ["a", "b"]
    assert any(":3:" in notice for notice in store.notices)
    assert any("earlier line" in notice for notice in store.notices)
    session.goto("b")
    session.flag()
    session.note("n")
    store.save()
    assert files.path.read_bytes() == data, "a flag is no field of the set"
    session.edit({"tags": ["u"]})
    session.add_case("New?")
    store.save()
    after = files.path.read_bytes().split(b"\r\n")
    assert after[:5] == data.split(b"\r\n")[:5]
    assert after[5] == b'{"id":"b","question":"Zweite \\u00fc?","tags":["u"]}'
    assert json.loads(after[6])["question"] == "New?"
    assert not data.endswith(b"\n")
    assert len(after) == 7, "the file ended without a newline, and still does"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_undo_after_saving_gives_the_first_bytes_back(files: Files, end: bytes) -> None:
    before = (end or b"\n").join(line.encode() for line in LINES) + end
    files.path.write_bytes(before)
    store, session = files.open()
    session.goto("c")
    session.toggle(2)
    session.confirm()
    session.goto("a")
    session.delete_case()
    session.goto("c")
    session.add_case("New?")
    store.save()
    assert files.path.read_bytes() != before
    assert files.path.read_bytes().endswith(b'"New?"}' + end)
    while session.can_undo:
        session.undo()
    store.save()
    assert files.path.read_bytes() == before


def test_big_numbers_and_surrogates_survive(files: Files) -> None:
    line = '{"id": "a", "question": "?", "n": 123456789012345678901234567890, "f": 0.1}'
    files.write(line)
    store, session = files.open()
    session.edit({"tags": ["t"]})
    store.save()
    assert files.lines()[0] == line[:-1] + ', "tags": ["t"]}'
    with pytest.raises(Refused, match="surrogate"):
        session.edit({"question": "half \ud800"})


def test_the_file_mode_and_a_link_stay(files: Files, tmp_path: Path) -> None:
    real = tmp_path / "real.jsonl"
    files.path.rename(real)
    files.path.symlink_to(real)
    real.chmod(0o640)
    store, session = files.open()
    session.edit({"tags": ["t"]})
    store.save()
    assert files.path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert b'"t"' in real.read_bytes()


def test_an_empty_set_can_be_begun(files: Files) -> None:
    files.path.write_bytes(b"")
    store, session = files.open()
    session.add_case("First?")
    session.add_case("Second?")
    store.save()
    assert files.path.read_text() == (
        '{"id": "q-0001", "question": "First?"}\n{"id": "q-0002", "question": "Second?"}\n'
    )


def test_a_missing_set_is_refused(tmp_path: Path, clock: Callable[[], float]) -> None:
    with pytest.raises(storage.StorageError, match=r"no such file.*--eval-set"):
        LabelStore(tmp_path / "none.jsonl", tmp_path, now=clock)


# -- backup ------------------------------------------------------------------------------------


def test_one_backup_a_session_ten_kept(files: Files, tmp_path: Path) -> None:
    first = files.path.read_bytes()
    for n in range(12):
        old = tmp_path / f"eval_set.jsonl.202001{n + 1:02d}-000000.bak"
        old.write_bytes(b"old")
    store, session = files.open()
    for tag in ("s", "t", "u"):
        session.edit({"tags": [tag]})
        store.save()
    copies = sorted(tmp_path.glob("*.bak"))
    assert len(copies) == 10
    assert copies[-1].read_bytes() == first
    assert [copy.read_bytes() for copy in copies[:-1]] == [b"old"] * 9


# -- the journal -------------------------------------------------------------------------------


def test_a_killed_session_is_replayed_and_says_so(files: Files) -> None:
    before = files.path.read_bytes()
    store, session = files.open()
    session.toggle(2)
    session.confirm()
    session.flag()
    wanted = session.state()
    files.kill(store)
    assert files.path.read_bytes() == before
    store, session = files.open()
    assert any("2 cases brought back" in notice for notice in store.notices)
    assert session.state() == wanted
    assert session.current == "b", "the case last worked on, while it is open"
    session.undo()
    session.undo()
    assert session.brief("a").status == "open", "undo survives the kill"
    store.save()
    files.kill(store)
    store, session = files.open()
    assert store.notices == []


def test_a_torn_last_line_is_left_out(files: Files) -> None:
    store, session = files.open()
    session.toggle(2)
    session.flag()
    files.kill(store)
    data = files.journal.read_bytes()
    files.journal.write_bytes(data[:-20])
    store, session = files.open()
    assert any("cut short" in notice for notice in store.notices)
    assert session.case["gold_supports"]
    assert not session.brief("a").flagged
    session.note("goes on")
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
    session.toggle(2)
    files.kill(store)
    with open(files.journal, "ab") as file:
        file.write(junk + b"\n")
    store, session = files.open()
    assert any("1 lines of the journal cannot be read" in notice for notice in store.notices)
    assert session.case["gold_supports"]
    assert files.journal.read_bytes().endswith(junk + b"\n"), "nothing is taken out"


def test_events_say_who_when_and_what(files: Files) -> None:
    _, session = files.open()
    session.toggle(2)
    event = json.loads(files.journal.read_bytes())
    assert event["by"] == "gold"
    assert event["at"].endswith("Z")
    assert (event["action"], event["case"], event["n"]) == ("toggle", "a", 1)
    assert event["before"]["case"] == json.loads(LINES[0])
    assert event["after"]["case"]["gold_supports"]


def test_a_saved_journal_is_read_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("label_store.journal.TAIL", 400)
    journal = Journal(tmp_path / "j")
    entry = {"case": {"id": "a"}, "judgement": {}, "letter": "A"}
    for n in range(1, 51):
        event = {"n": n, "action": "flag", "case": "a", "before": entry, "after": entry}
        journal.append(event)
        if n == 48:
            journal.append({"action": "saved", "at": "x", "by": "gold"})
    saved, unsaved, bad = journal.read()
    assert [event["n"] for event in unsaved] == [49, 50]
    assert bad == 0
    assert len(saved) < 48


# -- others at work ----------------------------------------------------------------------------


def test_changes_of_another_are_merged_by_case(files: Files) -> None:
    store, session = files.open()
    session.toggle(2)
    other = [
        LINES[2],
        LINES[1].replace('"t"', '"other"'),
        LINES[0],
        '{"id": "d", "question": "4?"}',
    ]
    files.write(*other)
    assert store.save() == "saved"
    lines = files.lines()
    assert [lines[0], lines[1], lines[3]] == [other[0], other[1], other[3]]
    assert json.loads(lines[2])["gold_supports"]
    assert session.case_of("b")["tags"] == ["other"]
    assert session.knows("d")
    assert store.conflicts == []


def test_different_fields_of_one_case_are_merged(files: Files) -> None:
    store, session = files.open()
    session.toggle(2)
    files.write(LINES[0].replace("First?", "First, better?"), *LINES[1:])
    store.save()
    case = files.case("a")
    assert case["question"] == "First, better?"
    assert case["gold_supports"]


def test_a_conflict_is_never_overwritten(files: Files) -> None:
    store, session = files.open()
    session.edit({"question": "Mine?"})
    session.goto("b")
    session.edit({"tags": ["mine"]})
    files.write(LINES[0].replace("First?", "Theirs?"), *LINES[1:])
    assert "1 in conflict" in store.save()
    (conflict,) = store.conflicts
    assert (conflict.case_id, conflict.fields) == ("a", ("question",))
    assert conflict.base == {"question": "First?"}
    assert conflict.mine == {"question": "Mine?"}
    assert conflict.theirs == {"question": "Theirs?"}
    assert files.case("a")["question"] == "Theirs?"
    assert files.case("b")["tags"] == ["mine"], "what is not in conflict is saved"
    assert session.case_of("a")["question"] == "Mine?", "and mine is not lost"


@pytest.mark.parametrize(("choice", "kept"), [("mine", "Mine?"), ("theirs", "Theirs?")])
def test_a_conflict_is_settled_by_choice(files: Files, choice: str, kept: str) -> None:
    store, session = files.open()
    session.edit({"question": "Mine?"})
    session.edit({"tags": ["also mine"]})
    files.write(LINES[0].replace("First?", "Theirs?"), *LINES[1:])
    store.save()
    store.resolve(store.conflicts[0], choice)
    assert store.conflicts == []
    store.save()
    assert files.case("a")["question"] == kept
    assert files.case("a")["tags"] == ["also mine"]
    assert session.case_of("a")["question"] == kept


def test_a_conflict_survives_a_kill(files: Files) -> None:
    store, session = files.open()
    session.edit({"question": "Mine?"})
    files.write(LINES[0].replace("First?", "Theirs?"), *LINES[1:])
    store.save()
    files.kill(store)
    store, session = files.open()
    assert [conflict.case_id for conflict in store.conflicts] == ["a"]
    assert session.case_of("a")["question"] == "Mine?"
    assert files.case("a")["question"] == "Theirs?"


def test_a_case_deleted_elsewhere_and_changed_here(files: Files) -> None:
    store, session = files.open()
    session.edit({"tags": ["mine"]})
    session.goto("b")
    session.delete_case()
    files.write(LINES[1], LINES[2])
    store.save()
    (conflict,) = store.conflicts
    assert conflict.case_id == "a"
    assert conflict.theirs is None
    assert [json.loads(x)["id"] for x in files.lines() if x] == ["c"], "b was not changed there"
    store.resolve(conflict, "theirs")
    store.save()
    assert not session.knows("a")
    assert [json.loads(x)["id"] for x in files.lines() if x] == ["c"]


def test_two_new_cases_with_one_id_are_both_kept(files: Files) -> None:
    files.write('{"id": "q-1", "question": "First?"}')
    store, session = files.open()
    session.add_case("Mine?")
    assert session.current == "q-2"
    theirs = '{"id": "q-2", "question": "Theirs?"}'
    files.write('{"id": "q-1", "question": "First?"}', theirs)
    store.save()
    assert store.conflicts == []
    assert theirs in files.lines()
    assert files.case("q-3")["question"] == "Mine?"
    assert any("yours is q-3 now" in notice for notice in store.notices)
    assert session.case_of("q-2")["question"] == "Theirs?"


def test_labels_are_merged_as_one(files: Files) -> None:
    base = {"id": "a", "answerable": True, "gold_supports": [{"rel_path": "x"}]}
    mine = {**base, "gold_supports": []}
    theirs = {**base, "answerable": False}
    merged, fields = merge(base, mine, theirs)
    assert fields == ("answerable", "gold_supports")
    assert merged == mine
    assert merge(base, base, theirs) == (theirs, ())
    assert merge(base, mine, mine) == (mine, ())
    assert merge(None, mine, None) == (mine, ())
    assert merge(base, None, base) == (None, ())


def test_a_replayed_journal_is_merged_with_what_came_meanwhile(files: Files) -> None:
    store, session = files.open()
    session.toggle(2)
    files.kill(store)
    files.write(LINES[0].replace("First?", "Better?"), *LINES[1:])
    store, session = files.open()
    assert session.case["question"] == "Better?"
    assert session.case["gold_supports"]
    store.save()
    assert files.case("a")["question"] == "Better?"


def test_what_a_killed_save_had_written_is_no_change_of_others(files: Files) -> None:
    # Three sessions: one is killed between writing the files and telling the journal so, the next
    # before it saves. The journal then goes from None over "one" to "two", the files hold "one".
    store, session = files.open()
    session.note("one")
    session.edit({"tags": ["one"]})
    store._reload()
    store._write(session)
    files.kill(store)
    store, session = files.open()
    session.note("two")
    session.edit({"tags": ["two"]})
    files.kill(store)
    store, session = files.open()
    assert store.conflicts == []
    assert session.judgement["note"] == "two"
    assert session.case["tags"] == ["two"]


def test_the_second_session_is_read_only_and_names_the_first(files: Files) -> None:
    _, first = files.open()
    store, second = files.open()
    assert f"process {os.getpid()}" in store.read_only
    assert store.read_only in second.read_only
    with pytest.raises(Refused, match="Read-only"):
        second.flag()
    assert "Read-only" in store.save()
    first.flag()
    assert len(files.journal.read_bytes().splitlines()) == 1


def test_the_lock_is_free_again_after_closing(tmp_path: Path) -> None:
    one, two = SetLock(tmp_path / "x"), SetLock(tmp_path / "x")
    assert one.take("a", "now")
    assert not two.take("b", "now")
    assert two.holder.startswith("a on ")
    one.release()
    assert two.take("b", "now")
    two.release()


# -- trouble -----------------------------------------------------------------------------------


def test_a_read_only_set_keeps_labels_in_the_journal(files: Files) -> None:
    files.path.chmod(0o444)
    before = files.path.read_bytes()
    store, session = files.open()
    assert "read-only" in store.problem
    session.edit({"tags": ["t"]})
    assert "NOT SAVED" in store.save()
    assert files.path.read_bytes() == before
    assert session.case["tags"] == ["t"]
    assert session.dirty
    files.path.chmod(0o644)
    assert store.save() == "saved"
    assert store.problem == ""
    assert files.case("a")["tags"] == ["t"]


def test_a_failed_save_leaves_the_set_and_is_made_up_for(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files.path.read_bytes()
    store, session = files.open()
    session.edit({"tags": ["t"]})

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert "No space left" in store.save()
    assert files.path.read_bytes() == before
    assert session.dirty
    # Another process changes the set before the disk has room again.
    files.write(LINES[0], LINES[1].replace('"t"', '"other"'), LINES[2])
    assert store.save() == "saved"
    assert files.case("a")["tags"] == ["t"]
    assert files.case("b")["tags"] == ["other"]


def test_a_full_disk_for_the_journal_is_said_and_made_up_for(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, session = files.open()
    session.flag()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        session.note("one")
        session.note("two")
        assert "No space left" in store.problem
    assert len(files.journal.read_bytes().splitlines()) == 1, "no half lines"
    session.note("three")
    assert store.problem == ""
    events = [json.loads(line) for line in files.journal.read_bytes().splitlines()]
    assert [event["n"] for event in events] == [1, 2, 3, 4]


@pytest.mark.parametrize("left", [None, b"", b"\n"])
def test_a_set_that_vanished_is_no_deletion_of_its_cases(files: Files, left: bytes | None) -> None:
    store, session = files.open()
    session.edit({"tags": ["t"]})
    data = files.path.read_bytes()
    files.path.unlink()
    if left is not None:
        files.path.write_bytes(left)
    for _ in range(2):
        assert "the set was removed or emptied; what is here is kept in" in store.save()
        assert store.problem
        assert "make an empty one" not in store.problem
        assert not store.conflicts
        assert [brief.id for brief in session.briefs()] == ["a", "b", "c"]
        assert (files.path.read_bytes() if files.path.exists() else None) == left
    (backup,) = files.path.parent.glob("*.bak")
    assert backup.name in store.problem
    assert backup.read_bytes() == data
    backup.replace(files.path)
    assert store.save() == "saved"
    assert files.case("a")["tags"] == ["t"]
    assert not store.problem


# -- judgements and the second annotator -------------------------------------------------------


def test_what_is_no_field_of_the_set_goes_to_the_judgements(files: Files) -> None:
    store, session = files.open()
    session.flag()
    session.see(1)
    session.toggle(2)
    session.confirm()
    store.save()
    (line,) = (files.judgements / "gold.jsonl").read_text().splitlines()
    judgement = json.loads(line)
    assert judgement["case_id"] == "a"
    assert judgement["flag"] is True
    assert [row["grade"] for row in judgement["rows"]] == [0, 2, None, None, None]
    assert "gold_supports" not in judgement
    files.kill(store)
    _, session = files.open()
    assert session.brief("a").flagged
    assert session.brief("a").status == "labelled"


def test_a_second_annotator_is_kept_apart(files: Files) -> None:
    store, session = files.open()
    session.toggle(2)
    session.confirm()
    store.close()
    before = files.path.read_bytes()
    store, session = files.open("maria")
    assert session.brief("a").status == "open", "the first labels do not show"
    assert "gold_supports" not in session.case_of("a")
    assert "answerable" not in session.case_of("a")
    session.goto("a")
    session.toggle(4)
    session.confirm()
    store.save()
    assert files.path.read_bytes() == before
    judgement = json.loads((files.judgements / "maria.jsonl").read_text())
    assert judgement["gold_supports"][0]["rel_path"] == "guide/roles.md"
    assert judgement["answerable"] is True
    assert (files.path.parent / "eval_set.jsonl.maria.journal").exists()
    store.close()
    _, session = files.open("maria")
    assert session.case_of("a")["gold_supports"][0]["rel_path"] == "guide/roles.md"
    assert session.brief("a").status == "labelled"


def test_two_annotators_can_work_at_once(files: Files) -> None:
    store, _ = files.open()
    other, _ = files.open("maria")
    assert (store.read_only, other.read_only) == ("", "")


def test_nothing_is_written_when_only_looking(files: Files, tmp_path: Path) -> None:
    store, _ = files.open(writing=False)
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["eval_set.jsonl"]


def test_a_document_is_patched_line_by_line() -> None:
    document = Document(
        b'{"id": "a", "question": "?"}\n\n{"id": "b", "question": "?"}', identify_case
    )
    document.patch({"a": None}, ["b"])
    assert document.render() == b'\n{"id": "b", "question": "?"}'
    document.patch({"a": {"id": "a", "question": "?"}}, ["a", "b"])
    assert document.render() == b'{"id": "a", "question": "?"}\n\n{"id": "b", "question": "?"}'
    document.patch({"c": {"id": "c", "question": "é"}}, ["c", "a", "b"])
    assert document.render().startswith('{"id": "c", "question": "é"}\n{"id": "a"'.encode())
