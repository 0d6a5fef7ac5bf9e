"""Paths proposed for answers of frameworks as their documentation shows them, and for streams."""

from __future__ import annotations

import json
from typing import Any

from tests.rows import each_row

from clients.expressions import compile_path
from clients.guess import propose
from clients.reply_form import guess_stream, sample, tree
from clients.streams import Stream, read_stream

QUESTION = "How long is the warranty?"
PROSE = "The warranty is two years from the day you bought the product."
PASSAGE = "We give a warranty of two years on all products that are sold in our shops."


WARRANTY = {"source": "shop/w.md", "Header 1": "Warranty", "Header 2": "Term"}
HIT = {"page_content": PASSAGE, "metadata": WARRANTY, "type": "Document"}
LANGSERVE = {
    "output": {"input": QUESTION, "context": [HIT], "answer": PROSE},
    "metadata": {"run_id": "8a7b"},
}
DOCUMENT = {"id": "9f", "content": PASSAGE, "meta": {"file_path": "shop/warranty.md"}}
HAYSTACK = {
    "answers": [{"data": PROSE, "query": QUESTION, "documents": [DOCUMENT | {"score": 0.83}]}]
}
SAID = {"type": "output_text", "text": PROSE, "annotations": []}
RESPONSES = {
    **{"id": "resp_1", "object": "response", "status": "completed", "model": "m-1"},
    "output": [{"type": "message", "role": "assistant", "content": [SAID]}],
    "usage": {"input_tokens": 12, "output_tokens": 9},
}
CITED = {"title": "Warranty", "filepath": "shop/warranty.md", "content": PASSAGE}
CONTEXT = {"citations": [CITED], "intent": json.dumps([QUESTION])}
MESSAGE = {"role": "assistant", "content": f"{PROSE} [doc1]", "context": CONTEXT}
AZURE = {
    "choices": [{"message": MESSAGE}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 9, "total_tokens": 21},
}
PLAIN = {
    "result": PROSE,
    "contexts": [PASSAGE, PASSAGE + " More."],
    "confidence": 0.7,
    "answered": True,
    "took_ms": 12.5,
    "flags": [],
}
CAMEL = {
    "responseText": PROSE,
    "searchResults": [
        {"docId": 7, "fileName": "warranty.md", "sectionTitle": "Term", "snippet": PASSAGE}
    ],
    "citations": [{"number": 1, "docId": 7}],
    "timings": {"retrievalMs": 5.0, "generationMs": 40.0, "totalMs": 46.0},
    "totalCost": 0.002,
}


@each_row(
    ("payload", "expected"),
    [
        (
            LANGSERVE,
            "answer output.answer | retrieved output.context | chunk.text page_content | "
            "chunk.rel_path metadata.source | "
            'chunk.heading_path join(\' > \', [metadata."Header 1", metadata."Header 2"])',
        ),
        (
            HAYSTACK,
            "answer answers[0].data | retrieved answers[0].documents | chunk.chunk_id id | "
            "chunk.rel_path meta.file_path | chunk.text content | chunk.score_final score",
        ),
        (RESPONSES, "answer output[0].content[0].text | usage usage"),
        (
            AZURE,
            "answer choices[0].message.content | "
            "retrieved choices[0].message.context.citations | chunk.rel_path filepath | "
            "chunk.text content | usage usage",
        ),
        (
            PLAIN,
            "answer result | retrieved contexts | chunk.text @ | confidence confidence | "
            "abstained answered == `false` | latency_ms {total: took_ms} | policy_flags flags",
        ),
        (
            CAMEL,
            "answer responseText | retrieved searchResults | "
            "chunk.doc_id docId && to_string(docId) | chunk.rel_path fileName | "
            "chunk.heading_path sectionTitle | chunk.text snippet | references citations | "
            "reference.index number | "
            "latency_ms {retrieve: timings.retrievalMs, generate: timings.generationMs, "
            "total: timings.totalMs} | "
            "cost_usd totalCost",
        ),
    ],
)
def test_frameworks(payload: Any, expected: str) -> None:
    """Expected: each field with its path."""
    tables = propose([payload], [QUESTION]).tables
    got = {
        f"{table}.{name}": path for table, paths in tables.items() for name, path in paths.items()
    }
    got = {name.removeprefix("response."): path for name, path in got.items()}
    paths = dict(part.split(" ", 1) for part in expected.split(" | "))
    assert {name: got.get(name) for name in paths} == paths


