"""The tool calls of an answer: on the browser's page of a case, in the report, behind --worst."""

from __future__ import annotations

from typing import Any

import msgspec

from records.scores import ScoreLine, ToolsEvidence
from storage import TestResult, case_from_dict
from terminal.page import Heading, Prose, plain_words
from terminal.safe_text import display
from views.browser.case_page import case_docs, conversation_doc
from views.browser.document import Doc
from views.case import Case, case_of
from views.case_blocks import ShownWith
from views.report.cases import case_section
from views.report.page import PageBlocks
from views.worst import explanation

CASE = {
    "id": "q",
    "question": "?",
    "expected_tools": [{"name": "search", "arguments": {"query": "hat"}}, "mail"],
    "forbidden_tools": ["delete"],
    "max_tool_calls": 3,
}
TOOLS = [
    {"name": "search", "arguments": {"query": "hat"}, "result": "3 hats", "latency_ms": 1200.4},
    {"name": "delete", "arguments": {"x": "<b>\x1b[2J\u202e"}, "error": "no <i>right</i>"},
    {"name": "long", "arguments_length": 30_000, "result": "ab", "result_length": 9000},
]
EVIDENCE = {
    "calls": [
        {"name": "search", "expected": 0},
        {"name": "delete", "forbidden": True, "failed": True},
        {"name": "long"},
    ],
    "missing": [1],
}
SEARCHES = [{"query": "hats", "retrieved": [{"chunk_id": "a", "rel_path": "a.md", "text": "A."}]}]


def case(tools: Any, evidence: Any = None, **more: Any) -> Case:
    raw = {"test_case_id": "q", "question": "?", "answer": "So.", **more}
    raw |= {} if tools is None else {"tools": tools}
    asked, _ = case_from_dict(CASE)
    lines = {}
    if evidence:
        found = msgspec.convert(evidence, ToolsEvidence)
        lines["tools"] = ScoreLine("q", 0, "scored", {}, {}, found)
    return case_of(msgspec.convert(raw, TestResult), asked, lines)


def page(detail: Case, *, two: bool = False) -> list[str]:
    docs = case_docs(Doc, detail, ShownWith("ok"), full=True, two=two)
    return [str(doc.text) for doc in docs if doc is not None]


def test_the_page_of_a_case_shows_its_calls_between_answer_and_searches() -> None:
    detail = case(TOOLS, EVIDENCE, searches=SEARCHES)
    (text,) = page(detail)
    titles = ("── Answer", "── Tools ── 3 calls, 1 expected call not made", "── Searches")
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    assert '1. search(query="hat")\n    expected, 1,200 ms\n    3 hats\n' in text
    assert "forbidden\n    failed: no <i>right</i>\n" in text
    assert "3. long(… 30,000 characters, not kept)\n    ab … (9,000 characters)\n" in text
    assert "not made mail()\n" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert display("delete(x=") in text
    assert 'expected call      search(query="hat")' in text
    left, right = page(detail, two=True)
    assert "── Tools" not in left
    assert right.index("── Tools") < right.index("── Searches") < right.index("── Retrieved")


def test_the_page_of_a_conversation_shows_the_calls_of_each_turn() -> None:
    """As the page of a case does, between the answer and the searches of the turn."""
    detail = case(TOOLS, EVIDENCE, searches=SEARCHES)
    text = str(conversation_doc(Doc, [(detail, "ok", False), (case(None), "ok", False)], "q").text)
    first, second = text.split("── Turn ")[1:]
    parts = ("So.", "Tools ── 3 calls, 1 expected call not made", "1 search")
    places = [first.index(part) for part in parts]
    assert places == sorted(places)
    (of_case,) = page(detail)
    shown = of_case.split("── Tools")[1].split("\n", 1)[1].split("── Searches")[0].strip("\n")
    assert shown in first
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "Tools" not in second


def test_a_bot_that_reports_none_has_no_part_and_one_that_called_none_says_so() -> None:
    assert "── Tools" not in page(case(None))[0]
    empty = page(case([], {"calls": [], "missing": [0, 1]}))[0]
    assert "── Tools ── no tool was called, 2 expected calls not made" in empty
    unscored = page(case(TOOLS))[0]
    assert "── Tools ── 3 calls\n" in unscored
    assert "expected, 1,200 ms" not in unscored


def test_worst_cases_list_their_calls() -> None:
    blocks = explanation(case(TOOLS, EVIDENCE), "tools")
    lines = [plain_words(one.words) for one in blocks if isinstance(one, Prose)]
    assert lines[:3] == ['1. search(query="hat")', "expected, 1,200 ms", "3 hats"]
    assert lines[4:6] == ["forbidden", "failed: no <i>right</i>"]
    assert lines[6] == "3. long(… 30,000 characters, not kept)"
    assert lines[-1] == "not made mail()"
    (head,) = explanation(case([]), "tools")
    assert isinstance(head, Heading)
    assert head.note == "no tool was called"


def test_the_report_draws_them_and_no_text_of_them_acts() -> None:
    shown = case(TOOLS, EVIDENCE, searches=SEARCHES)
    html = str(PageBlocks().write([case_section(shown, ShownWith())]))
    assert html.index("<h4>Answer") < html.index("<h4>Tools") < html.index("<h4>Searches")
    assert "3 calls, 1 expected call not made" in html
    assert "failed: no &lt;i&gt;right&lt;/i&gt;" in html
    assert "&lt;b&gt;" in html
    assert not {"\x1b", "\u202e"} & set(html)
    assert '<span class="tag miss">not made</span> mail()' in html
    assert "<h4>Tools" not in PageBlocks().write([case_section(case(None), ShownWith())])
