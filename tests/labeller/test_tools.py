"""Labels of tool calls: from the calls that a bot made to what the set says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.labeller.conftest import Lines, arrivals_for

from labeller import edits
from labeller.case_state import CaseState
from labeller.fetching import Arrival, Fetcher, FetchError, deliver, run_chunks
from labeller.session import Session
from records.run import Run
from records.tool_calls import ToolCall
from storage import RetrievedChunk, TestResult

SEARCH, DELETE = ToolCall("search", {"query": "hat"}), ToolCall("delete", error="no \x1b right")
CALLS = (SEARCH, DELETE)


def state(**case: Any) -> CaseState:
    return CaseState({"id": "a", "question": "?", **case}, {})


def signs(case: dict[str, Any], calls: tuple[ToolCall, ...] = CALLS) -> list[tuple[str, str, bool]]:
    return [(row.name, row.label, row.seen) for row in edits.tool_rows(case, calls)]


def test_what_the_case_says_of_the_calls_and_what_was_not_called() -> None:
    case = {
        "expected_tools": ["search", {"name": "mail", "arguments": {"to": "x"}}],
        "forbidden_tools": [{"name": "delete"}],
    }
    assert signs(case) == [
        ("search", "expected", True),
        ("delete", "forbidden", True),
        ("mail", "expected", False),
    ]
    rows = edits.tool_rows(case, CALLS)
    assert rows[1].text() == "delete()  failed: no \x1b right"  # the screen makes it harmless
    assert rows[2].text() == 'mail(to="x")  (not called)'
    assert [label for _, label, _ in signs({})] == ["", ""]


def test_a_mark_and_its_way_back() -> None:
    """The last mark takes the field with it: an empty list would say that no call is expected."""
    start = state(tags=["t"])
    _, expected, said, _ = edits.expect(start, edits.tool_rows(start.case, CALLS)[0])
    assert expected.case["expected_tools"] == [{"name": "search", "arguments": {"query": "hat"}}]
    assert said == "search is expected with these arguments"
    again = edits.expect(expected, edits.tool_rows(expected.case, CALLS)[0]).state
    assert again.case == start.case
    forbidden = edits.forbid(expected, edits.tool_rows(expected.case, CALLS)[0]).state
    assert "expected_tools" not in forbidden.case
    assert forbidden.case["forbidden_tools"] == ["search"]
    back = edits.expect(forbidden, edits.tool_rows(forbidden.case, CALLS)[0]).state
    assert back.case == expected.case
    none = edits.expect_none(start).state
    assert none.case["expected_tools"] == []
    assert edits.expect_none(none).state.case == start.case


def test_calls_come_with_the_passages(session: Session) -> None:
    class Source:
        def arrivals(self) -> list[Arrival]:
            return [Arrival("q-0001", calls=CALLS)]

    deliver(session, Source())  # type: ignore[arg-type]
    assert session.pool.calls["q-0001"] == CALLS
    row = edits.tool_rows(session.case, CALLS)[0]
    session.revise(lambda now: edits.expect(now, row))
    assert session.case["expected_tools"][0]["name"] == "search"
    session.undo()
    assert "expected_tools" not in session.case


def test_the_calls_of_a_run_are_shown_also_where_no_passage_is_known(tmp_path: Path) -> None:
    lines = [
        TestResult("a", "?", tools=[SEARCH], retrieved=[RetrievedChunk("c", text="T")]),
        TestResult("b", "?", tools=[DELETE]),
        TestResult("c", "?", tools=[]),
    ]
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(line.to_dict()) + b"\n" for line in lines))
    (tmp_path / "config.json").write_text('{"schema": 1, "run_id": "r"}')
    source = Fetcher(run_chunks(Run(path.parent)), "run")
    came: dict[str, Arrival] = {}
    for case_id in "abc":
        source.request(case_id, "?")
        came |= {arrival.case_id: arrival for arrival in arrivals_for(source, case_id)}
    source.close()
    assert (came["a"].calls, len(came["a"].chunks)) == ((SEARCH,), 1)
    assert (came["b"].calls, came["b"].chunks, came["b"].problem) == ((DELETE,), (), "")
    assert "nothing to label" in came["c"].problem
    with pytest.raises(FetchError):
        run_chunks(Run(path.parent))("c", "?", None)


def test_in_line_mode(lines: Lines) -> None:
    assert "The bot reports no call of a tool." in lines.do("T")
    lines.session.pool.calls["q-0001"] = CALLS
    lines.source.request = lambda case_id, question: None  # type: ignore[method-assign]
    said = lines.do("T", "T 1", "T 2 x", "T", "T 9")
    assert '1 [ ] search(query="hat")' in said
    assert "q-0001: search is expected with these arguments" in said
    assert "2 [forbidden] delete()" in said
    assert "There is no call 9." in said
    lines.do("T 0")
    assert lines.session.case["expected_tools"] == []