@each_row(
    "payload",
    [
        {"ok": True},
        {"status": "stored", "id": "feedback-17"},
        {"question": QUESTION},
        {"detail": "Not Found"},
        [],
        None,
        "text",
        {"items": [{"id": 1}, {"id": 2}]},
    ],
)
def test_what_is_no_answer_is_not_taken_for_one(payload: Any) -> None:
    assert not propose([payload], [QUESTION]).usable


def test_times_without_a_unit_are_told_by_the_length_of_the_call() -> None:
    def proposed(value: float) -> tuple[str | None, str | None]:
        proposal = propose([{"answer": PROSE, "latency": value}], [QUESTION], seconds=[0.5])
        latency = proposal.tables["response"].get("latency_ms")
        return latency, proposal.settings.get("latency_unit")

    assert proposed(0.4) == ("{total: latency}", "s")
    assert proposed(400.0) == ("{total: latency}", None)
    assert proposed(4e8) == ("{total: latency}", "ns")
    assert proposed(40.0) == ("{total: latency}", None)  # a twelfth of the call, in ms alone
    assert proposed(4.0) == (None, None)  # 4 ms are under a fiftieth of it, 4 s more than all of it


def test_a_list_without_a_known_name_is_taken_where_labels_name_its_files() -> None:
    records = [{"node": {"body": PROSE}, "source": {"name": name}} for name in ("a.md", "b.md")]
    tables = propose(
        [{"answer": PROSE, "records": records}], [QUESTION], gold_paths=["a.md"]
    ).tables
    assert tables["response"].get("retrieved") == "records"
    assert tables["chunk"] == {"text": "node.body", "rel_path": "source.name"}


def test_lists_that_no_name_tells_apart_are_named() -> None:
    first, second = ([{"text": PROSE, "path": f"{name}.md", "score": 0.5}] for name in "ab")
    notes = propose([{"answer": PROSE, "aside": first, "basis": second}], [QUESTION]).notes
    assert notes == [
        "? basis can be the passages as well as aside, and no name tells. If so, say --set "
        "retrieved=PATH."
    ]
    assert not propose([{"answer": PROSE, "aside": first, "passages": second}], [QUESTION]).notes


def test_the_labels_tell_which_name_is_the_path() -> None:
    item = {"source": "web", "name": "warranty.md", "text": PASSAGE}
    payload = {"answer": PROSE, "sources": [item]}
    paths = propose([payload], [QUESTION], gold_paths=["shop/warranty.md"]).tables["chunk"]
    assert paths["rel_path"] == "name"


def test_a_page_is_taken_by_its_label() -> None:
    def proposed(**metadata: Any) -> str | None:
        item = {"text": PASSAGE, "metadata": {"source": "a/book.pdf"} | metadata}
        payload = {"answer": PROSE, "sources": [item]}
        return propose([payload], [QUESTION]).tables["chunk"].get("page")

    assert proposed(page=0, page_label="iv") == "metadata.page_label"
    assert proposed(page=0) == "metadata.page"
    assert proposed(page={"number": 3}) is None
    assert proposed() is None


def test_headings_of_one_level_in_two_places_are_read_at_the_first() -> None:
    metadata = {"source": "a.md", "Header 1": "Roses", "Header 2": "Water"}
    passage = {"page_content": "Water them daily.", "metadata": metadata}
    payload = {"documents": [{**passage, "parent": {"Header 1": "Plants"}}]}
    levels = '[metadata."Header 1", metadata."Header 2"]'
    assert propose([payload], []).tables["chunk"]["heading_path"] == f"join(' > ', {levels})"


def test_citations_that_count_from_zero_are_left_out_and_told() -> None:
    payload = {"answer": PROSE, "sources": [{"text": PASSAGE, "file": "a.md"}], "citations": [0]}
    proposal = propose([payload], [QUESTION])
    assert "references" not in proposal.tables["response"]
    assert proposal.notes == ["citations counts from 0: [n] marks count from 1; left out."]


