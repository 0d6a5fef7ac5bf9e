"""Growing files: whole lines only, each once, and a replaced file is noticed."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.growing import GrowingFile, Replaced, line_at


def test_a_torn_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n{"b"')
    feed = GrowingFile(path, final=False)
    assert feed.read() == [(0, b'{"a":1}\n')]
    assert feed.read() == []
    assert feed.ended
    with open(path, "ab") as file:
        file.write(b":2}\n")
    assert feed.read() == [(8, b'{"b":2}\n')]
    assert feed.read() == []


def test_a_finished_file_may_lack_its_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo")
    feed = GrowingFile(path)
    assert feed.read() == [(0, b"one\n")]
    assert feed.read() == [(4, b"two")]
    assert feed.ended


def test_a_line_longer_than_a_block_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    long = b"x" * 1000 + b"\n"
    path.write_bytes(b"a\n" + long + b"b\n")
    feed = GrowingFile(path)
    read = [feed.read(16) for _ in range(4)]
    assert [line for lines in read for line in lines] == [(0, b"a\n"), (2, long), (1003, b"b\n")]


@pytest.mark.parametrize("how", ["gone", "shorter", "another"])
def test_a_replaced_file_is_noticed(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\n")
    feed = GrowingFile(path)
    feed.read()
    if how == "gone":
        path.unlink()
    elif how == "shorter":
        path.write_bytes(b"one\n")
    else:
        (tmp_path / "new").write_bytes(b"one\ntwo\nthree\n")
        (tmp_path / "new").replace(path)
    with pytest.raises(Replaced):
        feed.read()


@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"\r")), max_size=12),
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.integers(1, 64),
)
def test_however_a_file_grows_every_line_comes_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], steps: list[int], block: int
) -> None:
    """Its lines are the pieces between newlines, and their offsets point at them."""
    data = b"".join(line + b"\n" for line in lines)
    path = tmp_path_factory.mktemp("feed") / "a.jsonl"
    path.write_bytes(b"")
    feed = GrowingFile(path, final=False)
    found: list[tuple[int, bytes]] = []
    written = 0
    sizes = itertools.cycle(steps)
    while written < len(data):
        size = next(sizes)
        with open(path, "ab") as file:
            file.write(data[written : written + size])
        written += size
        while more := feed.read(block):
            found += more
    assert [line for _, line in found] == [line + b"\n" for line in lines]
    assert all(data[offset : offset + len(line)] == line for offset, line in found)


def test_a_line_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert line_at(tmp_path / "none", 0) == b""
    (tmp_path / "some").write_bytes(b"one\n")
    assert line_at(tmp_path / "some", 99) == b""
