"""Properties of the patching save and of the three-way merge, on random files and records."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from labeller.case_state import CaseState
from labeller.merging import reconciled
from records.editing import Document, _encode, decode, written
from records.judged import identify_case, identify_judgement

Record = dict[str, Any]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
RECORDS = st.dictionaries(st.text(min_size=1, max_size=6), VALUES, max_size=5)
STYLES = st.sampled_from([(", ", ": "), (",", ":")])
NAMES = ("question", "tags", "answerable", "gold_supports", "x")
FIELDS = st.fixed_dictionaries({}, optional={name: st.integers(0, 2) for name in NAMES})


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    """A file of cases, blank lines and junk, in any of the regular styles; and its ids."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines, ids = [], []
    for number in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["case", "case", "blank", "junk"]))
        if kind == "case":
            record = {"case_id": f"q{number}", **draw(RECORDS)}
            record["case_id"] = f"q{number}"
            separators, ascii_only = draw(STYLES), draw(st.booleans())
            lines.append(json.dumps(record, separators=separators, ensure_ascii=ascii_only))
            ids.append(f"q{number}")
        else:
            lines.append("  " if kind == "blank" else "no json {")
    text = newline.join(lines) + (newline if draw(st.booleans()) else "")
    bom = "\ufeff" if draw(st.booleans()) else ""
    return (bom + text).encode("utf-8", "surrogatepass"), ids


@settings(deadline=None)
@given(files(), st.data())
def test_untouched_lines_keep_their_bytes_and_undo_gives_all_back(
    made: tuple[bytes, list[str]], data: st.DataObject
) -> None:
    before, ids = made
    document = Document(before, identify_judgement)
    assert document.render() == before
    touched = data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
    gone = [name for name in touched if data.draw(st.booleans())]
    first = {name: document[name] for name in ids}
    changes: dict[str, Record | None] = {
        name: None if name in gone else {**first[name], "new": 1} for name in touched
    }
    changes["added"] = {"case_id": "added"}
    order = [*(name for name in ids if name not in gone), "added"]
    document.patch(changes, order)
    after = document.render()
    kept = [line for line in before.split(b"\n") if not any(_is(line, name) for name in touched)]
    for line in kept:
        assert line.removesuffix(b"\r").removeprefix(b"\xef\xbb\xbf") in after
    again = Document(after, identify_judgement)
    assert set(again) == set(order)
    for name in order:
        expected = changes[name] if name in changes else first[name]
        assert written(again[name]) == written(expected)
    back: dict[str, Record | None] = {name: first[name] for name in touched}
    document.patch(back | {"added": None}, ids)
    assert document.render() == before


def test_a_set_begins_empty_and_a_new_case_stands_where_the_order_has_it() -> None:
    document = Document(b"", identify_case, cases=True)
    document.patch({"b": {"id": "b", "question": "?"}}, ["b"])
    document.patch({"a": {"id": "a", "question": "é"}}, ["a", "b"])
    lines = '{"id": "a", "question": "é"}\n{"id": "b", "question": "?"}\n'
    assert document.render() == lines.encode()


def test_a_line_of_a_set_keeps_its_names_and_one_of_labels_has_no_other_names() -> None:
    line = b'{"case_id": "a", "query": "?"}'
    document = Document(line, identify_case, cases=True)
    document.patch({"a": {"id": "a", "question": "Who?"}}, ["a"])
    assert document.render() == b'{"case_id": "a", "query": "Who?"}'
    labels = Document(line, identify_judgement)
    labels.patch({"a": {"case_id": "a", "question": "Who?"}}, ["a"])
    assert labels.render() == b'{"case_id": "a", "question": "Who?"}'


def _is(line: bytes, name: str) -> bool:
    return f'"case_id": "{name}"'.encode() in line or f'"case_id":"{name}"'.encode() in line


@given(RECORDS)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    line = _encode(record, None)
    assert b"\n" not in line
    assert written(decode(line)) == written(record)


def merge(path: list[Record | None], theirs: Record | None) -> tuple[Any, tuple[str, ...]]:
    """The merged record and the fields in conflict."""
    states = [None if side is None else CaseState(side, {}) for side in (*path, theirs)]
    state, conflict = reconciled("a", states[:-1], states[-1])
    return state and state.case, conflict.fields if conflict else ()


@given(FIELDS, FIELDS, FIELDS)
def test_a_merge_takes_what_one_side_changed_and_reports_what_both_did(
    base: Record, mine: Record, theirs: Record
) -> None:
    merged, conflicts = merge([base, mine], theirs)
    for group in (("answerable", "gold_supports"), ("question",), ("tags",), ("x",)):
        was, here, there, got = (
            [side.get(name) for name in group] for side in (base, mine, theirs, merged)
        )
        both = here != there and was not in (here, there)
        assert got == (there if was == here else here)
        assert any(name in conflicts for name in group) == both


@given(FIELDS, st.lists(FIELDS, max_size=3), FIELDS)
def test_what_this_side_wrote_itself_is_no_conflict(
    base: Record, path: list[Record], mine: Record
) -> None:
    steps: list[Record | None] = [base, *path, mine]
    for step in steps:
        assert merge(steps, step) == (mine, ())


def test_a_case_deleted_on_one_side_and_changed_on_the_other_waits_for_a_choice() -> None:
    base, other = {"id": "a", "tags": []}, {"id": "a", "tags": ["t"]}
    assert merge([base, None], other) == (None, ("tags",))
    assert merge([base, other], None) == (other, ("tags",))
    assert merge([base, None], base) == (None, ())
    assert merge([base, base], None) == (None, ())
    assert merge([None, other], None) == (other, ())
