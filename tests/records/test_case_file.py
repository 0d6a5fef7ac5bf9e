"""A set that is read again whenever a case is needed gives what a set in memory gives."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from records.case_file import CaseFile
from records.errors import StorageError
from records.labels import read_cases
from records.runs import ResultsWriter

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "Où ?", "tags": ["x"]},
    {"case_id": "b", "query": "Other names?", "unknown": 1},
    {"id": "c", "question": "With labels?", "gold_supports": [{"rel_path": "n.md"}]},
    {"id": "d", "question": "First?", "conversation": "t", "turn": 1},
    {"id": "e", "question": "Second?", "conversation": "t", "turn": 2},
]


def lines(rows: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(row, ensure_ascii=False) for row in rows]


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    folder = tmp_path / "labels"
    folder.mkdir()
    label = {"case_id": "c", "relevant_docs": ["n.md"], "user_roles": ["admin"]}
    (folder / "retrieval_labels.jsonl").write_text(json.dumps(label) + "\n")
    return folder


def one_file(folder: Path) -> Path:
    path = folder / "set.jsonl"
    path.write_text("\n \n".join(lines(ROWS)) + "\n", "utf-8")
    return path


def without_last_line_end(folder: Path) -> Path:
    path = folder / "set.jsonl"
    path.write_text("\n".join(lines(ROWS)), "utf-8")
    return path


@pytest.mark.parametrize("make", [one_file, without_last_line_end])
def test_it_gives_the_cases_of_the_set(
    tmp_path: Path, labels: Path, make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path)
    expected = read_cases(path, labels)
    assert expected[2].user_roles == ["admin"]
    with CaseFile(path, labels) as cases:
        assert list(cases) == expected
        assert list(cases) == expected  # again
        assert [cases[n] for n in (4, 0, -2)] == [expected[n] for n in (4, 0, -2)]
        assert cases[1:3] == expected[1:3]
        assert cases.ids == ["a", "b", "c", "d", "e"]
        part = cases.only({"e", "b"})
        assert (len(part), part.ids, list(part)) == (2, ["b", "e"], [expected[1], expected[4]])
        with pytest.raises(IndexError):
            part[2]


def test_a_set_that_takes_its_place_changes_nothing(tmp_path: Path) -> None:
    """An editor or the labeller puts a new file there while the bot is asked."""
    path = one_file(tmp_path)
    expected = read_cases(path)
    with CaseFile(path) as cases:
        other = tmp_path / "other"
        other.write_text('{"id": "z", "question": "?"}\n')
        os.replace(other, path)
        assert list(cases) == expected


@pytest.mark.parametrize("change", ["question", "cut"])
def test_a_set_that_is_changed_itself_is_an_error(tmp_path: Path, change: str) -> None:
    path = one_file(tmp_path)
    with CaseFile(path) as cases:
        text = path.read_text("utf-8")
        path.write_text(text.replace("First?", "Third?") if change == "question" else text[:20])
        with pytest.raises(StorageError, match="was changed while its cases were being asked"):
            list(cases)


def test_every_problem_is_reported_as_for_a_set_in_memory(tmp_path: Path, labels: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text('{"id": "a"}\n{"id": "b", "question": "?"}\n{"id": "b", "question": "?"}\n')
    told = []
    for read in (CaseFile, read_cases):
        with pytest.raises(StorageError) as caught:
            read(path, labels)
        told.append(caught.value.message)
    path.write_text('{"id": "a", "question": "?"}\n')  # the labels are those of another case
    for read in (CaseFile, read_cases):
        with pytest.raises(StorageError, match=r"'c' is not in .*set\.jsonl") as caught:
            read(path, labels)
        told.append(caught.value.message)
    assert told[0] == told[1]
    assert told[2] == told[3]


def peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_an_id_and_two_offsets_a_case(tmp_path: Path) -> None:
    """Also where the finished results are put in order. 400 bytes a case are 40 MB at 100,000."""
    peaks = []
    for count in (1_000, 11_000):
        path = tmp_path / f"{count}.jsonl"
        ids = [f"q{number:07}" for number in range(count)]
        rows = [{"id": name, "question": f"What is {name}?" * 4} for name in ids]
        path.write_text("".join(line + "\n" for line in lines(rows)))
        writer = ResultsWriter(tmp_path, f"run-{count}")
        writer.folder.mkdir(exist_ok=True)
        partial = writer.folder / "results.partial.jsonl"
        partial.write_text("".join(f'{{"test_case_id": "{name}"}}\n' for name in reversed(ids)))

        def work(path: Path = path, writer: ResultsWriter = writer) -> None:
            with CaseFile(path) as cases:
                assert sum(1 for _ in cases) == len(cases)
                writer.finish(cases.ids)

        peaks.append(peak(work))
    assert (peaks[1] - peaks[0]) / 10_000 < 300
