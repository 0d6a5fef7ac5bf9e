"""Which tools are searches, by all of their calls: others return texts with files, too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.records.test_tool_passages import FLOOR, WATER

from records.tool_searches import judge_tool

FILES = ("rooms.md", "a/floors.md", "loans.md")
ASKED = {"query": "water in rooms"}
ERRORS = {"query": "errors of the printer"}

ROOM = "The reading room is on floor three."
PAGES = [{"path": f, "description": "A page about the house"} for f in FILES]
JAM = "Paper jam in the printer of floor two."
RIPGREP = f"rooms.md\n3:{ROOM}\n9:A room for ten.\n\nloans.md\n2:Room."
EACH = [{"file": f, "text": f"{f} has the reading room in it."} for f in FILES]
NAMES = [{"path": f, "modified": "2026-03-01 10:20:30 UTC by 17"} for f in FILES]
LINE = [{"file": "rooms.md", "line": 3, "text": ROOM}]
BOTH = [WATER, {"path": "/vault/a/floors.md", "text": ROOM}]
WITH_REASON = {"files": "rooms.md, a/floors.md", "reason": "to see on which floor it is"}
BY_NAME, NO_QUERY = "its arguments name the files", "no call has a query"
OTHERS: dict[str, tuple[Any, Any, str]] = {
    "grep": ({"query": "reading room"}, LINE, "numbered lines of files"),
    "grep, a pattern": ({"pattern": "room"}, [{"file": "rooms.md", "text": ROOM}], NO_QUERY),
    "grep, words": ({"query": "reading room"}, EACH, "each text has the words of its query"),
    "ripgrep": ({"query": "room"}, RIPGREP, "numbered lines of files"),
    "read many": ({"paths": ["rooms.md", "a/floors.md"]}, BOTH, BY_NAME),
    "read many, with a reason": (WITH_REASON, [WATER, FLOOR], BY_NAME),
    "read one": ({"query": "rooms.md"}, [WATER], BY_NAME),
    "logs": (ERRORS, [{"file": "print.log", "text": JAM}], "entries of logs"),
    "structured logs": (ERRORS, [{"source": "p.py", "level": "ERROR", "text": JAM}], "entries of"),
    "list of files": ({"folder": "docs"}, PAGES, NO_QUERY),
    "files by their names": ({"query": "rooms"}, NAMES, "without a file, page or URL as place"),
    "list of all files": ({}, PAGES, NO_QUERY),
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("files", [(), FILES], ids=["alone", "documents"])
def test_tools_that_return_files_without_a_search_are_none(kind: str, files: Any) -> None:
    arguments, result, reason = OTHERS[kind]
    verdict = judge_tool("t", [(arguments, result)], files=files)
    assert not verdict.is_search
    assert reason in verdict.about
    assert "[traces.tools." in verdict.about


def test_a_search_by_a_word_of_its_texts_is_one() -> None:
    """One row may hold all words of a query; a single word is no sign of a pattern."""
    assert judge_tool("find", [(ASKED, [WATER, FLOOR])]).is_search
    assert judge_tool("find", [({"query": "floor three"}, [FLOOR])]).is_search
    for arguments in (
        {"search_phrase": "reading room floor", "folder": "a"},
        {"query": "floor", "file": "floors.md"},  # within one file
        "reading room floor",
    ):
        assert judge_tool("find", [(arguments, [FLOOR, FLOOR])]).is_search
    calls = [({"query": "room"}, [FLOOR]), ({"query": "water"}, [WATER, WATER])]
    assert judge_tool("find", calls).is_search


def test_fields_that_passages_have_too_are_no_sign_of_lines_or_logs() -> None:
    """A heading's level, the first line of a chunk, days and times at the beginning of a text."""
    chunk = FLOOR | {"level": 2, "line": 12, "text": "The reading room\nis on floor three."}
    for result in (
        [chunk],
        [FLOOR | {"heading": "Error"}],
        [FLOOR | {"text": "2026-03-01: the reading room opens."}],
        [FLOOR | {"text": "9:30 is when the reading room opens."}],
    ):
        assert judge_tool("find", [(ASKED, result)]).is_search


def test_a_search_without_a_hit_is_one_whatever_message_is_around_its_words() -> None:
    data = {"content": "nothing was found", "name": "find", "tool_call_id": "c1", "type": "tool"}
    none = json.dumps({"type": "tool", "data": data | {"additional_kwargs": {}, "x": "." * 99}})
    assert judge_tool("find", [(ASKED, "[rooms.md # Food]\nWater."), (ASKED, none)]).is_search
    long = none.replace("nothing", "nothing of that kind " * 20)
    assert not judge_tool("find", [(ASKED, "[rooms.md]\nWater."), (ASKED, long)]).is_search


def test_half_of_the_places_are_documents_and_on_one_site() -> None:
    def pages(*urls: str) -> list[Any]:
        rows = [{"url": url, "text": "The rooms of a house are here."} for url in urls]
        return [(ASKED, rows)]

    own = "https://lib.example/"
    web = ["https://a.example/rooms", "https://b.example/x", "https://c.example/y"]
    half = judge_tool("t", pages(own + "rooms", own + "loans", own + "hours"), files=FILES)
    assert half.is_search
    verdict = judge_tool("t", pages(*web), files=FILES)
    assert not verdict.is_search
    assert "3 places, only 1 in the documents" in verdict.about
    named = [f"https://{host}.example/rooms" for host in "abc"]  # a name that many sites have
    assert not judge_tool("t", pages(*named), files=FILES).is_search
    assert judge_tool("t", pages(own + "rooms"), gold=["rooms.md"]).is_search
    assert not judge_tool("t", pages(*web, *named), gold=["rooms.md"]).is_search
    repeated = [f"https://{host}.example/rooms#{part}" for host in "abc" for part in "12"]
    assert not judge_tool("t", pages(*repeated)).is_search


def test_an_absolute_path_is_the_document_with_which_it_ends() -> None:
    for path in ("file:///notes/a/floors.md#lift", r"C:\notes\a\floors.md"):
        result = [FLOOR | {"path": path}]
        verdict = judge_tool("t", [(ASKED, result)], files=FILES)
        assert [row["rel_path"] for row in verdict.passages(result, None)] == ["a/floors.md"]
    assert verdict.passages([FLOOR], None)[0]["rel_path"] == "a/floors.md"
    alone = judge_tool("t", [(ASKED, result)])
    assert not alone.is_search
    assert 'its places are absolute paths; with documents = "FOLDER"' in alone.about
    assert judge_tool("t", [(ASKED, result)], gold=FILES).is_search  # a live bot's are cut
