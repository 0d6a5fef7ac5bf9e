"""A run that is opened again: what stays, what is asked again, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

import storage
from storage import ResultsWriter, StorageError, TestResult


def result(case_id: str, repeat: int = 0, **fields: Any) -> TestResult:
    return TestResult(test_case_id=case_id, question="?", repeat=repeat, **fields)


def test_reopening_keeps_what_is_good_and_drops_a_torn_line(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, "run")
    writer.write_result(result("a"))
    writer.write_result(result("b", status="error", error=storage.ErrorInfo("timeout")))
    writer.close()
    with open(tmp_path / "run/results.partial.jsonl", "ab") as file:
        file.write(b'{"test_case_id":"c","quest')
    again = ResultsWriter(tmp_path, "run", resume=True)
    assert again.reopen(lambda r: r.status == "ok") == {("a", 0)}
    again.write_result(result("b"))
    found = [(r.test_case_id, r.status) for r in storage.iter_results(again.finish(["a", "b"]))]
    assert found == [("a", "ok"), ("b", "ok")]


def test_a_finished_run_is_reopened_only_for_what_is_dropped(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, "run")
    for case_id in "ab":
        writer.write_result(result(case_id))
    path = writer.finish("ab")
    again = ResultsWriter(tmp_path, "run", resume=True)
    assert again.reopen(lambda r: True) == {("a", 0), ("b", 0)}
    assert path.exists()
    assert again.finish("ab") == path
    assert len(list(storage.iter_results(path))) == 2
    third = ResultsWriter(tmp_path, "run", resume=True)
    assert third.reopen(lambda r: r.test_case_id == "a") == {("a", 0)}
    assert not path.exists()  # half a run must not look like a whole one


@each_row(
    ("line", "told"),
    [
        (b'{"test_case_id":7}\n', "not a result line"),
        (b'{"test_case_id":"c","schema":9}\n', "schema: this version reads schema 1"),
    ],
)
def test_a_line_that_is_no_result_is_refused_before_anything_is_asked(
    tmp_path: Path, line: bytes, told: str
) -> None:
    writer = ResultsWriter(tmp_path, "run")
    writer.write_result(result("a"))
    writer.close()
    partial = tmp_path / "run/results.partial.jsonl"
    with open(partial, "ab") as file:
        file.write(line)
    before = partial.read_bytes()
    again = ResultsWriter(tmp_path, "run", resume=True)
    with pytest.raises(StorageError, match=rf"results\.partial\.jsonl:2: .*{told}") as refused:
        again.reopen(lambda r: True)
    assert "delete the line: its case is asked again" in refused.value.message
    assert partial.read_bytes() == before


@each_row("finished", [False, True])
@each_row("damage", [b"\0", b"\xff", b"{"])
def test_what_a_damaged_line_held_is_asked_again(
    tmp_path: Path, damage: bytes, finished: bool
) -> None:
    writer = ResultsWriter(tmp_path, "run")
    for case_id in "abc":
        writer.write_result(result(case_id))
    path = tmp_path / "run" / ("results.jsonl" if finished else "results.partial.jsonl")
    if finished:
        writer.finish("abc")
    else:
        writer.close()
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damage * (len(second) - 1) + b"\n" + third)
    again = ResultsWriter(tmp_path, "run", resume=True)
    assert again.reopen(lambda r: True) == {("a", 0), ("c", 0)}
    assert again.damaged_lines == 1
    again.write_result(result("b"))
    assert [r.test_case_id for r in storage.iter_results(again.finish("abc"))] == ["a", "b", "c"]
    third_time = ResultsWriter(tmp_path, "run", resume=True)
    assert len(third_time.reopen(lambda r: True)) == 3
    assert third_time.damaged_lines == 0
