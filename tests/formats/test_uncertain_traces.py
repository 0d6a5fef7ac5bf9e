"""Traces where the last words, the first list or a lone word are not what they seem.

Hand-made, with the names that OpenInference, OpenLLMetry and the GenAI conventions document.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.formats.spans import attributes, message

QUESTION = "How long can I return shoes?"
ANSWER = "You can return shoes within 60 days."
PASSAGE = "Shoes can be returned within 60 days of delivery if they are unworn."
PROMPT = f"Answer from the passages.\n\n{PASSAGE}\n\nQuestion: {QUESTION}"


def step(name: str, parent: str = "", **told: Any) -> dict[str, Any]:
    """A span; ``told``: attributes, with __ for a dot."""
    texts = {key: v if isinstance(v, str) else json.dumps(v) for key, v in told.items()}
    span = {"traceId": "t", "spanId": name, "name": name, "parentSpanId": parent}
    return span | {"attributes": attributes(**texts)}


def chat(name: str, asked: Any, said: str, kind: str = "chat") -> dict[str, Any]:
    return step(
        name,
        "POST /chat",
        gen_ai__operation__name=kind,
        gen_ai__input__messages=asked if isinstance(asked, list) else [message("user", asked)],
        gen_ai__output__messages=[message("assistant", said)],
    )


def agent(name: str, asked: str, said: str) -> dict[str, Any]:
    return chat(name, asked, said, "invoke_agent")


def valued(kind: str, given: Any, out: Any, name: str, parent: str) -> dict[str, Any]:
    values = {"openinference__span__kind": kind, "input__value": given, "output__value": out}
    return step(name, parent, **values)


def chain(given: Any, out: Any, name: str = "run", parent: str = "") -> dict[str, Any]:
    return valued("CHAIN", given, out, name, parent)


SERVER = step("POST /chat", http__request__method="POST")
SEARCH = step(
    "search",
    "POST /chat",
    gen_ai__operation__name="retrieval",
    gen_ai__retrieval__query__text="return shoes",
    gen_ai__retrieval__documents=[{"id": "1", "content": PASSAGE}],
)


def read(desk: Any, *spans: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """The question and the answer of a trace whose spans began one after the other, and the row."""
    last = 2 * len(spans) + 1
    timed = [
        span
        | {"startTimeUnixNano": str(2 * n), "endTimeUnixNano": str(2 * n + 1 if n > 1 else last)}
        for n, span in enumerate(spans, 1)
    ]
    file = {"resourceSpans": [{"scopeSpans": [{"spans": timed[::-1]}]}]}  # in any order
    desk.report = desk.take("otel", desk.file("trace.json", json.dumps(file)), more=["--force"])
    (row,) = desk.results("trace")
    return desk.cases()[0]["question"], row.get("answer") or None, row


LATER = {
    "a judge in JSON": (f"Grounded?\nContext: {PASSAGE}\nAnswer: {ANSWER}", '{"grounded": true}'),
    "a judge in words": (f"Context: {PASSAGE}\nAnswer: {ANSWER}", "It is well grounded, I think."),
    "a safety check": (f"Is this harmful? {ANSWER}", "safe"),
    "a title": (f"Give a title: {QUESTION}", "Returning shoes"),
    "a translation": (f"Translate to German: {ANSWER}", "Sie haben dafür 60 Tage Zeit."),
    "further questions": (
        [
            message("user", QUESTION),
            message("assistant", ANSWER),
            message("user", "Suggest questions."),
        ],
        "What about hats? What about boots?",
    ),
}


@pytest.mark.parametrize("later", LATER)
def test_a_call_of_the_model_about_an_answer_makes_it_unknown(desk: Any, later: str) -> None:
    asked, said = LATER[later]
    spans = (SERVER, SEARCH, chat("answer", PROMPT, ANSWER), chat("later", asked, said))
    assert read(desk, *spans)[:2] == (QUESTION, None)


def test_a_query_that_the_model_wrote_first_leaves_the_answer_certain(desk: Any) -> None:
    rewriting = chat(
        "rewrite", [message("system", "Rewrite."), message("user", QUESTION)], "shoe returns"
    )
    spans = (SERVER, rewriting, SEARCH, chat("answer", PROMPT, ANSWER))
    assert read(desk, *spans)[:2] == (QUESTION, ANSWER)


@pytest.mark.parametrize("said", ["returns", "needs_more", "PASS", '{"intent": "returns"}'])
def test_a_label_of_the_only_call_is_no_answer(desk: Any, said: str) -> None:
    assert read(desk, SERVER, chat("classify", QUESTION, said))[1] is None


@pytest.mark.parametrize("said", ["Yes", "60 days", "No.", "60"])
def test_a_short_answer_of_the_only_call_stays_one(desk: Any, said: str) -> None:
    assert read(desk, SERVER, chat("answer", QUESTION, said))[1] == said


def test_of_two_agents_a_verdict_is_no_answer_and_two_texts_are_unknown(desk: Any) -> None:
    shop = agent("shop", QUESTION, ANSWER)
    assert read(desk, SERVER, shop, agent("judge", f"Judge: {ANSWER}", "PASS"))[1] == ANSWER
    assert read(desk, SERVER, agent("route", QUESTION, "returns"), shop)[1] == ANSWER
    title = agent("title", QUESTION, "Returning shoes, a short talk")
    assert read(desk, SERVER, shop, title)[:2] == (QUESTION, None)


NO_ANSWERS = {
    "a status": {"status": "success"},
    "a status under result": {"result": "success"},
    "the next step": {"next": "retrieve_docs", "n": 1},
    "a class with its share": {"label": "billing issue", "score": 0.9},
    "a cut object": "RagState(question='How long', docs=[Document(text='Shoes', id='a'), Docu",
    "true": "true",
    "null": "null",
    "None": "None",
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_what_a_program_says_of_itself_is_no_answer(desk: Any, name: str) -> None:
    assert read(desk, chain({"question": QUESTION}, NO_ANSWERS[name]))[:2] == (QUESTION, None)


@pytest.mark.parametrize(
    "out",
    [
        {"answer": "yes"},
        {"result": "Yes"},
        {"antwort": "Ja, 60 Tage lang."},
        {"result": "success", "data": {"answer": "60"}},
    ],
)
def test_an_answer_under_a_name_of_an_answer_may_be_one_word(desk: Any, out: Any) -> None:
    answers = {"yes", "Yes", "Ja, 60 Tage lang.", "60"}
    assert read(desk, chain({"question": QUESTION}, out))[1] in answers


def test_a_route_that_a_model_wrote_into_the_state_is_no_answer(desk: Any) -> None:
    model = valued("LLM", QUESTION, "smalltalk", "llm", "run")
    state = chain({"question": QUESTION}, {"question": QUESTION, "intent": "smalltalk"})
    assert read(desk, state, model)[:2] == (QUESTION, None)


def test_the_whole_list_of_messages_is_read_where_its_first_stands_beside_it(desk: Any) -> None:
    pairs = [["user", "What does shipping cost?"], ["assistant", "4.90"], ["assistant", "euros"]]
    given = {"messages": [*pairs, ["user", "And how long?"]]}
    first = "llm.input_messages.0.message"
    root = chain(given, {"answer": "It takes 3 days."})
    root["attributes"] += attributes(**{f"{first}.role": "user", f"{first}.content": pairs[0][1]})
    assert read(desk, root)[0] == "And how long?"
    assert desk.report["left_out"]["earlier turns of a conversation"] == 1


def test_the_words_of_a_step_are_the_question_in_the_prompt_that_ends_so(desk: Any) -> None:
    def task(name: str, parent: str, given: Any) -> dict[str, Any]:
        told = {"inputs": given, "tags": [], "metadata": {}, "kwargs": {"name": name}}
        kind = "workflow" if not parent else "task"
        return step(name, parent, traceloop__span__kind=kind, traceloop__entity__input=told)

    root = task("POST /chat", "", {"input": ""})  # a stream tells no input
    prompt = task("prompt", "POST /chat", {"question": QUESTION})
    assert read(desk, root, prompt, chat("llm", f"Answer: {QUESTION}", ANSWER))[0] == QUESTION
    state = task("POST /chat", "", {"user_request": QUESTION})
    assert read(desk, state, chat("llm", f"Plan: {QUESTION} Now.", ANSWER))[0] == QUESTION


@pytest.mark.parametrize("kind", ["HumanMessage", "ToolMessage"])
def test_serialised_messages_that_a_step_gave_out_are_no_search(desk: Any, kind: str) -> None:
    fields = {"content": QUESTION, "type": {"HumanMessage": "human"}.get(kind, "tool"), "id": "m1"}
    names = ["langchain", "schema", "messages", kind]
    written = {"lc": 1, "type": "constructor", "id": names, "kwargs": fields}
    prompt = step(
        "Prompt",
        "run",
        traceloop__span__kind="task",
        traceloop__entity__input={"inputs": {"question": QUESTION}},
        traceloop__entity__output={"outputs": [written], "kwargs": {"tags": []}},
    )
    root = chain({"question": QUESTION}, {"answer": ANSWER})
    row = read(desk, root, prompt)[2]
    assert "searches" not in row
    assert not row.get("retrieved")


def test_a_passages_place_is_the_uri_that_mlflow_documents(desk: Any) -> None:
    place = {"page_content": PASSAGE, "metadata": {"doc_uri": "shop/returns.md"}, "id": "1"}
    search = valued("RETRIEVER", "shoes", [place], "retrieve", "run")
    row = read(desk, chain({"question": QUESTION}, {"answer": ANSWER}), search)[2]
    assert [chunk["rel_path"] for chunk in row["retrieved"]] == ["shop/returns.md"]


def test_passages_that_a_step_hands_on_are_no_search(desk: Any) -> None:
    rows = [{"page_content": PASSAGE, "metadata": {"source": "shop/returns.md"}}]
    values = {"traceloop__entity__input": rows, "traceloop__entity__output": rows}
    handing = step("format", "run", traceloop__span__kind="task", **values)
    root = chain({"question": QUESTION}, {"answer": ANSWER})
    assert read(desk, root, handing)[2].get("retrieved") is None


def failing(span: dict[str, Any]) -> dict[str, Any]:
    return span | {"status": {"code": 2, "message": "timed out"}}


UNREAD = (SEARCH, chat("answer", PROMPT, ANSWER), chat("later", *LATER["a judge in words"]))


def test_an_answer_that_cannot_be_read_is_no_failed_call_and_keeps_its_passages(desk: Any) -> None:
    _, answer, row = read(desk, SERVER, *UNREAD)
    assert (row["status"], answer, row["error"]) == ("unreadable", None, None)
    assert row["absent"]["answer"] == "no span says for certain which text is the answer"
    assert [chunk["text"] for chunk in row["retrieved"]] == [PASSAGE]
    assert row["latency_ms"]["total"] > 0


def test_a_search_that_failed_on_the_way_makes_no_failed_call_of_it(desk: Any) -> None:
    """The model or the whole request that failed does: no answer came then."""
    search, answer, later = UNREAD
    assert read(desk, SERVER, failing(search), answer, later)[2]["status"] == "unreadable"
    for spans in ((failing(SERVER), *UNREAD), (SERVER, search, failing(answer), later)):
        row = read(desk, *spans)[2]
        assert (row["status"], row["error"]["message"]) == ("error", "timed out")


@pytest.mark.parametrize(
    ("outputs", "status"),
    [({"verdict": 3}, "unreadable"), ({"answer": ANSWER}, "ok"), ({}, "error"), ("", "error")],
)
def test_an_experiment_that_names_no_answer_is_not_read(
    desk: Any, outputs: Any, status: str
) -> None:
    row = {"id": "a", "inputs": {"question": QUESTION}, "outputs": outputs}
    row |= {"reference_outputs": {"answer": "60 days"}, "execution_time": 0.5}
    desk.take("langsmith", desk.rows("runs.jsonl", [row]))
    assert [line["status"] for line in desk.results("runs")] == [status]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_an_export_says_that_an_answer_could_not_be_read(desk: Any, kind: str) -> None:
    read(desk, SERVER, *UNREAD)
    out = {"json": "out.jsonl", "csv": "out.csv"}[kind]
    report = desk.give(kind, out, run="trace")
    if kind == "csv":
        assert "unreadable" in (desk.folder / out).read_text("utf-8-sig")
    else:
        assert report["left_out"]["answers that could not be read"] == 1
        assert "answer" not in json.loads((desk.folder / out).read_text("utf-8"))
