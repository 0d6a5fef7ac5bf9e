"""A verdicts.jsonl that grows is read once: later only what has come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from records import verdicts
from records.verdicts import VerdictReader


def line(case_id: str, **changes: Any) -> str:
    record: dict[str, Any] = {
        "schema": 1,
        "case_id": case_id,
        "repeat": 0,
        "metric": "abstained_judged",
        "judge_repeat": 0,
        "parts": 1,
        "status": "not_applicable",
        "reason": "no answer",
        "failure": None,
        "prompt": {"name": "abstention", "sha256": "ab"},
        "judge": {},
        "judging_runs": ["r1"],
        "input": {"contexts": [{"id": "c1", "text": "A long passage."}]},
        "verdicts": [],
        "extra": {},
    }
    return json.dumps(record | changes) + "\n"


def ids(reader: VerdictReader) -> list[str]:
    return [record["case_id"] for record in reader.read()]


def test_lines_that_were_read_are_not_read_again(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "verdicts.jsonl"
    reader = VerdictReader(path)
    assert ids(reader) == [], "there is no file yet"
    path.write_text(line("a") + line("b"))
    assert ids(reader) == ["a", "b"]
    offsets: list[Any] = []
    read_lines = verdicts.read_lines

    def noted(path: Path, *, at: Any = None, **more: Any) -> Any:
        offsets.append(at)
        return read_lines(path, at=at, **more)

    monkeypatch.setattr(verdicts, "read_lines", noted)
    with open(path, "a") as file:
        file.write(line("c"))
    assert ids(reader) == ["a", "b", "c"]
    assert offsets == [[len(line("a") + line("b"))]], "only the line that has come"
    assert reader.read()[0]["input"] == {"contexts": [{"id": "c1"}]}, "no texts of passages"


def test_a_line_that_is_still_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    whole = line("b")
    path.write_text(line("a") + whole[:40])
    reader = VerdictReader(path)
    assert ids(reader) == ["a"]
    path.write_text(line("a") + whole)
    assert ids(reader) == ["a", "b"]


def test_what_is_withdrawn_meanwhile_goes(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    path.write_text(line("a") + line("b", judging_runs=["r2"]))
    reader = VerdictReader(path)
    assert ids(reader) == ["a", "b"]
    with open(path, "a") as file:
        file.write(
            json.dumps({"withdrawn": "r1", "reason": "another model"}, separators=(",", ":"))
        )
        file.write("\n" + line("c", judging_runs=["r2"]))
    assert ids(reader) == ["b", "c"]
