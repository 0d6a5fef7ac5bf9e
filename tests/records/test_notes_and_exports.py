"""Notes on cases, and files that people take out of a run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from records.errors import StorageError
from records.exports import csv_table, json_lines, set_lines, write_new
from records.labels import read_cases
from records.notes import CaseNote, notes_file, own_note, read_notes, write_note


def test_notes_are_kept_line_by_line_and_read_beside_those_of_annotators(tmp_path: Path) -> None:
    eval_set, labels = tmp_path / "eval_set.jsonl", tmp_path / "labels"
    eval_set.write_text('{"id": "a", "question": "?"}\n')
    (labels / "judgements").mkdir(parents=True)
    (labels / "judgements" / "maria.jsonl").write_text(
        '{"case_id": "a", "note": "two readings", "rows": []}\n'
        '{"case_id": "b", "reason": "cannot be told", "flag": true}\n'
        '{"case_id": "c", "rows": []}\n'
    )
    path = notes_file(eval_set, labels)
    path.parent.mkdir()
    path.write_text('{"case_id": "z",  "note": "mine"}\nno JSON\n')
    write_note(eval_set, labels, "a", CaseNote("wrong chunk", True, run="k10"), "2026-01-02T03:04Z")
    write_note(eval_set, labels, "q", CaseNote("goes"), "2026-01-02T03:04Z")
    write_note(eval_set, labels, "q", CaseNote(" "), "2026-01-02T03:04Z")
    # a new line stands behind the last case; what was not touched keeps its bytes
    assert path.read_text() == (
        '{"case_id": "z",  "note": "mine"}\n'
        '{"case_id": "a", "note": "wrong chunk", "flag": true, "run": "k10", '
        '"at": "2026-01-02T03:04Z"}\nno JSON\n'
    )
    problems: list[str] = []
    notes = read_notes(eval_set, labels, problems.append)
    assert {case_id: [note.line() for note in of_case] for case_id, of_case in notes.items()} == {
        "z": ["mine"],
        "a": ["flagged: wrong chunk", "maria: two readings"],
        "b": ["maria, flagged: cannot be told"],
    }
    assert own_note(notes["b"]) == CaseNote("")
    assert [problem.startswith(f"{path}:3: ") for problem in problems] == [True]
    with pytest.raises(StorageError, match="--labels-dir"):
        write_note(eval_set, None, "a", CaseNote("x"), "")


def test_a_table_opens_in_a_spreadsheet_and_no_cell_is_a_formula() -> None:
    rows: list[dict[str, object]] = [
        {"id": "=1+1", "tags": ["a", "b"], "n": -0.5, "ok": True},
        {"id": "x\ny,z"},
    ]
    data = b"".join(csv_table(["id", "tags", "n", "ok"], rows))
    assert data.startswith(b"\xef\xbb\xbf")
    table = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert table[1:] == [["'=1+1", "a; b", "-0.5", "yes"], ["x\ny,z", "", "", ""]]
    assert table[0] == ["id", "tags", "n", "ok"]


def test_an_export_overwrites_nothing_and_leaves_no_half_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    assert write_new(path, json_lines([{"a": 1}, {"a": 2}])) == 2
    with pytest.raises(StorageError, match="exists already"):
        write_new(path, [b"other"])
    assert path.read_bytes() == b'{"a":1}\n{"a":2}\n'

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise StorageError("gone")

    with pytest.raises(StorageError, match="gone"):
        write_new(tmp_path / "second", broken())
    with pytest.raises(StorageError, match="cannot be written"):
        write_new(tmp_path / "no" / "folder", [])
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_new_set_holds_the_labels_of_label_files_too(tmp_path: Path) -> None:
    path, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    old.write_text('{"case_id": "a", "query": "Why?"}\n')
    labels = {"a": {"forbidden_claims": ["never"]}}
    write_new(path, set_lines(old, labels, ["a"]))
    with pytest.raises(StorageError, match=r"b: .*old\.jsonl does not hold this case"):
        list(set_lines(old, labels, ["b"]))
    (case,) = read_cases(path, None)
    assert (case.id, case.question, case.forbidden_claims) == ("a", "Why?", ["never"])
