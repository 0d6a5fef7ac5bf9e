"""Lists within lists, whose lengths vary from answer to answer, are read whole or not at all."""

from __future__ import annotations

from typing import Any

from clients.bot import Heard, Question, Timing
from clients.expressions import compile_path
from clients.guess import another_answer, longer_list, propose
from clients.proof import _items_beside
from clients.reply_form import columns_of

WORDS = ("Water is allowed in every room.", "Books are lent for twenty-eight days.")


def source(number: int) -> dict[str, Any]:
    return {"id": f"d{number}", "path": f"{number}.md", "text": f"{WORDS[number % 2]} ({number})"}


def cited(*numbers: list[int]) -> dict[str, Any]:
    """An answer with a citation for each list of numbers of its sources."""
    citations = [{"text": "…", "sources": [source(n) for n in each]} for each in numbers]
    return {"answer": f"An answer with {len(numbers)} citations of these: {numbers}.",
            "citations": citations}  # fmt: skip


def test_all_sources_of_all_citations_are_the_passages_each_once() -> None:
    answers = [cited([1], [2, 1]), cited([3]), cited([2], [1], [3])]
    tables = propose(answers, ["a?", "b?", "c?"]).tables
    path = tables["response"]["retrieved"]
    assert path == "unique(citations[].sources[])"
    found = [[each["id"] for each in compile_path(path)(answer)] for answer in answers]
    assert found == [["d1", "d2"], ["d3"], ["d2", "d1", "d3"]]
    assert tables["chunk"] == {"chunk_id": "id", "rel_path": "path", "text": "text"}


def test_one_citation_in_each_answer_is_not_taken_for_all() -> None:
    answers = [cited([1]), cited([2]), cited([3])]
    assert propose(answers, ["a?", "b?", "c?"]).tables["response"]["retrieved"] == (
        "unique(citations[].sources[])"
    )


def test_the_only_choice_stays_the_first() -> None:
    answers = [{"choices": [{"message": {"content": WORDS[0], "sources": [source(1)]}}]}]
    response = propose(answers, ["a?"]).tables["response"]
    assert response["answer"] == "choices[0].message.content"
    assert response["retrieved"] == "choices[0].message.sources"


def test_parts_of_a_text_are_joined() -> None:
    answers = [
        {"content": [{"type": "text", "text": f"{word} "} for word in words.split()]}
        for words in WORDS
    ]
    path = propose(answers, ["a?", "b?"]).tables["response"]["answer"]
    assert [compile_path(path)(each).strip() for each in answers] == [*WORDS]


def test_one_event_of_several_is_not_taken_for_all() -> None:
    events = [
        {"events": [{"type": "found", "passages": [source(n)]}, {"type": "word", "delta": word}],
         "text": word}
        for n, word in enumerate(WORDS)
    ]  # fmt: skip
    settings = {"stream": "sse", "stream_delta": "delta"}
    response = propose(events, ["a?", "b?"], settings=settings).tables["response"]
    assert response["retrieved"] == "events[?type == 'found'].passages[]"


def test_a_text_and_its_place_are_a_passage_and_the_answer_may_repeat_it() -> None:
    answers = [
        {"data": {"jsonrpc": "2.0", "reply": word,
                  "edges": [{"node": {"body": word, "document": {"path": f"{n}.md"}}}]}}
        for n, word in enumerate(WORDS)
    ]  # fmt: skip
    tables = propose(answers, ["a?", "b?"]).tables
    assert tables["response"] == {"answer": "data.reply", "retrieved": "data.edges"}
    assert tables["chunk"] == {"rel_path": "node.document.path", "text": "node.body"}


