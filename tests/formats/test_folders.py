"""A folder of traces: its files are read together, what is no trace is counted, nothing ends so."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.formats.test_golden_traces import FOLDER

CELL = "langgraph_prebuilt.{}.jsonl.gz"


def lines_of(name: str) -> list[bytes]:
    return gzip.decompress((FOLDER / CELL.format(name)).read_bytes()).splitlines(keepends=True)


@pytest.mark.parametrize(("kind", "name"), [("otel", "openinference"), ("langsmith", "langsmith")])
def test_traces_in_parts_are_read_as_in_one_file(desk: Any, kind: str, name: str) -> None:
    """Every other line in another file, one of them packed and one a folder deeper, so that no
    trace is whole in one of them."""
    lines = lines_of(name)
    desk.take(kind, desk.file("whole.jsonl", b"".join(lines)), out="whole")
    desk.file("traces/a.jsonl", b"".join(lines[::2]))
    desk.file("traces/deeper/b.jsonl.gz", gzip.compress(b"".join(lines[1::2])))
    desk.file("traces/.hidden.jsonl", "no json")
    desk.file("traces/notes.txt", "of the collector")
    report = desk.take(kind, str(desk.folder / "traces"), out="parts")
    for read in (lambda run, out: desk.cases(out), desk.results):
        parts, together = read("traces", "parts"), read("whole", "whole")
        assert sorted(map(json.dumps, parts)) == sorted(map(json.dumps, together))
    assert report["left_out"]["files with other endings"] == 1


def test_a_file_without_spans_in_a_folder_is_counted(desk: Any) -> None:
    desk.file("traces/a.jsonl", b"".join(lines_of("openinference")))
    desk.rows("traces/b.jsonl", [{"level": "info", "message": "started"}])
    report = desk.take("otel", str(desk.folder / "traces"))
    assert report["left_out"]["files without spans"] == 1
    assert len(desk.cases()) == 5


def test_a_folder_of_which_nothing_can_be_read_says_what_was_found(desk: Any) -> None:
    folder = str(desk.folder / "traces")
    desk.rows("traces/b.jsonl", [{"level": "info", "message": "started"}])
    desk.file("traces/c.json", json.dumps({"level": "info"}))
    said = desk.refused("otel", folder)
    assert "no trace can be read. Files: 2." in said
    assert "level, message" in said
    for path in Path(folder).iterdir():
        path.unlink()
    desk.file("traces/notes.txt", "of the collector")
    for kind in ("otel", "langfuse", "langsmith"):
        assert "other files: 1" in desk.refused(kind, folder)
