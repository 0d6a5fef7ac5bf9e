"""What reaches the disk, when, and in which order; fsync and its kin are watched, not the disk."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from records import syncing
from records.exports import write_new
from records.files import JsonlWriter, drop_damaged_lines, scratch_folder
from records.journal import Journal
from records.syncing import DelayedSync, make_folder
from storage import ResultsWriter, StorageError, TestResult

SCRIPTS = Path(syncing.__file__).parents[1]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(fsync, replace or unlink, path of the file or folder), in the order in which they end."""
    seen: list[tuple[str, str]] = []
    calls = {name: getattr(os, name) for name in ("fsync", "replace", "unlink")}

    def fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        calls["fsync"](descriptor)
        seen.append(("fsync", path))

    def replace(source: str | Path, target: str | Path) -> None:
        calls["replace"](source, target)
        seen.append(("replace", str(target)))

    def unlink(path: str | Path, **more: int) -> None:
        calls["unlink"](path, **more)
        seen.append(("unlink", str(path)))

    for function in (fsync, replace, unlink):
        monkeypatch.setattr(os, function.__name__, function)
    return seen


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "nothing happened for a minute"
        time.sleep(0.005)


def test_a_line_is_on_the_disk_within_five_seconds_also_the_last_before_a_pause(
    tmp_path: Path, events: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert syncing.WAIT_S + 1 <= 5  # a second for the disk
    monkeypatch.setattr(syncing, "WAIT_S", 0.02)
    path = tmp_path / "a.jsonl"
    sync = ("fsync", str(path))
    writer = JsonlWriter(path)
    for number in (1, 2):
        writer.write({"n": number})
        until(lambda number=number: events.count(sync) == number)  # type: ignore[misc]
    time.sleep(0.1)
    assert events.count(sync) == 2  # nothing new, nothing to do
    writer.write({"n": 3})
    writer.close()  # the descriptor of the writer is gone; its lines are not forgotten
    until(lambda: events.count(sync) == 3)


def test_no_write_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()
    writer = JsonlWriter(tmp_path / "a.jsonl")

    def slow(descriptor: int) -> None:
        begun.set()
        may_end.wait(60)

    monkeypatch.setattr(syncing, "WAIT_S", 0.0)
    monkeypatch.setattr(os, "fsync", slow)
    writer.write({"n": 1})
    assert begun.wait(60)
    for number in range(1000):  # while the disk is at work
        writer.write({"n": number})
    may_end.set()
    writer.sync()
    writer.close()


def test_a_disk_that_refuses_is_told_at_the_next_line_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    writer = JsonlWriter(tmp_path / "a.jsonl")
    writer.write({"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuses)
        DelayedSync.all_now()  # as the thread does
    with pytest.raises(OSError, match="Input/output"):
        writer.write({"n": 2})
    with pytest.raises(OSError, match="Input/output"):
        writer.sync()
    writer.close()


def test_what_is_left_is_forced_at_ctrl_c(tmp_path: Path) -> None:
    code = f"""
import os, sys
sys.path.insert(0, {str(SCRIPTS)!r})
from pathlib import Path
from records.files import JsonlWriter
fsync = os.fsync
def told(descriptor):
    print(os.readlink(f"/proc/self/fd/{{descriptor}}"), flush=True)
    fsync(descriptor)
os.fsync = told
writer = JsonlWriter(Path({str(tmp_path)!r}) / "a.jsonl")
writer.write(1)
raise KeyboardInterrupt
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == [str(tmp_path), str(tmp_path / "a.jsonl")]


def test_a_finished_run_is_on_the_disk_before_its_partial_file_goes(
    tmp_path: Path, events: list[tuple[str, str]]
) -> None:
    writer = ResultsWriter(tmp_path / "new" / "results", "r")
    folder = tmp_path / "new" / "results" / "r"
    # each folder's name, in the folder above it
    assert events == [
        ("fsync", str(path)) for path in (folder.parents[2], folder.parents[1], folder.parent)
    ]
    writer.write_result(TestResult("a"))
    events.clear()
    writer.finish(["a"])
    results, partial = str(folder / "results.jsonl"), str(folder / "results.partial.jsonl")
    written = [("fsync", partial), ("fsync", str(folder / ".results.jsonl.tmp"))]
    assert events == [*written, ("replace", results), ("fsync", str(folder)), ("unlink", partial)]


def test_new_files_are_named_on_the_disk(tmp_path: Path, events: list[tuple[str, str]]) -> None:
    for folder in ("a", "b", "c"):
        make_folder(tmp_path / folder)
    events.clear()
    journal = Journal(tmp_path / "a" / "set.jsonl.journal")
    journal.open()
    JsonlWriter(tmp_path / "b" / "lines.jsonl").close()
    assert events == [("fsync", str(tmp_path / "a")), ("fsync", str(tmp_path / "b"))]
    events.clear()
    write_new(tmp_path / "c" / "new.jsonl", [b"{}\n"])
    assert [kind for kind, _ in events] == ["fsync", "replace", "fsync"]
    journal.close()


def test_a_folder_that_a_power_cut_left_without_its_lock_goes(tmp_path: Path) -> None:
    left, new = tmp_path / ".scores.left", tmp_path / ".scores.new"
    for folder in (left, new):
        folder.mkdir()
        (folder / "rows").write_text("")
    os.utime(left, (0, 0))
    with scratch_folder(tmp_path, ".scores."):
        assert not left.exists()
        assert new.exists()  # it may be being made this moment


def test_damaged_lines_are_taken_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert drop_damaged_lines(path) == 0
    path.write_bytes(b'{"a":1}\n{"b":"\xff"}\n\0\0\0"}\n[3]\n{"c":\n{"to')
    # no UTF-8, a hole, half a line; the torn end is not counted
    assert drop_damaged_lines(path) == 3
    assert path.read_bytes() == b'{"a":1}\n[3]\n'
    inode = path.stat().st_ino
    assert drop_damaged_lines(path) == 0
    assert path.stat().st_ino == inode  # untouched
    with pytest.raises(StorageError, match="cannot be written"):
        drop_damaged_lines(tmp_path)
