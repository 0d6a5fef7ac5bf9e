"""What may be opened: plain files, with limits of a line, of a file, and of what is packed."""

from __future__ import annotations

import gzip
import os
import pickle
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from records import file_access
from records.errors import StorageError
from records.file_access import (
    LimitedLines,
    UnfitFile,
    allow_addresses,
    check_folder,
    open_plain,
    open_unpacked,
    read_whole,
)
from records.jsonl import read_rows

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes and links")


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def a_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@posix
@each_row("make", [os.mkfifo, a_socket, a_link_to_a_device])
@each_row("read", [open_plain, open_unpacked, read_whole])
def test_only_plain_files_are_opened(
    tmp_path: Path, make: Callable[[Path], None], read: Callable[[Path], Any]
) -> None:
    make(tmp_path / "x")
    with pytest.raises(UnfitFile, match="x: is not a plain file; name one"):
        read(tmp_path / "x")


def test_whoever_handles_unreadable_files_handles_these(tmp_path: Path) -> None:
    error = UnfitFile(tmp_path, "is not a plain file")
    assert isinstance(error, OSError)
    assert isinstance(error, StorageError)
    assert (error.strerror, error.filename) == ("is not a plain file", str(tmp_path))
    again = pickle.loads(pickle.dumps(error))  # as a worker sends it home
    assert (type(again), again.message, again.exit_code) == (UnfitFile, error.message, 2)


def test_the_null_device_is_the_empty_file() -> None:
    """RAG_EVAL_CONFIG=/dev/null is how settings are switched off."""
    assert read_whole(Path(os.devnull)) == b""


def test_what_is_not_there_and_a_folder_stay_errors_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_plain(tmp_path / "x")
    with pytest.raises(IsADirectoryError):
        open_plain(tmp_path)


def test_a_line_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_access, "LONGEST_LINE", 2**20)
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"first\n" + b"x" * (2**20 - 1) + b"\n" + b"x" * 2**20 + b"\n")
    for read in (lambda file: file.readline(), next):
        with open_plain(path) as file:
            assert isinstance(file, LimitedLines)
            assert read(file) == b"first\n"
            assert len(read(file)) == 2**20
            with pytest.raises(UnfitFile, match="has a line of more than 1 MB"):
                read(file)
    with open_plain(path) as file:
        assert file.readline(3) == b"fir"
        assert len(file.read()) == path.stat().st_size - 3
    path.write_bytes(b"a\n" * 2**20 + b"end")  # many lines are no long one
    with open_plain(path) as file:
        lines = list(file)
    assert (len(lines), lines[-1]) == (2**20 + 1, b"end")


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with open(tmp_path / "x", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(UnfitFile, match="x: has more than 1024 MB"):
        read_whole(tmp_path / "x")


def test_a_packed_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 MB of zeros in 1 kB: refused when it may unpack to 64 kB or 250 times its size."""
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}\n" + bytes(2**20), 9))
    with open_unpacked(path) as file:
        assert len(file.read()) == 2**20 + 3
    monkeypatch.setattr(file_access, "MAX_UNPACKED", 2**16)
    with open_unpacked(path) as file, pytest.raises(UnfitFile, match="more than 250 times"):
        file.read()
    with pytest.raises(StorageError, match="more than 250 times its size"):
        list(read_rows(path))
    noise = os.urandom(2**18)
    path.write_bytes(gzip.compress(noise))
    with open_unpacked(path) as file:
        assert file.read() == noise


def test_a_packed_line_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_access, "LONGEST_LINE", 2**10)
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(os.urandom(2**12).replace(b"\n", b"")))
    with open_unpacked(path) as file, pytest.raises(UnfitFile, match="has a line of more than"):
        next(file)


@posix
def test_a_folder_has_no_link_out_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_access, "_NAMED", set())
    run, store = tmp_path / "run", tmp_path / "store"
    (run / "scores").mkdir(parents=True)
    store.mkdir()
    (store / "big.jsonl").write_text("{}\n")
    (run / "own.jsonl").write_text("{}\n")
    (run / "again.jsonl").symlink_to("own.jsonl")
    (run / "circle").symlink_to("circle")
    check_folder(run)
    check_folder(tmp_path / "none")
    (run / "scores" / "big.jsonl").symlink_to(store / "big.jsonl")
    with pytest.raises(StorageError) as caught:
        check_folder(run)
    told = caught.value.message
    assert f"{run}/scores/big.jsonl: is a link to {store}/big.jsonl, outside" in told
    assert f'write addresses = ["{store}"] into eval/config.toml' in told
    allow_addresses([str(store)])
    check_folder(run)
    (tmp_path / "same").symlink_to(run)  # the user's own link to a run
    check_folder(tmp_path / "same")
    os.mkfifo(run / "pipe")
    with pytest.raises(StorageError, match="pipe: is not a plain file; remove it"):
        check_folder(run)
