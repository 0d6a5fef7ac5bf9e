"""Lean records read like whole ones, whatever keys the lines have."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from records import jsonl
from records.cases import TestCase
from records.jsonl import Lean, whole
from records.results import TestResult

NAMES = [field.name for field in msgspec.structs.fields(TestCase)]
values = st.fixed_dictionaries(
    {"id": st.text(max_size=3), "question": st.text(max_size=3)},
    optional={
        "answerable": st.none() | st.booleans(),
        "tags": st.lists(st.text(max_size=2), max_size=2),
        "category": st.sampled_from(["factual", "general"]),
        "chunk_relevance_grades": st.dictionaries(st.text(max_size=2), st.integers(0, 3)),
        "gold_supports": st.just([{"rel_path": "a.md"}]),
        "a key of one's own": st.just({"any": ["thing"]}),
        "note": st.integers(),
        'C:\\notes "of" \x1b]0;mine\x07': st.integers(),
    },
)
blocks = st.lists(st.lists(values, max_size=4), max_size=12)


def lines_of(rows: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


@given(blocks)
def test_every_field_reads_as_in_the_whole_record(rows: list[list[dict[str, Any]]]) -> None:
    lean, full = Lean(TestCase), whole(TestCase)
    for block in map(lines_of, rows):
        found = [[getattr(case, name) for name in NAMES] for case in lean(block)]
        assert found == [[getattr(case, name) for name in NAMES] for case in full(block)]


def test_from_the_second_block_on_only_the_fields_of_the_lines_are_built() -> None:
    lean = Lean(TestResult)
    block = lines_of([{"test_case_id": "q", "retrieved": ["b", "a"], "mine": 1}])
    assert type(lean(block)[0]) is TestResult
    (result,) = lean(block)
    assert result.__struct_fields__ == ("test_case_id", "retrieved", "unknown_0")
    assert [chunk.rank for chunk in result.chunks()] == [1, 2]
    assert (result.status, result.repeat, result.references) == ("ok", 0, None)


@each_row("key", ["C:\\notes", 'say "x"', "\x1b]0;T\x07", "\0", "a\tb", "", "\x9b"])
def test_a_key_may_hold_any_character(key: str) -> None:
    """Also one that comes when the decoder has been fitted to the keys of other lines."""
    lean = Lean(TestCase)
    plain, odd = {"id": "q", "question": "?"}, {"id": "q", "question": "?", "tags": ["a"], key: 1}
    for row in (odd, odd, plain, plain, odd, odd):
        (case,) = lean(lines_of([row]))
        assert (case.id, case.tags) == ("q", row.get("tags", []))
    lean = Lean(TestCase)
    for row in (plain, plain, odd, odd, plain):
        (case,) = lean(lines_of([row]))
        assert (case.id, case.tags) == ("q", row.get("tags", []))


@each_row(
    "row", [{"id": "q"}, {"id": 5, "question": "?"}, {"id": "q", "question": "?", "tags": "one"}]
)
def test_a_fault_is_told_as_by_the_whole_class(row: dict[str, Any]) -> None:
    lean = Lean(TestCase)
    for _ in range(2):
        lean(lines_of([{"id": "q", "question": "?"}]))
    with pytest.raises(msgspec.ValidationError) as told:
        lean(lines_of([row]))
    with pytest.raises(msgspec.ValidationError) as wanted:
        whole(TestCase)(lines_of([row]))
    assert str(told.value) == str(wanted.value)


def test_a_file_with_ever_new_keys_is_decoded_as_a_whole() -> None:
    lean = Lean(TestCase)
    for number in range(jsonl.MOST_CHANGES + 2):
        cases = lean(lines_of([{"id": "q", "question": "?", f"key {number}": number}]))
        assert type(cases[0]) is TestCase
    assert type(lean(lines_of([{"id": "q", "question": "?"}]))[0]) is TestCase
