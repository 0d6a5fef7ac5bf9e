"""Files of a session: untouched bytes, backups, judgements, the second annotator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from labeller import edits, marks
from terminal.actions import ActionRefused

if TYPE_CHECKING:
    from tests.labeller.conftest import Files

Record = dict[str, Any]


def test_unknown_keys_of_a_labelled_case_are_kept_whatever_they_hold(files: Files) -> None:
    mine: dict[str, Any] = {
        "C:\\notes": 1,
        'say "x"': None,
        "\x1b]0;T\x07": [2.5],
        "\0\t\x9b": "\x1b[31m",
        "": {},
    }
    files.write(json.dumps({"id": "a", "question": "First?"} | mine))
    store, session = files.open()
    session.queue.goto("a")
    session.on_row(2, marks.toggle)
    assert store.save() == "saved"
    case = files.case("a")
    assert len(case["gold_supports"]) == 1
    assert {key: case[key] for key in mine} == mine


def test_bom_crlf_blank_and_broken_lines_stay(files: Files) -> None:
    twice = '{"id": "a", "question": "twice"}'
    lines = [files.LINES[0], "", "not json", twice, "   ", files.LINES[1]]
    data = b"\xef\xbb\xbf" + "\r\n".join(lines).encode()
    files.path.write_bytes(data)
    store, session = files.open()
    assert session.queue.visible == ["a", "b"]
    assert any(":3:" in notice for notice in store.notices)
    assert any("earlier line" in notice for notice in store.notices)
    session.queue.goto("b")
    session.do(edits.flag)
    session.do(edits.note, "n")
    store.save()
    assert files.path.read_bytes() == data, "a flag is no field of the set"
    session.revise(edits.edit, {"tags": ["u"]})
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
    before = (end or b"\n").join(line.encode() for line in files.LINES) + end
    files.path.write_bytes(before)
    store, session = files.open()
    session.queue.goto("c")
    session.on_row(2, marks.toggle)
    session.confirm()
    session.queue.goto("a")
    session.delete_case()
    session.queue.goto("c")
    session.add_case("New?")
    store.save()
    assert files.path.read_bytes() != before
    assert files.path.read_bytes().endswith(b'"New?"}' + end)
    while session.ledger.history.done:
        session.undo()
    store.save()
    assert files.path.read_bytes() == before


def test_big_numbers_and_surrogates_survive(files: Files) -> None:
    line = '{"id": "a", "question": "?", "n": 123456789012345678901234567890, "f": 0.1}'
    files.write(line)
    store, session = files.open()
    session.revise(edits.edit, {"tags": ["t"]})
    store.save()
    assert files.lines()[0] == line[:-1] + ', "tags": ["t"]}'
    with pytest.raises(ActionRefused, match="surrogate"):
        session.revise(edits.edit, {"question": "half \ud800"})


def test_the_file_mode_and_a_link_stay(files: Files, tmp_path: Path) -> None:
    real = tmp_path / "real.jsonl"
    files.path.rename(real)
    files.path.symlink_to(real)
    real.chmod(0o640)
    store, session = files.open()
    session.revise(edits.edit, {"tags": ["t"]})
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
        '{"id": "first", "question": "First?"}\n{"id": "second", "question": "Second?"}\n'
    )


def test_one_backup_a_session_ten_kept(files: Files, tmp_path: Path) -> None:
    first = files.path.read_bytes()
    for n in range(12):
        old = tmp_path / f"eval_set.jsonl.202001{n + 1:02d}-000000.bak"
        old.write_bytes(b"old")
    store, session = files.open()
    for tag in ("s", "t", "u"):
        session.revise(edits.edit, {"tags": [tag]})
        store.save()
    copies = sorted(tmp_path.glob("*.bak"))
    assert len(copies) == 10
    assert copies[-1].read_bytes() == first
    assert [copy.read_bytes() for copy in copies[:-1]] == [b"old"] * 9


def test_what_is_no_field_of_the_set_goes_to_the_judgements(files: Files) -> None:
    store, session = files.open()
    session.do(edits.flag)
    session.see(1)
    session.on_row(2, marks.toggle)
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
    assert session.queue.summaries["a"].flagged
    assert session.queue.summaries["a"].status == "labelled"
