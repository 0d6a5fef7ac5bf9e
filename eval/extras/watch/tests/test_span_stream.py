"""Spans are cut out of files of any shape, whatever piece of the file is in memory."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from extras.watch import span_stream
from extras.watch.span_stream import (
    DAMAGED,
    LONG_LINE,
    TOO_LARGE,
    Cut,
    Position,
    cuts,
    open_spans,
    parse_value,
)
from records import file_access


def read(data: bytes, after: Position = Position()) -> tuple[list[Cut], Counter[str]]:  # noqa: B008
    counts: Counter[str] = Counter()
    return list(cuts(io.BytesIO(data), after, counts)), counts


def span(number: int) -> dict[str, Any]:
    tricky = {"key": "spans", "value": {"arrayValue": {"values": [{"stringValue": '}]"\\ {[é'}]}}}
    return {"traceId": f"t{number}", "spanId": "s", "attributes": [tricky]}


def document(*numbers: int, **layout: Any) -> bytes:
    scope = {"scope": {"name": "}"}, "spans": [span(number) for number in numbers]}
    resource = {"attributes": [{"key": "host", "value": {"stringValue": "{["}}]}
    whole = {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}
    return json.dumps(whole, **layout).encode()


def console(number: int) -> bytes:
    value = {"name": "a", "context": {"trace_id": f"t{number}"}, "events": [{"a": [1]}]}
    return json.dumps(value, indent=4).encode() + b"\n"


FILES = {
    "a document over many lines": (document(0, 1, 2, indent=2), 3),
    "values over many lines": (b"".join(map(console, range(4))), 4),
    "lines": (document(0) + b"\n\n" + document(1, 2) + b"\n" + document(3), 3),
    "a list over many lines": (json.dumps([span(0), span(1)], indent=1).encode(), 2),
}


@pytest.mark.parametrize("piece", [7, 1 << 20])
@pytest.mark.parametrize("shape", FILES)
def test_a_file_is_cut_alike_wherever_reading_stops(
    shape: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces of any size, in two looks with the end anywhere, and from each position on."""
    monkeypatch.setattr(span_stream, "CHUNK", piece)
    data, count = FILES[shape]
    whole, counts = read(data)
    assert (len(whole), counts) == (count, Counter())
    for number, cut in enumerate(whole):
        assert data[cut.offset :].startswith(cut.data)
        parse_value(cut.data)
        rest, _ = read(data, cut.after)
        assert rest == whole[number + 1 :]
    for end in range(0, len(data), 41):
        first, _ = read(data[:end])
        then, counts = read(data, first[-1].after if first else Position())
        assert [cut.data for cut in first + then] == [cut.data for cut in whole]
        assert not counts


@pytest.mark.parametrize("piece", [7, 1 << 20])
def test_what_is_damaged_is_skipped(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_stream, "CHUNK", piece)
    monkeypatch.setattr(span_stream, "LONG_LINE", 300)
    torn = document(3, 4)[:-40]  # a writer was killed within a line, and began the next one
    lines = b'{"a": 1}\n' + document(0, 1) + b"\n" + torn + b"\n" + document(5, 6) + b'\n{"a": 2}\n'
    values, counts = read(lines)
    names = [parse_value(cut.data).get("traceId", "line") for cut in values if cut.data]
    assert names == ["line", "t0", "t1", "t3", "t5", "t6", "line"]
    assert counts == {DAMAGED: 1}
    torn = console(0) + console(1)[:-30] + b"\n" + console(2)
    values, counts = read(torn)
    assert len([cut for cut in values if cut.data]) == 2
    assert counts == {DAMAGED: 1}


def test_a_span_that_is_too_large_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_stream, "CHUNK", 64)
    monkeypatch.setattr(span_stream, "MOST_SPAN", 400)
    large = {"name": "x", "many": [{"n": n} for n in range(200)]}
    data = console(0) + json.dumps(large, indent=1).encode() + b"\n" + console(1)
    values, counts = read(data)
    assert len([cut for cut in values if cut.data]) == 2
    assert counts == {TOO_LARGE: 1}
    assert read(data, values[-1].after)[0] == []


def test_values_that_other_writers_let_through() -> None:
    assert parse_value(b'{"a": NaN}')["a"] != 0
    assert parse_value(b'"\\ud83d"') == "\ud83d"
    for data in (b"{", b"[" * 5000, b'{"a": "\\u"}', b"[" * 5000 + b'"\\ud83d"'):
        with pytest.raises(ValueError, match=r"."):
            parse_value(data)


def gz(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(data, 9))
    return path


def test_zeros_within_a_packed_file_are_not_its_end(tmp_path: Path, monkeypatch: Any) -> None:
    """Data that repeats itself is packed into zeros; zeros behind a file are no data."""
    data = b'{"a":' * 100_000
    path = gz(tmp_path, "a.jsonl.gz", data)
    path.write_bytes(path.read_bytes() + b"\0" * 100)
    monkeypatch.setattr(span_stream, "_PACKED", 8)
    with open_spans(path) as file:
        assert file.read(len(data) + 1) == data


@pytest.mark.parametrize("unit", [b"[", b" ", b"\0", b"x", b'{"a":'], ids=repr)
def test_a_bomb_is_refused_soon(tmp_path: Path, monkeypatch: Any, unit: bytes) -> None:
    """3 GB without a line end took minutes, and all of the memory where they were blanks."""
    monkeypatch.setattr(file_access, "MAX_UNPACKED", 2**20)
    path = gz(tmp_path, "t.jsonl.gz", unit * (3 * 2**20 // len(unit)))
    with open_spans(path) as file, pytest.raises(OSError, match="more than 250 times its size"):
        list(cuts(file, Position(), Counter()))


def test_brackets_without_end_are_damage() -> None:
    """A thousand levels are read, more are a damaged line, and the next line is read again."""
    data = b"[" * (LONG_LINE + 1) + b"\n" + document(1)
    found, counts = read(data)
    assert [cut.data for cut in found if cut.data] == [document(1)]
    assert counts == Counter({DAMAGED: 1})
