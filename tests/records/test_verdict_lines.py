"""What verdicts.jsonl holds of a judgement, and what its readers get."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from tests.verdict_files import add_verdicts

from records import verdicts
from records.errors import StorageError
from records.files import locked
from records.verdict_lines import VerdictWriter, drop_damage, text_sha256
from records.verdicts import VerdictReader, read_lines

JUDGE = {"provider": "local", "model": "support", "strength": "code"}


def judged(case_id: str, **changes: Any) -> dict[str, Any]:
    """A line as judging makes it, with all that was sent."""
    said = {"id": "1", "context": "c1", "quote": "30 days", "reason": "", "verdict": "supported"}
    line: dict[str, Any] = {
        **{"case_id": case_id, "repeat": 0, "metric": "groundedness", "judge_repeat": 0},
        **{"part": 0, "parts": 1, "status": "ok", "reason": None, "failure": None},
        "prompt": {"name": "groundedness", "version": 2, "sha256": "p1"},
        **{"key": "k1", "cached": False, "subject": "s1", "made_of": "m1"},
        "input": {
            **{"question": "How long?", "answer": "30 days."},
            "contexts": [{"id": "c1", "chunk_id": "x", "text": "It takes 30 days."}],
            "claims": [{"id": "1", "text": "30 days.", "span": [0, 8]}],
        },
        "messages": [{"role": "user", "content": "How long?"}],
        **{"raw": "{}", "verdicts": [said], "mode": "local"},
        "extra": {"mark": "m", "notes": "", "manipulation": False},
        "usage": {"prompt_tokens": 3, "total_tokens": None},
        **{"cost_usd": None, "asks": 1, "judging_runs": [], "judge": JUDGE, "parameters": {}},
    }
    return line | changes


def write(path: Path, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    with VerdictWriter(path) as writer:
        for line in lines:
            writer.write(line)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_holds_what_was_decided_and_no_text_that_stands_elsewhere(tmp_path: Path) -> None:
    setting, line = write(tmp_path / "verdicts.jsonl", judged("a"))
    assert setting.pop("setting") == line.pop("setting")
    prompt = {"name": "groundedness", "version": 2, "sha256": "p1"}
    assert setting == {"judge": JUDGE, "parameters": {}, "prompt": prompt}
    assert line == {
        **{"schema": 2, "case_id": "a", "metric": "groundedness", "key": "k1", "subject": "s1"},
        "made_of": "m1",
        "input": {
            "claims": [{"id": "1", "text": "30 days.", "span": [0, 8]}],
            "contexts": [{"id": "c1", "chunk_id": "x", "sha256": text_sha256("It takes 30 days.")}],
            "answer_sha256": text_sha256("30 days."),
        },
        "verdicts": [{"id": "1", "context": "c1", "quote": "30 days", "verdict": "supported"}],
        "extra": {"mark": "m", "manipulation": False},
        **{"mode": "local", "usage": {"prompt_tokens": 3}, "asks": 1},
    }


def test_who_judged_is_said_once_and_again_for_another(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    other = judged("c", judge=JUDGE | {"model": "large"})
    assert [*map(kind, write(path, judged("a"), judged("b")))] == ["setting", "a", "b"]
    lines = write(path, judged("b"), other)
    assert [*map(kind, lines)] == ["setting", "a", "b", "b", "setting", "c"]
    assert [line["judge"]["model"] for line in read_lines(path)] == ["support"] * 3 + ["large"]


def kind(line: dict[str, Any]) -> str:
    return str(line.get("case_id", "setting"))


def test_a_reader_that_goes_on_knows_who_judged_before(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    write(path, judged("a"))
    reader = VerdictReader(path)
    assert [line["judge"] for line in reader.read()] == [JUDGE]
    write(path, judged("b"))
    assert [line["judge"] for line in reader.read()] == [JUDGE] * 2


def test_a_line_whose_judge_nobody_says_is_named(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    write(path, judged("a"))
    path.write_text(path.read_text().splitlines(keepends=True)[1])
    told = "1: setting: no line of the file describes the judge of"
    with pytest.raises(StorageError, match=told):
        list(read_lines(path))


def test_verdicts_go_with_the_line_on_who_judged_that_a_power_cut_took(tmp_path: Path) -> None:
    """A hole in the first of two settings takes its two verdicts with it, and no other."""
    path = tmp_path / "verdicts.jsonl"
    write(path, judged("a"), judged("b"), judged("c", judge=JUDGE | {"model": "large"}))
    whole = path.read_bytes()
    assert drop_damage(path) == 0
    assert path.read_bytes() == whole
    first, rest = whole.split(b"\n", 1)
    path.write_bytes(b"\0" * len(first) + b"\n" + rest)
    assert drop_damage(path) == 3
    assert [line["case_id"] for line in read_lines(path)] == ["c"]


def test_damage_is_taken_out_under_the_lock_that_writers_take(tmp_path: Path) -> None:
    """A writer that is at work while another process rewrites the file loses no verdict."""
    path = tmp_path / "verdicts.jsonl"
    write(path, judged("a"))
    path.write_bytes(path.read_bytes() + b"\0\0\0\n")
    with VerdictWriter(path) as writer:
        writer.write(judged("b"))
        assert drop_damage(path) == 1
        writer.write(judged("c"))
    assert [line["case_id"] for line in read_lines(path)] == ["a", "b", "c"]
    busy, done = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(path):
            busy.set()
            done.wait(60)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert busy.wait(60)
    rewriting = threading.Thread(target=drop_damage, args=(path,), daemon=True)
    path.write_bytes(path.read_bytes() + b"\0\n")
    damaged = path.read_bytes()
    rewriting.start()
    rewriting.join(0.3)
    assert path.read_bytes() == damaged, "it waits for the lock"
    done.set()
    rewriting.join(60)
    assert path.read_bytes() == damaged.removesuffix(b"\0\n")


@each_row("line", [b'"text"', b"1.5", b'{"setting": {}}', b'{"setting": 0.5}'])
def test_a_line_of_another_shape_stays_for_its_reader_to_name(tmp_path: Path, line: bytes) -> None:
    """A hole takes itself away; what is JSON and no verdict is no hole."""
    path = tmp_path / "verdicts.jsonl"
    write(path, judged("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + line + b"\n" + b"\0" * 40 + b"\n")
    assert drop_damage(path) == 1
    assert path.read_bytes() == whole + line + b"\n"
    with pytest.raises(StorageError, match=r"verdicts\.jsonl:3: "):
        list(read_lines(path))


def add(path: Path, *case_ids: str, run: str = "r1") -> None:
    """Add a judgement of each case, of one judging of the run."""
    judgement: dict[str, Any] = {"metric": "abstained_judged", "status": "not_applicable"}
    judgement |= {"reason": "no answer", "prompt": {"name": "abstention", "sha256": "ab"}}
    judgement |= {"judge": {}, "judging_runs": [run]}
    judgement |= {"input": {"contexts": [{"id": "c1", "text": "A long passage."}]}}
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
        file.write('{"withdrawn":"r1","reason":"another model"}\n')
    add(path, "c", run="r2")
    assert ids(reader) == ["b", "c"]