def test_a_title_is_a_heading_only_where_a_file_has_several() -> None:
    def answer(*titles: str) -> dict[str, Any]:
        hits = [{"url": "a.md", "title": title, "snippet": WORDS[0]} for title in titles]
        return {"answer": f"It is {titles[0]} of the house rules.", "hits": hits}

    one, several = [answer("A")], [answer("A", "B")]
    assert "heading_path" not in propose(one, ["a?"]).tables["chunk"]
    assert propose(several, ["a?"]).tables["chunk"]["heading_path"] == "title"


def test_a_list_that_is_left_out_because_it_varies_is_named() -> None:
    blocks = [{"blocks": [{"words": words} for words in WORDS[:size]]} for size in (1, 2)]
    notes = propose(blocks, ["a?", "b?"]).notes
    assert any(note.startswith("? blocks has 1 to 2 items in these answers") for note in notes)


def test_the_sources_of_the_last_message_are_the_passages() -> None:
    """Not the messages themselves, each with the first of its sources."""

    def answer(number: int) -> dict[str, Any]:
        thoughts = [{"role": "assistant", "content": "Let me see."}] * number
        sources = {"sources": [source(1), source(2)]}
        last = {"role": "assistant", "content": f"So it is {number}.", **sources}
        return {"messages": [{"role": "user", "content": "Why?"}, *thoughts, last]}

    tables = propose([answer(0), answer(1), answer(2)], ["a?", "b?", "c?"]).tables
    assert tables["response"]["retrieved"] == "messages[-1].sources"
    assert tables["chunk"] == {"chunk_id": "id", "rel_path": "path", "text": "text"}


def steps(*outputs: Any) -> dict[str, Any]:
    """An agent's answer with its steps: each has a tool and what it gave back."""
    return {
        "reply": f"A reply to {outputs!r:.40}",
        "steps": [{"tool": f"t{n}", "output": output} for n, output in enumerate(outputs)],
    }


def test_what_other_steps_gave_back_is_no_passage() -> None:
    weather = {"degrees": 11, "text": "There are few clouds today."}
    answers = [steps(weather, [source(1), source(2)]), steps(weather, [source(3)])]
    path = propose(answers, ["a?", "b?"]).tables["response"]["retrieved"]
    found = [[each["id"] for each in compile_path(path)(answer)] for answer in answers]
    assert found == [["d1", "d2"], ["d3"]]


def test_lists_are_not_taken_without_the_passages_that_come_as_a_text_beside_them() -> None:
    """Two searches of different forms: half of the passages would be missing, and look proved."""
    block = f"[9.md # Rooms]\n{WORDS[0]}"
    proposal = propose(
        [steps([source(1), source(4)], block), steps([source(2)], block)], ["a?", "b?"]
    )
    assert "retrieved" not in proposal.tables["response"]
    assert any(note.startswith("? unique(steps[].output[]) leaves out") for note in proposal.notes)


def test_a_part_of_the_answer_is_not_the_answer() -> None:
    """Also where the whole answer repeats a passage word for word."""
    answers = [
        {"answer": words, "hits": [source(n) | {"text": words}],
         "segments": [{"text": words[:20]}, {"text": words[20:]}]}
        for n, words in enumerate(WORDS)
    ]  # fmt: skip
    assert propose(answers, ["a?", "b?"]).tables["response"]["answer"] == "answer"
    lists = [answer["hits"] for answer in answers]
    assert another_answer(answers, ["a?", "b?"], "answer", lists) is None


def test_a_list_that_is_a_part_of_another_one_is_a_doubt() -> None:
    """The sources cut to the first citation, beside all that was retrieved."""
    answers = [
        {"sources": [source(1)], "context": [{"meta": source(n)} for n in (1, 2)]},
        {"sources": [source(3)], "context": [{"meta": source(n)} for n in (3, 1, 4)]},
    ]
    assert longer_list(answers, "sources") == "context"
    assert longer_list(answers, "context") is None
    whole = [
        answer | {"sources": [each["meta"] for each in answer["context"]]} for answer in answers
    ]
    assert longer_list(whole, "sources") is None
    in_steps = [{"sources": [source(1)], "steps": [{"n": 1}, {"hits": [source(1)]}]}]
    assert longer_list(in_steps, "sources") is None  # one step has them all
    others = [answer | {"context": [{"meta": source(7)}] * 3} for answer in answers]
    assert longer_list(others, "sources") is None


