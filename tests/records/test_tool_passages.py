"""Which results of tools are passages with places, by their shape or by the user's form."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from records.tool_passages import ToolForm, passages_in, query_of
from records.tool_searches import ToolVerdict, judge_tool

WATER = {"path": "rooms.md", "heading": "Food", "text": "Water in closed bottles is allowed."}
FLOOR = {"path": "a/floors.md", "heading": "Lift", "text": "The reading room is on floor three."}
HITS = [(hit["path"], hit["heading"], hit["text"]) for hit in (WATER, FLOOR)]
ROWS = [{"text": text, "rel_path": path, "heading_path": heading} for path, heading, text in HITS]

OTHER_TOOLS: dict[str, Any] = {
    "SQL rows": [{"id": 17, "name": "Fischer", "note": "Owes two books", "on": "2026-03-01"}],
    "tickets": [{"id": "T-1", "title": "Lift", "description": "The lift stops on floor two."}],
    "weather": {"location": "Bern", "forecast": [{"day": "Monday", "text": "Sunny, light wind"}]},
    "products": [{"sku": "A-1", "name": "Lamp", "description": "A small lamp for the desk"}],
    "calendar": [{"summary": "Story hour", "location": "Room 2", "text": "For children up to six"}],
    "list of files": [{"path": "rooms.md", "size": 512}, {"path": "loans.md", "size": 733}],
    "list of tools": [{"name": "lookup_notes", "description": "Search in all the notes."}],
    "chat memory": [{"role": "user", "content": "I am called Anna, hello."}],
    "git log": "commit 1f3a9c\nAuthor: A <a@lib.example>\n\n    Fix hours in guide/visit.md\n",
    "one read file": "# Rooms\n\n## Floors\n\nThe reading room is on the third floor.\n",
    "grep": "rooms.md:3:The reading room is on the third floor.\nloans.md:9:Each book costs.",
    "prose": "See rooms.md and loans.md for the rules of the house.\nAsk at the desk.",
}

WRAPPED = [
    json.dumps([WATER, FLOOR]),
    str([WATER, FLOOR]),
    {"result": [WATER, FLOOR]},
    {"results": [WATER, FLOOR], "total": 2},
    [{"type": "text", "text": json.dumps([WATER, FLOOR])}],
    {"content": [{"type": "text", "text": json.dumps(hit)} for hit in (WATER, FLOOR)]},
    {"type": "tool", "data": {"content": json.dumps([WATER, FLOOR]), "tool_call_id": "c"}},
    [
        {"page_content": text, "metadata": {"source": path, "header": [heading]}}
        for path, heading, text in HITS
    ],
    "[Document(metadata={'source': 'rooms.md', 'heading': 'Food'}, page_content='"
    + f"{WATER['text']}'), Document(metadata={{'source': 'a/floors.md', 'heading': 'Lift'}}, "
    + f"page_content='{FLOOR['text']}')]",
    "\n\n".join(f"[{path} # {heading}]\n{text}" for path, heading, text in HITS),
    "\n---\n".join(f"1. {path} > {heading} (score: 0.1)\n{text}" for path, heading, text in HITS),
    "\n".join(f"Source: {path}\nSection: {heading}\n{text}" for path, heading, text in HITS),
    "Two notes may help:\n\n```json\n" + json.dumps([WATER, FLOOR], indent=1) + "\n```",
    "\n".join(f"1. {text} (source: {path}, section: {heading})" for path, heading, text in HITS),
    {  # OpenAI's search of a vector store
        "search_query": ["water"],
        "data": [
            {"filename": path, "attributes": {"heading": heading}}
            | {"content": [{"type": "text", "text": text}]}
            for path, heading, text in HITS
        ],
    },
    {  # Chroma's columns
        "ids": [["1", "2"]],
        "documents": [[WATER["text"], FLOOR["text"]]],
        "metadatas": [[{"source": path, "heading": heading} for path, heading, _ in HITS]],
        "distances": [[0.1, 0.4]],
    },
    "\n".join(
        f'<document path="{path}"><heading>{heading}</heading><text>{text}</text></document>'
        for path, heading, text in HITS
    ),
]


def judged(
    name: str, results: list[Any], form: ToolForm | None = None, **known: Any
) -> ToolVerdict:
    """Of calls whose arguments were not captured."""
    return judge_tool(name, [(None, result) for result in results], form, **known)


@pytest.mark.parametrize("result", WRAPPED)
def test_lists_and_blocks_are_passages_whatever_is_around_them(result: Any) -> None:
    assert passages_in(result) == ROWS


@pytest.mark.parametrize("kind", OTHER_TOOLS)
def test_results_of_other_tools_are_none(kind: str) -> None:
    result = OTHER_TOOLS[kind]
    for form in (result, json.dumps(result), str(result), {"result": result}, [result]):
        assert not passages_in(form)
    assert not judged("t", [result, result]).is_search


def test_a_search_of_the_web_is_known_by_the_documents() -> None:
    pages = [{"title": "Bern", "url": "https://a.example/bern", "snippet": "Bern is a capital."}]
    verdict = judged("web", [pages])
    assert not verdict.is_search
    assert "1 URL, perhaps of the web; seen, not retrieved" in verdict.about
    assert judged("web", [pages, []], ToolForm()).is_search  # the user names it
    assert judged("web", [pages], files=["bern.md"]).is_search
    parts = [pages[0] | {"url": f"https://a.example/bern#{part}"} for part in "ab"]
    assert judged("find", [pages, parts]).is_search  # passages of one page
    assert judged("find", [pages, [WATER]]).is_search
    verdict = judged("web", [pages], files=["rooms.md"])
    assert not verdict.is_search
    assert "Tool web: 1 place, none in the documents; seen, not retrieved. If" in verdict.about
    assert judged("find", [pages, [WATER]], files=["docs/rooms.md"]).is_search


@pytest.mark.parametrize("address", ["url", "link", "permalink", "htmlLink"])
def test_objects_with_addresses_of_their_own_are_no_documents(address: str) -> None:
    """The web, tickets, messages, events: each with a URL."""
    rows = [{"id": n, "text": "The lift stops here.", address: f"https://a.b/{n}"} for n in (1, 2)]
    for result in (rows, json.dumps({"results": rows}), str(rows)):
        assert not judged("t", [result, result]).is_search


def test_a_tool_is_decided_over_all_of_its_results() -> None:
    assert judged("find", [[WATER], "Nothing was found.", []]).is_search
    other = judged("find", [[WATER], "The rooms are described in words. " * 9])
    assert not other.is_search
    assert "1 of 2 results are no list of passages with places" in other.about
    assert "without a file, page or URL" in judged("find", ["Ten days. " * 9]).about
    assert judged("add", ["42"]).about == ""


def test_several_titles_of_one_file_are_headings() -> None:
    rows = [{"uri": "a.md", "title": title, "content": "Some words of it."} for title in "xy"]
    verdict = judged("find", [rows])
    assert [row["heading_path"] for row in verdict.passages(rows, None)] == ["x", "y"]
    once = judged("find", [rows[:1]])
    assert "heading_path" not in once.passages(rows[:1], None)[0]


def test_a_place_is_a_file_or_a_url_alone() -> None:
    assert passages_in("[rooms.md] Water is allowed in all rooms.") is None  # text behind it
    assert passages_in("[rooms.md # Food]\n\n[loans.md # Fees]\nTen cents.") is None  # none below
    rows = passages_in("https://lib.example/rooms#food\nWater is allowed.")
    assert rows == [{"rel_path": "https://lib.example/rooms#food", "text": "Water is allowed."}]


def test_a_form_says_how_a_result_is_read() -> None:
    pieces = ToolForm(
        split=re.compile("\n==\n"), place=re.compile(r"^Note (?P<path>\S+), (?P<heading>.+)$", re.M)
    )
    text = "Note rooms.md, Food\nWater.\n==\nNote loans.md, Fees\nTen cents."
    assert passages_in(text, pieces) == [
        {"rel_path": "rooms.md", "heading_path": "Food", "text": "Water."},
        {"rel_path": "loans.md", "heading_path": "Fees", "text": "Ten cents."},
    ]
    assert passages_in([{"type": "text", "text": text}], pieces) == passages_in(text, pieces)
    inner = ToolForm(
        passages=lambda value: value["hits"],
        text=lambda hit: hit["t"],
        rel_path=lambda hit: hit["note"],
        heading_path=lambda hit: ["A", hit["h"]],
    )
    result = json.dumps({"hits": [{"t": "Water.", "note": "rooms", "h": "Food"}]})
    assert passages_in({"result": result}, inner) == [
        {"rel_path": "rooms", "heading_path": "A > Food", "text": "Water."}
    ]


def test_a_form_reads_the_result_inside_and_with_its_message() -> None:
    """A user writes the paths of the result, or those of the message around it, as a trace has it;
    of several blocks of JSON these are the list, and items may be lists."""
    named = ToolForm(text=lambda hit: hit["t"], rel_path=lambda hit: hit["note"])
    hits = [{"t": "Water.", "note": "rooms"}, {"t": "Fire.", "note": "alarm"}]
    read = [{"rel_path": "rooms", "text": "Water."}, {"rel_path": "alarm", "text": "Fire."}]
    blocks = [{"type": "text", "text": json.dumps(hit)} for hit in hits]
    adk = {"id": "c", "name": "find", "response": {"result": json.dumps(hits)}}
    for result in (hits, json.dumps(hits), blocks, {"content": blocks, "isError": False}, adk):
        assert passages_in(result, named) == read
    outer = ToolForm(
        passages=lambda value: value.get("content") if isinstance(value, dict) else None,
        text=lambda hit: hit["resource"]["text"],
    )
    resource = {"type": "resource", "resource": {"uri": "file:///rooms.md", "text": "Water."}}
    rows = passages_in({"content": [resource], "isError": False}, outer)
    assert rows == [{"rel_path": "file:///rooms.md", "text": "Water."}]
    pairs = ToolForm(passages=lambda _: [["Water.", "rooms"]], text=lambda pair: pair[0])
    assert passages_in([["x"]], pairs) == [{"text": "Water."}]
    markup = ToolForm(split=re.compile("</hit>"), place=re.compile(r"<at>(?P<path>.+)</at>"))
    text = "<hits><hit><at>rooms.md</at> Water. </hit></hits>"
    assert [row.get("rel_path") for row in passages_in(text, markup) or ()] == ["rooms.md"]


def test_a_list_of_one_whose_item_came_alone_is_read_by_its_form() -> None:
    """MCP has a block for each item, so a single item and a list of them look different."""
    form = ToolForm(passages=lambda v: v, text=lambda hit: hit["t"], rel_path=lambda hit: hit["at"])
    blocks = [{"type": "text", "text": json.dumps({"t": "Water.", "at": "a.md"})}]
    read = [{"rel_path": "a.md", "text": "Water."}]
    assert passages_in({"content": blocks * 2, "isError": False}, form) == read * 2
    assert passages_in({"content": blocks, "isError": False}, form) == read
    loose = ToolForm(passages=lambda value: value, text=lambda hit: hit.get("t"))
    assert passages_in({"t": "Nothing was found."}, loose) == []  # a message without a place


def test_a_place_behind_its_text_is_not_given_to_the_next_text() -> None:
    text = "Water is allowed. (source: rooms.md)\n\nTen cents a day. (source: loans.md)"
    place = re.compile(r"\(source: (?P<path>\S+)\)")
    assert passages_in(text, ToolForm(place=place)) == []  # short, and nothing is read
    assert passages_in(text * 9, ToolForm(place=place)) is None
    verdict = judged("find", [text * 9], ToolForm(place=place))
    assert not verdict.is_search
    assert verdict.about == "Tool find: its form does not read 1 of 1 result; seen, not retrieved."
    split = ToolForm(split=re.compile(r"\n\n"), place=place)
    assert passages_in(text, split) == [
        {"rel_path": "rooms.md", "text": "Water is allowed."},
        {"rel_path": "loans.md", "text": "Ten cents a day."},
    ]


def test_the_query_is_the_argument_of_that_name_or_the_only_text() -> None:
    assert query_of({"query": "dogs", "folder": "a"}) == "dogs"
    assert query_of({"about": "dogs", "k": 3}) == "dogs"
    assert query_of({"about": "dogs", "folder": "a"}) is None
    assert query_of('{"q": "dogs"}') == "dogs"
    assert query_of("dogs") == "dogs"


@pytest.mark.parametrize(
    "result",
    [
        "[" * 100_000,
        "f(" * 50_000 + "a=1" + ")" * 50_000,
        '{"a": ' * 50_000 + "1" + "}" * 50_000,
        "<a>" * 50_000 + "</a>" * 50_000,
        '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        "a." * 200_000,
        "[" + "a.md" * 50_000 + "]\ntext",
        "x\x00='a')",
        ["\ud800", "a.md\nb"],
        [{"path": "a.md", "text": None}, {"path": None, "text": "Some words of it."}],
        [[[[[[[[["a.md"]]]]]]]]],
        {"result": {"result": {"result": {"result": {"result": {"result": [WATER]}}}}}},
        float("nan"),
    ],
)
def test_no_result_breaks_the_reading(result: Any) -> None:
    begun = time.process_time()
    assert not passages_in(result)
    assert not judged("t", [result]).is_search
    formed = passages_in(result, ToolForm(place=re.compile(r"(?P<path>\w+\.md)")))
    assert all(row["text"] for row in formed or ())
    assert time.process_time() - begun < 3
