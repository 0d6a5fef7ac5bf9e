"""A verdicts.jsonl that grows is read once: later only what has come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.verdict_files import add_verdicts

from records import verdicts
from records.verdicts import VerdictReader


def add(path: Path, *case_ids: str, run: str = "r1") -> None:
    """Add a judgement of each case, of one judging of the run."""
    judgement: dict[str, Any] = {
        "metric": "abstained_judged",
        "status": "not_applicable",
        "reason": "no answer",
        "prompt": {"name": "abstention", "sha256": "ab"},
        "judge": {},
        "judging_runs": [run],
        "input": {"contexts": [{"id": "c1", "text": "A long passage."}]},
    }
    add_verdicts(path, [judgement | {"case_id": case_id} for case_id in case_ids])


def ids(reader: VerdictReader) -> list[str]:
    return [record["case_id"] for record in reader.read()]


def test_lines_that_were_read_are_not_read_again(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "verdicts.jsonl"
    reader = VerdictReader(path)
    assert ids(reader) == [], "there is no file yet"
    add(path, "a", "b")
    assert ids(reader) == ["a", "b"]
    size = path.stat().st_size
    offsets: list[Any] = []
    read_lines = verdicts.read_lines

    def noted(path: Path, *, at: Any = None, **more: Any) -> Any:
        offsets.append(at)
        return read_lines(path, at=at, **more)

    monkeypatch.setattr(verdicts, "read_lines", noted)
    add(path, "c")
    assert ids(reader) == ["a", "b", "c"]
    assert offsets == [[size]], "only the line that has come"
    assert reader.read()[0]["input"]["contexts"][0].keys() == {"id", "sha256"}, (
        "no texts of passages"
    )


def test_a_line_that_is_still_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    add(path, "a", "b")
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    reader = VerdictReader(path)
    assert ids(reader) == ["a"]
    path.write_bytes(whole)
    assert ids(reader) == ["a", "b"]


def test_what_is_withdrawn_meanwhile_goes(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    add(path, "a")
    add(path, "b", run="r2")
    reader = VerdictReader(path)
    assert ids(reader) == ["a", "b"]
    with open(path, "a") as file:
        file.write(
            json.dumps({"withdrawn": "r1", "reason": "another model"}, separators=(",", ":"))
        )
        file.write("\n")
    add(path, "c", run="r2")
    assert ids(reader) == ["b", "c"]
