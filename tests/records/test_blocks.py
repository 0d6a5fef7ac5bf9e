"""Blocks of a file: whole lines only, each once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.blocks import BlockReader, line_at


def test_a_torn_line_of_a_file_in_progress_is_no_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n{"b"')
    feed = BlockReader(path, final=False)
    assert feed.read() == [(0, b'{"a":1}\n')]
    assert feed.read() == []
    assert feed.ended


def test_a_finished_file_may_lack_its_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo")
    feed = BlockReader(path)
    assert feed.read() == [(0, b"one\n")]
    assert feed.read() == [(4, b"two")]
    assert feed.ended


def test_a_line_longer_than_a_block_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    long = b"x" * 1000 + b"\n"
    path.write_bytes(b"a\n" + long + b"b\n")
    feed = BlockReader(path)
    read = [feed.read(16) for _ in range(4)]
    assert [line for lines in read for line in lines] == [(0, b"a\n"), (2, long), (1003, b"b\n")]


@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"\r")), max_size=12),
    st.integers(1, 64),
)
def test_every_line_comes_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], block: int
) -> None:
    """Its lines are the pieces between newlines, and their offsets point at them."""
    data = b"".join(line + b"\n" for line in lines)
    path = tmp_path_factory.mktemp("feed") / "a.jsonl"
    path.write_bytes(data)
    feed = BlockReader(path)
    found: list[tuple[int, bytes]] = []
    while more := feed.read(block):
        found += more
        assert feed.ended == (feed.offset == len(data))
    assert [line for _, line in found] == [line + b"\n" for line in lines]
    assert all(data[offset : offset + len(line)] == line for offset, line in found)


def test_a_line_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert line_at(tmp_path / "none", 0) == b""
    (tmp_path / "some").write_bytes(b"one\n")
    assert line_at(tmp_path / "some", 99) == b""
