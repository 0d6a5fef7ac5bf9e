"""Conversations turn by turn and their searches: on the browser's pages and in the report."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest
from tests.views.browser.conftest import Runs

from records.scores import ScoreLine, SearchesEvidence
from storage import TestResult, case_from_dict
from terminal.actions import ActionRefused
from terminal.page import Heading, Prose, Section, plain_words
from views.browser.case_page import conversation_doc
from views.browser.document import Doc
from views.browser.pages import CaseScreen
from views.case import Case, Said, case_of
from views.case_blocks import ShownWith
from views.library import RunLibrary
from views.report.cases import ShownCase, case_section, conversations
from views.report.page import PageBlocks
from views.searches import longest_ms, search_steps

A, B, C = ({"chunk_id": name, "rel_path": f"{name}.md", "text": f"Text {name}."} for name in "abc")
SEARCHES = [
    {"query": "and that?", "tool": "bm25", "start_ms": 0, "latency_ms": 100, "retrieved": [A, B]},
    {"query": "and [that] <plan>?", "start_ms": 100, "latency_ms": 300, "retrieved": [A, C]},
    {"query": "third", "start_ms": 300, "latency_ms": 100, "error": "no index"},
]
EVIDENCE: dict[str, Any] = {
    "match": "anchor",
    "complete_at": 2,
    "searches": [
        {"passages": 2, "new": [1, 2], "evidence_recall": 0.0, "found": [None], "hits": []},
        {"passages": 2, "new": [2], "evidence_recall": 1.0, "found": [2], "hits": [2]},
        {"passages": 0, "new": [], "error": "no index"},
    ],
}
FOUND = msgspec.convert(EVIDENCE, SearchesEvidence)


def turn(name: str, number: int, **more: Any) -> dict[str, Any]:
    case = {"id": f"{name}{number}", "question": f"Question {number}?", "conversation": name}
    return (
        case | {"turn": number, "gold_supports": [{"rel_path": "c.md", "heading_path": ""}]} | more
    )


def answer(case_id: str, **more: Any) -> dict[str, Any]:
    return {"test_case_id": case_id, "question": f"Question {case_id}?", "answer": "So."} | more


def test_a_search_shows_what_no_search_before_it_brought() -> None:
    result = msgspec.convert(answer("x", searches=SEARCHES), TestResult)
    first, second, third = search_steps(result, FOUND)
    assert [(p.rank, p.location, p.gold) for p in second.new] == [(2, "c.md", True)]
    assert first.says() == "2 passages, 2 new, no gold, evidence_recall 0.00"
    assert second.says() == "2 passages, 1 new, gold at 2, evidence_recall 1.00"
    assert third.says() == "failed: no index"
    # 400 ms until the second one ends: of 16 cells 4 for the first, then 12, and 4 from cell 12 on
    longest = longest_ms((first, second, third))
    assert longest == 400
    assert [step.bar(longest, 16) for step in (first, second, third)] == [(0, 4), (4, 12), (12, 4)]
    # without scores what is new is counted here, and nobody looked for gold
    unscored = search_steps(result, SearchesEvidence())
    assert [[p.rank for p in step.new] for step in unscored] == [[1, 2], [2], []]
    assert unscored[1].says() == "2 passages, 1 new"


@pytest.fixture
def talks(runs: Runs) -> RunLibrary:
    """Two conversations and a question by itself; results stand in the order of their end."""
    runs.cases(
        {"id": "alone", "question": "Alone?"},
        *(turn("p", number) for number in (1, 2, 3)),
        *(turn("q", number) for number in (1, 2)),
    )
    order = ["q1", "p1", "p2", "q2", "alone", "p3"]
    results: list[dict[str, Any]] = [{"id": case_id, "answer": "So."} for case_id in order]
    results[2] |= {"searches": SEARCHES, "rewritten_query": "and [that] <plan>?"}
    lines = [{"case_id": name, "scores": {"outcome_match": float(name != "p2")}} for name in order]
    runs.run(
        "talk",
        results,
        pipeline=lines,
        searches=[{"case_id": "p2", "scores": {}, "evidence": EVIDENCE}],
    )
    return RunLibrary(runs.results_dir, runs.eval_set, None)


def test_the_turns_of_a_conversation_are_found_in_order(talks: RunLibrary) -> None:
    run = talks.open("talk")
    assert run.turns(("p2", 0)) == [("p1", 0), ("p2", 0), ("p3", 0)]
    assert run.turns(("q1", 0)) == [("q1", 0), ("q2", 0)]
    assert run.turns(("alone", 0)) == []
    detail = run.detail(("p2", 0))
    assert detail is not None
    assert (detail.conversation, detail.turn) == ("p", 2)
    assert detail.complete == "evidence complete at search 2"
    turns: list[tuple[Case, str, bool]] = [(detail, "FAILS: pass=0", True)]
    for ascii_only, bars in ((False, "░░░░████████████"), (True, "....############")):
        doc = conversation_doc(partial(Doc, ascii_only=ascii_only, width=78), turns, "p2")
        assert "1 turn · turn 2 is the first that fails" in doc.text
        assert f"2. {bars} 100 ms +300" in doc.text
        assert "    GOLD 2. c.md" in doc.text
        assert "rewritten as       and [that] <plan>?" in doc.text
        assert "failed: no index" in doc.text
        assert "\n    third\n" in doc.text
        assert "(no query told)" not in doc.text


async def test_a_key_shows_the_conversation_and_back(talks: RunLibrary) -> None:
    from views.browser.app import BrowseApp

    app = BrowseApp(talks, ["talk"])
    async with app.run_test(size=(80, 40)) as pilot:
        await pilot.pause(0.3)
        await pilot.press("j", "j", "enter")
        await pilot.pause()
        page = app.screen
        assert isinstance(page, CaseScreen)
        assert page.key == ("p2", 0)
        await pilot.press("H")
        text = page.pages[0]._text
        assert [f"Turn {number}" in text for number in (1, 2, 3, 4)] == [True, True, True, False]
        assert "p · 3 turns · turn 2 is the first that fails" in text
        await pilot.press("H")
        assert "Searches" in page.pages[0]._text
        assert "H shows all turns" in page.pages[0]._text
        await pilot.press("l", "l")
        page.index = 4
        page.load()
        with pytest.raises(ActionRefused, match="no turn of a conversation"):
            page.turn_conversation()


def shown(case: dict[str, Any], *reasons: str, **more: Any) -> ShownCase:
    test_case, _ = case_from_dict(case)
    result = msgspec.convert(answer(case["id"], **more), TestResult)
    lines: dict[str, ScoreLine] = {}
    if "searches" in more:
        lines["searches"] = ScoreLine(case["id"], 0, "scored", {}, {}, FOUND)
    view = ShownWith(said=Said("fails" if reasons else "ok", reasons), failing=bool(reasons))
    found = case_of(result, test_case, lines)
    return case_section(found, view), found, view


FAILS = "no gold passage"


def test_the_report_lists_those_that_fail_first_at_the_earliest_turn() -> None:
    hostile = {"tool": "find\x1b[2J\u202e<b>"}
    searches = [SEARCHES[0], SEARCHES[1] | hostile, SEARCHES[2]]
    answers = [
        shown(turn("late", 3), FAILS),
        shown(turn("late", 1)),
        shown(turn("fine", 1)),
        shown({"id": "alone", "question": "?"}, FAILS),
        shown(turn("early", 2), FAILS, searches=searches, rewritten_query="and [that] <plan>?"),
        shown(turn("early", 1)),
    ]
    head, *talks = conversations([((case.case_id, 0), own) for own in answers for case in [own[1]]])
    assert isinstance(head, Prose)
    assert plain_words(head.words).startswith("In 2 of 3 conversations a turn fails")
    sections = [talk for talk in talks if isinstance(talk, Section)]
    expected = ["earlyfails from turn 2", "latefails from turn 3", "fineok"]
    assert [plain_words(talk.title) for talk in sections] == expected
    turns = [
        [plain_words(one.words) for one in talk.blocks if isinstance(one, Heading)]
        for talk in sections
    ]
    assert turns[1] == ["Turn 1: late1 ok", "Turn 3: late3 no gold passage"]
    assert sections[1].lines == ("2 turns, 1 of them fails; not shown: turn 2",)
    html = PageBlocks().write(sections[:1])
    assert "fails from turn 2" in html
    assert "and [that] &lt;plan&gt;?" in html
    assert '<rect class="bar" x="25.0" width="75.0"' in html
    assert html.count("find⟨U+001B⟩[2J⟨U+202E⟩&lt;b&gt;") == 1
    assert not {"\x1b", "\u202e"} & set(html)
    assert "evidence complete at search 2" in html


def test_a_case_in_full_draws_its_searches_and_says_its_first_six_reasons() -> None:
    for count, more in ((6, ""), (7, "; 1 more")):
        reasons = [f"reason {n}" for n in range(count)]
        section, *_ = shown({"id": "x", "question": "?"}, *reasons, searches=SEARCHES)
        assert section.lines[1] == "; ".join(reasons[:6]) + more
        assert '<rect class="bar" x="25.0" width="75.0"' in PageBlocks().write([section])
