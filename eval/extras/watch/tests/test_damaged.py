"""Damaged and hostile traces in a watched folder: what is dropped is counted, and no private value
that was planted in it is written or said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.formats.test_damaged_traces import DAMAGES, source_of
from tests.rows import each_row

from extras.watch.look import watch
from extras.watch.tests.conftest import DAY
from extras.watch.watch_options import WatchOptions
from records.errors import StorageError

NOW = (1_767_225_600 + 40 * DAY) * 1_000_000
"""Of a look: 40 days after the golden traces."""
_LOST_LINES = ("damaged lines or spans", "spans that cannot be read")


def watch_damaged(tmp_path: Path, name: str) -> None:
    _, data, chosen = source_of(name)
    source = tmp_path / "traces" / "source.jsonl"
    source.parent.mkdir()
    source.write_bytes(data)
    options = WatchOptions(
        folder=source.parent,
        index=tmp_path / "index.sqlite",
        output=tmp_path / "drawn",
        cases=20,
        sample=1000,
        check_share=1.0,
    )
    said = ""
    try:
        outcome = watch(options, NOW)
    except StorageError as error:
        assert DAMAGES[name].code == 2
        said = error.message
    else:
        if DAMAGES[name].source in ("otel", "documents", "logs"):
            ids = set(re.findall(rb'"traceId": "([0-9a-f]{32})"', data))
            missing = len(ids) - outcome.traces - outcome.waiting
            assert missing <= sum(outcome.counts.get(kind, 0) for kind in _LOST_LINES)
    files = (path for path in tmp_path.rglob("*") if path.is_file() and path != source)
    written = said.encode() + b"\n".join(path.read_bytes() for path in files)
    assert [value for value, _ in chosen if value.encode() in written] == []


test_a_watch_counts_a_damaged_trace_and_draws_no_secret = each_row("name", [*DAMAGES][::4])(
    watch_damaged
)
test_so_with_every_damage = pytest.mark.thorough(each_row("name", DAMAGES)(watch_damaged))