@each_row(
    ("block", "places"),
    [
        ("\n\nSources:\n[1] a.md - A\n[2] b/c.md - B C", [("a.md", "A"), ("b/c.md", "B C")]),
        ("\n\n**Sources:**\n- a.md\n- b.md", [("a.md", None), ("b.md", None)]),
        ("\n## References\n1. a.md: Intro\n", [("a.md", "Intro")]),
    ],
)
def test_sources_under_the_text(block: str, places: list[Any]) -> None:
    payload = {"answer": PROSE + block}
    tables = propose([payload], [QUESTION]).tables
    lines = compile_path(tables["response"]["retrieved"])(payload)
    chunk = {name: compile_path(path) for name, path in tables["chunk"].items()}
    got = [
        tuple(chunk[n](line) if n in chunk else None for n in ("rel_path", "heading_path"))
        for line in lines
    ]
    assert got == places
    assert compile_path(tables["response"]["answer"])(payload) == PROSE
    assert compile_path(tables["response"]["retrieved"])({"answer": "I do not know."}) == []


def sse(*events: Any, mark: str = "") -> bytes:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + mark.encode()


def chunk_of(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"object": "chunk", "choices": [{"delta": {"content": text}, "finish_reason": finish}]}


@each_row(
    ("body", "kind", "settings"),
    [
        (
            sse(chunk_of("It"), chunk_of(" is"), chunk_of(" so"), mark="data: [DONE]\n\n"),
            "text/event-stream",
            {"stream": "sse", "stream_delta": "choices[0].delta.content", "stream_last": "[DONE]"},
        ),
        (
            b'{"response": "It", "done": false}\n{"response": " is", "done": false}\n'
            b'{"response": "", "done": true}\n',
            "application/x-ndjson",
            {"stream": "ndjson", "stream_delta": "response", "stream_last": "done"},
        ),
        (b"data: It \n\ndata: is\n\ndata: so\n\n", "", {"stream": "sse", "stream_delta": "data"}),
        (b'{"answer": "It is"}', "application/json", None),
        (b'{\n "answer": "x"\n}', "application/json", None),
        (b"", "", None),
    ],
)
def test_streams(body: bytes, kind: str, settings: dict[str, str] | None) -> None:
    assert guess_stream(body, kind) == settings


def test_the_tree_shows_every_path_that_can_be_written() -> None:
    assert tree(HAYSTACK)[:3] == [
        "answers  list of 1",
        f'answers[0].data  "{PROSE}"',
        f'answers[0].query  "{QUESTION}"',
    ]
    for line in tree(LANGSERVE):
        path = line.partition("  ")[0]
        assert compile_path(path)(LANGSERVE) is not None


CHROMA = {
    "answer": "It is mown weekly in the warm months.",
    "ids": [["c1", "c2"]],
    "documents": [["A lawn is mown every week.", "Roses are pruned in early March."]],
    "metadatas": [[{"source": "garden/lawn.md"}, {"source": "garden/roses.md"}]],
    "distances": [[0.1, 0.4]],
}


def test_parallel_lists_are_read_item_by_item() -> None:
    tables = propose([CHROMA], ["How often is the lawn mown?"]).tables
    assert tables["response"]["answer"] == "answer"
    path = tables["response"]["retrieved"]
    rows = compile_path(path)(CHROMA)
    found = [
        {name: compile_path(inner)(row) for name, inner in tables["chunk"].items()} for row in rows
    ]
    assert [(row["chunk_id"], row["rel_path"]) for row in found] == [
        ("c1", "garden/lawn.md"),
        ("c2", "garden/roses.md"),
    ]
    assert found[1]["text"] == "Roses are pruned in early March."


def test_parallel_lists_in_every_item_of_a_list_become_one_list() -> None:
    sources = [
        {
            "name": "Handbook",
            "document": [f"The {word} is looked after every year."],
            "metadata": [{"source": f"{word}.md"}],
        }
        for word in ("boiler", "gutter")
    ]
    payload = {"answer": "Both are looked after every year.", "sources": sources}
    tables = propose([payload], ["What is looked after?"]).tables
    rows = compile_path(tables["response"]["retrieved"])(payload)
    paths = [compile_path(tables["chunk"]["rel_path"])(row) for row in rows]
    assert paths == ["boiler.md", "gutter.md"]