def test_of_nameless_deltas_the_lists_inside_are_offered() -> None:
    """Passages come in the first delta; a word that is in one delta alone is no field."""
    events = [
        {"choices": [{"delta": {"hits": [source(1)]}}]},
        {"choices": [{"delta": {"content": WORDS[0]}}]},
    ]
    payload = {"events": events, "text": WORDS[0], "last": events[-1]}
    paths = [column.path for column in columns_of([payload], streamed=True)]
    offered = [path for path in paths if path.startswith("events")]
    assert offered == ["events[].choices[0].delta.hits | [0]"]


def test_the_first_of_several_texts_of_a_list_is_a_doubt() -> None:
    def answer(*texts: str) -> Heard:
        parts = {"parts": [{"text": text} for text in texts]}
        return Heard(Question("a", "a?"), parts, Timing(0.1))

    assert _items_beside("parts[0].text", [answer("A."), answer("A.", "B.", "")]) == 2
    assert _items_beside("parts[0].text", [answer("A."), answer("B.", "")]) == 0
    assert _items_beside("reply", [answer("A.", "B.")]) == 0
    assert _items_beside("before(parts[0].text, '.')", [answer("A.", "B.")]) == 0


def agent(*searches: list[int]) -> dict[str, Any]:
    """An agent's answer with a step for each search, which gave back these sources."""
    steps = [
        {"tool": "search", "args": {"query": f"{found}"}, "found": [source(n) for n in found]}
        for found in searches
    ]
    return {"reply": f"A reply by these searches: {searches}", "steps": steps}


def test_steps_that_found_one_passage_each_are_no_passages() -> None:
    """Else a step with two passages would count as one."""
    answers = [agent([1], [2]), agent([3], [4])]
    response = propose(answers, ["a?", "b?"]).tables["response"]
    searches = compile_path(response["searches"])(agent([1, 2], [3]))
    ids = [[each["id"] for each in search["retrieved"]] for search in searches]
    assert ids == [["d1", "d2"], ["d3"]]
    assert "retrieved" not in response


def test_a_list_with_one_item_in_each_answer_is_read_whole_where_another_has_more() -> None:
    def answer(*lists: list[int]) -> dict[str, Any]:
        parts = [{"topic": f"{each}", "results": [source(n) for n in each]} for each in lists]
        return {"reply": f"A reply by these parts: {lists}", "parts": parts}

    path = propose([answer([1, 2]), answer([3])], ["a?", "b?"]).tables["response"]["retrieved"]
    found = compile_path(path)(answer([1, 2], [3], [1]))
    assert [each["id"] for each in found] == ["d1", "d2", "d3"]


def test_a_file_with_its_text_in_a_list_is_one_passage() -> None:
    answers = [
        {"reply": f"It says {words}",
         "data": [{"filename": f"{n}.md", "content": [{"text": words}]}]}
        for n, words in enumerate(WORDS)
    ]  # fmt: skip
    tables = propose(answers, ["a?", "b?"]).tables
    assert tables["response"]["retrieved"] == "data"
    assert tables["chunk"] == {"rel_path": "filename", "text": "content[0].text"}


def test_a_tool_that_is_called_twice_alike_has_two_calls() -> None:
    call = {"name": "price", "arguments": {"id": 1}, "result": "2 EUR"}
    answers = [{"reply": words, "turns": [{"tools_used": [call]}]} for words in WORDS]
    path = propose(answers, ["a?", "b?"]).tables["response"]["tools"]
    assert compile_path(path)({"turns": [{"tools_used": [call, call]}]}) == [call, call]