def test_lists_that_only_have_the_same_length_stay_apart() -> None:
    payload = {
        "answer": "It is mown weekly in the warm months.",
        "contexts": ["A lawn is mown every week.", "Roses are pruned in early March."],
        "follow_up": ["Why?", "When?"],
    }
    assert propose([payload], ["How often?"]).tables["response"]["retrieved"] == "contexts"


def test_a_list_deep_in_one_event_of_a_stream_is_found() -> None:
    """The first delta of a server that speaks OpenAI's protocol has the passages."""
    cited = [{"content": PASSAGE, "filepath": "shop/warranty.md"}]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "context": {"citations": cited}}]
    deltas += [{"content": f"{word} "} for word in PROSE.split()]
    events = [{"id": "c", "choices": [{"delta": delta}]} for delta in deltas]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    settings = guess_stream(body.encode(), "text/event-stream") or {}
    payload, _ = read_stream(body.encode(), Stream("sse", compile_path(settings["stream_delta"])))
    tables = propose([payload], [QUESTION], settings=settings).tables
    assert tables["response"]["answer"] == "text"
    assert compile_path(tables["response"]["retrieved"])(payload) == cited
    assert tables["chunk"]["rel_path"] == "filepath"


def test_numbers_in_texts_are_numbers() -> None:
    payload = {
        "answer": "It is mown weekly in the warm months.",
        "usage": {"prompt_tokens": "310", "completion_tokens": "12"},
        "price": {"prompt_unit_price": "0.001", "total_price": "0.0004"},
        "latency_ms": "41.5",
    }
    response = propose([payload], ["How often?"]).tables["response"]
    values = {name: compile_path(path)(payload) for name, path in response.items()}
    assert values["usage"] == {"prompt_tokens": 310, "completion_tokens": 12}
    assert values["cost_usd"] == 0.0004
    assert values["latency_ms"] == {"total": 41.5}


def test_the_one_key_that_varies_is_the_piece_of_an_answer() -> None:
    words = ["Mow ", "it ", "every ", "week."]
    body = "".join(f"data: {json.dumps({'type': 'x', 'w': word})}\n\n" for word in words)
    settings = guess_stream(body.encode(), "text/event-stream")
    assert settings is not None
    assert settings["stream_delta"] == "w"


def test_two_keys_that_vary_are_not_guessed() -> None:
    pairs = zip(["a", "b", "c", "d"], ["k", "l", "m", "n"], strict=True)
    body = "".join(f"data: {json.dumps({'w': w, 'v': v})}\n\n" for w, v in pairs)
    settings = guess_stream(body.encode(), "text/event-stream")
    assert settings is not None
    assert "stream_delta" not in settings


def test_lines_with_a_code_are_a_stream() -> None:
    body = b'8:[{"type":"sources"}]\n0:"Mow "\n0:"it."\n'
    settings = guess_stream(body, "text/plain")
    assert settings is not None
    assert settings["stream"] == "vercel"


@each_row(
    ("replies", "path"),
    [
        (({"x": "It costs ten euros."}, {"x": "It opens at nine."}), "x"),
        (({"x": "It costs ten euros."}, {"x": "It costs ten euros."}), None),
        (({"x": "It costs ten euros.", "y": "In three old files."},) * 2, None),
        (({"x": "It costs ten.", "y": "In old files."}, {"x": "At nine.", "y": "In files."}), None),
        (({"answer": None, "x": "In old files."}, {"answer": None, "x": "In two files."}), None),
    ],
)
def test_a_text_without_a_usual_name_is_the_answer_if_alone(replies: Any, path: str | None) -> None:
    """Two texts that differ, or an empty field of that name, leave it open."""
    proposal = propose(replies, ["How much is it?", "When is it open?"])
    assert proposal.tables["response"].get("answer") == path


def test_a_sample_of_a_value_has_70_characters_and_shows_where_it_is_cut() -> None:
    assert sample("x" * 68) == f'"{"x" * 68}"'  # the quotes are two of the 70
    assert sample("x" * 69) == f'"{"x" * 68}…'
